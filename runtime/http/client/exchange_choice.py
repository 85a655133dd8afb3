"""The choice between the two implementations of `HttpExchange`.

=============================================================  =========
the program passes ``Http(client=…)``                          httpx
the program passes ``Http(auth=…)``, other than ``bearer(…)``  httpx
the environment names proxies                                  httpx
the program runs on trio                                       httpx
the host is an internationalized name                          httpx
all others                                                     asyncio
=============================================================  =========

It is made for each connection. `repr` of a client shows it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.request import getproxies

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.bearer_auth import bearer_token
from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import httpx

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_exchange import HttpExchange
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["open_exchange"]


@asynccontextmanager
async def open_exchange(
    address: Address,
    limits: ClientLimits,
    headers: Mapping[str, str],
    auth: httpx.Auth | None,
    client: httpx.AsyncClient | None,
) -> AsyncGenerator[HttpExchange]:
    """Open the exchange for a server, as the table above says, and close it at the end of the block.

    Args:
        address: The URL of the server. All requests go to its origin.
        limits: The limits of the client.
        headers: Headers of each request.
        auth: Credentials; None for those of *client*, or of the URL.
        client: The httpx client of the program, which is not closed.

    Raises:
        UsageError: The extra `http` is not installed.
    """
    lines = [*headers.items()]
    exchange: HttpExchange
    if client is None and _is_plain(address, auth):
        try:
            from mcpgen.runtime.http.client.asyncio_exchange import AsyncioExchange  # noqa: PLC0415 (loads httptools)
        except ModuleNotFoundError as error:  # the extra `auth` has httpx, but not httptools
            raise UsageError(
                f'a server at a URL needs {error.name}, which is not installed: pip install "mcpgen[http]"'
            ) from None
        exchange = AsyncioExchange(address, limits, lines, None if auth is None else bearer_token(auth))
    else:
        from mcpgen.runtime.http.client.httpx_exchange import HttpxExchange, open_client  # noqa: PLC0415 (loads httpx)

        if client is None:
            async with open_client(limits) as ours:
                yield HttpxExchange(ours, address, lines, auth)
            return
        exchange = HttpxExchange(client, address, lines, auth)
    try:
        yield exchange
    finally:
        await exchange.close()


def _is_plain(address: Address, auth: httpx.Auth | None) -> bool:
    """Return whether requests need nothing of httpx."""
    is_known = auth is None or bearer_token(auth) is not None
    has_proxies = bool(getproxies().keys() - {"no"})  # NO_PROXY alone names none
    return is_known and is_asyncio() and address.origin[1].isascii() and not has_proxies
