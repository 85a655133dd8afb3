"""Where tasks meet the engine: a tool call becomes one, and the requests about it are answered.

Only servers whose home has tasks offer them, to peers of the same revision: no other can express them.

Spec:
    2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpgen.runtime.errors import UnsupportedByPeer, UsageError
from mcpgen.runtime.server import notifications
from mcpgen.runtime.server.exchange import Body, Exchange
from mcpgen.runtime.server.tasks.task_support import runs_as_task, task_capabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.generated.v2025_11_25 import models
    from mcpgen.runtime.server.exchange import Entry, Origin
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.tasks.lifecycle import Tasks
    from mcpgen.runtime.server.tasks.running_task import RunningTask
    from mcpgen.runtime.server.tasks.task_store import Outcome
    from mcpgen.runtime.server.tasks.task_support import TaskSupport

__all__ = ["TaskRequests"]


class TaskRequests:
    """The tasks of one server, for its sessions.

    Args:
        tasks: The tasks.
        support: Says of a tool whether it may be one.
    """

    def __init__(self, tasks: Tasks, support: Callable[[str], TaskSupport]) -> None:
        self._tasks = tasks
        self._support = support
        self.answers: dict[str, Callable[[ServerSession, Origin, Any], None]] = {
            "tasks/cancel": self._cancel,
            "tasks/get": self._get,
            "tasks/list": self._list,
            "tasks/result": self._result,
        }

    @property
    def capabilities(self) -> dict[str, object]:
        """What the server declares; each connection is a principal of its own, so that tasks can be listed."""
        declared: dict[str, object] = msgspec.to_builtins(task_capabilities(is_identified=True))
        return declared

    def becomes_task(self, session: ServerSession, origin: Origin, entry: Entry, params: Any) -> bool:
        """Whether a request is to be run as a task.

        Raises:
            RequestError: The tool cannot be a task, or nothing else.
        """
        if entry.method != "tools/call":
            return False
        is_offered = "tasks" in session.service.capabilities(origin.peer.revision)
        support = self._support(params.name)
        if support not in ("forbidden", "optional", "required"):
            raise UsageError(f"task_support({params.name!r}) returned {support!r}")
        return runs_as_task(support, is_asked=params.task is not UNSET, is_offered=is_offered)

    def create(self, session: ServerSession, exchange: Exchange, origin: Origin) -> None:
        """Run a request as a task, and answer it with what the client needs to come back.

        Raises:
            RequestError: There is no room for another task.
        """

        def run(running: RunningTask) -> Callable[[], None]:
            exchange.task = running
            return lambda: session.stop(exchange)

        def changed(status: models.TaskStatusNotificationParams) -> None:
            if not session.is_closed:
                try:
                    notifications.notify(
                        session, None, "notifications/tasks/status", status, terms=session.service.native_revision
                    )
                except UnsupportedByPeer:
                    return  # its requestor is gone; it must not rely on being told

        result = self._tasks.create(exchange.params, run, principal=session.principal, changed=changed)
        session.reply(origin, Body(msgspec.json.encode(result)))
        session.sink.expire_later()
        session.sink.start(exchange)  # last, so that the client knows the task before it hears of it

    def expire(self) -> float | None:
        """Drop the tasks whose time is over, and return when the next one's is, in seconds of Unix time."""
        return self._tasks.expire()

    def forget(self, principal: str) -> None:
        """Drop the tasks of a client that has gone."""
        self._tasks.forget(principal)

    def _get(self, session: ServerSession, origin: Origin, params: Any) -> None:
        found = self._tasks.get(params.task_id, principal=session.principal)
        session.reply(origin, Body(msgspec.json.encode(found)))

    def _list(self, session: ServerSession, origin: Origin, params: Any) -> None:
        found = self._tasks.list(params.cursor, principal=session.principal)
        session.reply(origin, Body(msgspec.json.encode(found)))

    def _cancel(self, session: ServerSession, origin: Origin, params: Any) -> None:
        found = self._tasks.cancel(params.task_id, principal=session.principal)
        session.reply(origin, Body(msgspec.json.encode(found)))

    def _result(self, session: ServerSession, origin: Origin, params: Any) -> None:
        def deliver(outcome: Outcome) -> None:
            session.reply(origin, Body(outcome.json, is_error=outcome.is_error))

        session.exchanges[origin.id] = origin
        try:
            origin.on_drop = self._tasks.result(params.task_id, principal=session.principal, deliver=deliver)
        except BaseException:
            session.exchanges.pop(origin.id, None)
            raise
