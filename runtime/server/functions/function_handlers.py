"""What a server offers when that is functions: the handlers that list, call, read and complete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpgen.runtime.errors import RequestError, quoted
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import ServerHandlers, models
from mcpgen.runtime.server.functions.completions import empty
from mcpgen.runtime.server.functions.pagination import PAGE_SIZE
from mcpgen.runtime.server.functions.registrations import RegisteredFunctions, Registrations
from mcpgen.runtime.server.functions.resources import ReadableFunction, ResourceNotFound

if TYPE_CHECKING:
    from mcpgen.runtime.server.context import Context
    from mcpgen.runtime.server.functions.tools import Tool

__all__ = ["FunctionHandlers"]


class FunctionHandlers(Registrations, ServerHandlers["Context"]):
    """Registered functions as handlers of the newest revision.

    Args:
        page_size: How many entries one answer to a list request holds.
        offered: Functions that are registered elsewhere; by default, those that are registered here.
    """

    def __init__(self, *, page_size: int = PAGE_SIZE, offered: RegisteredFunctions | None = None) -> None:
        super().__init__(page_size=page_size)
        if offered is not None:
            self._offered = offered

    def capabilities(self) -> models.ServerCapabilities:
        """Return what the server declares now: a capability for each kind of thing that is registered.

        Lists may change and resources may be watched, since the Context can tell of either at any time; so can it log.
        """
        resources = models.ServerCapabilitiesResources(list_changed=True, subscribe=True)
        return models.ServerCapabilities(
            logging={},
            tools=models.ServerCapabilitiesTools(list_changed=True) if self._offered.tools.had_any else UNSET,
            resources=resources if self._offered.resources.had_any or self._offered.templates.had_any else UNSET,
            prompts=models.ServerCapabilitiesPrompts(list_changed=True) if self._offered.prompts.had_any else UNSET,
            completions={} if self._offered.completes else UNSET,
        )

    def fast_tool(self, name: str) -> Tool | None:
        """Return the tool *name*, for `mcpgen.runtime.server.fast_path`."""
        return self._offered.tools.entries.get(name)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the schema of a tool's arguments, some of which HTTP repeats in headers."""
        tool = self._offered.tools.entries.get(name)
        return None if tool is None else tool.definition.input_schema

    def may_replay(self, method: str, params: object) -> bool:
        """Whether the function that a request is for was registered with ``replay=True``."""
        match method, params:
            case "tools/call", models.CallToolRequestParams(name=name):
                tool = self._offered.tools.entries.get(name)
                return tool is not None and tool.replay
            case "prompts/get", models.GetPromptRequestParams(name=name):
                prompt = self._offered.prompts.entries.get(name)
                return prompt is not None and prompt.replay
            case "resources/read", models.ReadResourceRequestParams(uri=uri):
                found = self._reading(uri)
                return found is not None and found[0].replay
            case _:
                return False

    async def list_tools(self, params: models.PaginatedRequestParams, context: Context, /) -> models.ListToolsResult:  # noqa: ARG002 (all lists are the same for everybody)
        """List the tools."""
        shown, following = self._offered.tools.page(params.cursor)
        return models.ListToolsResult(tools=[each.definition for each in shown], next_cursor=following)

    async def call_tool(
        self, params: models.CallToolRequestParams, context: Context, /
    ) -> models.CallToolResult | models.InputRequiredResult:
        """Run a tool.

        Raises:
            RequestError: There is no such tool. Spec: 2026-07-28, server/tools#error-handling.
        """
        tool = self._offered.tools.entries.get(params.name)
        if tool is None:
            raise RequestError(Code.INVALID_PARAMS, f"Unknown tool: {quoted(params.name)}")
        return await tool.call(params.arguments, context)

    async def list_resources(
        self,
        params: models.PaginatedRequestParams,
        context: Context,  # noqa: ARG002 (as above)
        /,
    ) -> models.ListResourcesResult:
        """List the resources that have a URI of their own."""
        shown, following = self._offered.resources.page(params.cursor)
        return models.ListResourcesResult(resources=[each.definition for each in shown], next_cursor=following)

    async def list_resource_templates(
        self,
        params: models.PaginatedRequestParams,
        context: Context,  # noqa: ARG002 (as above)
        /,
    ) -> models.ListResourceTemplatesResult:
        """List the resource templates."""
        shown, following = self._offered.templates.page(params.cursor)
        definitions = [each.definition for each in shown]
        return models.ListResourceTemplatesResult(resource_templates=definitions, next_cursor=following)

    async def read_resource(
        self, params: models.ReadResourceRequestParams, context: Context, /
    ) -> models.ReadResourceResult | models.InputRequiredResult:
        """Read the resource at a URI: one of its own, otherwise of the first template that it is of.

        Raises:
            RequestError: There is none.
        """
        found = self._reading(params.uri)
        if found is None:
            raise ResourceNotFound(quoted(params.uri))
        reading, arguments = found
        return await reading.read(params.uri, arguments, context)

    def _reading(self, uri: str) -> tuple[ReadableFunction, dict[str, Any]] | None:
        """Return what reads the resource at *uri*, with the values in it; None if there is none."""
        if fixed := self._offered.resources.entries.get(uri):
            return fixed.reading, {}
        for each in self._offered.templates.entries.values():
            arguments = each.arguments(uri)
            if arguments is not None:
                return each.reading, arguments
        return None

    async def list_prompts(
        self,
        params: models.PaginatedRequestParams,
        context: Context,  # noqa: ARG002 (as above)
        /,
    ) -> models.ListPromptsResult:
        """List the prompts."""
        shown, following = self._offered.prompts.page(params.cursor)
        return models.ListPromptsResult(prompts=[each.definition for each in shown], next_cursor=following)

    async def get_prompt(
        self, params: models.GetPromptRequestParams, context: Context, /
    ) -> models.GetPromptResult | models.InputRequiredResult:
        """Fill in a prompt.

        Raises:
            RequestError: There is no such prompt, or its arguments are wrong. Spec: 2026-07-28,
                server/prompts#error-handling.
        """
        prompt = self._offered.prompts.entries.get(params.name)
        if prompt is None:
            raise RequestError(Code.INVALID_PARAMS, f"Unknown prompt: {quoted(params.name)}")
        return await prompt.get(params.arguments, context)

    async def complete(self, params: models.CompleteRequestParams, context: Context, /) -> models.CompleteResult:
        """Suggest values for an argument; none if nothing is registered for it.

        Raises:
            RequestError: There is no such prompt, template or argument. Spec: 2026-07-28,
                server/utilities/completion#error-handling.
        """
        reference, argument = params.ref, params.argument.name
        named = reference.name if isinstance(reference, models.PromptReference) else reference.uri
        if completion := self._offered.completions.get((reference.type, named, argument)):
            return await completion.complete(params, context)
        known = self._arguments_of(reference.type, named)
        if known is None:
            raise RequestError(Code.INVALID_PARAMS, f"Unknown reference: {quoted(named)}")
        if argument not in known:
            raise RequestError(Code.INVALID_PARAMS, f"Unknown argument: {quoted(argument)}")
        return empty()
