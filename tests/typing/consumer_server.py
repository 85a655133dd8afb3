"""A server: a subclass of the generated handlers with a context of its own."""

from __future__ import annotations

from typing import assert_type

from msgspec import UNSET

from mcpgen.generated import v2025_11_25, v2026_07_28
from mcpgen.generated.v2025_11_25 import (
    CallToolRequestParams,
    CallToolResult,
    CreateTaskResult,
    ListToolsResult,
    PaginatedRequestParams,
    Result,
    ServerCapabilities,
    ServerHandlers,
    TextContent,
    Tool,
    ToolAnnotations,
)


class Session:
    """Whatever the session hands over."""

    user: str = "somebody"


class Server(ServerHandlers[Session]):
    async def list_tools(self, params: PaginatedRequestParams, context: Session, /) -> ListToolsResult:
        assert_type(context.user, str)
        if params.cursor is not UNSET:
            assert_type(params.cursor, str)
        annotations = ToolAnnotations(read_only_hint=True)
        tool = Tool(name="weather", input_schema={"type": "object"}, annotations=annotations)
        return ListToolsResult(tools=[tool])

    # Fewer results than the handler may return: a subclass may promise more.
    async def call_tool(self, params: CallToolRequestParams, context: Session, /) -> CallToolResult:
        arguments = {} if params.arguments is UNSET else params.arguments
        assert_type(arguments, dict[str, object])
        text = f"{params.name} for {context.user}: {arguments.get('city')}"
        return CallToolResult(content=[TextContent(text=text)])

    async def ping(self, params: v2025_11_25.RequestParams, context: Session, /) -> dict[str, object]:
        del params, context
        return {}


class Echo(v2026_07_28.ServerHandlers[None]):
    async def call_tool(
        self, params: v2026_07_28.CallToolRequestParams, context: None, /
    ) -> v2026_07_28.CallToolResultResponseResult:
        del context
        if params.request_state is UNSET:
            return v2026_07_28.InputRequiredResult(result_type="input_required", request_state="asked")
        text = v2026_07_28.TextContent(text=params.name)
        return v2026_07_28.CallToolResult(result_type="complete", content=[text])


async def the_context_goes_through(server: Server, session: Session) -> None:
    params = CallToolRequestParams(name="weather")

    assert_type(await server.call_tool(params, session), CallToolResult)
    assert_type(server.capabilities(), ServerCapabilities)


async def the_base_returns_all_that_its_revision_allows(handlers: ServerHandlers[Session], session: Session) -> None:
    params = CallToolRequestParams(name="weather")

    assert_type(await handlers.call_tool(params, session), CallToolResult | CreateTaskResult)
    assert_type(await handlers.ping(v2025_11_25.RequestParams(), session), Result | dict[str, object])


class Client(v2025_11_25.ClientHandlers[Session]):
    async def elicit(
        self, params: v2025_11_25.ElicitRequestParams, context: Session, /
    ) -> v2025_11_25.ElicitResult | CreateTaskResult:
        del context
        if isinstance(params, v2025_11_25.ElicitRequestURLParams):
            return v2025_11_25.ElicitResult(action="decline")
        return v2025_11_25.ElicitResult(action="accept", content={"name": "Zoë", "age": 7, "tags": ["a"]})
