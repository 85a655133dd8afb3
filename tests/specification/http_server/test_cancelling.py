"""Requests that are not needed any more, and connections that are gone: which is which depends on the era."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.server import dispatcher
from tests.specification.http_server.asgi_exchange import PATIENCE_SECONDS
from tests.specification.http_server.http_clients import STATELESS, caller, cancellation, joined
from tests.specification.http_server.revision_sets import on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@on_both_loops
async def test_a_session_cancels_by_notification_and_the_stream_ends_unanswered(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=5)
        await stream.message()
        await peer.tell(cancellation(5))
        await stream.complete()

        assert 1 == own.given_up
    assert [] == [each for each in stream.pending if each.data]


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
async def test_a_cancelled_request_that_has_no_stream_yet_is_not_left_waiting(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        answer = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        await peer.tell(cancellation(5))
        await answer.complete()

        assert 1 == own.given_up
    assert answer.status == 200
    assert [] == [each for each in await answer.messages() if "result" in each]


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@on_both_loops
async def test_what_was_told_of_a_request_that_is_cancelled_at_once_is_no_answer(revision: str) -> None:
    """One JSON object is a response; a notification that is all there was to say goes on a stream."""

    async def told(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        await context.progress(1)
        dispatcher.receive(context._session, cancellation(5))  # as if it came in the same breath
        await own.gate.wait()

    async with caller(demo(tools={"told": told}), revision) as peer:
        peer.web.overseer.log_of(peer.session).heard([json.loads(cancellation(5))])
        stream = peer.call("told", meta='"progressToken":"p"', identity=5)
        (said,) = await stream.messages()

    assert (True, "notifications/progress") == (stream.is_stream, said["method"])


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
async def test_a_cancellation_reaches_its_own_session_only(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        other = await joined(peer.web, revision)
        stream = peer.call("steps", meta='"progressToken":"p"', identity=5)
        await stream.message()
        await other.tell(cancellation(5))
        own.gate.set()
        *_, said = await stream.messages()

        assert (0, 5) == (own.given_up, said["id"])


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "42eb70f7")
@with_sessions
@on_both_loops
async def test_in_a_session_a_disconnection_cancels_nothing(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=5)
        await stream.message()
        stream.leave()
        await stream.returned()
        await peer.web.quiet()
        assert 0 == own.given_up

        own.gate.set()
        await peer.web.quiet()

        assert 0 == own.given_up


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
async def test_in_a_session_a_disconnection_before_the_stream_began_cancels_nothing(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        answer = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        answer.leave()
        await peer.web.quiet()
        assert 0 == own.given_up

        own.gate.set()
        await answer.returned()


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
async def test_a_lost_request_can_still_be_cancelled(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=5)
        event = await stream.seen()
        stream.leave()
        await stream.returned()
        await peer.tell(cancellation(5))
        await peer.web.quiet()
        again = await peer.listen(event.event_id).returned()

        assert 1 == own.given_up
    assert [] == [each for each in again.pending if each.data]


@spec("2026-07-28", "basic/transports/streamable-http#cancellation", "bd715a43")
@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation", "504be6f9")
@on_both_loops
async def test_a_stateless_client_cancels_by_leaving_its_stream() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=5)
        await stream.message()
        stream.leave()
        await stream.returned()
        await peer.web.quiet()

        assert 1 == own.given_up


@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation", "504be6f9")
@on_both_loops
async def test_a_stateless_client_cancels_by_leaving_before_there_is_a_stream() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        answer = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        answer.leave()
        await answer.returned()
        await peer.web.quiet()

        assert (1, b"") == (own.given_up, answer.body)


@spec("2026-07-28", "basic/transports/streamable-http#cancellation", "77c6d5c9")
async def test_nothing_is_sent_to_who_has_left_even_by_a_handler_that_goes_on() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        meta = '"progressToken":"p","io.modelcontextprotocol/logLevel":"debug"'
        stream = peer.call("stubborn", meta=meta, identity=5)
        await stream.message()
        stream.leave()
        await peer.web.quiet()
        own.gate.set()
        await stream.returned()
        await peer.web.quiet()

    assert [] == [each for each in stream.pending if each.data]


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
async def test_who_leaves_cancels_nobody_else_s_request_with_the_same_id() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        streams = [peer.call("steps", meta='"progressToken":"p"', identity=5) for _ in range(2)]
        for each in streams:
            await each.message()
        streams[0].leave()
        await streams[0].returned()
        own.gate.set()
        *_, said = await streams[1].messages()

        assert (1, 5) == (own.given_up, said["id"])


@spec("2026-07-28", "basic/index#statelessness")
async def test_requests_of_two_clients_may_have_the_same_id() -> None:
    """What "open" means is for the sender to know: here each request has come by itself."""
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        answers = [peer.call("steps", f'{{"say":"{each}"}}', '"progressToken":"p"', identity=1) for each in range(3)]
        for each in answers:
            await each.message()
        own.gate.set()
        said = [(await each.messages())[-1]["result"]["content"][0]["text"] for each in answers]

    assert ["0", "1", "2"] == said


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
async def test_an_answer_comes_however_long_it_takes(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, limits=HttpLimits(stream_after_seconds=0.02, idle_seconds=1)) as peer:
        answer = await peer.call("wait", identity=5).begun()
        await anyio.sleep(1.2)
        own.gate.set()
        (said,) = await answer.messages()

    assert 5 == said["id"]
