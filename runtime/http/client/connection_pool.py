"""Connections to servers, kept for the next request: as httpx does, but at a cost that does not grow with their number.

Theory of operation. The pool of httpcore looks at each connection with each request, and at each pair of those that
wait, so that a hundred open streams make a call take milliseconds; and it keeps none at all where there are more than
it should keep. Here a request takes the connection that was used last, and puts it back if all of its answer was read.
Whoever waited longest is looked at meanwhile, so that none waits for long. How many there are at once is not for this
place to say.

A request of HTTP/1.1 is written at once: the head by itself would wake a server that has nothing to do yet. A long one
is written in parts, so that a slow network has time for each. A stream may be silent for hours, so that the system is
asked to find out whether its peer is still there.
"""

from __future__ import annotations

import socket
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Generator, Iterable

__all__ = ["ConnectionPool"]

# Servers close connections that are idle for 5 seconds (uvicorn, Node.js); a request that crosses with that is lost.
_IDLE_SECONDS: Final = 4.0

# To close a connection takes no time; only what has to be said before, to a peer that does not listen, could.
_CLOSE_SECONDS: Final = 1.0

# What may be written within one of the times that `ClientLimits.open_seconds` allows.
_PART_BYTES: Final = 64 * 1024

# A peer that is gone without a word is noticed after two minutes; where the system has other names, when it likes.
_KEEP_ALIVE: Final = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
        if hasattr(socket, name)
    ),
]

_SCHEMES: Final = ("http", "https")

_Origin: TypeAlias = tuple[bytes, bytes, int]


class ConnectionPool(httpx.AsyncBaseTransport):
    """Makes the requests of an `httpx.AsyncClient`, without proxies.

    Args:
        trust: What certificates are checked against.
        max_idle: How many connections wait for the next request at most.
    """

    def __init__(self, trust: ssl.SSLContext, max_idle: int) -> None:
        self._trust = trust
        self._most = max_idle
        self._backend = _NetworkBackend()
        self._idle: dict[_Origin, deque[httpcore.AsyncHTTPConnection]] = {}
        self._open: set[httpcore.AsyncHTTPConnection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request, and return the response when its headers are there.

        Raises:
            httpx.TransportError: That could not be done.
        """
        if request.url.scheme not in _SCHEMES:
            raise httpx.UnsupportedProtocol(f"there are no connections for {request.url.scheme!r}", request=request)
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        made = httpcore.Request(
            method=request.method,
            url=url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated(request):
            connection = await self._taken(url.origin)
            try:
                response: Any = await connection.handle_async_request(made)
            except BaseException:
                await self._drop(connection)
                raise
        body = _Body(self, connection, response.stream, request, _key(url.origin))
        return httpx.Response(response.status, headers=response.headers, stream=body, extensions=response.extensions)

    async def aclose(self) -> None:
        """Close all connections, whatever they are used for."""
        for each in list(self._open):
            await self._drop(each)

    async def _taken(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        idle = self._idle.get(_key(origin))
        while idle:
            found = idle.pop()
            if not found.has_expired() and found.is_idle():
                return found
            await self._drop(found)
        made = httpcore.AsyncHTTPConnection(
            origin=origin,
            ssl_context=self._trust,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._backend,
            socket_options=_KEEP_ALIVE,
        )
        self._open.add(made)
        return made

    async def put_back(self, origin: _Origin, connection: httpcore.AsyncHTTPConnection) -> None:
        """Keep *connection* for the next request, if it can have one."""
        if connection not in self._open or not connection.is_idle():
            await self._drop(connection)
            return
        idle = self._idle.setdefault(origin, deque())
        idle.append(connection)
        if len(idle) > self._most or idle[0].has_expired():
            await self._drop(idle.popleft())

    async def _drop(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self._open.discard(connection)
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await connection.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of a response; its connection is put back when it is closed."""

    def __init__(
        self,
        connections: ConnectionPool,
        connection: httpcore.AsyncHTTPConnection,
        stream: Any,  # noqa: ANN401 (httpcore's, whose type is broader than what it is)
        request: httpx.Request,
        origin: _Origin,
    ) -> None:
        self._connections = connections
        self._connection = connection
        self._stream = stream
        self._request = request
        self._origin = origin
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated(self._request):
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        """Close the connection, or keep it for another request."""
        if self._is_closed:
            return
        self._is_closed = True
        with _translated(self._request):
            await self._stream.aclose()
            await self._connections.put_back(self._origin, self._connection)


def _key(origin: httpcore.Origin) -> _Origin:
    return origin.scheme, origin.host, origin.port


@contextmanager
def _translated(request: httpx.Request) -> Generator[None]:
    """Raise the errors of httpcore under the names that httpx has for them."""
    try:
        yield
    except Exception as error:  # the errors of httpcore have no common base: their names decide
        kind = getattr(httpx, type(error).__name__, None)
        if not type(error).__module__.startswith("httpcore") or not isinstance(kind, type):
            raise
        raise kind(str(error), request=request) from error


class _NetworkBackend(httpcore.AsyncNetworkBackend):
    """Opens connections that write the head of a request together with its body."""

    def __init__(self) -> None:
        found: Any = httpcore.AnyIOBackend  # there is a stand-in where anyio is missing, which it is not
        self._inner: httpcore.AsyncNetworkBackend = found()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (as httpcore calls it)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a new connection."""
        return _CoalescingStream(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


class _CoalescingStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._held = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (as httpcore says)
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (as httpcore says)
        # There is always another write: httpcore ends each body with an empty one.
        if not self._held and buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n"):
            self._held = buffer
            return
        held, self._held = self._held, b""
        data = held + buffer if held else buffer
        for at in range(0, len(data), _PART_BYTES):
            await self._inner.write(data[at : at + _PART_BYTES], timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (as httpcore calls it)
    ) -> httpcore.AsyncNetworkStream:
        return _CoalescingStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 (as httpcore says)
        return self._inner.get_extra_info(info)
