"""Media types of HTTP bodies: what `Content-Type` names, and what `Accept` allows.

Spec:
    2025-11-25, basic/transports, "Sending Messages to the Server"; RFC 9110, sections 8.3 and 12.5.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

__all__ = ["EVENT_STREAM", "JSON", "accepts", "is_json", "media_type"]

# Browsers send some 100 characters. 64 KiB of commas, the most that a head can have, take 30 ms to split.
_MAX_ACCEPT_CHARS: Final = 1024

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"


def media_type(content_type: str) -> str:
    """Return the media type that a ``Content-Type`` names, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=256)  # a client sends the same value with each request, and most clients send one of a few
def is_json(content_type: str | None) -> bool:
    """Return whether a ``Content-Type`` names JSON; its charset is ignored, since JSON is always UTF-8."""
    return content_type is not None and media_type(content_type) == JSON


@lru_cache(maxsize=256)
def accepts(accept: str | None, kind: str) -> bool:
    """Return whether an ``Accept`` header allows the media type *kind*; a missing header allows every type.

    Of a long header, only the beginning is read.
    """
    if accept is None:
        return True
    ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    allowed: dict[str, bool] = {}
    for each in accept[:_MAX_ACCEPT_CHARS].split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        allowed[name] = not any(_is_zero_weight(parameter) for parameter in parameters)
    # The most specific range that matches decides.
    return next((allowed[each] for each in ranges if each in allowed), False)


def _is_zero_weight(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", "0.")
