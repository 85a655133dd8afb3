"""Messages for the stream of a session that its home has not taken: it has moved, or has ended, or does not listen.

Theory of operation. Such a message is sent again until another worker is known to be the home, which takes seconds if a
worker was killed. Handlers may write many messages meanwhile, so each counts as an open request of its client does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.http.server.cluster.shared_session import SharedHttpSession
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.fair_gate import requester
from mcpgen.runtime.server.cluster.worker_messages import WrittenForSession

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.cluster.session_copies import SessionCopies
    from mcpgen.runtime.server.cluster.worker import ClusterWorker

__all__ = ["HomeMessages"]

# How often, and after which time, a message is sent again: for longer than a worker that was killed seems to live.
_MAX_HOMES: Final = 10
_HOME_SECONDS: Final = 1.0

_LOG = logging.getLogger("mcpgen.cluster")


class HomeMessages:
    """The messages of one worker.

    Args:
        state: The state of the application.
        worker: This worker.
        copies: Its copies of sessions.
    """

    def __init__(self, state: AppState, worker: ClusterWorker, copies: SessionCopies) -> None:
        self._state = state
        self._worker = worker
        self._copies = copies
        worker.on(WrittenForSession, self._written)

    def _written(self, written: WrittenForSession) -> None:
        copy = self._state.sessions.peek(written.session)
        if isinstance(copy, SharedHttpSession) and copy.is_home:
            (copy.task_streams.find(written.message) or copy.get_stream).write(written.message)
        else:  # the home has moved, or moves here now
            self.write_again(written.session, written.message)

    def write_again(self, session_id: str, message: bytes) -> None:
        """Write *message* soon: at another home, or here if the home has ended."""
        if self._state.spawner is not None:
            self._state.spawner.start(self._write_counted, session_id, message)

    async def _write_counted(self, session_id: str, message: bytes) -> None:
        copy, scope = self._state.sessions.peek(session_id), anyio.CancelScope()
        owner, size = "" if copy is None else copy.client.owner, OPEN_REQUEST_BYTES + len(message)
        entry = self._state.open_quota.admit(owner, size, session=session_id, give_way=scope.cancel)
        is_written = False
        if entry is not None:
            requester.set(owner)
            try:
                with scope:
                    is_written = await self._write(session_id, message)
            finally:
                entry.release()
        if not is_written:
            _LOG.warning(
                "a message for the stream of a session is dropped: the worker that has the stream does not listen, or "
                "too many such messages wait"
            )

    async def _write(self, session_id: str, message: bytes) -> bool:
        """Return whether the message was written, or its session has ended."""
        for _ in range(_MAX_HOMES):
            try:
                await self._copies.read(session_id)
                copy = self._state.sessions.peek(session_id)
                if not isinstance(copy, SharedHttpSession):
                    return True
                if not copy.is_home and not await self._worker.is_alive(copy.home):
                    await self._copies.move_home(copy, copy.home)
                if copy.is_home:
                    copy.get_stream.write(message)
                    return True
                if await self._worker.send(copy.home, WrittenForSession(session_id, message)):
                    return True
            except ClusterUnavailable as error:
                _LOG.debug("%s", error)  # the worker has logged it
            await anyio.sleep(_HOME_SECONDS)
        return False
