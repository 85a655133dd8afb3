"""Bounds on what one client, or all of them, may ask of the transport.

They bound what one worker keeps. The next request goes to the next worker, so several workers allow as many times as
much, and refuse the request after that.
"""

from __future__ import annotations

import json

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Context, Server
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import HttpLimits, Limits
from tests.specification.http_server.asgi_exchange import PATIENCE_SECONDS
from tests.specification.http_server.http_clients import (
    BOTH,
    JSON,
    STATELESS,
    STREAM,
    Caller,
    caller,
    initialize,
    joined,
)
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.revision_sets import everywhere, on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_there_are_no_more_sessions_than_allowed(revision: str) -> None:
    async with site(demo(), limits=HttpLimits(max_sessions=2)) as web:
        web.overseer.expects_failure = True
        peers = [await joined(web, revision) for _ in range(2)]
        for each in peers:
            await each.listen().begun()
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision))
        for each in peers:
            assert "tools" in await each.result("tools/list")
        await peers[0].delete()
        again = await joined(web, revision)

    assert answer.status in (429, 503)
    assert None is answer.header("mcp-session-id")
    assert again.session


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_a_session_whose_client_never_came_back_makes_room(revision: str) -> None:
    async with site(demo(), limits=HttpLimits(max_sessions=2)) as web:
        used = await joined(web, revision)
        for _ in range(WORKERS):
            assert "tools" in await used.result("tools/list")
        begun = [await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision)) for _ in range(2 * WORKERS)]
        await web.quiet()

        assert "tools" in await used.result("tools/list")
        lost = await web.ask(
            "POST",
            "/mcp",
            [JSON, BOTH, ("Mcp-Session-Id", begun[0].header("mcp-session-id") or "")],
            used.request(1, "ping"),
        )

    assert {200} == {each.status for each in begun}
    assert 404 == lost.status


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_who_is_not_agreed_with_takes_no_room(revision: str) -> None:
    async with site(demo(), limits=HttpLimits(max_sessions=1)) as web:
        first = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision))
        nonsense = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}'
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], nonsense)
        session = ("Mcp-Session-Id", first.header("mcp-session-id") or "")
        kept = await web.ask("POST", "/mcp", [JSON, BOTH, session], b'{"jsonrpc":"2.0","id":1,"method":"ping"}')

    assert (-32602, None) == (refused.json["error"]["code"], refused.header("mcp-session-id"))
    assert 200 == kept.status


@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
@pytest.mark.slow
async def test_a_session_whose_client_never_comes_back_ends_soon() -> None:
    async with site(demo(), limits=HttpLimits(handshake_seconds=0.05)) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
        await anyio.sleep(0.3)
        peer = Caller(web, "2025-11-25")
        peer.session = answer.header("mcp-session-id")
        late = await peer.post(peer.request(1, "ping")).complete()

    assert 404 == late.status


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@on_both_loops
@pytest.mark.slow
async def test_a_session_expires_when_nobody_uses_it(revision: str) -> None:
    async with caller(demo(), revision, limits=HttpLimits(idle_seconds=0.05)) as peer:
        await anyio.sleep(0.3)
        answer = await peer.post(peer.request(1, "ping")).complete()
        stream = await peer.listen().complete()

    assert (404, 404) == (answer.status, stream.status)


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@pytest.mark.slow
async def test_a_session_with_an_open_stream_is_in_use(revision: str) -> None:
    async with caller(demo(), revision, limits=HttpLimits(idle_seconds=2)) as peer:
        stream = await peer.listen().begun()
        await anyio.sleep(2.5)
        answer = await peer.post(peer.request(1, "ping")).complete()

        assert (200, False) == (answer.status, stream.is_ended)


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@pytest.mark.slow
async def test_a_session_whose_client_was_lost_ends_with_its_work_or_not_at_all(revision: str) -> None:
    """A server MAY end a session at any time; what it may not do is to end the work and keep the session."""
    own = behaviour()
    limits = HttpLimits(idle_seconds=2)
    async with caller(demo(own), revision, limits=limits) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=3)
        event = await stream.seen()
        stream.leave()
        await anyio.sleep(4)  # other workers trust what they know of a session for a second
        own.gate.set()
        await peer.web.quiet()
        again = await peer.listen(event.event_id).returned()

        assert (own.given_up, again.status) in ((0, 200), (1, 404))


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
@on_both_loops
async def test_no_more_is_open_at_once_than_allowed(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, limits=HttpLimits(max_open=3)) as peer:
        peer.web.overseer.expects_failure = True
        calls = [peer.call("steps", meta=f'"progressToken":{each}') for each in range(3 * WORKERS)]
        for each in calls:
            await each.message()
        refused = await peer.call("echo").complete()
        own.gate.set()
        for each in calls:
            await each.complete()
        served = await peer.call("echo").complete()

    assert (503, 200) == (refused.status, served.status)


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_a_client_that_sends_its_body_slowly_is_given_up(revision: str) -> None:
    async with caller(demo(), revision, limits=HttpLimits(body_seconds=0.05)) as peer:
        body = peer.request(1, "tools/list")
        answer = peer.web.open("POST", "/mcp", peer.lines(body), [body[:10]], is_whole=False)
        await answer.complete()

    assert 408 == answer.status


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@everywhere
async def test_a_client_that_reads_nothing_is_given_up(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, limits=HttpLimits(write_seconds=0.05, keep_alive_seconds=0.02)) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"')
        await stream.message()
        stream.is_held = True
        with anyio.move_on_after(PATIENCE_SECONDS):
            await stream.returned()
        peer.web.overseer.violations.clear()  # it is not told how its stream ends: nobody is there

        assert stream.has_returned
        own.gate.set()


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_no_more_waits_for_a_stream_than_allowed(revision: str) -> None:
    async with caller(demo(), revision, limits=HttpLimits(max_kept_messages=2)) as peer:
        for each in ("a", "b", "c"):
            await peer.result("resources/subscribe", f'"uri":"note://{each}"')
        for each in ("a", "b", "c"):
            await peer.web.server.resource_updated(f"note://{each}")
        stream = await peer.listen().begun()
        await peer.web.quiet()

        assert 2 == len([each for each in stream.pending if each.data])


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/tasks#task-progress-notifications")
@pytest.mark.skipif(WORKERS > 1, reason="workers refuse tasks in memory, and share no store here")
async def test_a_question_waits_for_a_stream_before_all_else_and_progress_does_not() -> None:
    """Without a GET stream, the messages of a task wait; its progress would come after its end."""
    made = Server("bakery", version="1")

    @made.tool(task=True)
    async def bake(ctx: Context) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.elicit, "Which bread?", bool)
            await anyio.lowlevel.checkpoint()
            for number in range(5):
                await ctx.log("error", number)
                await ctx.progress(number)
        return "bread"

    async with caller(made, "2025-11-25", '{"elicitation":{}}', limits=HttpLimits(max_kept_messages=2)) as peer:
        await peer.result("tools/call", '"name":"bake","arguments":{},"task":{}', '"progressToken":"p"')
        await peer.web.quiet()
        stream = await peer.listen().begun()
        await peer.web.quiet()
        found = [json.loads(each.data)["method"] for each in stream.pending if each.data]

    assert ["elicitation/create", "notifications/message"] == found


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_server_takes_no_more_requests_at_once_than_allowed(revision: str) -> None:
    own = behaviour()
    made = Server("demo", handlers=own, limits=Limits(max_in_flight=2))
    async with caller(made, revision) as peer:
        calls = [peer.call("steps", meta=f'"progressToken":{each}') for each in range(2 * WORKERS)]
        for each in calls:
            await each.message()
        (said,) = await peer.call("echo").messages()
        own.gate.set()

    # In the stateless era each request is a connection of its own, so that the bound is the application's.
    assert ("error" in said) is (revision != STATELESS)


@spec("2025-11-25", "basic/transports#streamable-http")
@pytest.mark.parametrize(
    "options",
    [
        {"path": "mcp"},
        {"path": "/mcp?x"},
        {"path": ""},
        {"sse_path": "/mcp"},
        {"message_path": "/sse"},
        {"allowed_hosts": []},
        {"allowed_origins": "http://x"},
        {"limits": {"max_sessions": 1}},
    ],
)
async def test_settings_that_make_no_sense_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        demo().asgi(**options)


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
async def test_streams_count_among_what_is_open() -> None:
    async with site(demo(), limits=HttpLimits(max_open=2)) as web:
        web.overseer.expects_failure = True
        peers = [await joined(web, "2025-11-25") for _ in range(2 * WORKERS + 1)]
        own = [(await each.listen().begun()).status for each in peers]
        old = [(await web.open("GET", "/sse", [STREAM]).begun()).status for _ in range(2 * WORKERS)]

    assert (503, 503) == (own[-1], old[-1])
    # A stream counts at the worker that has it, and at the one that passes it on.
    assert 2 <= [*own, *old].count(200) <= 2 * WORKERS
    assert {200, 503} == {*own, *old}
