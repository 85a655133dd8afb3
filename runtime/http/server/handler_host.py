"""Where the handlers of an application run, as long as it does.

Theory of operation. A handler can outlive the request that started it: its client has hung up and will come back, or
has to be asked something first. So handlers do not run in the task of a request, but in one of the application's own.
It begins with the lifespan of whatever serves the application. Where an application is mounted within another, nobody
tells it of a lifespan; then it begins with the first request, and ends with the event loop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.transports.spawner import open_spawner, start_alone

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.transports.spawner import Handle, Spawner

__all__ = ["HandlerHost"]

_LOG = logging.getLogger("mcpgen.http")


class HandlerHost:
    """Where the handlers of one server run.

    Args:
        engine: The server, whose lifespan is kept open.
        tidy: Called now and then; it returns in how many seconds it wants to be called again.

    Attributes:
        spawner: Starts handlers; None until it is open.
        is_over: Whether it has been closed, or has ended by itself.
    """

    def __init__(self, engine: Engine, tidy: Callable[[], float]) -> None:
        self.spawner: Spawner | None = None
        self.is_over: bool = False
        self._engine = engine
        self._tidy = tidy
        self._handle: Handle | None = None
        self._ready = anyio.Event()
        self._closing = anyio.Event()
        self._gone = anyio.Event()
        self._failure: Exception | None = None
        self._traceback: TracebackType | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the lifespan of the server has."""
        return self._failure is not None

    async def open(self) -> Spawner:
        """Return what starts handlers, once the lifespan of the server has begun.

        Raises:
            Exception: Whatever the lifespan raised.
            TransportClosed: It has ended already.
        """
        if self._handle is None:
            self._handle = start_alone(self._run, self._end)
        await self._ready.wait()
        if self.spawner is None:
            if self._failure is None:
                raise TransportClosed("the application has ended")
            raise self._failure.with_traceback(self._traceback)  # or it would grow with each request
        return self.spawner

    async def close(self) -> None:
        """Cancel what runs, and return when the lifespan has ended.

        Raises:
            Exception: Whatever the lifespan raised then.
        """
        self.is_over = True
        if self._handle is not None:
            self._closing.set()
            with anyio.CancelScope(shield=True):  # the lifespan's end takes what it takes
                await self._gone.wait()
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure

    async def _run(self) -> None:
        try:
            async with self._engine.running(), open_spawner() as spawner:
                self.spawner = spawner
                self._ready.set()
                while not self._closing.is_set():
                    with anyio.move_on_after(self._tidy()):
                        await self._closing.wait()
        except Exception as failure:  # noqa: BLE001 (raised from whatever waits for it)
            self._failure, self._traceback = failure, failure.__traceback__
            if self.spawner is not None and not self.is_over:
                _LOG.exception("the server's lifespan failed")

    def _end(self) -> None:
        self.spawner = None
        self.is_over = True
        self._ready.set()
        self._gone.set()
