"""The statuses of HTTP that go with answers of 2026-07-28."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.citation import LABELS
from tests.specification.http_server.http_clients import BOTH, JSON, META, STATELESS, Caller, caller, replaced
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

SERVED = pytest.mark.parametrize("revisions", [None, [STATELESS]], ids=["both eras", "stateless alone"])
ABLE = '{"elicitation":{},"roots":{},"sampling":{}}'


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "3a6b9b0e")
@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@SERVED
@on_both_loops
@pytest.mark.parametrize("requested", ["1900-01-01", "2099-01-01", "latest", "2025-11-25", "2025-03-26"])
async def test_a_version_that_is_not_served_is_a_bad_request_that_says_which_are(
    requested: str, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = (
            await Caller(web, STATELESS)
            .post(Caller(web, STATELESS).request("r", "tools/list").replace(b"2026-07-28", requested.encode()))
            .complete()
        )

    assert (400, -32022, "r") == (answer.status, answer.json["error"]["code"], answer.json["id"])
    assert requested == answer.json["error"]["data"]["requested"]
    assert set(revisions or LABELS) == set(answer.json["error"]["data"]["supported"])


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "3a6b9b0e")
@SERVED
@pytest.mark.parametrize("method", ["tools/list", "initialize"])
async def test_a_version_in_the_header_alone_is_answered_in_the_same_way(
    method: str, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        lines = [JSON, BOTH, ("MCP-Protocol-Version", "2099-01-01")]
        body = f'{{"jsonrpc":"2.0","id":"r","method":"{method}","params":{{}}}}'
        answer = await web.ask("POST", "/mcp", lines, body.encode())

    assert (400, -32022) == (answer.status, answer.json["error"]["code"])
    assert set(revisions or LABELS) == set(answer.json["error"]["data"]["supported"])


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
async def test_what_is_supported_is_what_can_be_spoken_over_http_with_the_metadata_or_a_handshake() -> None:
    async with site(demo(revisions=["2025-06-18", STATELESS])) as web:
        peer = Caller(web, STATELESS)
        answer = await peer.post(peer.request("r", "tools/list").replace(b"2026-07-28", b"2025-11-25")).complete()

    assert {"2025-06-18", STATELESS} == set(answer.json["error"]["data"]["supported"])


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "18d52b4b")
@SERVED
@on_both_loops
@pytest.mark.parametrize(
    "method", ["no/such", "ping", "logging/setLevel", "resources/subscribe", "initialize", "tasks/list", "tools"]
)
async def test_a_method_that_there_is_not_is_not_found(method: str, revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await Caller(web, STATELESS).send(method, identity="r").complete()

    assert (404, -32601, "r") == (answer.status, answer.json["error"]["code"], answer.json["id"])
    assert f"{STATELESS} has no request {method} from a client" == answer.json["error"]["message"]


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
@pytest.mark.parametrize("method", ["prompts/list", "resources/list", "completion/complete"])
async def test_a_method_of_a_feature_that_the_server_has_not_is_not_found(method: str) -> None:
    params = '"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}'
    async with caller(demo(capabilities={"tools": {}}), STATELESS) as peer:
        answer = await peer.send(method, params if method.startswith("completion") else "").complete()

    assert (404, -32601) == (answer.status, answer.json["error"]["code"])


@spec("2026-07-28", "basic/index#meta", "af558e3c")
@SERVED
@on_both_loops
@pytest.mark.parametrize(
    ("tool", "needed"),
    [("roots", {"roots": {}}), ("ask", {"elicitation": {"form": {}}}), ("sample", {"sampling": {}})],
)
async def test_what_needs_a_capability_that_is_not_declared_is_a_bad_request(
    tool: str, needed: dict[str, Any], revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await Caller(web, STATELESS).call(tool, identity="r").complete()

    assert (400, -32021, "r") == (answer.status, answer.json["error"]["code"], answer.json["id"])
    assert set(needed) == set(answer.json["error"]["data"]["requiredCapabilities"])


@spec("2026-07-28", "basic/index#statelessness")
async def test_a_capability_of_one_request_does_not_count_for_the_next() -> None:
    async with caller(demo(), STATELESS, ABLE) as able:
        first = await able.call("roots").complete()
        second = await Caller(able.web, STATELESS).call("roots").complete()

    assert (200, 400) == (first.status, second.status)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", '"name":"refuse","arguments":{}', 4711),
        ("tools/call", '"name":"crash","arguments":{}', -32603),
        ("tools/call", '"name":"nobody","arguments":{}', -32602),
        ("resources/read", '"uri":"note://nowhere"', -32602),
        ("tools/list", '"cursor":"nowhere"', -32602),
    ],
)
async def test_errors_of_handlers_are_answers_like_any_other(method: str, params: str, code: int) -> None:
    """The text gives no status to them: HTTP has done its part."""
    async with caller(demo(), STATELESS) as peer:
        answer = await peer.send(method, params, identity="r").complete()

    assert (200, code, "r") == (answer.status, answer.json["error"]["code"], answer.json["id"])
    assert b"hunter2" not in answer.body


@spec("2026-07-28", "basic/index#error-codes")
@pytest.mark.parametrize("code", [-32601, -32020])
async def test_the_status_of_a_handler_s_own_error_is_that_of_its_code_or_none(code: int) -> None:
    """A handler ought not to raise these; if it does, client and gateway must not read two different things."""
    from mcpgen.runtime.errors import RequestError

    async def odd(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        raise RequestError(code, "mine")

    async with caller(demo(tools={"odd": odd}), STATELESS) as peer:
        answer = await peer.call("odd", identity="r").complete()

    assert "error" in answer.json
    assert answer.status in (200, {-32601: 404}.get(code, 400))


@spec("2026-07-28", "server/utilities/logging#error-handling")
@pytest.mark.parametrize("level", ["loud", "INFO", ""])
async def test_a_level_that_there_is_not_is_invalid(level: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        answer = await peer.call("echo", meta=f'"{META}logLevel":"{level}"').complete()

    assert -32602 == answer.json["error"]["code"]


@spec("2026-07-28", "basic/index#error-responses")
@pytest.mark.parametrize("identity", ["0", "-1", '""', '"a b"', "9007199254740993", '"\\u00e4"'])
async def test_the_id_of_a_refused_request_is_given_back_as_it_was(identity: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "tools/list").replace(b'"id": "r"', b'"id":"r"').replace(b'"r"', identity.encode(), 1)
        lines = replaced(peer.lines(body), "Mcp-Method", "other")
        answer = await peer.post(body, lines).complete()

    assert 400 == answer.status
    assert f'"id":{identity}'.encode() in answer.body.replace(b'"id": ', b'"id":').replace("ä".encode(), b"\\u00e4")


@spec("2026-07-28", "basic/index#requests")
@SERVED
@pytest.mark.parametrize("identity", ["null", "[]", "1.5", "true", "{}"])
async def test_an_id_that_is_none_is_a_bad_request(identity: str, revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request("r", "tools/list")
        answer = await peer.post(body.replace(b'"r"', identity.encode(), 1), peer.lines(body)).complete()

    assert 400 == answer.status
    assert "id" not in answer.json


@spec("2026-07-28", "basic/index#requests")
@pytest.mark.parametrize(
    "change",
    [(b'"jsonrpc":"2.0"', b'"jsonrpc":"1.0"'), (b'"jsonrpc":"2.0",', b""), (b'"method":"tools/list"', b'"method":7')],
)
async def test_what_is_no_request_is_a_bad_request(change: tuple[bytes, bytes]) -> None:
    async with caller(demo(), STATELESS) as peer:
        body = peer.request("r", "tools/list")
        answer = await peer.post(body.replace(*change), peer.lines(body)).complete()

    assert 400 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
async def test_the_work_of_a_refused_request_never_begins() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        body = peer.request("r", "tools/call", '"name":"wait","arguments":{}')
        await peer.post(body, replaced(peer.lines(body), "Mcp-Name", "other")).complete()

    assert not own.waiting.is_set()


@spec("2026-07-28", "server/discover#response")
@SERVED
@on_both_loops
async def test_discover_says_what_is_spoken_here(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await Caller(web, STATELESS).send("server/discover", identity="d").complete()

    found = answer.json["result"]
    assert (200, "application/json", "complete") == (answer.status, answer.header("content-type"), found["resultType"])
    assert set(revisions or LABELS) == set(found["supportedVersions"])
    assert {"name": "demo", "version": "1"} == found["_meta"][META + "serverInfo"]
