"""Callers who close, mix up and leave clients, or fail while they have one: nothing is left, and no error is lost."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import anyio
import pytest

from mcpgen import TransportClosed, UsageError, connect
from tests.faults.hostile_server_clients import (
    GOOD,
    LIMITS,
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

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


@pytest.mark.slow
async def test_closing_twice_and_from_many_tasks_is_closing_once() -> None:
    async with attacked("greet()\nforever()") as client:
        with Stopwatch() as watch:
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(client.close)
            await client.close()

    assert watch.seconds < BUSY_SECONDS


@pytest.mark.slow
async def test_closing_in_another_task_ends_what_is_open_in_this() -> None:
    ended = 0
    async with attacked(SLOW) as client, anyio.create_task_group() as group:

        async def call() -> None:
            nonlocal ended
            with pytest.raises(TransportClosed, match="closed"):
                await client.call_tool("hang")
            ended += 1

        for _ in range(100):
            group.start_soon(call)
        group.start_soon(listen_to_the_end, client)
        await anyio.sleep(0.05)
        await client.close()

    assert 100 == ended


async def listen_to_the_end(client: Any) -> None:
    async with client.listen(tools=True) as changes:
        with pytest.raises(TransportClosed):
            await anext(changes)


async def test_closing_while_it_is_connected_ends_it() -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        connection = connect(villain("ignore_all()"), revisions=[OLD], limits=LIMITS)
        async with anyio.create_task_group() as group:

            async def enter() -> None:
                async with connection:
                    pytest.fail("it cannot be connected")

            group.start_soon(enter)
            await anyio.sleep(0.05)
            await connection.__aexit__(None, None, None)  # closes nothing: there is no client
            group.cancel_scope.cancel()


async def test_a_connection_is_for_one_block() -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        connection = connect(villain(GOOD), revisions=[OLD], limits=LIMITS)
        async with connection:
            with pytest.raises(UsageError):
                async with connection:
                    pass
        with pytest.raises(UsageError):
            async with connection:
                pass


async def test_after_closing_nothing_can_be_asked() -> None:
    async with attacked(GOOD) as client:
        await client.close()
        failures: list[Exception] = []
        for attempt in (client.ping, client.list_tools, client.roots_changed, lambda: client.call_tool("x"),
                        lambda: client.request_json("x"), lambda: client.set_log_level("info")):  # fmt: skip
            try:
                await attempt()
            except (TransportClosed, UsageError) as error:
                failures.append(error)
        with pytest.raises(TransportClosed):
            async with client.listen(tools=True):
                pass
        with pytest.raises(TransportClosed):
            async for _ in client.tools():
                pass
        assert OLD == client.revision
        assert "" == client.stderr

    assert len({id(each) for each in failures}) >= 5


async def test_opened_in_one_task_and_closed_in_another() -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        opened: list[Any] = []
        connection = connect(villain(GOOD), revisions=[OLD], limits=LIMITS)

        async def enter() -> None:
            opened.append(await connection.__aenter__())

        async with anyio.create_task_group() as group:
            group.start_soon(enter)
        assert "ok" == words(await opened[0].call_tool("x"))
        async with anyio.create_task_group() as group:
            group.start_soon(connection.__aexit__, None, None, None)


async def test_two_clients_can_be_closed_in_any_order() -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        first, second = connect(villain(GOOD), limits=LIMITS), connect(villain(GOOD), limits=LIMITS)
        one, other = await first.__aenter__(), await second.__aenter__()
        await first.__aexit__(None, None, None)
        assert "ok" == words(await other.call_tool("x"))
        with pytest.raises(TransportClosed):
            await one.call_tool("x")
        await second.__aexit__(None, None, None)


@pytest.mark.slow
async def test_fifty_clients_at_once() -> None:
    found = []

    async def use_one() -> None:
        async with attacked(GOOD, None) as client:
            found.append(words(await client.call_tool("x")))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(use_one)

    assert ["ok"] * 50 == found


async def test_one_block_can_hold_many_clients_and_an_exit_stack() -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connect(villain(GOOD), limits=LIMITS)) for _ in range(5)]
            assert ["ok"] * 5 == [words(await each.call_tool("x")) for each in clients]


# --- errors of the block


@pytest.mark.parametrize("kind", [ValueError, TimeoutError, StopAsyncIteration, GeneratorExit, asyncio.CancelledError])
async def test_what_the_block_raises_comes_out_as_it_is(kind: type[BaseException]) -> None:
    error = kind("mine")
    with pytest.raises((kind, RuntimeError)) as caught:
        async with connect(villain(GOOD), revisions=[OLD], limits=LIMITS):
            raise error

    assert error is caught.value


async def test_what_the_block_raises_when_the_server_is_gone_comes_out_as_it_is() -> None:
    async def fail_behind_the_server() -> None:
        async with attacked("greet()\nasked()\nos._exit(7)") as client:
            with pytest.raises(TransportClosed):
                await client.call_tool("x")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        await fail_behind_the_server()

    assert caught.value.__cause__ is None


async def test_a_group_in_the_block_is_a_group() -> None:
    async def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(BaseExceptionGroup) as caught:
        async with attacked(GOOD), anyio.create_task_group() as group:
            group.start_soon(fail)

    assert [ValueError] == [type(each) for each in caught.value.exceptions]


async def test_a_block_that_is_cancelled_ends_and_the_cancellation_goes_on() -> None:
    with anyio.fail_after(PATIENCE_SECONDS), anyio.move_on_after(0.1) as scope:
        async with connect(villain(GOOD), revisions=[OLD], limits=LIMITS) as client:
            await client.call_tool("x")
            await anyio.sleep_forever()

    assert scope.cancelled_caught


async def test_a_context_variable_of_the_caller_reaches_the_handlers() -> None:
    import contextvars

    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen = []

    async def log(params: object, context: object) -> None:
        seen.append(variable.get())

    variable.set("mine")
    async with attacked("greet()\ntell('notifications/message', level='info', data=1)\nserve()", log=log) as client:
        await client.call_tool("x")
        await child_programs.until(lambda: seen)

    assert ["mine"] == seen
