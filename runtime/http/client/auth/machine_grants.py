"""Get tokens without a person: with credentials of the client, or with a JWT of another issuer.

Spec:
    RFC 6749, section 4.4; RFC 7523; the extensions io.modelcontextprotocol/oauth-client-credentials and
    io.modelcontextprotocol/enterprise-managed-authorization.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.http.auth.grants import client_credentials_form, exchange_form, jwt_bearer_form
from mcpgen.runtime.http.auth.registration import Registration, secret_method
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard, is_loopback_url
from mcpgen.runtime.http.client.auth.credentials import ClientCredentials
from mcpgen.runtime.http.client.auth.server_discovery import NO_SERVER
from mcpgen.runtime.http.client.auth.token_endpoint import NoTokenEndpoint, TokenEndpoint, TokenRefused
from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.protocol.argument_checks import check_texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcpgen.runtime.http.auth.grants import Tokens
    from mcpgen.runtime.http.auth.proofs import ProofKey
    from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
    from mcpgen.runtime.http.client.auth.credentials import JwtAssertion
    from mcpgen.runtime.http.client.auth.server_discovery import Discovery

__all__ = ["IdJag", "machine_tokens"]

_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


class IdJag:
    """The identity assertion of an enterprise user, for `JwtAssertion`: the user logs in at the company, and not here.

    The identity provider of the company exchanges the user's ID token for a JWT that names one authorization server.

    Args:
        token_endpoint: The token endpoint of the identity provider.
        client_id: The id of the client at the identity provider.
        id_token: The ID token of the user, or a plain or async function that returns it.
        client_secret: The secret of that client, if it has one.
        scopes: The scopes to request; none for those that the provider chooses.
    """

    def __init__(
        self,
        token_endpoint: str,
        *,
        client_id: str,
        id_token: str | Callable[[], Awaitable[str] | str],
        client_secret: str | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        check_texts(token_endpoint=token_endpoint, client_id=client_id, client_secret=client_secret)
        if not isinstance(id_token, str) and not callable(id_token):
            raise UsageError(
                f"`id_token` must be a string or a function that returns it, not {type(id_token).__name__}"
            )
        if isinstance(scopes, str):
            raise UsageError(f"`scopes` must be a list, such as {scopes.split()!r}, not a str")
        if not token_endpoint or (not token_endpoint.startswith("https://") and not is_loopback_url(token_endpoint)):
            raise UsageError(
                "`token_endpoint` must be a URL of https, the one of the identity provider's token endpoint"
            )
        self._url = token_endpoint
        self._id_token = id_token
        method = "none" if client_secret is None else "client_secret_post"
        self._client = Registration(token_endpoint, client_id, client_secret, method)
        self._scopes = tuple(scopes)

    def __repr__(self) -> str:
        return f"IdJag({self._url.partition('?')[0]!r})"

    async def __call__(self, issuer: str, resource: str) -> str:
        """Return the assertion for the authorization server *issuer*, and for *resource*.

        Raises:
            LoginFailed: The identity provider refuses it.
        """
        from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests  # noqa: PLC0415 (it loads httpx)

        found = self._id_token() if callable(self._id_token) else self._id_token
        id_token = await found if inspect.isawaitable(found) else found
        requests = AuthRequests(AddressGuard(self._url, [self._url]))
        form = exchange_form(id_token=id_token, audience=issuer, resource=resource, scopes=self._scopes)
        try:
            reply = await TokenEndpoint(requests, self._url, self._client).reply(form)
        except TokenRefused as refused:
            raise LoginFailed(
                f"the identity provider answered {refused.error}; check `id_token` and the client"
            ) from None
        except NoTokenEndpoint as other:
            raise LoginFailed(
                f"the identity provider answered {other.status} without an error of OAuth; check `token_endpoint`"
            ) from None
        if reply.issued_token_type != _ID_JAG:
            raise LoginFailed(
                "the identity provider has issued another token than an identity assertion; check `token_endpoint`"
            )
        return reply.access_token


async def machine_tokens(
    credentials: ClientCredentials | JwtAssertion,
    found: Discovery,
    requests: AuthRequests,
    key: ProofKey | None,
    scopes: Sequence[str],
) -> Tokens:
    """Return tokens for the program.

    Args:
        credentials: The choices of the program.
        found: The authorization server.
        requests: Makes the requests.
        key: The key to bind tokens to; None for bearer tokens.
        scopes: The scopes to request.

    Raises:
        LoginFailed: They are refused. There is no second attempt: neither the credentials nor the JWT would be others.
    """
    metadata, resource = found.metadata, found.resource
    secret = credentials.client_secret
    client = Registration(metadata.issuer, credentials.client_id or "", secret, secret_method(metadata, secret))
    if isinstance(credentials, ClientCredentials):
        form = client_credentials_form(scopes=scopes, resource=resource)
        private_key, algorithm = credentials.private_key, credentials.algorithm
    else:
        assertion = await _assertion(credentials, metadata.issuer, resource or "")
        form = jwt_bearer_form(assertion=assertion, scopes=scopes, resource=resource)
        private_key, algorithm = None, ""
    endpoint = TokenEndpoint(
        requests, metadata.token_endpoint, client, key=key, private_key=private_key, algorithm=algorithm
    )
    try:
        return await endpoint.tokens(form, resource=resource, scopes=scopes, revocation_endpoint=None)
    except TokenRefused as refused:
        raise LoginFailed(f"the token endpoint answered {refused.error}; check the credentials") from None
    except NoTokenEndpoint:
        if found.is_guess:
            raise LoginFailed(NO_SERVER) from None
        raise


async def _assertion(credentials: JwtAssertion, issuer: str, resource: str) -> str:
    try:
        result = credentials.assertion(issuer, resource)
        found = await result if inspect.isawaitable(result) else result
    except McpgenError:
        raise
    except Exception as error:  # the boundary: a function of the program
        raise LoginFailed(f"`assertion` raised {type(error).__name__}; correct this function") from error
    if not found:
        raise LoginFailed("`assertion` returned no JWT; correct this function")
    return found
