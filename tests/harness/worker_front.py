"""Several workers of one server in one process, behind a front that sends each request to the next worker."""

from __future__ import annotations

import copy
from contextlib import asynccontextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from mcpgen import MemoryCluster
from mcpgen.runtime.server.engine import Engine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcpgen import Application, Cluster, Server

__all__ = ["WorkerFront", "twin"]


def twin(server: Server) -> Server:
    """Return a server with the same handlers and another engine, as another process would have."""
    found, engine = copy.copy(server), server._engine
    found._engine = Engine(
        engine.name,
        engine.handlers,
        limits=engine.limits,
        lifespan=engine._lifespan,
        is_strict=engine.reading.is_strict,
    )
    if not engine.sealer.is_keyless:
        found._engine.sealer = engine.sealer
    found._engine.debug = engine.debug
    return found


class WorkerFront:
    """An ASGI application that is several workers.

    Args:
        server: What each of them serves; or a function that returns the server of one.
        workers: How many there are.
        cluster: Returns what they share, for each.
        options: Of `Server.asgi`.

    Attributes:
        apps: The workers.
    """

    def __init__(
        self,
        server: Server | Callable[[], Server],
        workers: int = 3,
        cluster: Callable[[], Cluster] | None = None,
        **options: Any,
    ) -> None:
        if cluster is None:
            shared = MemoryCluster()
            cluster = lambda: shared  # noqa: E731 (what a caller would write)
        if callable(server):
            servers = [server() for _ in range(workers)]
        else:
            servers = [server, *(twin(server) for _ in range(workers - 1))]
        self.apps: list[Application] = [each.asgi(cluster=cluster(), **options) for each in servers]
        self._next = cycle(self.apps)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request by the next worker, or the lifespan by all."""
        if scope["type"] == "http":
            await next(self._next)(scope, receive, send)
            return
        if scope["type"] != "lifespan":
            await self.apps[0](scope, receive, send)
            return
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[WorkerFront]:
        """Keep the lifespan of all workers open within the block."""
        for each in self.apps:
            await each._state.open()
        yield self
        for each in self.apps:
            await each._state.close()
