"""The changes that one connection is subscribed to, and those that have come and were not yet read.

Theory of operation. Each listener has a `ChangeStream`: a filter, and a queue of changes. A change that is queued
already is not queued again, so a flood of equal changes takes one place. A server of a stateless revision addresses one
stream by its id. A server of a handshake revision notifies the session, and every stream takes what its filter lets
through.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from mcpgen.runtime.limits import MAX_URI_CHARS
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.subscriptions import LIST_CHANGES, RESOURCE_UPDATED, SubscriptionFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcpgen.runtime.client.pending_request import RawResponse
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["CHANGE_KINDS", "Change", "ChangeStream", "Kind", "Subscriptions", "kept_end"]

Kind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

CHANGE_KINDS: Final[dict[str, Kind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    RESOURCE_UPDATED: "resource",
}

# A server can report a thousand URIs of 8,192 characters, which take 32 MB, on each stream. Most have fewer than 100.
_CHARS_OF_CHANGE: Final = 1024

# Beside the request, each character of which can be written as an escape of six bytes in the acknowledgement.
_ACKNOWLEDGED_BYTES: Final = 64 * 1024
_ESCAPE_BYTES: Final = 6

# Of the response that ends a stream.
_MAX_END_BYTES: Final = 16 * 1024
_MAX_END_CHARS: Final = 1000

_LOG = logging.getLogger("mcpgen.session")


class Change(Struct, frozen=True):
    """A list or a resource of the server has changed.

    Attributes:
        kind: What changed: ``tools``, ``prompts`` or ``resources`` for the list, ``resource`` for one resource.
        uri: The URI of the resource; None for a list.
    """

    kind: Kind
    uri: str | None = None


class ChangeStream:
    """The filter and the queue of one listener.

    Args:
        wanted: The changes that the listener asked for.
        event: See below.
        max_queued: How many changes can wait.
        on_failure: Called when an error closes the stream.

    Attributes:
        wanted: The changes that the listener asked for.
        acknowledged: Those of them that the server agreed to report; None until it did.
        accepted: The acknowledged filter as the server wrote it; empty if it cannot repeat parts of the request only.
        max_acknowledged_bytes: The longest acknowledgement whose filter is kept.
        event: Set when a change is queued, and when the state of the stream changes.
        has_reported: Whether the server has reported a change on the stream.
        is_closed: Whether no more changes will come.
        failure: Why it was closed, if by an error.
    """

    def __init__(
        self,
        wanted: SubscriptionFilter,
        event: AutoResetEvent,
        max_queued: int,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        self.wanted: SubscriptionFilter = wanted
        self.acknowledged: SubscriptionFilter | None = None
        self.accepted: dict[str, Any] = {}
        self.max_acknowledged_bytes: int = 0
        self.event: AutoResetEvent = event
        self.has_reported: bool = False
        self.is_closed: bool = False
        self.failure: Exception | None = None
        self._max_queued = max_queued
        self._on_failure = on_failure
        self._has_dropped = False
        self._queue: dict[Change, None] = {}
        self._queued_chars = 0  # of their URIs
        self._uris = frozenset(wanted.resource_subscriptions)
        self._roots = frozenset(each.rstrip("/") for each in self._uris)
        self._root_sizes = frozenset(map(len, self._roots))

    def wants(self, change: Change, method: str) -> bool:
        """Return whether the listener asked for *change*, which *method* reports.

        Spec:
            2025-11-25, server/resources, "Subscriptions", and the schema: the server may report a sub-resource of the
            one that the client has subscribed to.
        """
        uri = change.uri
        if uri is None:
            return bool(getattr(self.wanted, LIST_CHANGES[method]))
        if uri in self._uris:
            return True
        # By the lengths of the roots: a server can report hundreds of URIs in one turn, with thousands of slashes each.
        return any(uri[size : size + 1] == "/" and uri[:size] in self._roots for size in self._root_sizes)

    def put(self, change: Change) -> None:
        """Queue *change*. Drop it if the queue is full, or its URI is too long to be kept."""
        size = 0 if change.uri is None else len(change.uri)
        chars = self._queued_chars + size
        is_full = len(self._queue) >= self._max_queued or chars > self._max_queued * _CHARS_OF_CHANGE
        is_new = change not in self._queue
        if size > MAX_URI_CHARS or (is_full and is_new):
            if not self._has_dropped:  # logged once: a server may send any number of changes
                self._has_dropped = True
                _LOG.warning(
                    "changes are dropped: the program does not read them from listen() fast enough, so more than %d "
                    "changes (max_changes), or more than %d characters of their URIs, would wait; or one URI has more "
                    "than %d characters",
                    self._max_queued,
                    self._max_queued * _CHARS_OF_CHANGE,
                    MAX_URI_CHARS,
                )
            return
        if is_new:
            self._queue[change] = None
            self._queued_chars = chars
        self.event.set()

    def take(self) -> Change | None:
        """Return the oldest change in the queue; None if it is empty."""
        if not self._queue:
            return None
        change = next(iter(self._queue))
        del self._queue[change]
        self._queued_chars -= 0 if change.uri is None else len(change.uri)
        return change

    def note_request(self, params: bytes | UnsetType) -> None:
        """Bound the acknowledgement by the encoded *params* of the request that opens the stream."""
        size = 0 if isinstance(params, UnsetType) else len(params)
        self.max_acknowledged_bytes = _ACKNOWLEDGED_BYTES + _ESCAPE_BYTES * size

    def close(self, failure: Exception | None = None) -> None:
        """Close the stream. Queued changes can still be taken."""
        if not self.is_closed:
            self.is_closed = True
            self.failure = failure
            self.event.set()
            if failure is not None and self._on_failure is not None:
                self._on_failure(failure)


class Subscriptions:
    """All streams of one connection.

    Attributes:
        streams: Those of a stateless server, by the id of the request that opened each.
        shared: Those that share the session of a handshake server.
        uri_counts: How many of the shared streams watch each resource.
        renewals: Each opens a stream of the program again, if it has broken and no task waits for its changes.
    """

    def __init__(self, max_queued: int) -> None:
        self.streams: dict[RequestId, ChangeStream] = {}
        self.shared: dict[ChangeStream, None] = {}
        self.uri_counts: dict[str, int] = {}
        self.renewals: dict[Callable[[], Coroutine[Any, Any, None]], None] = {}
        self._max_queued = max_queued

    def new_stream(
        self,
        wanted: SubscriptionFilter,
        event: AutoResetEvent,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> ChangeStream:
        """Return a stream that is not registered yet."""
        return ChangeStream(wanted, event, self._max_queued, on_failure)

    def acknowledge(self, stream_id: RequestId, acknowledged: dict[str, Any], size: int) -> None:
        """Store what the server agreed to report on a stream, in a notification of *size* bytes.

        A server can acknowledge any number of URIs that were not requested.
        """
        stream = self.streams[stream_id]
        found = msgspec.convert(acknowledged, SubscriptionFilter)
        uris = set(found.resource_subscriptions)
        requested = [each for each in stream.wanted.resource_subscriptions if each in uris]
        stream.acknowledged = structs.replace(found, resource_subscriptions=requested)
        stream.accepted = acknowledged if size <= stream.max_acknowledged_bytes else {}
        stream.event.set()

    def dispatch(self, change: Change, method: str, stream_id: RequestId | None) -> bool:
        """Queue *change* on each stream that wants it. Return False if its stream did not ask for such changes."""
        if stream_id is not None and not self.streams[stream_id].wants(change, method):
            return False
        for each in self.shared if stream_id is None else [self.streams[stream_id]]:
            if each.wants(change, method):
                each.has_reported = True
                each.put(change)
        return True

    def end_stream(self, stream_id: RequestId, failure: Exception | None = None) -> None:
        """Close and remove a stream, if it is open."""
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            stream.close(failure)

    def fail(self, failure: Exception) -> None:
        """Close all streams with *failure*: the connection is lost."""
        for each in [*self.streams.values(), *self.shared]:
            each.close(failure)
        self.streams.clear()
        self.shared.clear()


class _End(Struct, rename="camel"):
    result_type: str | UnsetType = UNSET


_decode_end: Final = msgspec.json.Decoder(_End).decode


def kept_end(response: RawResponse) -> RawResponse:
    """Return what is kept of the *response* that ends a stream: a copy, and of a long one only what is looked at.

    It is kept until the program looks at the stream. A program can have hundreds of streams, and each response can have
    megabytes.
    """
    if isinstance(response, ErrorResponse):
        if len(memoryview(response.error)) <= _MAX_END_BYTES:
            return structs.replace(response, error=response.error.copy())
        return structs.replace(response, message=response.message[:_MAX_END_CHARS], error=Raw(b"{}"))
    if len(memoryview(response)) <= _MAX_END_BYTES:
        return response.copy()
    try:
        found = _decode_end(response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(b"null")  # no result either
    if not isinstance(found.result_type, UnsetType):
        found.result_type = found.result_type[:_MAX_END_CHARS]
    return Raw(msgspec.json.encode(found))
