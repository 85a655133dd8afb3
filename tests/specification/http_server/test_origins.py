"""Who may ask: Origin and Host are checked of every request, whatever its method and path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, STREAM, Caller, initialize, joined
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import everywhere, on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

EVIL = ("Origin", "http://evil.example")


@spec("2025-03-26", "basic/transports#security-warning")
@spec("2025-06-18", "basic/transports#security-warning")
@spec("2025-11-25", "basic/transports#security-warning", "629b1bc3", "ce00beae")
@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint", "59de0e23", "ff626d7d")
@everywhere
@on_both_loops
@pytest.mark.parametrize("bound_to", [None, "127.0.0.1", "0.0.0.0"])  # noqa: S104 (what is tried)
async def test_a_post_of_a_foreign_page_is_forbidden(bound_to: str | None, revision: str) -> None:
    own = behaviour()
    async with site(demo(own), bound_to=bound_to) as web:
        peer = await joined(web, revision)
        body = peer.request(1, "tools/call", '"name":"echo","arguments":{}')
        answer = await peer.post(body, [*peer.lines(body), EVIL]).complete()

    assert 403 == answer.status
    assert {} == own.seen
    assert "id" not in answer.json


@spec("2025-11-25", "basic/transports#security-warning")
@with_sessions
async def test_a_get_or_delete_of_a_foreign_page_is_forbidden(revision: str) -> None:
    async with site(demo()) as web:
        peer = await joined(web, revision)
        answers = [
            await web.ask(method, "/mcp", [STREAM, *peer.own_lines, EVIL]) for method in ("GET", "DELETE", "PUT")
        ]

        assert "tools" in await peer.result("tools/list")

    assert [403] * 3 == [each.status for each in answers]


@spec("2024-11-05", "basic/transports#security-warning", "629b1bc3")
@pytest.mark.parametrize(("method", "path"), [("GET", "/sse"), ("POST", "/messages?session=x"), ("POST", "/messages")])
async def test_the_endpoints_of_http_sse_are_guarded_as_well(method: str, path: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask(
            method, path, [JSON, STREAM, EVIL], initialize("2024-11-05") if method == "POST" else b""
        )

    assert 403 == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint", "ff626d7d")
@spec("2025-11-25", "basic/transports#security-warning", "ce00beae")
@everywhere
@pytest.mark.parametrize(
    "origin", ["null", "http://127.0.0.1.evil.example", "file://", "", "evil", "http://localhost@evil.example"]
)
async def test_what_is_no_origin_of_ours_is_forbidden(origin: str, revision: str) -> None:
    async with site(demo(), bound_to="127.0.0.1") as web:
        peer = await joined(web, revision)
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), ("Origin", origin)]).complete()

    assert 403 == answer.status


@spec("2025-11-25", "basic/transports#security-warning")
@everywhere
@pytest.mark.parametrize(
    ("options", "origin"),
    [
        ({"bound_to": "127.0.0.1"}, "http://localhost:5173"),
        ({"bound_to": "127.0.0.1"}, "http://127.0.0.1:8000"),
        ({"allowed_origins": ["https://app.example"]}, "https://app.example"),
        ({"allowed_origins": ["*"]}, "http://evil.example"),
        ({"bound_to": "127.0.0.1"}, None),
        ({}, None),
    ],
)
async def test_an_allowed_origin_and_none_at_all_pass(
    options: dict[str, Any], origin: str | None, revision: str
) -> None:
    async with site(demo(), **options) as web:
        peer = await joined(web, revision)
        body = peer.request(1, "tools/list")
        lines = peer.lines(body) if origin is None else [*peer.lines(body), ("Origin", origin)]
        answer = await peer.post(body, lines).complete()

    assert 200 == answer.status


@spec("2025-11-25", "basic/transports#security-warning")
async def test_several_origins_are_not_one_that_is_allowed() -> None:
    async with site(demo(), bound_to="127.0.0.1") as web:
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/list")
        lines = [*peer.lines(body), ("Origin", "http://localhost"), EVIL]
        answers = [await peer.post(body, each).complete() for each in (lines, [*lines[:-2], EVIL, lines[-2]])]

    assert [403, 403] == [each.status for each in answers]


@spec("2025-11-25", "basic/transports#security-warning")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", None])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages"), ("GET", "/other")],
)
async def test_on_a_loopback_address_a_foreign_host_is_forbidden(method: str, path: str, host: str | None) -> None:
    """So it looks to a browser whose page has had its name pointed at this machine."""
    async with site(demo(), bound_to="127.0.0.1") as web:
        answer = await web.open(method, path, [JSON, BOTH], initialize("2025-11-25"), host=host).complete()

    assert 403 == answer.status


@spec("2025-11-25", "basic/transports#security-warning")
@pytest.mark.parametrize(
    ("options", "host", "status"),
    [
        ({"bound_to": "127.0.0.1"}, "localhost:8000", 200),
        ({"bound_to": "127.0.0.1"}, "[::1]:8000", 200),
        ({"bound_to": "0.0.0.0"}, "anything.example", 200),  # noqa: S104 (what is tried)
        ({}, "anything.example", 200),
        ({"allowed_hosts": ["mcp.example"]}, "mcp.example:443", 200),
        ({"allowed_hosts": ["mcp.example"]}, "localhost", 403),
    ],
)
async def test_a_host_is_what_was_allowed(options: dict[str, Any], host: str, status: int) -> None:
    async with site(demo(), **options) as web:
        answer = await web.open("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"), host=host).complete()

    assert status == answer.status


@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint")
async def test_a_refusal_names_the_setting() -> None:
    async with site(demo(), bound_to="127.0.0.1") as web:
        origin = await web.ask("POST", "/mcp", [JSON, BOTH, EVIL], b"{}")
        host = await web.open("POST", "/mcp", [JSON, BOTH], b"{}", host="evil.example").complete()

    assert "allowed_origins" in origin.json["error"]["message"]
    assert "allowed_hosts" in host.json["error"]["message"]


@spec("2024-11-05", "basic/transports#security-warning", "629b1bc3")
@spec("2025-03-26", "basic/transports#security-warning", "629b1bc3")
@spec("2025-06-18", "basic/transports#security-warning", "629b1bc3")
@spec("2025-11-25", "basic/transports#security-warning", "629b1bc3", "ce00beae")
@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint", "59de0e23", "ff626d7d")
@pytest.mark.parametrize("bound_to", ["127.0.0.1", None])
async def test_a_foreign_page_learns_of_no_path(bound_to: str | None) -> None:
    """The error of a path with nothing names the endpoint; no response invites a browser to show it to the page."""
    async with site(demo(), bound_to=bound_to) as web:
        answers = [
            await web.ask(method, path, [JSON, BOTH, EVIL], initialize("2025-11-25") if method == "POST" else b"")
            for method, path in (("POST", "/mcp"), ("GET", "/other"), ("OPTIONS", "/mcp"))
        ]

    assert [403, 403, 403] == [each.status for each in answers]
    assert [None] * 3 == [each.header("access-control-allow-origin") for each in answers]
