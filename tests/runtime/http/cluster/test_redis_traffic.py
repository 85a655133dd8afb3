"""What workers send to Redis, as Redis counts it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest
import redis as library

from mcpgen import HttpLimits, Redis, Server
from tests.harness.redis_servers import RedisServer, needs_redis
from tests.patience import BUSY_SECONDS
from tests.runtime.http.cluster.workers import running

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [pytest.mark.anyio, needs_redis]

WORKERS: Final = 3

# A worker renews its record, reads the epoch and sends a message to itself, three times in a second; a second later
# than it should at most. It also sends what it knows of its clients now and then.
IDLE_COMMANDS: Final = 20


class Traffic:
    """The commands that clients have sent to a server since it was made, beside those of idle workers."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin
        self._begun, self._before = time.monotonic(), self._count()

    def _count(self) -> int:
        # Those that workers send; the others are parts of scripts.
        stats: dict[str, Any] = self._admin.info("commandstats")
        return sum(stats.get(f"cmdstat_{each}", {"calls": 0})["calls"] for each in ("evalsha", "hgetall", "publish"))

    def commands(self) -> float:
        """Return how many there were."""
        idle = WORKERS * IDLE_COMMANDS * (time.monotonic() - self._begun + 1)
        return max(0, self._count() - self._before - idle)


@pytest.fixture
def admin(redis: RedisServer) -> Generator[Any]:
    redis.command("FLUSHALL")
    with library.Redis.from_url(redis.admin_url) as found:
        yield found


def adder() -> Server:
    server = Server("traffic", version="1")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    return server


@pytest.mark.slow
async def test_plain_calls_in_known_sessions_send_nothing(redis: RedisServer, admin: Any) -> None:
    calls = 1500
    unlimited = HttpLimits(rate_limit=None)
    async with running(
        adder(), lambda: Redis(redis.url, timeout_seconds=BUSY_SECONDS), WORKERS, limits=unlimited
    ) as workers:
        client = await workers.client(0).shake_hands()
        known = [workers.at(each, client) for each in range(WORKERS)]
        for each in known:
            await each.result("tools/call", '"name":"add","arguments":{"a":1,"b":2}')
        traffic = Traffic(admin)
        for number in range(calls):
            said = await known[number % WORKERS].result("tools/call", '"name":"add","arguments":{"a":1,"b":2}')
            assert "3" == said["content"][0]["text"]

        assert traffic.commands() < calls / 10
