"""Both eras on one pipe: neither borrows from the other what it was not given.

Spec: 2026-07-28, basic/index, "Statelessness"; basic/versioning.
"""

from __future__ import annotations

import json

import pytest

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.protocol.newest import NEWEST
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import Client, client

pytestmark = pytest.mark.anyio

HANDSHAKES = [each.label for each in REVISIONS if each.era == "handshake"]
CAN = '{"elicitation":{},"roots":{},"sampling":{}}'


def stateless(session: Client, capabilities: str = "{}", revision: str = NEWEST) -> Client:
    """Return a stateless client on the pipe of *session*."""
    return Client(session.wire, revision, capabilities)


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_stateless_request_does_not_borrow_the_capabilities_of_the_session(revision: str) -> None:
    async with client(Guest().server, revision, CAN) as peer:
        said = await peer.wire.say(stateless(peer).request("s", "tools/call", '"name":"ask"'))

        assert -32021 == said[-1]["error"]["code"]
        assert {} == dict(peer.wire.connection.session.server_requests)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_the_session_does_not_borrow_the_capabilities_of_a_stateless_request(revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        modern = stateless(peer, CAN)
        await peer.wire.say(modern.request("s", "tools/call", '"name":"ask"'))
        meta = f'"io.modelcontextprotocol/clientCapabilities":{CAN}'
        said = await peer.ask("tools/call", '"name":"ask"', meta)

        assert "error" in said[-1] or said[-1]["result"]["isError"]
        assert {} == dict(peer.wire.connection.session.server_requests)


@pytest.mark.parametrize("named", [*HANDSHAKES, "2026-07-27", "", "9999-99-99", "2026-07-28 ", "\uff12026-07-28"])
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_no_request_names_a_revision_that_is_not_its_own(named: str, revision: str) -> None:
    async with client(Guest().server, revision, CAN) as peer:
        said = await peer.wire.say(
            stateless(peer, CAN, NEWEST)
            .request("s", "tools/call", '"name":"echo"')
            .replace(NEWEST.encode(), named.encode())
        )

        assert -32022 == said[-1]["error"]["code"]
        assert peer.revision == peer.wire.connection.session.revision


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_stateless_initialize_does_not_change_the_session(revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        other = next(each for each in HANDSHAKES if each != revision)
        params = f'"protocolVersion":"{other}","capabilities":{CAN},"clientInfo":{{"name":"x","version":"1"}}'
        (said,) = await peer.wire.say(stateless(peer).request("s", "initialize", params))

        assert "error" in said
        assert revision == peer.wire.connection.session.revision
        agreed = peer.wire.connection.session.peer
        assert agreed is not None
        assert not agreed.declared


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_stateless_request_has_no_session_to_log_watch_or_be_told_by(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        await peer.ask("logging/setLevel", '"level":"debug"')
        modern = stateless(peer)
        said = await peer.wire.say(modern.request("s", "tools/call", '"name":"log","arguments":{"count":3}'))
        assert ["s"] == [each["id"] for each in said]
        for method, params in (("resources/subscribe", '"uri":"x:y"'), ("logging/setLevel", '"level":"error"')):
            said = await peer.wire.say(modern.request("s", method, params))
            assert -32601 == said[-1]["error"]["code"]
        said = await peer.call("log", '{"count":1}')

        assert "notifications/message" == said[0]["method"]
        assert {} == peer.wire.connection.session.subscriptions.uris


async def test_ids_of_both_eras_are_those_of_one_pipe() -> None:
    guest = Guest()
    async with client(guest.server, "2025-11-25") as peer:
        await peer.call("wait")
        said = await peer.wire.say(stateless(peer).request(1, "tools/call", '"name":"wait"'))

        assert [(1, -32600)] == [(each["id"], each["error"]["code"]) for each in said]
        assert 1 == guest.waiting


async def test_before_the_handshake_nothing_but_a_ping_is_served() -> None:
    guest = Guest()
    async with client(guest.server, NEWEST) as peer:
        for method in ("tools/call", "tools/list", "resources/subscribe", "logging/setLevel", "tasks/list", "x"):
            frame = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": {"name": "wait"}}).encode()
            said = await peer.wire.say(frame)
            assert "error" in said[-1], method

        assert 0 == guest.waiting
        assert peer.wire.connection.session.peer is None


async def test_metadata_of_the_wrong_types_opens_no_door() -> None:
    async with client(Guest().server, "2025-06-18", "{}") as peer:
        for named in ("null", "1", "[]", "{}", "true", '["2026-07-28"]'):
            meta = (
                f'"io.modelcontextprotocol/protocolVersion":{named},"io.modelcontextprotocol/clientCapabilities":{CAN}'
            )
            said = await peer.ask("tools/call", '"name":"ask"', meta)
            assert "error" in said[-1] or said[-1]["result"]["isError"], named

        assert {} == dict(peer.wire.connection.session.server_requests)
