"""The headers that repeat a request of 2026-07-28: each of them missing, wrong, misspelt and encoded."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.specification.http_server.http_clients import BOTH, JSON, META, STATELESS, Caller, caller, replaced, without
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Lines

pytestmark = pytest.mark.anyio

SERVED = pytest.mark.parametrize("revisions", [None, [STATELESS]], ids=["both eras", "stateless alone"])
CALL = ("tools/call", '"name":"echo","arguments":{}')
READ = ("resources/read", '"uri":"note://a"')
PROMPT = ("prompts/get", '"name":"review","arguments":{"code":"x"}')


def sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


async def refused(peer: Caller, body: bytes, lines: Lines, code: int = -32020) -> Any:
    """Post *body*, and see it refused with the status 400 and *code*, under its id."""
    answer = await peer.post(body, lines).complete()
    assert 400 == answer.status, answer
    assert ("r", code) == (answer.json.get("id"), answer.json["error"]["code"]), answer
    return answer.json["error"]


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "d3beb112")
@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers", "db5cb8ea")
@spec("2026-07-28", "schema#headermismatcherror", "fac209c3")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "aa94e936")
@on_both_loops
@SERVED
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize(("method", "params"), [CALL, READ, PROMPT])
async def test_a_header_that_is_missing_is_a_mismatch(
    header: str, method: str, params: str, revisions: list[str] | None
) -> None:
    own = behaviour()
    async with site(demo(own, revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request("r", method, params)
        error = await refused(peer, body, without(peer.lines(body), header))

    assert header.lower() in error["message"].lower()
    assert {} == own.seen


@spec("2026-07-28", "schema#headermismatcherror", "fac209c3")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "2bf61d34", "aa94e936")
@SERVED
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "tools/Call"),
        ("Mcp-Method", "TOOLS/CALL"),
        ("Mcp-Method", "tools/call/"),
        ("Mcp-Method", ""),
        ("Mcp-Method", '"tools/call"'),
        ("Mcp-Method", "tools/call, tools/call"),
        ("Mcp-Method", sentinel("tools/call")),
        ("Mcp-Name", "ech"),
        ("Mcp-Name", "Echo"),
        ("Mcp-Name", "echo2"),
        ("Mcp-Name", ""),
        ("Mcp-Name", "echo, echo"),
        ("Mcp-Name", '"echo"'),
        ("Mcp-Name", sentinel("other")),
        ("Mcp-Name", "=?base64??="),
        ("Mcp-Name", "=?base64?!!!?="),
        ("Mcp-Name", "=?base64?ZWNobw?="),
        ("Mcp-Name", "=?BASE64?ZWNobw==?="),
        ("Mcp-Name", "=?base64?ZWNobw==?"),
        ("Mcp-Name", "=?base64?ZWNobw=="),
        ("Mcp-Name", "=?base64?/w==?="),
        ("Mcp-Name", "ech\xf6"),
        ("Mcp-Name", "echo\x00"),
        ("Mcp-Name", "echo\x7f"),
        ("MCP-Protocol-Version", "2026-07-28, 2026-07-28"),
        ("MCP-Protocol-Version", "2026-07-2\xb2"),
    ],
)
async def test_a_header_that_says_something_else_is_a_mismatch(
    header: str, value: str, revisions: list[str] | None
) -> None:
    own = behaviour()
    async with site(demo(own, revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request("r", *CALL)
        await refused(peer, body, replaced(peer.lines(body), header, value))

    assert {} == own.seen


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize("same", [True, False])
async def test_a_header_that_is_there_twice_is_a_mismatch(*, header: str, same: bool) -> None:
    """A gateway may read the first, and we the last."""
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", *CALL)
        lines = peer.lines(body)
        value = next(value for name, value in lines if name == header)
        await refused(peer, body, [*lines, (header, value if same else "other")])


@spec("2026-07-28", "schema#requestmetaobject", "44a38f56")
@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "47cedb8b")
@SERVED
@pytest.mark.parametrize("stated", ["2025-11-25", "1900-01-01", "2099-01-01", "", "2025-03-26"])
async def test_a_version_in_the_header_that_is_not_the_body_s_is_a_mismatch(
    stated: str, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request("r", *CALL)
        await refused(peer, body, replaced(peer.lines(body), "MCP-Protocol-Version", stated))


@spec("2026-07-28", "schema#requestmetaobject", "44a38f56")
@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "47cedb8b")
@SERVED
async def test_a_version_in_the_body_that_is_not_the_header_s_is_a_mismatch(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request("r", *CALL)
        await refused(peer, body.replace(b"2026-07-28", b"1900-01-01"), peer.lines(body))


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity", "3998b66b")
@pytest.mark.parametrize("write", [str.lower, str.upper, str.title, str.swapcase])
async def test_the_names_of_headers_are_compared_without_regard_to_case(write: Any) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", *CALL)
        answer = await peer.post(body, [(write(name), value) for name, value in peer.lines(body)]).complete()

    assert 200 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@SERVED
@pytest.mark.parametrize(
    ("method", "params"),
    [CALL, READ, PROMPT, ("tools/list", ""), ("server/discover", ""), ("prompts/list", ""), ("resources/list", "")],
)
async def test_a_request_that_is_repeated_as_it_should_is_served(
    method: str, params: str, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        assert "resultType" in await Caller(web, STATELESS).result(method, params)


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "resources/list"])
async def test_a_name_is_not_looked_at_where_none_is_required(method: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", method)
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Name", "anything")]).complete()

    assert 200 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize("params", ["", '"name":7', '"name":null', '"name":["echo"]'])
async def test_a_name_in_the_header_that_the_body_does_not_have_is_a_mismatch(params: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "tools/call", params)
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Name", "echo")]).complete()

    # Invalid params at the same time; either is a bad request.
    assert 400 == answer.status
    assert answer.json["error"]["code"] in (-32020, -32602)


@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "19eccabf")
@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "360506a1", "21a2dcf3", "d069df8e")
@pytest.mark.parametrize("name", ["echo", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?=", "ä", ""])
async def test_a_name_may_be_encoded_and_is_compared_decoded(name: str) -> None:
    import json

    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        body = peer.request("r", "tools/call", f'"name":{json.dumps(name)},"arguments":{{}}')
        answer = await peer.post(body, replaced(peer.lines(body), "Mcp-Name", sentinel(name))).complete()

    assert answer.json["error"]["code"] == -32602 if name != "echo" else "result" in answer.json, answer
    assert name == own.seen["tools/call"].name


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
async def test_a_uri_may_be_encoded() -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", *READ)
        answer = await peer.post(body, replaced(peer.lines(body), "Mcp-Name", sentinel("note://a"))).complete()

    assert 200 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@pytest.mark.parametrize("name", ["=?base64?literal?=", "=?base64?ZWNobw==?="])
async def test_a_plain_name_that_looks_encoded_is_decoded(name: str) -> None:
    """Its client MUST have encoded it; whoever routes by the header reads it decoded, too."""
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "tools/call", f'"name":"{name}","arguments":{{}}')
        await refused(peer, body, replaced(peer.lines(body), "Mcp-Name", name))


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
async def test_whitespace_around_a_value_is_not_part_of_it() -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", *CALL)
        lines = [
            (name, f" \t{value} ") if name.startswith(("Mcp", "MCP")) else (name, value)
            for name, value in peer.lines(body)
        ]
        answer = await peer.post(body, lines).complete()

    assert 200 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("drop", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_a_mismatch_is_found_before_the_method_is_looked_for(drop: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "tools/call", '"name":"no such tool"')
        await refused(peer, body, without(peer.lines(body), drop))


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
async def test_an_unknown_method_has_to_be_repeated_as_well() -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "no/such")
        await refused(peer, body, replaced(peer.lines(body), "Mcp-Method", "tools/list"))


@spec("2026-07-28", "basic/index#meta", "e60809d4")
@SERVED
@on_both_loops
@pytest.mark.parametrize(
    "meta",
    [
        "",
        f'"{META}protocolVersion":"2026-07-28"',
        f'"{META}clientCapabilities":{{}}',
        f'"{META}protocolVersion":7,"{META}clientCapabilities":{{}}',
        f'"{META}protocolVersion":null,"{META}clientCapabilities":{{}}',
    ],
)
async def test_a_request_without_what_its_meta_must_have_is_a_bad_request(
    meta: str, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = f'{{"jsonrpc":"2.0","id":"r","method":"tools/list","params":{{"_meta":{{{meta}}}}}}}'.encode()
        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/list")]
        await refused(peer, body, lines, -32602)


@spec("2026-07-28", "basic/index#meta", "e60809d4")
async def test_a_ping_whose_header_alone_names_the_revision_is_a_bad_request() -> None:
    """Earlier revisions allow a ping before `initialize`, where nothing names a revision."""
    async with site(demo()) as web:
        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "ping")]
        await refused(Caller(web, STATELESS), b'{"jsonrpc":"2.0","id":"r","method":"ping"}', lines, -32602)


@spec("2026-07-28", "basic/index#meta")
@SERVED
@pytest.mark.parametrize("capabilities", ["null", "[]", '"all"', '{"roots":7}'])
async def test_capabilities_that_are_none_are_invalid_params(capabilities: str, revisions: list[str] | None) -> None:
    """A status is given to what is missing; what is there and wrong gets the same."""
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS, capabilities)
        answer = await peer.send("tools/list", identity="r").complete()

    assert ("r", -32602, 400) == (answer.json["id"], answer.json["error"]["code"], answer.status)


@spec("2026-07-28", "basic/index#meta")
@SERVED
@pytest.mark.parametrize("params", ["", ',"params":{}', ',"params":{"_meta":{}}'])
async def test_a_request_without_meta_is_a_bad_request(params: str, revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = f'{{"jsonrpc":"2.0","id":"r","method":"tools/list"{params}}}'.encode()
        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/list")]
        await refused(peer, body, lines, -32602)


@spec("2026-07-28", "basic/index#meta")
async def test_a_client_need_not_say_its_name() -> None:
    async with caller(demo(), STATELESS) as peer:
        body = (
            f'{{"jsonrpc":"2.0","id":"r","method":"tools/list","params":{{"_meta":{{"{META}protocolVersion":'
            f'"2026-07-28","{META}clientCapabilities":{{}}}}}}}}'
        ).encode()
        answer = await peer.post(
            body, [JSON, BOTH, ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/list")]
        ).complete()

    assert 200 == answer.status


@spec("2026-07-28", "basic/index#error-codes", "55794530")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "d4a86662")
@SERVED
@pytest.mark.parametrize(
    ("written", "code"),
    [
        (b'"progressToken":1.0', None),  # an integer in JSON Schema
        (b'"progressToken":1.5', -32602),
        (b'"io.modelcontextprotocol/logLevel":5', -32602),
    ],
)
async def test_headers_that_match_are_no_mismatch_whatever_the_metadata_has(
    written: bytes, code: int | None, revisions: list[str] | None
) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":"r","method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{%s,'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
    ) % written
    lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")]
    async with site(demo(revisions=revisions)) as web:
        answer = await Caller(web, STATELESS).post(body, lines).complete()

    assert 200 == answer.status, answer
    assert code == answer.json.get("error", {}).get("code")
