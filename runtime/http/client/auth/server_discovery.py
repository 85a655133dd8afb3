"""Find the authorization server of an MCP server.

Spec:
    2026-07-28, basic/authorization/authorization-server-discovery; 2025-03-26, basic/authorization, "Server Metadata
    Discovery".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.auth.discovery import (
    LEGACY_REVISION,
    InvalidMetadata,
    ResourceMetadata,
    ServerMetadata,
    decode_metadata,
    legacy_endpoints,
    legacy_metadata_url,
    origin_of,
    server_metadata_urls,
)
from mcpgen.runtime.http.auth.issuers import chosen_issuer, has_root_slash, is_issuer_of
from mcpgen.runtime.http.auth.resources import chosen_resource
from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.protocol.headers import REVISION

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.auth.auth_requests import AuthReply, AuthRequests

__all__ = ["NO_SERVER", "Discovery", "discover"]

NO_SERVER: Final = (
    "the server wants credentials, but names no authorization server; if it takes a token or a key, pass "
    "Http(url, auth=bearer(token)), or headers"
)
"""The error if the endpoints are only a guess, and do not answer as those of OAuth do."""

_LOG = logging.getLogger("mcpgen.client")


class Discovery(Struct, frozen=True):
    """What is known of the authorization server of an MCP server.

    Attributes:
        metadata: Its metadata.
        resource: The resource identifier of the MCP server; None by the rules of 2025-03-26, which has none.
        scopes: ``scopes_supported`` of the MCP server; None if it lists none.
        needs_dpop: Whether the MCP server takes only tokens that are bound to a key.
        is_guess: Whether there was no document, so that the endpoints are those that 2025-03-26 names as defaults.
    """

    metadata: ServerMetadata
    resource: str | None = None
    scopes: tuple[str, ...] | None = None
    needs_dpop: bool = False
    is_guess: bool = False


async def discover(  # noqa: PLR0913 (what a search starts from)
    requests: AuthRequests,
    server_url: str,
    urls: list[str],
    issuer: str | None,
    *,
    known: str | None = None,
    allows_legacy: bool = True,
) -> Discovery | None:
    """Return the authorization server of the MCP server at *server_url*; None if only 2025-03-26 could find one.

    Args:
        requests: Makes the requests.
        server_url: The URL of the MCP server.
        urls: The URLs of its protected resource metadata, in the order in which they are tried.
        issuer: The issuer that the program demands, if any.
        known: The issuer that was used before, if any.
        allows_legacy: Whether the rules of 2025-03-26 apply to a server without protected resource metadata.

    Raises:
        LoginFailed: There is none, or its metadata cannot be trusted.
    """
    resource = await _resource_metadata(requests, urls)
    if resource is None:
        return await _legacy(requests, server_url, issuer) if allows_legacy else None
    identifier = chosen_resource(server_url, resource.resource)
    chosen = chosen_issuer(resource.authorization_servers or (), issuer, known)
    scopes = None if resource.scopes_supported is None else tuple(resource.scopes_supported)
    metadata = await _server_metadata(requests, chosen, is_given=issuer is not None)
    return Discovery(metadata, identifier, scopes, bool(resource.dpop_bound_access_tokens_required))


async def _resource_metadata(requests: AuthRequests, urls: list[str]) -> ResourceMetadata | None:
    failure: LoginFailed | None = None
    for url in urls:
        try:
            reply = await requests.get(url)
            _check_answers(reply, url)
        except LoginFailed as error:
            failure = failure or error
            continue
        if not reply.is_success:
            continue
        try:
            return decode_metadata(reply.body, ResourceMetadata)
        except InvalidMetadata as error:  # such as the page of a web application, which answers everything
            _LOG.debug("%s is not the metadata of a resource: %s", url.partition("?")[0], error)
    if failure is not None:
        raise failure
    return None


async def _server_metadata(requests: AuthRequests, issuer: str, *, is_given: bool) -> ServerMetadata:
    failure: LoginFailed | None = None
    for url in server_metadata_urls(issuer):
        try:
            found = _metadata_in(await requests.get(url), url, issuer, is_given=is_given)
        except LoginFailed as error:  # the next URL may be the one that is right
            failure = failure or error
            continue
        if found is not None:
            return found
    raise failure or LoginFailed(
        f"the authorization server {issuer!r} has no valid metadata; its operator has to add it"
    )


def _metadata_in(reply: AuthReply, url: str, issuer: str, *, is_given: bool) -> ServerMetadata | None:
    """Return the metadata of *issuer* in the answer of *url*; None if it has none.

    Raises:
        LoginFailed: It is that of another issuer, or the server is overloaded.
    """
    _check_answers(reply, url)
    if not reply.is_success:
        return None
    try:
        found = decode_metadata(reply.body, ServerMetadata)
    except InvalidMetadata as error:
        _LOG.debug("%s is not the metadata of an authorization server: %s", url, error)
        return None
    # The document is that of either spelling, and counts, unless the program has said which one is right.
    is_other_spelling = not is_given and has_root_slash(found.issuer, issuer)
    if not is_issuer_of(found, issuer) and not is_other_spelling:
        is_slash = found.issuer.rstrip("/") == issuer.rstrip("/")
        hint = "if that one is right, pass it as `issuer`" if is_slash else "do not log in"
        named = printable(found.issuer[:200])
        raise LoginFailed(f"the metadata of the authorization server {issuer!r} names another one, {named!r}; {hint}")
    return found


async def _legacy(requests: AuthRequests, server_url: str, issuer: str | None) -> Discovery:
    """Return the authorization server at the origin of the MCP server, by the rules of 2025-03-26."""
    url = legacy_metadata_url(server_url)
    reply = await requests.get(url, {REVISION: LEGACY_REVISION})
    _check_answers(reply, url)
    metadata, is_guess = legacy_endpoints(server_url), True
    if reply.is_success:
        try:
            metadata, is_guess = decode_metadata(reply.body, ServerMetadata), False
        except InvalidMetadata as error:
            _LOG.debug("the origin has no metadata of an authorization server: %s", error)
    # 2025-03-26 does not demand this check, but RFC 8414, section 3.3, on which it is based, does.
    if metadata.issuer.rstrip("/") != origin_of(server_url):
        raise LoginFailed("the metadata at the server's origin names another issuer; do not log in")
    if issuer is not None and metadata.issuer != issuer:
        chosen_issuer([metadata.issuer], issuer)
    return Discovery(metadata, is_guess=is_guess)


def _check_answers(reply: AuthReply, url: str) -> None:
    # A server that is overloaded has not said that it has no metadata; the rules of an old revision must not follow.
    if reply.is_temporary:
        raise LoginFailed(f"{url.partition('?')[0][:200]!r} answered {reply.status}; try again later")
