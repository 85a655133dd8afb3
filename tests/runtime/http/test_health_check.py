"""Health checks: whether a process lives, and whether it can serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import MemoryCluster, Redis, Server, UsageError
from mcpgen.runtime.transports.spawner import open_group
from tests.harness.redis_servers import needs_redis, redis_server
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster.workers import Unwatched, eventually
from tests.specification.http_server.asgi_exchange import Web
from tests.specification.http_server.protected_site import protect

if TYPE_CHECKING:
    from pathlib import Path

    from mcpgen import Application

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked(app: Application, *paths: str, method: str = "GET") -> list[int]:
    async with open_group() as group:
        web = Web(app, group, Unwatched(), "")
        return [(await web.open(method, each, host="10.1.2.3").complete()).status for each in paths]


async def reason(app: Application) -> Any:
    async with open_group() as group:
        said = await Web(app, group, Unwatched(), "").ask("GET", "/health")
        return said.json.get("reason", said.json["status"])


async def test_there_is_none_by_default() -> None:
    assert [404, 404] == await asked(Server("demo").asgi(), "/health", "/health/live")


@pytest.mark.parametrize("path", ["/health", "/health/", "/up"])
async def test_a_process_that_serves_is_live_and_ready(path: str) -> None:
    app = Server("demo").asgi(health=path)
    own = path.rstrip("/")
    async with app.running():
        assert [200] * 3 == await asked(app, own, f"{own}/live", f"{own}/ready")
        assert [200] == await asked(app, own, method="HEAD")
        assert [405] == await asked(app, own, method="POST")
        assert [404] * 2 == await asked(app, f"{own}/other", f"{own}ready")
        assert "ok" == (await reason(app) if own == "/health" else "ok")


async def test_it_needs_neither_a_token_nor_a_known_host() -> None:
    app = Server("demo").asgi(health="/health", auth=protect(), bound_to="127.0.0.1")

    assert [200, 403] == await asked(app, "/health", "/mcp")


async def test_a_process_that_shuts_down_is_live_but_not_ready() -> None:
    app = Server("demo").asgi(health="/health")
    async with app.running():
        await app.shutdown()

        assert [200, 503] == await asked(app, "/health/live", "/health/ready")
        assert "the server is shutting down" == await reason(app)


async def test_a_worker_of_a_cluster_is_ready_when_it_has_joined() -> None:
    app = Server("demo").asgi(health="/health", cluster=MemoryCluster())
    async with app.running():
        assert [200, 200] == await asked(app, "/health/live", "/health/ready")


@needs_redis
@pytest.mark.slow
async def test_a_worker_is_not_ready_while_redis_is_gone(tmp_path: Path) -> None:
    with redis_server(tmp_path) as redis:
        app = Server("demo").asgi(health="/health", cluster=Redis(redis.url, timeout_seconds=0.5))

        async def is_ready() -> bool:
            live, ready = await asked(app, "/health/live", "/health/ready")
            assert 200 == live
            return ready == 200

        async def is_unready() -> bool:
            return not await is_ready()

        async with app.running():
            await eventually(is_ready)
            redis.stop()
            with anyio.fail_after(PATIENCE_SECONDS):
                await eventually(is_unready)
            assert "the cluster cannot be reached" == await reason(app)
            redis.start()
            with anyio.fail_after(PATIENCE_SECONDS):
                await eventually(is_ready)


@pytest.mark.parametrize("path", ["health", "/mcp", "/sse"])
def test_a_path_that_makes_no_sense_is_found_at_once(path: str) -> None:
    with pytest.raises(UsageError, match="`health`"):
        Server("demo").asgi(health=path)
