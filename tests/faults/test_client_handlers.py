"""Handlers that hang, dawdle, call the server, or end the client they belong to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, ServerExited, TransportClosed, UsageError
from mcpgen.runtime.client.connection_task import ConnectionTask
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.transports.spawner import is_asyncio
from tests.faults.hostile_questions import ASKING, FORM, SECRET, accept
from tests.faults.hostile_server_clients import NEW, OLD, Stopwatch, attacked, judged, words
from tests.patience import BUSY_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_handler_may_close_its_client(revision: str) -> None:
    async def elicit(params: object, context: Any) -> models.ElicitResult:
        await context.client.close()
        return await accept(params, context)

    with Stopwatch() as watch:
        async with attacked(ASKING, revision, elicit=elicit) as client:
            with pytest.raises(TransportClosed):
                await client.call_tool("ask")

    assert watch.seconds < BUSY_SECONDS


async def test_a_log_handler_may_close_its_client() -> None:
    closed = anyio.Event()

    async def log(params: object, context: Any) -> None:
        try:
            await context.client.close()
        finally:
            closed.set()

    with Stopwatch() as watch:
        async with attacked(
            "greet()\ntell('notifications/message', level='info', data=1)\nignore_all()", log=log
        ) as client:
            await closed.wait()
            with pytest.raises(TransportClosed):
                await client.call_tool("x")

    assert watch.seconds < BUSY_SECONDS


async def test_a_handler_has_its_client_before_connect_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    handled = anyio.Event()
    clients: list[object] = []
    start = ConnectionTask.start

    async def start_late(task: ConnectionTask) -> Any:
        connection = await start(task)
        await handled.wait()
        return connection

    async def log(params: object, context: Any) -> None:
        try:
            clients.append(context.client)
        finally:
            handled.set()

    monkeypatch.setattr(ConnectionTask, "start", start_late)
    async with attacked(
        "greet()\ntell('notifications/message', level='info', data=1)\nignore_all()", log=log
    ) as client:
        pass

    assert [client] == clients


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_handler_may_call_the_server(revision: str) -> None:
    async def elicit(params: object, context: Any) -> models.ElicitResult:
        assert "ok" == words(await context.client.call_tool("x"))
        return await accept(params, context)

    code = ASKING.replace(
        'text(call, json.dumps(answered("q")))',
        'inner = asked()\n        text(inner, "ok")\n        text(call, json.dumps(answered("q")))',
    )
    async with judged(code, revision, elicit=elicit) as client:
        assert "accept" in words(await client.call_tool("ask"))


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("end", ["the client is closed", "the server exits"])
async def test_a_handler_that_hangs_is_cancelled_when_the_connection_ends(end: str, revision: str) -> None:
    running, gave_up = anyio.Event(), anyio.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            gave_up.set()
        return await accept(params, context)

    async def call(name: str) -> None:
        with pytest.raises(TransportClosed if end == "the client is closed" else ServerExited):
            await client.call_tool(name)

    code = ASKING.replace("if revision", 'if call["params"]["name"] == "exit":\n        sys.exit(3)\n    if revision')
    code = code.replace('text(call, json.dumps(answered("q")))', "asked()\n        sys.exit(3)")
    async with attacked(code, revision, elicit=elicit) as client, anyio.create_task_group() as group:
        group.start_soon(call, "ask")
        await running.wait()
        with Stopwatch() as watch:
            await (client.close() if end == "the client is closed" else call("exit"))
        if (end, revision) == ("the client is closed", OLD):  # close() waits for it; with NEW, its call does
            assert gave_up.is_set()

    assert gave_up.is_set()
    assert watch.seconds < BUSY_SECONDS


@pytest.mark.slow
async def test_a_handler_that_takes_its_time_to_clean_up_does_not_keep_the_client() -> None:
    running = anyio.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)
        return await accept(params, context)

    async with anyio.create_task_group() as group, attacked(ASKING, OLD, elicit=elicit) as client:

        async def call() -> None:
            with pytest.raises(TransportClosed):
                await client.call_tool("ask")

        group.start_soon(call)
        await running.wait()
        with Stopwatch() as watch:
            await client.close()

    assert watch.seconds < BUSY_SECONDS


async def test_a_handler_that_swallows_its_cancellation_does_not_keep_the_client() -> None:
    if not is_asyncio():
        pytest.skip("trio has no way to leave it behind")
    running, gate = anyio.Event(), anyio.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        running.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return await accept(params, context)

    async with anyio.create_task_group() as group:
        async with attacked(ASKING, OLD, elicit=elicit) as client:

            async def call() -> None:
                with pytest.raises(TransportClosed):
                    await client.call_tool("ask")

            group.start_soon(call)
            await running.wait()
            with Stopwatch() as watch:
                await client.close()
        gate.set()

    assert watch.seconds < BUSY_SECONDS


async def test_a_handler_that_blocks_a_thread_does_not_keep_the_client() -> None:
    import threading

    running, gate = anyio.Event(), threading.Event()

    async def elicit(params: object, context: object) -> models.ElicitResult:
        running.set()
        await anyio.to_thread.run_sync(gate.wait, 5, abandon_on_cancel=True)
        return await accept(params, context)

    async with anyio.create_task_group() as group:
        async with attacked(ASKING, OLD, elicit=elicit) as client:

            async def call() -> None:
                with pytest.raises(TransportClosed):
                    await client.call_tool("ask")

            group.start_soon(call)
            await running.wait()
            with Stopwatch() as watch:
                await client.close()
        gate.set()
        for each in threading.enumerate():
            if "AnyIO worker" in each.name or "Trio" in each.name:
                each.join(0.2)

    assert watch.seconds < BUSY_SECONDS


@pytest.mark.slow
async def test_a_handler_that_is_slow_does_not_cost_the_call_its_time() -> None:
    async def elicit(params: object, context: object) -> models.ElicitResult:
        await anyio.sleep(call_seconds + 1)
        return await accept(params, context)

    call_seconds = 3.0  # a server on a busy machine needs a part of it
    async with judged(ASKING, OLD, elicit=elicit, limits=ClientLimits(call_seconds=call_seconds)) as client:
        assert "accept" in words(await client.call_tool("ask"))


async def test_a_question_that_comes_while_the_client_closes_starts_nothing() -> None:
    asked = 0

    def elicit(params: object, context: object) -> models.ElicitResult:
        nonlocal asked
        asked += 1
        return models.ElicitResult(action="cancel")

    code = f"""
    greet()
    text(asked(), "ok")
    sys.stdin.read()
    for n in range(1000):
        ask(n, "elicitation/create", json.loads({json.dumps(FORM)!r}))
    """
    async with attacked(code, elicit=elicit) as client:
        await client.call_tool("x")
        await client.close()
        before = asked
        await anyio.sleep(0.05)

    assert 0 == before == asked


@pytest.mark.parametrize("ends", ["raises", "is cancelled"])
async def test_of_many_handlers_of_one_demand_the_first_failure_ends_the_others(ends: str) -> None:
    gave_up = 0

    async def elicit(params: Any, context: object) -> models.ElicitResult:
        nonlocal gave_up
        if params.message == "0":
            await anyio.sleep(0.01)
            if ends == "raises":
                raise ValueError(SECRET)
            scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            gave_up += 1
        return await accept(params, context)

    code = """
    greet()
    wishes = {str(n): {"method": "elicitation/create", "params": {"mode": "form", "message": str(n),
              "requestedSchema": {"type": "object", "properties": {}}}} for n in range(20)}
    answer(asked(), {"resultType": "input_required", "inputRequests": wishes})
    serve()
    """
    async with judged(code, NEW, elicit=elicit) as client:
        with anyio.CancelScope() as scope:
            if ends == "raises":
                with pytest.raises(ValueError, match=SECRET):
                    await client.call_tool("x")
            else:
                await client.call_tool("x")
        assert scope.cancelled_caught == (ends != "raises")
        assert gave_up == (19 if ends == "raises" else 20)
        assert "ok" == words(await client.call_tool("x"))


async def test_a_handler_of_a_demand_that_returns_nonsense_fails_the_call() -> None:
    async with judged(ASKING, NEW, elicit=lambda params, context: 5) as client:
        with pytest.raises(
            UsageError, match=r"`elicit` .* an ElicitResult, .* but .*<lambda>\(\) returned a value of type int"
        ):
            await client.call_tool("ask")
        assert "ok" == words(await client.call_tool("x"))
