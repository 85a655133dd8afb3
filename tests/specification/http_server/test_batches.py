"""Several messages in one body: at 2025-03-26, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.limits import Limits
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, Caller, caller, cancellation, initialize
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.revision_sets import BATCHING, SESSIONS, on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

ROOTS = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'


def batch(*messages: bytes) -> bytes:
    return b"[" + b",".join(messages) + b"]"


def responses(said: list[Any]) -> dict[Any, Any]:
    """Return the responses by id, be they in batches or not."""
    flat = [each for one in said for each in (one if isinstance(one, list) else [one])]
    return {each["id"]: each for each in flat if "method" not in each}


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "6978949a", "fa9b0756")
@spec("2025-03-26", "basic/index#batching", "c3f107eb")
@on_both_loops
async def test_requests_in_a_batch_are_all_answered() -> None:
    async with caller(demo(), BATCHING) as peer:
        answer = peer.post(batch(peer.request(1, "ping"), peer.request("2", "tools/list"), ROOTS))
        said = await answer.messages()

    assert 200 == answer.status
    assert {1, "2"} == set(responses(said))
    assert {} == responses(said)[1]["result"]


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "fa9b0756", "2720a5de")
@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_is_answered_by_a_batch() -> None:
    async with caller(demo(), BATCHING) as peer:
        answer = await peer.post(batch(peer.request(1, "ping"))).complete()

    assert [{"jsonrpc": "2.0", "id": 1, "result": {}}] == answer.json


@spec("2025-03-26", "basic/index#batching")
@on_both_loops
async def test_a_request_that_its_own_batch_cancels_is_not_answered() -> None:
    async with caller(demo(), BATCHING) as peer:
        call = peer.request(1, "tools/call", '"name":"echo"')
        said = await peer.post(batch(call, cancellation(1), peer.request(2, "ping"))).messages()

    assert [2] == list(responses(said))


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "2720a5de")
@on_both_loops
async def test_a_batch_that_cancels_all_its_requests_gets_a_stream_without_responses() -> None:
    async with caller(demo(), BATCHING) as peer:
        call = peer.request(1, "tools/call", '"name":"echo"')
        answer = await peer.post(batch(call, cancellation(1))).complete()

    assert (200, "text/event-stream") == (answer.status, answer.header("content-type"))
    assert b"" == answer.body


@spec("2025-03-26", "basic/index#batching")
@pytest.mark.parametrize("others", [["ping"], ["tools/list"], ["ping", "tools/list"]], ids=str)
@pytest.mark.parametrize("is_first", [True, False])
@on_both_loops
async def test_one_of_another_era_in_a_batch_costs_the_others_nothing(others: list[str], *, is_first: bool) -> None:
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    stranger = f'{{"jsonrpc":"2.0","id":"s","method":"ping","params":{{{meta}}}}}'.encode()
    async with caller(demo(), BATCHING) as peer:
        own = [peer.request(number, method) for number, method in enumerate(others)]
        said = await peer.post(batch(*([stranger, *own] if is_first else [*own, stranger]))).messages()

    found = responses(said)
    assert "error" in found.pop("s")
    assert all("result" in each for each in found.values())
    assert set(range(len(others))) == set(found)


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "0e8859e4")
@pytest.mark.parametrize(
    "body",
    [
        batch(ROOTS),
        batch(ROOTS, cancellation(9)),
        batch(b'{"jsonrpc":"2.0","id":9,"result":{}}'),
        batch(b'{"jsonrpc":"2.0","id":9,"result":{}}', b'{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":""}}'),
    ],
)
async def test_a_batch_without_requests_is_accepted_without_a_body(body: bytes) -> None:
    async with caller(demo(), BATCHING) as peer:
        answer = await peer.post(body).complete()

    assert (202, b"") == (answer.status, answer.body)


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "2720a5de", "8dd94f61", "a3bb8391", "389474aa")
async def test_what_is_told_meanwhile_makes_it_a_stream_that_ends_after_all_responses() -> None:
    own = behaviour()
    async with caller(demo(own), BATCHING) as peer:
        steps = peer.request(1, "tools/call", '"name":"steps"', '"progressToken":"p"')
        answer = peer.post(batch(steps, peer.request(2, "tools/call", '"name":"echo"')))
        assert "notifications/progress" == (await answer.message())["method"]

        own.gate.set()
        said = await answer.messages()

    assert {1, 2} == set(responses(said))


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
async def test_questions_of_a_batch_are_answered_in_a_batch() -> None:
    async with caller(demo(), BATCHING, '{"roots":{}}') as peer:
        answer = peer.post(batch(*(peer.request(each, "tools/call", '"name":"roots"') for each in (1, 2))))
        asked = [await answer.message() for _ in range(2)]
        replies = [{"jsonrpc": "2.0", "id": each["id"], "result": {"roots": []}} for each in asked]
        accepted = await peer.post(json.dumps(replies).encode()).complete()
        said = await answer.messages()

    assert 202 == accepted.status
    assert {1, 2} == set(responses(said))


@spec("2025-03-26", "basic/index#batching")
async def test_each_message_of_a_batch_fails_by_itself() -> None:
    async with caller(demo(), BATCHING) as peer:
        answer = peer.post(batch(peer.request(1, "ping"), peer.request(2, "no/such"), b'{"jsonrpc":"1.0","id":3}'))
        found = responses(await answer.messages())

    assert {1: None, 2: -32601, 3: -32600} == {key: each.get("error", {}).get("code") for key, each in found.items()}


@spec("2025-03-26", "basic/utilities/cancellation#behavior-requirements")
async def test_a_cancelled_request_is_left_out_and_the_rest_is_answered() -> None:
    own = behaviour()
    async with caller(demo(own), BATCHING) as peer:
        wait = peer.request(1, "tools/call", '"name":"wait"')
        answer = peer.post(batch(wait, peer.request(2, "tools/call", '"name":"echo"')))
        await peer.web.quiet()
        await peer.tell(cancellation(1))
        said = await answer.messages()

    assert [2] == list(responses(said))


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize("body", [b"[]", b"[[]]", b"[1]", b"[null]"])
async def test_a_batch_of_nothing_is_a_bad_request(body: bytes) -> None:
    async with caller(demo(), BATCHING) as peer:
        answer = await peer.post(body).complete()

    assert 400 == answer.status


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "9b45b5d7")
@pytest.mark.parametrize(
    "others", [[], [b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}'], [b"1"]]
)
async def test_a_batch_of_which_nothing_is_accepted_is_refused(others: list[bytes]) -> None:
    two_outcomes = b'{"jsonrpc":"2.0","id":9,"result":{},"error":{"code":1,"message":""}}'
    async with caller(demo(), BATCHING) as peer:
        refused = await peer.post(batch(two_outcomes, *others)).complete()
        accepted = await peer.post(batch(two_outcomes, *others, ROOTS)).complete()

    assert (400, 202) == (refused.status, accepted.status)
    assert "id" not in refused.json


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server", "9b45b5d7")
@pytest.mark.parametrize(
    "invalid",
    [
        '"result":{},"error":{"code":1,"message":""}',
        '"result":5',
        pytest.param(
            '"params":{}', marks=pytest.mark.skipif(WORKERS > 1, reason="another worker takes it for a request")
        ),
    ],
)
@pytest.mark.parametrize("is_alone", [False, True], ids=["batch", "alone"])
async def test_an_invalid_answer_that_is_refused_fails_its_question(invalid: str, *, is_alone: bool) -> None:
    async with caller(demo(), BATCHING, '{"roots":{}}') as peer:
        answer = peer.post(peer.request(1, "tools/call", '"name":"roots"'))
        asked = await answer.message()
        body = f'{{"jsonrpc":"2.0","id":{asked["id"]},{invalid}}}'.encode()
        refused = await peer.post(body if is_alone else batch(body)).complete()
        said = await answer.messages()

    assert 400 == refused.status
    assert [1] == list(responses(said))


@spec("2025-03-26", "basic/lifecycle#initialization", "5374125b")
async def test_initialize_is_not_part_of_a_batch() -> None:
    async with site(demo()) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], batch(initialize(BATCHING)))

    assert 400 == answer.status
    assert None is answer.header("mcp-session-id")


@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "33cba7d4")
@pytest.mark.parametrize("revision", [each for each in SESSIONS if each != BATCHING])
async def test_later_revisions_refuse_batches(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        answers = [
            await peer.post(batch(peer.request(1, "tools/call", '"name":"wait"'))).complete(),
            await peer.post(batch(ROOTS)).complete(),
            await peer.post(batch(b'{"jsonrpc":"2.0","id":9,"result":{}}')).complete(),
            await peer.post(b"[]").complete(),
        ]

    assert [400] * 4 == [each.status for each in answers]
    assert not own.waiting.is_set()


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
async def test_the_stateless_era_has_no_batches(revisions: list[str] | None) -> None:
    own = behaviour()
    async with site(demo(own, revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/call", '"name":"wait"')
        answers = [
            await peer.post(batch(body), peer.lines(body)).complete(),
            await peer.post(batch(body, peer.request(2, "tools/list")), peer.lines(body)).complete(),
        ]

    assert [400, 400] == [each.status for each in answers]
    assert not own.waiting.is_set()


@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_has_a_greatest_length() -> None:
    made = Server("demo", handlers=behaviour(), limits=Limits(max_batch_length=3))
    async with caller(made, BATCHING) as peer:
        fits = await peer.post(batch(*(peer.request(each, "ping") for each in range(1, 4)))).complete()
        answer = peer.post(batch(*(peer.request(each, "ping") for each in range(11, 15))))
        await answer.complete()

    assert 200 == fits.status
    assert 400 == answer.status or all("error" in each for each in responses(await answer.messages()).values())
