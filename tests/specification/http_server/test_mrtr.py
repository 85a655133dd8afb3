"""Demands for input over HTTP: an answer and a retry, each an exchange of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.specification.http_server.http_clients import STATELESS, Caller, caller
from tests.specification.http_server.revision_sets import NEWEST, on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

ABLE = '{"elicitation":{},"roots":{},"sampling":{}}'
ACCEPTED = '{"action":"accept","content":{"name":"octocat"}}'


def retry(demand: Any, params: str, answer: str = ACCEPTED) -> str:
    """Return the members of the retry that answers *demand*."""
    ((key, _),) = demand["result"]["inputRequests"].items()
    state = demand["result"]["requestState"]
    return f'{params},"requestState":{json.dumps(state)},"inputResponses":{{{json.dumps(key)}:{answer}}}'


@spec("2026-07-28", "basic/transports/streamable-http#message-flow")
@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@on_both_loops
@pytest.mark.parametrize("native_revision", [NEWEST, "2025-11-25"])
@pytest.mark.parametrize(
    ("method", "params", "holder"),
    [
        ("tools/call", '"name":"ask","arguments":{}', "content"),
        ("resources/read", '"uri":"note://ask"', "contents"),
        ("prompts/get", '"name":"ask"', "messages"),
    ],
)
async def test_a_demand_is_an_answer_and_the_retry_another_request(
    method: str, params: str, holder: str, native_revision: str
) -> None:
    async with caller(demo(native_revision=native_revision), STATELESS, ABLE) as peer:
        first = await peer.send(method, params).complete()
        second = await peer.send(method, retry(first.json, params)).complete()

    assert (200, "application/json", "input_required") == (
        first.status,
        first.header("content-type"),
        first.json["result"]["resultType"],
    )
    assert "complete" == second.json["result"]["resultType"]
    assert "octocat" in json.dumps(second.json["result"][holder])


@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
async def test_the_end_of_the_first_exchange_does_not_cancel_the_handler() -> None:
    """Only a connection that closes before its response is a cancellation."""
    async with caller(demo(), STATELESS, ABLE) as peer:
        params = '"name":"ask","arguments":{}'
        first = peer.send("tools/call", params)
        await first.complete()
        first.leave()
        await peer.web.quiet()
        second = await peer.send("tools/call", retry(first.json, params)).complete()

    assert "octocat" in json.dumps(second.json["result"])


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@on_both_loops
async def test_what_is_told_after_the_answer_comes_on_the_stream_of_the_retry() -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        params = '"name":"ask_twice","arguments":{}'
        first = await peer.send("tools/call", params, '"progressToken":"a"').complete()
        second = peer.send("tools/call", retry(first.json, params, '{"roots":[]}'), '"progressToken":"b"')
        *told, again = await second.messages()
        third = peer.send("tools/call", retry(again, params, '{"roots":[]}'), '"progressToken":"c"')
        (said,) = await third.messages()

    assert not first.is_stream
    assert ["b"] == [each["params"]["progressToken"] for each in told]
    assert "input_required" == again["result"]["resultType"]
    assert "0 0" == said["result"]["content"][0]["text"]


@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
async def test_who_leaves_during_the_retry_cancels_the_handler() -> None:
    given_up: list[bool] = []

    async def slow(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        await context.roots()
        await context.progress(1)
        try:
            await own.gate.wait()
        except BaseException:
            given_up.append(True)
            raise

    async with caller(demo(tools={"slow": slow}), STATELESS, ABLE) as peer:
        params = '"name":"slow","arguments":{}'
        first = await peer.send("tools/call", params).complete()
        second = peer.send("tools/call", retry(first.json, params, '{"roots":[]}'), '"progressToken":"b"')
        await second.message()
        second.leave()
        await second.returned()
        await peer.web.quiet()

        assert [True] == given_up


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@pytest.mark.parametrize("state", ["forged", "", "%sx", "x%s"])
async def test_state_that_was_not_given_is_refused(state: str) -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS, ABLE) as peer:
        params = '"name":"ask","arguments":{}'
        first = await peer.send("tools/call", params).complete()
        demand = first.json
        demand["result"]["requestState"] = state.replace("%s", demand["result"]["requestState"])
        answer = await peer.send("tools/call", retry(demand, params)).complete()

    assert -32602 == answer.json["error"]["code"]
    assert answer.status in (200, 400)


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", '"name":"roots","arguments":{}'), ("prompts/get", '"name":"ask"')]
)
async def test_state_of_another_request_is_refused(method: str, params: str) -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        first = await peer.call("ask").complete()
        answer = await peer.send(method, retry(first.json, params)).complete()

    assert -32602 == answer.json["error"]["code"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
async def test_a_retry_whose_capabilities_have_gone_is_a_bad_request() -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        params = '"name":"ask_twice","arguments":{}'
        first = await peer.send("tools/call", params).complete()
        less = Caller(peer.web, STATELESS)
        answer = await less.send("tools/call", retry(first.json, params, '{"roots":[]}')).complete()

    assert (400, -32021) == (answer.status, answer.json["error"]["code"])


@spec("2026-07-28", "basic/patterns/mrtr#error-handling")
async def test_who_does_not_answer_everything_is_asked_again() -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        params = '"name":"ask","arguments":{}'
        first = await peer.send("tools/call", params).complete()
        state = json.dumps(first.json["result"]["requestState"])
        again = await peer.send("tools/call", f'{params},"requestState":{state},"inputResponses":{{}}').complete()
        said = await peer.send("tools/call", retry(again.json, params)).complete()

    assert (200, "input_required") == (again.status, again.json["result"]["resultType"])
    assert "octocat" in json.dumps(said.json["result"])


@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
async def test_the_demands_of_many_clients_are_kept_apart() -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        params = '"name":"ask","arguments":{}'
        demands = [(await peer.send("tools/call", params, identity=1).complete()).json for _ in range(5)]
        names = [f'{{"action":"accept","content":{{"name":"user {index}"}}}}' for index in range(5)]
        open_ones = [
            peer.send("tools/call", retry(demand, params, name), identity=2)
            for demand, name in zip(demands, names, strict=True)
        ]
        found = [json.dumps((await each.messages())[-1]["result"]["content"]) for each in open_ones]

    assert [f"user {index}" in text for index, text in enumerate(found)] == [True] * 5
