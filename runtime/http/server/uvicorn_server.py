"""Serve an application at an address with uvicorn, until a signal arrives.

Theory of operation. This adds what uvicorn lacks. uvicorn has no limit on the head of a request, neither on its length
(with httptools) nor on its time. At shutdown it waits for open streams, which end only when the application ends them.
And it raises signals again after it has handled them, where a server that was told to stop should exit with status 0.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import uvicorn

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.listener import Listener, connection_quota
from mcpgen.runtime.http.server.read_turns import ReadTurns
from mcpgen.runtime.http.server.repeating_protocol import MAX_REPEATED_HEADS_BYTES, RepeatingProtocol
from mcpgen.runtime.http.server.request_cycle import remembered_line
from mcpgen.runtime.http.server.shared_task import SharedTask
from mcpgen.runtime.http.server.uvicorn_limits import MAX_HEADS_BYTES
from mcpgen.runtime.server.quota import Quota
from mcpgen.runtime.transports.graceful_shutdown import GracefulShutdown
from mcpgen.runtime.transports.process_memory import return_free_memory, tune_gc
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Self, Unpack

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.application import Application
    from mcpgen.runtime.http.server.application_options import Options

__all__ = ["bind", "free_address", "serve_http", "serve_http_async", "split_address"]

# MCP hosts and people wait about two seconds for a process to exit; the interpreter needs a part of them.
_SHUTDOWN_SECONDS: Final = 1.7

# What the shutdown needs beside the grace period, if that is a long one.
_END_SECONDS: Final = 1.2

# How long clients have to send the rest of a request, and to read a response, after all streams have ended.
_LINGER_SECONDS: Final = 0.8

# Then uvicorn cancels what still runs, and logs a traceback for each request.
_CANCEL_SECONDS: Final = 1

# How long an idle connection stays open, which saves the next request a TCP handshake.
_KEEP_ALIVE_SECONDS: Final = 30

# Of TCP.
_MAX_PORT: Final = 65535
_PORT_DIGITS: Final = 5


_OPEN_TO_ALL: Final = "mcpgen: the server is open to all machines that can reach this one, without authentication"


def split_address(address: object) -> tuple[str, int]:
    """Split an address into host and port.

    Raises:
        UsageError: The address is not ``HOST:PORT``.
    """
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""  # an IPv6 address without brackets: its port is ambiguous
    if not host or not port.isdecimal() or not port.isascii():
        raise UsageError(f"the address {address!r} is not HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000")
    if len(port) > _PORT_DIGITS or int(port) > _MAX_PORT:
        raise UsageError(f"{address!r} has the port {port[: _PORT_DIGITS + 1]}, which is not between 0 and {_MAX_PORT}")
    return host, int(port)


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
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another port, or an address of this machine"
        ) from error
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


def _is_loopback(bound: socket.socket) -> bool:
    return ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


class AsgiServer(Protocol):
    """A `Server`, as this module uses it."""

    name: str

    def asgi(self, **options: Unpack[Options]) -> Application:
        """Return the server as an ASGI application."""
        ...


def serve_http(
    server: AsgiServer,
    address: str,
    options: Options,
    wrap: Callable[[Application], Any] | None = None,
    descriptors: Sequence[int] = (),
) -> None:
    """Serve *server* at *address* until SIGINT or SIGTERM.

    Print the URL on standard error when connections are accepted. If a handler does not end in time after the signal,
    exit the process with status 0.

    Args:
        server: The server.
        address: ``HOST:PORT``.
        options: The options of the application except ``bound_to``, which is set here.
        wrap: Returns the ASGI application that uvicorn calls instead.
        descriptors: Those of sockets that another process has bound to the address already, and that this one closes.

    Raises:
        UsageError: The address or an option is not valid.
    """
    with (
        _Listener(server, address, options, wrap, descriptors) as listener,
        tune_gc(),
        GracefulShutdown(max(_SHUTDOWN_SECONDS, listener.grace_seconds + _END_SECONDS)) as shutdown,
    ):
        use_uvloop = {"use_uvloop": sys.platform != "win32"}
        anyio.run(partial(listener.serve_until, shutdown), backend_options=use_uvloop)


async def serve_http_async(server: AsgiServer, address: str, options: Options) -> None:
    """Serve *server* at *address* in the running event loop, until this is cancelled. The caller handles signals.

    Args:
        server: The server.
        address: ``HOST:PORT``.
        options: The options of the application except ``bound_to``, which is set here.

    Raises:
        UsageError: The address or an option is not valid, or the event loop is not one of asyncio.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError("serving over HTTP needs asyncio, because uvicorn does; run this with asyncio.run()") from None
    with _Listener(server, address, options) as listener:
        await listener.serve_until_cancelled()


class _Listener:
    """A server with the sockets that it listens on. They are closed at the end of the ``with`` block."""

    def __init__(
        self,
        server: AsgiServer,
        address: str,
        options: Options,
        wrap: Callable[[Application], Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        self._stack = ExitStack()
        with self._stack:
            bound = [socket.socket(fileno=each) for each in descriptors] or bind(*split_address(address))
            self._sockets = [self._stack.enter_context(each) for each in bound]
            host, port = self._sockets[0].getsockname()[:2]
            app_options: Options = {"bound_to": host, **options}
            self._app = server.asgi(**app_options)
            self._stack = self._stack.pop_all()
        shown = f"[{host}]" if ":" in host else host
        line = f"mcpgen: serving {server.name} at http://{shown}:{port}{options.get('path', '/mcp')}"
        if options.get("user") is None and options.get("auth") is None and not all(map(_is_loopback, self._sockets)):
            line += f"\n{_OPEN_TO_ALL}"
        outer = self._app if wrap is None else wrap(self._app)
        self._uvicorn = _UvicornServer(_config(outer, self._app.limits.write_seconds), self._app, line)

    @property
    def grace_seconds(self) -> float:
        """The time that running handlers have to finish."""
        return self._app.grace_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def serve_until(self, shutdown: GracefulShutdown) -> None:
        """Serve until a signal requests the shutdown."""
        async with self._app.running(), open_group() as group:
            group.start_soon(self._uvicorn.exit_on_signal, shutdown)
            # It holds header lines, and most of them are used once: ids of sessions, and dates.
            group.start_soon(return_free_memory, remembered_line.cache_clear)
            await self._uvicorn.serve(sockets=self._sockets)

    async def serve_until_cancelled(self) -> None:
        """Serve until this is cancelled, and then end the streams and connections."""
        async with self._app.running():
            # A task of its own: a cancelled uvicorn ends neither its streams nor its connections.
            serving = asyncio.ensure_future(self._uvicorn.serve(sockets=self._sockets))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                self._uvicorn.should_exit = True
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([serving])
                raise


def _config(app: Any, write_seconds: float) -> uvicorn.Config:  # noqa: ANN401 (uvicorn has types of its own for each kind of scope)
    heads = Quota(MAX_HEADS_BYTES, MAX_HEADS_BYTES)  # each has many bytes, so that their number needs no bound
    repeated = Quota(MAX_REPEATED_HEADS_BYTES, MAX_REPEATED_HEADS_BYTES)
    make = partial(
        RepeatingProtocol,
        write_seconds=write_seconds,
        heads=heads,
        repeated=repeated,
        requests=SharedTask(),
        reads=ReadTurns(),
    )
    traceback_logger("uvicorn.error")  # it logs exceptions of the application
    return uvicorn.Config(
        app,
        http=make,  # type: ignore[arg-type] # uvicorn only calls it
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application does not use the client's address
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_CANCEL_SECONDS,
    )


class _UvicornServer(uvicorn.Server):
    """uvicorn's server; it prints its URL, and ends the streams of the application before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: Application, line: str) -> None:
        super().__init__(config)
        self._app = app
        self._line = line
        self._listeners: list[Listener] = []

    async def exit_on_signal(self, shutdown: GracefulShutdown) -> None:
        await shutdown.wait_requested()
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether to exit; uvicorn asks ten times in a second."""
        # Without its lifespan, the server would only answer with errors.
        return self._state.has_failed or await super().on_tick(counter)

    @property
    def _state(self) -> AppState:
        return self._app._state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # no business of users

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # `GracefulShutdown` handles them

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if sys.platform == "win32":  # its event loop accepts all connections that wait, but cannot watch a socket
            await super().startup(sockets)
        else:
            await super().startup([])
            quota = connection_quota()
            for each in sockets or []:
                self._listeners.append(Listener(each, self.config.backlog, quota, self._make_protocol))
        # For the person who started the command; in one piece, because other workers may write theirs.
        print(f"{self._line}\n", end="", file=sys.stderr, flush=True)  # noqa: T201

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self._listeners:  # a balancer, or another process with this socket, takes what is new
            each.close()
        if self._listeners:
            for each_socket in sockets or []:
                each_socket.close()
        for connection in list(self.server_state.connections):  # idle ones, and others after their response
            connection.shutdown()
        await self._app.shutdown()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._disconnect_all)
        await super().shutdown(sockets)

    def _disconnect_all(self) -> None:
        for each in list(self.server_state.connections):
            each.transport.abort()

    def _make_protocol(self) -> RepeatingProtocol:
        make: Any = self.config.http_protocol_class
        state = self._state
        made: RepeatingProtocol = make(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            bodies=state.open_quota,
            unread=state.unread,
        )
        return made


def free_address(address: str) -> str:
    """Return *address* with the number of a port that is free now, in place of port 0.

    Raises:
        UsageError: The address is not valid, or cannot be used.
    """
    host, port = split_address(address)
    bound = bind(host, port)
    number = bound[0].getsockname()[1]
    for each in bound:
        each.close()
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
