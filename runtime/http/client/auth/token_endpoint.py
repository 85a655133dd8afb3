"""Get tokens from a token endpoint, with the client's credentials and, if wanted, bound to a key.

Spec:
    RFC 6749, section 5; RFC 9449, sections 5 and 8.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from mcpgen.runtime.http.auth.assertions import client_assertion
from mcpgen.runtime.http.auth.grants import (
    InvalidReply,
    Tokens,
    client_authentication,
    decode_error,
    decode_tokens,
)
from mcpgen.runtime.http.auth.proofs import MAX_NONCE_CHARS, NONCE_ERROR
from mcpgen.runtime.http.auth.registration import BASIC
from mcpgen.runtime.http.auth.scopes import known_scopes
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.http.auth.grants import Reply, TokenError
    from mcpgen.runtime.http.auth.proofs import ProofKey
    from mcpgen.runtime.http.auth.registration import Registration
    from mcpgen.runtime.http.client.auth.auth_requests import AuthReply, AuthRequests

__all__ = ["INVALID_CLIENT", "NoTokenEndpoint", "TokenEndpoint", "TokenRefused"]


# Fields of token requests that no error may show, although the authorization server may repeat them in its own.
_SECRETS: Final = frozenset(
    {
        "assertion",
        "client_assertion",
        "client_secret",
        "code",
        "code_verifier",
        "refresh_token",
        "subject_token",
    }
)

INVALID_CLIENT: Final = "invalid_client"
"""The error for a client that the authorization server does not know, or whose secret is wrong."""

_UNKNOWN_CLIENT: Final = frozenset({INVALID_CLIENT, "unauthorized_client"})


class TokenRefused(Exception):  # noqa: N818 (the caller decides what follows)
    """The token endpoint has answered with an error.

    Attributes:
        error: The error.
    """

    def __init__(self, error: TokenError) -> None:
        self.error: TokenError = error
        super().__init__(error)


class NoTokenEndpoint(LoginFailed):
    """The URL answered with an error status, but with no error of OAuth: it may be no token endpoint.

    Attributes:
        status: The status of the answer.
    """

    def __init__(self, status: int) -> None:
        self.status: int = status
        super().__init__(
            f"the token endpoint answered {status} without an error of OAuth; tell the operator of the authorization "
            "server"
        )


class TokenEndpoint:
    """The token endpoint of one authorization server, for one client.

    Args:
        requests: Makes the requests.
        url: The URL of the endpoint.
        client: The client.
        key: The key to bind tokens to; None for bearer tokens.
        private_key: The key with which the client authenticates, as PEM; None for other methods.
        algorithm: The algorithm of that key.
    """

    def __init__(  # noqa: PLR0913 (what a request consists of)
        self,
        requests: AuthRequests,
        url: str,
        client: Registration,
        *,
        key: ProofKey | None = None,
        private_key: str | None = None,
        algorithm: str = "",
    ) -> None:
        self._requests = requests
        self._url = url
        self._client = client
        self._key = key
        self._private_key = private_key
        self._algorithm = algorithm
        self._sent: list[str] = []  # the secrets of the last request

    async def tokens(
        self, form: Mapping[str, str], *, resource: str | None, scopes: Sequence[str], revocation_endpoint: str | None
    ) -> Tokens:
        """Send *form*, and return the tokens.

        Args:
            form: The grant.
            resource: The resource of the tokens.
            scopes: The scopes that were requested; they are those of the tokens if the reply does not say.
            revocation_endpoint: Where the tokens are revoked, if anywhere.

        Raises:
            TokenRefused: The endpoint has answered with an error.
            LoginFailed: There is no valid answer.
        """
        now = time.time()
        reply = await self.reply(form)
        is_bound = reply.token_type.lower() == "dpop"
        if is_bound and self._key is None:
            raise LoginFailed(
                "the authorization server has bound the token to a key, although none was sent; pass dpop='on'"
            )
        granted = scopes if reply.scope is None else reply.scope.split()
        lifetime = reply.expires_in or 0  # no token has expired when it is issued
        return Tokens(
            access_token=reply.access_token,
            issuer=self._client.issuer,
            token_endpoint=self._url,
            client=self._client,
            resource=resource,
            scopes=known_scopes(scopes, granted),
            refresh_token=reply.refresh_token,
            expires_at=now + lifetime if lifetime > 0 else None,
            key=self._key.pem if self._key is not None and is_bound else None,
            revocation_endpoint=revocation_endpoint,
        )

    async def reply(self, form: Mapping[str, str]) -> Reply:
        """Send *form*, and return what the endpoint has issued; see `tokens`."""
        found = await self._answered(form)
        if _error_of(found) in _UNKNOWN_CLIENT and self._client.method == BASIC and "client_id" not in form:
            # RFC 6749, section 3.2.1, leaves it to the client to repeat its id in the form. The Python SDK, FastMCP and
            # other servers demand it even with HTTP Basic; Okta, Notion and others refuse it, so the first request
            # goes without.
            found = await self._answered({**form, "client_id": self._client.client_id})
        if not found.is_success:
            error = decode_error(found.body)
            if found.is_temporary:
                said = " without an error of OAuth" if error is None else f", {error.without(self._sent)}"
                raise LoginFailed(f"the token endpoint answered {found.status}{said}; try again later")
            if error is None:
                raise NoTokenEndpoint(found.status)
            raise TokenRefused(error.without(self._sent))
        try:
            return decode_tokens(found.body)
        except InvalidReply as invalid:
            raise LoginFailed(f"{invalid}; tell the operator of the authorization server") from None

    async def _answered(self, form: Mapping[str, str]) -> AuthReply:
        """Send *form*; once more if the endpoint demands a nonce."""
        found = await self._send(form, None)
        is_nonce = found.nonce is not None and 0 < len(found.nonce) <= MAX_NONCE_CHARS
        if self._key is not None and is_nonce and _error_of(found) == NONCE_ERROR:
            return await self._send(form, found.nonce)
        return found

    async def _send(self, form: Mapping[str, str], nonce: str | None) -> AuthReply:
        assertion, now = None, time.time()
        if self._private_key is not None:
            client = self._client
            assertion = client_assertion(
                client_id=client.client_id,
                audience=client.issuer,
                key=self._private_key,
                algorithm=self._algorithm,
                now=now,
            )
        headers, fields = client_authentication(self._client, assertion)
        self._sent = [value for name, value in {**form, **fields}.items() if name in _SECRETS]
        if self._client.secret is not None:
            self._sent += [self._client.secret, headers.get("authorization", "").partition(" ")[2]]
        self._sent += [encode(each) for each in self._sent for encode in (quote, quote_plus)]  # as they are in the form
        if self._key is not None:
            headers["dpop"] = self._key.proof("POST", self._url, now=now, nonce=nonce)
        return await self._requests.post_form(self._url, {**form, **fields}, headers)


def _error_of(reply: AuthReply) -> str:
    """Return the code of an error; empty if *reply* is none."""
    error = None if reply.is_success else decode_error(reply.body)
    return "" if error is None else error.error
