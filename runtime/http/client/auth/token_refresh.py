"""Refresh tokens.

Spec:
    RFC 6749, section 6; 2026-07-28, basic/authorization, "Refresh Tokens" and "Resource Parameter Implementation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from mcpgen.runtime.http.auth.grants import refresh_form
from mcpgen.runtime.http.auth.proofs import ProofKey
from mcpgen.runtime.http.auth.registration import BASIC
from mcpgen.runtime.http.client.auth.credentials import OAuth, client_key
from mcpgen.runtime.http.client.auth.token_endpoint import INVALID_CLIENT, TokenEndpoint, TokenRefused
from mcpgen.runtime.http.client.auth.token_store import stored_client

if TYPE_CHECKING:
    from mcpgen.runtime.http.auth.grants import Tokens
    from mcpgen.runtime.http.auth.registration import Registration
    from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
    from mcpgen.runtime.http.client.auth.credentials import Credentials

__all__ = ["refreshed_tokens"]

# Errors of token endpoints that do not know `resource` with a refresh token, such as the one of Entra ID.
_REFUSES_RESOURCE: Final = frozenset({"invalid_request", "invalid_target", "invalid_resource"})


async def refreshed_tokens(credentials: Credentials, requests: AuthRequests, tokens: Tokens) -> Tokens | None:
    """Return new tokens for the refresh token of *tokens*; None if there is none, or if it is no longer valid.

    Args:
        credentials: The choices of the program, which may have another secret now.
        requests: Makes the requests.
        tokens: The tokens.

    Raises:
        LoginFailed: The token endpoint does not answer.
    """
    if tokens.refresh_token is None:
        return None
    key = None if tokens.key is None else ProofKey(tokens.key)
    client, secret = tokens.client, credentials.client_secret
    if secret is not None and credentials.client_id == client.client_id:
        client = structs.replace(client, secret=secret, method=client.method if client.secret else BASIC)
    endpoint = TokenEndpoint(requests, tokens.token_endpoint, client, key=key)
    form = refresh_form(refresh_token=tokens.refresh_token, resource=tokens.resource)
    for each in (form, {name: value for name, value in form.items() if name != "resource"}):
        try:
            found = await endpoint.tokens(
                each, resource=tokens.resource, scopes=tokens.scopes, revocation_endpoint=tokens.revocation_endpoint
            )
        except TokenRefused as refused:
            if refused.error.error == INVALID_CLIENT and isinstance(credentials, OAuth):
                await _forget(credentials, client)
            if refused.error.error not in _REFUSES_RESOURCE:
                return None
            continue
        return found if found.refresh_token is not None else structs.replace(found, refresh_token=tokens.refresh_token)
    return None


async def _forget(oauth: OAuth, client: Registration) -> None:
    """Remove the registration of *client*, which its authorization server does not know any more."""
    key = client_key(oauth, client.issuer)
    found = await stored_client(oauth.store, key)
    if found is not None and found.client_id == client.client_id:
        await oauth.store.save(key, None)
