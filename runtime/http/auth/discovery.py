"""Where a client finds the authorization server of an MCP server: the documents, and the order in which it asks.

Theory of operation. The protected resource metadata (RFC 9728) of the MCP server names its authorization servers. The
metadata of an authorization server names its endpoints. 2025-03-26 has no protected resource metadata: there the
authorization server is at the origin of the MCP server, and its endpoints have default paths.

Spec:
    2025-03-26, basic/authorization, "Server Metadata Discovery"; 2025-11-25, basic/authorization, "Authorization Server
    Discovery"; 2026-07-28, basic/authorization/authorization-server-discovery.
"""

from __future__ import annotations

from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

__all__ = [
    "LEGACY_REVISION",
    "InvalidMetadata",
    "ResourceMetadata",
    "ServerMetadata",
    "decode_metadata",
    "legacy_endpoints",
    "legacy_metadata_url",
    "origin_of",
    "resource_metadata_urls",
    "server_metadata_urls",
]

S = TypeVar("S", bound=Struct)

LEGACY_REVISION: Final = "2025-03-26"
"""The only revision without protected resource metadata."""

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OIDC: Final = "/.well-known/openid-configuration"


class InvalidMetadata(Exception):  # noqa: N818 (what it is)
    """A document is not the metadata that it should be."""


class ResourceMetadata(Struct, frozen=True):
    """The metadata of a protected resource, RFC 9728, section 2.

    Attributes:
        resource: The resource identifier.
        authorization_servers: The issuers of its tokens.
        scopes_supported: The scopes of basic functionality.
        dpop_bound_access_tokens_required: Whether it takes only tokens that are bound to a key.
    """

    resource: str
    authorization_servers: list[str] | None = None
    scopes_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool | None = None


class ServerMetadata(Struct, frozen=True, omit_defaults=True):
    """The metadata of an authorization server, RFC 8414, section 2, or OpenID Connect Discovery, section 3.

    A field that the document does not have is None.
    """

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None


def resource_metadata_urls(server_url: str, named: str | None) -> list[str]:
    """Return the URLs of the protected resource metadata, in the order in which a client asks.

    Args:
        server_url: The URL of the MCP server.
        named: The URL that the challenge names; None if it names none. It comes first. The others follow since some
            servers behind a proxy name a URL that cannot be reached.

    Spec:
        2026-07-28, basic/authorization/authorization-server-discovery, "Protected Resource Metadata Discovery
        Requirements".
    """
    parts, root = urlsplit(server_url), f"{origin_of(server_url)}{_RESOURCE}"
    urls = [] if named is None else [named]
    # RFC 9728, section 3.1, removes only a slash that is the whole path, and keeps the query. Many servers also remove
    # one after a longer path, or know no query.
    exact = root if parts.path == "/" else f"{root}{parts.path}"
    if parts.query:
        urls.append(f"{exact}?{parts.query}")
    urls += [exact, f"{root}{parts.path.rstrip('/')}", root]
    return list(dict.fromkeys(urls))


def server_metadata_urls(issuer: str) -> list[str]:
    """Return the URLs of the metadata of an authorization server, in the order in which a client asks.

    Spec:
        2026-07-28, basic/authorization/authorization-server-discovery, "Authorization Server Metadata Discovery".
    """
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    if path:
        return [f"{origin}{_OAUTH}{path}", f"{origin}{_OIDC}{path}", f"{origin}{path}{_OIDC}"]
    return [f"{origin}{_OAUTH}", f"{origin}{_OIDC}"]


def legacy_metadata_url(server_url: str) -> str:
    """Return the only URL of the metadata in 2025-03-26.

    Spec:
        2025-03-26, basic/authorization, "Authorization Base URL".
    """
    return f"{origin_of(server_url)}{_OAUTH}"


def legacy_endpoints(server_url: str) -> ServerMetadata:
    """Return the default endpoints of an authorization server of 2025-03-26 that has no metadata.

    Spec:
        2025-03-26, basic/authorization, "Fallbacks for Servers without Metadata Discovery".
    """
    origin = origin_of(server_url)
    return ServerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
    )


def decode_metadata(document: bytes, kind: type[S]) -> S:
    """Decode the JSON of a metadata document.

    Raises:
        InvalidMetadata: It is not JSON, or lacks a field.
    """
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMetadata(str(error)) from None


def origin_of(url: str) -> str:
    """Return scheme and authority of *url*, as they are written."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
