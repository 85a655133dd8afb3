"""The tasks of a server's sessions: the tool calls that become tasks, and the methods ``tasks/*``.

Only a server whose native revision has tasks offers them, and only to peers of that revision.

Spec:
    2025-11-25, basic/utilities/tasks, "Capabilities", "Tool-Level Negotiation", "Task Support and Handling".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import REVISION, ErrorCode
from mcpgen.runtime.errors import RequestError, UnsupportedByPeer, UsageError
from mcpgen.runtime.server import notifications
from mcpgen.runtime.server.exchange import ResponseBody

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.server.exchange import Exchange, MethodHandler, OpenRequest
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.tasks.lifecycle import Tasks
    from mcpgen.runtime.server.tasks.running_task import RunningTask
    from mcpgen.runtime.server.tasks.task_store import Outcome

__all__ = ["TaskRequests", "TaskSupport", "runs_as_task"]

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]


def runs_as_task(support: TaskSupport, *, is_asked: bool, is_offered: bool) -> bool:
    """Return whether a ``tools/call`` runs as a task.

    Args:
        support: ``execution.taskSupport`` of the tool.
        is_asked: Whether the request has ``task``.
        is_offered: Whether the server declares ``tasks.requests.tools.call`` to this client. If not, ``task`` is
            ignored, and a tool that requires it is called like any other.

    Raises:
        RequestError: The tool does not support tasks, or requires one.
    """
    if not is_offered:
        return False
    if is_asked and support == "forbidden":
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool cannot run as a task; call it without the `task` parameter"
        )
    if support == "required" and not is_asked:
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool runs only as a task; add the `task` parameter to the call"
        )
    return is_asked


class TaskRequests:
    """The tasks of one server, for its sessions.

    Args:
        tasks: The tasks.
        support: Returns whether the tool of a name may, must or must not be a task.
        clock: That of the tasks.

    Attributes:
        methods: What answers each method: called with session, request and params.
    """

    def __init__(self, tasks: Tasks, support: Callable[[str], TaskSupport], *, clock: Callable[[], float]) -> None:
        self._tasks = tasks
        self._support = support
        self._clock = clock
        self.methods: Mapping[str, Callable[[ServerSession, OpenRequest, Any], None]] = {
            "tasks/cancel": self._cancel,
            "tasks/get": self._get,
            "tasks/list": self._list,
            "tasks/result": self._result,
        }

    @property
    def capabilities(self) -> dict[str, object]:
        """What the server declares. Each connection is a principal of its own, so tasks can be listed."""
        tools = models.ServerCapabilitiesTasksRequestsTools(call={})
        requests = models.ServerCapabilitiesTasksRequests(tools=tools)
        return {"tasks": msgspec.to_builtins(models.ServerCapabilitiesTasks(cancel={}, list_={}, requests=requests))}

    def becomes_task(self, request: OpenRequest, handler: MethodHandler, params: Any) -> bool:
        """Whether a request is to be run as a task.

        Raises:
            RequestError: The tool cannot be a task, or must be one.
        """
        if handler.method != "tools/call":
            return False
        is_offered = request.peer.revision == REVISION  # every other revision has no tasks
        support = self._support(params.name)
        if support not in ("forbidden", "optional", "required"):
            raise UsageError(
                f"task_support({params.name!r}) returned {support!r}; it must return forbidden, optional or required"
            )
        return runs_as_task(support, is_asked=params.task is not UNSET, is_offered=is_offered)

    def create(self, session: ServerSession, exchange: Exchange, request: OpenRequest) -> None:
        """Run a request as a task, and answer it with the task.

        Raises:
            RequestError: There is no room for another task.
        """

        def run(running: RunningTask) -> Callable[[], None]:
            exchange.task = running
            return lambda: session.stop(exchange)

        def changed(status: models.TaskStatusNotificationParams) -> None:
            if not session.is_closed:
                try:
                    notifications.send_notification(session, None, "notifications/tasks/status", status, terms=REVISION)
                except UnsupportedByPeer:
                    return  # a requestor must not rely on this notification

        result = self._tasks.create(exchange.params, run, principal=session.principal, changed=changed)
        session.reply(request, ResponseBody(msgspec.json.encode(result)))
        session.output.expire_later()
        session.output.start(exchange)  # last, so that the client gets the task before any message about it

    def seconds_to_expiry(self) -> float | None:
        """Drop the expired tasks; return in how many seconds the next one expires."""
        expiry = self._tasks.expire()
        return None if expiry is None else expiry - self._clock()

    def forget(self, principal: str) -> None:
        """Drop the tasks of a session that has ended."""
        self._tasks.forget(principal)

    def _get(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        found = self._tasks.get(params.task_id, principal=session.principal)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _list(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        found = self._tasks.list(params.cursor, principal=session.principal)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _cancel(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        found = self._tasks.cancel(params.task_id, principal=session.principal)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _result(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        def deliver(outcome: Outcome) -> None:
            session.reply(request, ResponseBody(outcome.json, is_error=outcome.is_error))

        session.hold(request)
        try:
            request.on_cancel = self._tasks.result(params.task_id, principal=session.principal, deliver=deliver)
        except BaseException:
            session.exchanges.pop(request.id, None)
            session.release(request)
            raise
