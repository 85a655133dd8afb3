"""A rate limiter: a token bucket for each client, in a bounded table."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server import rate_limit
from mcpgen.runtime.http.server.rate_limit import RateLimiter
from mcpgen.runtime.limits import RateLimit


def test_a_bucket_fills_with_time_and_no_further_than_its_size() -> None:
    now = [0.0]
    rates = RateLimiter(RateLimit(per_second=2, burst=4), lambda: now[0])

    assert [0, 0, 0, 0, 0.5] == [rates.wait_seconds("a", 1) for _ in range(5)]
    now[0] = 0.5
    assert [0, 0.5] == [rates.wait_seconds("a", 1) for _ in range(2)]
    now[0] = 100
    assert 0 == rates.wait_seconds("a", 9), "more than it can ever hold: all of it"
    assert 0.5 == rates.wait_seconds("a", 1)


def test_the_table_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_MAX_BUCKETS", 3)
    rates = RateLimiter(RateLimit(per_second=1, burst=1), lambda: 0.0)
    for each in range(10):
        assert 0 == rates.wait_seconds(f"{each}", 1)

    assert 3 == len(rates._buckets)
    assert 1 == rates.wait_seconds("9", 1)


@pytest.mark.parametrize("bounds", [{"per_second": 0}, {"burst": -1}, {"per_second": float("nan")}])
def test_a_limit_has_to_let_something_pass(bounds: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="RateLimit"):
        RateLimit(**bounds)
