"""Our client and our server, doing together all that a revision can; what both say is judged."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen import Context, RequestRefused, Server, connect
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.transports.memory import Memory
from tests.specification.citation import everywhere, since, spec
from tests.specification.client.recorded_client import heard
from tests.specification.client.scripted_server import PATIENCE_SECONDS, on_both_loops

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def made() -> Server:
    server = Server("demo", version="1", instructions="Be kind.")

    @server.tool
    def echo(text: str) -> str:
        return text

    @server.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit("Who?", FORM)
        return f"{answer.action} {answer.content}"

    @server.tool
    async def roots(context: Context) -> str:
        return " ".join(each.uri for each in await context.roots())

    @server.tool
    async def sample(context: Context) -> str:
        answer = await context.sample("Why?", max_tokens=10)
        return answer.content.text if isinstance(answer.content, models.TextContent) else ""

    @server.tool
    async def count(context: Context) -> str:
        for number in (1, 2, 3):
            await context.progress(number, 3, "counting")
        await context.log("warning", "counted")
        return "done"

    @server.resource("note://a")
    def note() -> str:
        return "A"

    @server.prompt
    def review(code: str) -> str:
        return f"Review {code}"

    return server


def options() -> dict[str, Any]:
    answer = models.CreateMessageResult(role="assistant", content=models.TextContent(text="Because."), model="m")
    return {
        "elicit": lambda *_: models.ElicitResult(action="accept", content={"name": "octocat"}),
        "sample": lambda *_: answer,
        "roots": [models.Root(uri="file:///a")],
    }


async def text(client: Any, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    return str(result.content[0].text)


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "basic/index#statelessness")
@everywhere
@on_both_loops
async def test_tools_resources_and_prompts_are_listed_and_used(revision: str) -> None:
    async with heard(Memory(made()), [revision]) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server, revisions=[revision]) as client:
                assert ["echo", "ask", "roots", "sample", "count"] == [each.name async for each in client.tools()]
                assert ["note://a"] == [each.uri async for each in client.resources()]
                assert ["review"] == [each.name async for each in client.prompts()]
                assert "hi" == await text(client, "echo", text="hi")
                assert "A" == (await client.read_resource("note://a")).contents[0].text
                found = await client.get_prompt("review", {"code": "x"})
                assert "Review x" == found.messages[0].content.text
                assert "Be kind." == client.instructions
                with pytest.raises(RequestRefused):
                    await client.call_tool("nope")
                await client.ping()


@spec("2024-11-05", "client/roots#listing-roots")
@spec("2024-11-05", "client/sampling#creating-messages")
@spec("2025-11-25", "client/sampling#creating-messages")
@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@everywhere
@on_both_loops
async def test_a_server_asks_for_roots_and_a_model(revision: str) -> None:
    async with heard(Memory(made()), [revision]) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server, revisions=[revision], **options()) as client:
                assert "file:///a" == await text(client, "roots")
                assert "Because." == await text(client, "sample")


@spec("2025-06-18", "client/elicitation#creating-elicitation-requests")
@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@on_both_loops
async def test_a_server_asks_the_user(revision: str) -> None:
    async with heard(Memory(made()), [revision]) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server, revisions=[revision], **options()) as client:
                assert "accept {'name': 'octocat'}" == await text(client, "ask")


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "server/utilities/logging#log-message-notifications")
@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@everywhere
@on_both_loops
async def test_a_server_tells_of_progress_and_logs(revision: str) -> None:
    told: list[Any] = []
    entries: list[Any] = []
    async with heard(Memory(made()), [revision]) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(
                server, revisions=[revision], log=lambda params, _: entries.append(params.data)
            ) as client:
                await client.set_log_level("info")
                await client.call_tool("count", on_progress=lambda *given: told.append(given))
                await client.ping()

    message = None if revision == "2024-11-05" else "counting"
    assert [(number, 3, message) for number in (1, 2, 3)] == told
    assert ["counted"] == entries


@spec("2024-11-05", "server/resources#subscriptions")
@spec("2025-11-25", "server/resources#subscriptions")
@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@everywhere
@on_both_loops
async def test_a_server_tells_of_changes(revision: str) -> None:
    own = made()
    async with heard(Memory(own), [revision]) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server, revisions=[revision]) as client:
                async with client.listen(tools=True, uris=["note://a"]) as changes:
                    await own.tools_changed()
                    await own.resource_updated("note://a")
                    found = [await anext(changes), await anext(changes)]
                await client.ping()

    assert [("tools", None), ("resource", "note://a")] == [(each.kind, each.uri) for each in found]
