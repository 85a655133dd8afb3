"""The clusters that workers share in these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpgen import MemoryCluster, Redis
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import BUSY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mcpgen import Cluster


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=["memory", pytest.param("redis", marks=needs_redis)])
def cluster(request: pytest.FixtureRequest) -> Callable[[], Cluster]:
    """What returns the cluster of a worker."""
    if request.param == "memory":
        shared = MemoryCluster()
        return lambda: shared
    running: RedisServer = request.getfixturevalue("redis")
    running.command("FLUSHALL")
    return lambda: Redis(running.url, timeout_seconds=BUSY_SECONDS)
