"""HTTP requests of one client to one server: common headers, credentials, redirects, and errors of mcpgen.

Redirects with 307 and 308 keep the method and the body. They are followed within the origin, and remembered as long as
the connection lasts: servers redirect /mcp to /mcp/. To another origin, neither messages nor credentials are sent.

A response is read while its block is open. Other modules interpret it.
"""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Final, cast
from urllib.request import getproxies

import anyio
import httpx

from mcpgen import __version__
from mcpgen.runtime.errors import McpgenError, RequestLost
from mcpgen.runtime.http.client.connection_pool import ConnectionPool
from mcpgen.runtime.http.client.error_responses import KEEPS_REQUEST, MAX_REDIRECTS, redirect_target
from mcpgen.runtime.http.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["HttpRequests", "open_client"]

# Closing a connection takes no time, unless TLS must send its last bytes to a peer that does not read.
_CLOSE_SECONDS: Final = 1.0

# The errors of OpenSSL, older and newer versions, if the answer is not TLS.
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})

_UNREACHABLE: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


_hides_urls: Final[ContextVar[bool]] = ContextVar("mcpgen.hides_urls", default=False)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Remove the query and the credentials from the URLs that httpx logs for our requests."""
    if _hides_urls.get() and isinstance(record.args, tuple):
        record.args = tuple(
            each.copy_with(query=None, userinfo=b"") if isinstance(each, httpx.URL) else each for each in record.args
        )
    return True


logging.getLogger("httpx").addFilter(_hide_secrets)


@contextmanager
def _urls_hidden() -> Generator[None]:
    token = _hides_urls.set(True)
    try:
        yield
    finally:
        _hides_urls.reset(token)


@asynccontextmanager
async def open_client(limits: ClientLimits) -> AsyncGenerator[httpx.AsyncClient]:
    """Open an httpx client that uses the proxies and certificates of the environment."""
    headers = {"User-Agent": f"mcpgen/{__version__}"}
    timeout = httpx.Timeout(limits.open_seconds, read=None, pool=None)
    if getproxies():  # as httpx reads them; httpx decides which hosts they are for
        unbounded = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        client = httpx.AsyncClient(headers=headers, timeout=timeout, verify=_trust(), limits=unbounded)
    else:
        pool = ConnectionPool(_trust(), limits.max_connections)
        client = httpx.AsyncClient(headers=headers, timeout=timeout, transport=pool)
    try:
        yield client
    finally:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await client.aclose()


@cache
def _trust() -> ssl.SSLContext:
    """Return the context that verifies certificates, loaded once: this takes longer than the rest of connecting."""
    return httpx.create_ssl_context()


class HttpRequests:
    """Makes requests to one server.

    Attributes:
        address: The server's URL.

    Args:
        client: The httpx client.
        address: The server's URL.
        headers: Headers of each request.
        auth: Credentials; None for those of the client.
    """

    def __init__(
        self, client: httpx.AsyncClient, address: Address, headers: Mapping[str, str], auth: httpx.Auth | None
    ) -> None:
        self.address: Address = address
        self._client = client
        self._headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        self._moved: dict[str, Address] = {}  # where redirects led, by URL
        if auth is None and client.auth is None and address.credentials is not None:
            auth = httpx.BasicAuth(*address.credentials)
        self._auth = httpx.USE_CLIENT_DEFAULT if auth is None else auth
        timeout = client.timeout
        # No limit on reading: calls have limits of their own, and a stream may be silent for hours.
        self._timeout = httpx.Timeout(connect=timeout.connect, read=None, write=timeout.write, pool=timeout.pool)

    @asynccontextmanager
    async def open(
        self,
        verb: str,
        accept: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        to: Address | None = None,
    ) -> AsyncGenerator[httpx.Response]:
        """Make a request, and yield the response when its headers have arrived; read the body within the block.

        Args:
            verb: The HTTP method.
            accept: The value of ``Accept``.
            headers: Headers of this request; text outside ASCII is sent as UTF-8.
            body: A JSON document, if any.
            to: Another URL than the server's; of the same origin, since it gets the credentials.

        Raises:
            ServerUnreachable: No connection could be made.
            RequestLost: The connection broke, before or within the block.
        """
        asked = self.address if to is None else to
        address = self._moved.get(asked.url, asked)
        lines = [*self._headers, (b"accept", accept.encode("ascii")), (b"accept-encoding", b"identity")]
        if body is not None:
            lines.append((b"content-type", b"application/json"))
        lines += [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers.items()]
        try:
            response, address = await self._follow(verb, address, lines, body)
            if address.url != asked.url:
                self._moved[asked.url] = address
            try:
                yield response
            finally:
                await _close(response)
        except _UNREACHABLE as error:
            raise ServerUnreachable(url=address.shown, reason=_reason(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise RequestLost(f"the connection to {address.shown} broke: {_reason(error)}") from error

    async def _follow(
        self, verb: str, address: Address, lines: list[tuple[bytes, bytes]], body: bytes | None
    ) -> tuple[httpx.Response, Address]:
        """Make a request, follow redirects that keep it as it is, and return the response and its URL."""
        for _ in range(MAX_REDIRECTS):
            request = self._client.build_request(verb, address.url, headers=lines, content=body, timeout=self._timeout)
            response = await self._send(request)
            target = redirect_target(response, address)
            if response.status_code not in KEEPS_REQUEST or target is None or target.origin != address.origin:
                return response, address
            await _close(response)
            address = target
        request = self._client.build_request(verb, address.url, headers=lines, content=body, timeout=self._timeout)
        return await self._send(request), address

    async def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            # httpx would follow redirects to other origins, too.
            with _urls_hidden():
                return await self._client.send(request, auth=self._auth, stream=True, follow_redirects=False)
        except (httpx.HTTPError, McpgenError):
            raise
        except Exception as error:  # the boundary: a user's `httpx.Auth`
            lost = RequestLost(f"the request to {self.address.shown} could not be made: {error!r}")
            lost.is_general = True  # any other request needs the same credentials
            raise lost from error


async def _close(response: httpx.Response) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        await response.aclose()


def _reason(error: BaseException) -> str:
    """Return the system's message for *error*, which may be in a distant cause."""
    found, cause = str(error) or type(error).__name__, error.__cause__ or error.__context__
    for _ in range(10):  # contexts may form circles
        if cause is None:
            break
        if isinstance(cause, BaseExceptionGroup):
            cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
        if isinstance(cause, ConnectionError) and cause.errno is not None:
            found = os.strerror(cause.errno)  # event loops replace the message of the system
        elif isinstance(cause, OSError) and cause.strerror:
            found = cause.strerror
        if isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS:
            return f"{found}; the server may use http instead of https"
        cause = cause.__cause__ or cause.__context__
    return found
