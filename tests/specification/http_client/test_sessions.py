"""Sessions: how one is ended, and what happens when a server does not know it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestLost, RequestRefused, TransportClosed, connect
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.specification.citation import spec
from tests.specification.client.scripted_server import initialized, on_both_loops
from tests.specification.http_client.scripted_http_server import Exchange, Played, closed, opened, played

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.newest import models

pytestmark = pytest.mark.anyio

HTTP = ["2025-03-26", "2025-06-18", "2025-11-25"]
PING: dict[str, Any] = {}


async def renew(server: Played, revision: str, session: str = "t", *, listens: bool = False) -> Exchange:
    """Begin another session, as a server does that knows nothing of the one before."""
    server.is_judged = False  # there is a second handshake on what is one connection to the client
    asked = await server.hear(method="initialize")
    server.manners.session = session
    await asked.result(initialized(revision), mcp_session_id=session)
    await (await server.hear(method="notifications/initialized")).accepted()
    return asked


@spec("2025-11-25", "basic/transports#session-management")
@spec("2025-06-18", "basic/transports#session-management")
@spec("2025-03-26", "basic/transports#session-management", "596d5817")
@pytest.mark.parametrize("revision", HTTP)
@on_both_loops
async def test_a_session_that_is_lost_is_begun_again_and_nobody_notices(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcpgen.client")
    async with opened(revision, session="s") as (client, server):
        server.is_judged = False
        greeting = server.exchanges[0].message["params"]
        calling = server.start(client.call_tool("a"))
        first = await server.hear(method="tools/call")
        await first.answer(404)
        again = await renew(server, revision)
        second = await server.hear(method="tools/call")
        await second.result({"content": []})
        await calling.outcome()
        await (await server.hear("GET")).answer(405)

        assert greeting == again.message["params"]
        assert "mcp-session-id" not in again.headers
        assert "mcp-protocol-version" not in again.headers
        assert first.body == second.body
        assert ("s", "t") == (first.headers["mcp-session-id"], second.headers["mcp-session-id"])
        assert not client.instructions
        assert [f"{server.url} lost the session; a new one was started"] == [
            each.message for each in caplog.records if each.name == "mcpgen.client"
        ]

        goodbye = server.start(client.close())
        left = await server.hear("DELETE")
        await left.answer(200)
        await goodbye.outcome()
        server.manners.session = None

        assert "t" == left.headers["mcp-session-id"]


@spec("2025-03-26", "client/roots#root-list-changes", "de3fa91f")
@spec("2025-06-18", "client/roots#root-list-changes", "de3fa91f")
@spec("2025-11-25", "client/roots#root-list-changes", "de3fa91f")
@pytest.mark.parametrize("revision", HTTP)
@on_both_loops
async def test_a_change_of_the_roots_that_finds_the_session_lost_is_notified_in_the_new_one(revision: str) -> None:
    async with opened(revision, session="s", roots=lambda context: []) as (client, server):
        server.is_judged = False
        await client.roots_changed()
        await (await server.hear(method="notifications/roots/list_changed")).answer(404)
        await renew(server, revision)
        await (await server.hear("GET")).answer(405)
        again = await server.hear(method="notifications/roots/list_changed")
        await again.accepted()

        assert "t" == again.headers["mcp-session-id"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "e715fcef")
@on_both_loops
async def test_the_tools_are_listed_again_in_a_new_session_before_one_is_started_as_a_task() -> None:
    can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    async with opened("2025-11-25", session="s", can=can) as (client, server):
        server.is_judged = False
        tool = {"name": "a", "inputSchema": {"type": "object"}}
        listing = server.start(client.list_tools())
        listed = await server.hear(method="tools/list")
        await listed.result({"tools": [{**tool, "execution": {"taskSupport": "required"}}]})
        await listing.outcome()
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).answer(404)
        await renew(server, "2025-11-25")  # the server was started again, in another version
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()
        await (await server.hear("GET")).answer(405)
        calling = server.start(client.start_tool("a"))
        await (await server.hear(method="tools/list")).result({"tools": [tool]})
        call = await server.hear(method="tools/call")
        await call.result({"content": []})
        await calling.outcome()

    assert "task" not in call.message["params"]


@spec("2025-11-25", "server/utilities/pagination#implementation-guidelines", "f5b6f5c0")
@pytest.mark.parametrize("revision", HTTP)
async def test_a_cursor_of_a_lost_session_is_not_sent_in_another(revision: str) -> None:
    async with opened(revision, session="s") as (client, server):
        server.is_judged = False
        listing, first = server.start(client.list_tools()), await server.hear(method="tools/list")
        await first.result({"tools": [], "nextCursor": "c1"})
        await listing.outcome()
        listing, second = server.start(client.list_tools("c1")), await server.hear(method="tools/list")
        await second.answer(404)
        await renew(server, revision)
        await (await server.hear("GET")).answer(405)
        with pytest.raises(RequestLost, match="list again from the start"):
            await listing.outcome()
        with pytest.raises(RequestLost, match="list again from the start"):
            await client.list_tools("c1")

        assert [] == server.unheard

        listing, again = server.start(client.list_tools()), await server.hear(method="tools/list")
        await again.result({"tools": [], "nextCursor": "c1"})  # the same cursor, now of the new session
        await listing.outcome()
        listing, last = server.start(client.list_tools("c1")), await server.hear(method="tools/list")
        await last.result({"tools": []})
        await listing.outcome()

        assert {"cursor": "c1"} == last.message["params"]


@spec("2025-11-25", "basic/transports#session-management")
async def test_requests_that_find_the_session_lost_together_share_another() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        calls = [server.start(client.call_tool(f"t{number}")) for number in range(4)]
        for each in [await server.hear(method="tools/call") for _ in calls]:
            await each.answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear("GET")).answer(405)
        for _ in calls:
            asked = await server.hear(method="tools/call")
            await asked.result({"content": []})

            assert "t" == asked.headers["mcp-session-id"]

        for each in calls:
            await each.outcome()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management")
async def test_whoever_noticed_may_be_cancelled_and_the_others_have_the_new_session_all_the_same() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        first, second = (server.start(client.call_tool(name)) for name in "ab")
        asked = {}
        for _ in range(2):
            heard = await server.hear(method="tools/call")
            asked[heard.message["params"]["name"]] = heard
        await asked["a"].answer(404)
        greeting = await server.hear(method="initialize")
        await asked["b"].answer(404)
        await first.cancel()
        server.manners.session = "t"
        await greeting.result(initialized("2025-11-25"), mcp_session_id="t")
        await (await server.hear(method="notifications/initialized")).accepted()
        await (await server.hear("GET")).answer(405)
        again = await server.hear(method="tools/call")
        await again.result({"content": []})
        await second.outcome()

        assert "b" == again.message["params"]["name"]
        assert [] == server.unheard


@spec("2025-11-25", "server/utilities/logging#setting-log-level")
@spec("2025-11-25", "server/resources#subscriptions")
async def test_a_new_session_is_told_what_the_old_one_was_told() -> None:
    async with opened("2025-11-25", session="s", log=lambda params, context: None) as (client, server):
        server.is_judged = False
        for method, params in [
            ("logging/setLevel", {"level": "debug"}),
            ("logging/setLevel", {"level": "error"}),
            ("resources/subscribe", {"uri": "a:1"}),
            ("resources/subscribe", {"uri": "a:2"}),
            ("resources/subscribe", {"uri": "a:no"}),
            ("resources/unsubscribe", {"uri": "a:1"}),
        ]:
            asking = server.start(client.request_json(method, params))
            asked = await server.hear(method=method)
            if params.get("uri") == "a:no":
                await asked.error(-32002, status=200)
                with pytest.raises(RequestRefused):
                    await asking.outcome()
            else:
                await asked.result({})
                await asking.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        again = [await server.hear(method="logging/setLevel")]
        await again[0].result({})
        again.append(await server.hear(method="resources/subscribe"))
        await again[1].result({})
        await (await server.hear(method="tools/call")).result({"content": []})
        await calling.outcome()
        await (await server.hear("GET")).answer(405)

        assert [{"level": "error"}, {"uri": "a:2"}] == [each.message["params"] for each in again]
        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management")
async def test_another_revision_than_before_ends_the_conversation() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        asked = await server.hear(method="initialize")
        await asked.result(initialized("2025-06-18"), mcp_session_id="t")
        server.manners.session = None

        why = "the server lost the session, and no new one could be started: the server answers with 2025-06-18 now"
        with pytest.raises(TransportClosed, match=why):
            await calling.outcome()
        with pytest.raises(TransportClosed, match=why):
            await client.ping()


@spec("2025-11-25", "basic/transports#session-management")
@pytest.mark.parametrize("how", ["status", "error", "hang up", "page"])
async def test_a_session_that_cannot_be_begun_again_ends_the_conversation(how: str) -> None:
    async with opened("2025-11-25", session="s", limits=ClientLimits(connect_seconds=5)) as (client, server):
        server.is_judged = False
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        asked = await server.hear(method="initialize")
        match how:
            case "status":
                await asked.answer(500)
            case "error":
                await asked.error(-32000, "too many sessions", status=200)
            case "hang up":
                await asked.cut()
            case _:
                await asked.answer(200, b"<html>", content_type="text/html")
        server.manners.session = None

        with pytest.raises(TransportClosed, match="the server lost the session, and no new one could be started: "):
            await calling.outcome()


@spec("2025-11-25", "basic/transports#session-management")
async def test_a_session_that_is_not_begun_again_in_time_is_an_error_with_the_limit() -> None:
    async with opened("2025-11-25", session="s", limits=ClientLimits(connect_seconds=1)) as (client, server):
        server.is_judged = False
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await server.hear(method="initialize")
        server.manners.session = None

        with pytest.raises(TransportClosed, match=r"could be started: it took longer than connect_seconds=1$"):
            await calling.outcome()


@spec("2025-11-25", "basic/transports#session-management")
async def test_a_server_that_loses_each_session_at_once_is_given_up() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear("GET")).answer(405)
        await (await server.hear(method="tools/call")).answer(404)
        server.manners.session = None

        with pytest.raises(TransportClosed, match="does not know the session that it has just started"):
            await calling.outcome()


@spec("2025-11-25", "basic/transports#session-management", "596d5817")
@pytest.mark.parametrize("code", [-32001, -32600, -32601])
async def test_404_is_a_lost_session_whatever_the_error_in_its_body(code: int) -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).error(code, "no such session", status=404)
        await renew(server, "2025-11-25")
        await (await server.hear("GET")).answer(405)
        again = await server.hear(method="tools/call")
        await again.result({"content": []})
        await calling.outcome()

        assert "t" == again.headers["mcp-session-id"]


@spec("2025-11-25", "basic/transports#session-management")
async def test_a_method_that_the_server_lacks_in_a_new_session_too_is_refused_and_no_lost_session() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).error(-32601, "what?", status=404)
        await renew(server, "2025-11-25")
        await (await server.hear("GET")).answer(405)
        await (await server.hear(method="tools/call")).error(-32601, "what?", status=404)
        with pytest.raises(RequestRefused, match=r"what\?"):
            await calling.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).error(-32601, "what?", status=404)
        with pytest.raises(RequestRefused, match=r"what\?"):
            await calling.outcome()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management")
async def test_without_a_session_404_is_404() -> None:
    async with opened("2025-11-25") as (client, server):
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404, b"nothing here", content_type="text/plain")

        with pytest.raises(RequestLost, match=r"404 Not Found.*nothing here"):
            await calling.outcome()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management", "596d5817")
async def test_a_session_that_ends_before_its_first_stream_is_begun_again_once() -> None:
    """A server that answers the GET of the new session with 404 has no such stream."""

    async def connected(url: str) -> Any:
        return await connect(url, revisions=["2025-11-25"])

    async with played() as server:
        connecting = server.start(connected(server.url))
        await (await server.hear(method="initialize")).result(initialized("2025-11-25"), mcp_session_id="s")
        await (await server.hear(method="notifications/initialized")).accepted()
        client = await connecting.outcome()
        server.is_judged = False
        streams = [await server.hear("GET")]
        await streams[0].answer(404)
        again = await renew(server, "2025-11-25")
        streams.append(await server.hear("GET"))
        await streams[1].answer(404)
        calling = server.start(client.call_tool("a"))
        called = await server.hear(method="tools/call")
        await called.result({"content": []})
        await calling.outcome()
        await closed(client, server, "t")

    assert "mcp-session-id" not in again.headers
    assert ["s", "t", "t"] == [each.headers["mcp-session-id"] for each in (*streams, called)]


@spec("2025-11-25", "basic/transports#session-management")
async def test_requests_whose_streams_died_with_the_session_are_lost() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        lost = server.start(client.call_tool("lost"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1", retry=1)
        await asked.cut()
        await (await server.hear("GET")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear("GET")).answer(405)

        with pytest.raises(RequestLost, match="the session was lost before tools/call was answered"):
            await lost.outcome()

        other = server.start(client.call_tool("other"))
        await (await server.hear(method="tools/call")).result({"content": []})
        await other.outcome()


@spec("2025-11-25", "basic/transports#session-management")
async def test_a_stream_of_a_lost_session_is_not_resumed_in_another() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        server.is_judged = False
        lost = server.start(client.call_tool("lost"))
        asked = await server.hear(method="tools/call")
        await asked.begin()
        await asked.event(said="", id="1", retry=1)
        other = server.start(client.call_tool("other"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear(method="tools/call")).result({"content": []})
        await other.outcome()
        await (await server.hear("GET")).answer(405)
        await asked.cut()

        with pytest.raises(RequestLost, match="the session was lost before tools/call was answered"):
            await lost.outcome()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
async def test_the_stream_of_a_lost_session_does_not_stay_open() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (client, server):
        server.is_judged = False
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.chunk(b"data: ")
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear(method="tools/call")).result({"content": []})
        await calling.outcome()
        await (await server.hear("GET")).answer(405)
        await stream.gone()

        assert [] == server.unheard


@spec("2025-11-25", "basic/transports#session-management", "36ed2aba")
async def test_an_answer_that_waits_while_the_session_is_lost_is_not_sent_in_another() -> None:
    async with opened("2025-11-25", session="s", listens=True, roots=[]) as (client, server):
        server.is_judged = False
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        first = await server.hear(method="")
        await stream.event({"jsonrpc": "2.0", "id": 2, "method": "roots/list"})
        await anyio.wait_all_tasks_blocked()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear(method="tools/call")).result({"content": []})
        await calling.outcome()
        await first.accepted()
        pinging = server.start(client.ping())
        await (await server.hear(method="ping")).result({})
        await pinging.outcome()

        assert 1 == first.message["id"]
        assert {"GET"} >= set(server.unheard)


@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
async def test_an_answer_to_what_a_lost_session_asked_never_reaches_another() -> None:
    asked_user, cancelled = anyio.Event(), anyio.Event()

    async def elicit(params: models.ElicitRequestFormParams, context: object) -> models.ElicitResult:
        asked_user.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with opened("2025-11-25", session="s", listens=True, elicit=elicit) as (client, server):
        server.is_judged = False
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        params = {"mode": "form", "message": "Delete all?", "requestedSchema": {"type": "object", "properties": {}}}
        await stream.event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
        await asked_user.wait()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)
        await renew(server, "2025-11-25")
        await (await server.hear(method="tools/call")).result({"content": []})
        await calling.outcome()
        await stream.cut()
        with anyio.fail_after(PATIENCE_SECONDS):
            await cancelled.wait()
        await anyio.wait_all_tasks_blocked()

        assert {"GET"} >= set(server.unheard)


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-11-25", "basic/transports#session-management")
@pytest.mark.slow
async def test_the_servers_own_stream_finds_a_lost_session_as_well() -> None:
    async with opened("2025-11-25", session="s", listens=True) as (_client, server):
        server.is_judged = False
        (stream,) = [each for each in server.exchanges if each.verb == "GET"]
        await stream.event(said="", id="1", retry=1)
        await stream.cut()
        again = await server.hear("GET")
        await again.answer(404)
        await renew(server, "2025-11-25")
        fresh = await server.hear("GET")
        await fresh.begin()

        assert ("s", "1") == (again.headers["mcp-session-id"], again.headers["last-event-id"])
        assert ("t", None) == (fresh.headers["mcp-session-id"], fresh.headers.get("last-event-id"))


# --- its end


@spec("2025-11-25", "basic/transports#session-management")
@spec("2025-06-18", "basic/transports#session-management")
@spec("2025-03-26", "basic/transports#session-management", "7d366b11")
@pytest.mark.parametrize("revision", HTTP)
@pytest.mark.parametrize("status", [200, 204, 405, 404, 500])
async def test_the_server_is_told_that_the_session_is_over_whatever_it_says(revision: str, status: int) -> None:
    async with opened(revision, session="s") as (client, server):
        closing = server.start(client.close())
        left = await server.hear("DELETE")
        await left.answer(status)
        await closing.outcome()
        server.manners.session = None

        assert (b"", "s") == (left.body, left.headers["mcp-session-id"])


@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
@pytest.mark.slow
async def test_a_server_that_does_not_answer_the_good_bye_is_not_waited_for() -> None:
    async with opened("2025-11-25", session="s") as (client, server):
        since = anyio.current_time()
        await client.close()

        assert anyio.current_time() - since < BUSY_SECONDS

        await (await server.hear("DELETE")).gone()
        server.manners.session = None


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions")
async def test_the_stateless_era_has_no_sessions_whatever_a_server_says() -> None:
    from mcpgen import connect
    from tests.specification.client.scripted_server import discovered
    from tests.specification.http_client.scripted_http_server import NEWEST, played, text

    async def start(connection: Any) -> Any:
        return await connection

    async with played() as server:
        connecting = server.start(start(connect(server.url, revisions=[NEWEST])))
        await (await server.hear(method="server/discover")).result(discovered(), mcp_session_id="s")
        client = await connecting.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).result(text(), mcp_session_id="s")
        await calling.outcome()
        calling = server.start(client.call_tool("a"))
        await (await server.hear(method="tools/call")).answer(404)

        with pytest.raises(RequestLost):
            await calling.outcome()

        await closed(client, server)

        assert [] == server.unheard
        assert not any("mcp-session-id" in each.headers for each in server.exchanges)
