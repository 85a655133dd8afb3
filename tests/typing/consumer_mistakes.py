"""What both type checkers must refuse: every line with an ignore comment is a mistake.

An ignore comment that ignores nothing is an error to mypy (``warn_unused_ignores``, part of ``--strict``) and to
pyright (``reportUnnecessaryTypeIgnoreComment``, in pyproject.toml), so a mistake that one of them accepts fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mcpgen.generated import v2026_07_28
from mcpgen.generated.v2025_11_25 import (
    CallToolRequestParams,
    CallToolResult,
    ClientMethods,
    ContentBlock,
    ElicitResult,
    GetPromptRequestParams,
    ImageContent,
    Implementation,
    ListToolsResult,
    LoggingMessageNotificationParams,
    RequestMetaObject,
    RequestMethod,
    ServerHandlers,
    TextContent,
    Tool,
    ToolInputSchema,
    decode,
    methods,
)
from mcpgen.runtime.adapt import route

if TYPE_CHECKING:
    from msgspec import UnsetType

P = TypeVar("P")
R = TypeVar("R")


def construction() -> None:
    TextContent(text="hi", bold=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    TextContent()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    TextContent("hi")  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
    TextContent(text=7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    TextContent(text=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    TextContent(text="hi", type="image")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ImageContent(data="aGk=", mimeType="image/png")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def absence_is_not_null() -> None:
    Implementation(name="n", version="1", title=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CallToolResult(content=[], is_error=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Tool(name="t", input_schema=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def words_of_the_schema() -> None:
    ElicitResult(action="accepted")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    LoggingMessageNotificationParams(level="trace", data="")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def required_since_the_stateless_era() -> None:
    v2026_07_28.CallToolRequestParams(name="t")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    v2026_07_28.ListToolsResult(result_type="complete")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def a_type_of_another_revision(text: v2026_07_28.TextContent) -> None:
    CallToolResult(content=[text])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def a_view_is_not_what_a_message_holds(view: RequestMetaObject, schema: ToolInputSchema) -> None:
    CallToolRequestParams(name="t", meta=view)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Tool(name="t", input_schema=schema)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def messages_are_frozen(tool: Tool, view: RequestMetaObject) -> None:
    tool.name = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    view.progress_token = 7  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def wire_names_are_not_attributes(tool: Tool) -> object:
    return tool.inputSchema  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def a_union_has_to_be_narrowed(block: ContentBlock) -> object:
    return block.text  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def a_constant_of_no_arm(block: ContentBlock) -> None:
    if block.type == "video":  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
        return


def what_may_be_absent_has_to_be_narrowed(implementation: Implementation, params: CallToolRequestParams) -> None:
    implementation.title.upper()  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    RequestMetaObject.view(params.meta)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def decoding(data: bytes) -> object:
    tool: Tool = decode(data, TextContent)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    meta: RequestMetaObject = decode(data, RequestMetaObject)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return tool, meta


async def a_stub_takes_its_own_params(client: ClientMethods) -> object:
    await client.call_tool(GetPromptRequestParams(name="p"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await client.call_tool()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    result: ListToolsResult = await client.call_tool(CallToolRequestParams(name="t"))  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return result


async def an_interim_result_has_no_content(client: v2026_07_28.ClientMethods, meta: dict[str, object]) -> object:
    result = await client.call_tool(v2026_07_28.CallToolRequestParams(name="t", meta=meta))
    return result.content  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


class HalfASender:
    async def request(self, method: RequestMethod[P, R], params: P | UnsetType, /) -> R:
        raise NotImplementedError


def a_sender_needs_both_methods(half: HalfASender) -> None:
    ClientMethods(half)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class Server(ServerHandlers[str]):
    async def call_tool(self, params: CallToolRequestParams, context: str, /) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return params.name + context

    async def list_tools(self, params: int, context: str, /) -> ListToolsResult:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError


async def a_handler_gets_its_own_context(handlers: ServerHandlers[str]) -> None:
    await handlers.call_tool(CallToolRequestParams(name="t"), 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def the_tables_cannot_be_changed() -> None:
    methods.CALL_TOOL.name = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    methods.CLIENT_REQUESTS["ping"] = methods.CALL_TOOL  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def a_message_has_four_parts() -> None:
    route("2025-11-25", "2026-07-28", "tools/call", "body")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
