"""Handshake: who says what before a session is open, and what is agreed on."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import Context, Server
from tests.harness.server_wire import connected
from tests.specification.citation import HANDSHAKES, LABELS, STATELESS, from_every_home, spec, with_handshakes
from tests.specification.server.revision_client import Client, client
from tests.specification.server.revision_server import CAPABILITIES, handlers, server

pytestmark = pytest.mark.anyio

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def initialize(revision: str, capabilities: str = "{}", identity: int = 1) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"%s",'
        b'"capabilities":%s,"clientInfo":{"name":"ExampleClient","version":"1.0.0"}}}'
        % (identity, revision.encode(), capabilities.encode())
    )


@spec("2025-11-25", "basic/lifecycle#version-negotiation", "b48616c7")
@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization", "ecd8f97f")
@with_handshakes
@from_every_home
async def test_the_server_answers_initialize_with_its_version_capabilities_and_name(
    native_revision: str, revision: str
) -> None:
    async with connected(server(native_revision)) as wire:
        said = await wire.say(initialize(revision))

    # 2024-11-05 has no capability for completions, so its clients are not told of any.
    without = {"completions"} if revision == LABELS[0] else set()
    assert [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": revision,
                "capabilities": {key: each for key, each in CAPABILITIES.items() if key not in without},
                "serverInfo": {"name": "demo", "version": "1"},
            },
        }
    ] == said


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
@spec("2025-11-25", "basic/lifecycle#version-negotiation", "c7a28fd1", "3a8b091c")
@with_handshakes
@pytest.mark.parametrize("offered", ["1999-01-01", "2099-01-01", "", "draft"])
async def test_a_version_that_is_not_served_is_answered_with_the_newest_one_that_is(
    offered: str, revision: str
) -> None:
    served = HANDSHAKES[: HANDSHAKES.index(revision) + 1]
    async with connected(server(LABELS[-1], revisions=served)) as wire:
        (said,) = await wire.say(initialize(offered))

    assert revision == said["result"]["protocolVersion"]


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
async def test_a_version_without_a_handshake_cannot_be_agreed_on() -> None:
    async with connected(server(LABELS[-1])) as wire:
        (said,) = await wire.say(initialize("2026-07-28"))

    assert HANDSHAKES[-1] == said["result"]["protocolVersion"]


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
async def test_the_instructions_come_with_the_handshake(revision: str) -> None:
    made = server(LABELS[-1])
    made._engine.handlers._instructions = "Optional instructions for the client"
    async with client(made, revision) as peer:
        assert "Optional instructions for the client" == peer.initialized["instructions"]


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/utilities/ping#behavior-requirements")
async def test_a_ping_is_answered_before_the_handshake() -> None:
    async with connected(server(LABELS[-1])) as wire:
        assert [{"jsonrpc": "2.0", "id": 7, "result": {}}] == await wire.say(PING)


@spec("2024-11-05", "basic/lifecycle#lifecycle-phases")
@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@with_handshakes
async def test_nothing_but_a_ping_is_served_before_the_handshake(revision: str) -> None:
    async with connected(server(LABELS[-1], revisions=[revision])) as wire:
        said = await wire.say(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}', PING)

    assert [(2, "error"), (7, "result")] == [(each["id"], sorted(each)[0 if "error" in each else -1]) for each in said]


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization", "ba0f6380")
@with_handshakes
async def test_the_server_asks_nothing_before_the_client_is_initialized(revision: str) -> None:
    """The client may already ask after the response, so that a handler may run which wants to ask back."""
    async with connected(server(LABELS[-1])) as wire:
        await wire.say(initialize(revision, '{"roots":{}}'))
        call = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"roots","arguments":{}}}'
        (said,) = await wire.say(call)

        assert said["result"]["isError"]

        await wire.say(INITIALIZED)
        (said,) = await wire.say(call.replace(b":2,", b":3,"))

        assert "roots/list" == said["method"]


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
async def test_another_initialize_begins_a_session_in_its_own_revision(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(initialize(HANDSHAKES[0], identity=2))

        assert HANDSHAKES[0] == said["result"]["protocolVersion"]
        assert {"tools"} <= set(await peer.result("tools/list"))


@spec("2025-11-25", "basic/index#requests", "727cb8ce")
@with_handshakes
async def test_another_initialize_with_the_id_of_a_pending_request_is_refused_and_the_session_goes_on(
    revision: str,
) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        stateless = Client(peer.wire, STATELESS[-1], "{}")
        await peer.wire.say(stateless.request(7, "subscriptions/listen", '"notifications":{}'))
        (said,) = await peer.wire.say(initialize(HANDSHAKES[0], identity=7))

        assert -32600 == said["error"]["code"]
        assert {"tools"} <= set(await peer.result("tools/list"))


def _call(tool: str, identity: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}' % (identity, tool.encode())


@spec("2025-11-25", "basic/lifecycle#initialization")
async def test_another_initialize_ends_what_the_session_before_has_open() -> None:
    own = Server("own")
    ended: list[str] = []
    failures: list[BaseException] = []

    @own.tool
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("wait")

    @own.tool
    async def ask(context: Context) -> None:
        try:
            await context.roots()
        except BaseException as failure:
            failures.append(failure)
            raise

    @own.resource("a://b")
    def read() -> str:
        return ""

    async with connected(own) as wire:
        await wire.say(initialize("2025-11-25", capabilities='{"roots":{}}'))
        await wire.say(INITIALIZED)
        await wire.say(b'{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"a://b"}}')
        await wire.say(_call("wait", 8))
        (asked,) = await wire.say(_call("ask", 9))
        (said,) = await wire.say(initialize("2025-06-18", identity=8))
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"roots":[]}}' % asked["id"]
        later = await wire.say(INITIALIZED, answer)
        await own.resource_updated("a://b")
        listed = await wire.say(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
        kept = wire.connection.session.kept_bytes
    async with connected(own) as wire:
        await wire.say(initialize("2025-06-18"))
        alone = wire.connection.session.kept_bytes

    assert "roots/list" == asked["method"]
    assert (8, "2025-06-18") == (said["id"], said["result"]["protocolVersion"])
    assert alone == kept
    assert ["wait"] == ended
    assert 1 == len(failures)
    assert [] == later
    assert [{"jsonrpc": "2.0", "id": 9, "result": {}}] == listed


@spec("2025-11-25", "basic/lifecycle#error-handling")
@pytest.mark.parametrize(
    "params",
    [
        b'{"capabilities":{},"clientInfo":{"name":"c","version":"1"}}',
        b'{"protocolVersion":20251125,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}',
    ],
)
async def test_a_handshake_that_is_malformed_can_be_tried_again(params: bytes) -> None:
    async with connected(server(LABELS[-1])) as wire:
        (refused,) = await wire.say(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":%s}' % params)
        (agreed,) = await wire.say(initialize("2025-11-25", identity=2))

    assert -32602 == refused["error"]["code"]
    assert "2025-11-25" == agreed["result"]["protocolVersion"]


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation", "fd7099db")
@with_handshakes
@pytest.mark.parametrize(
    ("capability", "method", "params"),
    [
        ("tools", "tools/list", ""),
        ("tools", "tools/call", '"name":"echo"'),
        ("prompts", "prompts/list", ""),
        ("prompts", "prompts/get", '"name":"review"'),
        ("resources", "resources/list", ""),
        ("resources", "resources/templates/list", ""),
        ("resources", "resources/read", '"uri":"note://a"'),
        ("resources", "resources/subscribe", '"uri":"note://a"'),
        ("logging", "logging/setLevel", '"level":"info"'),
    ],
)
async def test_what_is_not_declared_is_not_served(capability: str, method: str, params: str, revision: str) -> None:
    declared: dict[str, Any] = {key: each for key, each in CAPABILITIES.items() if key != capability}
    async with client(server(LABELS[-1], capabilities=declared), revision) as peer:
        assert capability not in peer.initialized["capabilities"]
        assert -32601 == (await peer.error(method, params))["code"]


@spec("2024-11-05", "basic/lifecycle#operation", "d0aeb98c")
@spec("2025-11-25", "basic/lifecycle#operation", "c015e46d")
@with_handshakes
async def test_a_session_is_served_by_the_version_that_was_agreed_on_whatever_a_client_declares(revision: str) -> None:
    """A client may declare what only later revisions know; it is served in its own."""
    newer = '{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"tasks":{"list":{}},"x":{}}'
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision, newer) as peer:
        await peer.call("ask_url")
        await peer.call("sample_with_tools")
        await peer.call("echo")

    assert "echo" == own.seen["tools/call"].name  # what was said meanwhile the recorder has judged


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions", "8e11aa32")
async def test_a_server_without_handshakes_names_its_versions_to_a_client_that_wants_one() -> None:
    async with connected(server(LABELS[-1], revisions=["2026-07-28"])) as wire:
        (said,) = await wire.say(initialize("2025-11-25"))

    assert -32022 == said["error"]["code"]
    assert {"supported": ["2026-07-28"], "requested": "2025-11-25"} == said["error"]["data"]
    assert "2026-07-28" in json.dumps(said["error"]["message"])
