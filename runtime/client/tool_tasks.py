"""Tools that a server runs as tasks: the client waits for a task as for a call, or takes up its result later.

Theory of operation. A server of 2026-07-28 decides whether a call becomes a task. The client asks for its state with
``tasks/get``, answers its requests with ``tasks/update``, and subscribes to its changes, so that it need not wait for
the next poll. A server of 2025-11-25 runs a call as a task if the client asks for one. It answers ``tasks/result`` when
the task has ended, and sends its requests and progress as messages of their own.

Spec:
    ext-tasks, specification/draft/tasks; 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType

from mcpgen.generated.extensions import tasks as bindings
from mcpgen.runtime.client import input_required
from mcpgen.runtime.client.declared_methods import unsupported
from mcpgen.runtime.client.extensions import check_result_type
from mcpgen.runtime.client.outgoing_requests import check_call_options, encoded_params, kept_bytes
from mcpgen.runtime.client.task_handle import StartedTool, TaskHandle
from mcpgen.runtime.client.task_state import DescribedTask, TaskCancelled, TaskWait
from mcpgen.runtime.client.task_support import TaskSupport
from mcpgen.runtime.client.task_watcher import TaskWatcher, decode_task
from mcpgen.runtime.errors import RequestLost, RequestRefused, RequestTimedOut, UnsupportedByPeer
from mcpgen.runtime.limits import MAX_CURSOR_CHARS, MAX_ID_CHARS
from mcpgen.runtime.protocol.capabilities import has_capability
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.client.engine import ClientEngine
    from mcpgen.runtime.client.outgoing_requests import CallOptions, OnProgress
    from mcpgen.runtime.protocol.capabilities import ServerPeer

__all__ = ["ToolTasks", "finished_tool", "tool_tasks"]

T = TypeVar("T")

_CALL: Final = "tools/call"
_TASKS_REVISION: Final = "2025-11-25"

_BACKSTOP_SECONDS: Final = 30.0  # between questions while a subscription is open: a notification may be dropped
_MAX_REFUSAL_BYTES: Final = 16 * 1024  # of one that is kept while the state is asked for: others can have megabytes
_ACKNOWLEDGE_SECONDS: Final = 5.0  # a server that takes longer to acknowledge the subscription is polled


class _Created(Struct):
    task: DescribedTask


class _TaskError(Struct):
    code: int
    message: str


_decode_error: Final = msgspec.json.Decoder(_TaskError).decode
_decode_created: Final = msgspec.json.Decoder(_Created).decode


class ToolTasks:
    """The tasks of one client's server.

    Args:
        engine: The client at work.
        watcher: Gets the notifications of the extension; None if the client has not declared the extension.
    """

    def __init__(self, engine: ClientEngine, watcher: TaskWatcher | None) -> None:
        self._engine = engine
        self._session = engine.session
        self._watcher = watcher
        self._support = TaskSupport()  # of a server of 2025-11-25
        if watcher is not None:
            watcher.wait = self._wait_for_call

    @property
    def max_values(self) -> int:
        """The most values of a text that is read as a value."""
        return self._session.limits.max_values

    async def call(self, params: dict[str, Any], options: CallOptions) -> Any:
        """Return the result of a tool, and wait for its task if it becomes one.

        If the call takes too long or is cancelled, the task is cancelled.
        """
        on_progress, seconds, _ = check_call_options(options)
        clock = self._engine.connection.deadlines
        began = clock.now()
        if not self._session.is_stateless and await self._support_of(params["name"], seconds) != "required":
            return await self._engine.call(_CALL, params, **options)
        task = await self.start(params, options)
        if task.result is not None:
            return task.result
        return await self.wait_as_call(task, on_progress, seconds, clock.now() - began)

    async def call_raw(self, params: dict[str, Any]) -> Any:
        """Return the result of a call with generated methods, of a server of 2025-11-25.

        Raises:
            UnsupportedByPeer: The call is to become a task, but the tool does not run as one.

        Spec:
            2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation".
        """
        if "task" not in params:
            return await self.call(params, {})
        if await self._support_of(params["name"]) == "forbidden":
            reason = f"the tool {params['name']!r} does not run as a task; call it without `task`"
            raise unsupported(self._engine.server, _CALL, reason)
        return await self._engine.call(_CALL, params)

    async def start(self, params: dict[str, Any], options: CallOptions) -> StartedTool:
        """Start a tool as a task, if the server runs it as one; otherwise return its result.

        Raises:
            UsageError: The params are not valid.

        Spec:
            2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation".
        """
        engine, tool = self._engine, str(params["name"])
        if engine.server.revision != _TASKS_REVISION:
            found = await engine.call(_CALL, params, keeps_tasks=True, **options)
            is_task = isinstance(found, bindings.CreateTaskResult)
            return self.started(tool, found.task_id) if is_task else StartedTool(tool, result=found)
        on_progress, seconds, meta = check_call_options(options)
        if await self._support_of(tool, seconds) == "forbidden":
            return StartedTool(tool, result=await engine.call(_CALL, params, **options))
        token = None if on_progress is None else self._session.next_token()
        more = {**(meta or {}), **({} if token is None else {"progressToken": token})}
        # Only 2025-11-25 has `task`, so the params are sent as they are. Without it they are those of any call.
        ask = codec(engine.native_revision, _TASKS_REVISION, "client").outgoing_request(_CALL)
        encoded_params(ask, {**params, "_meta": {**more, **engine.native_meta}}, None)
        value = {**params, "task": {}, **({"_meta": more} if more else {})}
        raw = await engine.ask_json(_CALL, value, is_task=True, timeout_seconds=seconds)
        created = self._decode(_decode_created, raw, _CALL).task
        return self.started(tool, created.task_id, token)

    def started(self, tool: str, task_id: str, token: int | None = None) -> StartedTool:
        """Return a tool that runs as a task.

        Raises:
            InvalidPayload: The id of the task is too long: each request about the task repeats it.
        """
        if len(task_id) > MAX_ID_CHARS:
            reason = f"the id of the task has more than {MAX_ID_CHARS} characters"
            raise input_required.refused_result(self._session, _CALL, reason)
        return StartedTool(tool, task_id, token)

    async def start_handle(self, params: dict[str, Any], options: CallOptions) -> TaskHandle:
        """Start a tool, and return its handle."""
        return TaskHandle(self, await self.start(params, options))

    def handle(self, task_id: str) -> TaskHandle:
        """Return the handle of a task that was started before."""
        return TaskHandle(self, StartedTool("", task_id))

    async def get(self, task_id: str) -> DescribedTask:
        """Return a task."""
        return self._decode(decode_task, await self._ask("tasks/get", {"taskId": task_id}), "tasks/get")

    async def cancel(self, task_id: str) -> None:
        """Cancel a task, unless it has ended.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Cancellation": one that has ended is refused with -32602.
        """
        try:
            await self._ask("tasks/cancel", {"taskId": task_id})
        except RequestRefused as refused:
            if self._session.is_stateless or refused.code != ErrorCode.INVALID_PARAMS:
                raise
        else:
            return
        await self.get(task_id)  # refused, too, if there is no such task

    async def wait_as_call(
        self, task: StartedTool, on_progress: OnProgress | None, seconds: float | None, used_seconds: float = 0.0
    ) -> Any:
        """Wait for a task with the time limits of a call, and cancel it if the wait ends before."""
        try:
            seconds = self._session.limits.call_seconds if seconds is None else seconds
            return await self.wait(task, on_progress, seconds, used_seconds)
        except (RequestRefused, TaskCancelled):
            raise
        except BaseException:
            # The response is not awaited: this task may be cancelled, and the server may be slow.
            self._session.cancel_task(self._engine.json_params({"taskId": task.task_id}))
            raise

    async def _wait_for_call(self, task_id: str) -> Any:
        return await self.wait_as_call(self.started("", task_id), None, None)

    async def wait(
        self, task: StartedTool, on_progress: OnProgress | None, seconds: float | None, used_seconds: float = 0.0
    ) -> Any:
        """Wait for a task, and return the result of its tool.

        Raises:
            TaskCancelled: The task was cancelled.
            RequestRefused: The task has failed with an error, or there is no such task.
            RequestTimedOut: The time limit is over.
        """
        if self._session.is_stateless:
            wait = TaskWait(seconds, self._session.limits.max_call_seconds, on_progress, used_seconds)
            return await self._watch(task.task_id, task.tool, wait)
        try:
            raw = await self._ask(
                "tasks/result",
                {"taskId": task.task_id},
                on_progress=on_progress,
                token=task.token,
                timeout_seconds=float("inf") if seconds is None else seconds,
                used_seconds=used_seconds,
            )
        except RequestRefused as refused:
            if kept_bytes(refused) > _MAX_REFUSAL_BYTES:
                raise
            found = await self.get(task.task_id)
            if found.status == "cancelled":
                raise TaskCancelled(task.task_id, found.state.message or "") from None
            raise
        return await self._engine.read_tool_result(raw, task.tool)

    async def _watch(self, task_id: str, tool: str, wait: TaskWait) -> Any:
        async with AsyncExitStack() as stack:
            changes = await self._subscribe(task_id, wait, stack)
            while True:
                with self._engine.connection.deadlines.limit(wait.request_seconds()):
                    wait.found = wait.found or await self.get(task_id)
                found, wait.found = wait.found, None
                if found is None:
                    wait.left_seconds()  # or it raises
                    continue
                await wait.report(found)
                if found.state.has_ended:
                    return await self._outcome(found, tool)
                new, seconds = wait.unanswered(found), found.poll_seconds
                del found  # it can have megabytes
                if new:
                    await self._answer(task_id, new, wait)
                    wait.left_seconds()  # or it raises
                    continue
                is_told = changes is not None and not changes.is_closed
                await wait.sleep(_BACKSTOP_SECONDS if is_told else seconds)

    async def _subscribe(self, task_id: str, wait: TaskWait, stack: AsyncExitStack) -> Any:
        """Listen for the changes of a task until *stack* is closed; return None if the server does not report them."""
        if self._watcher is None:
            return None
        with suppress(RequestRefused, RequestTimedOut, RequestLost, UnsupportedByPeer):  # a lost server fails the poll
            wanted = bindings.SubscriptionFilter(task_ids=[task_id])
            # When the stream ends, `_watch` has to poll; if the connection has ended, the poll raises the reason.
            listen = self._engine.listen(SubscriptionFilter(), [wanted])
            listen.event = wait.event
            with self._engine.connection.deadlines.limit(min(_ACKNOWLEDGE_SECONDS, wait.request_seconds())):
                changes = await stack.enter_async_context(listen)
                accepted = changes.accepted.get("taskIds")
                if isinstance(accepted, list) and task_id in accepted:
                    self._watcher.waits.setdefault(task_id, []).append(wait)
                    stack.callback(self._leave, task_id, wait)
                    return changes
        return None

    def _leave(self, task_id: str, wait: TaskWait) -> None:
        if self._watcher is not None:
            waits = self._watcher.waits[task_id]
            waits.remove(wait)
            if not waits:
                del self._watcher.waits[task_id]

    async def _answer(self, task_id: str, new: dict[str, Raw], wait: TaskWait) -> None:
        """Answer the requests of a task that have not been answered yet, and remove them from *new*.

        Spec:
            ext-tasks, "Task Update Requests": as the equivalent standalone requests, and each once.
        """
        if wait.rounds >= self._session.limits.max_rounds:
            raise input_required.too_many_rounds(self._session, _CALL)
        wait.rounds += 1
        wait.answered.update(map(hash, new))
        since = time.monotonic()
        required = input_required.as_input_required(new)
        if required is None:
            reason = "`inputRequests` has a value that is not a request"
            raise input_required.invalid_result(self._session, "tasks/get", reason)
        responses = await input_required.collect_input(self._session, _CALL, required, self._engine.connection.context)
        wait.pause(since)
        params = {"taskId": task_id, "inputResponses": Raw(msgspec.json.encode(responses))}
        new.clear()  # the keys can have megabytes, and the answer to the update may never come
        del required, responses
        with self._engine.connection.deadlines.limit(wait.request_seconds()):
            await self._ask("tasks/update", params)

    async def _outcome(self, found: DescribedTask, tool: str) -> Any:
        if found.status == "cancelled":
            raise TaskCancelled(found.task_id, found.state.message or "")
        if not isinstance(found.result, UnsetType):
            raw = found.result
            check_result_type(raw, _CALL, self._engine.server)
            if self._session.is_stateless:
                raw = input_required.with_result_type(raw)
            return await self._engine.read_tool_result(raw, tool)
        raw = Raw(b'{"code":-32603,"message":"the task failed"}') if isinstance(found.error, UnsetType) else found.error
        error = self._decode(_decode_error, raw, "tasks/get")
        raise RequestRefused(_CALL, self._engine.tool_error(ErrorResponse(None, error.code, error.message, raw)))

    async def _ask(self, method: str, params: Mapping[str, Any], **options: Any) -> Raw:
        """Return the result of a request; *options* are others of `OutgoingRequest`."""
        if not self._session.is_stateless:
            self._engine.declared.require(method)
        raw = await self._engine.ask_json(method, params, **options)
        # The result of `tasks/get` must be complete, but the examples in "Task Execution Errors" have `task`.
        check_result_type(raw, method, self._engine.server, *(("task",) if method == "tasks/get" else ()))
        return raw

    async def _support_of(self, tool: str, seconds: float | None = None) -> str:
        """Return ``execution.taskSupport`` of a tool of a server of 2025-11-25.

        Args:
            tool: The name of the tool.
            seconds: The time limit of the call, which holds for the list of tools, too; None for the client's limits.

        Raises:
            RequestTimedOut: The server does not list its tools in time.
        """
        if not self._support.knows(tool):
            if seconds is None or not seconds > 0:  # the request itself refuses a wrong one
                seconds = self._session.limits.max_call_seconds
            with self._engine.connection.deadlines.limit(seconds) as scope:
                await self._list_tools()
                if not self._support.knows(tool):  # the tools may have changed while they were listed
                    await self._list_tools()
            if scope.cancelled_caught:
                raise RequestTimedOut("tools/list", seconds)
        return self._support.of(tool)

    async def _list_tools(self) -> None:
        """Learn all pages of the list, up to the limits of lists."""
        limits, support, size = self._session.limits, self._support, 0
        cursor: str | None = None
        for _ in range(limits.max_pages):
            page = await self._ask("tools/list", {} if cursor is None else {"cursor": cursor})  # which calls `learn`
            cursor = support.cursor
            size += len(memoryview(page))
            del page  # it can have megabytes, and the next one may never come
            is_long = cursor is not None and len(cursor) > MAX_CURSOR_CHARS
            if cursor is None or is_long or support.count >= limits.max_items or size > limits.max_list_bytes:
                break
        support.has_all = True

    def learn(self, page: Raw, *, is_first_page: bool) -> None:
        """Store which tools of a page of `tools/list` run as tasks; a first page begins a new listing."""
        if self._engine.server.revision != _TASKS_REVISION:
            return
        if is_first_page:
            self.forget()
            self._support.is_current = not self._session.tools_are_old  # the report may be read before this page
        self._support.learn(page)

    def _decode(self, decode: Callable[[Raw], T], raw: Raw, method: str) -> T:
        try:
            return decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise input_required.invalid_result(self._session, method, str(error)[:500]) from None

    def forget(self) -> None:
        """Forget which tools run as tasks: the server has reported that its list of tools has changed."""
        self._support.forget()


def finished_tool(engine: ClientEngine, tool: str, result: Any) -> TaskHandle:
    """Return the handle of a tool that the server has run as a plain call."""
    return TaskHandle(ToolTasks(engine, None), StartedTool(tool, result=result))


def tool_tasks(engine: ClientEngine, server: ServerPeer) -> ToolTasks | None:
    """Return the tasks of a server; None if it runs no tool as a task, or the client cannot take tasks."""
    watcher = next(
        (
            each.extension.handlers
            for each in engine.session.features.extensions
            if each.is_agreed(server) and isinstance(each.extension.handlers, TaskWatcher)
        ),
        None,
    )
    runs_tools = has_capability(server.declared, ("tasks", "requests", "tools", "call"))
    has_tasks = runs_tools and server.revision == _TASKS_REVISION
    return ToolTasks(engine, watcher) if watcher is not None or has_tasks else None
