"""Parameters that headers repeat: `Mcp-Param-…` (2026-07-28)."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from msgspec import Meta

from mcpgen.runtime.api.server import Server
from tests.specification.http_server.http_clients import STATELESS, Caller, caller, without
from tests.specification.http_server.revision_sets import NEWEST, on_both_loops, spec, with_sessions
from tests.specification.server.revision_server import handlers, server

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange, Lines

pytestmark = pytest.mark.anyio

NESTED = {"type": "object", "properties": {"level": {"type": "string", "x-mcp-header": "Level"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": NESTED,
        "query": {"type": "string"},
    },
}


def functions() -> Server:
    """Return a server whose function has such parameters."""
    made = Server("demo", version="1")

    @made.tool
    def query(
        region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})] = "",
        count: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Count"})] = 0,
        dry: Annotated[bool, Meta(extra_json_schema={"x-mcp-header": "Dry-Run"})] = False,  # noqa: FBT002 (a tool's)
        query: str = "",
    ) -> str:
        """Say what it was called with."""
        return f"{region} {count} {dry} {query}"

    return made


def own_handlers(*, has_schemas: bool = True, known: str = "query") -> Server:
    """Return a server whose handlers list such a tool on the second page, and return the schema of the tool *known*."""

    async def list_tools(own: Any, params: Any, context: Any) -> Any:
        tool = {"name": "query", "inputSchema": SCHEMA}
        if params.cursor == "second":
            return own.made("ListToolsResult", {"tools": [tool]})
        return own.made(
            "ListToolsResult", {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "nextCursor": "second"}
        )

    async def query(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        return own.text("queried")

    def input_schema(own: Any, name: str) -> dict[str, Any] | None:
        return SCHEMA if name == known else None

    overrides: dict[str, Any] = {"list_tools": list_tools}
    if has_schemas:
        overrides["input_schema"] = input_schema
    return server(NEWEST, own=handlers(NEWEST, tools={"query": query}, overrides=overrides))


MADE = pytest.mark.parametrize("make", [functions, own_handlers])


def sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


async def call(peer: Caller, arguments: dict[str, Any], lines: Lines, *, tool: str = "query") -> Exchange:
    body = peer.request("r", "tools/call", f'"name":"{tool}","arguments":{json.dumps(arguments)}')
    return await peer.post(body, [*peer.lines(body), *lines]).complete()


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "cbe1f0e9", "b0a497c8")
@MADE
@on_both_loops
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, []),
        ({"query": "SELECT"}, []),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "us-west1")]),
        ({"region": "us-west1"}, [("mcp-param-region", sentinel("us-west1"))]),
        ({"region": "Hello, 世界"}, [("Mcp-Param-Region", sentinel("Hello, 世界"))]),
        ({"region": " padded "}, [("Mcp-Param-Region", sentinel(" padded "))]),
        ({"region": "line1\nline2"}, [("Mcp-Param-Region", sentinel("line1\nline2"))]),
        ({"region": "=?base64?literal?="}, [("Mcp-Param-Region", sentinel("=?base64?literal?="))]),
        ({"region": ""}, [("Mcp-Param-Region", "")]),
        ({"count": 42}, [("Mcp-Param-Count", "42")]),
        ({"count": 42}, [("Mcp-Param-Count", "42.0")]),
        ({"count": -7}, [("Mcp-Param-Count", "-7")]),
        ({"count": 2**53 - 1}, [("Mcp-Param-Count", str(2**53 - 1))]),
        ({"dry": True}, [("Mcp-Param-Dry-Run", "true")]),
        ({"dry": False}, [("MCP-PARAM-DRY-RUN", "false")]),
        ({"query": "x"}, [("Mcp-Param-Query", "not annotated"), ("Mcp-Param-Other", "unknown")]),
    ],
)
async def test_what_is_repeated_rightly_is_served(
    make: Any, arguments: dict[str, Any], lines: list[tuple[str, str]]
) -> None:
    async with caller(make(), STATELESS) as peer:
        answer = await call(peer, arguments, lines)

    assert 200 == answer.status
    assert "result" in answer.json


@spec(
    "2026-07-28",
    "basic/transports/streamable-http#server-behavior-for-custom-headers",
    "727e71cf",
    "b8bb65d5",
    "afb35868",
    "cbe1f0e9",
    "08e7f1e4",
)
@MADE
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"region": "us-west1"}, []),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "us-west2")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "US-WEST1")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", sentinel("us-west2"))]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "=?base64?!?=")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "=?base64?dXMtd2VzdDE?=")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "=?Base64?dXMtd2VzdDE=?=")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "us-west1"), ("Mcp-Param-Region", "us-west1")]),
        ({"region": "us-west1"}, [("Mcp-Param-Region", "us-west1"), ("Mcp-Param-Region", "us-west2")]),
        ({"region": "us-west1"}, [("McpParamRegion", "us-west1")]),
        ({"region": "Hello, 世界"}, [("Mcp-Param-Region", "Hello, ??")]),
        ({"region": "\xe4"}, [("Mcp-Param-Region", "\xe4")]),
        ({"region": "a\x00b"}, [("Mcp-Param-Region", "a\x00b")]),
        ({"region": " padded "}, [("Mcp-Param-Region", " padded ")]),
        ({"count": 42}, []),
        ({"count": 42}, [("Mcp-Param-Count", "43")]),
        ({"count": 42}, [("Mcp-Param-Count", "42.5")]),
        ({"count": 42}, [("Mcp-Param-Count", "forty-two")]),
        ({"count": 42}, [("Mcp-Param-Count", "0x2a")]),
        ({"count": 42}, [("Mcp-Param-Count", "4_2")]),
        ({"count": 0}, [("Mcp-Param-Count", "")]),
        ({"dry": True}, []),
        ({"dry": True}, [("Mcp-Param-Dry-Run", "True")]),
        ({"dry": True}, [("Mcp-Param-Dry-Run", "1")]),
        ({"dry": False}, [("Mcp-Param-Dry-Run", "true")]),
        ({"region": "a", "count": 1}, [("Mcp-Param-Region", "a")]),
        ({}, [("Mcp-Param-Region", "us-west1")]),
    ],
)
async def test_what_is_not_repeated_or_otherwise_is_a_mismatch(
    make: Any, arguments: dict[str, Any], lines: list[tuple[str, str]]
) -> None:
    async with caller(make(), STATELESS) as peer:
        answer = await call(peer, arguments, lines)

    assert (400, "r", -32020) == (answer.status, answer.json["id"], answer.json["error"]["code"])


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "a0e18797")
async def test_for_null_no_header_is_expected() -> None:
    async with caller(own_handlers(), STATELESS) as peer:
        answer = await call(peer, {"region": None}, [])

    assert 200 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
@pytest.mark.parametrize(("lines", "status"), [([("Mcp-Param-Level", "high")], 200), ([], 400)])
async def test_a_parameter_within_another_is_found_at_its_path(lines: list[tuple[str, str]], status: int) -> None:
    async with caller(own_handlers(), STATELESS) as peer:
        answer = await call(peer, {"where": {"level": "high"}}, lines)

    assert status == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "b0a497c8")
@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
async def test_nothing_is_expected_where_the_path_leads_to_nothing() -> None:
    async with caller(own_handlers(), STATELESS) as peer:
        answers = [await call(peer, each, []) for each in ({"where": {}}, {"where": "x"}, {"level": "high"})]

    assert [200] * 3 == [each.status for each in answers]


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
@MADE
async def test_headers_of_parameters_are_those_of_the_tool_that_is_called(make: Any) -> None:
    async with caller(make(), STATELESS) as peer:
        answer = await call(peer, {"region": "a"}, [], tool="other")

    assert -32020 != answer.json.get("error", {}).get("code")


@spec("2026-07-28", "server/tools#x-mcp-header")
@MADE
async def test_the_annotations_are_listed(make: Any) -> None:
    async with caller(make(), STATELESS) as peer:
        pages = [await peer.result("tools/list")]
        if "nextCursor" in pages[0]:
            pages.append(await peer.result("tools/list", f'"cursor":"{pages[0]["nextCursor"]}"'))
    tools = {each["name"]: each for page in pages for each in page["tools"]}

    assert "Region" == tools["query"]["inputSchema"]["properties"]["region"]["x-mcp-header"]


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@MADE
async def test_in_a_session_no_headers_are_expected(make: Any, revision: str) -> None:
    async with caller(make(), revision) as peer:
        answer = await call(peer, {"region": "us-west1", "count": 3}, [])

    assert 200 == answer.status
    assert "result" in answer.json


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
async def test_a_tool_that_comes_later_has_its_headers_checked_as_well() -> None:
    made = Server("demo", version="1")
    async with caller(made, STATELESS) as peer:
        body = peer.request("r", "tools/call", '"name":"late","arguments":{"region":"a"}')
        before = await peer.post(body).complete()

        @made.tool
        def late(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
            """Be late."""
            return region

        without_it = await peer.post(body).complete()
        with_it = await peer.post(body, [*without(peer.lines(body), "x"), ("Mcp-Param-Region", "a")]).complete()

    assert -32020 != before.json["error"]["code"]
    assert (400, 200) == (without_it.status, with_it.status)


@spec("2026-07-28", "server/tools#x-mcp-header", "53f114c9", "8fb9e64b", "187435c6")
@pytest.mark.parametrize("has_schemas", [True, False])
@pytest.mark.parametrize(
    "properties",
    [
        {"n": {"type": "string", "x-mcp-header": "Re gion"}},
        {"n": {"type": "number", "x-mcp-header": "N"}, "m": {"type": "string", "x-mcp-header": "M"}},
        {"n": {"type": "string", "x-mcp-header": "N"}, "m": {"type": "string", "x-mcp-header": "n"}},
        {"n": {"type": "array", "items": {"type": "string", "x-mcp-header": "N"}}},
    ],
    ids=str,
)
async def test_an_annotation_that_breaks_the_rules_is_not_listed_and_its_tool_can_be_called(
    properties: dict[str, Any],
    has_schemas: bool,  # noqa: FBT001 (a column of the table)
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema = {"type": "object", "properties": properties}

    async def list_tools(own: Any, _params: Any, _context: Any) -> Any:
        tools = [{"name": "fine", "inputSchema": {"type": "object"}}, {"name": "broken", "inputSchema": schema}]
        return own.made("ListToolsResult", {"tools": tools})

    async def broken(own: Any, _arguments: dict[str, Any], _context: Any) -> Any:
        return own.text("called")

    overrides: dict[str, Any] = {"list_tools": list_tools}
    if has_schemas:
        overrides["input_schema"] = lambda _own, name: schema if name == "broken" else None
    made = server(NEWEST, own=handlers(NEWEST, tools={"broken": broken}, overrides=overrides))
    async with caller(made, STATELESS) as peer:
        listed = await peer.result("tools/list")
        answer = await call(peer, {"n": "a"}, [], tool="broken")

    assert ["fine", "broken"] == [each["name"] for each in listed["tools"]]
    assert "x-mcp-header" not in json.dumps(listed)
    assert properties.keys() == listed["tools"][1]["inputSchema"]["properties"].keys()
    assert "tools/list shows the tool broken without `x-mcp-header`: " in caplog.text
    assert "result" in answer.json


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "cbe1f0e9")
@pytest.mark.parametrize("options", [{"has_schemas": False}, {"known": "other"}], ids=str)
async def test_no_tool_is_listed_whose_headers_could_not_be_compared(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Without its schema, the server learns of the headers of a tool only from what it lists."""
    without_schemas = own_handlers(**options)
    async with caller(without_schemas, STATELESS) as peer:
        first = await peer.result("tools/list")
        second = (await peer.ask("tools/list", '"cursor":"second"'))["error"]
    async with caller(without_schemas, "2025-11-25") as peer:  # which has no such headers
        listed = await peer.result("tools/list", '"cursor":"second"')

    assert ["echo"] == [each["name"] for each in first["tools"]]
    assert -32603 == second["code"]
    assert "the tool query has `x-mcp-header` in its input schema, but the handlers have no method" in caplog.text
    assert ["query"] == [each["name"] for each in listed["tools"]]
