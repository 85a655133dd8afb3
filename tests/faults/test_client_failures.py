"""Handlers that fail: it costs the question they were asked, and neither the client nor a secret."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import pytest

from mcpgen import RequestError, TransportClosed
from tests.faults.hostile_questions import ASKING, SECRET
from tests.faults.hostile_server_clients import NEW, OLD, judged, words
from tests.harness import child_programs

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.newest import models

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


class Own(BaseException):
    """A failure that is no `Exception`."""


# Whoever raises these in a task of asyncio ends the event loop; who does so in a handler that runs in our task does
# not.
ENDS: tuple[type[BaseException], ...] = (SystemExit, KeyboardInterrupt)
FAILURES: list[type[BaseException]] = [
    ValueError,
    AssertionError,
    KeyError,
    MemoryError,
    RecursionError,
    StopIteration,
    StopAsyncIteration,
    TimeoutError,
    asyncio.CancelledError,
    GeneratorExit,
    SystemExit,
    KeyboardInterrupt,
    Own,
]


@pytest.mark.parametrize("when", ["at once", "later", "in a group", "plain"])
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.slow
async def test_a_handler_that_fails_costs_its_own_question_and_tells_no_secret(
    kind: type[BaseException], when: str
) -> None:
    async def elicit(params: object, context: object) -> models.ElicitResult:
        if when == "later":
            await anyio.lowlevel.checkpoint()
        if when == "in a group":
            raise BaseExceptionGroup(SECRET, [kind(SECRET)])
        raise kind(SECRET)

    def plain(params: object, context: object) -> models.ElicitResult:
        raise kind(SECRET)

    async with judged(ASKING, OLD, elicit=plain if when == "plain" else elicit) as client:
        found = json.loads(words(await client.call_tool("ask")))
        assert -32603 == found["error"]["code"]
        assert SECRET not in json.dumps(found)
        assert "ok" == words(await client.call_tool("x"))
        assert {} == client._engine.connection.requests.open
        assert 0 == client._engine.connection.requests.running


@pytest.mark.parametrize("when", ["at once", "later"])
@pytest.mark.parametrize("kind", [each for each in FAILURES if each not in (*ENDS, asyncio.CancelledError)])
async def test_what_a_handler_raises_for_a_demand_comes_out_of_the_call_and_not_in_a_group(
    kind: type[BaseException], when: str
) -> None:
    async def elicit(params: object, context: object) -> models.ElicitResult:
        if when == "later":
            await anyio.lowlevel.checkpoint()
        raise kind(SECRET)

    async with judged(ASKING, NEW, elicit=elicit) as client:
        with pytest.raises((kind, RuntimeError)) as caught:
            await client.call_tool("ask")
        assert not isinstance(caught.value, BaseExceptionGroup)
        assert "ok" == words(await client.call_tool("x"))


async def test_a_handler_that_cancels_itself_for_a_demand_is_a_failure_of_the_call() -> None:
    async def elicit(params: object, context: object) -> models.ElicitResult:
        raise asyncio.CancelledError

    async with judged(ASKING, NEW, elicit=elicit) as client:
        with pytest.raises((RequestError, asyncio.CancelledError)) as caught:
            await client.call_tool("ask")
        assert not isinstance(caught.value, KeyError)
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("value", [None, 1, "accept", object(), float("nan")])
async def test_what_a_handler_may_not_return_is_a_failure(value: Any) -> None:
    async with judged(ASKING, OLD, elicit=lambda params, context: value) as client:
        found = json.loads(words(await client.call_tool("ask")))
        assert "ok" == words(await client.call_tool("x"))

    assert -32603 == found["error"]["code"]


async def test_what_a_handler_returns_may_be_a_dict_that_says_the_same() -> None:
    async with judged(ASKING, OLD, elicit=lambda params, context: {"action": "accept"}) as client:
        found = json.loads(words(await client.call_tool("ask")))

    assert {"action": "accept"} == found["result"]


async def test_a_handler_may_refuse_in_words_of_its_own() -> None:
    def elicit(params: object, context: object) -> models.ElicitResult:
        raise RequestError(-1, "not today", {"a": [1]})

    async with judged(ASKING, OLD, elicit=elicit) as client:
        found = json.loads(words(await client.call_tool("ask")))

    assert {"code": -1, "message": "not today", "data": {"a": [1]}} == found["error"]


@pytest.mark.parametrize("data", [object(), float("nan"), {1, 2}, "\ud800", b"\xff"])
async def test_an_error_that_cannot_be_written_is_replaced(data: object) -> None:
    def elicit(params: object, context: object) -> models.ElicitResult:
        raise RequestError(-1, "x", data)

    async with judged(ASKING, OLD, elicit=elicit) as client:
        found = json.loads(words(await client.call_tool("ask")))
        assert "error" in found
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_log_handler_that_fails_is_logged_and_the_next_entry_told(
    kind: type[BaseException], revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    told = []

    async def log(params: Any, context: object) -> None:
        told.append(params.data)
        if params.data == 1:
            raise kind(SECRET)

    code = """
    greet()
    for n in range(1, 3):
        tell("notifications/message", level="info", data=n)
        text(asked(), "ok")
    serve()
    """
    async with judged(code, revision, log=log) as client:
        await client.set_log_level("info") if revision == NEW else None
        for _ in range(2):
            assert "ok" == words(await client.call_tool("x"))
        await child_programs.until(lambda: len(told) == 2)

    assert 1 <= len(caplog.records) <= 2


# --- on_progress


PROGRESSING = """
greet()
while True:
    call = asked()
    if call["method"] != "tools/call":
        answer(call, {})
        continue
    if "progressToken" in call["params"].get("_meta", {}):
        tell("notifications/progress", progressToken=call["params"]["_meta"]["progressToken"], progress=1)
    if call["params"]["name"] != "hang":
        text(call, "ok")
"""


@pytest.mark.parametrize("name", ["x", "hang"])
@pytest.mark.parametrize("kind", [each for each in FAILURES if each not in (*ENDS, asyncio.CancelledError)])
async def test_what_on_progress_raises_comes_out_of_its_call(kind: type[BaseException], name: str) -> None:
    def fail(*_: object) -> None:
        raise kind(SECRET)

    async with judged(PROGRESSING) as client:
        with pytest.raises((kind, RuntimeError)):
            await client.call_tool(name, on_progress=fail)
        assert {} == client._engine.session.pending
        assert {} == client._engine.session._by_token
        assert "ok" == words(await client.call_tool("x"))


async def test_on_progress_may_close_the_client() -> None:
    async with judged(PROGRESSING) as client:

        async def close(*_: object) -> None:
            await client.close()

        with pytest.raises(TransportClosed):
            await client.call_tool("hang", on_progress=close)
        with pytest.raises(TransportClosed):
            await client.call_tool("x")


async def test_on_progress_may_call_the_server() -> None:
    found = []
    async with judged(PROGRESSING) as client:

        async def call(*_: object) -> None:
            found.append(words(await client.call_tool("x")))

        await client.call_tool("x", on_progress=call)

    assert ["ok"] == found
