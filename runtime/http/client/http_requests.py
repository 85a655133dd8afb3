"""HTTP requests of one client to one server: the headers of each kind of request, and redirects.

Redirects with 307 and 308 keep the method and the body. They are followed within the origin, and remembered as long as
the connection lasts: servers redirect /mcp to /mcp/. To another origin, neither messages nor credentials are sent.

A response is read while its block is open. Other modules interpret it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.client.error_responses import KEEPS_REQUEST, MAX_REDIRECTS, redirect_target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_exchange import HeaderLines, HttpExchange, HttpResponse

__all__ = ["HttpRequests"]

_UNCOMPRESSED: Final = ("accept-encoding", "identity")
_JSON: Final = ("content-type", "application/json")


class HttpRequests:
    """Makes requests to one server.

    Attributes:
        address: The server's URL.
        library: The library that makes the requests.

    Args:
        exchange: Makes the HTTP exchanges.
        address: The server's URL.
    """

    def __init__(self, exchange: HttpExchange, address: Address) -> None:
        self.address: Address = address
        self.library: str = exchange.library
        self._exchange = exchange
        self._moved: dict[str, Address] = {}  # where redirects led, by URL

    def open(
        self,
        verb: str,
        accept: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        to: Address | None = None,
    ) -> OpenResponse:
        """Make a request when the returned block is entered; read the body of the response within the block.

        Args:
            verb: The HTTP method.
            accept: The value of ``Accept``.
            headers: Headers of this request; text outside ASCII is sent as UTF-8.
            body: A JSON document, if any.
            to: Another URL than the server's; of the same origin, since it gets the credentials.
        """
        lines = [("accept", accept), _UNCOMPRESSED, *headers.items()]
        if body is not None:
            lines.append(_JSON)
        return OpenResponse(self, verb, self.address if to is None else to, lines, body)

    async def send(self, verb: str, asked: Address, lines: HeaderLines, body: bytes | None) -> HttpResponse:
        """Make a request, follow redirects that keep it as it is, and return the response."""
        address = self._moved.get(asked.url, asked)
        for _ in range(MAX_REDIRECTS):
            response = await self._exchange.send(verb, address, lines, body)
            if response.status not in KEEPS_REQUEST:
                break
            target = redirect_target(response, address)
            if target is None or target.origin != address.origin:
                break
            await response.close()
            address = target
        else:
            response = await self._exchange.send(verb, address, lines, body)
        if address is not asked:
            self._moved[asked.url] = address
        return response


class OpenResponse:
    """The block in which the response to a request is read.

    Raises:
        ServerUnreachable: No connection could be made.
        RequestLost: The connection broke, before or within the block.
    """

    __slots__ = ("_request", "_requests", "_response")

    def __init__(
        self, requests: HttpRequests, verb: str, asked: Address, lines: HeaderLines, body: bytes | None
    ) -> None:
        self._requests = requests
        self._request = (verb, asked, lines, body)
        self._response: HttpResponse | None = None

    async def __aenter__(self) -> HttpResponse:
        """Make the request, and return the response when its head has arrived."""
        self._response = await self._requests.send(*self._request)
        return self._response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the response."""
        if self._response is not None:
            await self._response.close()
