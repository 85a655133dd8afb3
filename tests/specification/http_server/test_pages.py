"""Pages of other sites: their browsers ask first, and read only what they are allowed to."""

from __future__ import annotations

import pytest

from tests.specification.http_server.http_clients import BOTH, JSON, initialize
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import spec
from tests.specification.http_server.stream_tools import demo

pytestmark = pytest.mark.anyio

PAGE = "https://app.example.com"
QUESTION = [
    ("Origin", PAGE),
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Headers", "content-type,mcp-method"),
]


@spec("2025-11-25", "basic/transports#security-warning")
@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint")
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages"])
async def test_the_browser_of_a_page_that_is_allowed_gets_its_permission(path: str) -> None:
    async with site(demo(), allowed_origins=[PAGE]) as web:
        answer = await web.ask("OPTIONS", path, QUESTION)

    assert (204, b"") == (answer.status, answer.body)
    assert PAGE == answer.header("access-control-allow-origin")
    assert "POST" in (answer.header("access-control-allow-methods") or "")
    assert "content-type,mcp-method" == answer.header("access-control-allow-headers")


@spec("2025-11-25", "basic/transports#security-warning")
@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint")
async def test_the_browser_of_any_other_page_is_refused_and_told_nothing() -> None:
    async with site(demo(), allowed_origins=["https://other.example.com"]) as web:
        answer = await web.ask("OPTIONS", "/mcp", QUESTION)

    assert 403 == answer.status
    assert not [name for name, _ in answer.response_lines if name.startswith(b"access-control")]


@spec("2025-11-25", "basic/transports#security-warning")
async def test_a_page_that_is_allowed_may_read_the_answer_and_its_session() -> None:
    async with site(demo(), allowed_origins=[PAGE]) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("Origin", PAGE)], initialize("2025-11-25"))

    assert (200, PAGE) == (answer.status, answer.header("access-control-allow-origin"))
    assert "origin" == answer.header("vary")
    assert "mcp-session-id" in (answer.header("access-control-expose-headers") or "")


@spec("2025-11-25", "basic/transports#security-warning")
async def test_a_program_that_is_no_browser_hears_nothing_of_all_that() -> None:
    async with site(demo(), allowed_origins=[PAGE]) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
        other = await web.ask("OPTIONS", "/mcp", [])

    assert 405 == other.status
    assert not [name for name, _ in answer.response_lines if name.startswith(b"access-control")]
