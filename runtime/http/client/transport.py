"""The HTTP transport of a client: a server at a URL."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.bearer_auth import bearer_token
from mcpgen.runtime.http.client.http_exchange import import_httpx
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.transports.spawner import open_group, open_spawner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable

    import httpx

    from mcpgen.runtime.http.client.auth.access_tokens import AccessTokens
    from mcpgen.runtime.http.client.auth.credentials import Credentials
    from mcpgen.runtime.http.client.channel import HttpChannel
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel

__all__ = ["Http"]

# Closing a client should not wait long for its server to end the session.
_END_SESSION_SECONDS: Final = 1.0

# A cancelled request closes its response, which takes up to a second if the peer does not read.
_REQUEST_CLEANUP_SECONDS: Final = 2.0

# The revisions whose servers need no protected resource metadata.
_LEGACY_LOGIN: Final = frozenset({"2024-11-05", "2025-03-26"})

# The key of the digests, so that their secrets cannot be found by trying.
_DIGEST_KEY: Final = os.urandom(32)

# Headers that describe the message or its encoding, which callers may not set.
_RESERVED: Final = frozenset(
    {
        *("accept", "accept-encoding", "content-length", "content-type", "last-event-id", "transfer-encoding"),
        *(http.METHOD, http.NAME, http.REVISION, http.SESSION),
    }
)
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")


class Http:
    """A transport to a server at a URL: Streamable HTTP of any revision, or HTTP+SSE. The client finds out which.

    Args:
        url: The URL, such as ``https://example.com/mcp``.
        headers: More headers for each request, such as one with an API key.
        auth: Credentials: `OAuth`, to let a person log in; `ClientCredentials` or `JwtAssertion`, for a program; the
            result of `bearer`, for a token; or any other `httpx.Auth`.
        client: The HTTP client that makes the requests, with its own proxies, certificates and timeouts. This transport
            does not close it. Its pool should allow one connection for each concurrent call and each open stream. By
            default, each connection to a server has an HTTP client of its own.

    Raises:
        UsageError: The URL or a header is invalid, a header is reserved, or httpx is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | Credentials | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        found = import_httpx()
        self._address = parse_address(url)
        self._headers = _checked_headers(headers)
        if auth is not None and "authorization" in self._headers:
            raise UsageError("`headers` has Authorization, which `auth` sets, too; pass only one of them")
        self._auth: httpx.Auth | None = None
        self._credentials: Credentials | None = None
        if auth is None or isinstance(auth, found.Auth):
            self._auth = cast("httpx.Auth | None", auth)
        else:
            self._credentials = _checked_credentials(auth)
        if client is not None and not isinstance(client, found.AsyncClient):
            raise UsageError(f"`client` must be an httpx.AsyncClient, not {type(client).__name__}")
        if client is not None and client.auth is not None and self._credentials is not None:
            raise UsageError("`client` has an `auth` of its own, which replaces the tokens of `auth`; pass only one")
        self._client: httpx.AsyncClient | None = client
        self._token_changes = 0

    def __repr__(self) -> str:
        return f"Http({self.description!r})"  # without headers and query, which may hold secrets

    @property
    def identity(self) -> Hashable:
        """A key that is the same for all transports to the same server.

        It is stored, so it is a hash: headers can contain secrets.
        """
        parts = (self._address.url, self._address.credentials, sorted(self._headers.items()))
        digest = blake2b(repr(parts).encode("utf-8", "surrogatepass"), key=_DIGEST_KEY).digest()
        if self._client is None:
            return digest
        return digest, weakref.ref(self._client)  # which may connect the same URL to another server

    @property
    def description(self) -> str:
        """The URL without credentials and query."""
        return self._address.shown

    @property
    def authorization_context(self) -> object:
        """The authorization context of the next request: unequal values may be different users.

        It changes with each access token, also when a token is refreshed. If each request can have other credentials
        (those of a function, of another `httpx.Auth`, or of a given HTTP client), each returned value is unequal to all
        others.

        Spec:
            2026-07-28, server/utilities/caching, "Cache Scope Field": a private result must not be used in another
            authorization context, such as with another access token.
        """
        token = None if self._auth is None else bearer_token(self._auth)
        is_known = self._client is None and (self._auth is None or (token is not None and token.is_fixed))
        return self._token_changes if is_known else object()

    def _count_token_change(self) -> None:
        self._token_changes += 1

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Open a channel; it connects when the first message is sent."""
        # These load httpx, and much of a client.
        from mcpgen.runtime.client.connection_task import offered_revisions  # noqa: PLC0415
        from mcpgen.runtime.http.client.channel import HttpChannel  # noqa: PLC0415
        from mcpgen.runtime.http.client.exchange_choice import open_exchange  # noqa: PLC0415
        from mcpgen.runtime.http.client.http_requests import HttpRequests  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            opening = open_exchange(self._address, limits, self._headers, self._auth, self._client)
            exchange = await stack.enter_async_context(opening)
            async with open_group() as group, open_spawner(_REQUEST_CLEANUP_SECONDS) as spawner:
                access_tokens: AccessTokens | None = None
                if self._credentials is not None:
                    from mcpgen.runtime.http.client.auth.access_tokens import AccessTokens  # noqa: PLC0415
                    from mcpgen.runtime.http.client.auth.authorized_exchange import AuthorizedExchange  # noqa: PLC0415

                    offered = offered_revisions.get()
                    access_tokens = AccessTokens(
                        self._credentials,
                        self._address,
                        group,
                        allows_legacy=not offered or not _LEGACY_LOGIN.isdisjoint(offered),
                    )
                    access_tokens.on_change = self._count_token_change
                    exchange = AuthorizedExchange(exchange, access_tokens)
                channel = HttpChannel(HttpRequests(exchange, self._address), limits, group, spawner, self.identity)
                if access_tokens is not None:
                    access_tokens.pausing = channel.paused
                stack.push_async_callback(_end_session, channel)  # called when the tasks of the group have ended
                try:
                    yield channel
                finally:
                    if access_tokens is not None:
                        access_tokens.close()
                    channel.close()


async def _end_session(channel: HttpChannel) -> None:
    with anyio.move_on_after(_END_SESSION_SECONDS, shield=True):
        await channel.end_session()


def _checked_credentials(auth: Any) -> Credentials:  # noqa: ANN401 (any object that a caller passes)
    # Most clients need none of these.
    from mcpgen.runtime.http.client.auth.credentials import ClientCredentials, JwtAssertion, OAuth  # noqa: PLC0415

    if not isinstance(auth, OAuth | ClientCredentials | JwtAssertion):
        kind = type(auth).__name__
        raise UsageError(
            "`auth` must be OAuth(), ClientCredentials(…) or JwtAssertion(…), or an httpx.Auth such as bearer(token), "
            f"not {kind}"
        )
    return auth


def _checked_headers(headers: Any) -> dict[str, str]:  # noqa: ANN401 (any object that a caller passes)
    """Return *headers* by name in lower case.

    Raises:
        UsageError: One is invalid or reserved. The message shows no value and no invalid name, which may be secret.
    """
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise UsageError(f"`headers` must be a mapping of str to str, not {type(headers).__name__}")
    found: dict[str, str] = {}
    for number, (name, value) in enumerate(cast("Mapping[object, object]", headers).items(), 1):
        if not isinstance(name, str) or not http.TOKEN.fullmatch(name):
            raise UsageError(
                f"`headers` has an invalid name in item {number}; write only the name, without spaces, colon and value"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise UsageError(
                f"`headers` has an invalid value for {name}; a value must be a string of visible ASCII characters, "
                "spaces and tabs"
            )
        if name.lower() in _RESERVED or name.lower().startswith(http.PARAM_PREFIX):
            raise UsageError(f"`headers` must not have {name}, which the client sets itself")
        found[name.lower()] = value
    return found
