"""The servers that turned out to be of HTTP+SSE: they are never again asked anything that such a server does not know.

Spec:
    2025-11-25, basic/transports, "Backwards Compatibility"; 2026-07-28, basic/versioning, "Backward Compatibility".

The library that speaks HTTP for us: it is loaded where a server has a URL, and comes with an extra.

How a client reaches a server at a URL.
"""

from __future__ import annotations

import os
import re
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable
    from types import ModuleType

    import httpx

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel

__all__ = ["Http", "LegacyServers", "import_httpx"]

_MOST: Final = 10_000


class LegacyServers:
    """Remembers servers, those that were met last."""

    def __init__(self) -> None:
        self._servers: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, server: Hashable) -> bool:
        return server in self._servers

    def add(self, server: Hashable) -> None:
        """Remember *server*."""
        self._servers[server] = None
        self._servers.move_to_end(server)
        if len(self._servers) > _MOST:
            self._servers.popitem(last=False)

    def discard(self, server: Hashable) -> None:
        """Forget *server*."""
        self._servers.pop(server, None)


def import_httpx() -> ModuleType:
    """Return httpx.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import httpx  # noqa: PLC0415 (most clients never need it, and it takes long to load)
    except ImportError:
        raise UsageError('a server at a URL is reached with httpx: pip install "mcpgen[http]"') from None
    return httpx


# For the good-bye, and for connections to be closed: whoever closes a client does not want to wait for its server.
_LEAVE_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 1.0

# So that nobody can find out by trying what a digest was made of.
_SECRET: Final = os.urandom(32)

# These say what a message is, or how it is carried, which is not for callers to say.
_OURS: Final = frozenset(
    {
        *("accept", "accept-encoding", "content-length", "content-type", "last-event-id", "transfer-encoding"),
        *(http.METHOD, http.NAME, http.REVISION, http.SESSION),
    }
)
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")

_KNOWN: Final = LegacyServers()


class Http:
    """A server at a URL: of Streamable HTTP in either era, or of HTTP+SSE; which, the client finds out.

    Args:
        url: Where it is: ``https://example.com/mcp``.
        headers: What every request says beside what MCP demands, such as an API key.
        auth: Who we are: `bearer`, or any other `httpx.Auth`, such as one that does what OAuth demands.
        client: What makes the requests, as its owner has configured it: proxies, certificates, timeouts. It is not
            closed. It should allow for more connections than there are calls at once, and streams beside them. By
            default, there is one for each conversation.

    Raises:
        UsageError: The URL is none of http or https; a header is none, or not for callers to set; httpx is missing.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        found = import_httpx()
        self._address = parse_address(url)
        self._headers = _checked(headers)
        if auth is not None and not isinstance(auth, found.Auth):
            raise UsageError(f"auth is an httpx.Auth, such as bearer(token), not of the type {type(auth).__name__}")
        if client is not None and not isinstance(client, found.AsyncClient):
            raise UsageError(f"client is an httpx.AsyncClient, not of the type {type(client).__name__}")
        self._auth = auth
        self._client = client

    def __repr__(self) -> str:
        return f"Http({self.description!r})"  # neither the headers nor all of the URL: there may be secrets in both

    @property
    def identity(self) -> Hashable:
        """Equal for what reaches the same server; a digest, since headers may hold secrets, and this is kept."""
        told = (self._address.url, sorted(self._headers.items()))
        digest = blake2b(repr(told).encode("utf-8", "surrogatepass"), key=_SECRET).digest()
        if self._client is None:
            return digest
        return digest, weakref.ref(self._client)  # which may lead the same URL elsewhere

    @property
    def description(self) -> str:
        """The URL, without credentials and query."""
        return self._address.shown

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Begin a conversation; nothing is connected before there is something to say."""
        # Only here: these load httpx.
        from mcpgen.runtime.http.client.channel import HttpChannel  # noqa: PLC0415
        from mcpgen.runtime.http.client.http_requests import HttpRequests, new_client  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            client = self._client
            if client is None:
                client = new_client(limits)
                stack.push_async_callback(_close, client)
            exchanges = HttpRequests(client, self._address, self._headers, self._auth)
            memory = _ServerRecord(self.identity)
            channel: HttpChannel | None = None
            try:
                async with open_group() as group:
                    channel = HttpChannel(exchanges, limits, group, memory)
                    try:
                        yield channel
                    finally:
                        channel.close()
            finally:
                if channel is not None:
                    with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
                        await channel.leave()


class _ServerRecord:
    """What is remembered of one server."""

    def __init__(self, identity: Hashable) -> None:
        self._identity = identity

    @property
    def is_of_before(self) -> bool:
        return self._identity in _KNOWN

    @is_of_before.setter
    def is_of_before(self, value: bool) -> None:
        if value:
            _KNOWN.add(self._identity)
        else:
            _KNOWN.discard(self._identity)


async def _close(client: httpx.AsyncClient) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
        await client.aclose()


def _checked(headers: Any) -> dict[str, str]:  # noqa: ANN401 (whatever a caller gives)
    """Return *headers*, by name in lower case.

    Raises:
        UsageError: They are no headers, or not the caller's. Values are not shown: they may be secret.
    """
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise UsageError("headers are a mapping of names to values, both strings")
    found: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", headers).items():
        if not isinstance(name, str) or not http.TOKEN.fullmatch(name):
            raise UsageError(f"{name!r} is no name of a header")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise UsageError(f"the header {name} has a value that no header can have; ASCII without line breaks can")
        if name.lower() in _OURS or name.lower().startswith(http.PARAM_PREFIX):
            raise UsageError(f"the header {name} says what the message does, and is not for callers to set")
        found[name.lower()] = value
    return found
