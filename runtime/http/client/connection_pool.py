"""A pool of connections for httpx, whose cost for a request does not grow with the number of connections.

Theory of operation. For each request, httpcore's own pool examines every connection, and every pair of waiting ones: a
hundred open streams make a call take milliseconds. And when it holds more connections than it should keep, it keeps
none. Here a request takes the connection that was used last, and returns it once all of the response was read. Each
return also examines the connection that was idle longest, so none stays open for long. The pool does not limit the
number of connections in use.

The head of an HTTP/1.1 request is written together with its body: a head alone would wake a server that cannot act on
it yet. A long body is written in parts, so that each part has the time limit of a write. A stream may be silent for
hours, so TCP keep-alive finds out whether the peer is still there.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import httpcore
import httpx

from mcpgen.runtime.http.client.http_exchange import CLOSE_SECONDS, IDLE_SECONDS, KEEP_ALIVE_OPTIONS, PART_BYTES

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence

__all__ = ["ConnectionPool", "NoCookies"]

# Of one read. httpcore does not wait between interim responses (100), and 64 KiB hold 4,000 of them, which take 50 ms.
_READ_BYTES: Final = 8 * 1024

_Origin: TypeAlias = tuple[bytes, bytes, int]


class NoCookies(CookieJar):
    """The cookie jar of an `httpx.AsyncClient` of ours: it keeps none.

    A response can set 5,000 cookies, which take 4 MB. httpx would keep them without a bound, and send all of them.
    """

    def extract_cookies(self, response: object, request: object) -> None:
        """Keep nothing."""


class ConnectionPool(httpx.AsyncBaseTransport):
    """The transport of an `httpx.AsyncClient`, without proxies.

    Args:
        ssl_context: Verifies certificates.
        max_idle: The largest number of idle connections to one origin.
        resolve: Returns the addresses of a host and a port to connect, in their order; None for all that it has.
    """

    def __init__(
        self,
        ssl_context: ssl.SSLContext,
        max_idle: int,
        resolve: Callable[[str, int], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        self._ssl_context = ssl_context
        self._max_idle = max_idle
        self._backend = _NetworkBackend(resolve)
        self._idle: dict[_Origin, deque[httpcore.AsyncHTTPConnection]] = {}
        self._open: set[httpcore.AsyncHTTPConnection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request, and return the response when its headers have arrived.

        Raises:
            httpx.TransportError: It failed.
        """
        if request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(
                f"the scheme {request.url.scheme!r} is not supported; use http or https", request=request
            )
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        core_request = httpcore.Request(
            method=request.method,
            url=url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated(request):
            connection = await self._connection(url.origin)
            try:
                response: Any = await connection.handle_async_request(core_request)
            except BaseException:
                await self._drop(connection)
                raise
        body = _ResponseStream(self, connection, response.stream, request, _key(url.origin))
        return httpx.Response(response.status, headers=response.headers, stream=body, extensions=response.extensions)

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        for each in list(self._open):
            await self._drop(each)

    async def _connection(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        idle = self._idle.get(_key(origin))
        while idle:
            found = idle.pop()
            if not found.has_expired() and found.is_idle():
                return found
            await self._drop(found)
        connection = httpcore.AsyncHTTPConnection(
            origin=origin,
            ssl_context=self._ssl_context,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=self._backend,
            socket_options=KEEP_ALIVE_OPTIONS,
        )
        self._open.add(connection)
        return connection

    async def put_back(self, origin: _Origin, connection: httpcore.AsyncHTTPConnection) -> None:
        """Keep *connection* for another request, or drop it if it cannot be used again."""
        if connection not in self._open or not connection.is_idle():
            await self._drop(connection)
            return
        idle = self._idle.setdefault(origin, deque())
        idle.append(connection)
        if len(idle) > self._max_idle or idle[0].has_expired():
            await self._drop(idle.popleft())

    async def _drop(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self._open.discard(connection)
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await connection.aclose()


class _ResponseStream(httpx.AsyncByteStream):
    """The body of a response, which returns its connection to the pool when it is closed."""

    def __init__(
        self,
        connections: ConnectionPool,
        connection: httpcore.AsyncHTTPConnection,
        stream: Any,  # noqa: ANN401 (httpcore declares a broader type)
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
    """Raise the errors of httpcore as those of httpx."""
    try:
        yield
    except Exception as error:  # the errors of httpcore have no common base class, but the names of those of httpx
        kind = getattr(httpx, type(error).__name__, None)
        if not type(error).__module__.startswith("httpcore") or not isinstance(kind, type):
            raise
        raise kind(str(error), request=request) from error


class _NetworkBackend(httpcore.AsyncNetworkBackend):
    """Open connections that write the head of a request together with its body."""

    def __init__(self, resolve: Callable[[str, int], Awaitable[Sequence[str]]] | None) -> None:
        self._resolve = resolve
        backend: Any = httpcore.AnyIOBackend  # httpcore types it as a stand-in for installations without anyio
        self._inner: httpcore.AsyncNetworkBackend = backend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (as httpcore calls it)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection to the first address that answers."""
        try:
            hosts = [host] if self._resolve is None else await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for number, each in enumerate(hosts, 1):
            try:
                return _CoalescingStream(
                    await self._inner.connect_tcp(each, port, timeout, local_address, socket_options)
                )
            except httpcore.ConnectError:
                if number == len(hosts):
                    raise
        raise httpcore.ConnectError("the host has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


class _CoalescingStream(httpcore.AsyncNetworkStream):
    """A connection that writes the head of a request together with its body."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._head = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (as httpcore says)
        return await self._inner.read(min(max_bytes, _READ_BYTES), timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (as httpcore says)
        # Another write always follows: httpcore ends each body with an empty one.
        if not self._head and buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
            return
        head, self._head = self._head, b""
        data = head + buffer if head else buffer
        for at in range(0, len(data), PART_BYTES):
            await self._inner.write(data[at : at + PART_BYTES], timeout)

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
