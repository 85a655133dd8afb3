"""Pages of strangers that reach for a server: by their own name, or by one that was made to point here.

Every method and every path is tried, not only those that are used.
"""

from __future__ import annotations

import pytest

from tests.faults.http_applications import attacked_site
from tests.faults.http_faulty_handlers import Guest
from tests.faults.http_raw_client import OLD, initialize
from tests.specification.http_server.http_clients import BOTH, JSON

pytestmark = pytest.mark.anyio

METHODS = ["GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD", "TRACE", "BREW"]
PATHS = ["/mcp", "/mcp/", "/sse", "/messages", "/messages?session=x"]
LOOPBACK = ["127.0.0.1", "127.0.0.53", "::1", "localhost", "127.1"]
PUBLIC = ["0.0.0.0", "::", "192.168.1.5", "10.0.0.1", None]  # noqa: S104 (nothing is bound)

FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example:8000",
    "evil.example.localhost.example",
    "localhost@evil.example",
    "localhost:8000@evil.example",
    "evil.example#localhost",
    "evil.example?localhost",
    "evil.example/localhost",
    "localhost evil.example",
    "localhost\x00.evil.example",
    "localhost\x0b",
    "localhost\xa0",
    "localhost\x85",
    "\u2170ocalhost".encode().decode("latin-1"),
    "[::1].evil.example",
    "[::1",
    "::1",
    "[::ffff:93.184.216.34]",
    "[::]",
    "0.0.0.0",  # noqa: S104 (some systems take it for this machine)
    "0",
    "0x7f.0.0.1.evil.example",
    "2130706433",
    "128.0.0.1",
    "127.0.0.256",
    "127.0.0.1:",
    "127.0.0.1:99999",
    "127.0.0.1:0x50",
    "127.0.0.1:80:80",
    "127.0.0.1:-1",
    "..localhost",
    "localhost..",
    "",
    ".",
    "*",
    None,
]
OWN_HOSTS = ["localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[0::1]"]
FOREIGN_ORIGINS = [
    "http://evil.example",
    "https://evil.example",
    "http://localhost.evil.example",
    "http://localhost:8000.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example:80",
    "http://localhost@evil.example",
    "http://localhost:x@evil.example",
    "http://evil.example/http://localhost",
    "http://localhost/",
    "http://localhost, http://evil.example",
    "http://localhost http://evil.example",
    "http://[::1].evil.example",
    "http://0.0.0.0",
    "http://2130706433",
    "http://localhost\x00.evil.example",
    "http://localhost\xa0",
    "http:// localhost",
    "//localhost",
    "localhost",
    "http:localhost",
    "http:///localhost",
    "file://",
    "file://localhost",
    "chrome-extension://localhost",
    "ws://localhost",
    "javascript://localhost",
    "null",
    "*",
    "",
]
OWN_ORIGINS = [
    "http://localhost",
    "https://localhost:5173",
    "http://127.0.0.1:3000",
    "http://[::1]",
    "HTTP://LOCALHOST",
]


@pytest.mark.parametrize("bound_to", LOOPBACK)
@pytest.mark.slow
async def test_on_a_loopback_address_a_foreign_host_reaches_nothing(bound_to: str) -> None:
    async with attacked_site(Guest().server, bound_to=bound_to) as web:
        for host in FOREIGN_HOSTS:
            for path in PATHS:
                for method in METHODS:
                    answer = web.open(method, path, [JSON, BOTH], initialize(), host=host)
                    await answer.complete()
                    assert 403 == answer.status, answer
                    assert answer.header("access-control-allow-origin") is None
                    reason = answer.json["error"]["message"]
                    assert "allowed_hosts" in reason or "is not valid; send a host" in reason
        assert 0 == len(web.app._state.sessions)


@pytest.mark.parametrize("bound_to", [*LOOPBACK, *PUBLIC])
@pytest.mark.slow
async def test_a_foreign_page_reaches_nothing_wherever_the_server_listens(bound_to: str | None) -> None:
    """At an address that is no loopback one, pages of this machine are foreign, too."""
    origins = FOREIGN_ORIGINS + (OWN_ORIGINS if bound_to in PUBLIC else [])
    async with attacked_site(Guest().server, bound_to=bound_to) as web:
        for origin in origins:
            for path in PATHS:
                for method in METHODS:
                    lines = [JSON, BOTH, ("Origin", origin)]
                    answer = await web.open(method, path, lines, initialize(), host="localhost").complete()
                    assert 403 == answer.status, answer
                    assert answer.header("access-control-allow-origin") is None
                    reason = answer.json["error"]["message"]
                    assert "allowed_origins" in reason or "is not valid; send an origin" in reason
        assert 0 == len(web.app._state.sessions)


@pytest.mark.parametrize("bound_to", LOOPBACK)
async def test_what_is_of_this_machine_is_served_on_a_loopback_address(bound_to: str) -> None:
    async with attacked_site(Guest().server, bound_to=bound_to) as web:
        for host in OWN_HOSTS:
            for origin in OWN_ORIGINS:
                lines = [JSON, BOTH, ("Origin", origin)]
                answer = await web.open("POST", "/mcp", lines, initialize(), host=host).complete()
                assert 200 == answer.status, answer


@pytest.mark.slow
async def test_what_was_allowed_once_does_not_open_the_door_to_what_is_like_it() -> None:
    """What is allowed is remembered, and so are many others."""
    async with attacked_site(Guest().server, bound_to="127.0.0.1") as web:
        for port in range(300):
            lines = [JSON, BOTH, ("Origin", f"http://localhost:{port}")]
            answer = await web.open("POST", "/mcp", lines, initialize(OLD), host=f"localhost:{port}").complete()
            assert 200 == answer.status
        for host in FOREIGN_HOSTS:
            answer = await web.open("POST", "/mcp", [JSON, BOTH], initialize(OLD), host=host).complete()
            assert 403 == answer.status


@pytest.mark.parametrize(
    "name", ["X-Forwarded-Host", "Forwarded", "X-Original-Host", "X-Host", ":authority", "X-Forwarded-For"]
)
async def test_no_other_header_stands_for_the_host(name: str) -> None:
    async with attacked_site(Guest().server, bound_to="127.0.0.1") as web:
        lines = [JSON, BOTH, (name, "localhost")]
        answer = await web.open("POST", "/mcp", lines, initialize(), host="evil.example").complete()

        assert answer.status in (400, 403)
