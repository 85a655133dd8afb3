"""How many tools and completions one client may call: the rest is told when to come back.

Several workers settle their rates every second, so each of them lets a client have its burst once. The next request
goes to the next worker, so a client has used all bursts after `BURSTS` calls.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.http.server.rate_limit import RATE_LIMITED
from mcpgen.runtime.limits import HttpLimits, RateLimit
from tests.specification.http_server.http_clients import Caller, caller, joined, old_joined
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.revision_sets import NEWEST, everywhere, spec
from tests.specification.http_server.stream_tools import demo

pytestmark = pytest.mark.anyio

COMPLETION = '"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""}'
SLOW: dict[str, Any] = {"limits": HttpLimits(rate_limit=RateLimit(per_second=0.01, burst=2))}
BURSTS = 2 * WORKERS


async def statuses(peer: Caller, count: int = BURSTS + 1) -> list[int]:
    return [(await peer.call("echo").complete()).status for _ in range(count)]


def ends(found: list[int]) -> list[int]:
    """Return the first two and the last one; when those between are refused depends on when workers settle."""
    return [*found[:2], found[-1]]


@spec("2025-03-26", "server/tools#security-considerations")
@spec("2025-06-18", "server/tools#security-considerations")
@spec("2025-11-25", "server/tools#security-considerations")
@spec("2026-07-28", "server/tools#security-considerations", "3ff40d27")
@everywhere
async def test_too_many_calls_are_told_when_to_come_back(revision: str) -> None:
    async with caller(demo(), revision, **SLOW) as peer:
        assert [200, 200] == (await statuses(peer, BURSTS))[:2]
        refused = await peer.call("echo", identity="third").complete()
        assert "tools" in await peer.result("tools/list"), "only calls are limited"

    assert (429, "third") == (refused.status, refused.json["id"])
    error = refused.json["error"]
    assert RATE_LIMITED == error["code"]
    assert not -32768 <= error["code"] <= -32000
    assert "rate_limit" in error["message"]
    assert 90_000 < error["data"]["retryAfterMs"] <= 100_000 * (BURSTS - 1)
    assert 90 < int(refused.header("retry-after") or "") <= 100 * (BURSTS - 1)


@spec("2026-07-28", "server/utilities/completion#implementation-considerations", "af9b3fcb")
@spec("2025-11-25", "server/utilities/completion#security")
@spec("2026-07-28", "server/utilities/completion#security", "67b5c359")
@everywhere
async def test_completions_count_like_calls(revision: str) -> None:
    async with caller(demo(), revision, **SLOW) as peer:
        for each in range(BURSTS + 1):
            answer = await peer.post(peer.request(each, "completion/complete", COMPLETION)).complete()

    assert 429 == answer.status


@spec("2024-11-05", "server/utilities/completion#implementation-considerations", "af9b3fcb")
@spec("2024-11-05", "server/utilities/completion#security", "67b5c359")
@spec("2024-11-05", "server/tools#security-considerations", "3ff40d27")
@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", '"name":"echo","arguments":{}'), ("completion/complete", COMPLETION)]
)
async def test_over_http_and_sse_the_error_comes_on_the_stream(method: str, params: str) -> None:
    async with site(demo(), **SLOW) as web:
        peer = await old_joined(web)
        accepted = [(await peer.post(peer.request(each, method, params)).complete()).status for each in range(3)]
        said = [await peer.stream.message() for _ in range(3)]

    assert [202] * 3 == accepted
    (error,) = [each["error"] for each in said if each["id"] == 2]
    assert RATE_LIMITED == error["code"]
    assert error["data"]["retryAfterMs"] > 90_000


@spec("2025-11-25", "server/tools#security-considerations")
async def test_each_call_of_a_batch_counts() -> None:
    async with caller(demo(), "2025-03-26", **SLOW) as peer:
        batch = [peer.request(each, "tools/call", '"name":"echo","arguments":{"text":""}') for each in range(2)]
        body = b"[" + b",".join(batch) + b"]"
        found = [(await peer.post(body).complete()).status for _ in range(WORKERS + 1)]

    assert [200, 429] == [found[0], found[-1]]


@spec("2025-11-25", "server/tools#security-considerations")
@pytest.mark.parametrize("trusted", [None, []], ids=["unknown addresses", "trusted addresses"])
async def test_a_session_has_its_own_limit_unless_its_address_is_trusted(trusted: list[str] | None) -> None:
    async with site(demo(), trusted_proxies=trusted, **SLOW) as web:
        web.overseer.expects_failure = True
        first, second = await joined(web, "2025-11-25"), await joined(web, "2025-11-25")
        assert [200, 200, 429] == ends(await statuses(first))
        assert ([429] if trusted is not None else [200]) == await statuses(second, 1)
        web.address = "192.0.2.7"
        assert ([429] if trusted is None else [200]) == await statuses(first, 1)


@spec("2026-07-28", "server/tools#security-considerations")
async def test_a_session_that_does_not_exist_has_no_limit_of_its_own() -> None:
    async with caller(demo(), NEWEST, **SLOW) as peer:
        body = peer.request(1, "tools/call", '"name":"echo","arguments":{"text":""}')
        lines = peer.lines(body)
        found = [
            (await peer.post(body, [*lines, ("Mcp-Session-Id", f"s{each}")]).complete()).status
            for each in range(BURSTS + 1)
        ]

    assert [200, 200, 429] == ends(found)


@spec("2026-07-28", "server/tools#security-considerations")
async def test_users_have_limits_of_their_own() -> None:
    users = [*["ann"] * BURSTS, "bob", "ann"]
    async with caller(demo(), NEWEST, user=lambda _: users.pop(0), **SLOW) as peer:
        found = await statuses(peer, BURSTS + 2)

    assert [200, 200] == found[:2]
    assert [200, 429] == found[-2:]


@spec("2026-07-28", "server/tools#security-considerations")
@pytest.mark.slow
async def test_none_turns_it_off_and_the_default_lets_a_thousand_calls_pass() -> None:
    async with caller(demo(), NEWEST) as peer:
        assert {200} == set(await statuses(peer, 500))
    async with caller(demo(), NEWEST, limits=HttpLimits(rate_limit=None)) as peer:
        assert {200} == set(await statuses(peer, 1500))
    assert HttpLimits().rate_limit == RateLimit(per_second=100, burst=1000)
