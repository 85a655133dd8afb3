"""A client: a `Sender` of one's own, and what the typed methods over it return in two revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, assert_never, assert_type

import msgspec

from mcpgen.generated import v2025_11_25, v2026_07_28

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from msgspec import UnsetType

P = TypeVar("P")
R = TypeVar("R")


class Loopback:
    """Sends requests to a function; nothing is inherited, so that the protocol alone decides whether it fits."""

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._answer = answer

    async def request(self, method: v2025_11_25.RequestMethod[P, R], params: P | UnsetType, /) -> R:
        body = {"jsonrpc": "2.0", "id": 1, "method": method.name, "params": params}
        result: R = v2025_11_25.decoder(method.result)(await self._answer(msgspec.json.encode(body)))
        return result

    async def notify(self, method: v2025_11_25.NotificationMethod[P], params: P | UnsetType, /) -> None:
        body = {"jsonrpc": "2.0", "method": method.name, "params": params}
        await self._answer(msgspec.json.encode(body))


def a_class_with_the_two_methods_is_a_sender(loopback: Loopback) -> v2025_11_25.Sender:
    return loopback


async def the_methods_of_the_handshake_era(loopback: Loopback) -> None:
    client = v2025_11_25.ClientMethods(loopback)
    params = v2025_11_25.CallToolRequestParams(name="weather", arguments={"city": "Zürich"})

    assert_type(await client.call_tool(params), v2025_11_25.CallToolResult)
    assert_type(await client.call_tool_as_task(params), v2025_11_25.CreateTaskResult)
    assert_type(await client.list_tools(), v2025_11_25.ListToolsResult)
    assert_type(await client.list_tools(v2025_11_25.PaginatedRequestParams(cursor="next")), v2025_11_25.ListToolsResult)
    # An empty result is an open object, so it arrives as a dict.
    assert_type(await client.ping(), dict[str, object])
    assert_type(await client.get_task(v2025_11_25.GetTaskRequestParams(task_id="t")), dict[str, object])
    await client.initialized()
    await client.cancelled(v2025_11_25.CancelledNotificationParams(request_id=17))


async def a_result_of_the_stateless_era_may_ask_for_input(sender: v2026_07_28.Sender) -> str:
    client = v2026_07_28.ClientMethods(sender)
    meta = v2026_07_28.RequestMetaObject(
        client_capabilities=v2026_07_28.ClientCapabilities(), protocol_version=v2026_07_28.REVISION
    )
    params = v2026_07_28.CallToolRequestParams(name="weather", meta=meta.as_dict())

    result = await client.call_tool(params)

    assert_type(result, v2026_07_28.InputRequiredResult | v2026_07_28.CallToolResult)
    match result:
        case v2026_07_28.CallToolResult(content=content):
            assert_type(content, list[v2026_07_28.ContentBlock])
            return f"{len(content)} blocks"
        case v2026_07_28.InputRequiredResult(input_requests=requests):
            if requests is msgspec.UNSET:
                return "retry"
            assert_type(requests, dict[str, v2026_07_28.InputRequest])
            return ", ".join(requests)
        case _:
            assert_never(result)


async def other_results_of_the_stateless_era(sender: v2026_07_28.Sender, meta: dict[str, object]) -> None:
    client = v2026_07_28.ClientMethods(sender)

    assert_type(await client.discover(v2026_07_28.RequestParams(meta=meta)), v2026_07_28.DiscoverResult)
    assert_type(
        await client.get_prompt(v2026_07_28.GetPromptRequestParams(name="p", meta=meta)),
        v2026_07_28.InputRequiredResult | v2026_07_28.GetPromptResult,
    )
    tools = await client.list_tools(v2026_07_28.PaginatedRequestParams(meta=meta))
    assert_type(tools, v2026_07_28.ListToolsResult)
    assert_type(tools.ttl_ms, int)


async def what_a_server_asks_of_its_client(sender: v2025_11_25.Sender) -> None:
    server = v2025_11_25.ServerMethods(sender)
    form = v2025_11_25.ElicitRequestFormParams(message="Who?", requested_schema={"type": "object", "properties": {}})

    answer = await server.elicit(form)

    assert_type(answer, v2025_11_25.ElicitResult)
    assert_type(await server.list_roots(), v2025_11_25.ListRootsResult)
    await server.logging_message(v2025_11_25.LoggingMessageNotificationParams(level="info", data="done"))


def the_table_keeps_the_types_together() -> None:
    methods = v2025_11_25.methods

    assert_type(
        methods.CALL_TOOL,
        v2025_11_25.RequestMethod[v2025_11_25.CallToolRequestParams, v2025_11_25.CallToolResult],
    )
    assert_type(methods.CALL_TOOL.name, str)
    assert_type(methods.CANCELLED, v2025_11_25.NotificationMethod[v2025_11_25.CancelledNotificationParams])
