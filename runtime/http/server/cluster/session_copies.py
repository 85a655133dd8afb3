"""The copies of sessions in one worker: how they are read, changed, kept alive and ended.

Theory of operation. A session is a record. The worker reads it when a request names a session of which it has no copy,
or none that can be trusted. A worker that changes the record tells all others, which read it again: at once if the
session has an open stream here, otherwise with its next request.

A record lives as long as a session may be idle. Workers renew the records of the sessions that they have served, and
tell their homes. So the home has a copy for as long as there is a record, and its limits bound the records: if the copy
of the home makes room for another session, the session ends at all workers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server.cluster.home_messages import HomeMessages
from mcpgen.runtime.http.server.cluster.shared_session import HOME, SharedHttpSession, client_of, stream_tag
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Notification, Response
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.fair_gate import requester
from mcpgen.runtime.server.cluster.worker import worker_of_id
from mcpgen.runtime.server.cluster.worker_messages import ForSession, SessionChanged, SessionsUsed
from mcpgen.runtime.server.dispatcher import take

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.cluster.shared_events import SharedEvents
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.server.cluster.worker import ClusterWorker
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["SessionCopies"]

_MAX_KEEP_SECONDS: Final = 15.0
_KEEP_AT_ONCE: Final = 1000

# Of one message, which is small with so many ids.
_TELL_AT_ONCE: Final = 250

# A record that changes while it is read is read again, so often.
_MAX_READS: Final = 3

_LOG = logging.getLogger("mcpgen.cluster")


class _Reading(Struct, eq=False):
    """A session that is being read.

    Attributes:
        readers: How many tasks read it.
        version: Rises when another worker has changed it.
    """

    readers: int = 0
    version: int = 0


class SessionCopies:
    """The copies in one worker.

    Args:
        state: The state of the application, whose table has them.
        worker: This worker.
        events: The events of its streams.
    """

    def __init__(self, state: AppState, worker: ClusterWorker, events: SharedEvents) -> None:
        self._state = state
        self._worker = worker
        self._events = events
        self._readings: dict[str, _Reading] = {}
        self._used: dict[str, None] = {}
        self._stale: set[str] = set()  # the sessions that are read because another worker has changed them
        self._silent_homes: set[int] = set()
        self._clock = state.engine.clock
        limits = state.limits
        self._keep_seconds = min(_MAX_KEEP_SECONDS, limits.idle_seconds / 4, limits.handshake_seconds / 4)
        worker.on(SessionChanged, self._changed)
        worker.on(SessionsUsed, self._used_elsewhere)
        self._messages = HomeMessages(state, worker, self)

    def new(self, session_id: str, client: Client, spawner: Spawner) -> SharedHttpSession:
        """Return a new copy, which is not in the table yet."""
        state, worker = self._state, self._worker
        copy = SharedHttpSession(
            worker,
            self._events,
            state.engine,
            spawner,
            self._events.store_for(()),
            state.limits,
            state.open_quota,
            session_id=session_id,
            streams_id=f"{state.tag(client)}.{worker.number}-{stream_tag(session_id)}-{random_id()}",
            client=client,
        )
        copy.on_unheard = self._messages.write_again
        return copy

    async def store(self, copy: SharedHttpSession) -> None:
        """Make the record of a session that was started here; end it if that fails.

        Raises:
            ClusterUnavailable: The record cannot be stored.
        """
        requester.set(copy.client.owner)
        try:
            await self._worker.wait_joined()
            copy.home = self._worker.number
            fields = copy.fields()
            await self._worker.cluster.create(self._key(copy.id), fields, self._state.limits.handshake_seconds)
        except ClusterUnavailable:
            self._state.sessions.end(copy)
            raise
        copy.settled(fields)
        copy.kept_until = self._clock() + self._state.limits.handshake_seconds
        copy.on_give_way = self._give_way

    def is_current(self, session_id: str) -> bool:
        """Return whether this worker has a copy that can be trusted, and note that it is used.

        A client sends its first requests in quick succession, so a copy without `notifications/initialized` is not.
        """
        copy, worker = self._state.sessions.peek(session_id), self._worker
        if not isinstance(copy, SharedHttpSession) or copy.generation != worker.generation or not worker.is_trusted:
            return False
        if self._clock() + self._keep_seconds >= copy.kept_until:
            return False
        self._used[session_id] = None
        return copy.session.is_initialized

    async def read(self, session_id: str) -> None:
        """Make the copy of a session what the record says; if there is no record, there is no copy either.

        Raises:
            ClusterUnavailable: The record cannot be read, or there is no room for the session.
        """
        reading = self._readings.setdefault(session_id, _Reading())
        reading.readers += 1
        fields: dict[str, bytes] = {}
        generation = -1
        try:
            for _ in range(_MAX_READS):
                version, generation = reading.version, self._worker.generation
                fields = await self._worker.cluster.read(self._key(session_id))
                if version == reading.version:
                    break
            else:
                generation = -1
        finally:
            reading.readers -= 1
            if not reading.readers:
                del self._readings[session_id]
        if fields:
            await self._apply(session_id, fields, generation)
            self._used[session_id] = None
            copy = self._state.sessions.peek(session_id)
            if isinstance(copy, SharedHttpSession) and self._clock() + self._keep_seconds >= copy.kept_until:
                await self._keep([session_id])
        else:
            self._end(session_id)

    async def _apply(self, session_id: str, fields: dict[str, bytes], generation: int) -> None:
        state = self._state
        spawner = await state.open()
        copy = state.sessions.peek(session_id)
        is_new = copy is None
        if copy is None:
            copy = self.new(session_id, client_of(fields), spawner)
        if not isinstance(copy, SharedHttpSession):
            return
        try:
            copy.apply(fields, generation)
        except RequestError as error:
            self._drop(copy, is_new=is_new)
            raise ClusterUnavailable(str(error)) from error
        peer = copy.session.peer
        if is_new and peer is not None:
            if not state.sessions.add(copy, peer):
                copy.close()
                raise ClusterUnavailable("there are too many sessions (max_sessions, max_sessions_bytes)")
            copy.on_give_way = self._give_way
            state.engine.add(copy)

    def _drop(self, copy: SharedHttpSession, *, is_new: bool) -> None:
        if is_new:
            copy.close()
        else:
            self._state.sessions.end(copy)

    async def settle(self, copy: SharedHttpSession) -> bool:
        """Store what a message has changed; return False, and end the copy, if the session has ended.

        Raises:
            ClusterUnavailable: It cannot be stored.
        """
        changes = copy.unsettled()
        if not changes:
            return True
        copy.generation = -1
        requester.set(copy.client.owner)
        announced = self._worker.announcement(SessionChanged(copy.id))
        if not await self._worker.cluster.change(self._key(copy.id), changes, announced=announced):
            self._end(copy.id)
            return False
        copy.settled(changes)
        copy.generation = -1  # another worker may have changed the record since, and the copy may have been read before
        return True

    async def move_home(self, copy: SharedHttpSession, old: int) -> None:
        """Make this worker the home of a session whose home *old* has ended, unless another worker was faster."""
        key, mine = self._key(copy.id), b"%d" % self._worker.number
        announced = self._worker.announcement(SessionChanged(copy.id))
        if await self._worker.cluster.change(key, {HOME: mine}, expected={HOME: b"%d" % old}, announced=announced):
            await self.read(copy.id)
            copy.notify_all_changes()
        else:
            await self.read(copy.id)

    async def end(self, session_id: str) -> None:
        """End a session in all workers."""
        copy = self._state.sessions.peek(session_id)
        if copy is not None:
            requester.set(copy.client.owner)
            copy.session.keeps_tasks = False
        announced = self._worker.announcement(SessionChanged(session_id, has_ended=True))
        await self._worker.cluster.remove(self._key(session_id), announced=announced)

    def _give_way(self, session: HttpSession) -> None:
        """End a copy that makes room for another one.

        That of the home ends the session in all workers, because nothing else bounds how many records clients can fill
        the cluster with.
        """
        is_home = isinstance(session, SharedHttpSession) and session.is_home
        session.session.keeps_tasks = not is_home
        self._state.sessions.end(session)
        if is_home and self._state.spawner is not None:
            self._state.spawner.start(self._end_later, session.id)

    async def _end_later(self, session_id: str) -> None:
        try:
            await self.end(session_id)
        except ClusterUnavailable as error:
            _LOG.debug("%s", error)  # the record expires by itself

    async def keep_used(self) -> None:
        """Renew the records of the sessions that are used here, until this is cancelled."""
        while True:
            await anyio.sleep(self._keep_seconds / 2)
            self._used.update((each.id, None) for each in self._state.sessions if each.is_busy)
            used, self._used = list(self._used), {}
            try:
                for start in range(0, len(used), _KEEP_AT_ONCE):
                    await self._keep(used[start : start + _KEEP_AT_ONCE])
                await self._tell_homes(used)
            except ClusterUnavailable:  # which the worker has logged
                self._used = dict.fromkeys(used) | self._used

    async def _tell_homes(self, session_ids: list[str]) -> None:
        """Tell the homes of sessions that these are used here; become the home of those whose home has ended."""
        of_homes: dict[int, list[SharedHttpSession]] = {}
        for each in session_ids:
            copy = self._state.sessions.peek(each)
            if isinstance(copy, SharedHttpSession) and not copy.is_home:
                of_homes.setdefault(copy.home, []).append(copy)
        silent: set[int] = set()
        for home, copies in of_homes.items():
            for start in range(0, len(copies), _TELL_AT_ONCE):
                told = SessionsUsed([each.id for each in copies[start : start + _TELL_AT_ONCE]])
                if not await self._worker.send(home, told) and not await self._worker.is_alive(home):
                    silent.add(home)
                    break
            # Twice in a row: after a failure of the cluster, a worker that lives may seem to have ended for a moment.
            for copy in copies if home in silent & self._silent_homes else ():
                await self.move_home(copy, home)
        self._silent_homes = silent

    def _used_elsewhere(self, used: SessionsUsed) -> None:
        """Note that sessions of which this worker is the home are used."""
        unknown: list[str] = []
        for each in used.sessions:
            copy = self._state.sessions.peek(each)
            if copy is None:
                unknown.append(each)
            else:
                self._state.sessions.find(each, copy.client.user)
        if unknown and self._state.spawner is not None:
            self._state.spawner.start(self._read_all, unknown)

    async def _keep(self, session_ids: list[str]) -> None:
        now, seconds = self._clock(), self._state.limits.idle_seconds
        await self._worker.cluster.keep([self._key(each) for each in session_ids], seconds)
        for each in session_ids:
            copy = self._state.sessions.peek(each)
            if isinstance(copy, SharedHttpSession):
                copy.kept_until = now + seconds

    def read_again_soon(self) -> None:
        """Read all copies with an open stream again, because messages may have been lost."""
        spawner = self._state.spawner
        listening = [each.id for each in self._state.sessions if each.get_stream.response is not None]
        if spawner is not None and listening:
            spawner.start(self._read_all, listening)

    async def _read_all(self, session_ids: list[str]) -> None:
        for each in session_ids:
            try:
                await self.read(each)
            except ClusterUnavailable:
                return  # when it can be reached again, this starts anew

    def message_arrived(self, message: ForSession) -> None:
        """Act on a client's answer to a request of this worker, or on a cancellation, that arrived at another one."""
        copy = self._state.sessions.peek(message.session)
        if copy is None or copy.client.user != message.user or message.worker == self._worker.number:
            return
        limits = self._state.engine.limits
        found = envelope.decode(message.body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
        for each in found.items if isinstance(found, Batch) else (found,):
            is_answer = isinstance(each, Response | ErrorResponse) and worker_of_id(each.id) == self._worker.number
            is_answer |= isinstance(each, Malformed) and each.is_answer and each.id in copy.session.server_requests
            if is_answer or (isinstance(each, Notification) and each.method == "notifications/cancelled"):
                take(copy.session, each)

    def change_returned(self, method: str, uri: str | None) -> None:
        """Note that all workers know of a change that this worker has made.

        A client that subscribed at another worker just before that is known only now.
        """
        for each in self._state.sessions:
            if isinstance(each, SharedHttpSession):
                each.note_missed(method, uri)

    def _changed(self, change: SessionChanged) -> None:
        reading = self._readings.get(change.session)
        if reading is not None:
            reading.version += 1
        if change.has_ended:
            self._end(change.session)
            return
        copy = self._state.sessions.peek(change.session)
        if not isinstance(copy, SharedHttpSession):
            return
        copy.generation = -1
        if (copy.is_home or copy.is_busy or copy.get_stream.response is not None) and self._state.spawner is not None:
            copy.missed = copy.missed or {}
            if copy.id not in self._stale:
                self._stale.add(copy.id)
                self._state.spawner.start(self._read_changed, copy)

    async def _read_changed(self, copy: SharedHttpSession) -> None:
        """Read a session until no other worker has changed it meanwhile: one that changes often is read once at a time.

        Its client may change it thousands of times a second, and what this worker reads for itself has to go on.
        """
        requester.set(copy.client.owner)
        try:
            while copy.generation == -1 and self._state.sessions.peek(copy.id) is copy:
                await self.read(copy.id)
        except ClusterUnavailable as error:
            _LOG.debug("%s", error)  # when the cluster can be reached again, all are read anew
        finally:
            self._stale.discard(copy.id)

    def _end(self, session_id: str) -> None:
        copy = self._state.sessions.peek(session_id)
        if copy is not None:
            copy.session.keeps_tasks = False  # not only the copy ends
            self._state.sessions.end(copy)

    def _key(self, session_id: str) -> str:
        return self._worker.key(f"session:{session_id}")
