"""A server that runs over HTTP for the length of a block, and an overseer that judges all of it at the end."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen import Redis
from mcpgen.runtime.transports.spawner import is_asyncio, open_group
from tests.harness.worker_front import WorkerFront
from tests.patience import BUSY_SECONDS
from tests.specification.http_server.asgi_exchange import PATIENCE_SECONDS, Lifespan, Web
from tests.specification.http_server.http_recorder import Overseer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.api.server import Server
    from tests.harness.redis_servers import RedisServer
    from tests.specification.http_server.asgi_exchange import Exchange


class Site(Web):
    """A server of ours, over HTTP.

    Attributes:
        server: It.
        overseer: What judges it.
        lifespan: Where the application is told that it begins and ends; None if nobody does.
    """

    server: Server
    overseer: Overseer
    lifespan: Lifespan | None = None

    async def shutdown(self) -> None:
        """Have the application end, with whatever is open."""
        self.overseer.is_closing = True
        assert self.lifespan is not None
        assert {"type": "lifespan.shutdown.complete"} == await self.lifespan.ask("shutdown")

    async def leave(self, exchange: Exchange) -> None:
        """Close the only open connection, and return when the worker that answers knows."""
        apps = self.app.apps if isinstance(self.app, WorkerFront) else [self.app]
        exchange.leave()
        await exchange.returned()
        with anyio.fail_after(PATIENCE_SECONDS):
            while any(each._state.open_responses for each in apps):
                await anyio.lowlevel.checkpoint()

    async def leave_all(self) -> None:
        """Close all connections."""
        open_ones = [each for each in self.exchanges if not each.has_returned]
        for each in open_ones:
            each.leave()
        for each in open_ones:
            await each.returned()


WORKERS = int(os.environ.get("MCPGEN_WORKERS", "1"))  # how many serve each server
REDIS: RedisServer | None = None  # what they share on asyncio; `conftest` starts it


def application(server: Server, options: dict[str, Any]) -> Any:
    """Return what serves *server*: an application, or several workers of which each serves the next request."""
    if WORKERS == 1:
        return server.asgi(**options)
    if REDIS is None or not is_asyncio():
        return WorkerFront(server, WORKERS, **options)
    REDIS.command("FLUSHALL")
    url = REDIS.url
    return WorkerFront(server, WORKERS, lambda: Redis(url, timeout_seconds=BUSY_SECONDS), **options)


@asynccontextmanager
async def site(server: Server, *, lifespan: bool = True, root_path: str = "", **options: Any) -> AsyncGenerator[Site]:
    """Run *server* within the block.

    Args:
        server: It.
        lifespan: Whether the application is told of its lifespan.
        root_path: Where it is mounted.
        options: Of `Server.asgi`.
    """
    app = application(server, options)
    paths = {key: value for key, value in options.items() if key in ("path", "sse_path", "message_path")}
    overseer = Overseer(server._engine.handlers.served, server._engine.handlers.capabilities, **paths)
    async with open_group() as group:
        web = Site(app, group, overseer, root_path)
        web.server, web.overseer = server, overseer
        web.quiet_seconds = 0.05 if WORKERS > 1 else 0
        if lifespan:
            web.lifespan = Lifespan(app)
            group.start_soon(web.lifespan.run)
            assert {"type": "lifespan.startup.complete"} == await web.lifespan.ask("startup")
        yield web
        await web.quiet()
        await web.leave_all()
        if web.lifespan is not None and not web.lifespan.has_returned:
            await web.shutdown()
            with anyio.fail_after(PATIENCE_SECONDS):
                while not web.lifespan.has_returned:
                    await anyio.lowlevel.checkpoint()
    overseer.verify()
