"""HTTP exchanges whose requests carry access tokens, and are sent again with others if the server refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.auth.challenges import token_challenge
from mcpgen.runtime.http.client.auth.attempts import Attempts

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.auth.access_tokens import AccessTokens
    from mcpgen.runtime.http.client.http_exchange import HeaderLines, HttpExchange, HttpResponse

__all__ = ["AuthorizedExchange"]

_REFUSALS: Final = frozenset({401, 403})


class AuthorizedExchange:
    """Makes the requests to one server; an `HttpExchange` over another one.

    The server has refused the request by its head, so it has not handled it, and sending it again does no harm.

    Args:
        inner: Makes the requests.
        access_tokens: The tokens.
    """

    def __init__(self, inner: HttpExchange, access_tokens: AccessTokens) -> None:
        self.library: str = inner.library
        self._inner = inner
        self._access_tokens = access_tokens

    async def send(self, verb: str, address: Address, headers: HeaderLines, body: bytes | None) -> HttpResponse:
        """Make a request; see `HttpExchange.send`.

        Raises:
            LoginNeeded: A person has to log in, but may not be asked.
            LoginFailed: There are no tokens that the server accepts.
        """
        access_tokens, attempts = self._access_tokens, Attempts()
        while True:
            tokens = await access_tokens.tokens(attempts)
            lines = [] if tokens is None else access_tokens.header_lines(tokens, verb, address.url)
            response = await self._inner.send(verb, address, [*headers, *lines], body)
            access_tokens.note_nonce(response.headers.get("dpop-nonce"))
            if response.status not in _REFUSALS:
                return response
            challenge = token_challenge(response.headers.get("www-authenticate", ""))
            try:
                reaction = access_tokens.reaction(response.status, challenge, tokens, attempts)
            except BaseException:
                await response.close()
                raise
            if reaction is None:
                return response
            await response.close()
            await reaction()

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()
