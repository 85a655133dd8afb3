"""Streams of events: of one request, and of the server's own; those that break, and those that are resumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestLost, TransportClosed, connect
from mcpgen.generated.v2025_11_25 import ClientHandlers, ClientMethods, models
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import spec
from tests.specification.client.scripted_server import discovered, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, closed, opened, played

if TYPE_CHECKING:
    from tests.specification.http_client.scripted_http_server import Exchange

pytestmark = pytest.mark.anyio


def log(data: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}


def answer(asked: Exchange, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}


CONTENT: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}


# --- of one request


@spec("2025-11-25", "basic/transports#resumability-and-redelivery", "01c6e345")
@spec("2025-06-18", "basic/transports#resumability-and-redelivery")
@spec("2025-03-26", "basic/transports#resumability-and-redelivery", "195b091d")
@pytest.mark.parametrize("how", ["end", "cut"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_stream_of_a_session_that_breaks_is_resumed_behind_the_last_event(revision: str, how: str) -> None:
    heard: list[object] = []
    async with opened(revision, session="s", log=lambda params, context: heard.append(params.data)) as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(log(1), id="s/1", retry=1)
        await (asked.end() if how == "end" else asked.cut())
        first = await server.hear("GET")
        await first.begin()
        await first.event(log(2), id="s/2")
        await first.cut()
        second = await server.hear("GET")
        await second.begin()
        await second.event(answer(asked, CONTENT))
        await second.end()

        assert "done" == (await calling.outcome()).content[0].text
        assert [1, 2] == heard
        assert ["s/1", "s/2"] == [each.headers["last-event-id"] for each in (first, second)]


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "fbc5a4fb", "c2404939")
@on_both_loops
@pytest.mark.slow
async def test_a_server_that_closes_the_connection_is_polled_after_the_time_that_it_says() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.chunk(b"id: p/0\nretry: 900\ndata:\n\n")
        await asked.end()
        since = anyio.current_time()
        for number in range(2):
            polled = await server.hear("GET")
            waited, since = anyio.current_time() - since, anyio.current_time()

            assert 0.89 < waited
            assert "p/0" == polled.headers["last-event-id"]

            await polled.begin()
            if number:
                await polled.event(answer(asked, CONTENT))
            await polled.end()
        await calling.outcome()


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
async def test_an_event_without_data_is_no_message(caplog: pytest.LogCaptureFixture) -> None:
    async with opened("2025-11-25") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1")
        await asked.event(said="{}", event="other")
        await asked.event(answer(asked, CONTENT))
        await asked.end()
        await calling.outcome()

        assert [] == [each.getMessage() for each in caplog.records if each.name == "mcpgen.session"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@on_both_loops
async def test_a_stream_without_ids_takes_its_request_with_it_and_no_other() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        lost, other = (server.start(client.call_tool(name)) for name in ("lost", "other"))
        asked = {}
        for _ in range(2):
            heard = await server.hear(method="tools/call")
            asked[heard.message["params"]["name"]] = heard
        await asked["lost"].begin()
        await asked["lost"].event(log(1))
        await asked["lost"].cut()

        with pytest.raises(RequestLost, match="before tools/call was answered"):
            await lost.outcome()

        await asked["other"].result(CONTENT)
        await other.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@pytest.mark.parametrize("how", ["end", "cut"])
@on_both_loops
async def test_a_stream_of_the_stateless_era_is_never_resumed(how: str) -> None:
    async with opened(NEWEST) as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1", retry=1)
        await (asked.end() if how == "end" else asked.cut())

        with pytest.raises(RequestLost, match="before tools/call was answered"):
            await calling.outcome()

        with anyio.move_on_after(0.03):
            await server.hear("GET")
            pytest.fail("the stream was asked for again")


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@pytest.mark.parametrize(("status", "reason"), [(400, "400 Bad Request"), (405, "405 Method Not Allowed")])
async def test_a_place_that_the_server_does_not_know_loses_the_request(status: int, reason: str) -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="stale", retry=1)
        await asked.end()
        await (await server.hear("GET")).answer(status)

        with pytest.raises(RequestLost, match=f"cannot be resumed: .*{reason}"):
            await calling.outcome()


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@pytest.mark.slow
async def test_a_stream_that_cannot_be_had_again_is_tried_a_few_times() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1", retry=1)
        await asked.end()
        for status in (503, 502):
            await (await server.hear("GET")).answer(status)
        last = await server.hear("GET")
        await last.begin()
        await last.event(answer(asked, CONTENT))
        await last.end()
        await calling.outcome()


@spec("2025-11-25", "basic/utilities/cancellation#cancellation-flow")
async def test_whoever_stops_to_wait_stops_polling() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow", timeout_seconds=1))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1", retry=1)
        await asked.end()
        polled = await server.hear("GET")
        await polled.begin()
        cancelled = await server.hear(method="notifications/cancelled")
        await cancelled.accepted()
        await polled.gone()

        with pytest.raises(TimeoutError):
            await calling.outcome()

        assert asked.message["id"] == cancelled.message["params"]["requestId"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@pytest.mark.parametrize("name", ["x" * 5000, "a\x7f\x01b"])
async def test_an_id_that_no_header_can_repeat_does_not_resume_anything(name: str) -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id=name, retry=1)
        await asked.end()

        with pytest.raises(RequestLost):
            await calling.outcome()


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@on_both_loops
@pytest.mark.slow
@pytest.mark.parametrize("retry", [None, 1000])
async def test_a_call_fails_soon_if_its_server_is_gone_for_good(retry: int | None) -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        callings = [server.start(client.call_tool("slow")) for _ in range(3)]
        for _ in callings:
            asked = await server.hear(method="tools/call")
            await asked.begin()
            await asked.event(log(1), id=f"s/{asked.message['id']}", **({} if retry is None else {"retry": retry}))
        server.stop()
        began = anyio.current_time()
        for each in server.exchanges:
            if each.method == "tools/call":
                await each.cut()
        for calling in callings:
            with pytest.raises(RequestLost, match="the server ended before tools/call was answered: cannot connect to"):
                await calling.outcome()

        assert anyio.current_time() - began < 13  # as five attempts that grow rarer take
        await server.listen()  # for the end of the session


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@pytest.mark.slow
async def test_a_call_survives_a_short_restart_of_its_server() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(log(1), id="s/1", retry=1)
        server.stop()
        await asked.cut()
        await anyio.sleep(0.8)
        await server.listen()
        resumed = await server.hear("GET")
        await resumed.begin()
        await resumed.event(answer(asked, CONTENT))
        await resumed.end()

        assert "done" == (await calling.outcome()).content[0].text
        assert "s/1" == resumed.headers["last-event-id"]


# --- of the server's own


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-06-18", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-03-26", "basic/transports#listening-for-messages-from-the-server", "7494221e")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@on_both_loops
@pytest.mark.slow
async def test_the_servers_own_stream_is_listened_to_and_asked_for_again_when_it_breaks(revision: str) -> None:
    heard: list[object] = []
    events = [anyio.Event() for _ in range(3)]

    def hear(params: Any, context: object) -> None:
        heard.append(params.data)
        events[len(heard) - 1].set()

    async with opened(revision, session="s", listens=True, log=hear, roots=[]) as (_client, server):
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event(log(1), id="g/1", retry=1)
        await stream.event({"jsonrpc": "2.0", "id": 7, "method": "roots/list"}, id="g/2")
        asked = await server.hear()
        await asked.accepted()
        await stream.cut()
        again = await server.hear("GET")
        await again.begin()
        await again.event(log(2))
        await again.end()
        third = await server.hear("GET")
        await third.begin()
        await third.event(log(3))
        with anyio.fail_after(PATIENCE_SECONDS):
            for each in events:
                await each.wait()

        assert "last-event-id" not in stream.headers
        assert ["g/2", "g/2"] == [each.headers["last-event-id"] for each in (again, third)]
        assert {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}} == asked.message
        assert [1, 2, 3] == heard


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@pytest.mark.parametrize("status", [400, 404, 405, 406, 501])
async def test_a_server_may_have_no_stream_of_its_own(status: int) -> None:
    from mcpgen import connect
    from tests.specification.client.scripted_server import initialized
    from tests.specification.http_client.scripted_http_server import played

    async with played() as server:
        connecting = server.start(_start(connect(server.url, revisions=["2025-11-25"])))
        await (await server.hear(method="initialize")).result(initialized("2025-11-25"))
        await (await server.hear(method="notifications/initialized")).accepted()
        await (await server.hear("GET")).answer(status)
        client = await connecting.outcome()
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()
        with anyio.move_on_after(0.05):
            await server.hear("GET")
            pytest.fail("it was asked for again at once")
        await client.close()


async def _start(connection: Any) -> Any:
    return await connection


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "fbc5a4fb")
@pytest.mark.slow
async def test_a_stale_place_on_the_servers_own_stream_is_given_up_and_the_stream_and_its_time_are_not() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (_, server):
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event(log(1), id="g/1", retry=1400)
        await stream.end()
        stale = await server.hear("GET")
        await stale.answer(400)
        since = anyio.current_time()
        fresh = await server.hear("GET")
        waited = anyio.current_time() - since
        await fresh.begin()

        assert "g/1" == stale.headers["last-event-id"]
        assert "last-event-id" not in fresh.headers
        assert 1.39 < waited


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@pytest.mark.slow
async def test_a_conflict_with_the_stream_before_passes() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (_, server):
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event(said="", retry=1)
        await stream.cut()
        await (await server.hear("GET")).answer(409)
        await (await server.hear("GET")).begin()


# --- of the stateless era's subscriptions


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure")
@on_both_loops
async def test_a_stream_of_changes_ends_as_its_server_likes_and_is_opened_again_if_it_breaks() -> None:
    async with opened(NEWEST, limits=ClientLimits(max_connections=1)) as (client, server):

        async def listen() -> list[str]:
            async with client.listen(tools=True) as changes:
                return [change.kind async for change in changes]

        listening, ids = server.start(listen()), set()
        for how in ("cut", "graceful"):
            asked = await server.hear(method="subscriptions/listen")
            ids.add(asked.message["id"])
            meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
            await asked.begin()
            await asked.event(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/subscriptions/acknowledged",
                    "params": {"_meta": meta, "notifications": {"toolsListChanged": True}},
                }
            )
            if how == "cut":
                changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
                await asked.event(changed)
            await asked.chunk(b":\r\n\r\n")
            pinging = server.start(client.call_tool("a"))  # which a stream does not keep from being made
            call = await server.hear(method="tools/call")
            await call.result({"resultType": "complete", "content": []})
            await pinging.outcome()
            if how == "graceful":
                await asked.event(answer(asked, {"resultType": "complete", "_meta": meta}))
                await asked.end()

                # The second one may have been missed while the stream was broken.
                assert ["tools", "tools"] == await listening.outcome()
            else:
                await asked.cut()

    assert 2 == len(ids)


@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure")
@on_both_loops
@pytest.mark.parametrize(("status", "attempts"), [(502, 5), (500, 5), (401, 1)])
async def test_a_stream_of_changes_that_cannot_be_opened_again_is_given_up(
    status: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway may be without its server for a moment. Credentials that are refused stay so."""
    monkeypatch.setattr("mcpgen.runtime.client.changes._FIRST_DELAY_SECONDS", 0)
    async with opened(NEWEST) as (client, server):
        entered = anyio.Event()

        async def listen() -> None:
            async with client.listen(tools=True) as changes:
                entered.set()
                await anext(changes)

        listening = server.start(listen())
        asked = await server.hear(method="subscriptions/listen")
        await asked.begin()
        meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
        params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        await asked.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        with anyio.fail_after(PATIENCE_SECONDS):
            await entered.wait()
        await asked.cut()
        for _ in range(attempts):
            again = await server.hear(method="subscriptions/listen")
            await again.answer(status, b"gone", content_type="text/plain")
        with pytest.raises(RequestLost, match=str(status)):
            await listening.outcome()

        assert [] == server.unheard


ACKNOWLEDGED = (
    'data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":'
    '{"io.modelcontextprotocol/subscriptionId":%d},"notifications":%s}}\n\n'
)


async def made(url: str, **options: Any) -> Any:
    return await connect(url, **options)


async def acknowledge(asked: Exchange) -> None:
    await asked.begin()
    accepted = json.dumps(asked.message["params"]["notifications"])
    await asked.chunk((ACKNOWLEDGED % (asked.message["id"], accepted)).encode())


@spec("2026-07-28", "basic/patterns/index#subscribe-and-notify")
async def test_a_stream_that_only_breaks_is_opened_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes that the client reports itself, because it may have missed them, are no sign of life."""
    factors: list[float] = []

    class Seconds(float):
        def __mul__(self, factor: float) -> float:
            factors.append(factor)
            return 0

    monkeypatch.setattr("mcpgen.runtime.client.changes._FIRST_DELAY_SECONDS", Seconds(1))
    async with opened(NEWEST) as (client, server):

        async def listen() -> None:
            async with client.listen(tools=True) as changes:
                for _ in range(3):
                    await anext(changes)

        listening = server.start(listen())
        for _ in range(3):
            asked = await server.hear(method="subscriptions/listen")
            await acknowledge(asked)
            await asked.cut()
        await acknowledge(await server.hear(method="subscriptions/listen"))
        await listening.outcome()

    assert [2, 4] == factors


@spec("2026-07-28", "basic/patterns/index#subscribe-and-notify")
@on_both_loops
async def test_the_streams_of_handlers_are_opened_again_and_report_what_they_may_have_missed() -> None:
    told: list[str] = []
    have_run = [anyio.Event(), anyio.Event()]

    class Handlers(ClientHandlers[Any]):
        async def tool_list_changed(self, params: models.NotificationParams, context: Any, /) -> None:
            del params
            told.append(context.method)
            have_run[0].set()

        async def resource_updated(self, params: models.ResourceUpdatedNotificationParams, context: Any, /) -> None:
            del context
            told.append(params.uri)
            have_run[1].set()

    can = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    async with played() as server:
        connecting = server.start(
            made(server.url, revisions=[NEWEST], native_revision="2025-11-25", handlers=Handlers())
        )
        await (await server.hear(method="server/discover")).result(discovered(can))
        lists = await server.hear(method="subscriptions/listen")
        await acknowledge(lists)
        client = await connecting.outcome()
        subscribing = server.start(ClientMethods(client).subscribe(models.SubscribeRequestParams(uri="a:b")))
        watched = await server.hear(method="subscriptions/listen")
        await acknowledge(watched)
        await subscribing.outcome()
        ids = [lists.message["id"], watched.message["id"]]
        for stream in (lists, watched):
            await stream.cut()
            again = await server.hear(method="subscriptions/listen")
            assert stream.message["params"]["notifications"] == again.message["params"]["notifications"]
            ids.append(again.message["id"])
            await acknowledge(again)
        with anyio.fail_after(PATIENCE_SECONDS):
            for each in have_run:
                await each.wait()
        await closed(client, server)

    assert ["notifications/tools/list_changed", "a:b"] == told
    assert 4 == len(set(ids))


@spec("2026-07-28", "changelog#major-changes", "b6bc3b94")
@on_both_loops
async def test_a_request_that_only_reads_is_sent_again_with_a_new_id_if_its_stream_breaks() -> None:
    async with opened(NEWEST) as (client, server):
        reading = server.start(client.read_resource("a:b"))
        first = await server.hear(method="resources/read")
        await first.begin()
        await first.cut()
        second = await server.hear(method="resources/read")
        done = {"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}
        await second.result(done)

        assert [] == (await reading.outcome()).contents
        assert first.message["params"] == second.message["params"]
        assert first.message["id"] != second.message["id"]

        calling = server.start(client.call_tool("a"))  # it may have an effect, so its caller decides
        call = await server.hear(method="tools/call")
        await call.begin()
        await call.cut()
        with pytest.raises(RequestLost):
            await calling.outcome()

        assert [] == server.unheard


@spec("2026-07-28", "changelog#major-changes", "b6bc3b94")
@on_both_loops
async def test_a_request_that_only_reads_is_sent_again_once_if_its_connection_breaks() -> None:
    async with opened(NEWEST) as (client, server):
        reading = server.start(client.read_resource("a:b"))
        first = await server.hear(method="resources/read")
        await first.cut()
        second = await server.hear(method="resources/read")
        await second.cut()
        with pytest.raises(RequestLost):
            await reading.outcome()

        assert first.message["params"] == second.message["params"]
        assert first.message["id"] != second.message["id"]
        assert [] == server.unheard


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
async def test_whoever_leaves_a_stream_of_changes_closes_its_response() -> None:
    async with opened(NEWEST) as (client, server):
        left = anyio.Event()

        async def listen() -> None:
            async with client.listen(tools=True):
                pass
            left.set()

        listening = server.start(listen())
        asked = await server.hear(method="subscriptions/listen")
        meta = {"io.modelcontextprotocol/subscriptionId": asked.message["id"]}
        await asked.begin()
        params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        await asked.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        await listening.outcome()
        await asked.gone()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#multiple-connections")
async def test_closing_the_client_ends_all_streams() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (client, server):
        calling = server.start(client.call_tool("slow"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await closed(client, server, "s")
        server.manners.session = None
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await asked.gone()
        await stream.gone()

        with pytest.raises(TransportClosed, match="the client was closed"):
            await calling.outcome()
