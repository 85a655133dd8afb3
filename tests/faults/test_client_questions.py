"""Servers that ask what they should not: they are refused, or ignored, and nobody is bothered."""

from __future__ import annotations

import json

import anyio
import pytest

from mcpgen.runtime.protocol.newest import models
from tests.faults.hostile_questions import FORM, accept
from tests.faults.hostile_server_clients import NEW, OLD, attacked, judged, words

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

UNDECLARED: dict[str, tuple[object, int]] = {
    "sampling/createMessage": ({"messages": [], "maxTokens": 1}, -32601),
    "roots/list": (None, -32601),
    "tools/call": ({"name": "x"}, -32601),
    "initialize": ({"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}, -32601),
    "notifications/initialized": (None, -32601),
    "": ({}, -32601),
    "x" * 100_000: ({}, -32601),
    "\x1b[2J": ({}, -32601),
    "elicitation/create": ({"message": 1}, -32602),
    "elicitation/create ": (FORM, -32601),
}


@pytest.mark.parametrize("method", UNDECLARED, ids=lambda each: repr(each[:30]))
async def test_what_was_not_declared_is_refused(method: str) -> None:
    params, code = UNDECLARED[method]
    script = f"""
    greet()
    call = asked()
    ask(1, {method!r}, json.loads({json.dumps(params)!r}))
    found = answered(1)
    text(call, found["error"]["code"])
    assert len(found["error"]["message"]) < 1000
    serve()
    """
    async with judged(script, elicit=accept) as client:
        assert str(code) == words(await client.call_tool("x"))
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("method", ["ping", "elicitation/create", "sampling/createMessage", "what/ever"])
async def test_a_server_without_sessions_may_not_ask_and_gets_no_answer(method: str) -> None:
    code = f"""
    greet()
    call = asked()
    ask(1, {method!r}, json.loads({json.dumps(FORM)!r}))
    text(call, "ok")
    assert asked()["method"] == "tools/call"
    text({{"id": call["id"] + 1}}, "not answered")
    serve()
    """
    async with judged(code, NEW, elicit=accept) as client:
        assert "ok" == words(await client.call_tool("x"))
        assert "not answered" == words(await client.call_tool("x"))


@pytest.mark.parametrize(
    "params", [None, [], {}, {"mode": "x"}, {**FORM, "requestedSchema": None}, {**FORM, "message": []}]
)
async def test_a_question_that_is_not_valid_is_refused_and_nobody_is_asked(params: object) -> None:
    questions = []

    def elicit(params: object, context: object) -> models.ElicitResult:
        questions.append(params)
        return models.ElicitResult(action="decline")

    # Null is read as absent. Other params that are no object make it no request at all, whatever its method allows.
    expected = ["-32600" if isinstance(params, list) else "-32602", "pong"]
    code = f"""
    greet()
    call = asked()
    params = json.loads({json.dumps(params)!r})
    say({{"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}})
    ask(2, "ping")
    answers = [hear() for _ in range({len(expected)})]
    text(call, json.dumps(sorted(str(each["error"]["code"]) if "error" in each else "pong" for each in answers)))
    serve()
    """
    async with attacked(code, elicit=elicit) as client:
        assert expected == json.loads(words(await client.call_tool("x")))
        assert "ok" == words(await client.call_tool("x"))

    assert [] == questions


async def test_an_id_that_is_used_twice_at_once_is_refused_once_and_answered_once() -> None:
    gate = anyio.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        await gate.wait()
        return await accept(params, context)

    code = f"""
    greet()
    call = asked()
    identities = {{repr(call["id"]), repr(str(call["id"]))}}
    form = json.loads({json.dumps(FORM)!r})
    ask(call["id"], "elicitation/create", form)
    ask(call["id"], "elicitation/create", form)
    ask(str(call["id"]), "elicitation/create", form)
    refused = hear()
    text(call, "error" in refused and refused["id"] == call["id"])
    call = asked()
    text(call, identities == {{repr(hear()["id"]) for _ in range(2)}})
    call = asked()
    ask(2, "elicitation/create", form)
    text(call, answered(2)["result"]["action"])
    ask(2, "elicitation/create", form)
    text(asked(), answered(2)["result"]["action"])
    serve()
    """
    async with attacked(code, elicit=elicit) as client:
        assert "True" == words(await client.call_tool("x"))
        gate.set()
        assert "True" == words(await client.call_tool("x"))
        for _ in range(2):  # the id is free again
            assert "accept" == words(await client.call_tool("x"))


@pytest.mark.slow
async def test_a_server_that_takes_its_question_back_gets_no_answer() -> None:
    running, gave_up = anyio.Event(), anyio.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            gave_up.set()
        return await accept(params, context)

    code = f"""
    greet()
    call = asked()
    ask(7, "elicitation/create", json.loads({json.dumps(FORM)!r}))
    assert asked()["method"] == "ping"
    for identity in [7, 7, 99, "7", call["id"]]:
        tell("notifications/cancelled", requestId=identity)
    text(call, "ok")
    serve()
    """
    async with judged(code, elicit=elicit) as client, anyio.create_task_group() as group:

        async def ping() -> None:
            await running.wait()
            with anyio.move_on_after(0.3):
                await client.ping()

        group.start_soon(ping)
        assert "ok" == words(await client.call_tool("x"))
        await gave_up.wait()
        assert "ok" == words(await client.call_tool("x"))
        assert {} == client._engine.connection.requests.open
