"""A rate limiter: a token bucket for each client, in a bounded table."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server import rate_limit
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.rate_limit import Bucket, RateLimiter
from mcpgen.runtime.limits import RateLimit
from mcpgen.runtime.protocol.messages import Batch, Notification, Request

CALL = Request(1, "tools/call", UNSET)
ONE = Client("", "address 192.0.2.1", is_known=False)


def test_a_bucket_fills_with_time_and_no_further_than_its_size() -> None:
    now = [0.0]
    rates = RateLimiter(RateLimit(per_second=2, burst=4), lambda: now[0])

    assert [0, 0, 0, 0, 0.5] == [rates.wait_seconds(CALL, ONE) for _ in range(5)]
    now[0] = 0.5
    assert [0, 0.5] == [rates.wait_seconds(CALL, ONE) for _ in range(2)]
    now[0] = 100
    assert 0 == rates.wait_seconds(CALL, ONE)


def test_a_batch_of_more_calls_than_a_bucket_holds_needs_a_full_bucket_and_takes_a_token_for_each() -> None:
    now = [0.0]
    rates = RateLimiter(RateLimit(per_second=2, burst=4), lambda: now[0])
    batch = Batch([CALL] * 9)

    assert [0, 4.5, 3] == [rates.wait_seconds(each, ONE) for each in (batch, batch, CALL)]
    now[0] = 3
    assert [0, 2] == [rates.wait_seconds(each, ONE) for each in (CALL, batch)]
    now[0] = 5
    assert 0 == rates.wait_seconds(batch, ONE)


def test_only_calls_of_tools_and_completions_take_tokens() -> None:
    rates = RateLimiter(RateLimit(per_second=1, burst=1), lambda: 0.0)
    others = [Request(1, "tools/list", UNSET), Notification("tools/call", UNSET), Batch([Request(1, "ping", UNSET)])]

    assert [0] * 10 == [rates.wait_seconds(each, ONE) for each in (*others, *others, *others, CALL)]
    assert 1 == rates.wait_seconds(Request(1, "completion/complete", UNSET), ONE)


def test_a_session_has_a_bucket_of_its_own_unless_its_client_is_known() -> None:
    rates = RateLimiter(RateLimit(per_second=1, burst=1), lambda: 0.0)
    known = Client("ada", "user ada", is_known=True)
    first, second = Bucket(), Bucket()

    assert [0, 0, 0, 1, 1, 1] == [rates.wait_seconds(CALL, ONE, each) for each in (None, first, second) * 2]
    assert [0, 1, 1] == [rates.wait_seconds(CALL, known, each) for each in (None, Bucket(), Bucket())]


def test_the_table_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_MAX_BUCKETS", 3)
    rates = RateLimiter(RateLimit(per_second=1, burst=1), lambda: 0.0)
    clients = [ONE._replace(owner=f"{each}") for each in range(10)]

    assert [0] * 10 == [rates.wait_seconds(CALL, each) for each in clients]
    assert 3 == len(rates._buckets)
    assert 1 == rates.wait_seconds(CALL, clients[9])


@pytest.mark.parametrize("bounds", [{"per_second": 0}, {"burst": -1}, {"per_second": float("nan")}])
def test_a_limit_has_to_let_something_pass(bounds: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="RateLimit"):
        RateLimit(**bounds)
