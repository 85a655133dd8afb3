"""A server on stdio whose connections are changed by the command that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.transports.interfaces import ServerInterface

__all__ = ["WrappedServer"]


class WrappedServer:
    """The base of these; each is a `ServerInterface` with a `connect` of its own."""

    def __init__(self, server: ServerInterface) -> None:
        self._server = server

    @property
    def limits(self) -> Limits:
        """Those of the server."""
        return self._server.limits

    def running(self) -> AbstractAsyncContextManager[object]:
        """Keep the server's lifespan open within the block."""
        return self._server.running()
