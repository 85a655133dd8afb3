"""Limits of single messages: how many values they have, and how large the parts are that a server keeps."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import ClientLimits, Context, Limits, McpgenError, Server, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.limits import (
    MAX_DECLARATION_BYTES,
    MAX_DECLARATION_VALUES,
    MAX_ID_CHARS,
    MAX_META_BYTES,
    MAX_URI_CHARS,
)
from mcpgen.runtime.protocol import capabilities
from mcpgen.runtime.server import subscriptions
from mcpgen.runtime.transports import memory
from tests.specification.http_server.http_clients import BOTH, JSON, caller
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from mcpgen.runtime.transports.memory import Wire

pytestmark = pytest.mark.anyio

LABELS = [each.label for each in REVISIONS]
HANDSHAKES = [each.label for each in REVISIONS if each.era == "handshake"]
STATELESS = LABELS[-1]
MOST = 200
VALUES = "the message has more than 200 values (max_values)"

every_revision = pytest.mark.parametrize("revision", LABELS)
with_handshakes = pytest.mark.parametrize("revision", HANDSHAKES)


def server(**limits: Any) -> Server:
    """Return a server with these limits, and a resource of 3,000 characters."""
    made = Server("small", version="1.0", limits=Limits(**limits))

    @made.tool
    async def size(value: Any) -> str:
        return str(len(value))

    @made.resource("text:three-thousand")
    async def text() -> str:
        return "x" * 3000

    return made


def meta(revision: str, **more: object) -> dict[str, object]:
    """Return the metadata of a request in *revision*."""
    if revision != STATELESS:
        return more
    prefix = "io.modelcontextprotocol/"
    return {f"{prefix}protocolVersion": revision, f"{prefix}clientCapabilities": {}} | more


def request(identity: object, method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def call(revision: str, value: object, identity: object = 1, **more: object) -> dict[str, object]:
    """Return a call of the tool `size`; *more* is metadata."""
    return request(
        identity, "tools/call", {"name": "size", "arguments": {"value": value}, "_meta": meta(revision, **more)}
    )


def hello(revision: str, declared: object = None, **info: object) -> dict[str, object]:
    """Return `initialize`."""
    named = {"name": "client", "version": "1"} | info
    return request(0, "initialize", {"protocolVersion": revision, "capabilities": declared or {}, "clientInfo": named})


async def handshake(wire: Wire, revision: str) -> None:
    if revision != STATELESS:
        await wire.send(hello(revision))
        await wire.receive()
        await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


async def asked(wire: Wire, message: object) -> Any:
    await wire.send(message)
    return await wire.receive()


# --- values


@every_revision
async def test_a_request_with_too_many_values_is_refused_and_the_next_is_served(revision: str) -> None:
    async with memory.wire(server(max_values=MOST)) as wire:
        await handshake(wire, revision)
        refused = await asked(wire, call(revision, [0] * MOST, "one"))
        served = await asked(wire, call(revision, ",[{" * MOST, 2))

    assert {"jsonrpc": "2.0", "id": "one", "error": {"code": -32600, "message": VALUES}} == refused
    assert str(3 * MOST) == served["result"]["content"][0]["text"]


async def test_the_values_of_a_batch_are_counted_together() -> None:
    async with memory.wire(server(max_values=MOST)) as wire:
        await handshake(wire, "2025-03-26")
        pings = [{"jsonrpc": "2.0", "id": identity, "method": "ping"} for identity in range(40)]
        await wire.send([*pings, call("2025-03-26", [0] * 60, 50)])
        served = await asked(wire, pings)

    assert set(range(40)) == {each["id"] for each in served}


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_refusal_is_not_taken_for_the_response_to_an_open_request(*, is_open: bool) -> None:
    async with memory.wire(server(max_values=MOST)) as wire:
        await handshake(wire, "2025-11-25")
        call_first = call("2025-11-25", [], 1)
        broken = json.dumps(call("2025-11-25", [0] * MOST, 1))[:-1].encode()
        await wire.send_all(*([call_first] if is_open else []), broken)
        refused = await wire.receive()

    assert VALUES == refused["error"]["message"]
    assert is_open == ("id" not in refused)


@every_revision
async def test_over_http_the_status_of_too_many_values_is_413(revision: str) -> None:
    async with caller(server(max_values=MOST), revision) as peer:
        sent = json.dumps(call(revision, [0] * MOST)).encode()
        refused = await peer.post(sent).complete()

    assert 413 == refused.status
    assert {"code": -32600, "message": VALUES} == refused.json["error"]
    assert 1 == refused.json["id"]


async def test_before_a_session_there_are_no_more_values_either() -> None:
    async with site(server(max_values=MOST)) as web:
        body = json.dumps(hello("2025-11-25", {"experimental": {"a": {"b": [0] * MOST}}})).encode()
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], body)

    assert (413, VALUES) == (refused.status, refused.json["error"]["message"])


@pytest.mark.parametrize("count", [100, 300])
async def test_a_client_fails_the_call_whose_result_has_too_many_values(count: int) -> None:
    lists = Server("lists", version="1.0")

    @lists.tool
    async def many() -> dict[str, list[int]]:
        return {"a": [0] * count}

    async with connect(lists, limits=ClientLimits(max_values=300)) as client:
        if count == 100:
            assert {"a": [0] * count} == (await client.call_tool("many")).structured_content
        else:
            with pytest.raises(McpgenError, match=r"more than 300 values \(max_values\)"):
                await client.call_tool("many")
        await client.list_tools()


# --- what a session keeps


@with_handshakes
async def test_the_declaration_of_a_client_is_bounded(revision: str) -> None:
    large: list[tuple[dict[str, object], str]] = [
        (
            {"declared": {"experimental": {"a": {"b": "x" * MAX_DECLARATION_BYTES}}}},
            "65536 bytes together (max_declaration_bytes)",
        ),
        ({"name": "x" * MAX_DECLARATION_BYTES}, "65536 bytes together (max_declaration_bytes)"),
        (
            {"declared": {"experimental": {"a": {"b": [{}] * MAX_DECLARATION_VALUES}}}},
            "250 values together (max_declaration_values)",
        ),
    ]
    async with memory.wire(server()) as wire:
        for declaration, limit in large:
            refused = (await asked(wire, hello(revision, **declaration)))["error"]
            assert (-32602, f"clientInfo and capabilities have more than {limit}") == (
                refused["code"],
                refused["message"],
            )
        accepted = await asked(wire, hello(revision, name="x" * (MAX_DECLARATION_BYTES - 1000)))

    assert revision == accepted["result"]["protocolVersion"]


async def test_the_declaration_of_a_stateless_request_is_bounded() -> None:
    key = "io.modelcontextprotocol/clientCapabilities"
    large = {"experimental": {"a": {"b": [[]] * MAX_DECLARATION_VALUES}}}
    async with memory.wire(server()) as wire:
        refused = await asked(wire, call(STATELESS, [], **{key: large}))
    async with caller(server(), STATELESS) as peer:
        answer = await peer.post(json.dumps(call(STATELESS, [], **{key: large})).encode()).complete()

    assert "more than 250 values" in refused["error"]["message"]
    assert (400, refused) == (answer.status, answer.json)


@every_revision
async def test_metadata_is_bounded(revision: str) -> None:
    large: list[tuple[dict[str, object], str]] = [
        ({"other": "x" * MAX_META_BYTES}, "params._meta has more than 131072 bytes (max_meta_bytes)"),
        (
            {"progressToken": "x" * (MAX_ID_CHARS + 1)},
            "the progress token has more than 1024 characters (max_id_chars)",
        ),
    ]
    async with memory.wire(server()) as wire, caller(server(), revision) as peer:
        await handshake(wire, revision)
        for more, reason in large:
            message = call(revision, [], **more)
            refused = await asked(wire, message)
            answer = await peer.post(json.dumps(message).encode()).complete()
            assert {"code": -32602, "message": reason} == refused["error"] == answer.json["error"]
        served = await asked(wire, call(revision, ["x" * MAX_META_BYTES], progressToken="x" * MAX_ID_CHARS))

    assert "result" in served


@every_revision
async def test_an_id_is_bounded(revision: str) -> None:
    identity = "x" * MAX_ID_CHARS
    reason = {"code": -32600, "message": "the id has more than 1024 characters (max_id_chars)"}
    async with memory.wire(server()) as wire, caller(server(), revision) as peer:
        await handshake(wire, revision)
        message = call(revision, [], identity + "x")
        refused = await asked(wire, message)
        answer = await peer.post(json.dumps(message).encode()).complete()
        served = await asked(wire, call(revision, [], identity))

    assert (identity + "x", reason) == (refused["id"], refused["error"]) == (answer.json["id"], answer.json["error"])
    assert identity == served["id"]
    assert "result" in served


async def test_the_uri_of_a_subscription_is_bounded() -> None:
    watched = server()

    @watched.resource("file:///{+path}")
    async def read(path: str) -> str:
        return path

    reason = "a URI has more than 8192 characters (max_uri_chars)"
    uri = "file:///" + "x" * MAX_URI_CHARS
    async with memory.wire(watched) as wire:
        await handshake(wire, "2025-11-25")
        refused = await asked(wire, request(1, "resources/subscribe", {"uri": uri}))
        accepted = await asked(wire, request(2, "resources/subscribe", {"uri": uri[:MAX_URI_CHARS]}))
        listen = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": meta(STATELESS)}
        refused_stream = await asked(wire, request(3, "subscriptions/listen", listen))

    assert {"code": -32602, "message": reason} == refused["error"] == refused_stream["error"]
    assert {} == accepted["result"]


@pytest.mark.parametrize(("count", "size"), [(1001, 1), (500, 8000)], ids=["too many", "too long together"])
async def test_uris_of_a_stream_are_counted_before_their_syntax_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, count: int, size: int
) -> None:
    watched, looked = server(), [0]

    @watched.resource("http://{host}/")
    async def read(host: str) -> str:
        return host

    def look(_uri: str) -> None:
        looked[0] += 1

    monkeypatch.setattr(subscriptions, "uri_fault", look)
    uris = [f"http://{'a.' * (size // 2)}{each}/" for each in range(count)]
    async with memory.wire(watched) as wire:
        listen = {"notifications": {"resourceSubscriptions": uris}, "_meta": meta(STATELESS)}
        refused = await asked(wire, request(1, "subscriptions/listen", listen))

    assert "error" in refused
    assert [0] == looked


async def test_a_stream_that_is_refused_for_a_uri_keeps_nothing() -> None:
    watched = server()

    @watched.resource("file:///{+path}")
    async def read(path: str) -> str:
        return path

    uris = [f"file:///{'x' * 8000}{each}" for each in range(40)]  # more than half of max_session_bytes
    async with memory.wire(watched) as wire:
        for number, each in enumerate(("no URI", "file:///a")):
            listen = {"notifications": {"resourceSubscriptions": [*uris, each]}, "_meta": meta(STATELESS)}
            answer = await asked(wire, request(number, "subscriptions/listen", listen))

    assert "notifications/subscriptions/acknowledged" == answer["method"]


async def test_a_template_reads_no_longer_uri() -> None:
    reading = server(max_uri_chars=20)

    @reading.resource("file:///{+path}")
    async def read(path: str) -> str:
        return path

    async with memory.wire(reading) as wire:
        await handshake(wire, "2025-11-25")
        served = await asked(wire, request(1, "resources/read", {"uri": "file:///" + "x" * 12}))
        refused = await asked(wire, request(2, "resources/read", {"uri": "file:///" + "x" * 13}))

    assert "result" in served
    assert {"code": -32602, "message": "the URI has more than 20 characters (max_uri_chars)"} == refused["error"]


SMALL: dict[str, dict[str, Any]] = {
    "max_id_chars": {"identity": "x" * 201},
    "max_meta_bytes": {"other": "x" * 201},
    "max_declaration_bytes": {"capabilities": {"experimental": {"a": {"b": "x" * 201}}}},
    "max_declaration_values": {"capabilities": {"experimental": {"a": {"b": [[]] * 201}}}},
}


@pytest.mark.parametrize("name", SMALL)
@every_revision
async def test_each_of_these_limits_is_a_setting(revision: str, name: str) -> None:
    given = dict(SMALL[name])
    identity, declared = given.pop("identity", 1), given.pop("capabilities", None)
    if declared is not None and revision == STATELESS:
        given["io.modelcontextprotocol/clientCapabilities"] = declared
    message = call(revision, [], identity, **given)
    if declared is not None and revision != STATELESS:
        message = hello(revision, declared=declared)
    for limit in (200, 1000):
        async with memory.wire(server(**{name: limit})) as wire:
            if declared is None:
                await handshake(wire, revision)
            answer = await asked(wire, message)

        assert (limit == 200) == ("error" in answer), answer
        assert limit == 1000 or f"({name})" in answer["error"]["message"]


async def test_after_initialize_a_session_keeps_nothing_of_the_frame() -> None:
    frame = json.dumps(hello("2025-11-25") | {"other": "x" * 1_000_000}).encode()
    async with memory.wire(server()) as wire:
        before = sys.getrefcount(frame)
        await wire.send(frame)
        assert "result" in await wire.receive()

        assert before == sys.getrefcount(frame)


async def test_the_cache_of_clients_stays_small() -> None:
    most = capabilities._MAX_CACHED_PEERS * 2 * (capabilities._MAX_CACHED_BYTES + 150 * MAX_DECLARATION_VALUES)

    assert most < 12_000_000


async def test_the_answers_of_a_retry_have_a_bound_that_arguments_do_not_count_for() -> None:
    answers = {f"k{each}": {"action": "accept"} for each in range(5001)}
    many = {"name": "size", "arguments": {"value": [0] * 30_000}, "_meta": meta(STATELESS)}
    async with memory.wire(server(max_values=50_000)) as wire:
        refused = await asked(wire, request(1, "tools/call", many | {"inputResponses": answers}))
        served = await asked(wire, request(2, "tools/call", many | {"inputResponses": {"k": {"action": "accept"}}}))

    reason = "the params have more than 10000 values outside of `arguments`; send fewer in `inputResponses` or `_meta`"
    assert {"code": -32602, "message": reason} == refused["error"]
    assert "30000" == served["result"]["content"][0]["text"]


# --- batches


async def test_what_does_not_fit_into_the_response_to_a_batch_is_answered_with_an_error() -> None:
    async with memory.wire(server(max_batch_bytes=20_000)) as wire:
        await handshake(wire, "2025-03-26")
        reads = [request(identity, "resources/read", {"uri": "text:three-thousand"}) for identity in range(20)]
        answers = await asked(wire, reads)
        alone = await asked(wire, reads[0])

    refused = [each["error"] for each in answers if "error" in each]
    served = [each for each in answers if "result" in each]
    assert (20, set(range(20))) == (len(answers), {each["id"] for each in answers})
    assert 4 <= len(served) <= 6
    assert len(json.dumps(answers)) < 21_000
    assert {-32603} == {each["code"] for each in refused}
    assert (
        "the responses to this batch have more than 20000 bytes (max_batch_bytes); send this request again, outside of "
        "a batch, only if that does no harm"
    ) == refused[0]["message"]
    assert "result" in alone


@pytest.mark.slow
async def test_a_parked_call_does_not_keep_what_stood_beside_its_params() -> None:
    asks = Server("asks", version="1.0")

    @asks.tool
    async def folders(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    key = "io.modelcontextprotocol/clientCapabilities"
    params = {"name": "folders", "_meta": meta(STATELESS, **{key: {"roots": {}}})}
    async with memory.wire(asks) as wire:
        frame = json.dumps(request(1, "tools/call", params) | {"other": "x" * 1_000_000}).encode()
        before = sys.getrefcount(frame)
        answer = await asked(wire, frame)

        assert "input_required" == answer["result"]["resultType"]
        assert before == sys.getrefcount(frame)
