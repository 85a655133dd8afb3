"""Callers who cancel, wherever and whenever: nothing is left, and the client is as good as new."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import Server, TransportClosed, connect
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.transports.spawner import is_asyncio
from tests.faults import hostile_server_clients as attacking
from tests.faults.hostile_server_clients import (
    GOOD,
    LIMITS,
    NEW,
    OLD,
    PATIENCE_SECONDS,
    SLOW,
    Stopwatch,
    attacked,
    villain,
    words,
)
from tests.harness import child_programs
from tests.patience import BUSY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


class Stepped:
    """Runs an awaitable, and calls a function before its step *number* waits; counts the steps."""

    def __init__(self, work: Awaitable[Any], number: int, act: Callable[[], object]) -> None:
        self._work = work
        self._number = number
        self._act = act
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._work.__await__()
        value: Any = None
        failure: BaseException | None = None
        while True:
            try:
                waits = inner.send(value) if failure is None else inner.throw(failure)  # type: ignore[attr-defined]
            except StopIteration as end:
                return end.value
            if self.steps == self._number:
                self._act()
            self.steps += 1
            failure = None
            try:
                value = yield waits
            except BaseException as error:  # noqa: BLE001 (it is handed on)
                failure = error


def made_server() -> Server:
    server = Server("good")

    @server.tool
    async def echo(text: str = "") -> str:
        await checkpoint()
        return text

    @server.tool
    async def hang() -> str:
        await anyio.sleep_forever()
        return ""

    return server


async def use(client: Any) -> None:
    """See that *client* is as good as new."""
    assert "hi" == words(await client.call_tool("echo", {"text": "hi"}))
    assert {} == client._engine.session.pending
    assert {} == client._engine.session._by_token
    assert {} == client._engine.session.subscriptions.streams


async def sweep(attempt: Callable[[int], Awaitable[bool]]) -> int:
    """Try with each number from 0 until it makes no difference any more; return how many did."""
    with anyio.fail_after(PATIENCE_SECONDS):
        for number in range(10_000):
            if not await attempt(number):
                return number
    pytest.fail("it never ends")


@pytest.mark.parametrize("target", ["memory", "process"])
@pytest.mark.parametrize("revision", [OLD, NEW, None])
async def test_connecting_can_be_cancelled_wherever_it_waits(target: str, revision: str | None) -> None:
    async def attempt(number: int) -> bool:
        made = made_server() if target == "memory" else villain(GOOD)
        with anyio.CancelScope() as scope:
            connection = connect(made, revisions=None if revision is None else [revision], limits=LIMITS)
            client = await Stepped(connection, number, scope.cancel)
            await client.close()
        return scope.cancel_called

    assert await sweep(attempt) >= 1


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_connecting_can_be_cancelled_at_any_moment(revision: str) -> None:
    # In memory, so that the moments are always the same: so many turns of the event loop.
    async def attempt(number: int) -> bool:
        connected = False

        async def start() -> None:
            nonlocal connected
            client = await connect(made_server(), revisions=[revision])
            connected = True
            await client.close()

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            for _ in range(number):
                await checkpoint()
            group.cancel_scope.cancel()
        return not connected

    assert await sweep(attempt) >= 3


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize("milliseconds", [0, 1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 70])
async def test_connecting_to_a_process_can_be_cancelled_at_any_time(milliseconds: int, revision: str | None) -> None:
    with anyio.fail_after(PATIENCE_SECONDS), anyio.move_on_after(milliseconds / 1000):
        async with connect(villain(GOOD), revisions=None if revision is None else [revision], limits=LIMITS):
            await anyio.sleep_forever()


@pytest.mark.parametrize("milliseconds", [0, 5, 15, 30, 50])
async def test_connecting_can_be_cancelled_past_any_shield(milliseconds: int) -> None:
    if not is_asyncio():
        pytest.skip("only asyncio has this")
    task = asyncio.ensure_future(connect(villain(GOOD), revisions=[OLD], limits=LIMITS)._start())
    await asyncio.sleep(milliseconds / 1000)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # again, while it cleans up
    with anyio.fail_after(PATIENCE_SECONDS):
        try:
            client = await task
        except asyncio.CancelledError:
            await child_programs.until(lambda: not child_programs.marked())
        else:
            await client.close()


CALLS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "call_tool": lambda client: client.call_tool("echo", {"text": "x"}),
    "call_tool with progress": lambda client: client.call_tool("echo", {"text": "x"}, on_progress=lambda *_: None),
    "list_tools": lambda client: client.list_tools(),
    "ping": lambda client: client.ping(),
    "request_json": lambda client: client.request_json("tools/list"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_call_can_be_cancelled_wherever_it_waits(name: str, revision: str) -> None:
    async with connect(made_server(), revisions=[revision]) as client:

        async def attempt(number: int) -> bool:
            with anyio.CancelScope() as scope:
                await Stepped(CALLS[name](client), number, scope.cancel)
            await use(client)
            return scope.cancel_called

        assert await sweep(attempt) >= 1


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_call_can_be_cancelled_at_any_moment(name: str, revision: str) -> None:
    async with connect(made_server(), revisions=[revision]) as client:

        async def attempt(number: int) -> bool:
            is_over = False

            async def call() -> None:
                nonlocal is_over
                await CALLS[name](client)
                is_over = True

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                for _ in range(number):
                    await checkpoint()
                group.cancel_scope.cancel()
            await use(client)
            return not is_over

        await sweep(attempt)


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_listening_can_be_cancelled_wherever_it_waits(revision: str) -> None:
    async with attacked(SLOW, revision) as client:

        async def listen() -> None:
            async with client.listen(tools=True, uris=["mem://a", "mem://b"]) as changes:
                with anyio.move_on_after(0.01):
                    await anext(changes)

        async def attempt(number: int) -> bool:
            with anyio.CancelScope() as scope:
                await Stepped(listen(), number, scope.cancel)
            assert "ok" == words(await client.call_tool("x"))
            assert {} == client._engine.session.pending
            assert {} == client._engine.session.subscriptions.streams
            assert {} == client._engine.session.subscriptions.shared
            assert {} == client._engine.session.subscriptions.uri_counts
            return scope.cancel_called

        assert await sweep(attempt) >= 2


@pytest.mark.parametrize("target", ["memory", "process", "stubborn process"])
async def test_closing_goes_on_when_it_is_cancelled_wherever_it_waits(target: str) -> None:
    async def attempt(number: int) -> bool:
        code = GOOD if target == "process" else "greet()\nforever()"
        made = made_server() if target == "memory" else villain(code)
        client = await connect(
            made, revisions=[OLD], limits=attacking.ClientLimits(stdin_seconds=0.1, term_seconds=0.1)
        )
        with anyio.CancelScope() as scope:
            await Stepped(client.close(), number, scope.cancel)
        assert not child_programs.marked()
        with pytest.raises(TransportClosed):
            await client.ping()
        return scope.cancel_called

    assert await sweep(attempt) >= 1


async def test_a_demand_can_be_cancelled_wherever_it_is_met() -> None:
    code = """
    greet()
    form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    while True:
        call = asked()
        if call["params"]["name"] == "ask" and "inputResponses" not in call["params"]:
            answer(call, {"resultType": "input_required", "inputRequests":
                {str(n): {"method": "elicitation/create", "params": form} for n in range(3)}})
        else:
            text(call, "ok")
    """

    async def elicit(params: object, context: object) -> models.ElicitResult:
        await checkpoint()
        return models.ElicitResult(action="decline")

    async with attacked(code, NEW, elicit=elicit) as client:

        async def attempt(number: int) -> bool:
            with anyio.CancelScope() as scope:
                await Stepped(client.call_tool("ask"), number, scope.cancel)
            assert "ok" == words(await client.call_tool("x"))
            assert {} == client._engine.session.pending
            return scope.cancel_called

        assert await sweep(attempt) >= 2


async def test_calls_can_be_cancelled_past_any_shield() -> None:
    if not is_asyncio():
        pytest.skip("only asyncio has this")
    async with attacked(SLOW) as client:
        for _ in range(20):
            task = asyncio.ensure_future(client.call_tool("hang"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.call_tool("hang")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("hang"), 0.05)
        assert {} == client._engine.session.pending
        assert "ok" == words(await client.call_tool("x"))


# --- time


async def test_time_limits_of_the_caller_hold() -> None:
    async with attacked(SLOW) as client:
        for seconds in (0.001, 0.05):
            with Stopwatch() as watch, pytest.raises(TimeoutError):
                await client.call_tool("hang", timeout_seconds=seconds)
            assert seconds <= watch.seconds < seconds + BUSY_SECONDS
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            await client.call_tool("hang")
        assert "ok" == words(await client.call_tool("x", timeout_seconds=float("inf")))


@pytest.mark.slow
async def test_a_thousand_calls_time_out_each_on_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failures = set()
    async with attacked(SLOW) as client, anyio.create_task_group() as group:

        async def call() -> None:
            with pytest.raises(TimeoutError) as caught:
                await client.call_tool("hang", timeout_seconds=0.2)
            failures.add(caught.value)

        for _ in range(1000):
            group.start_soon(call)

    assert 1000 == len(failures)
    assert [] == caplog.records
