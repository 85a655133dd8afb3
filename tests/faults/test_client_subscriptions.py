"""Servers whose news is odd: progress of no number, or of another call; changes on streams of others."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestRefused, RequestTimedOut, Server, connect
from mcpgen.runtime.client.pending_request import Progress
from mcpgen.runtime.client.subscriptions import Change
from mcpgen.runtime.errors import PeerError
from tests.faults.hostile_server_clients import NEW, OLD, Stopwatch, attacked, judged, words
from tests.harness.cancelled_floods import turns_until_it_ends
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

# --- progress


PROGRESS = [
    "5", "1", "-1", "0", "1e308", "10**300", "10**400", "-10**400", "1e400", "-1e400", "NaN", "Infinity", '"1"', "null",
    "[]", "true", "0.1", "{}", "2",
]  # fmt: skip


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", OLD, NEW])
async def test_odd_progress_is_told_or_ignored_and_costs_nothing(revision: str) -> None:
    code = f"""
    greet()
    call = asked()
    token = call["params"]["_meta"]["progressToken"]
    for each in {PROGRESS!r}:
        each = str(10**400) if each == "10**400" else str(-10**400) if each == "-10**400" else each
        each = str(10**300) if each == "10**300" else each
        put(b'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":%d,"progress":%b}}}}\\n'
            % (token, each.encode()))
        put(b'{{"jsonrpc":"2.0","method":"notifications/progress","params":'
            b'{{"progressToken":%d,"progress":7,"total":%b,"message":%b}}}}\\n' % (token, each.encode(), each.encode()))
    text(call, "ok")
    serve()
    """
    told: list[Any] = []
    async with attacked(code, revision) as client:
        assert "ok" == words(await client.call_tool("x", on_progress=lambda *each: told.append(each)))

    assert all(isinstance(progress, float | int) for progress, _, _ in told)
    assert all(total is None or isinstance(total, float | int) for _, total, _ in told)
    assert all(message is None or isinstance(message, str) for _, _, message in told)
    assert [5, 1, -1, 0] == [each for each, total, _ in told if total is None][:4]


@pytest.mark.slow
async def test_progress_without_end_does_not_keep_a_call_open_for_ever() -> None:
    code = """
    greet()
    call = asked()
    n = 0
    while True:
        n += 1
        tell("notifications/progress", progressToken=call["params"]["_meta"]["progressToken"], progress=n)
        time.sleep(0.01)
    """
    limits = ClientLimits(max_call_seconds=4, stdin_seconds=0.2, term_seconds=0.2)
    async with attacked(code, limits=limits) as client:
        with Stopwatch() as watch, pytest.raises(RequestTimedOut):
            await client.call_tool("x", timeout_seconds=3, on_progress=lambda *_: None)

    assert 4 <= watch.seconds < 4 + BUSY_SECONDS


async def test_progress_of_another_call_is_told_to_that_one() -> None:
    code = """
    greet()
    first, second = asked(), asked()
    for call in (second, first):
        token = call["params"]["_meta"]["progressToken"]
        tell("notifications/progress", progressToken=token, progress=token)
        tell("notifications/progress", progressToken=str(token), progress=99)
    text(first, first["params"]["_meta"]["progressToken"])
    tell("notifications/progress", progressToken=first["params"]["_meta"]["progressToken"], progress=99)
    text(second, second["params"]["_meta"]["progressToken"])
    serve()
    """
    async with judged(code) as client, anyio.create_task_group() as group:

        async def call() -> None:
            told: list[float] = []
            token = words(await client.call_tool("x", on_progress=lambda progress, *_: told.append(progress)))
            assert [float(token)] == told

        group.start_soon(call)
        group.start_soon(call)


# --- changes


async def test_streams_of_others_are_not_heard_and_ours_is() -> None:
    code = """
    greet()
    first = asked("subscriptions/listen")
    ours = {"io.modelcontextprotocol/subscriptionId": first["id"]}
    for theirs in [0, 99, str(first["id"]), None, [], True, 1.5, {}]:
        meta = {"io.modelcontextprotocol/subscriptionId": theirs}
        tell("notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}, _meta=meta)
        tell("notifications/tools/list_changed", _meta=meta)
    tell("notifications/tools/list_changed")
    tell("notifications/tools/list_changed", _meta=1)
    tell("notifications/subscriptions/acknowledged", notifications={"promptsListChanged": True}, _meta=ours)
    tell("notifications/prompts/list_changed", _meta=ours)
    tell("notifications/cancelled", requestId=99)
    serve()
    """
    async with judged(code, NEW) as client, client.listen(tools=True, prompts=True) as changes:
        assert changes.acknowledged.prompts_list_changed
        assert not changes.acknowledged.tools_list_changed
        assert "prompts" == (await anext(changes)).kind


@pytest.mark.parametrize(
    "ack",
    [
        "1",
        "None",
        "[]",
        '{"toolsListChanged": 1}',
        '{"resourceSubscriptions": "x"}',
        '{"resourceSubscriptions": [1]}',
    ],
)
@pytest.mark.slow
async def test_a_stream_that_is_not_agreed_to_in_order_is_not_open(ack: str) -> None:
    code = f"""
    greet()
    meta = {{"io.modelcontextprotocol/subscriptionId": asked("subscriptions/listen")["id"]}}
    tell("notifications/subscriptions/acknowledged", notifications={ack}, _meta=meta)
    serve()
    """
    limits = ClientLimits(call_seconds=0.3, stdin_seconds=0.2)
    async with judged(code, NEW, limits=limits, strict=True) as client:  # others read 1 as true
        with pytest.raises(RequestTimedOut):
            async with client.listen(tools=True):
                pass
        assert "ok" == words(await client.call_tool("x", timeout_seconds=PATIENCE_SECONDS))


ENDS_OF_STREAM = {
    "an error": ("refuse(first)", RequestRefused),
    "a result": ("answer(first, {'resultType': 'complete'})", StopAsyncIteration),
    "a cancellation": ("tell('notifications/cancelled', requestId=first['id'])", StopAsyncIteration),
    "no result": ("say({'jsonrpc': '2.0', 'id': first['id'], 'result': 1})", PeerError),
}


@pytest.mark.parametrize("how", ENDS_OF_STREAM)
async def test_a_stream_ends_once_and_says_how(how: str) -> None:
    end, kind = ENDS_OF_STREAM[how]
    code = f"""
    greet()
    first = asked("subscriptions/listen")
    meta = {{"io.modelcontextprotocol/subscriptionId": first["id"]}}
    tell("notifications/subscriptions/acknowledged", notifications={{"toolsListChanged": True}}, _meta=meta)
    tell("notifications/tools/list_changed", _meta=meta)
    text(asked("tools/call"), "ok")
    {end}
    tell("notifications/prompts/list_changed", _meta=meta)
    serve()
    """
    async with attacked(code, NEW) as client, client.listen(tools=True) as changes:
        assert "ok" == words(await client.call_tool("x"))
        assert "tools" == (await anext(changes)).kind
        for _ in range(2):  # with the second answer everything has come
            assert "ok" == words(await client.call_tool("x"))
        for _ in range(2):
            with pytest.raises(kind):
                await anext(changes)
        assert "ok" == words(await client.call_tool("x"))


async def test_a_listener_can_be_cancelled_while_changes_come_in_each_turn() -> None:
    server = Server("busy")

    @server.tool
    def any_tool() -> None: ...

    async with connect(server) as client, client.listen(tools=True) as changes:

        async def listen() -> None:
            async for _ in changes:
                pass

        assert await turns_until_it_ends(listen, lambda _: changes._stream.put(Change("tools"))) < 20


async def test_a_call_can_be_cancelled_while_progress_comes_in_each_turn() -> None:
    server = Server("busy")

    @server.tool
    async def wait() -> None:
        await anyio.sleep_forever()

    async with connect(server) as client:
        sent = client._engine.session._by_token

        async def call() -> None:
            await client.call_tool("wait", on_progress=lambda *_: None)

        def progress(number: int) -> None:
            for each in sent.values():
                each.add_progress(Progress(number))

        assert await turns_until_it_ends(call, progress) < 20
