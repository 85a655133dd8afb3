"""Workers of one server in one process, and a client that chooses the worker of each request."""

from __future__ import annotations

import copy
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen.runtime.transports.spawner import open_group
from tests.harness.worker_front import WorkerFront
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.specification.http_server.asgi_exchange import Web
from tests.specification.http_server.http_clients import Caller

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcpgen import Cluster, Server


class Unwatched:
    """What hears of exchanges, and does nothing."""

    def asked(self, exchange: Any) -> None: ...
    def started(self, exchange: Any) -> None: ...
    def sent(self, exchange: Any, data: bytes) -> None: ...
    def ended(self, exchange: Any) -> None: ...
    def returned(self, exchange: Any) -> None: ...


class Workers:
    """Running workers.

    Attributes:
        front: They, as one application.
        webs: Each of them.
    """

    def __init__(self, front: WorkerFront, group: anyio.abc.TaskGroup) -> None:
        self.front = front
        self.webs = [Web(app, group, Unwatched(), "") for app in front.apps]

    def client(self, worker: int, revision: str = "2025-11-25", capabilities: str = "{}") -> Any:
        """Return a client of one worker, which has not sent anything."""
        return Caller(self.webs[worker], revision, capabilities)

    def at(self, worker: int, client: Any) -> Any:
        """Return *client* with its session, as it talks to another worker."""
        found = copy.copy(client)
        found.web = self.webs[worker]
        return found

    def cluster(self, worker: int) -> Any:
        """Return what a worker shares."""
        return self.front.apps[worker]._state.cluster

    async def until_trusted(self) -> None:
        """Return when no worker has to read again what it knows."""
        for each in range(len(self.webs)):
            while not self.cluster(each)._worker.is_trusted:  # noqa: ASYNC110 (which nothing announces)
                await anyio.sleep(0.01)


@asynccontextmanager
async def running(
    server: Server | Callable[[], Server], cluster: Callable[[], Cluster], workers: int = 3, **options: Any
) -> AsyncGenerator[Workers]:
    """Run *workers* of *server* within the block."""
    front = WorkerFront(server, workers, cluster, **options)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_group() as group:
            for each in front.apps:
                await each._state.open()
            found = Workers(front, group)
            try:
                await found.until_trusted()
                yield found
            finally:  # a connection that a failed test leaves open fails the test that runs when it is collected
                for web in found.webs:
                    for exchange in web.exchanges:
                        exchange.leave()
                with anyio.move_on_after(BUSY_SECONDS, shield=True):  # also if the time of the test is over
                    for each in front.apps:
                        await each._state.close()


async def eventually(is_so: Callable[[], Any]) -> None:
    """Return when *is_so* returns something true, which a worker learns from another one."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not await is_so():  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
