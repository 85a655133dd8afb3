"""Serving an application at an address, by uvicorn, until a signal comes.

Theory of operation. uvicorn speaks HTTP; what it leaves open is added here. It has no bound on the head of a request,
neither in length (with httptools) nor in time. At its end it waits for open streams, which end only if they are told
to. And it takes signals, and raises them again, where a server that was told to end should have ended well.
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

# Hosts and people wait two seconds; the interpreter's own exit takes a part of them.
_LEAVE_SECONDS: Final = 1.7

# What uvicorn waits for connections after all streams were ended.
_LINGER_SECONDS: Final = 1

# How long a connection may be open with nothing asked on it, which saves the next request a handshake.
_KEEP_ALIVE_SECONDS: Final = 30


def bind(host: str, port: int) -> list[socket.socket]:
    """Return sockets that are bound to all addresses that *host* stands for.

    Raises:
        UsageError: There is no such address, or it is taken or not for us.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host!r} is no address of this machine: {error.strerror}") from error
    bound: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            bound.append(_bound(family, kind, protocol, (address[0], port, *address[2:])))
            port = bound[0].getsockname()[1]  # if it was 0: the same one for all of them
    except OSError as error:
        for each in bound:
            each.close()
        raise UsageError(f"{host}:{port} cannot be listened on: {error.strerror}") from error
    return bound


def _bound(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # where it would let others take the address
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    return made


class AsgiServer(Protocol):
    """A server that can be served over HTTP."""

    name: str

    def asgi(self, **options: Unpack[Options]) -> Application:
        """Return the server as an ASGI application."""
        ...


def serve_http(server: AsgiServer, sockets: Sequence[socket.socket], options: Options) -> None:
    """Serve *server* on *sockets*, which are bound and will be closed, until a signal (SIGINT, SIGTERM) comes.

    It says on standard error where it serves, once it does. If a handler does not end in time, it ends the process
    instead, with status 0.

    Args:
        server: What to serve.
        sockets: Of `bind`.
        options: Those of the application but for ``bound_to``, which is known here.
    """
    address, port = sockets[0].getsockname()[:2]
    asked: Options = {"bound_to": address, **options}
    app = server.asgi(**asked)
    shown = f"[{address}]" if ":" in address else address
    line = f"mcpgen: serving {server.name} at http://{shown}:{port}{options.get('path', '/mcp')}"
    with tune_gc(), GracefulShutdown(_LEAVE_SECONDS) as departure:
        use_uvloop = {"use_uvloop": sys.platform != "win32"}
        anyio.run(partial(_serve, app, sockets, line, departure), backend_options=use_uvloop)


async def _serve(app: Application, sockets: Sequence[socket.socket], line: str, departure: GracefulShutdown) -> None:
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] (uvicorn has types of its own for each kind of scope)
        http=partial(BoundedProtocol, write_seconds=app.limits.write_seconds),  # type: ignore[arg-type] # makes one
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here looks at the client's address
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LINGER_SECONDS,
    )
    uvicorns = _Uvicorn(config, app, line)
    async with app.running(), open_group() as group:
        group.start_soon(uvicorns.leave_when_asked, departure)
        await uvicorns.serve(sockets=list(sockets))


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, which says where it serves, and ends streams before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: Application, line: str) -> None:
        super().__init__(config)
        self._app = app
        self._line = line

    async def leave_when_asked(self, departure: GracefulShutdown) -> None:
        await departure.asked()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # they are the departure's

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self._line, file=sys.stderr, flush=True)  # noqa: T201 (what it is for)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.dismiss()
        await super().shutdown(sockets)
