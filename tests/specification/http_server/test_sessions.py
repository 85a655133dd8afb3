"""Sessions: how they begin, what belongs to them, and how they end."""

from __future__ import annotations

import json
import re

import pytest

from mcpgen import Server
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    STATELESS,
    Caller,
    caller,
    initialize,
    joined,
)
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.revision_sets import SESSIONS, on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2025-03-26", "basic/transports#session-management")
@spec("2025-06-18", "basic/transports#session-management")
@spec("2025-11-25", "basic/transports#session-management", "aae31c0e")
@with_sessions
@on_both_loops
async def test_the_answer_to_initialize_names_the_session(revision: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision))

    assert revision == answer.json["result"]["protocolVersion"]
    assert re.fullmatch(r"[\x21-\x7e]+", answer.header("mcp-session-id") or "")


@spec("2025-06-18", "basic/transports#session-management", "3380a059")
@spec("2025-03-26", "basic/transports#session-management", "3380a059")
@spec("2025-11-25", "basic/transports#session-management", "3380a059")
async def test_ids_of_sessions_are_unique_and_long_enough_not_to_be_guessed() -> None:
    async with site(demo()) as web:
        found = {(await joined(web, "2025-11-25")).session for _ in range(50)}

    assert 50 == len(found)
    assert min(len(each or "") for each in found) >= 22  # 128 bits in base64
    assert 1 == len({len(each or "") for each in found})


@spec("2025-03-26", "basic/transports#session-management")
@spec("2025-11-25", "basic/transports#session-management", "283f6b7f")
@with_sessions
async def test_a_request_without_a_session_is_a_bad_request(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        outside = Caller(peer.web, revision)
        answers = [
            await outside.post(outside.request(1, "tools/list")).complete(),
            await outside.post(outside.request(1, "ping")).complete(),
            await outside.post(INITIALIZED).complete(),
            await outside.listen().complete(),
            await outside.delete(),
        ]

    assert [400] * 5 == [each.status for each in answers]


@spec("2025-03-26", "basic/transports#session-management")
@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@pytest.mark.parametrize("session", ["nobody", "", "0" * 32, "ä", "../..", "a" * 5000])
async def test_a_session_that_there_never_was_is_not_found(session: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        guess = Caller(peer.web, revision)
        guess.session = session
        answers = [
            await guess.post(guess.request(1, "tools/list")).complete(),
            await guess.post(INITIALIZED).complete(),
            await guess.listen().complete(),
            await guess.delete(),
        ]

    expected = {404} if session else {400, 404}
    assert all(each.status in expected for each in answers), answers


@spec("2025-03-26", "basic/transports#session-management")
@spec("2025-06-18", "basic/transports#session-management")
@spec("2025-11-25", "basic/transports#session-management", "80e411b8")
@with_sessions
@on_both_loops
async def test_a_session_that_was_ended_is_not_found(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        ended = await peer.delete()
        answers = [
            await peer.post(peer.request(1, "tools/list")).complete(),
            await peer.post(INITIALIZED).complete(),
            await peer.listen().complete(),
            await peer.delete(),
            await peer.post(initialize(revision)).complete(),
        ]

    assert (204, b"") == (ended.status, ended.body)
    assert [404] * 5 == [each.status for each in answers]


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_after_404_a_client_begins_anew(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        before = peer.session
        await peer.delete()
        peer.session = None
        await peer.shake_hands()

        assert "tools" in await peer.result("tools/list")

    assert before != peer.session


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_ending_a_session_ends_its_streams_and_its_work(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        stream = await peer.listen().begun()
        work = peer.call("steps", meta='"progressToken":1')
        await work.message()
        await peer.delete()
        await stream.complete()
        await work.complete()
        await peer.web.quiet()

        assert 1 == own.given_up
    assert [] == [each for each in stream.pending + work.pending if each.data]


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_ending_one_session_leaves_the_others_alone(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        other = await joined(peer.web, revision)
        stream = await other.listen().begun()
        await peer.delete()

        assert "tools" in await other.result("tools/list")
        await peer.web.server.tools_changed()
        assert "notifications/tools/list_changed" == (await stream.message())["method"]


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_a_session_is_known_by_nothing_but_its_id(revision: str) -> None:
    """Neither the connection nor the address says whose request it is: each of these comes on its own."""
    async with caller(demo(), revision, '{"roots":{}}') as peer:
        other = await joined(peer.web, revision)
        asked = peer.call("roots")
        refused = await other.ask("tools/call", '"name":"roots"')
        question = await asked.message()
        await peer.answer(question, '{"roots":[{"uri":"file:///a"}]}')
        (said,) = await asked.messages()

    assert "roots/list" == question["method"]
    assert "file:///a" == said["result"]["content"][0]["text"]
    assert "file:///a" not in json.dumps(refused)


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_sessions
@on_both_loops
async def test_another_initialize_ends_what_is_open_and_keeps_the_id(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as peer:
        asked = peer.call("steps")
        await own.waiting.wait()
        answer = await peer.post(initialize(SESSIONS[0], identity=9)).complete()
        told = await asked.messages()
        peer.revision = SESSIONS[0]
        await peer.tell(INITIALIZED)

        assert "tools" in await peer.result("tools/list")

    assert (9, SESSIONS[0]) == (answer.json["id"], answer.json["result"]["protocolVersion"])
    assert answer.header("mcp-session-id") in (None, peer.session)
    assert ["notifications/progress"] * len(told) == [each.get("method") for each in told]
    assert 1 == own.given_up


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_sessions
async def test_sessions_that_begin_anew_take_no_more_memory(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        apps = [peer.web.app] if WORKERS == 1 else peer.web.app.apps

        def kept() -> list[tuple[int, int]]:
            return [(each.entry.size, each.session.kept_bytes) for app in apps for each in app._state.sessions]

        for _ in range(WORKERS):
            assert "tools" in await peer.result("tools/list")
        before = kept()
        assert WORKERS == len(before)
        for number in range(20):
            await peer.post(initialize(revision, identity=number)).complete()
            await peer.tell(INITIALIZED)

        assert before == kept()


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_sessions
async def test_with_a_strict_server_a_session_is_initialised_once(revision: str) -> None:
    own = Server("own", strict=True)

    @own.tool
    def nothing() -> None:
        pass

    async with caller(own, revision) as peer:
        answer = await peer.post(initialize(revision, identity=9)).complete()

        assert "tools" in await peer.result("tools/list")

    assert "error" in answer.json
    assert answer.header("mcp-session-id") in (None, peer.session)


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("offered", ["2099-01-01", "1900-01-01", "2026-07-28", ""])
async def test_an_offer_that_is_not_served_is_answered_with_the_newest_that_is(offered: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(offered))

    assert "2025-11-25" == answer.json["result"]["protocolVersion"]
    assert answer.header("mcp-session-id")


@spec("2025-11-25", "basic/lifecycle#initialization")
@pytest.mark.parametrize("params", ["{}", '{"protocolVersion":7,"capabilities":{},"clientInfo":{}}', "[]", "null"])
async def test_a_handshake_that_fails_begins_no_session(params: str) -> None:
    async with site(demo()) as web:
        body = f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}'.encode()
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], body)

    assert "error" in answer.json
    assert None is answer.header("mcp-session-id")


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_the_name_of_the_header_may_be_written_in_any_case(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        for name in ("mcp-session-id", "MCP-SESSION-ID", "MCP-Session-Id"):
            body = peer.request(name, "tools/list")
            lines = [JSON, BOTH, (name, peer.session or "")]
            assert 200 == (await peer.post(body, lines).complete()).status


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_two_ids_of_sessions_in_one_request_are_none(revision: str) -> None:
    """One reader would take the first, another the last."""
    async with caller(demo(), revision) as peer:
        other = await joined(peer.web, revision)
        lines = [JSON, BOTH, ("Mcp-Session-Id", peer.session or ""), ("Mcp-Session-Id", other.session or "")]
        answer = await peer.post(peer.request(1, "tools/list"), lines).complete()

    assert answer.status in (400, 404)


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_the_id_of_a_session_is_not_text_that_may_be_trimmed_or_folded(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        session = peer.session or ""
        for guess in (session.swapcase(), session[:-1], session + "x", f'"{session}"'):
            lines = [JSON, BOTH, ("Mcp-Session-Id", guess)]
            answer = await peer.post(peer.request(1, "tools/list"), lines).complete()
            assert (guess, 404) == (guess, answer.status)


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_the_same_ids_of_requests_in_two_sessions_are_two_requests(revision: str) -> None:
    own = behaviour()
    async with caller(demo(own), revision) as first:
        second = await joined(first.web, revision)
        calls = [
            each.call("steps", f'{{"say":"{name}"}}', '"progressToken":"t"', identity=1)
            for each, name in ((first, "first"), (second, "second"))
        ]
        for each in calls:
            await each.message()
        own.gate.set()
        said = [(await each.messages())[-1]["result"]["content"][0]["text"] for each in calls]

    assert ["first", "second"] == said


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions")
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
@pytest.mark.parametrize("session", ["abc", "nobody", "", "own"])
async def test_a_stateless_request_ignores_sessions(session: str, revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        if revisions is None and session == "own":
            session = (await joined(web, "2025-11-25")).session or ""
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Session-Id", session)]).complete()

    assert 200 == answer.status
    assert None is answer.header("mcp-session-id")
