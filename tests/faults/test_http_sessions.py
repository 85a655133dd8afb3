"""Sessions that are guessed, gone, half open, too many, or asked for everything at once."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Limits
from mcpgen.runtime.limits import HttpLimits
from tests.faults.event_loop_turns import PATIENCE_SECONDS, until
from tests.faults.http_applications import attacked_site, held
from tests.faults.http_faulty_handlers import Guest
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    STATELESS,
    STREAM,
    Caller,
    initialize,
    joined,
    old_joined,
    replaced,
)
from tests.specification.http_server.revision_sets import on_both_loops, with_sessions

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange
    from tests.specification.http_server.http_site import Site

pytestmark = pytest.mark.anyio

OLD = "2025-11-25"


def words(answer: Any) -> str:
    """Return what a tool has said."""
    return str(answer["result"]["content"][0]["text"])


async def everything(web: Site, lines: list[tuple[str, str]], last: str = "x.0:1") -> set[int]:
    """Return the statuses of all that one can do with a session."""
    answers = [
        web.open("POST", "/mcp", [JSON, BOTH, *lines], b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        web.open("POST", "/mcp", [JSON, BOTH, *lines], INITIALIZED),
        web.open("GET", "/mcp", [STREAM, *lines]),
        web.open("GET", "/mcp", [STREAM, *lines, ("Last-Event-ID", last)]),
        web.open("DELETE", "/mcp", lines),
    ]
    return {(await each.complete()).status for each in answers}


# --- whose it is


@with_sessions
async def test_a_guessed_session_is_no_session(revision: str) -> None:
    async with attacked_site(Guest().server) as web:
        peer = await joined(web, revision)
        own = peer.session or ""
        guesses = [secrets.token_urlsafe(24) for _ in range(50)]
        guesses += [
            "",
            " ",
            "0",
            "null",
            own[:-1],
            own + "x",
            own.swapcase(),
            own[::-1],
            f'"{own}"',
            f"{own}\xa0",
            "é",
            "\x00",
        ]
        guesses += [f"{own},{own}", f"{own};", "../" + own, "*", "x" * 10_000]
        for each in guesses:
            assert {404} == await everything(web, replaced(peer.own_lines, "Mcp-Session-Id", each))

        assert 1 == len(web.app._state.sessions)
        assert "hi" == words(await peer.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}'))


@pytest.mark.slow
async def test_ids_of_sessions_and_streams_have_nothing_in_common() -> None:
    """Who overhears the one has not the other: streams are named in each event, and sessions stay in headers."""
    async with attacked_site(Guest().server) as web:
        ids = set()
        for _ in range(50):
            peer = await joined(web, OLD)
            stream = peer.listen()
            event = await stream.event()
            ids |= {peer.session, (event.event_id or "").split(".")[1]}

    assert 100 == len(ids)
    assert all(each is not None and len(each) >= 22 for each in ids)


@with_sessions
@on_both_loops
async def test_nothing_of_a_deleted_session_can_be_used_again(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer = await joined(web, revision)
        stream, running = peer.listen(), peer.call("step", meta='"progressToken":"p"', identity=5)
        event = await running.event()
        while not event.data:
            event = await running.event()
        waiting = peer.call("wait", identity=6)
        await until(lambda: guest.waiting == 2)
        assert 204 == (await peer.delete()).status
        for each in (stream, running, waiting):
            await each.returned()

        assert (200, 404) == (running.status, waiting.status)
        assert 2 == guest.given_up
        assert {404} == await everything(web, peer.own_lines, event.event_id or "")
        assert {404} == await everything(web, peer.own_lines, event.event_id or "")
        assert {} == held(web.app)
        assert 0 == len(web.app._state.sessions)


@pytest.mark.slow
async def test_a_session_that_is_deleted_by_many_at_once_is_deleted_once() -> None:
    async with attacked_site(Guest().server) as web:
        peer = await joined(web, OLD)
        answers = [web.open("DELETE", "/mcp", peer.own_lines) for _ in range(50)]
        statuses = [(await each.complete()).status for each in answers]

    assert (1, 49) == (statuses.count(204), statuses.count(404))


async def test_what_a_stranger_does_with_a_session_does_not_keep_it_from_expiring() -> None:
    def user(scope: Any) -> str:
        return dict(scope["headers"]).get(b"x-user", b"").decode()

    limits = HttpLimits(idle_seconds=1, handshake_seconds=1)
    async with attacked_site(Guest().server, user=user, limits=limits) as web:
        body = initialize(OLD)
        begun = await web.ask("POST", "/mcp", [JSON, BOTH, ("X-User", "alice")], body)
        lines = [("Mcp-Session-Id", begun.header("mcp-session-id") or "")]
        assert 1 == len(web.app._state.sessions)
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(web.app._state.sessions):
                assert {404} == await everything(web, [*lines, ("X-User", "mallory")])
                await anyio.sleep(0.01)


# --- half open, and too many


@pytest.mark.slow
async def test_thousands_of_half_open_sessions_take_room_from_each_other_only() -> None:
    async with attacked_site(Guest().server, limits=HttpLimits(max_sessions=500)) as web:
        peer = await joined(web, OLD)
        first = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        for _ in range(1500):
            begun = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
            assert 200 == begun.status
        web.exchanges.clear()
        assert 500 == len(web.app._state.sessions)
        assert {404} == await everything(web, [("Mcp-Session-Id", first.header("mcp-session-id") or "")])
        assert "hi" == words(await peer.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}'))
        late = [*peer.own_lines[1:], ("Mcp-Session-Id", begun.header("mcp-session-id") or "")]
        assert 202 == (await web.ask("POST", "/mcp", [JSON, BOTH, *late], INITIALIZED)).status


async def test_half_open_sessions_of_a_client_each_make_room_for_a_newcomer() -> None:
    def user(scope: Any) -> str:
        return dict(scope["headers"]).get(b"x-user", b"ann").decode()

    async with attacked_site(Guest().server, user=user, limits=HttpLimits(max_sessions=64)) as web:
        peer = await joined(web, OLD)
        for number in range(80):
            begun = await web.ask("POST", "/mcp", [JSON, BOTH, ("X-User", f"mallory{number}")], initialize(OLD))
            assert 200 == begun.status
        assert 64 == len(web.app._state.sessions)
        assert {} == (await peer.ask("ping"))["result"]


@pytest.mark.slow
async def test_sessions_whose_client_never_comes_back_expire_by_themselves() -> None:
    async with attacked_site(Guest().server, limits=HttpLimits(handshake_seconds=0.05)) as web:
        peer = await joined(web, OLD)
        for _ in range(300):
            await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        await until(lambda: len(web.app._state.sessions) == 1)

        assert {} == (await peer.ask("ping"))["result"]


async def test_where_all_sessions_are_used_no_other_begins_until_one_ends() -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_sessions=10)) as web:
        peers = [await joined(web, OLD) for _ in range(10)]
        for each in peers:
            await each.listen().begun()
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        assert (503, "1") == (refused.status, refused.header("retry-after"))
        assert refused.header("mcp-session-id") is None
        await peers[3].delete()
        assert 200 == (await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))).status
        stateless = Caller(web, STATELESS)
        assert "hi" == words(await stateless.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}'))


@on_both_loops
async def test_no_more_is_open_than_may_be_and_others_are_told_to_come_later() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open=3)) as web:
        peer, old = await joined(web, OLD), await old_joined(web)
        stateless = Caller(web, STATELESS)
        streams: list[Exchange] = [peer.call("wait"), stateless.call("wait")]
        await until(lambda: guest.waiting == 2)
        assert 3 == held(web.app)["responses"] == held(web.app)["tickets"]
        for refused in (
            peer.call("echo"),
            stateless.call("echo"),
            peer.listen(),
            web.open("GET", "/sse", [STREAM]),
            old.call("echo"),
        ):
            assert 503 == (await refused.complete()).status
        guest.gate.set()
        for each in streams:
            assert 200 == (await each.complete()).status
        assert 200 == (await peer.call("echo").complete()).status


async def test_open_requests_hold_no_more_than_they_may() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open_bytes=290_000)) as web:
        peer = await joined(web, OLD)
        large, larger = (f'{{"text":"{"x" * size}"}}' for size in (30_000, 60_000))
        held_ones = [peer.call("wait", large, identity=each) for each in range(3)]
        await until(lambda: guest.waiting == 3)
        # On a busy machine, the server may drop the body before it charges what is decoded.
        assert 503 == (await peer.call("echo", larger).complete()).status
        assert 200 == (await peer.call("echo").complete()).status
        guest.gate.set()
        for each in held_ones:
            await each.complete()
        assert 200 == (await peer.call("echo", large).complete()).status


# --- expiry


@on_both_loops
@pytest.mark.slow
async def test_a_session_does_not_expire_while_a_stream_is_open_and_does_when_it_is_not() -> None:
    async with attacked_site(Guest().server, limits=HttpLimits(idle_seconds=2, handshake_seconds=2)) as web:
        peer = await joined(web, OLD)
        stream = peer.listen()
        await stream.event()
        idle = await joined(web, OLD)
        await until(lambda: len(web.app._state.sessions) == 1)
        await anyio.sleep(2.5)
        assert {404} == await everything(web, idle.own_lines)
        assert 1 == len(web.app._state.sessions)
        await web.server.tools_changed()
        assert "notifications/tools/list_changed" == (await stream.message())["method"]
        stream.leave()
        await stream.returned()
        await until(lambda: len(web.app._state.sessions) == 0)


@pytest.mark.slow
async def test_a_session_does_not_expire_while_its_request_is_answered() -> None:
    guest = Guest()
    async with attacked_site(guest.server, limits=HttpLimits(idle_seconds=2)) as web:
        peer = await joined(web, OLD)
        answer = peer.call("wait")
        await until(lambda: guest.waiting)
        await anyio.sleep(2.5)
        guest.gate.set()

        assert "waited" == words((await answer.messages())[-1])


@pytest.mark.slow
async def test_an_expired_session_takes_with_it_what_its_lost_requests_run() -> None:
    guest = Guest()
    async with attacked_site(guest.server, limits=HttpLimits(idle_seconds=2)) as web:
        peer = await joined(web, OLD)
        lost = peer.call("wait")
        await until(lambda: guest.waiting)
        lost.leave()
        await until(lambda: len(web.app._state.sessions) == 0)
        await until(lambda: guest.given_up)

        assert (0, 1) == (guest.waiting, guest.given_up)


# --- everything at once


@with_sessions
@on_both_loops
@pytest.mark.slow
async def test_hundreds_of_posts_on_one_session_are_answered_each_by_its_own(revision: str) -> None:
    async with attacked_site(Guest().server) as web:
        peer = await joined(web, revision)
        answers = [peer.call("echo", f'{{"text":"{each}"}}', identity=each) for each in range(300)]
        found = [await each.messages() for each in answers]

    assert [[(each, str(each))] for each in range(300)] == [[(one["id"], words(one)) for one in each] for each in found]


@with_sessions
async def test_of_two_requests_with_one_id_one_is_refused_and_the_other_answered(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer = await joined(web, revision)
        first = peer.call("wait", '{"text":"first"}', identity=7)
        await until(lambda: guest.waiting)
        others = [peer.call("echo", identity=7) for _ in range(20)]
        web.overseer.violations.clear()
        for each in others:
            ((said),) = await each.messages()
            assert (7, -32600) == (said["id"], said["error"]["code"])
        text = peer.call("echo", '{"text":"other"}', identity="7")
        assert "other" == words((await text.messages())[-1])
        guest.gate.set()
        assert "first" == words((await first.messages())[-1])
        again = peer.call("echo", '{"text":"again"}', identity=7)
        assert "again" == words((await again.messages())[-1])


@with_sessions
@on_both_loops
async def test_of_many_own_streams_the_newest_has_all_and_the_others_end(revision: str) -> None:
    async with attacked_site(Guest().server) as web:
        peer = await joined(web, revision)
        streams = []
        for _ in range(30):
            streams.append(peer.listen())
            await streams[-1].begun()
        await web.server.tools_changed()
        await web.quiet()
        assert [False] * 29 + [True] == [not each.has_returned for each in streams]
        told = [json.loads(one.data)["method"] for each in streams for one in each.pending if one.data]
        assert ["notifications/tools/list_changed"] == told


async def test_requests_past_the_bound_of_one_session_are_refused_there_and_nowhere_else() -> None:
    guest = Guest(limits=Limits(max_in_flight=10))
    async with attacked_site(guest.server) as web:
        greedy, other = await joined(web, OLD), await joined(web, OLD)
        first = [greedy.call("wait") for _ in range(10)]
        await until(lambda: guest.waiting == 10)
        ((refused),) = await greedy.call("echo").messages()
        assert -32603 == refused["error"]["code"]
        assert "hi" == words(await other.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}'))
        guest.gate.set()
        for each in first:
            await each.complete()
