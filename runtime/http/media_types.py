"""What a client accepts, and what it sends, by its headers.

Spec:
    2025-11-25, basic/transports, "Sending Messages to the Server"; RFC 9110, sections 8.3 and 12.5.1.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["accepts", "is_json"]


@lru_cache(maxsize=256)  # clients say the same with each request; and few clients say something of their own
def accepts(accept: str | None, kind: str) -> bool:
    """Whether a client that sends this ``Accept`` takes a body of the media type *kind*.

    Without the header it takes anything.
    """
    if accept is None:
        return True
    ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    weights: dict[str, bool] = {}
    for each in accept.split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        weights[name] = not any(_is_zero(parameter) for parameter in parameters)
    # The most specific range that fits counts.
    return next((weights[each] for each in ranges if each in weights), False)


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", "0.")


@lru_cache(maxsize=256)
def is_json(content_type: str | None) -> bool:
    """Whether a ``Content-Type`` is that of JSON, which is UTF-8 whatever it says."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"
