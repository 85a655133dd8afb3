"""What can be said of any request of a client, beside what it asks."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypedDict

from mcpgen.runtime.errors import UsageError

__all__ = ["CallOptions", "OnProgress", "checked"]

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[object] | object]
"""Told how far a request has come: so much, of so much if that is known, and what is being done; plain or async."""


class CallOptions(TypedDict, total=False):
    """What can be said of any request."""

    on_progress: OnProgress | None
    """Called in the task that waits, before the result is returned."""
    timeout_seconds: float | None
    """How long it may take, and again from each progress on; by default what the limits of the client say."""
    meta: Mapping[str, object] | None
    """More to say with it, under keys with a prefix of your own."""


def checked(options: CallOptions) -> tuple[OnProgress | None, float | None, Mapping[str, object] | None]:
    """Return the options of a request.

    Raises:
        UsageError: There is no such option, or it is not what it should be.
    """
    for each in options:
        if each not in CallOptions.__annotations__:
            meant = difflib.get_close_matches(each, CallOptions.__annotations__, 1, 0.5)
            hint = f"; did you mean {meant[0]}?" if meant else f"; there are {', '.join(CallOptions.__annotations__)}"
            raise UsageError(f"a request has no option {each!r}{hint}")
    given: dict[str, object] = {**options}
    on_progress, seconds, meta = (given.get(each) for each in ("on_progress", "timeout_seconds", "meta"))
    if on_progress is not None and not callable(on_progress):
        raise UsageError(f"on_progress is a function that takes progress, total and message, not {on_progress!r}")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise UsageError(f"timeout_seconds is a number, not {seconds!r}")
    if meta is not None and not isinstance(meta, Mapping):
        raise UsageError(f"meta is a mapping, such as {{'com.example/key': 1}}, not {meta!r}")
    return options.get("on_progress"), options.get("timeout_seconds"), options.get("meta")
