"""Giving up over HTTP: by whoever waits for an answer, by the clock, and by closing the client."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestTimedOut, connect
from mcpgen.generated.v2026_07_28 import ClientHandlers
from mcpgen.runtime.http.client import channel
from tests.specification.citation import spec
from tests.specification.client.scripted_server import discovered, initialized, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, Exchange, closed, opened, played, text

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
@pytest.mark.parametrize("how", ["before the answer", "on its stream"])
@on_both_loops
async def test_a_stateless_request_is_cancelled_by_closing_its_response(how: str) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        if how == "on its stream":
            await asked.begin()
            await asked.chunk(b": here\n\n")
        await calling.cancel()
        await asked.gone()

        assert [] == server.unheard


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
async def test_a_stateless_request_that_takes_too_long_is_cancelled_likewise() -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("slow", timeout_seconds=1))
        asked = await server.hear(method="tools/call")

        with pytest.raises(RequestTimedOut):
            await calling.outcome()

        await asked.gone()

        assert [] == server.unheard


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@on_both_loops
async def test_the_time_to_connect_is_also_that_of_the_stream_of_changes() -> None:
    class Handlers(ClientHandlers[object]):
        async def tool_list_changed(self, params: object, context: object, /) -> None: ...

    async def connecting(url: str) -> None:
        await connect(url, revisions=[NEWEST], handlers=Handlers(), limits=ClientLimits(connect_seconds=4))

    async with played() as server:
        errand = server.start(connecting(server.url))
        await (await server.hear(method="server/discover")).result(discovered())
        asked = await server.hear(method="subscriptions/listen")
        await asked.begin()

        with pytest.raises(RequestTimedOut, match="was not ready within 4 seconds"):
            await errand.outcome()

        await asked.gone()


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "37542e57")
@spec("2025-11-25", "basic/utilities/cancellation#cancellation-flow")
@on_both_loops
async def test_in_a_session_the_server_is_told_and_then_the_response_is_closed() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await calling.cancel()
        told = await server.hear(method="notifications/cancelled")

        assert asked.message["id"] == told.message["params"]["requestId"]
        assert not asked.left.is_set()

        await told.accepted()
        await asked.gone()


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@pytest.mark.parametrize("what", ["a call", "a task"])
@on_both_loops
async def test_no_response_stays_open_that_the_client_does_not_wait_for(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpgen.runtime.http.client.channel._FORGOTTEN_SECONDS", 0.05)
    can = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
    async with opened("2025-11-25", session="s", can=can) as (client, server):
        calling = server.start(client.call_tool("slow"))
        support = "required" if what == "a task" else "forbidden"
        tool = {"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
        await (await server.hear(method="tools/list")).result({"tools": [tool]})
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.chunk(b"data: ")
        await anyio.sleep(0.2)

        assert not asked.left.is_set()

        await calling.cancel()
        if what == "a call":
            await server.hear(method="notifications/cancelled")  # it is not answered
        await asked.gone()

        assert [] == server.unheard


@spec("2025-11-25", "basic/utilities/tasks#task-cancellation")
@on_both_loops
async def test_the_response_to_the_cancellation_of_a_task_does_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgen.runtime.http.client.channel._FORGOTTEN_SECONDS", 0.05)
    can = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
    async with opened("2025-11-25", session="s", can=can) as (client, server):
        calling = server.start(client.call_tool("slow"))
        tool = {"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        await (await server.hear(method="tools/list")).result({"tools": [tool]})
        times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000}
        task = {"taskId": "t", "status": "working", **times}
        await (await server.hear(method="tools/call")).result({"task": task})
        waiting = await server.hear(method="tasks/result")
        await calling.cancel()
        await (await server.hear(method="notifications/cancelled")).accepted()
        await waiting.gone()
        asked = await server.hear(method="tasks/cancel")
        await asked.begin()
        await asked.gone()

        assert [] == server.unheard


@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
async def test_a_request_that_waits_for_its_turn_is_never_made_when_it_is_cancelled() -> None:
    async with opened(NEWEST, limits=ClientLimits(max_connections=1)) as (client, server):
        first = server.start(client.call_tool("first"))
        asked = await server.hear(method="tools/call")
        second = server.start(client.call_tool("second"))
        await anyio.wait_all_tasks_blocked()
        await second.cancel()
        await asked.result(text())
        await first.outcome()
        await anyio.wait_all_tasks_blocked()

        assert [] == server.unheard


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "46be44ab")
async def test_a_request_that_waits_for_its_turn_in_a_session_is_never_made_when_it_is_cancelled() -> None:
    async with opened("2025-11-25", session="s", limits=ClientLimits(max_connections=1)) as (client, server):
        first = server.start(client.call_tool("first"))
        asked = await server.hear(method="tools/call")
        second = server.start(client.call_tool("second"))
        await anyio.wait_all_tasks_blocked()
        await second.cancel()
        await asked.result(text())
        await first.outcome()
        await anyio.wait_all_tasks_blocked()

        assert [] == server.unheard


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "46be44ab", "bc1a3f4c")
@pytest.mark.parametrize("when", ["before the client knows that the session is lost", "while the new session starts"])
async def test_a_call_that_is_cancelled_is_not_made_in_a_new_session(when: str) -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        if when == "before the client knows that the session is lost":
            await calling.cancel()
            told = await server.hear(method="notifications/cancelled")
            await asked.answer(404)
            greeting = await server.hear(method="initialize")
            await told.answer(404)
        else:
            await asked.answer(404)
            greeting = await server.hear(method="initialize")
            await calling.cancel()
        server.manners.session = "t"
        await greeting.result(initialized("2025-11-25"), mcp_session_id="t")
        await (await server.hear(method="notifications/initialized")).accepted()
        await (await server.hear("GET")).answer(405)
        await anyio.wait_all_tasks_blocked()

        assert [] == server.unheard


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "46be44ab")
async def test_a_call_of_a_lost_session_is_not_cancelled_in_the_new_one() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        slow, other = server.start(client.call_tool("slow")), await server.hear(method="tools/call")
        fast = server.start(client.call_tool("fast"))
        await (await server.hear(method="tools/call")).answer(404)
        greeting = await server.hear(method="initialize")
        server.manners.session = "t"
        await greeting.result(initialized("2025-11-25"), mcp_session_id="t")
        await (await server.hear(method="notifications/initialized")).accepted()
        await (await server.hear("GET")).answer(405)
        await (await server.hear(method="tools/call")).result(text())
        await fast.outcome()
        await slow.cancel()
        await other.gone()
        await anyio.wait_all_tasks_blocked()

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
@on_both_loops
async def test_a_client_that_is_given_up_while_it_connects_leaves_nothing() -> None:
    async with played() as server:

        async def run() -> Any:
            return await connect(server.url)

        connecting = server.start(run())
        asked = await server.hear(method="server/discover")
        await connecting.cancel()
        await asked.gone()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
async def test_a_client_is_closed_from_any_task_while_others_wait() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (client, server):
        calls = [server.start(client.call_tool("slow")) for _ in range(3)]
        asked = [await server.hear(method="tools/call") for _ in calls]
        closing = [server.start(client.close()) for _ in range(3)]
        await (await server.hear("DELETE")).answer(200)
        for each in closing:
            await each.outcome()
        for each in asked:
            await each.gone()
        server.manners.session = None

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
async def test_clients_that_share_an_httpx_client_leave_it_open() -> None:
    import httpx

    from mcpgen import Http
    from tests.specification.http_client.scripted_http_server import text

    async with played() as server, httpx.AsyncClient(headers={"X-From": "caller"}) as ours:
        target = Http(server.url, client=ours)

        async def run() -> Any:
            return await connect(target, revisions=[NEWEST])

        for _ in range(2):
            connecting = server.start(run())
            await (await server.hear(method="server/discover")).result(discovered())
            client = await connecting.outcome()
            calling = server.start(client.call_tool("a"))
            asked = await server.hear(method="tools/call")
            await asked.result(text())
            await calling.outcome()
            await closed(client, server)

            assert "caller" == asked.headers["x-from"]

        assert not ours.is_closed
        assert 1 == server.connections


@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
async def test_responses_to_calls_that_were_answered_elsewhere_do_not_stay_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "_FORGOTTEN_SECONDS", 1000.0)
    monkeypatch.setattr(channel, "_MAX_FORGOTTEN", 2)
    async with opened(NEWEST) as (client, server):
        server.start(client.call_tool("slow"))
        other = await server.hear(method="tools/call")
        await other.begin()
        exchanges: list[Exchange] = []
        for _ in range(6):
            calling = server.start(client.call_tool("quick"))
            exchanges.append(await server.hear(method="tools/call"))
            await exchanges[-1].begin()
            await other.event({"jsonrpc": "2.0", "id": exchanges[-1].message["id"], "result": text("ok")})
            await calling.outcome()
        for each in exchanges[:2]:
            await each.gone()

        assert not exchanges[-1].left.is_set()
