"""What a server tells on its own: progress and log entries of requests, and changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.specification.http_server.http_clients import STATELESS, caller, joined
from tests.specification.http_server.revision_sets import everywhere, on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import demo

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange

pytestmark = pytest.mark.anyio

LOGGED = '"io.modelcontextprotocol/logLevel":"info"'


def told(stream: Exchange) -> list[str]:
    return [json.loads(each.data).get("method") for each in stream.pending if each.data]


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "c8faa00d")
@with_sessions
@on_both_loops
async def test_progress_and_entries_come_on_the_stream_of_their_request(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        session = await peer.listen().begun()
        await peer.result("logging/setLevel", '"level":"info"')
        progress, log = peer.call("progress", meta='"progressToken":"p"'), peer.call("log")
        for each in (progress, log):
            await each.complete()
        await peer.web.quiet()

        assert ["notifications/progress"] * 2 + [None] == told(progress)
        assert ["notifications/message"] * 3 + [None] == told(log)
        assert [] == told(session)


@spec("2025-11-25", "server/utilities/logging#setting-log-level")
@with_sessions
async def test_the_level_of_one_session_is_not_that_of_another(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        other = await joined(peer.web, revision)
        await peer.result("logging/setLevel", '"level":"emergency"')
        await other.result("logging/setLevel", '"level":"error"')
        logs = [each.call("log") for each in (peer, other)]
        for each in logs:
            await each.complete()

        assert [1, 2] == [told(each).count("notifications/message") for each in logs]


@spec("2026-07-28", "server/utilities/logging#per-request-log-level", "fca1134c")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages", "15cee74a")
async def test_a_stateless_request_gets_its_own_entries_and_nobody_else_s() -> None:
    async with caller(demo(), STATELESS) as peer:
        listen = peer.send("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
        await listen.message()
        with_level, without = peer.call("log", meta=LOGGED), peer.call("log")
        for each in (with_level, without):
            await each.complete()
        await peer.web.quiet()

        assert ["notifications/message"] * 3 + [None] == told(with_level)
        assert not without.is_stream
        assert [] == told(listen)


@spec("2026-07-28", "basic/patterns/progress#behavior-requirements")
async def test_two_stateless_clients_may_use_the_same_token() -> None:
    async with caller(demo(), STATELESS) as peer:
        calls = [peer.call("progress", meta='"progressToken":1') for _ in range(2)]
        for each in calls:
            await each.complete()

        assert [["notifications/progress"] * 2 + [None]] * 2 == [told(each) for each in calls]


@spec("2025-11-25", "basic/utilities/progress#behavior-requirements")
@everywhere
async def test_without_a_token_there_is_no_progress_and_no_stream(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = await peer.call("progress").complete()

    assert not answer.is_stream


@spec("2025-03-26", "server/resources#subscriptions")
@spec("2025-11-25", "server/resources#subscriptions")
@with_sessions
@on_both_loops
async def test_changes_of_a_resource_come_to_the_session_that_watches_it(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        other = await joined(peer.web, revision)
        streams = [await each.listen().begun() for each in (peer, other)]
        await peer.result("resources/subscribe", '"uri":"note://a"')
        await peer.web.server.resource_updated("note://a")
        await peer.web.server.resource_updated("note://b")
        await peer.web.quiet()

        assert [["notifications/resources/updated"], []] == [told(each) for each in streams]


@spec("2025-11-25", "server/resources#subscriptions")
@with_sessions
async def test_a_change_that_a_request_causes_is_told_to_the_session_as_any_other(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        session = await peer.listen().begun()
        await peer.result("resources/subscribe", '"uri":"note://a"')
        call = await peer.call("touch").complete()
        await peer.web.quiet()
        found = told(session) + (told(call) if call.is_stream else [])

    assert 1 == found.count("notifications/resources/updated")


@spec("2025-11-25", "server/tools#list-changed-notification")
@with_sessions
async def test_a_change_reaches_sessions_and_streams_of_both_eras(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        modern = await joined(peer.web, STATELESS)
        listen = modern.send("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
        await listen.message()
        session = await peer.listen().begun()
        await peer.call("grow").complete()
        await peer.web.quiet()

        assert ["notifications/tools/list_changed"] == told(session)
        assert ["notifications/tools/list_changed"] == told(listen)


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
async def test_a_stateless_request_hears_of_no_changes() -> None:
    async with caller(demo(), STATELESS) as peer:
        answer = await peer.call("grow").complete()

    assert not answer.is_stream
