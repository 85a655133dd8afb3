"""What a client wants to hear of, and what it has heard and not yet looked at.

Theory of operation. Whoever listens has a `Stream`: what is wanted, and a line of changes that wait to be taken. A
change that waits already is not put there twice, so that a flood of equal ones is one. A server without sessions tells
each stream by its id; one with a session tells them all at once, and each takes what it wants.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcpgen.runtime.engine.listening import LIST_CHANGES, RESOURCE_UPDATED, Filter

if TYPE_CHECKING:
    from mcpgen.runtime.clients.waking import Waker
    from mcpgen.runtime.wire.messages import RequestId

__all__ = ["KINDS", "Change", "Kind", "Listening", "Stream"]

Kind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

KINDS: Final[dict[str, Kind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    RESOURCE_UPDATED: "resource",
}

_LOG = logging.getLogger("mcpgen.session")


class Change(Struct, frozen=True):
    """Something at the server is not what it was.

    Attributes:
        kind: What: the list of ``tools``, of ``prompts`` or of ``resources``, or one ``resource``.
        uri: Of the resource; None for a list.
    """

    kind: Kind
    uri: str | None = None


class Stream:
    """What one listener wants to hear, and what waits for it.

    Attributes:
        wanted: What it asked for.
        honoured: What of that its server agreed to tell; None until it did.
        waker: Woken when there is something to take, or the state of the stream has changed.
        is_over: Whether nothing more will come.
        failure: Why that is, if it is a failure.
    """

    def __init__(self, wanted: Filter, waker: Waker, most: int) -> None:
        self.wanted: Filter = wanted
        self.honoured: Filter | None = None
        self.waker: Waker = waker
        self.is_over: bool = False
        self.failure: Exception | None = None
        self._most = most
        self._has_dropped = False
        self._waiting: dict[Change, None] = {}

    def put(self, change: Change) -> None:
        """Add *change* to what waits, unless it waits already, or too much does."""
        if len(self._waiting) >= self._most and change not in self._waiting:
            if not self._has_dropped:  # once: a server may tell of many
                self._has_dropped = True
                _LOG.warning("changes are dropped: nobody looks at those that were told before")
            return
        self._waiting[change] = None
        self.waker.wake()

    def take(self) -> Change | None:
        """Return the oldest change that waits; None if there is none."""
        if not self._waiting:
            return None
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change

    def end(self, failure: Exception | None = None) -> None:
        """Take it that nothing more will come."""
        if not self.is_over:
            self.is_over = True
            self.failure = failure
            self.waker.wake()


class Listening:
    """All that one connection wants to hear of.

    Attributes:
        streams: Those of a server without sessions, by the id of the request that opened each.
        sharing: Those that share the session.
        uris: How many of those watch each resource.
    """

    def __init__(self, most: int) -> None:
        self.streams: dict[RequestId, Stream] = {}
        self.sharing: dict[Stream, None] = {}
        self.uris: dict[str, int] = {}
        self._most = most

    def stream(self, wanted: Filter, waker: Waker) -> Stream:
        """Return a new stream."""
        return Stream(wanted, waker, self._most)

    def acknowledge(self, stream: RequestId, agreed: dict[str, Any]) -> None:
        """Note what the server agreed to tell on *stream*."""
        found = self.streams[stream]
        found.honoured = msgspec.convert(agreed, Filter)
        found.waker.wake()

    def tell(self, change: Change, method: str, stream: RequestId | None) -> bool:
        """Hand *change* to whoever wants to hear of it; return whether its server may tell it: a stream is for some."""
        if stream is not None and not _wants(self.streams[stream].wanted, change, method):
            return False
        for each in self.sharing if stream is None else [self.streams[stream]]:
            if _wants(each.wanted, change, method):
                each.put(change)
        return True

    def end(self, stream: RequestId) -> None:
        """Take it that the server has ended *stream*."""
        found = self.streams.pop(stream, None)
        if found is not None:
            found.end()

    def fail(self, failure: Exception) -> None:
        """End all streams: the connection is lost."""
        for each in [*self.streams.values(), *self.sharing]:
            each.end(failure)
        self.streams.clear()
        self.sharing.clear()


def _wants(wanted: Filter, change: Change, method: str) -> bool:
    if change.uri is None:
        return bool(getattr(wanted, LIST_CHANGES[method]))
    # 2025-11-25, server/resources, "Subscriptions", and the schema: it may be a part of the resource that is watched.
    uri = change.uri
    return any(uri == each or uri.startswith(each.rstrip("/") + "/") for each in wanted.resource_subscriptions)
