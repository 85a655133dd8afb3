"""Requests that state their own revision, and servers that speak to both eras."""

from __future__ import annotations

import pytest

from tests.harness.server_wire import connected
from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    from_every_home,
    since,
    spec,
    with_handshakes,
    without_handshakes,
)
from tests.specification.server.revision_client import Client, client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio

VERSION = '"io.modelcontextprotocol/protocolVersion"'
CAPABILITIES = '"io.modelcontextprotocol/clientCapabilities"'


def listing(meta: str, identity: int = 1) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{identity},"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}'.encode()


@spec("2026-07-28", "schema#requestmetaobject", "77b2f686")
@spec("2026-07-28", "basic/versioning#protocol-version-negotiation", "f691fb2d")
@pytest.mark.parametrize("requested", ["1900-01-01", "2099-01-01", "", "2025-11-25"])
async def test_a_request_in_a_version_that_is_not_served_is_told_which_ones_are(requested: str) -> None:
    async with connected(server(LABELS[-1])) as wire:
        (said,) = await wire.say(listing(f'{VERSION}:"{requested}",{CAPABILITIES}:{{}}'))

    assert -32022 == said["error"]["code"]
    assert {"supported": LABELS[::-1], "requested": requested} == said["error"]["data"]


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation", "f691fb2d")
async def test_a_known_version_that_the_server_chose_not_to_serve_is_refused_as_well() -> None:
    async with connected(server(LABELS[-1], revisions=["2026-07-28"])) as wire:
        (said,) = await wire.say(listing(f'{VERSION}:"2025-11-25",{CAPABILITIES}:{{}}'))

    assert {"supported": ["2026-07-28"], "requested": "2025-11-25"} == said["error"]["data"]


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
async def test_an_unserved_version_is_refused_before_anything_else_is_looked_at() -> None:
    async with connected(server(LABELS[-1])) as wire:
        said = await wire.say(
            listing(f'{VERSION}:"1900-01-01"'),
            b'{"jsonrpc":"2.0","id":2,"method":"no/such","params":{"_meta":{%s:"1900-01-01"}}}' % VERSION.encode(),
        )

    assert [-32022, -32022] == [each["error"]["code"] for each in said]


@spec("2026-07-28", "basic/index#meta", "1adc2efc")
@pytest.mark.parametrize(
    "meta",
    [
        f'{VERSION}:"2026-07-28"',
        f"{CAPABILITIES}:{{}}",
        "",
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:null',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:[]',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:"all"',
        f"{VERSION}:20260728,{CAPABILITIES}:{{}}",
        f"{VERSION}:null,{CAPABILITIES}:{{}}",
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{"roots":7}}',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{}},"io.modelcontextprotocol/clientInfo":{{"name":"c"}}',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{}},"io.modelcontextprotocol/clientInfo":"c"',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{}},"progressToken":true',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{}},"progressToken":{{}}',
        f'{VERSION}:"2026-07-28",{CAPABILITIES}:{{}},"progressToken":1.5',
    ],
)
@pytest.mark.parametrize("revisions", [None, ["2026-07-28"]])
async def test_a_request_whose_metadata_is_missing_or_wrong_has_invalid_params(
    meta: str, revisions: list[str] | None
) -> None:
    async with connected(server(LABELS[-1], revisions=revisions)) as wire:
        (said,) = await wire.say(listing(meta))

    assert (1, -32602) == (said["id"], said["error"]["code"])


@spec("2026-07-28", "basic/index#meta", "1adc2efc")
async def test_a_request_without_params_lacks_its_metadata() -> None:
    async with connected(server(LABELS[-1], revisions=["2026-07-28"])) as wire:
        said = await wire.say(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
            b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}',
            b'{"jsonrpc":"2.0","id":3,"method":"server/discover"}',
        )

    assert [-32602, -32602, -32602] == [each["error"]["code"] for each in said]


@spec("2026-07-28", "basic/index#meta")
@without_handshakes
async def test_a_client_need_not_say_its_name(revision: str) -> None:
    async with connected(server(LABELS[-1])) as wire:
        (said,) = await wire.say(listing(f'{VERSION}:"{revision}",{CAPABILITIES}:{{}}'))

    assert "complete" == said["result"]["resultType"]


@spec("2026-07-28", "changelog#major-changes", "e18d1aa3")
@spec("2026-07-28", "schema#resultmetaobject", "16c3a80b")
@spec("2026-07-28", "server/discover#discoverresult", "8e43390e")
@spec("2026-07-28", "basic/index#meta", "5e9e9d11")
@without_handshakes
@from_every_home
async def test_every_result_names_the_server(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        results = [
            await peer.result("server/discover"),
            await peer.result("tools/list"),
            await peer.result("tools/call", '"name":"echo"'),
            await peer.result("resources/read", '"uri":"note://a"'),
            await peer.result("prompts/get", '"name":"review","arguments":{"code":"x"}'),
        ]

    named = [each["_meta"]["io.modelcontextprotocol/serverInfo"] for each in results]
    assert [{"name": "demo", "version": "1"}] * 5 == named


@spec("2026-07-28", "basic/index#meta", "ddedda52")
@spec("2026-07-28", "schema#requestmetaobject", "58c00f7d")
@spec("2026-07-28", "basic/index#statelessness", "1c40dfac")
@without_handshakes
async def test_what_one_request_declares_does_not_count_for_the_next(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"roots":{}}') as able:
        unable = Client(able.wire, revision, "{}")
        (asked,) = await able.wire.say(able.request(1, "tools/call", '"name":"roots"'))
        (refused,) = await able.wire.say(unable.request(2, "tools/call", '"name":"roots"'))

    assert "input_required" == asked["result"]["resultType"]
    assert -32021 == refused["error"]["code"]
    assert {"requiredCapabilities": {"roots": {}}} == refused["error"]["data"]


@spec("2026-07-28", "basic/index#statelessness", "1c40dfac")
@with_handshakes
async def test_a_handshake_on_the_same_connection_says_nothing_about_stateless_requests(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"roots":{}}') as session:
        stateless = Client(session.wire, "2026-07-28", "{}")
        (refused,) = await session.wire.say(stateless.request(1, "tools/call", '"name":"roots"'))

    assert -32021 == refused["error"]["code"]


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@with_handshakes
async def test_both_eras_are_served_at_once_each_in_its_own_terms(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as session:
        stateless = Client(session.wire, "2026-07-28", "{}")
        said = await session.wire.say(
            session.request(1, "tools/list"), stateless.request(2, "tools/list"), session.request(3, "tools/list")
        )

    old, new, again = sorted(said, key=lambda each: each["id"])  # which handler is through first is nobody's business
    assert {"tools", "nextCursor"} == set(old["result"]) == set(again["result"])
    assert {"tools", "nextCursor", "resultType", "ttlMs", "cacheScope", "_meta"} == set(new["result"])


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_of_both_eras_takes_metadata_for_the_sign_of_the_modern_one() -> None:
    """Even `initialize` is then a request of that revision, which has no such method."""
    async with connected(server(LABELS[-1])) as wire:
        (said,) = await wire.say(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
            b'"clientInfo":{"name":"c","version":"1"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
            b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
        )

    assert -32601 == said["error"]["code"]


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@with_handshakes
async def test_a_server_of_the_old_era_refuses_the_probe_and_then_shakes_hands(revision: str) -> None:
    """Any error that no modern server would send tells the client to fall back."""
    async with connected(server(LABELS[-1], revisions=[revision])) as wire:
        probe = Client(wire, "2026-07-28", "{}").request("probe", "server/discover")
        (refused,) = await wire.say(probe)
        (agreed,) = await wire.say(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},'
            b'"clientInfo":{"name":"c","version":"1"}}}' % revision.encode()
        )

    assert "probe" == refused["id"]
    assert refused["error"]["code"] not in (-32020, -32021, -32022)
    assert revision == agreed["result"]["protocolVersion"]


@spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize(
    "method", ["ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"]
)
@without_handshakes
async def test_what_the_revision_has_dropped_is_not_found(method: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        assert -32601 == (await peer.error(method, '"level":"info","uri":"note://a"'))["code"]


@spec("2025-11-25", "basic/lifecycle#operation")
@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
@with_handshakes
async def test_what_a_later_revision_has_added_is_not_found(method: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        assert -32601 == (await peer.error(method, '"notifications":{}'))["code"]


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
async def test_each_connection_agrees_on_its_own_version() -> None:
    made = server(LABELS[-1])
    async with client(made, HANDSHAKES[0]) as oldest, client(made, HANDSHAKES[-1]) as newest:
        old, new = await oldest.result("prompts/list"), await newest.result("prompts/list")

    assert (HANDSHAKES[0], HANDSHAKES[-1]) == (
        oldest.initialized["protocolVersion"],
        newest.initialized["protocolVersion"],
    )
    assert old == new


@spec("2025-06-18", "basic/index#meta", "248bd872")
@spec("2026-07-28", "schema#metaobject", "87f2ed77")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize("value", ["null", "7", '"x"', "[]", '{"a":{}}'])
async def test_reserved_metadata_that_the_revision_does_not_define_may_have_any_value(
    value: str, revision: str
) -> None:
    keys = ("io.modelcontextprotocol/future", "modelcontextprotocol.io/x", "tools.mcp.com/y")
    async with client(server(LABELS[-1]), revision) as peer:
        result = await peer.result("tools/list", meta=",".join(f'"{key}":{value}' for key in keys))

    assert result["tools"]
