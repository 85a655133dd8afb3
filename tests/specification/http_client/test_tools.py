"""Tools over HTTP: which are not offered, and what happens where the headers of a call were not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestRefused
from tests.specification.citation import spec
from tests.specification.client.scripted_server import META, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, opened, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.specification.http_client.scripted_http_server import Played

pytestmark = pytest.mark.anyio

MISMATCH = -32020


def tool(name: str, **properties: object) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def page(tools: Sequence[object], **more: object) -> dict[str, object]:
    return {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private", **more}


REGION = {"type": "string", "x-mcp-header": "Region"}


@spec(
    "2026-07-28",
    "basic/transports/streamable-http#schema-extension",
    "625122ba",
    "6c2b9e54",
    "83c535bc",
    "7daee3b0",
    "48b88729",
)
@spec("2026-07-28", "server/tools#x-mcp-header", "84359d59", "6387ac9c", "98683d34")
@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"a": {"type": "string", "x-mcp-header": ""}}, "is not a header name"),
        ({"a": {"type": "string", "x-mcp-header": "My Region"}}, "is not a header name"),
        ({"a": {"type": "string", "x-mcp-header": "Region\r\nX: y"}}, "is not a header name"),
        ({"a": {"type": "array", "x-mcp-header": "Region"}}, "needs the type string, integer or boolean"),
        ({"a": {"type": "number", "x-mcp-header": "Region"}}, "needs the type string, integer or boolean"),
        ({"a": REGION, "b": {"type": "string", "x-mcp-header": "REGION"}}, "is already used by the property 'a'"),
        ({"a": {"type": "array", "items": REGION}}, "is in a wrong place"),
        ({"a": {"type": "string", "x-\u006dcp-header": 7}}, "is not a header name"),
    ],
)
async def test_a_tool_whose_annotations_break_a_rule_is_left_out_and_the_others_are_not(
    properties: dict[str, object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(NEWEST) as (client, server):
        listing = server.start(client.list_tools())
        tools = [tool("good", a=REGION), tool("bad", **properties), tool("plain")]
        await (await server.hear(method="tools/list")).result(page(tools, nextCursor="more"))
        listed = await listing.outcome()

        assert ["good", "plain"] == [each.name for each in listed.tools]
        assert "more" == listed.next_cursor
        (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert warning.startswith("the tool bad of the server is ignored: ")
        assert reason in warning


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
async def test_an_annotation_that_is_written_with_escapes_counts_as_well() -> None:
    async with opened(NEWEST) as (client, server):
        server.is_judged = False
        listing = server.start(client.list_tools())
        asked = await server.hear(method="tools/list")
        body = (
            b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":['
            b'{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"array",'
            b'"x-mcp-\\u0068eader":"A"}}}}]}}' % asked.message["id"]
        )
        await asked.answer(200, body, content_type="application/json")

        assert [] == (await listing.outcome()).tools


@spec("2025-11-25", "server/tools#listing-tools")
async def test_in_a_session_the_annotation_means_nothing() -> None:
    async with opened("2025-11-25") as (client, server):
        listing = server.start(client.list_tools())
        tools = [tool("bad", a={"type": "array", "x-mcp-header": "A"}), tool("good", a=REGION)]
        await (await server.hear(method="tools/list")).result({"tools": tools})
        listed = await listing.outcome()
        calling = server.start(client.call_tool("good", {"a": "x"}))
        asked = await server.hear(method="tools/call")
        await asked.result({"content": []})
        await calling.outcome()

        assert ["bad", "good"] == [each.name for each in listed.tools]
        assert "mcp-param-region" not in asked.headers


async def relisted(server: Played, *pages: Sequence[object]) -> list[dict[str, Any]]:
    """Answer the transport's own question for all pages; return the params that it was put with."""
    heard: list[dict[str, Any]] = []
    for number, tools in enumerate(pages):
        asked = await server.hear(method="tools/list")
        heard.append(asked.message["params"])
        more = {"nextCursor": f"page {number + 1}"} if number + 1 < len(pages) else {}
        await asked.result(page(tools, **more))
    return heard


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior", "f8624560")
@on_both_loops
async def test_after_a_header_mismatch_all_tools_are_listed_and_the_call_is_made_once_more() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("sql", {"a": "west"}, on_progress=print))
        first = await server.hear(method="tools/call")
        await first.error(MISMATCH, "Header mismatch: Mcp-Param-Region header is missing")
        heard = await relisted(server, [tool("other")], [tool("sql", a=REGION)])
        second = await server.hear(method="tools/call")
        await second.result(text())

        assert "ok" == (await calling.outcome()).content[0].text
        assert "mcp-param-region" not in first.headers
        assert "west" == second.headers["mcp-param-region"]
        assert first.body == second.body
        assert [None, "page 1"] == [each.get("cursor") for each in heard]
        assert all(NEWEST == each["_meta"][META + "protocolVersion"] for each in heard)
        assert not any("progressToken" in each["_meta"] for each in heard)


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
async def test_the_call_is_made_once_more_and_no_more_than_that() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("sql", {"a": "west"}))
        await (await server.hear(method="tools/call")).error(MISMATCH)
        await relisted(server, [tool("sql", a=REGION)])
        await (await server.hear(method="tools/call")).error(MISMATCH, "still")

        with pytest.raises(RequestRefused, match="still"):
            await calling.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
async def test_a_call_whose_headers_would_be_the_same_is_not_made_again() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("sql", {"a": "west"}))
        await (await server.hear(method="tools/call")).error(MISMATCH, "no")
        await relisted(server, [tool("sql")])

        with pytest.raises(RequestRefused) as refused:
            await calling.outcome()

        assert (MISMATCH, "no") == (refused.value.code, refused.value.message)
        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
async def test_calls_that_fail_together_share_one_list() -> None:
    async with opened(NEWEST) as (client, server):
        calls = [server.start(client.call_tool("sql", {"a": "west"})) for _ in range(3)]
        for each in [await server.hear(method="tools/call") for _ in calls]:
            await each.error(MISMATCH)
        await relisted(server, [tool("sql", a=REGION)])
        for _ in calls:
            await (await server.hear(method="tools/call")).result(text())
        for each in calls:
            await each.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
async def test_a_server_with_endless_pages_is_not_asked_for_all_of_them() -> None:
    async with opened(NEWEST, limits=ClientLimits(max_pages=2)) as (client, server):
        calling = server.start(client.call_tool("sql", {"a": "west"}))
        await (await server.hear(method="tools/call")).error(MISMATCH)
        for _ in range(2):
            await (await server.hear(method="tools/list")).result(page([], nextCursor="more"))

        with pytest.raises(RequestRefused):
            await calling.outcome()

        with anyio.move_on_after(0.02):
            await server.hear(method="tools/list")
            pytest.fail("it was asked for a third page")


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
async def test_a_tool_that_is_listed_anew_without_annotations_has_no_headers_any_more() -> None:
    async with opened(NEWEST) as (client, server):
        for tools in ([tool("sql", a=REGION)], [tool("sql")]):
            listing = server.start(client.list_tools())
            await (await server.hear(method="tools/list")).result(page(tools))
            await listing.outcome()
        calling = server.start(client.call_tool("sql", {"a": "west"}))
        asked = await server.hear(method="tools/call")
        await asked.result(text())
        await calling.outcome()

        assert "mcp-param-region" not in asked.headers
