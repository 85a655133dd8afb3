"""The results that a client keeps for as long as the server allows.

Theory of operation. Each client has a cache of its own, which lives as long as the connection. A result that is not
public belongs to the authorization context in which it was requested: when the access token changes, it is
requested again. A result is kept under its method and params, and each page of a
list by itself. A notification that something has changed removes the results that it is about.

Spec:
    2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from mcpgen.runtime.limits import MAX_URI_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.client.subscriptions import Change

__all__ = ["CacheKey", "ResultCache"]

# 2026-07-28, server/utilities/caching: the results that have `ttlMs`, without `server/discover`, which the client sends
# once, and `ping` as a sign of life.
_METHODS: Final = frozenset(
    {"prompts/list", "resources/list", "resources/read", "resources/templates/list", "tools/list"}
)
_CHANGED: Final[Mapping[str, tuple[str, ...]]] = {
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "tools": ("tools/list",),
}
_READ: Final = "resources/read"
_TRACE_CONTEXT: Final = frozenset({"baggage", "traceparent", "tracestate"})
# About what the key and the place of a result take in memory.
_OVERHEAD_BYTES: Final = 500

# The URIs that are compared with changes in one second. Each takes 0.2 µs, and a server can report 256 changes in one
# turn of the event loop.
_MAX_COMPARED: Final = 100_000

CacheKey: TypeAlias = tuple[str, str | None]
"""The method of a request, and its URI or cursor."""

_clock = time.monotonic


class _Hint(Struct, rename="camel"):
    ttl_ms: int | float = 0
    cache_scope: str = "private"


class _Key(Struct):
    cursor: str | None = None
    uri: str | None = None


class _Kept(Struct):
    raw: Raw
    stale_at: float
    size: int
    context: object  # of a result that is not public


_decode_hint: Final = msgspec.json.Decoder(_Hint).decode


class ResultCache:
    """The results of one server that are fresh.

    Args:
        max_bytes: The total size of the results, at most. The oldest make room for new ones.
        authorization_context: Returns the authorization context of the next request. Equal ones have one access token.
    """

    def __init__(self, max_bytes: int, authorization_context: Callable[[], object] = lambda: None) -> None:
        self._max_bytes = max_bytes
        self._authorization_context = authorization_context
        self._bytes = 0
        self._kept: dict[CacheKey, _Kept] = {}
        self._by_method: dict[str, dict[CacheKey, None]] = {each: {} for each in _METHODS}
        self._changes = 0
        self._compared = 0
        self._compared_since = _clock()

    @property
    def state(self) -> tuple[int, object]:
        """How many changes the server has reported, and the authorization context.

        A result that was requested before the last change is not kept, nor one that is private to another context.
        """
        return self._changes, self._authorization_context()

    def key(self, method: str, value: Mapping[str, object], meta: Mapping[str, object] | None) -> CacheKey | None:
        """Return the key of a request with the option *meta*; None if its result is not kept.

        Params other than the URI and the cursor, such as `_meta`, could change the result. Trace context does not.
        """
        if method not in _METHODS or value.keys() - {"cursor", "uri"} or (meta or {}).keys() - _TRACE_CONTEXT:
            return None
        found = msgspec.convert(value, _Key)
        return method, found.uri if method == _READ else found.cursor

    def get(self, key: CacheKey) -> Raw | None:
        """Return a fresh result; None if there is none."""
        found = self._kept.get(key)
        if found is None:
            return None
        is_ours = found.context is None or found.context == (self._authorization_context(),)
        if is_ours and _clock() < found.stale_at:
            return found.raw
        self._remove(key)
        return None

    def put(self, key: CacheKey, raw: Raw, state: tuple[int, object]) -> None:
        """Keep *raw* while it is fresh; *state* is that of the cache when it was requested."""
        try:
            hint = _decode_hint(raw)
            seconds = hint.ttl_ms / 1000
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
            return  # decoding it as the result explains the error
        size = len(memoryview(raw)) + _OVERHEAD_BYTES + sys.getsizeof(key[1])
        changes, context = state
        is_private = hint.cache_scope != "public"
        if seconds <= 0 or size > self._max_bytes or changes != self._changes:
            return
        if is_private and context != self._authorization_context():
            return
        self._remove(key)
        while self._bytes + size > self._max_bytes:
            self._remove(next(iter(self._kept)))
        # A copy: the view would keep the whole frame alive.
        self._kept[key] = _Kept(Raw(bytes(raw)), _clock() + seconds, size, (context,) if is_private else None)
        self._by_method[key[0]][key] = None
        self._bytes += size

    def forget(self, method: str) -> None:
        """Remove the results of *method*: all pages of a list whose cursor is not valid any more."""
        for each in list(self._by_method.get(method, ())):
            self._remove(each)

    def changed(self, change: Change) -> None:
        """Remove the results that a reported change is about."""
        self._changes += 1
        for each in _CHANGED.get(change.kind, ()):
            self.forget(each)
        if change.uri is None:
            return
        if len(change.uri) > MAX_URI_CHARS or not self._may_compare():
            self.forget(_READ)
            return
        for key in list(self._by_method[_READ]):
            if key[1] is not None and _overlap(key[1], change.uri):
                self._remove(key)

    def _may_compare(self) -> bool:
        """Whether there is time to compare the URIs of all results with that of a change."""
        now = _clock()
        if now - self._compared_since > 1:
            self._compared, self._compared_since = 0, now
        self._compared += len(self._by_method[_READ])
        return self._compared <= _MAX_COMPARED

    def _remove(self, key: CacheKey) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            del self._by_method[key[0]][key]
            self._bytes -= found.size


def _overlap(one: str, other: str) -> bool:
    """Whether two URIs are equal, or one is of a part of the other's resource."""
    return one == other or one.startswith(other.rstrip("/") + "/") or other.startswith(one.rstrip("/") + "/")
