"""One worker of a cluster: its number, its messages to and from other workers, and how long its copies can be trusted.

Theory of operation. Every `_BEAT_SECONDS`, a worker renews its record, reads the epoch, and sends itself a message, its
*beat*. Messages arrive in order, so when the beat comes back, all that was sent before it has arrived. So this worker
may use its copies until `_TRUST_SECONDS` after it has sent that beat. A new connection for messages, or another epoch,
begins a new *generation*: copies of an earlier generation have to be read again. The epoch is a record that only a
flush removes.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import anyio
import anyio.abc
from msgspec import Struct

from mcpgen.runtime.server.cluster.cluster import Cluster, ClusterUnavailable
from mcpgen.runtime.server.cluster.message_pieces import MessagePieces
from mcpgen.runtime.server.cluster.other_workers import OtherWorkers
from mcpgen.runtime.server.cluster.outbox import Outbox, Waiting
from mcpgen.runtime.server.cluster.worker_messages import (
    Beat,
    Piece,
    PieceTaken,
    WorkerMessage,
    decode_message,
    encode_message,
)
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ID_SHIFT", "ClusterWorker", "parse_number", "worker_of_id"]

_BEAT_SECONDS: Final = 0.3
_TRUST_SECONDS: Final = 1.0

# After so many beats of which none came back, which takes three seconds, the connection for messages is replaced: the
# network may have lost it silently. No time is measured: a process that is not run for seconds gets no messages either.
_MAX_SILENT_BEATS: Final = 10

# A worker that was killed is known to have ended after this time, if its connection has not told it.
_LIFETIME_SECONDS: Final = 5.0

# How long a request waits for a worker that is about to join.
_JOIN_SECONDS: Final = 2.0

_EPOCH_SECONDS: Final = 7 * 24 * 3600.0
_BEATS_PER_CHORE: Final = 100

# Ids of requests to clients are integers below 2**53, which every JSON parser keeps exact: 20 bits of the worker's
# number, and 32 bits of a count.
_LEAVING: Final = "leaving"

# A process that was told to stop has a second or two.
_LEAVING_SECONDS: Final = 0.3

_NUMBER_BITS: Final = 20
ID_SHIFT: Final = 32

_LOG = traceback_logger("mcpgen.cluster")

# Seven digits, as `_NUMBER_BITS` have at most.
_NUMBER: Final = re.compile(r"[0-9]{1,7}")

T = TypeVar("T", bound=Struct)


def parse_number(text: str) -> int | None:
    """Return the number of a worker in *text*, which a client has sent; None if it is none."""
    return int(text) if _NUMBER.fullmatch(text) else None


def worker_of_id(request_id: object) -> int | None:
    """Return the number of the worker that sent the request with this id to a client; None if it is none of ours."""
    if isinstance(request_id, str) and request_id.isdecimal() and request_id.isascii():
        request_id = int(request_id[:20])  # some clients write the integer as a text
    return request_id >> ID_SHIFT if isinstance(request_id, int) and request_id >> ID_SHIFT > 0 else None


class ClusterWorker:
    """One worker of a server.

    Args:
        cluster: What the workers share.
        server: The name of the server. Servers of other names share nothing with it.
        clock: Returns monotonic seconds.

    Attributes:
        cluster: What the workers share.
        number: Names this worker; no other has it.
        generation: Rises when copies of records have to be read again.
        on_chore: Called now and then, while the cluster can be reached.
        on_break: Called when messages may have been lost.
        on_distrust: Called when copies of records have to be read again.
    """

    def __init__(self, cluster: Cluster, server: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.cluster: Cluster = cluster
        self.number: int = _new_number()
        self.generation: int = 0
        self.on_chore: Callable[[], object] | None = None
        self.on_break: Callable[[], object] | None = None
        self.on_distrust: Callable[[], object] | None = None
        self._server = f"{{{quote(server, safe=' ', errors='surrogatepass')}}}:"
        self._token = secrets.token_bytes(16)
        self._clock = clock
        self._pieces = MessagePieces(lambda: self.number, self._publish)
        self._handlers: dict[type[Struct], Callable[[Any], object]] = {
            Beat: self._beat_arrived,
            Piece: self._piece_arrived,
            PieceTaken: self._pieces.taken,
        }
        self._joined = anyio.Event()  # at its first beat
        self._beat_now = anyio.Event()
        self._epoch = b""
        self._beat_count = 0
        self._beats: dict[int, float] = {}  # those that have not come back: when each was sent
        self._trusted_until = -math.inf
        self._silent_beats = 0  # since the last that came back
        self._running: anyio.CancelScope | None = None
        self._listening: anyio.CancelScope | None = None
        self._is_reachable = True
        self._outbox = Outbox()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._id_base = 0
        self._others = OtherWorkers(self._has_record, self._is_flushed, clock)

    @property
    def epoch(self) -> bytes:
        """A secret of all workers, which changes when what they share is gone; empty before it is known."""
        return self._epoch

    @property
    def is_trusted(self) -> bool:
        """Whether all changes that were made a second ago have arrived."""
        return self._clock() < self._trusted_until

    def key(self, name: str) -> str:
        """Return the key of a record, or the name of a channel, of this server."""
        return f"{self._server}{name}"

    def on(self, kind: type[T], handle: Callable[[T], object]) -> None:
        """Call *handle* with each message of this *kind*."""
        self._handlers[kind] = handle

    def new_id_base(self) -> int:
        """Return a number for a session. Ids of its requests to the client are counted from there."""
        self._id_base = (self._id_base + (1 << 12)) % (1 << ID_SHIFT)
        return (self.number << ID_SHIFT) + self._id_base

    async def run(self) -> None:
        """Take part in the cluster until `leave` is called, or this is cancelled."""
        await self.cluster.open()
        with anyio.CancelScope() as self._running:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._listen)
                tasks.start_soon(self._beat)
                tasks.start_soon(self._send_outbox)

    async def start_leaving(self) -> None:
        """Let other workers know that this one is about to leave, if that is possible soon."""
        if not self.is_trusted:
            return
        mine = {"token": self._token}
        with suppress(ClusterUnavailable), anyio.move_on_after(_LEAVING_SECONDS):
            await self.cluster.change(self._record(self.number), {_LEAVING: b"1"}, expected=mine)

    async def is_leaving(self, worker: int) -> bool:
        """Return whether *worker* is about to leave."""
        return _LEAVING in await self.cluster.read(self._record(worker))

    async def leave(self) -> None:
        """Leave the cluster, so that other workers do not wait for this one."""
        if self._running is not None:
            self._running.cancel()
        try:
            if self._joined.is_set():
                await self.cluster.remove(self._record(self.number))
        except ClusterUnavailable:
            pass  # the record expires by itself
        finally:
            await self.cluster.close()

    async def wait_joined(self) -> None:
        """Return when the worker has joined its cluster.

        Raises:
            ClusterUnavailable: It has not, after two seconds.
        """
        if not self._joined.is_set():
            with anyio.move_on_after(_JOIN_SECONDS):
                await self._joined.wait()
        if not self._joined.is_set():
            raise ClusterUnavailable("this worker has not been able to join it yet")

    async def send(self, worker: int, message: WorkerMessage) -> bool:
        """Send *message* to another worker; return False if it does not listen."""
        return await self._pieces.send(worker, encode_message(message))

    async def _publish(self, worker: int, data: bytes) -> bool:
        return await self.cluster.send(self._channel(worker), data) > 0

    async def send_to_all(self, message: WorkerMessage) -> None:
        """Send *message*, a small one, to all workers, this one included."""
        await self.cluster.send(self.key("all"), encode_message(message))

    def announcement(self, message: WorkerMessage) -> tuple[str, bytes]:
        """Return *message*, a small one, as what a change of a record announces to all workers in the same step.

        A message that is sent after the change is lost if this worker ends in between, or cannot reach the cluster.
        """
        return self.key("all"), encode_message(message)

    def send_later(
        self,
        worker: int | None,
        message: WorkerMessage,
        unheard: Callable[[], object] | None = None,
        *,
        owner: str = "",
    ) -> None:
        """Send *message* soon to a worker or to all; drop it if too many wait.

        Args:
            worker: The number of the worker; None for all.
            message: The message.
            unheard: Called if no worker listens.
            owner: The client whose call has made it. Only its own messages stay in order; those without an owner, too.
        """
        was_full = self._outbox.is_full
        if not self._outbox.add(Waiting(worker, encode_message(message), owner, unheard)) and not was_full:
            _LOG.warning("messages to another worker are dropped: too many wait to be sent")

    async def is_alive(self, worker: int) -> bool:
        """Return whether *worker* has given a sign of life in the last seconds; see `OtherWorkers.is_alive`."""
        return await self._others.is_alive(worker)

    async def _has_record(self, worker: int) -> bool:
        return bool(await self.cluster.read(self._record(worker)))

    async def _stored_epoch(self) -> bytes:
        return (await self.cluster.read(self.key("epoch"))).get("id", b"")

    async def _is_flushed(self) -> bool:
        return await self._stored_epoch() != self._epoch

    def _channel(self, worker: int) -> str:
        return self.key(f"worker:{worker}")

    def _record(self, worker: int) -> str:
        return self.key(f"alive:{worker}")

    async def _listen(self) -> None:
        while True:
            channels, failure = (self._channel(self.number), self.key("all")), None
            try:
                with anyio.CancelScope() as self._listening:
                    await self.cluster.listen(channels, subscribed=self._subscribed, received=self._received)
            except ClusterUnavailable as error:
                failure = error
            self._trusted_until = -math.inf
            self._others.cut_off()
            if failure is not None:
                self._note_failure(failure)
                await anyio.sleep(_BEAT_SECONDS)

    def _subscribed(self) -> None:
        self._pieces.forget()
        if self.on_break is not None:
            self.on_break()
        self._distrust()
        self._silent_beats = 0
        self._beat_now.set()

    def _distrust(self) -> None:
        """Note that copies may be stale, or that records may be gone."""
        self.generation += 1
        self._beats.clear()
        self._trusted_until = -math.inf
        self._others.begin(again=self._joined.is_set())
        if self.on_distrust is not None:
            self.on_distrust()

    def _received(self, data: bytes) -> None:
        message = decode_message(data)
        handle = None if message is None else self._handlers.get(type(message))
        if handle is None:
            _LOG.debug("a message of another worker is ignored, because this version does not know it")
            return
        try:
            handle(message)
        except Exception:  # noqa: BLE001 (the boundary: one message must not cost the worker the others)
            _LOG.exception("a message of another worker could not be handled")

    def _piece_arrived(self, piece: Piece) -> None:
        if self._tasks is not None:  # not by way of the outbox, in which a large message may wait for the other worker
            self._tasks.start_soon(self._confirm, piece)
        data = self._pieces.arrived(piece)
        if data is not None:
            self._received(data)

    async def _confirm(self, piece: Piece) -> None:
        try:
            await self._publish(piece.worker, encode_message(PieceTaken(piece.message)))
        except ClusterUnavailable as error:
            self._note_failure(error)

    def _beat_arrived(self, beat: Beat) -> None:
        sent = self._beats.pop(beat.count, None)
        if sent is not None:
            self._joined.set()
            self._silent_beats = 0
            self._trusted_until = sent + _TRUST_SECONDS
            for each in [each for each in self._beats if each < beat.count]:
                del self._beats[each]

    async def _beat(self) -> None:
        while True:
            try:
                await self._beat_once()
            except ClusterUnavailable as error:
                self._note_failure(error)
            self._silent_beats += 1
            if self._silent_beats > _MAX_SILENT_BEATS and self._listening is not None:
                self._silent_beats = 0
                self._listening.cancel()
            self._beat_now = anyio.Event()
            with anyio.move_on_after(_BEAT_SECONDS):
                await self._beat_now.wait()

    async def _beat_once(self) -> None:
        sent = self._clock()
        await self._claim_number()
        epoch = await self._stored_epoch()
        if not epoch:
            await self.cluster.create(self.key("epoch"), {"id": secrets.token_bytes(16)}, _EPOCH_SECONDS)
            epoch = await self._stored_epoch()
        if epoch != self._epoch:
            self._epoch = epoch
            self._distrust()
        if self._beat_count % _BEATS_PER_CHORE == 0:
            await self.cluster.keep([self.key("epoch")], _EPOCH_SECONDS)
            if self.on_chore is not None:
                self.on_chore()
        self._beat_count += 1
        self._beats[self._beat_count] = sent
        await self.send(self.number, Beat(self._beat_count))
        if not self._is_reachable:
            self._is_reachable = True
            _LOG.warning("the cluster can be used again")

    async def _claim_number(self) -> None:
        """Renew the record of this worker; take another number if another worker has this one."""
        mine = {"token": self._token}
        while not await self.cluster.change(
            self._record(self.number), {}, expected=mine, seconds=_LIFETIME_SECONDS
        ) and not await self.cluster.create(self._record(self.number), mine, _LIFETIME_SECONDS):
            self.number = _new_number()
            if self._listening is not None:
                self._listening.cancel()

    def _note_failure(self, error: ClusterUnavailable) -> None:
        if self._is_reachable:
            self._is_reachable = False
            _LOG.warning("%s", error)

    async def _send_outbox(self) -> None:
        while True:
            message = await self._outbox.take()
            worker, data, unheard = message.worker, message.data, message.unheard
            try:
                if worker is None:
                    await self.cluster.send(self.key("all"), data)
                elif not await self._pieces.send(worker, data) and unheard is not None:
                    unheard()
            except ClusterUnavailable as error:
                self._note_failure(error)
                if worker is None:  # to hear of a change twice does no harm
                    self._outbox.put_back(message)
                    await anyio.sleep(_BEAT_SECONDS)


def _new_number() -> int:
    return 1 + secrets.randbelow((1 << _NUMBER_BITS) - 1)
