"""The task in which an application's handlers run, from the start of the server's lifespan to its end.

Theory of operation. A handler can outlive the request that started it: its client has disconnected and will resume the
stream, or must answer a request first. So handlers do not run in the task of a request, but in one task of the
application. It starts with the ASGI lifespan. A framework that mounts the application does not pass the lifespan on;
then the task starts with the first request, and ends with the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.transports.spawner import open_spawner, start_alone
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.transports.spawner import Spawner, StartedFunction

__all__ = ["HandlerHost"]

_LOG = traceback_logger("mcpgen.http")


class HandlerHost:
    """The task in which the handlers of one server run.

    Args:
        engine: The server, whose lifespan the task keeps open.
        expire: Called regularly; it returns in how many seconds to call it again.

    Attributes:
        spawner: Starts handlers; None before `open`, and after the end.
        has_ended: Whether it was closed, or the task has ended.
    """

    def __init__(self, engine: Engine, expire: Callable[[], float]) -> None:
        self.spawner: Spawner | None = None
        self.has_ended: bool = False
        self._engine = engine
        self._expire = expire
        self._handle: StartedFunction | None = None
        self._ready = anyio.Event()
        self._closing = anyio.Event()
        self._gone = anyio.Event()
        self._failure: Exception | None = None
        self._traceback: TracebackType | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the server's lifespan has failed."""
        return self._failure is not None

    async def open(self) -> Spawner:
        """Return the spawner of handlers, once the server's lifespan has started.

        Raises:
            Exception: The exception that the lifespan raised.
            TransportClosed: The task has ended already.
        """
        if self._handle is None:
            self._handle = start_alone(self._run, self._end)
        await self._ready.wait()
        if self.spawner is None:
            if self._failure is None:
                raise TransportClosed("the application has shut down")
            raise self._failure.with_traceback(self._traceback)  # a reraised traceback grows with each request
        return self.spawner

    async def close(self) -> None:
        """Cancel the handlers, and return when the lifespan has ended.

        Raises:
            Exception: The exception that the lifespan raised at its end.
        """
        self.has_ended = True
        if self._handle is not None:
            self._closing.set()
            with anyio.CancelScope(shield=True):  # the end of a lifespan has no time limit
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
                    with anyio.move_on_after(self._expire()):
                        await self._closing.wait()
        except Exception as failure:  # noqa: BLE001 (raised by `open` or `close`)
            self._failure, self._traceback = failure, failure.__traceback__
            if self.spawner is not None and not self.has_ended:
                _LOG.exception("the server's lifespan failed")

    def _end(self) -> None:
        self.spawner = None
        self.has_ended = True
        self._ready.set()
        self._gone.set()
