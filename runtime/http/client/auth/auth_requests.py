"""HTTP requests of a login: to metadata, registration and token endpoints. They are bounded in size and time.

Redirects are not followed: the target could be another authorization server, or a host of a private network. The
requests have no credentials of the MCP server, and no cookies.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx
from anyio.lowlevel import checkpoint
from msgspec import Struct

from mcpgen import __version__
from mcpgen.runtime.http.client.auth.address_guard import RefusedHost, is_address
from mcpgen.runtime.http.client.connection_pool import ConnectionPool, NoCookies
from mcpgen.runtime.http.client.http_exchange import (
    CLOSE_SECONDS,
    is_lasting,
    system_message,
    trusted_certificates,
)
from mcpgen.runtime.http.client.httpx_exchange import urls_hidden
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from mcpgen.runtime.http.client.auth.address_guard import AddressGuard

__all__ = ["AuthReply", "AuthRequests"]

# A metadata document of a large provider has 5 KiB, a JWT with groups 10 KiB.
_MAX_BYTES: Final = 512 * 1024
_SECONDS: Final = 30.0

_TRY_AGAIN: Final = frozenset({408, 425, 429})

_HEADERS: Final = {
    "user-agent": f"mcpgen/{__version__}",
    "accept": "application/json",
    "accept-encoding": "identity",
}


class AuthReply(Struct, frozen=True):
    """A reply.

    Attributes:
        status: The HTTP status.
        body: The body.
        nonce: The nonce for the next proof of DPoP; None if there is none.
    """

    status: int
    body: bytes
    nonce: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether the request was granted."""
        return 200 <= self.status < 300  # noqa: PLR2004 (as HTTP counts)

    @property
    def is_temporary(self) -> bool:
        """Whether the same request can get another reply later: the server is overloaded, or has failed."""
        return self.status >= 500 or self.status in _TRY_AGAIN  # noqa: PLR2004 (as HTTP counts)


class AuthRequests:
    """Makes the requests of one login.

    Args:
        guard: Which hosts may be asked.
    """

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> AuthReply:
        """Return the document at *url*.

        Raises:
            LoginFailed: There is no reply, or it is too long, or the URL may not be requested.
        """
        return await self._send("GET", url, headers or {}, None)

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> AuthReply:
        """Send *form*, and return the reply; see `get`."""
        return await self._send("POST", url, headers, dict(form))

    async def post_json(self, url: str, document: bytes) -> AuthReply:
        """Send a JSON document, and return the reply; see `get`."""
        return await self._send("POST", url, {"content-type": "application/json"}, document)

    async def _send(
        self, verb: str, url: str, headers: Mapping[str, str], body: dict[str, str] | bytes | None
    ) -> AuthReply:
        self._guard.check_url(url, "a URL of the login")
        parts = urlsplit(url)
        host = parts.hostname or ""
        form, content = (body, None) if isinstance(body, dict) else (None, body)
        try:
            with anyio.fail_after(_SECONDS):
                proxy = _proxy(url)
                if proxy is not None and is_address(host):  # else the address is checked where it is connected
                    await self._guard.addresses(host.rstrip("."), 0)
                async with self._client(proxy) as client:
                    request = client.build_request(
                        verb, url, headers={**_HEADERS, **headers}, data=form, content=content
                    )
                    with urls_hidden():  # that of the metadata has the query of the server's URL
                        response = await client.send(request, stream=True)
                    try:
                        return AuthReply(
                            response.status_code, await _read(response), response.headers.get("dpop-nonce")
                        )
                    finally:
                        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                            await response.aclose()
        except TimeoutError:
            raise LoginFailed(f"{parts.netloc} did not answer within {_SECONDS:g} seconds; try again later") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            reason = system_message(error).rstrip(".")
            hint = "; tell its operator" if is_lasting(error) else "; try again later"
            hint = "" if reason == RefusedHost.reason else hint
            raise LoginFailed(f"the request to {parts.netloc} failed: {reason}{hint}") from error

    @asynccontextmanager
    async def _client(self, proxy: str | None) -> AsyncGenerator[httpx.AsyncClient]:
        trust, cookies = trusted_certificates(), NoCookies()
        if proxy is None:
            pool = ConnectionPool(trust, 1, resolve=self._guard.addresses)
            client = httpx.AsyncClient(transport=pool, timeout=_SECONDS, cookies=cookies)
        else:
            client = httpx.AsyncClient(verify=trust, timeout=_SECONDS, cookies=cookies, proxy=proxy, trust_env=False)
        try:
            yield client
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()


def _proxy(url: str) -> str | None:
    """Return the proxy of the environment for *url*; None if it is connected directly, so that we see its address."""
    parts, proxies = urlsplit(url), getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    return found if "://" in found else f"http://{found}"


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise LoginFailed(
                f"{response.url.netloc.decode()} sent more than {_MAX_BYTES // 1024} KiB; check the URL of the server"
            )
        await checkpoint()  # one read of the socket can have 10,000 chunks, of which each takes 70 µs
    return bytes(body)
