"""Serve an application at an address with uvicorn, until a signal arrives.

Theory of operation. This adds what uvicorn lacks. uvicorn has no limit on the head of a request, neither on its length
(with httptools) nor on its time. At shutdown it waits for open streams, which end only when the application ends them.
And it raises signals again after it has handled them, where a server that was told to stop should exit with status 0.
"""

from __future__ import annotations

import socket
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import uvicorn

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.uvicorn_limits import BoundedProtocol
from mcpgen.runtime.transports.gc_tuning import tune_gc
from mcpgen.runtime.transports.graceful_shutdown import GracefulShutdown
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Unpack

    from mcpgen.runtime.http.server.application import Application, Options

__all__ = ["bind", "serve_http"]

# MCP hosts and people wait about two seconds for a process to exit; the interpreter needs a part of them.
_SHUTDOWN_SECONDS: Final = 1.7

# How long uvicorn waits for connections after all streams have ended.
_LINGER_SECONDS: Final = 1

# How long an idle connection stays open, which saves the next request a TCP handshake.
_KEEP_ALIVE_SECONDS: Final = 30


def bind(host: str, port: int) -> list[socket.socket]:
    """Return sockets bound to all addresses of *host*.

    Raises:
        UsageError: There is no such address, or it is in use or not permitted.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host!r} is not an address of this machine: {error.strerror}") from error
    bound: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            bound.append(_bind(family, kind, protocol, (address[0], port, *address[2:])))
            port = bound[0].getsockname()[1]  # if it was 0, all sockets get the same port
    except OSError as error:
        for each in bound:
            each.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return bound


def _bind(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # on Windows, it would let other processes take the address
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    return made


class AsgiServer(Protocol):
    """A `Server`, as this module uses it."""

    name: str

    def asgi(self, **options: Unpack[Options]) -> Application:
        """Return the server as an ASGI application."""
        ...


def serve_http(server: AsgiServer, sockets: Sequence[socket.socket], options: Options) -> None:
    """Serve *server* on *sockets* until SIGINT or SIGTERM, then close them.

    Print the URL on standard error when connections are accepted. If a handler does not end in time after the signal,
    exit the process with status 0.

    Args:
        server: The server.
        sockets: From `bind`.
        options: The options of the application except ``bound_to``, which is set here.
    """
    address, port = sockets[0].getsockname()[:2]
    app_options: Options = {"bound_to": address, **options}
    app = server.asgi(**app_options)
    shown = f"[{address}]" if ":" in address else address
    line = f"mcpgen: serving {server.name} at http://{shown}:{port}{options.get('path', '/mcp')}"
    with tune_gc(), GracefulShutdown(_SHUTDOWN_SECONDS) as shutdown:
        use_uvloop = {"use_uvloop": sys.platform != "win32"}
        anyio.run(partial(_serve, app, sockets, line, shutdown), backend_options=use_uvloop)


async def _serve(app: Application, sockets: Sequence[socket.socket], line: str, shutdown: GracefulShutdown) -> None:
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] (uvicorn has types of its own for each kind of scope)
        http=partial(BoundedProtocol, write_seconds=app.limits.write_seconds),  # type: ignore[arg-type] # uvicorn only calls it
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application does not use the client's address
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LINGER_SECONDS,
    )
    server = _UvicornServer(config, app, line)
    async with app.running(), open_group() as group:
        group.start_soon(server.exit_on_signal, shutdown)
        await server.serve(sockets=list(sockets))


class _UvicornServer(uvicorn.Server):
    """uvicorn's server; it prints its URL, and ends the streams of the application before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: Application, line: str) -> None:
        super().__init__(config)
        self._app = app
        self._line = line

    async def exit_on_signal(self, shutdown: GracefulShutdown) -> None:
        await shutdown.wait_requested()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # `GracefulShutdown` handles them

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self._line, file=sys.stderr, flush=True)  # noqa: T201 (for the person who started the command)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.shutdown()
        await super().shutdown(sockets)
