"""Streams that a client comes back to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import MemoryEventStore
from mcpgen.runtime.api.server import Server
from mcpgen.runtime.server.context import Context  # noqa: TC001 (the server looks at it)
from tests.specification.http_server.http_clients import STATELESS, STREAM, Caller, caller, joined
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.revision_sets import POLLING, SESSIONS, on_both_loops, polling, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange

pytestmark = pytest.mark.anyio


async def last_of(stream: Exchange) -> str:
    """Return the id of the next event that is a message."""
    return (await stream.seen()).event_id or ""


async def methods(stream: Exchange) -> list[Any]:
    return [each.get("method", each.get("id")) for each in await stream.messages()]


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@spec("2025-06-18", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_what_was_missed_of_a_request_s_stream_is_sent_again_with_the_response(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(lost)
        lost.leave()
        await lost.returned()
        own.gate.set()
        await peer.web.quiet()
        again = peer.listen(last)
        told, said = await again.messages()

    assert (200, True) == (again.status, again.is_stream)
    assert (2, 3) == (told["params"]["progress"], said["id"])


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_a_request_s_stream_goes_on_from_there_and_ends_with_the_response(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(lost)
        lost.leave()
        again = await peer.listen(last).begun()
        await peer.web.quiet()
        assert (False, []) == (again.is_ended, [each for each in again.pending if each.data])

        own.gate.set()

        assert ["notifications/progress", 3] == await methods(again)


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@polling
async def test_the_id_that_primes_a_client_stands_before_everything(revision: str) -> None:
    own = behaviour()
    own.gate.set()
    async with caller(demo(own), revision) as peer:
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        primed = await lost.event()
        lost.leave()
        await lost.returned()
        await peer.web.quiet()
        again = peer.listen(primed.event_id)

        assert ["notifications/progress", "notifications/progress", 3] == await methods(again)


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_stream_can_be_resumed_again_and_again(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(lost)
        lost.leave()
        for _ in range(3):
            again = await peer.listen(last).begun()
            again.leave()
            await again.returned()
        own.gate.set()
        await peer.web.quiet()
        found = [await methods(peer.listen(last)) for _ in range(2)]

    assert [["notifications/progress", 3]] * 2 == found


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_who_has_seen_everything_gets_nothing_and_the_end(revision: str) -> None:
    own = behaviour()
    own.gate.set()
    async with caller(demo(own), revision) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=3)
        await stream.complete()
        last = stream.pending[-1].event_id
        again = await peer.listen(last).returned()

    # Nothing is left: an empty stream says so, and a refusal that there is no such stream any more.
    assert again.status in (200, 400, 404)
    assert [] == [each for each in again.pending if each.data]
    assert again.is_ended


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_what_was_missed_of_the_session_s_own_stream_is_sent_again(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        lost = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(lost)
        lost.leave()
        await lost.returned()
        await peer.web.server.prompts_changed()
        await peer.web.server.resources_changed()
        again = peer.listen(last)
        missed = [(await again.message())["method"] for _ in range(2)]
        await peer.web.server.tools_changed()
        later = await again.message()

    assert ["notifications/prompts/list_changed", "notifications/resources/list_changed"] == missed
    assert "notifications/tools/list_changed" == later["method"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_what_was_sent_into_a_broken_connection_is_sent_again(revision: str) -> None:
    """The network may tell late: what was written meanwhile has not arrived."""
    async with caller(demo(), revision) as peer:
        lost = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(lost)
        await peer.web.server.prompts_changed()
        await peer.web.quiet()
        again = peer.listen(last)
        missed = await again.message()

    assert "notifications/prompts/list_changed" == missed["method"]


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@spec("2025-06-18", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery", "ab8b5b45")
@with_sessions
async def test_what_was_sent_on_another_stream_is_not_sent_on_this_one(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        session = await peer.listen().begun()
        lost = [peer.call("steps", meta=f'"progressToken":"{each}"', identity=each) for each in ("a", "b")]
        last = [await last_of(each) for each in lost]
        for each in lost:
            each.leave()
            await each.returned()
        await peer.web.server.tools_changed()
        assert "notifications/tools/list_changed" == (await session.message())["method"]
        own.gate.set()
        await peer.web.quiet()
        found = [await peer.listen(each).messages() for each in last]

    for token, (told, said) in zip(("a", "b"), found, strict=True):
        assert (token, token) == (told["params"]["progressToken"], said["id"])


CHANGED = {
    each: b'{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}' % each.encode()
    for each in ("tools", "prompts", "resources")
}


def next_event(last: str, message: bytes) -> bytes:
    """Return the bytes of the event behind the one with the id *last*, on the same stream."""
    name, _, number = last.rpartition(":")
    return b"id: %s:%d\ndata: %s\n\n" % (name.encode(), int(number) + 1, message)


@spec("2025-03-26", "basic/transports#resumability-and-redelivery", "ab8b5b45")
@spec("2025-03-26", "basic/transports#multiple-connections", "725ab350")
@with_sessions
@on_both_loops
async def test_a_get_stream_that_another_replaced_is_sent_its_own_events_and_what_is_new(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        first = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(first)
        await peer.web.server.prompts_changed()
        await first.seen()
        await peer.web.leave(first)
        second = await peer.listen().begun()
        await peer.web.server.resources_changed()
        other = await last_of(second)
        again = await peer.listen(last).begun()
        await second.complete()
        await peer.web.server.tools_changed()
        ids = [await last_of(again) for _ in range(2)]

    assert again.body.startswith(next_event(last, CHANGED["prompts"]))
    assert again.body.endswith(b"data: %s\n\n" % CHANGED["tools"])
    assert (0, 1) == (again.body.count(CHANGED["resources"]), second.body.count(b"list_changed"))
    assert 3 == len({each.rpartition(":")[0] for each in (last, other, ids[1])})


@spec("2025-03-26", "basic/transports#resumability-and-redelivery", "ab8b5b45")
@with_sessions
@on_both_loops
async def test_what_waited_comes_on_a_new_get_stream_and_on_the_one_before_no_more(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        first = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(first)
        await peer.web.leave(first)
        await peer.web.server.prompts_changed()
        second = await peer.listen().begun()
        told = await second.message()
        again = await peer.listen(last).begun()
        await peer.web.quiet()
        name, _, number = last.rpartition(":")
        forged = await peer.listen(f"{name}:{int(number) + 1}").complete()  # the number under which it had waited

    assert "notifications/prompts/list_changed" == told["method"]
    assert b"list_changed" not in again.body
    assert 400 == forged.status


@spec("2025-03-26", "basic/transports#resumability-and-redelivery", "ab8b5b45")
@with_sessions
@on_both_loops
async def test_what_waited_comes_to_who_resumes_and_on_a_new_get_stream_no_more(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        first = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(first)
        await peer.web.leave(first)
        await peer.web.server.prompts_changed()
        again = peer.listen(last)
        await again.seen()
        second = await peer.listen().begun()
        await peer.web.server.resources_changed()
        await second.seen()

    assert again.body == next_event(last, CHANGED["prompts"])
    assert second.body.endswith(b"data: %s\n\n" % CHANGED["resources"])
    assert 1 == second.body.count(b"list_changed")


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_what_waits_comes_to_who_resumes_a_get_stream_that_was_replaced(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        first = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(first)
        second = await peer.listen().begun()
        await peer.web.server.prompts_changed()
        seen = await last_of(second)
        await peer.web.leave(second)
        await peer.web.server.resources_changed()
        again = peer.listen(last)
        told = await again.message()
        rest = await peer.listen(seen).begun()
        await peer.web.quiet()

    assert "notifications/resources/list_changed" == told["method"]
    assert b"prompts" not in again.body
    assert b"list_changed" not in rest.body


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_only_some_get_streams_that_were_replaced_are_kept(revision: str) -> None:
    store = MemoryEventStore()
    async with caller(demo(), revision, events=store) as peer:
        ids = []
        for _ in range(30):
            stream = await peer.listen().begun()
            await peer.web.server.tools_changed()
            ids.append(await last_of(stream))
        await peer.web.quiet()
        kept = store.stream_count, store.event_count
        found = [(await peer.listen(each).begun()).status for each in (ids[0], ids[10], ids[-5])]

    assert kept[0] <= 11
    assert kept[1] <= 22  # at most one that primes the client, and one message
    assert [400, 400, 200] == found


@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_session_remembers_only_its_last_streams(revision: str) -> None:
    forgotten: list[str] = []

    class Noted(MemoryEventStore):
        async def forget(self, stream: str) -> None:
            forgotten.append(stream)
            await super().forget(stream)

    own = behaviour()
    own.gate.set()
    async with caller(demo(own), revision, events=Noted()) as peer:
        for _ in range(60 * WORKERS):
            await peer.call("steps", meta='"progressToken":"p"').complete()
        await peer.delete()
        await peer.web.quiet()

    assert 0 < len(forgotten) < 40 * WORKERS  # each name takes memory that no limit counts


FORGED = ["nobody:1", "x", ":", "0", "a" * 1000, "ä", "1:99999999999999999999", "-1", "null", "%s:-1", "%s:99999", "%s"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@pytest.mark.parametrize("forged", FORGED)
async def test_an_id_that_was_never_given_resumes_nothing(forged: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        true = await last_of(stream)
        await peer.web.server.prompts_changed()
        answer = await peer.listen(forged.replace("%s", true.rpartition(":")[0])).complete()

    assert 400 == answer.status
    assert b"list_changed" not in answer.body


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_the_id_of_another_session_s_event_resumes_nothing(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as victim:
        thief = await joined(victim.web, revision)
        lost = victim.call("steps", '{"say":"secret"}', meta='"progressToken":"p"', identity=3)
        last = await last_of(lost)
        lost.leave()
        own.gate.set()
        await victim.web.quiet()
        stolen = await thief.listen(last).complete()
        *_, said = await victim.listen(last).messages()

    assert 400 == stolen.status
    assert b"secret" not in stolen.body
    assert "secret" == said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_an_id_of_an_event_without_the_session_resumes_nothing(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(stream)
        answers = [
            await peer.web.ask("GET", "/mcp", [STREAM, ("Last-Event-ID", last)]),
            await peer.web.ask("GET", "/mcp", [STREAM, ("Last-Event-ID", last), ("Mcp-Session-Id", "nobody")]),
        ]

    assert [400, 404] == [each.status for each in answers]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_stream_with_a_hole_in_it_is_not_resumed(revision: str) -> None:
    """What is not kept any more was missed, and the client has to know."""
    import time

    from mcpgen.runtime.server.event_store import MemoryEventStore

    events = MemoryEventStore(max_events_per_stream=2, clock=time.monotonic)
    async with caller(demo(), revision, events=events) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        stale = await last_of(stream)
        for _ in range(3):
            await peer.web.server.prompts_changed()
            await stream.message()
            await peer.web.server.tools_changed()
            last = await last_of(stream)
        answer = await peer.listen(stale).complete()
        good = await peer.listen(last).begun()

    assert (400, 200) == (answer.status, good.status)


class Full(MemoryEventStore):
    """A store that takes only so many messages."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def append(self, stream: str, number: int, message: bytes) -> None:
        if number > self.most:
            raise OSError("the disk is full")
        super().append(stream, number, message)


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_a_stream_whose_response_could_not_be_kept_is_not_resumed(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision, events=Full(2)) as peer:
        stream = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(stream)
        stream.leave()
        await stream.returned()
        own.gate.set()
        await peer.web.quiet()
        answer = await peer.listen(last).returned()

    assert 400 == answer.status


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_session_s_events_end_with_it(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(stream)
        other = await joined(peer.web, revision)
        await peer.delete()
        answers = [await peer.listen(last).complete(), await other.listen(last).complete()]

    assert [404, 400] == [each.status for each in answers]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_response_comes_once_to_whoever_resumes(revision: str) -> None:
    """The one who comes back takes the stream over: not both connections get what follows."""
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        first = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(first)
        second = await peer.listen(last).begun()
        await peer.web.quiet()
        own.gate.set()
        found = await methods(second)
        await first.returned()

    assert ["notifications/progress", 3] == found
    assert [] == [each for each in first.pending if each.data]


@spec("2025-03-26", "basic/transports#multiple-connections")
@spec("2025-06-18", "basic/transports#multiple-connections")
@spec("2025-11-25", "basic/transports#multiple-connections")
@with_sessions
@on_both_loops
async def test_what_waits_for_a_slow_connection_goes_over_the_one_that_resumes_alone(revision: str) -> None:
    own, gate = Server("demo", version="1"), anyio.Event()

    @own.tool
    async def count(ctx: Context) -> str:
        for each in range(1, 5):
            await ctx.progress(each)
            await gate.wait()
            await anyio.sleep(0.2)  # so that another connection is there before the next
        return "counted"

    async with caller(own, revision) as peer:
        slow = peer.call("count", meta='"progressToken":"p"', identity=3)
        last = await last_of(slow)
        slow.is_held = True
        gate.set()
        await anyio.sleep(0.02)
        again = peer.listen(last)
        await again.complete()
        assert len(slow.pending) < 4  # what was being sent already, perhaps together
        slow.is_held = False
        slow.more(is_last=True)  # which tells of a change
        first, second = await slow.messages(), await again.messages()

    assert not first
    assert [2, 3, 4] == [each["params"]["progress"] for each in second[:-1]]
    assert 3 == second[-1]["id"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@spec("2025-11-25", "basic/transports#multiple-connections")
@with_sessions
async def test_resuming_a_request_s_stream_leaves_the_session_s_own_alone(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        session = await peer.listen().begun()
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        last = await last_of(lost)
        lost.leave()
        again = await peer.listen(last).begun()
        await peer.web.server.tools_changed()
        told = await session.message()
        own.gate.set()

        assert ["notifications/progress", 3] == await methods(again)

    assert "notifications/tools/list_changed" == told["method"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_resumption_is_by_get_and_nothing_else(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()
        await peer.web.server.tools_changed()
        last = await last_of(stream)
        await peer.web.server.prompts_changed()
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), ("Last-Event-ID", last)]).complete()

    assert 200 == answer.status
    assert "tools" in answer.json["result"]


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions")
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
async def test_a_stateless_request_ignores_the_header(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/call", '"name":"progress"', '"progressToken":"p"')
        stream = peer.post(body, [*peer.lines(body), ("Last-Event-ID", "a:1")])
        *told, said = await stream.messages()

    assert (200, 2, 1) == (stream.status, len(told), said["id"])


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
async def test_a_stateless_stream_has_no_ids_to_come_back_with() -> None:
    async with caller(demo(), STATELESS) as peer:
        stream = peer.call("progress", meta='"progressToken":"p"')
        await stream.complete()

    assert {(None, None)} == {(each.event_id, each.retry_ms) for each in stream.pending}


@spec("2025-11-25", "basic/transports#resumability-and-redelivery", "5f788230")
@pytest.mark.parametrize("revision", [each for each in SESSIONS if each in POLLING])
async def test_the_id_of_an_event_says_which_stream_it_is_of(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        own = await peer.listen().begun()
        calls = [peer.call("progress", meta=f'"progressToken":{each}') for each in range(2)]
        for each in calls:
            await each.complete()
        await peer.web.server.tools_changed()
        await peer.web.quiet()
        names = [{(event.event_id or "").rpartition(":")[0] for event in one.pending} for one in (own, *calls)]

    assert [1, 1, 1] == [len(each) for each in names]
    assert 3 == len(set.union(*names)), json.dumps([sorted(each) for each in names])


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_a_session_that_ends_takes_what_its_streams_have_sent_out_of_the_store(revision: str) -> None:
    own, store = behaviour(), MemoryEventStore()
    async with caller(demo(own), revision, events=store) as peer:
        await peer.listen().begun()
        lost = peer.call("steps", meta='"progressToken":"p"', identity=3)
        await last_of(lost)
        own.gate.set()
        await lost.returned()
        assert 0 < store.stream_count

        await peer.delete()
        await peer.web.quiet()

        assert (0, 0) == (store.stream_count, store.event_count)
