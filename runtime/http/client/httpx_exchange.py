"""HTTP exchanges through httpx: with the client that a program passes, or with one of ours."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies

import anyio
import httpx
from anyio.lowlevel import checkpoint

from mcpgen import __version__
from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.http.client.connection_pool import ConnectionPool, NoCookies
from mcpgen.runtime.http.client.http_exchange import (
    CLOSE_SECONDS,
    ConnectionBroke,
    credentials_failed,
    system_message,
    trusted_certificates,
)
from mcpgen.runtime.http.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_exchange import HeaderLines
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["HttpxExchange", "HttpxResponse", "open_client", "urls_hidden"]

_UNREACHABLE: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)

# Those of one turn of the event loop. httpx does not wait between the chunks of one read, which can be 10,000.
_MAX_CHUNKS: Final = 256

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
def urls_hidden() -> Generator[None]:
    """Hide the query and the credentials of the URLs that httpx logs in this block."""
    token = _hides_urls.set(True)
    try:
        yield
    finally:
        _hides_urls.reset(token)


@asynccontextmanager
async def open_client(limits: ClientLimits) -> AsyncGenerator[httpx.AsyncClient]:
    """Open an httpx client that uses the proxies and certificates of the environment.

    Raises:
        UsageError: One of these proxies cannot be used.
    """
    headers = {"User-Agent": f"mcpgen/{__version__}"}
    timeout = httpx.Timeout(limits.open_seconds, read=None, pool=None)
    trust = trusted_certificates()
    if getproxies():  # as httpx reads them; httpx decides which hosts they are for
        unbounded = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        try:
            client = httpx.AsyncClient(
                headers=headers, timeout=timeout, cookies=NoCookies(), verify=trust, limits=unbounded
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:  # ImportError: SOCKS needs another package
            raise UsageError(
                f"a proxy of the environment (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY) cannot be used: {error}"
            ) from None
    else:
        pool = ConnectionPool(trust, limits.max_connections)
        client = httpx.AsyncClient(headers=headers, timeout=timeout, cookies=NoCookies(), transport=pool)
    try:
        yield client
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await client.aclose()


class HttpxExchange:
    """Makes the requests to one server with httpx; an `HttpExchange`.

    Args:
        client: The httpx client, which is not closed.
        address: The URL of the server.
        headers: Headers of each request.
        auth: Credentials; None for those of the client, or else of the URL.
    """

    def __init__(
        self, client: httpx.AsyncClient, address: Address, headers: HeaderLines, auth: httpx.Auth | None
    ) -> None:
        self.library: str = "httpx"
        self._client = client
        self._headers = headers
        if auth is None and client.auth is None and address.credentials is not None:
            auth = httpx.BasicAuth(*address.credentials)
        self._auth = httpx.USE_CLIENT_DEFAULT if auth is None else auth
        timeout = client.timeout
        # No limit on reading: calls have limits of their own, and a stream may be silent for hours.
        self._timeout = httpx.Timeout(connect=timeout.connect, read=None, write=timeout.write, pool=timeout.pool)

    async def send(self, verb: str, address: Address, headers: HeaderLines, body: bytes | None) -> HttpxResponse:
        """Make a request; see `HttpExchange.send`."""
        try:
            lines = [(name.encode("ascii"), value.encode("utf-8")) for name, value in (*self._headers, *headers)]
            request = self._client.build_request(verb, address.url, headers=lines, content=body, timeout=self._timeout)
            # httpx would follow redirects to other origins, too.
            with urls_hidden():
                response = await self._client.send(request, auth=self._auth, stream=True, follow_redirects=False)
        except _UNREACHABLE as error:
            raise ServerUnreachable(url=address.shown, reason=system_message(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ConnectionBroke(address.shown, system_message(error)) from error
        except McpgenError:
            raise
        except Exception as error:  # the boundary: a user's `httpx.Auth`
            raise credentials_failed(address, error) from error
        return HttpxResponse(response, address.shown)

    async def close(self) -> None:
        """Do nothing: `open_client` closes our client, and the program closes its own."""


class HttpxResponse:
    """A response of httpx; an `HttpResponse`."""

    def __init__(self, response: httpx.Response, shown: str) -> None:
        self.status: int = response.status_code
        self.headers: httpx.Headers = response.headers
        self._response = response
        self._shown = shown

    @property
    def whole_body(self) -> bytes | None:
        """The body, if an `httpx.Auth` or a mock has read it."""
        return self._response.content if self._response.is_stream_consumed else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body; see `HttpResponse.chunks`."""
        response = self._response
        try:
            raw = response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()
            number = 0
            async for chunk in raw:
                yield chunk
                number += 1
                if number % _MAX_CHUNKS == 0:
                    await checkpoint()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ConnectionBroke(self._shown, system_message(error)) from error

    async def close(self) -> None:
        """Close the response, or keep its connection for another request."""
        try:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._response.aclose()
        except httpx.HTTPError as error:
            raise ConnectionBroke(self._shown, system_message(error)) from error
