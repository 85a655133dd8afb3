"""Requests and responses of HTTP, as one conversation makes them: with its headers and credentials, and plain errors.

A response is read while its block is open. It is not told here what it means.
"""

from __future__ import annotations

import os
import ssl
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, cast
from urllib.request import getproxies

import anyio
import httpx

from mcpgen import __version__
from mcpgen.runtime.errors import McpgenError, RequestLost
from mcpgen.runtime.http.client.connection_pool import ConnectionPool
from mcpgen.runtime.http.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["HttpRequests", "new_client"]

# To close a connection takes no time; only what has to be said before, to a peer that does not listen, could.
_CLOSE_SECONDS: Final = 1.0

# What OpenSSL says, older and newer, of an answer that is none of TLS.
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})

_UNREACHABLE: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


def new_client(limits: ClientLimits) -> httpx.AsyncClient:
    """Return a client of our own; it heeds the environment's proxies and certificates, as httpx does."""
    headers = {"User-Agent": f"mcpgen/{__version__}"}
    timeout = httpx.Timeout(limits.open_seconds, read=None, pool=None)
    if getproxies():  # as httpx finds them; which of them are for whom, it knows
        unbounded = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        return httpx.AsyncClient(headers=headers, timeout=timeout, verify=_trust(), limits=unbounded)
    return httpx.AsyncClient(
        headers=headers, timeout=timeout, transport=ConnectionPool(_trust(), limits.max_connections)
    )


@cache
def _trust() -> ssl.SSLContext:
    """Return what certificates are checked against; to load it takes longer than all else that connecting needs."""
    return httpx.create_ssl_context()


class HttpRequests:
    """Makes requests to one server.

    Attributes:
        address: The server's URL.

    Args:
        client: What makes them.
        address: The server's URL.
        headers: What all of them say.
        auth: Who we are; None for what the client says.
    """

    def __init__(
        self, client: httpx.AsyncClient, address: Address, headers: Mapping[str, str], auth: httpx.Auth | None
    ) -> None:
        self.address: Address = address
        self._client = client
        self._headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        self._auth = httpx.USE_CLIENT_DEFAULT if auth is None else auth
        own = client.timeout
        # Nobody knows how long an answer takes to come, or a stream is silent: calls have limits of their own.
        self._timeout = httpx.Timeout(connect=own.connect, read=None, write=own.write, pool=own.pool)

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
        """Make a request, and return the response when its headers are there; its body is read within the block.

        Args:
            verb: The method of HTTP.
            accept: What the response may be.
            headers: What this one says beside what all say; text that is no ASCII is sent as UTF-8.
            body: JSON, if any.
            to: Where it goes, if not to the server's URL; of the same origin, since it has our credentials.

        Raises:
            ServerUnreachable: No connection could be made.
            RequestLost: It broke, before or within the block.
        """
        address = self.address if to is None else to
        said = [*self._headers, (b"accept", accept.encode("ascii")), (b"accept-encoding", b"identity")]
        if body is not None:
            said.append((b"content-type", b"application/json"))
        said += [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers.items()]
        try:
            request = self._client.build_request(verb, address.url, headers=said, content=body, timeout=self._timeout)
            response = await self._sent(request)
            try:
                yield response
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await response.aclose()
        except _UNREACHABLE as error:
            raise ServerUnreachable(url=address.shown, reason=_reason(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise RequestLost(f"the connection to {address.shown} broke: {_reason(error)}") from error

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            # No credentials go where a server sends them, and no body is sent twice.
            return await self._client.send(request, auth=self._auth, stream=True, follow_redirects=False)
        except (httpx.HTTPError, McpgenError):
            raise
        except Exception as error:  # the boundary: of whoever gives us credentials
            lost = RequestLost(f"the request to {self.address.shown} could not be made: {error!r}")
            lost.is_general = True  # to ask in another way would need the same credentials
            raise lost from error


def _reason(error: BaseException) -> str:
    """Return what the system says of *error*, which may stand far behind it."""
    found, cause = str(error) or type(error).__name__, error.__cause__ or error.__context__
    for _ in range(10):  # causes do not go in circles, but contexts may
        if cause is None:
            break
        if isinstance(cause, BaseExceptionGroup):
            cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
        if isinstance(cause, ConnectionError) and cause.errno is not None:
            found = os.strerror(cause.errno)  # event loops have their own sentences for these
        elif isinstance(cause, OSError) and cause.strerror:
            found = cause.strerror
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return f"{found}; it may be http, not https"
        cause = cause.__cause__ or cause.__context__
    return found
