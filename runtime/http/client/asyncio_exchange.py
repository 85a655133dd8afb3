"""HTTP exchanges on connections of asyncio: HTTP/1.1 without proxies, for which nothing has to be configured.

Theory of operation. A request takes the connection that was used last, and returns it once all of the response has
arrived. Each return also looks at the connection that was idle longest, so none stays open for long. The pool does not
limit the number of connections in use; the channel does.

Nothing is sent twice. A server may close an idle connection at any time, so one that was idle is checked right before
it is used: if the server has closed it, the request goes out on another one. If the server closes it in the moment
after, the request fails. It may have been acted on, and MCP has no requests that are safe to repeat.

The head of a request is written together with its body: a head alone would wake a server that cannot act on it yet. A
long body is written in parts, so that each part has the time limit of a write. If a response arrives before the request
is written, the rest is not written, and the connection is not used again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64encode
from collections import deque
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import anyio

from mcpgen import __version__
from mcpgen.runtime.errors import McpgenError, RequestLost
from mcpgen.runtime.http.client.happy_eyeballs import open_socket
from mcpgen.runtime.http.client.http11_connection import Http11Connection
from mcpgen.runtime.http.client.http_exchange import (
    CLOSE_SECONDS,
    IDLE_SECONDS,
    PART_BYTES,
    ConnectionBroke,
    credentials_failed,
    system_message,
    trusted_certificates,
)
from mcpgen.runtime.http.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.bearer_auth import BearerToken
    from mcpgen.runtime.http.client.http11_connection import Http11Response
    from mcpgen.runtime.http.client.http_exchange import HeaderLines
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["AsyncioExchange"]

# A connection whose response was read less than this ago is used unchecked: the event loop has just polled it, and
# asking the system again costs a twentieth of a call.
_JUST_READ_SECONDS: Final = 0.0005

# If the event loop was blocked, a response can have arrived long before it was read, and the server has closed the
# connection meanwhile, as one that was idle.
_SLOW_SECONDS: Final = 1.0

# RFC 3986, section 2.2: what is not encoded in a path or a query, besides letters and digits.
_UNQUOTED: Final = "!#$%&'()*+,/:;=?@[]~"

# A server has one or two. A hostile one could redirect each request to another long URL.
_MAX_TARGETS: Final = 16

_LOG = logging.getLogger("mcpgen.client")

_clock = time.monotonic


class AsyncioExchange:
    """Makes the requests to one server; an `HttpExchange`.

    Args:
        address: The URL of the server. All requests go to its origin.
        limits: The limits of the client.
        headers: Headers of each request.
        token: The bearer token of each request; None if it has no credentials but those of the URL.
    """

    def __init__(self, address: Address, limits: ClientLimits, headers: HeaderLines, token: BearerToken | None) -> None:
        self.library: str = "asyncio"
        self._address = address
        self._limits = limits
        self._token = token
        lines = {"host": urlsplit(address.url).netloc, "user-agent": f"mcpgen/{__version__}", **dict(headers)}
        if token is not None:
            lines.pop("authorization", None)
        elif address.credentials is not None:
            lines["authorization"] = f"Basic {b64encode(':'.join(address.credentials).encode()).decode()}"
        self._common = _lines(lines.items())
        self._common_count = len(lines)
        self._targets: dict[str, str] = {}  # by URL
        self._idle: deque[Http11Connection] = deque()
        self._open: set[Http11Connection] = set()
        self._is_closed = False

    async def send(self, verb: str, address: Address, headers: HeaderLines, body: bytes | None) -> Http11Response:
        """Make a request; see `HttpExchange.send`."""
        head = self._head(verb, address, headers, body)
        if self._token is not None:
            head += await self._authorization(self._token)
        connection = self._take() or await self._connect()
        content = b"" if body is None else body
        response = connection.start(b"%b\r\n%b" % (head, content[:PART_BYTES]))
        try:
            if connection.is_paused or len(content) > PART_BYTES:
                await self._write_rest(connection, content[PART_BYTES:])
            await response.head()
        except BaseException:
            connection.abort()
            raise
        _LOG.debug("%s %s answered %d", verb, address.shown, response.status)
        return response

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            for each in self._open:
                each.close()
            for each in list(self._open):
                await each.lost.wait()
        for each in self._open:
            each.abort()

    # --- for a connection

    def put_back(self, connection: Http11Connection) -> None:
        """Keep *connection* for another request, and close one that was idle too long."""
        if self._is_closed:
            connection.close()
            return
        now = connection.idle_since = _clock()
        self._idle.append(connection)
        first = self._idle[0]
        if len(self._idle) > self._limits.max_connections or now - first.idle_since > IDLE_SECONDS:
            self._idle.popleft().close()

    def discard(self, connection: Http11Connection) -> None:
        """Forget *connection*, which is closed."""
        self._open.discard(connection)

    # --- connections

    def _take(self) -> Http11Connection | None:
        """Return an idle connection that is still open, and close those that cannot be used."""
        now = _clock()
        while self._idle:
            found = self._idle.pop()
            idle_seconds = now - found.idle_since
            is_checked = idle_seconds > _JUST_READ_SECONDS or found.idle_since - found.used_since > _SLOW_SECONDS
            if idle_seconds <= IDLE_SECONDS and found.is_usable(is_checked=is_checked):
                found.used_since = now
                return found
            found.close()
        return None

    async def _connect(self) -> Http11Connection:
        """Open a connection.

        Raises:
            ServerUnreachable: It cannot be opened.
        """
        scheme, host, port = self._address.origin
        loop, shown, seconds = asyncio.get_running_loop(), self._address.shown, self._limits.open_seconds
        tls: dict[str, Any] = {}
        if scheme == "https":
            tls = {"ssl": trusted_certificates(), "server_hostname": host, "ssl_shutdown_timeout": CLOSE_SECONDS}
        try:
            with anyio.fail_after(seconds):
                wire = await open_socket(host, port)
                # From here on, the event loop owns the socket, and closes it if this fails.
                _, connection = await loop.create_connection(lambda: Http11Connection(self, shown), sock=wire, **tls)
        except TimeoutError as error:
            reason = system_message(error) if error.errno else f"it took longer than open_seconds={seconds:g}"
            raise ServerUnreachable(url=shown, reason=reason) from error
        except (OSError, UnicodeError) as error:
            raise ServerUnreachable(url=shown, reason=system_message(error)) from error
        self._open.add(connection)
        connection.used_since = _clock()
        return connection

    # --- requests

    def _head(self, verb: str, address: Address, headers: HeaderLines, body: bytes | None) -> bytes:
        """Return the head of a request without its last blank line.

        Raises:
            RequestLost: A header would end before its end.
        """
        target = self._targets.get(address.url)
        if target is None:
            parts = urlsplit(address.url)
            written = f"{parts.path}?{parts.query}" if parts.query else parts.path
            if len(self._targets) >= _MAX_TARGETS:
                self._targets.clear()
            target = self._targets[address.url] = quote(written, safe=_UNQUOTED)
        length = "" if body is None else f"content-length: {len(body)}\r\n"
        head = f"{verb} {target} HTTP/1.1\r\n{self._common}{length}{_lines(headers)}".encode()
        expected = 1 + self._common_count + len(headers) + (body is not None)
        if head.count(b"\n") != expected or head.count(b"\r") != expected or b"\0" in head:
            raise RequestLost(f"the request to {address.shown} was not sent: a header has a line break or a NUL")
        return head

    async def _authorization(self, token: BearerToken) -> bytes:
        try:
            value = await token.header()
        except McpgenError:
            raise
        except Exception as error:  # the boundary: a user's function
            raise credentials_failed(self._address, error) from error
        return b"authorization: %b\r\n" % value.encode("ascii")

    async def _write_rest(self, connection: Http11Connection, rest: bytes) -> None:
        """Write *rest* in parts. Stop if the response begins; then the connection is not used again."""
        connection.is_written = False
        for at in range(0, len(rest) + PART_BYTES, PART_BYTES):
            try:
                with anyio.fail_after(self._limits.open_seconds):
                    await connection.drain()
            except TimeoutError as error:
                reason = f"the server reads too slowly (open_seconds={self._limits.open_seconds:g})"
                raise ConnectionBroke(self._address.shown, reason) from error
            if not connection.awaits_request:
                return
            connection.write(rest[at : at + PART_BYTES])
        connection.is_written = True


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers])
