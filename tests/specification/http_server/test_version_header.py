"""`MCP-Protocol-Version` within a session."""

from __future__ import annotations

import pytest

from tests.specification.http_server.http_clients import BOTH, INITIALIZED, JSON, STREAM, caller, initialize
from tests.specification.http_server.revision_sets import (
    SESSIONS,
    on_both_loops,
    spec,
    with_sessions,
    with_version_header,
)
from tests.specification.http_server.stream_tools import demo

pytestmark = pytest.mark.anyio


@spec("2025-06-18", "basic/transports#protocol-version-header")
@spec("2025-11-25", "basic/transports#protocol-version-header", "640583b7")
@with_version_header
@on_both_loops
@pytest.mark.parametrize("stated", ["1900-01-01", "2099-01-01", "latest", "", "2025-11-25, 2025-11-25", "ä"])
async def test_a_version_that_is_none_is_a_bad_request(stated: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        session = ("Mcp-Session-Id", peer.session or "")
        version = ("MCP-Protocol-Version", stated)
        answers = [
            await peer.post(peer.request(1, "tools/list"), [JSON, BOTH, session, version]).complete(),
            await peer.post(INITIALIZED, [JSON, BOTH, session, version]).complete(),
            await peer.listen(lines=[STREAM, session, version]).complete(),
            await peer.web.ask("DELETE", "/mcp", [session, version]),
        ]

        assert "tools" in await peer.result("tools/list")

    assert [400] * 4 == [each.status for each in answers]


@spec("2025-06-18", "basic/transports#protocol-version-header")
@spec("2025-11-25", "basic/transports#protocol-version-header")
@pytest.mark.parametrize("stated", ["2025-03-26", "2026-07-28", "2024-11-05"])
async def test_a_version_that_the_server_chose_not_to_serve_is_a_bad_request(stated: str) -> None:
    async with caller(demo(revisions=["2025-06-18", "2025-11-25"]), "2025-11-25") as peer:
        lines = [JSON, BOTH, ("Mcp-Session-Id", peer.session or ""), ("MCP-Protocol-Version", stated)]
        answer = await peer.post(peer.request(1, "tools/list"), lines).complete()

    assert 400 == answer.status


@spec("2025-06-18", "basic/transports#protocol-version-header")
@spec("2025-11-25", "basic/transports#protocol-version-header", "bfcda8f2")
@with_sessions
async def test_without_the_header_what_was_agreed_on_is_known(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        lines = [JSON, BOTH, ("Mcp-Session-Id", peer.session or "")]
        answer = await peer.post(peer.request(1, "tools/list"), lines).complete()
        stream = await peer.listen(lines=[STREAM, lines[-1]]).begun()

    assert (200, 200) == (answer.status, stream.status)


@spec("2025-06-18", "basic/transports#protocol-version-header")
@spec("2025-11-25", "basic/transports#protocol-version-header")
@with_sessions
@pytest.mark.parametrize("stated", SESSIONS)
async def test_another_version_that_is_served_does_not_change_what_is_spoken(stated: str, revision: str) -> None:
    """The header SHOULD be what was agreed on; the one thing that MUST be refused is what is not served."""
    async with caller(demo(), revision) as peer:
        lines = [JSON, BOTH, ("Mcp-Session-Id", peer.session or ""), ("MCP-Protocol-Version", stated)]
        answer = await peer.post(peer.request(1, "tools/list"), lines).complete()

    assert answer.status in ((200,) if stated == revision else (200, 400))


@spec("2025-06-18", "basic/transports#protocol-version-header")
async def test_the_header_may_be_there_with_initialize_too() -> None:
    async with caller(demo(), "2025-11-25") as peer:
        lines = [JSON, BOTH, ("MCP-Protocol-Version", "2025-11-25")]
        answer = await peer.web.ask("POST", "/mcp", lines, initialize("2025-11-25"))

    assert 200 == answer.status


@spec("2025-03-26", "basic/transports#session-management")
@pytest.mark.parametrize("stated", ["1900-01-01", "2099-01-01"])
async def test_a_revision_that_does_not_know_the_header_need_not_look_at_it(stated: str) -> None:
    """2025-03-26 has no such header; a server may go by the later rule, but must not fail."""
    async with caller(demo(), "2025-03-26") as peer:
        lines = [JSON, BOTH, ("Mcp-Session-Id", peer.session or ""), ("MCP-Protocol-Version", stated)]
        answer = await peer.post(peer.request(1, "tools/list"), lines).complete()

    assert answer.status in (200, 400)
