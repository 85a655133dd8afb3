"""What type checkers make of a client: the newest types without a word, those of another home through its stub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from mcpgen import (
    BaseClient,
    Change,
    Client,
    ClientContext,
    ClientLimits,
    Process,
    RequestRefused,
    Server,
    ServerExited,
    ToolResult,
    connect,
)
from mcpgen.generated import v2025_06_18
from mcpgen.generated.v2025_11_25 import ClientHandlers, ElicitRequestParams, ElicitResult
from mcpgen.generated.v2026_07_28 import models

if TYPE_CHECKING:
    from collections.abc import Callable

server = Server("typed")


async def elicit(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
    assert_type(context.client, BaseClient)
    return models.ElicitResult(action="accept", content={"name": params.message})


async def told(progress: float, total: float | None, message: str | None) -> None:
    del progress, total, message


async def newest() -> None:
    async with connect("python server.py", elicit=elicit, limits=ClientLimits(call_seconds=5)) as client:
        assert_type(client, Client)
        assert_type(await client.call_tool("x", {"a": 1}, on_progress=told, timeout_seconds=1), ToolResult)
        assert_type([tool async for tool in client.tools()], list[models.Tool])
        assert_type([each async for each in client.resource_templates(meta={})], list[models.ResourceTemplate])
        assert_type((await client.read_resource("file:///x")).contents[0].uri, str)
        assert_type(await client.request_json("tools/list"), dict[str, Any])
        assert_type(client.server, models.Implementation | None)
        params = models.GetPromptRequestParams(name="x", meta=client.meta)
        assert_type(await client.methods.get_prompt(params), models.GetPromptResult | models.InputRequiredResult)
        async with client.listen(tools=True, uris=["file:///x"]) as changes:
            assert_type([each async for each in changes], list[Change])


async def older() -> None:
    async with connect(server, native_revision="2025-06-18", revisions=["2025-06-18"]) as client:
        assert_type(client, BaseClient)
        methods = v2025_06_18.ClientMethods(client)
        result = await methods.call_tool(v2025_06_18.CallToolRequestParams(name="x"))
        assert_type(result, v2025_06_18.CallToolResult)


class Handlers(ClientHandlers[ClientContext]):
    async def elicit(self, params: ElicitRequestParams, context: ClientContext, /) -> ElicitResult:
        assert_type(context.method, str)
        return ElicitResult(action="decline" if params.message else "cancel")


async def handled(on_stderr: Callable[[str], None]) -> None:
    target = Process(["python", "server.py"], environment={"KEY": "x"}, on_stderr=on_stderr)
    client = await connect(target, native_revision="2025-11-25", handlers=Handlers())
    try:
        await client.ping()
    except RequestRefused as refusal:
        assert_type(refusal.code, int)
    except ServerExited as gone:
        assert_type((gone.status, gone.stderr), tuple[int | None, str])
    finally:
        await client.close()
