"""Several messages in one frame: in 2025-03-26, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.server_wire import connected
from tests.specification.citation import LABELS, from_every_home, spec
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio

BATCHING = "2025-03-26"
without_batches = pytest.mark.parametrize("revision", [each for each in LABELS if each != BATCHING])
PINGS = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"2","method":"ping"}]'


def by_id(batch: list[Any]) -> dict[Any, Any]:
    return {each.get("id"): each for each in batch}


@spec("2025-03-26", "basic/index#batching", "c3f107eb")
async def test_a_batch_is_answered_by_a_batch() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        (said,) = await peer.wire.say(PINGS)

    assert {1: {"jsonrpc": "2.0", "id": 1, "result": {}}, "2": {"jsonrpc": "2.0", "id": "2", "result": {}}} == by_id(
        said
    )


@spec("2025-03-26", "basic/index#batching")
@from_every_home
async def test_the_answers_of_a_batch_wait_for_the_slowest(native_revision: str) -> None:
    own = handlers(native_revision)
    async with client(server(native_revision, own=own), BATCHING) as peer:
        calls = peer.request(1, "tools/call", '"name":"wait"') + b"," + peer.request(2, "tools/call", '"name":"echo"')
        assert [] == await peer.wire.say(b"[" + calls + b"]")

        own.gate.set()
        (said,) = await peer.wire.rest()

    assert {1, 2} == set(by_id(said))


@spec("2025-03-26", "basic/index#batching")
async def test_what_handlers_tell_meanwhile_is_not_part_of_the_batch() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        call = peer.request(1, "tools/call", '"name":"progress"', '"progressToken":1')
        *progress, said = await peer.wire.say(b"[" + call + b"]")

    assert ["notifications/progress"] * 2 == [each["method"] for each in progress]
    assert [1] == [each["id"] for each in said]


@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_of_notifications_is_not_answered() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        said = await peer.wire.say(
            b'[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},'
            b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]'
        )

    assert [] == said


@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_with_one_request_is_answered_by_a_batch_of_one() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        said = await peer.wire.say(
            b'[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":3,"method":"ping"}]'
        )

    assert [[{"jsonrpc": "2.0", "id": 3, "result": {}}]] == said


@spec("2025-03-26", "basic/index#batching")
async def test_each_message_of_a_batch_fails_by_itself() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        (said,) = await peer.wire.say(
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"no/such"},'
            b'{"jsonrpc":"1.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}]'
        )

    found = {identity: each.get("error", {}).get("code") for identity, each in by_id(said).items()}
    assert {1: None, 2: -32601, 3: -32600, 4: -32602} == found


@spec("2025-03-26", "basic/index#batching")
async def test_a_cancelled_request_is_left_out_of_the_answer_to_its_batch() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        calls = peer.request(1, "tools/call", '"name":"wait"') + b"," + peer.request(2, "tools/call", '"name":"echo"')
        assert [] == await peer.wire.say(b"[" + calls + b"]")

        (said,) = await peer.wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')

    assert [2] == [each["id"] for each in said]


@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_of_which_everything_is_cancelled_is_not_answered() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        await peer.wire.say(b"[" + peer.request(1, "tools/call", '"name":"wait"') + b"]")
        said = await peer.wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')

    assert [] == said


@spec("2025-03-26", "basic/index#batching")
async def test_a_request_that_its_own_batch_cancels_is_not_answered() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    async with client(server(LABELS[-1]), BATCHING) as peer:
        said = await peer.wire.say(b"[" + peer.request(1, "tools/call", '"name":"echo"') + b"," + cancel + b"]")

    assert [] == said


@spec("2025-03-26", "basic/index#batching")
async def test_the_client_may_answer_questions_in_a_batch() -> None:
    async with client(server(LABELS[-1]), BATCHING, '{"roots":{},"sampling":{}}') as peer:
        asked = await peer.wire.say(
            peer.request(1, "tools/call", '"name":"roots"'), peer.request(2, "tools/call", '"name":"roots"')
        )
        answers = [{"jsonrpc": "2.0", "id": each["id"], "result": {"roots": []}} for each in asked]
        said = await peer.wire.say(json.dumps(answers).encode())

    assert [1, 2] == [each["id"] for each in said]


@spec("2025-03-26", "basic/index#batching")
async def test_an_empty_batch_is_no_request() -> None:
    """JSON-RPC would have an error with the id null, which 2025-03-26 does not allow: nothing valid can be said."""
    async with client(server(LABELS[-1]), BATCHING) as peer:
        assert [] == await peer.wire.say(b"[]")
        assert {} == await peer.result("ping")


@spec("2025-03-26", "basic/lifecycle#initialization", "5374125b")
async def test_initialize_may_not_be_part_of_a_batch() -> None:
    async with connected(server(LABELS[-1])) as wire:
        said = await wire.say(
            b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
            b'"clientInfo":{"name":"c","version":"1"}}}]'
        )

    (refused,) = said
    assert -32600 == refused["error"]["code"]


@spec("2025-03-26", "basic/lifecycle#initialization")
async def test_initialize_may_not_be_part_of_a_later_batch_either() -> None:
    async with client(server(LABELS[-1]), BATCHING) as peer:
        ((refused,),) = await peer.wire.say(
            b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
            b'"clientInfo":{"name":"c","version":"1"}}}]'
        )

    assert -32600 == refused["error"]["code"]


@spec("2024-11-05", "basic/messages#requests")
@spec("2025-06-18", "basic/index#messages")
@spec("2025-11-25", "basic/index#messages")
@spec("2026-07-28", "basic/index#messages")
@without_batches
async def test_a_revision_without_batches_refuses_each_request_of_one(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        said = await peer.wire.say(b"[" + peer.request(1, "tools/list") + b"," + peer.request("2", "tools/list") + b"]")

    assert {1: -32600, "2": -32600} == {each["id"]: each["error"]["code"] for each in said}
