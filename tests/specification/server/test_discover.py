"""`server/discover`, and the hints for caches that come with it and with lists."""

from __future__ import annotations

import pytest

from tests.harness.server_wire import connected
from tests.specification.citation import LABELS, from_every_home, since, spec, without_handshakes
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation", "6c283d2b")
@spec("2026-07-28", "changelog#major-changes", "22d71a47")
@spec("2026-07-28", "schema#discoverrequest", "1445bf89")
@spec("2026-07-28", "server/discover", "1d71c26b")
@spec("2026-07-28", "server/discover#response")
async def test_discovery_tells_versions_capabilities_and_name() -> None:
    async with connected(server(LABELS[-1], revisions=since("2025-11-25", None))) as wire:
        said = await wire.say(
            b'{"jsonrpc":"2.0","id":"discover-1","method":"server/discover","params":{"_meta":{'
            b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
            b'"io.modelcontextprotocol/clientInfo":{"name":"ExampleClient","version":"1.0.0"},'
            b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
        )

    assert [
        {
            "jsonrpc": "2.0",
            "id": "discover-1",
            "result": {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28", "2025-11-25"],
                "capabilities": {
                    "completions": {},
                    "logging": {},
                    "prompts": {"listChanged": True},
                    "resources": {"listChanged": True, "subscribe": True},
                    "tools": {"listChanged": True},
                },
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1"}},
            },
        }
    ] == said


@spec("2026-07-28", "server/discover#response")
@without_handshakes
@from_every_home
async def test_discovery_is_served_whatever_revision_the_handlers_are_written_in(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result("server/discover")

    assert LABELS[::-1] == result["supportedVersions"]
    assert {"tools", "prompts", "resources", "logging"} <= set(result["capabilities"])


@spec("2026-07-28", "server/discover#discoverresult")
@without_handshakes
async def test_the_instructions_come_with_discovery(revision: str) -> None:
    made = server(LABELS[-1])
    made._engine.handlers._instructions = "This server provides weather and resource utilities."
    async with client(made, revision) as peer:
        result = await peer.result("server/discover")

    assert "This server provides weather and resource utilities." == result["instructions"]


@spec("2026-07-28", "server/discover#when-to-call")
@without_handshakes
async def test_nobody_has_to_discover_before_asking_and_everybody_may_at_any_time(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.result("tools/list")
        first = await peer.result("server/discover")
        second = await peer.result("server/discover")

    assert first == second


@spec(
    "2026-07-28",
    "server/utilities/caching#cacheable-results",
    "6b320458",
    "c2ecfaeb",
    "6c8e37a4",
    "86cc5b52",
    "37b414f1",
    "bdc2196a",
)
@without_handshakes
@from_every_home
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", ""),
        ("tools/list", ""),
        ("tools/list", '"cursor":"second"'),
        ("prompts/list", ""),
        ("resources/list", ""),
        ("resources/templates/list", ""),
        ("resources/read", '"uri":"note://a"'),
    ],
)
async def test_what_may_be_cached_says_for_how_long_and_by_whom(
    method: str, params: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result(method, params)

    assert (0, "private") == (result["ttlMs"], result["cacheScope"])


@spec("2026-07-28", "server/utilities/caching#cacheable-results")
@without_handshakes
@from_every_home
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", '"name":"echo"'),
        ("prompts/get", '"name":"review","arguments":{"code":"x"}'),
    ],
)
async def test_what_may_not_be_cached_says_nothing_about_it(
    method: str, params: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result(method, params)

    assert "complete" == result["resultType"]
    assert not {"ttlMs", "cacheScope"} & set(result)
