"""The client in the types of the newest revision, with a method for each request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, cast, overload

from msgspec import UnsetType

from mcpgen.runtime.client.base_client import BaseClient
from mcpgen.runtime.client.tool_results import ToolResult, as_tool_result, check_type, value_as
from mcpgen.runtime.errors import InvalidPayload, UnsupportedByPeer, UsageError
from mcpgen.runtime.limits import MAX_CURSOR_CHARS
from mcpgen.runtime.protocol.argument_checks import check_required_texts
from mcpgen.runtime.protocol.newest import ClientMethods, models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcpgen.runtime.client.outgoing_requests import CallOptions
    from mcpgen.runtime.client.task_handle import TaskHandle

__all__ = ["Client"]

T = TypeVar("T")

_MAPPINGS: Final = (dict, Mapping)  # in this order: to ask the abstract class takes ten times as long
_LOG: Final = logging.getLogger("mcpgen.session")


_LISTS: Final = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resource_templates": "resources/templates/list",
}


class Client(BaseClient):
    """A connection to a server. Its methods use the types of the newest revision. `connect` makes it.

    Every request may raise:

    * `RequestRefused`: the server answered with an error;
    * `RequestTimedOut`: the server did not answer in time;
    * `RequestLost`: the request or its answer was lost; over HTTP, the subclasses `ServerUnreachable` and `HttpRefused`
      say more;
    * `TransportClosed`: the connection is closed; its subclass `ServerExited` has the exit status of the server's
      process;
    * `UnsupportedByPeer`: the server's revision has no such request, or the server has not declared the capability for
      it; nothing was sent;
    * `AdaptationError`: the server's revision cannot express the params; nothing was sent;
    * `InvalidPayload`: the result is invalid;
    * `MalformedFrame`: the answer is not a message.

    Every request takes three options. ``timeout_seconds`` is the time limit. ``on_progress`` is a function that is
    called with each progress notification. ``meta`` is additional `_meta`.
    `mcpgen.runtime.client.outgoing_requests.CallOptions` describes them.
    """

    @property
    def methods(self) -> ClientMethods:
        """The generated ``ClientMethods`` of the newest revision, with a method for each request.

        The params are those of the schema. Each request needs `_meta` in them: pass ``meta=client.meta``.
        """
        return ClientMethods(self)

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> T: ...
    @overload
    async def call_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, *, returns: Any, **options: Unpack[CallOptions]
    ) -> Any: ...
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool. If the server requires input first, the client's handlers answer.

        Args:
            name: The name of the tool.
            arguments: The arguments.
            returns: The type of the tool's value: a Struct, dataclass, TypedDict, pydantic model, list, union and so
                on. The value is validated, and returned instead of the result.
            **options: The options of every request.

        Raises:
            ToolFailed: The tool reported that it failed. Raised only with ``returns``; otherwise the result has
                ``is_error``.
            UnexpectedResult: The value is not of the type ``returns``.
            InvalidStructuredContent: The structured content does not match the tool's output schema. It is checked if
                `connect` was called with ``structured="strict"``.

        Spec:
            2026-07-28, server/tools, "Calling Tools".
        """
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = _mapping(arguments)
        if returns is not None:
            check_type(returns)
        tasks = self._engine.tool_tasks
        found = await (
            self._engine.call("tools/call", params, **options) if tasks is None else tasks.call(params, options)
        )
        result = as_tool_result(found)
        if returns is None:
            return result
        return value_as(name, result, returns, max_values=self._engine.session.limits.max_values)

    async def start_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, **options: Unpack[CallOptions]
    ) -> TaskHandle:
        """Start a tool as a task, and return a handle, which gives the result now or later.

        A server of 2025-11-25 runs a tool as a task if the tool allows it, and a server of 2026-07-28 if it decides so
        and `connect` was called with ``tasks=True``. Any other call is finished when this returns.

        Args:
            name: The name of the tool.
            arguments: The arguments.
            **options: The options of every request; ``timeout_seconds`` limits the start.
        """
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = _mapping(arguments)
        tasks = self._engine.tool_tasks
        if tasks is None:
            from mcpgen.runtime.client.tool_tasks import finished_tool  # noqa: PLC0415 (few servers have tasks)

            finished = await self._engine.call("tools/call", params, **options)
            return finished_tool(self._engine, name, finished)
        return await tasks.start_handle(params, options)

    def task(self, task_id: str) -> TaskHandle:
        """Return the handle of a task that was started before, also by another client.

        The task has to belong to the same user. A server of 2025-11-25 without users finds it in the same session only.

        Raises:
            UnsupportedByPeer: The server runs no tools as tasks, or `connect` was called without ``tasks=True``.
            UsageError: *task_id* is not a string, or empty.
        """
        check_required_texts(task_id=task_id)
        if not task_id:
            problem = "`task_id` is empty: the server ran the tool without a task"
            raise UsageError(f"{problem}; use the handle that `start_tool` returned")
        tasks = self._engine.tool_tasks
        if tasks is None:
            reason = "the server runs no tools as tasks"
            if self._engine.server.era == "stateless":
                reason += ", or connect() was called without tasks=True"
            elif self.revision != "2025-11-25":
                reason = f"{self.revision} has no tasks"
            raise UnsupportedByPeer(revision=self.revision, what="tasks/get", reason=reason, peer="server")
        return tasks.handle(task_id)

    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> models.ReadResourceResult:
        """Return the contents of a resource."""
        result: models.ReadResourceResult = await self._engine.call("resources/read", {"uri": uri}, **options)
        return result

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> models.GetPromptResult:
        """Return the messages of a prompt."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = texts = _mapping(arguments)
            for key, each in texts.items():
                if not isinstance(each, str):
                    raise UsageError(
                        f"`arguments[{key!r}]` must be a string, not {each!r}; arguments of prompts are text"
                    )
        result: models.GetPromptResult = await self._engine.call("prompts/get", params, **options)
        return result

    async def complete(
        self,
        ref: models.PromptReference | models.ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> models.CompleteResultCompletion:
        """Return suggestions for the value of an argument.

        Args:
            ref: The prompt or resource template that has the argument.
            argument: The name of the argument.
            value: The beginning of the value: the text that the user has entered so far.
            context: The values of other arguments, by name.
            **options: The options of every request.

        Raises:
            UsageError: An argument has the wrong type.
        """
        if not isinstance(cast("object", ref), (models.PromptReference, models.ResourceTemplateReference)):
            raise UsageError(
                f"`ref` must be a PromptReference(name=…) or a ResourceTemplateReference(uri=…), not {ref!r}; both are "
                f"in {models.__name__.rpartition('.')[0]}"
            )
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context is not None:
            if not isinstance(cast("object", context), Mapping):
                raise UsageError(f"`context` must be a mapping, such as {{'name': 'value'}}, not {context!r}")
            params["context"] = {"arguments": dict(context)}
        result: models.CompleteResult = await self._engine.call("completion/complete", params, **options)
        return result.completion

    async def list_tools(
        self, cursor: str | UnsetType | None = None, **options: Unpack[CallOptions]
    ) -> models.ListToolsResult:
        """Return one page of the tools: the first page, or the page at *cursor*.

        *cursor* is the ``next_cursor`` of the page before. None and ``UNSET`` mean the first page.
        """
        result: models.ListToolsResult = await self._page("tools/list", cursor, options)
        return result

    async def list_prompts(
        self, cursor: str | UnsetType | None = None, **options: Unpack[CallOptions]
    ) -> models.ListPromptsResult:
        """Return one page of the prompts."""
        result: models.ListPromptsResult = await self._page("prompts/list", cursor, options)
        return result

    async def list_resources(
        self, cursor: str | UnsetType | None = None, **options: Unpack[CallOptions]
    ) -> models.ListResourcesResult:
        """Return one page of the resources."""
        result: models.ListResourcesResult = await self._page("resources/list", cursor, options)
        return result

    async def list_resource_templates(
        self, cursor: str | UnsetType | None = None, **options: Unpack[CallOptions]
    ) -> models.ListResourceTemplatesResult:
        """Return one page of the resource templates."""
        result: models.ListResourceTemplatesResult = await self._page("resources/templates/list", cursor, options)
        return result

    def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Tool]:
        """Iterate over all tools. A page is requested when the iteration reaches it."""
        return self._items("tools", options)

    def prompts(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Prompt]:
        """Iterate over all prompts."""
        return self._items("prompts", options)

    def resources(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Resource]:
        """Iterate over all resources."""
        return self._items("resources", options)

    def resource_templates(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.ResourceTemplate]:
        """Iterate over all resource templates."""
        return self._items("resource_templates", options)

    async def _page(
        self, method: str, cursor: str | UnsetType | None, options: Mapping[str, Any], sizes: list[int] | None = None
    ) -> Any:
        params = {} if cursor is None or isinstance(cursor, UnsetType) else {"cursor": cursor}
        return await self._engine.call(method, params, sizes=sizes, **options)

    async def _items(self, name: str, options: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Iterate over the items of all pages of the list *name*, up to ``max_pages`` and ``max_items``.

        Spec:
            2026-07-28, server/utilities/pagination, "Implementation Guidelines": only an absent or null cursor ends a
            list; nothing else follows from its value. So a cursor that comes again is no error.

        Raises:
            InvalidPayload: The pages are too large together, or a cursor is too long; or the list goes beyond these
                limits, and the client is strict. Otherwise it is cut, and the log says so.
        """
        limits = self._engine.session.limits
        sizes: list[int] = []
        cursor: str | None = None
        count = 0
        for _ in range(limits.max_pages):
            page = await self._page(_LISTS[name], cursor, options, sizes)
            if sum(sizes) > limits.max_list_bytes:
                reason = f"its pages take more than {limits.max_list_bytes} bytes of memory (max_list_bytes)"
                raise self._endless(name, reason)
            items = getattr(page, name)
            for each in items[: limits.max_items - count]:
                yield each
            count += len(items)
            following: str | UnsetType = page.next_cursor
            if count > limits.max_items or (count == limits.max_items and isinstance(following, str)):
                break
            if isinstance(following, UnsetType):
                return
            if len(following) > MAX_CURSOR_CHARS:
                raise self._endless(name, f"its `nextCursor` has more than {MAX_CURSOR_CHARS:,} characters")
            cursor = following
            del page, items  # they can have megabytes, and the next page may never come
        reason = f"it has more than {limits.max_pages} pages (`max_pages`) or {limits.max_items} items (`max_items`)"
        if self._engine.session.reading.is_strict:
            raise self._endless(name, reason)
        _LOG.warning("the list of %s is cut: %s", name, reason)

    def _endless(self, name: str, reason: str) -> InvalidPayload:
        what = f"the list of {name}"
        return InvalidPayload(revision=self.revision, pointer="/nextCursor", what=what, reason=reason, is_refused=True)


def _mapping(arguments: object) -> dict[str, Any]:
    if not isinstance(arguments, _MAPPINGS):
        raise UsageError(f"`arguments` must be a mapping, such as {{'name': 'value'}}, not {arguments!r}")
    return dict(cast("Mapping[str, Any]", arguments))
