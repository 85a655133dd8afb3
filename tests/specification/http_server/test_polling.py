"""A server that closes a connection and lets its client come back for the rest (2025-11-25)."""

from __future__ import annotations

import json

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.http_clients import STATELESS, caller
from tests.specification.http_server.revision_sets import POLLING, SESSIONS, on_both_loops, polling, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "4f292d28")
@polling
@on_both_loops
async def test_a_handler_can_hang_up_and_the_client_comes_back_for_the_answer(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, limits=HttpLimits(retry_seconds=0.5)) as peer:
        stream = peer.call("hang_up", meta='"progressToken":"p"', identity=3)
        await stream.complete()
        events = stream.pending
        own.gate.set()
        again = peer.listen(events[-1].event_id)
        told, said = await again.messages()

    assert 500 in [each.retry_ms for each in events]
    assert [1] == [json.loads(each.data)["params"]["progress"] for each in events if each.data]
    assert (2, 3) == (told["params"]["progress"], said["id"])


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@polling
async def test_who_is_primed_only_can_come_back_too(revision: str) -> None:
    async def at_once(own: object, arguments: object, context: object) -> object:
        await context.disconnect()  # type: ignore[attr-defined]  # the context of a server
        return own.text("later")  # type: ignore[attr-defined]  # a behaviour

    async with caller(demo(tools={"at_once": at_once}), revision) as peer:
        stream = peer.call("at_once", identity=3)
        await stream.complete()
        (*_, last) = stream.pending
        assert stream.is_stream

        (said,) = await peer.listen(last.event_id).messages()

    assert (3, "later") == (said["id"], said["result"]["content"][0]["text"])


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@polling
async def test_a_client_that_polls_may_find_it_still_at_work_and_waits(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("hang_up", meta='"progressToken":"p"', identity=3)
        await stream.complete()
        last = stream.pending[-1].event_id
        again = await peer.listen(last).begun()
        await peer.web.quiet()
        assert not again.is_ended

        own.gate.set()
        told, said = await again.messages()

    assert (2, 3) == (told["params"]["progress"], said["id"])


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize("revision", [each for each in SESSIONS if each not in POLLING])
async def test_clients_that_do_not_know_how_to_poll_stay_connected(revision: str) -> None:
    """There a server SHOULD NOT close a stream before the response."""
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("hang_up", meta='"progressToken":"p"', identity=3)
        await stream.message()
        await own.waiting.wait()
        await peer.web.quiet()
        assert not stream.is_ended

        own.gate.set()
        _, said = await stream.messages()

    assert 3 == said["id"]


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
async def test_a_stateless_client_stays_connected_since_it_could_not_come_back() -> None:
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        stream = peer.call("hang_up", meta='"progressToken":"p"', identity=3)
        await stream.message()
        await own.waiting.wait()
        own.gate.set()
        _, said = await stream.messages()

    assert 3 == said["id"]
