"""The events of this worker's streams, copied to the cluster, so that another worker can resume a stream after it.

Theory of operation. An event goes to the store of this worker, which resumes its streams while it lives, and soon after
that to the cluster. So a client that has an event may name it before the cluster has it. A copy begins with the ids of
the requests that its stream answers. After the end of a worker, the reader of a copy finds out from them which requests
have got no answer, and never will.

If the cluster cannot be reached, the copies wait within limits. If some are dropped, their stream has a gap, which the
reader notices by the numbers.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Response
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.event_store import EventStore, event_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.cluster.cluster import Event
    from mcpgen.runtime.server.cluster.worker import ClusterWorker

__all__ = ["LostStream", "SharedEvents"]

# Copies that wait for the cluster: a second of a busy worker.
_MAX_WAITING: Final = 10_000
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024

# Of one message to the cluster.
_BATCH: Final = 200
_BATCH_BYTES: Final = 1024 * 1024

# Of the ids in each copy. Those of a batch of 1,000 requests take 5 kB if they are numbers. A client may choose others,
# of 4 kB each, and then a copy would take megabytes.
_MAX_IDS_BYTES: Final = 16 * 1024

_RETRY_SECONDS: Final = 0.5

_REMOVED: Final = -1

_LOST: Final = (
    "The worker that ran this request has ended, and the answer is lost. The function may have run, in part or "
    "completely; send the request again only if that does no harm"
)

_LOG = logging.getLogger("mcpgen.cluster")

_encode_ids: Final = msgspec.json.Encoder().encode
_decode_ids: Final = msgspec.json.Decoder(list[int | str]).decode


class LostStream(Struct, frozen=True):
    """What is left of a stream whose worker has ended.

    Attributes:
        missed: The events that the client has not got, encoded.
        unanswered: Errors for the requests that have got no answer, encoded as events.
    """

    missed: list[bytes]
    unanswered: list[bytes]


class SharedEvents:
    """The events of one worker's streams.

    Args:
        worker: This worker.
        local: The store of this worker.
        is_closing: Returns whether this worker ends, so that its streams have to outlive it.
    """

    def __init__(self, worker: ClusterWorker, local: EventStore, *, is_closing: Callable[[], bool]) -> None:
        self._worker = worker
        self._local = local
        self._is_closing = is_closing
        self._flushing = anyio.Lock()
        self._waiting: deque[Event] = deque()
        self._waiting_bytes = 0
        self._filled = anyio.Event()

    def store_for(self, request_ids: Sequence[RequestId]) -> EventStore:
        """Return the store of a stream that answers the requests with these ids."""
        return _StreamStore(self, self._local, request_ids)

    def add(self, stream: str, number: int, copied: bytes) -> None:
        """Copy an event to the cluster soon; drop the oldest ones that wait if there is no room."""
        self._waiting.append((stream, number, copied))
        self._waiting_bytes += len(copied)
        while len(self._waiting) > _MAX_WAITING or self._waiting_bytes > _MAX_WAITING_BYTES:
            self._waiting_bytes -= len(self._waiting.popleft()[2])
        self._filled.set()

    def remove(self, stream: str) -> None:
        """Remove a stream from the cluster soon."""
        if not self._is_closing():
            self.add(stream, _REMOVED, b"")

    async def run(self) -> None:
        """Copy what waits, until this is cancelled."""
        while True:
            await self._filled.wait()
            self._filled = anyio.Event()
            while self._waiting:
                try:
                    await self.flush()
                except ClusterUnavailable as error:
                    # The worker has logged it.
                    _LOG.debug("events of streams cannot be copied to the cluster yet: %s", error)
                    await anyio.sleep(_RETRY_SECONDS)

    async def flush(self) -> None:
        """Copy what waits.

        Raises:
            ClusterUnavailable: That is not possible now.
        """
        async with self._flushing:
            while self._waiting:
                batch = self._take_batch()
                try:
                    await self._send(batch)
                except BaseException:  # also if this is cancelled
                    self._waiting.extendleft(reversed(batch))  # the cluster ignores what it has got already
                    self._waiting_bytes += sum(len(each) for _, _, each in batch)
                    raise

    def _take_batch(self) -> list[Event]:
        """Remove the first events, or the first removals, from what waits; return them."""
        batch: list[Event] = []
        size, is_removal = 0, self._waiting[0][1] == _REMOVED
        while self._waiting and (self._waiting[0][1] == _REMOVED) is is_removal:
            if len(batch) >= _BATCH or (batch and size + len(self._waiting[0][2]) > _BATCH_BYTES):
                break
            batch.append(self._waiting.popleft())
            size += len(batch[-1][2])
        self._waiting_bytes -= size
        return batch

    async def _send(self, batch: list[Event]) -> None:
        cluster, key = self._worker.cluster, self._key
        if batch[0][1] == _REMOVED:
            await cluster.remove_events(key, [stream for stream, _, _ in batch])
        else:
            await cluster.add_events(key, batch)

    async def read(self, stream: str, number: int) -> LostStream | None:
        """Return what is left of a stream of a worker that has ended, after *number*; None if not all of it is there.

        Raises:
            ClusterUnavailable: The cluster cannot be read.
        """
        found = await self._worker.cluster.events_after(self._key, stream, number - 1)
        if not found or [each for each, _ in found] != list(range(number, number + len(found))):
            return None
        ids: list[RequestId] = []
        missed: list[bytes] = []
        answered: set[RequestId] = set()
        for each, copied in found:
            head, _, message = copied.partition(b"\n")
            ids = _decode_ids(head)
            answered.update(_answered(message))
            if message and each > number:
                missed.append(encode_event(message, event_id=event_id(stream, each)))
        lost = envelope.error_json(RequestError(ErrorCode.INTERNAL_ERROR, _LOST, {"reason": "lost"}))
        unanswered = [encode_event(envelope.encode_error(each, lost)) for each in ids if each not in answered]
        return LostStream(missed, unanswered)

    @property
    def _key(self) -> str:
        return self._worker.key("events")


class _StreamStore(EventStore):
    """The store of one stream: that of the worker, and the cluster.

    Args:
        shared: Copies to the cluster.
        local: The store of the worker.
        request_ids: The ids of the requests that it answers.
    """

    def __init__(self, shared: SharedEvents, local: EventStore, request_ids: Sequence[RequestId]) -> None:
        self._shared = shared
        self._local = local
        self._request_ids: Sequence[RequestId] | None = request_ids  # None if they are too long

    def append(self, stream: str, number: int, message: bytes) -> None:
        """Store an event here, and soon in the cluster; see `EventStore`."""
        if self._request_ids is not None:
            ids = _encode_ids(self._request_ids)
            if len(ids) > _MAX_IDS_BYTES:
                self._request_ids = None
            else:
                self._shared.add(stream, number, ids + b"\n" + message)
        self._local.append(stream, number, message)

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events that are stored here; see `EventStore`."""
        return await self._local.after(stream, number)

    async def forget(self, stream: str) -> None:
        """Remove a stream; see `EventStore`."""
        self._shared.remove(stream)
        await self._local.forget(stream)


def _answered(message: bytes) -> set[RequestId]:
    """Return the ids of the requests that *message* answers."""
    if not message:
        return set()
    found = envelope.decode(message)
    items = found.items if isinstance(found, Batch) else (found,)
    return {each.id for each in items if isinstance(each, Response | ErrorResponse) and each.id is not None}
