"""What a demand for input gives its client to keep: whose it is, and what it is good for."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import UNSET

from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import (
    LABELS,
    spec,
    without_handshakes,
)
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import FORM, server

pytestmark = pytest.mark.anyio

ABLE = '{"elicitation":{},"roots":{},"sampling":{}}'
ACCEPTED = '{"action":"accept","content":{"name":"octocat"}}'


def retry(demand: Any, params: str, responses: str | None = None) -> str:
    """Return the members of the retry of a request with *params* that answers *demand*."""
    ((key, _),) = demand["result"]["inputRequests"].items()
    answered = f'"inputResponses":{{"{key}":{ACCEPTED}}}' if responses is None else f'"inputResponses":{responses}'
    return f'{params},"requestState":"{demand["result"]["requestState"]}",{answered}'


@spec("2026-07-28", "basic/patterns/mrtr#security-considerations", "d5753f75")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d", "65148368")
@without_handshakes
@pytest.mark.parametrize(
    "change",
    [
        lambda state: state[:-1] + ("A" if state[-1] != "A" else "B"),
        lambda state: state[:20] + ("A" if state[20] != "A" else "B") + state[21:],
        lambda state: state + "A",
        lambda state: state[:-4],
        lambda _state: "",
        lambda _state: "not base64!",
        lambda _state: "e30",
    ],
)
async def test_a_state_that_was_tampered_with_is_rejected(change: Any, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        demand["result"]["requestState"] = change(demand["result"]["requestState"])
        (said,) = await peer.ask("tools/call", retry(demand, '"name":"ask","arguments":{}'))

    assert -32602 == said["error"]["code"]


@spec("2026-07-28", "basic/patterns/mrtr#security-considerations", "d5753f75")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d", "65148368", "f1f78e5b")
@without_handshakes
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", '"name":"ask","arguments":{"text":"other"}'),
        ("tools/call", '"name":"echo","arguments":{}'),
        ("prompts/get", '"name":"ask","arguments":{}'),
        ("resources/read", '"uri":"note://ask"'),
    ],
)
async def test_a_state_that_belongs_to_another_request_is_rejected(method: str, params: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        error = await peer.error(method, retry(demand, params))

    assert -32602 == error["code"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d")
@without_handshakes
async def test_a_state_of_another_server_is_rejected(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        error = await peer.error("tools/call", retry(demand, '"name":"ask","arguments":{}'))

    assert -32602 == error["code"]


@spec("2026-07-28", "basic/index#statelessness", "ac53ff83", "1117405e")
@without_handshakes
async def test_a_retry_may_come_on_another_connection_of_the_same_server(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision, ABLE) as first, client(made, revision, ABLE) as second:
        (demand,) = await first.call("ask")
        (said,) = await second.ask("tools/call", retry(demand, '"name":"ask","arguments":{}'))
        nothing = await first.wire.rest()

    assert "octocat" in said["result"]["content"][0]["text"]
    assert [] == nothing


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "c5dba0c9")
@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@without_handshakes
async def test_the_same_retry_twice_gets_the_same_answer_and_runs_once(revision: str) -> None:
    runs: list[int] = []

    async def count(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.elicit("Who?", FORM)
        runs.append(1)
        return own.text(str(len(runs)))

    params = '"name":"count","arguments":{}'
    async with client(server(LABELS[-1], tools={"count": count}), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        (first,) = await peer.ask("tools/call", retry(demand, params))
        (second,) = await peer.ask("tools/call", retry(demand, params))

    assert first["result"] == second["result"]
    assert [1] == runs


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "81edb4ae", "83cee9a4")
@without_handshakes
async def test_a_repeated_retry_is_not_asked_for_what_it_does_not_declare(revision: str) -> None:
    params = '"name":"ask","arguments":{}'
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        without_answers = retry(demand, params, "{}")
        (again,) = await peer.ask("tools/call", without_answers)
        peer.capabilities = '{"elicitation":{"url":{}}}'
        refused = await peer.error("tools/call", without_answers)
        peer.capabilities = ABLE
        (same,) = await peer.ask("tools/call", without_answers)

    assert "input_required" == again["result"]["resultType"]
    assert (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}}) == (refused["code"], refused["data"])
    assert again["result"] == same["result"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "81edb4ae")
@without_handshakes
async def test_a_retry_waits_for_the_response_to_another_only_if_it_declares_the_same(revision: str) -> None:
    is_open = anyio.Event()

    async def slow(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.elicit("Who?", FORM)
        await is_open.wait()
        await context.elicit("Who else?", FORM)
        return own.text("done")

    params = '"name":"slow","arguments":{}'
    async with client(server(LABELS[-1], tools={"slow": slow}), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        answered = retry(demand, params)
        assert [] == await peer.ask("tools/call", answered)
        assert [] == await peer.ask("tools/call", answered)
        peer.capabilities = "{}"
        refused = await peer.error("tools/call", answered)
        is_open.set()
        said = await peer.wire.rest()

    assert -32602 == refused["code"]
    assert [(2, "input_required"), (3, "input_required")] == [(x["id"], x["result"]["resultType"]) for x in said]


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@without_handshakes
async def test_a_handler_that_demands_itself_gets_its_own_state_back(revision: str) -> None:
    seen: list[Any] = []

    async def call_tool(own: Any, params: Any, context: Any) -> Any:
        del context
        if isinstance(params.input_responses, dict):
            seen.append((params.request_state, params.input_responses["name"]))
            return own.text("done")
        form = models.ElicitRequestFormParams(message="Who?", requested_schema=FORM)
        return models.InputRequiredResult(
            input_requests={"name": models.ElicitRequest(params=form)}, request_state="my state"
        )

    params = '"name":"own","arguments":{}'
    async with client(server(LABELS[-1], call_tool=call_tool), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        assert ["name"] == list(demand["result"]["inputRequests"])
        assert "my state" != demand["result"]["requestState"]

        (said,) = await peer.ask("tools/call", retry(demand, params))

    assert "done" == said["result"]["content"][0]["text"]
    assert [("my state", "octocat")] == [(state, answer.content["name"]) for state, answer in seen]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d", "65148368")
async def test_a_client_of_a_handshake_cannot_make_up_a_state() -> None:
    seen: list[Any] = []

    async def call_tool(own: Any, params: Any, context: Any) -> Any:
        del context
        seen.append((params.request_state, params.input_responses))
        return own.text("done")

    made_up = '"requestState":"admin","inputResponses":{"name":{"action":"accept","content":{"name":"octocat"}}}'
    async with client(server(LABELS[-1], call_tool=call_tool), "2025-11-25", ABLE) as peer:
        await peer.result("tools/call", f'"name":"own","arguments":{{}},{made_up}')

    assert [(UNSET, UNSET)] == seen


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "e934df9c", "fea51858")
@without_handshakes
async def test_a_state_expires(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        made._engine.sealer._clock = made._engine.parked._clock = lambda: 4_000_000_000.0
        error = await peer.error("tools/call", retry(demand, '"name":"ask","arguments":{}'))

    assert (-32602, {"reason": "expired"}) == (error["code"], error["data"])


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@without_handshakes
async def test_a_handler_that_waits_goes_on_although_somebody_set_the_clock(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        made._engine.sealer._clock = lambda: 4_000_000_000.0
        (said,) = await peer.wire.say(peer.request(2, "tools/call", retry(demand, '"name":"ask","arguments":{}')))

    assert "complete" == said["result"]["resultType"]
