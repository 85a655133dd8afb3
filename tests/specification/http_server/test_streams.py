"""Streams of a session: what comes on which, in what order, and when they end."""

from __future__ import annotations

import json

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.http_clients import caller, joined
from tests.specification.http_server.revision_sets import (
    POLLING,
    SESSIONS,
    everywhere,
    on_both_loops,
    polling,
    spec,
    with_sessions,
)
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "3a1442ab")
@polling
@on_both_loops
async def test_a_stream_begins_with_an_id_to_come_back_with(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = peer.call("progress", meta='"progressToken":"p"')
        first = await stream.event()

    assert "" == first.data
    assert first.event_id


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize("revision", [each for each in SESSIONS if each not in POLLING])
async def test_clients_that_know_no_empty_events_get_none(revision: str) -> None:
    """Empty data is no JSON, and nothing told them to expect it."""
    async with caller(demo(), revision) as peer:
        stream = peer.call("progress", meta='"progressToken":"p"')
        await stream.complete()

    assert all(each.data for each in stream.pending)


@spec("2025-06-18", "basic/transports#sending-messages-to-the-server", "4e7bb94b", "6d22c9c1")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "c3fd9308")
@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@with_sessions
async def test_an_answer_that_takes_long_comes_on_a_stream(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, limits=HttpLimits(stream_after_seconds=0.01)) as peer:
        answer = await peer.call("wait", identity=3).begun()
        own.gate.set()
        (said,) = await answer.messages()

    assert (200, True, 3) == (answer.status, answer.is_stream, said["id"])


@spec("2025-06-18", "basic/transports#sending-messages-to-the-server", "bc90ec2a")
@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "fd6dd9a1")
@with_sessions
@on_both_loops
async def test_a_stream_ends_after_its_response(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=3)
        first = await stream.message()
        await peer.web.quiet()
        assert not stream.is_ended

        own.gate.set()
        second, said = await stream.messages()

    assert [1, 2] == [each["params"]["progress"] for each in (first, second)]
    assert 3 == said["id"]
    assert stream.is_ended


@spec("2025-03-26", "basic/transports#multiple-connections")
@spec("2025-06-18", "basic/transports#multiple-connections")
@spec("2025-11-25", "basic/transports#multiple-connections")
@with_sessions
@on_both_loops
async def test_each_request_has_its_own_stream(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        streams = {
            token: peer.call("steps", f'{{"say":"{token}"}}', f'"progressToken":"{token}"', identity=token)
            for token in ("a", "b", "c")
        }
        for each in streams.values():
            await each.message()
        own.gate.set()
        found = {token: await each.messages() for token, each in streams.items()}

    assert {token: (token, token, token) for token in streams} == {
        token: (told["params"]["progressToken"], said["id"], said["result"]["content"][0]["text"])
        for token, (told, said) in found.items()
    }


@spec("2025-11-25", "basic/index#requests")
@spec("2025-11-25", "basic/transports#multiple-connections")
@with_sessions
async def test_an_id_that_is_open_cannot_be_used_again_and_the_first_request_keeps_its_stream(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        first = peer.call("steps", meta='"progressToken":"p"', identity=1)
        await first.message()
        (refused,) = await peer.call("echo", identity=1).messages()
        own.gate.set()
        *_, said = await first.messages()

    assert (1, -32600) == (refused["id"], refused["error"]["code"])
    assert (1, "done") == (said["id"], said["result"]["content"][0]["text"])


@spec("2025-03-26", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
@on_both_loops
async def test_what_belongs_to_no_request_comes_on_the_session_s_own_stream(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        told = await stream.message()

    assert {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"} == told


@spec("2025-03-26", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server", "495289b3")
@with_sessions
async def test_the_session_s_own_stream_stays_open_and_bears_no_responses(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.result("tools/list")
        await peer.call("progress", meta='"progressToken":"p"').complete()
        await peer.web.quiet()

        assert [] == [each for each in stream.pending if each.data]
        assert not stream.is_ended


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_what_is_told_to_everybody_comes_once_to_each_session(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        other = await joined(peer.web, revision)
        streams = [await each.listen().begun() for each in (peer, other)]
        await peer.web.server.tools_changed()
        await peer.web.quiet()
        found = [[json.loads(each.data or "")["method"] for each in one.pending if each.data] for one in streams]

    assert [["notifications/tools/list_changed"]] * 2 == found


@spec("2025-03-26", "basic/transports#multiple-connections")
@spec("2025-11-25", "basic/transports#multiple-connections", "725ab350")
@with_sessions
async def test_a_message_comes_on_one_of_several_streams(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        streams = [await peer.listen().begun(), await peer.listen().begun()]
        streams.append(peer.call("steps", meta='"progressToken":"p"'))
        await peer.web.quiet()
        _ = [each.pending for each in streams]
        await peer.web.server.tools_changed()
        await peer.web.quiet()
        found = [json.loads(each.data)["method"] for one in streams for each in one.pending if each.data]
        own.gate.set()

    assert ["notifications/tools/list_changed"] == found


@spec("2025-11-25", "basic/transports#multiple-connections")
@with_sessions
@on_both_loops
async def test_the_newest_stream_of_a_session_takes_the_place_of_the_one_before(revision: str) -> None:
    """Who opens another has lost the first, whether the network has told us so or not."""
    async with caller(demo(), revision) as peer:
        first = await peer.listen().begun()
        second = await peer.listen().begun()
        await first.complete()
        await peer.web.server.tools_changed()
        told = await second.message()

    assert [] == [each for each in first.pending if each.data]
    assert "notifications/tools/list_changed" == told["method"]


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_a_client_may_close_its_stream_and_go_on_without(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        stream.leave()
        await stream.returned()
        await peer.web.server.tools_changed()

        assert "tools" in await peer.result("tools/list")


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_what_was_told_before_there_was_a_stream_comes_on_the_first(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        await peer.web.server.tools_changed()
        await peer.web.server.prompts_changed()
        stream = await peer.listen().begun()
        found = {(await stream.message())["method"] for _ in range(2)}

    assert {"notifications/tools/list_changed", "notifications/prompts/list_changed"} == found


@spec("2025-11-25", "basic/transports#resumability-and-redelivery", "bad8b012")
@with_sessions
async def test_the_ids_of_events_are_unique_in_a_session(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        own = await peer.listen().begun()
        calls = [peer.call("progress", meta=f'"progressToken":{each}') for each in range(3)]
        for each in calls:
            await each.complete()
        await peer.web.server.tools_changed()
        await peer.web.quiet()
        ids = [event.event_id for one in (own, *calls) for event in one.pending]

    assert None not in ids
    assert len(ids) == len(set(ids)) >= 10


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@everywhere
async def test_a_silent_stream_is_kept_alive_by_comments(revision: str) -> None:
    own = behaviour()
    limits = HttpLimits(keep_alive_seconds=0.02, stream_after_seconds=0.01)
    async with caller(demo(own), revision, limits=limits) as peer:
        stream = await peer.call("steps", meta='"progressToken":"p"').begun()
        await stream.commented(3)
        own.gate.set()
        *_, said = await stream.messages()

    assert "done" == said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_a_silent_stream_of_a_session_is_kept_alive_as_well(revision: str) -> None:
    async with caller(demo(), revision, limits=HttpLimits(keep_alive_seconds=0.02)) as peer:
        stream = await peer.listen().begun()
        await stream.commented(3)

        assert not stream.is_ended
