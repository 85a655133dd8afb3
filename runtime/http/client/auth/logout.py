"""Forget the tokens of a server, and revoke them where the authorization server can do so.

Spec:
    RFC 7009.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcpgen.runtime.http.auth.grants import client_authentication, decode_error
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard
from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
from mcpgen.runtime.http.client.auth.credentials import tokens_key
from mcpgen.runtime.http.client.auth.token_store import stored_tokens
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from mcpgen.runtime.http.auth.grants import Tokens
    from mcpgen.runtime.http.client.auth.credentials import OAuth

__all__ = ["log_out"]

_LOG = logging.getLogger("mcpgen.client")


async def log_out(url: str, oauth: OAuth) -> bool:
    """Remove the stored tokens for the server at *url*; return whether there were any.

    They are removed first, because a user who stops a slow revocation still wants to be logged out. Then they are
    revoked, before another program can refresh them; a warning names each one for which that fails.

    Args:
        url: The URL of the server.
        oauth: Has the store and the name of the client.

    Raises:
        UsageError: The URL is not valid.
        LoginFailed: The store cannot be read or written. In the latter case, the tokens were revoked.
    """
    address = parse_address(url)
    key = tokens_key(oauth, address)
    async with oauth.store.lock(key):
        tokens = await stored_tokens(oauth.store, key)
        try:
            await oauth.store.save(key, None)
        finally:
            if tokens is not None and tokens.revocation_endpoint is not None:
                requests = AuthRequests(AddressGuard(address.url, [oauth.issuer or ""]))
                await _revoke_all(requests, tokens, tokens.revocation_endpoint)
    return tokens is not None


async def _revoke_all(requests: AuthRequests, tokens: Tokens, endpoint: str) -> None:
    for kind, token in (("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token)):
        try:
            await _revoke(requests, tokens, endpoint, kind, token)
        except LoginFailed as failure:
            _LOG.warning("the %s could not be revoked: %s", kind.replace("_", " "), failure.reason)


async def _revoke(requests: AuthRequests, tokens: Tokens, endpoint: str, kind: str, token: str | None) -> None:
    if token is None:
        return
    headers, fields = client_authentication(tokens.client)
    reply = await requests.post_form(endpoint, {"token": token, "token_type_hint": kind, **fields}, headers)
    error = decode_error(reply.body)
    # Some servers can revoke refresh tokens only.
    is_unable = error is not None and error.error == "unsupported_token_type"
    if not reply.is_success and not is_unable:
        raise LoginFailed(f"the authorization server answered {reply.status}")
