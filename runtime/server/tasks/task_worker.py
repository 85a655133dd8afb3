"""The worker of one server: runs the functions of tasks that outlive their connection, and watches a shared store.

Theory of operation. A client of 2026-07-28 creates a task with one request and fetches its result with another, so the
function must not end with the connection. It runs in a task of the worker, which lives as long as the server runs.

In a store that processes share, each worker counts a beat every third of `TaskLimits.lease_seconds`. If another
worker's count has not changed at three beats of this one, that worker has died: its tasks are run again here if their
functions allow it (``replay=True``), and have failed otherwise. A clock would not do: this worker may have been
suspended itself. While functions run here, the worker also looks for what other processes did to its tasks: responses
of the client, cancellations.

The tasks of a view of a server are taken over by a worker of the same view. Another may hide their tools, and its
clients cannot reach these tasks.

A task of a client of 2025-11-25 runs in the session that created it. If the session or its process ends, and the task
belongs to a user, its function runs again in a worker, without a client that it could ask.

A worker that was only suspended finds at its next look that its tasks are another's, and stops their functions. Until
then, the store refuses what they report.
"""

from __future__ import annotations

import secrets
from collections import deque
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import UNSET, Raw

from mcpgen.runtime.errors import McpgenError
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.exchange import Exchange
from mcpgen.runtime.server.fair_turns import REQUEST_COST_BYTES
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller
from mcpgen.runtime.server.ledger import request_bytes
from mcpgen.runtime.server.tasks.extension_task import ExtensionTask
from mcpgen.runtime.server.tasks.lifecycle import RETRY_SECONDS
from mcpgen.runtime.server.tasks.running_task import RunningTask, error_outcome
from mcpgen.runtime.server.tasks.task_store import MAX_READ_BYTES, StoreFailed, forget, forget_all
from mcpgen.runtime.transports.event_loops import next_turn
from mcpgen.runtime.transports.spawner import open_spawner, start_alone
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import OpenRequest
    from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
    from mcpgen.runtime.server.tasks.task_store import TaskRecord
    from mcpgen.runtime.transports.spawner import Spawner, StartedFunction

__all__ = ["TaskWorker", "new_worker", "stop_detached"]

# How soon responses and cancellations that came to another process reach a function that runs here.
_SYNC_SECONDS: Final = 0.5

# How many tasks of dead workers are taken over in one turn of the event loop. With Redis, each takes a millisecond.
_MAX_TAKEN: Final = 32

_LEASE_BEATS: Final = 3  # how many beats of a worker fit into its lease

_LOST: Final = "The process that ran the task has ended"

_LOG = traceback_logger("mcpgen.tasks")

_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class _NoWriter:
    """The writer of a connection without a client."""

    is_full = False

    def write(self, message: bytes) -> None:
        """Drop *message*."""

    async def drain(self) -> None:
        """Return at once."""


class _TaskConnection(Connection):
    """A connection without a client. Over HTTP, its handlers share the turns of the event loop with those of others."""

    __slots__ = ()

    @property
    def is_congested(self) -> bool:
        """Whether a handler has to `drain` before it starts."""
        return self.session.owner != "" and self._engine.turns.is_used_up

    async def drain(self, _about: Exchange | OpenRequest | None, /) -> None:
        """Let others go on, as a function that reports in a loop does not; and wait for a turn that has time for it."""
        await next_turn()
        await self.wait_turn()

    async def wait_turn(self) -> None:
        """Wait for a turn of the event loop that has time to encode more."""
        turns = self._engine.turns
        turns.spend(REQUEST_COST_BYTES)
        if self.is_congested:
            await turns.wait_to_work(self.session.owner, self.session.principal)


class TaskWorker:
    """The worker of one server.

    Args:
        engine: The server.
        tasks: Its tasks.
        monotonic: A clock that never jumps, in seconds.

    Attributes:
        is_closing: Whether the server stops.
        on_tick: Called regularly while the server runs; it looks for changes that other processes made.
    """

    def __init__(self, engine: Engine, tasks: TaskLifecycle, *, monotonic: Callable[[], float]) -> None:
        self.is_closing: bool = False
        self.on_tick: Callable[[], float | None] | None = None
        self._engine = engine
        self._tasks = tasks
        self._monotonic = monotonic
        tasks.on_unsaved = self.wake
        self._spawner: Spawner | None = None
        self._handle: StartedFunction | None = None
        self._waiting: list[tuple[Exchange, str, str]] = []
        self._ready = anyio.Event()
        self._wakeup = anyio.Event()
        self._gone = anyio.Event()
        self._seen: dict[str, tuple[int, int]] = {}  # of each worker, its count and for how many beats it is the same
        self._has_left = False
        self._next_beat = -1.0
        self._taking: Iterator[None] = iter(())
        self._ended: deque[str] = deque()  # the principals whose sessions have ended

    async def open(self) -> None:
        """Start the worker, and return when it can run functions."""
        self._ensure_started()
        await self._ready.wait()

    async def close(self) -> None:
        """Cancel the functions, and return when they have ended."""
        if self._handle is None:
            return
        self.is_closing = True
        self._wakeup.set()
        with anyio.CancelScope(shield=True):  # the functions must end before the server's lifespan does
            await self._gone.wait()
        self._handle = None

    def start(self, exchange: Exchange, *, user: str, owner: str) -> None:
        """Run the handler of *exchange*, which has no open request."""
        self._ensure_started()
        if self._spawner is None:
            self._waiting.append((exchange, user, owner))
            return
        connection = _TaskConnection(self._engine, _NoWriter(), self._spawner)
        connection.session.user, connection.session.owner = user, owner
        # Its owner is not the caller of this function if the task of another process is run again.
        token = CALLER.set(Caller(owner, self._engine.turns) if owner else None)
        connection.start(exchange)
        CALLER.reset(token)

    def forget(self, principal: str) -> bool:
        """Remove the tasks of *principal*, whose session has ended, in several steps; return False if not possible."""
        if self._spawner is None or self.is_closing or not self._tasks.store.is_shared:
            return False
        self._ended.append(principal)
        self.wake()
        return True

    def wake(self) -> None:
        """Look at the tasks now: a new one may expire earlier than the others."""
        self._wakeup.set()

    def may_leave(self, exchange: Exchange) -> bool:
        """Whether another worker will run *exchange* again, now that this one stops."""
        return self.is_closing and self._tasks.store.is_shared and self._engine.handlers.may_replay(exchange)

    def take_back(self) -> bool:
        """Run a function again, here or in another worker, whose session has ended; return True."""
        self._has_left = True
        self.wake()
        return True

    def make_task(self, exchange: Exchange) -> Callable[..., RunningTask]:
        """Return the function that makes the running task of *exchange*, which runs without a session."""
        if exchange.peer.era == "handshake":
            return partial(RunningTask, changed=lambda _: None, may_leave=partial(self.may_leave, exchange))
        return partial(
            ExtensionTask,
            exchange=exchange,
            may_leave=partial(self.may_leave, exchange),
            max_rounds=self._engine.limits.max_rounds,
            reading=self._engine.reading,
        )

    def _ensure_started(self) -> None:
        if self._handle is None:
            self.is_closing = False
            self._ready, self._wakeup, self._gone = anyio.Event(), anyio.Event(), anyio.Event()
            self._handle = start_alone(self._run, self._end)

    def _end(self) -> None:
        self._spawner = None
        self._ready.set()
        self._gone.set()

    async def _run(self) -> None:
        async with open_spawner() as spawner:
            self._spawner = spawner
            self._ready.set()
            waiting, self._waiting = self._waiting, []
            for exchange, user, owner in waiting:
                self.start(exchange, user=user, owner=owner)
            while not self.is_closing:
                seconds = self.tick()
                self._wakeup = anyio.Event()
                if not self.is_closing:
                    with anyio.move_on_after(seconds):
                        await self._wakeup.wait()
        forget_all(self._tasks.store, self._ended)
        self._ended.clear()
        if self._tasks.store.is_shared:
            try:
                self._tasks.store.remove_worker(self._tasks.worker)
            except StoreFailed as failure:  # the other workers find out that the beats have stopped
                _LOG.warning("the end of this worker cannot be stored: %s", failure)
            self._tasks.worker = new_worker(self._tasks.view)  # if the server runs again, it takes its tasks over

    def tick(self) -> float | None:
        """Do what is due; return in how many seconds to call this again, or None if nothing is to come."""
        try:
            cost = 0
            while (saved := self._tasks.save()) and cost < MAX_READ_BYTES:  # after an outage, a thousand may wait
                cost += max(saved, MAX_READ_BYTES // _MAX_TAKEN)
            expiry = self._tasks.tidy()
            due = ([] if expiry is None else [max(0.0, expiry - self._tasks.clock())]) + ([0.0] if saved else [])
            if self._ended:
                if not forget(self._tasks.store, self._ended[0]):
                    self._ended.popleft()
                due.append(0.0)
            if self._tasks.store.is_shared:
                is_done = self._sync()
                due.append(self._watch() if is_done else 0.0)
                if self._tasks.is_watching:
                    due.append(_SYNC_SECONDS)
            more = None if self.on_tick is None else self.on_tick()
        except StoreFailed as failure:
            _LOG.warning("the task store failed: %s", failure)
            return RETRY_SECONDS
        except Exception:  # noqa: BLE001 (what the store holds is not valid; other tasks must go on)
            _LOG.exception("checking the tasks failed; the server tries again")
            return RETRY_SECONDS
        return min([*due, *([] if more is None else [more])], default=None)

    def _sync(self) -> bool:
        """Pass what other processes did to the tasks of this worker to their functions.

        Returns:
            Whether that is all; if not, the rest is to come in the next turn of the event loop.
        """
        tasks, read = self._tasks, 0
        if not tasks.running and not self._has_left:
            return True
        records = {each.task_id: each for each in tasks.store.unfinished(tasks.worker)}
        for task_id, running in list(tasks.running.items()):
            record = records.get(task_id)
            if record is None:
                if not running.has_ended and not tasks.is_unsaved(task_id):
                    running.has_ended = True
                    running.stop()
            elif isinstance(running, ExtensionTask) and running.is_asking:
                if read >= MAX_READ_BYTES:
                    return False
                read += self._receive(running, record.updated_ms)
        if self._has_left:
            self._has_left = False
            self._resume_all(records.keys() - tasks.running.keys())
        return True

    def _receive(self, running: ExtensionTask, updated_ms: int) -> int:
        """Pass the responses to *running* that are in its record, unless that is as before; return what was read."""
        if running.looked_at_ms == updated_ms:
            return 0
        running.looked_at_ms = updated_ms
        record = self._tasks.store.get(running.task_id)
        if record is None:
            return 0
        if record.input_responses is not None:
            running.receive(_decode_members(record.input_responses))
        return record.content_bytes

    def _resume_all(self, task_ids: Iterable[str]) -> None:
        """Run the functions of tasks of this worker again, whose sessions have ended."""
        for task_id in task_ids:
            record = None if self._tasks.is_unsaved(task_id) else self._tasks.store.get(task_id)
            if record is not None and record.call is not None:
                self._run_again(record)

    def _watch(self) -> float:
        """Count a beat, and take some tasks of workers that have died; return when to look again."""
        now = self._monotonic()
        if now >= self._next_beat:
            self._beat(now)
        taken = sum(1 for _ in islice(self._taking, _MAX_TAKEN))
        return 0.0 if taken == _MAX_TAKEN else self._next_beat - now

    def _beat(self, now: float) -> None:
        tasks = self._tasks
        self._next_beat = now + tasks.limits.lease_seconds / _LEASE_BEATS
        beats = tasks.store.beat(tasks.worker)
        before, self._seen = self._seen, {}
        for worker, count in beats.items():
            last, missed = before.get(worker, (-1, 0))
            self._seen[worker] = count, missed + 1 if last == count else 0
        dead = [
            worker
            for worker, (count, missed) in self._seen.items()
            if worker != tasks.worker and (count == 0 or missed >= _LEASE_BEATS)
        ]
        self._taking = chain.from_iterable(map(self._take_over, dead))

    def _take_over(self, dead: str) -> Iterator[None]:
        """Take the tasks of *dead* over, one in each step."""
        tasks = self._tasks
        if dead.rpartition(" ")[0] != tasks.view:  # only its own clients can reach the tasks of another view
            if not tasks.store.unfinished(dead):
                tasks.store.remove_worker(dead)
            return
        _LOG.warning("the worker %s of the task store has ended; its tasks are taken over", dead)
        for record in tasks.store.unfinished(dead):
            if record.task_id in tasks.running:
                continue  # a connection runs it since before this server was stopped and started again
            if tasks.totals.is_full:
                return  # the rest are taken over when there is room

            def claim(found: TaskRecord) -> TaskRecord | None:
                return msgspec.structs.replace(found, worker=tasks.worker) if found.worker == dead else None

            claimed = tasks.replace(record.task_id, claim)
            if claimed is not None:
                self._run_again(claimed)
            yield
        tasks.store.remove_worker(dead)

    def _run_again(self, record: TaskRecord) -> None:
        """Run the function of a task again, or end the task if that is not possible."""
        try:
            exchange = self._exchange(record)
        except McpgenError as failure:  # another version of the server: its tools or their arguments have changed
            _LOG.warning("task %s cannot be run again: %s", record.task_id[:8], failure)
            exchange = None
        if exchange is None or record.call is None:
            outcome = error_outcome(ErrorCode.INTERNAL_ERROR, _LOST)
            self._tasks.change(record.task_id, "failed", message=_LOST, outcome=outcome)
            return
        size = request_bytes(exchange.raw, 0, self._engine.handlers.json_costs)
        running = exchange.task = self._tasks.attach(record, self.make_task(exchange), size)
        running.attach(partial(stop_detached, exchange))
        if record.status == "input_required" and record.input_requests is None:  # at 2025-11-25, the client was asked
            self._tasks.change(record.task_id, "working", worker=self._tasks.worker)
        self.start(exchange, user=record.call.user, owner=record.owner)

    def _exchange(self, record: TaskRecord) -> Exchange | None:
        call, handlers = record.call, self._engine.handlers
        if call is None or record.revision not in handlers.served:
            return None
        handler = handlers.method_handlers(record.revision).get("tools/call")
        if handler is None:
            return None
        params = Raw(call.params)
        info = UNSET if call.info is None else Raw(call.info)
        is_stateless = record.revision in handlers.stateless_revisions
        read_params = handler.codec.params if is_stateless else handler.handshake_params
        exchange = Exchange(None, handler, read_params(params), params)
        # The session of a client of a handshake has ended, so its functions cannot be called any more.
        exchange.last_peer = client_peer(record.revision, Raw(call.capabilities if is_stateless else b"{}"), info)
        if record.input_responses is not None:
            exchange.earlier_responses = _decode_members(record.input_responses)
        return exchange if handlers.may_replay(exchange) else None


def new_worker(view: str) -> str:
    """Return a name for a worker of *view*, which no other worker has."""
    token = secrets.token_urlsafe(16)
    return f"{view} {token}" if view else token


def stop_detached(exchange: Exchange) -> None:
    """Stop the handler of *exchange*, which runs in a worker."""
    if not exchange.has_ended:
        exchange.abandon()
