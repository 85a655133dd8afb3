"""Long heads of requests: only a part of one is split, before its client has a turn; and one that is kept counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import anyio
import pytest

from mcpgen import HttpLimits, Server
from mcpgen.runtime.http.media_types import JSON, accepts
from mcpgen.runtime.http.server import cycle_protocol, legacy_sse
from mcpgen.runtime.http.server.auth import token_check
from mcpgen.runtime.http.server.client_address import ClientAddresses
from tests.runtime.http.cluster.workers import Unwatched
from tests.specification.http_server.asgi_exchange import Web
from tests.specification.http_server.protected_site import protect

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen import Access
    from mcpgen.runtime.http.server.auth.token_verifier import ExpectedToken, Verify
    from tests.specification.http_server.asgi_exchange import Exchange

# Nearly the longest head of a request.
LONG = 65_000


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many characters of a path or a query are decoded each time."""
    lengths: list[int] = []

    def counted(decode: Callable[[str], object]) -> Callable[[str], object]:
        def decode_counted(text: str) -> object:
            lengths.append(len(text))
            return decode(text)

        return decode_counted

    monkeypatch.setattr(cycle_protocol, "unquote", counted(unquote))
    monkeypatch.setattr(legacy_sse, "parse_qs", counted(parse_qs))
    return lengths


def split_target(url: bytes) -> tuple[str, bytes, bytes]:
    split: Any = cycle_protocol.__dict__["_target"]
    found: tuple[str, bytes, bytes] = split(url)
    return found


def test_a_long_path_is_not_decoded(decoded: list[int]) -> None:
    assert split_target(b"/%6dcp?a") == ("/mcp", b"/%6dcp", b"a")
    path = "/" + "%" * LONG
    assert split_target(path.encode()) == (path, path.encode(), b"")
    assert decoded == [len("/%6dcp")]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_long_query_has_no_session(decoded: list[int]) -> None:
    app = Server("demo").asgi(allowed_hosts=["*"])
    async with anyio.create_task_group() as group:
        web = Web(app, group, Unwatched(), "")
        headers = [("content-type", JSON)]
        for query in ("session=a", "session=a&" + "%=%&" * (LONG // 4)):
            answer = await web.open("POST", f"/messages?{query}", headers, b"{}").complete()
            assert answer.status == 404
    assert decoded == [len("session=a")]


def test_a_long_accept_header_is_read_in_part() -> None:
    assert accepts("," * 1000 + JSON, JSON)
    assert not accepts("," * LONG + JSON, JSON)


def test_a_long_element_of_forwarded_is_read_in_part() -> None:
    proxies = ClientAddresses(["10.0.0.1"])
    scope: dict[str, Any] = {"client": ("10.0.0.1", 1)}
    owners = [proxies.client(scope, {"forwarded": f"{';' * count}for=192.0.2.1"}, "").owner for count in (10, LONG)]
    assert owners == ["address 192.0.2.1", "address 10.0.0.1"]


LONG_LINES = [("x-long", "x" * 60_000), ("content-type", JSON), ("accept", "*/*")]
# What a request with these lines takes: its own part, and the head twice.
TAKEN = 24 * 1024 + 2 * 60_000


async def statuses(*sent: Exchange) -> list[int]:
    """Return the statuses of the requests that are refused; the others wait."""
    await anyio.wait_all_tasks_blocked()
    return [each.status for each in sent if each.status]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("body", [b"", b" "], ids=["no part of the body", "one part of it"])
async def test_a_long_head_counts_while_its_body_is_to_come(body: bytes) -> None:
    app = Server("demo").asgi(limits=HttpLimits(max_open_bytes=int(2.5 * TAKEN)))
    async with app.running(), anyio.create_task_group() as group:
        web = Web(app, group, Unwatched(), "")
        sent = [web.open("POST", "/mcp", LONG_LINES, body, is_whole=False) for _ in range(4)]
        assert await statuses(*sent) == [503, 503]
        group.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_long_head_counts_while_the_keys_of_the_issuer_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Keys:
        cache_seconds = 1.0
        asks_for_each_token = False

        def verifier(self, _: ExpectedToken) -> Verify:
            return fetch

    async def fetch(_: str) -> Access | None:
        await anyio.sleep_forever()
        return None

    monkeypatch.setattr(token_check, "_MAX_WAITING_BYTES", int(2.5 * TAKEN))
    app = Server("demo").asgi(auth=protect(verify=Keys()))
    async with app.running(), anyio.create_task_group() as group:
        web = Web(app, group, Unwatched(), "")
        lines = [*LONG_LINES, ("authorization", "Bearer a")]
        sent = [web.open("GET", "/mcp", lines) for _ in range(4)]
        assert await statuses(*sent) == [503, 503]
        group.cancel_scope.cancel()
