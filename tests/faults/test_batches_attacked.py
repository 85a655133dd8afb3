"""Batches that are long, nested, mixed, that cancel themselves, that hold what may not be in a batch.

Spec: 2025-03-26, basic/index, "Batching"; JSON-RPC 2.0, "Batch".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgen import Limits
from tests.faults.event_loop_turns import unjudged
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import Client, client

pytestmark = pytest.mark.anyio

WITH_BATCHES = "2025-03-26"


def item(identity: object, tool: str = "echo") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": tool}}


def cancelled(identity: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}}


async def say(peer: Client, *items: object) -> list[Any]:
    return await peer.wire.say(json.dumps(items).encode())


@pytest.mark.slow
async def test_a_thousand_items_of_all_kinds_are_answered_by_one_batch() -> None:
    kinds: list[Any] = [
        1,
        None,
        [],
        {},
        "x",
        {"jsonrpc": "1.0", "id": "old", "method": "ping"},
        {"jsonrpc": "2.0", "id": [], "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 4711, "result": {}},
    ]
    async with unjudged(Guest().server, WITH_BATCHES) as peer:
        items = [item(each) if each % 2 else kinds[each % len(kinds)] for each in range(1, 1001)]
        said = await say(peer, *items)

        assert 1 == len(said)
        assert [*range(1, 1001, 2)] == [each["id"] for each in said[0] if "result" in each]
        assert {"old"} >= {each["id"] for each in said[0] if "error" in each}


async def test_a_batch_that_is_too_long_is_refused_as_a_whole() -> None:
    guest = Guest()
    async with unjudged(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, *(item(each, "wait") for each in range(1001)))
        assert 0 == guest.waiting


async def test_a_batch_within_a_batch_is_no_message() -> None:
    guest = Guest()
    async with unjudged(guest.server, WITH_BATCHES) as peer:
        said = await say(peer, [item(1, "wait")], item(2), [[item(3, "wait")]])

        assert [2] == [each["id"] for each in said[0]]
        assert 0 == guest.waiting


async def test_a_batch_may_cancel_its_own_items_before_and_after_they_come() -> None:
    guest = Guest()
    async with client(guest.server, WITH_BATCHES) as peer:
        said = await say(peer, cancelled(1), item(1, "wait"), cancelled(1), item(2), item(3, "wait"), cancelled(3))

        assert [[2]] == [[each["id"] for each in batch] for batch in said]
        assert (0, 2) == (guest.waiting, guest.given_up)


async def test_an_item_that_is_cancelled_and_asked_again_within_a_batch_is_answered_once() -> None:
    guest = Guest()
    async with client(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, item(1, "wait"), cancelled(1), item(1, "wait"))
        guest.gate.set()

        assert [[1]] == [[each["id"] for each in batch] for batch in await peer.wire.rest()]


async def test_one_id_twice_in_a_batch_is_served_once() -> None:
    guest = Guest()
    async with client(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, item(1, "wait"), item(1, "wait"), item(1))
        assert 1 == guest.waiting
        guest.gate.set()
        (batch,) = await peer.wire.rest()

        assert [1, 1, 1] == [each["id"] for each in batch]
        assert 1 == len([each for each in batch if "result" in each])


async def test_two_batches_at_once_are_answered_each_by_its_own() -> None:
    guest = Guest()
    async with client(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, item(1, "wait"), item(2))
        assert [] == await say(peer, item(3, "wait"), item(4))
        guest.gate.set()

        assert [[2, 1], [4, 3]] == [[each["id"] for each in batch] for batch in await peer.wire.rest()]


async def test_a_batch_counts_item_by_item_among_the_open_requests() -> None:
    guest = Guest(limits=Limits(max_in_flight=3))
    async with client(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, *(item(each, "wait") for each in range(10)))
        assert 3 == guest.waiting
        guest.gate.set()
        (batch,) = await peer.wire.rest()

        assert 3 == len([each for each in batch if "result" in each])
        assert 7 == len([each for each in batch if "error" in each])


async def test_a_client_that_leaves_within_a_batch_leaves_nothing_behind() -> None:
    guest = Guest()
    async with client(guest.server, WITH_BATCHES) as peer:
        assert [] == await say(peer, item(1, "wait"), item(2), item(3, "wait"))
        peer.wire.connection.close()
        await peer.wire.rest()

        assert (0, 2) == (guest.waiting, guest.given_up)


@pytest.mark.parametrize("where", [0, 1])
async def test_a_handshake_within_a_batch_shakes_no_hands(where: int) -> None:
    params = {"protocolVersion": WITH_BATCHES, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    items: list[Any] = [item(1), item(2)]
    items.insert(where, {"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": params})
    guest = Guest()
    async with unjudged(guest.server, "2026-07-28") as peer:
        said = await say(peer, *items)

        assert {-32600} == {each["error"]["code"] for each in said}
        assert peer.wire.connection.session.peer is None


async def test_a_stateless_request_within_a_batch_is_refused() -> None:
    guest = Guest()
    async with client(guest.server, "2026-07-28") as modern, client(guest.server, WITH_BATCHES) as peer:
        said = await say(peer, item(1), json.loads(modern.request(2, "tools/call", '"name":"wait"')))

        # Not as part of a batch, of which its revision knows nothing.
        assert [2, [1]] == [each["id"] if isinstance(each, dict) else [one["id"] for one in each] for each in said]
        assert -32600 == said[0]["error"]["code"]
        assert 0 == guest.waiting


async def test_where_there_are_no_batches_nothing_of_one_is_done(revision: str) -> None:
    guest = Guest()
    if revision == WITH_BATCHES:
        return
    async with unjudged(guest.server, revision) as peer:
        await peer.call("wait")
        requests = [json.loads(peer.request(each, "tools/call", '"name":"wait"')) for each in range(10, 20)]
        said = await say(peer, *requests, cancelled(1))

        assert [(each, -32600) for each in range(10, 20)] == [(each["id"], each["error"]["code"]) for each in said]
        assert 1 == guest.waiting
