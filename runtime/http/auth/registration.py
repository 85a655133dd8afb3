"""How a client gets its id at an authorization server: in advance, by a metadata document, or by registering.

Spec:
    2026-07-28, basic/authorization/client-registration; RFC 7591.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from mcpgen.runtime.adapt.json_pointer import is_array
from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.auth.discovery import ServerMetadata

__all__ = [
    "BASIC",
    "Registration",
    "RegistrationKind",
    "decode_registration",
    "registration_kind",
    "registration_request",
    "secret_method",
]

RegistrationKind: TypeAlias = Literal["given", "document", "dynamic"]

BASIC: Final = "client_secret_basic"
"""The method of HTTP Basic: id and secret are in the header."""

_IN_ADVANCE: Final = "register a client there, and pass OAuth(client_id=…)"

_POST: Final = "client_secret_post"
_NONE: Final = "none"
_MAX_CREDENTIAL_CHARS: Final = 16 * 1024  # to encode a megabyte for a form takes half a second
_MAX_SHOWN_CHARS: Final = 100
_MAX_LISTED: Final = 1000  # of the redirect URIs in a reply; the client has sent one
_LOOPBACK_PORT: Final = re.compile(r"^(http://(?:localhost|127\.0\.0\.1|\[::1\])):\d+(?=/|$)")


class Registration(Struct, frozen=True, omit_defaults=True):
    """The credentials of a client at one authorization server.

    Attributes:
        issuer: The authorization server, to which alone they are sent.
        client_id: The id of the client.
        secret: Its secret; None for a public client.
        method: How it authenticates at the token endpoint.
        redirect_uri: The registered redirect URI; empty if it does not matter.
        expires_at: When the secret expires, in seconds of the system's clock; 0 for never.
    """

    issuer: str
    client_id: str
    secret: str | None = None
    method: str = _NONE
    redirect_uri: str = ""
    expires_at: float = 0

    def __repr__(self) -> str:
        return f"Registration(issuer={self.issuer!r})"


class _Reply(Struct):
    client_id: Annotated[str, Meta(min_length=1, max_length=_MAX_CREDENTIAL_CHARS)]
    client_secret: Annotated[str, Meta(max_length=_MAX_CREDENTIAL_CHARS)] | None = None
    token_endpoint_auth_method: str | None = None
    client_secret_expires_at: float | None = None
    redirect_uris: Any = None


def registration_kind(*, client_id: str | None, document_url: str | None, metadata: ServerMetadata) -> RegistrationKind:
    """Return how the client gets its id.

    Args:
        client_id: The id that the program has; None for none.
        document_url: The URL of the client's own metadata document; None for none.
        metadata: The metadata of the authorization server.

    Raises:
        LoginFailed: There is no way; the program must be given an id.

    Spec:
        2026-07-28, basic/authorization/client-registration: credentials that were registered in advance, then a client
        id metadata document, then dynamic registration, then the user.
    """
    if client_id is not None:
        return "given"
    if document_url is not None and metadata.client_id_metadata_document_supported:
        return "document"
    if metadata.registration_endpoint is not None:
        return "dynamic"
    takes, document = "clients that it knows", ""
    if metadata.client_id_metadata_document_supported:
        takes += ", or that have a client id metadata document"
        document = "; or pass the URL of such a document: OAuth(client_metadata_url=…)"
    raise LoginFailed(
        f"the authorization server {metadata.issuer!r} takes only {takes}; register a client there, and pass its id: "
        f"OAuth(client_id=…), or `mcpgen login --client-id`{document}"
    )


def registration_request(
    metadata: ServerMetadata, *, name: str, redirect_uri: str, scopes: Sequence[str] = (), method: str = ""
) -> bytes:
    """Return the JSON of a registration request.

    Args:
        metadata: The metadata of the authorization server.
        name: The name of the client.
        redirect_uri: Where its responses go.
        scopes: The scopes that it may request. By default, there is no ``scope``: an authorization server could then
            refuse more scopes, which a call may need later.
        method: How the client authenticates; empty for the simplest way that the metadata lists.

    Spec:
        RFC 7591, section 2; 2026-07-28, basic/authorization/client-registration, "Application Type and Redirect URI
        Constraints".
    """
    is_local = redirect_uri.startswith("http://")  # https only for applications on the web
    request: dict[str, Any] = {
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method or _public_or_secret(metadata),
        "application_type": "native" if is_local else "web",
    }
    if scopes:
        request["scope"] = " ".join(scopes)
    return msgspec.json.encode(request)


def decode_registration(body: bytes, *, issuer: str, redirect_uri: str) -> Registration:
    """Return the registration in the reply *body*.

    The reply counts, and not what was asked for: it may have a secret although the client asked for none.

    Raises:
        LoginFailed: The reply has no client id or a long one, asks for a method that the client does not have, or lists
            only other redirect URIs.

    Spec:
        RFC 7591, section 3.2.1; 2025-11-25, basic/authorization, "Open Redirection".
    """
    try:
        found = msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LoginFailed(
            "the authorization server's reply to the registration is not JSON, lacks `client_id`, or has a field of a "
            f"wrong type or length; {_IN_ADVANCE}"
        ) from None
    method = found.token_endpoint_auth_method or (_NONE if found.client_secret is None else BASIC)
    fault = "which the client does not have" if method not in (_NONE, BASIC, _POST) else ""
    if method in (BASIC, _POST) and found.client_secret is None:
        fault = "but sent no secret for it"
    if fault:
        shown = printable(method[:_MAX_SHOWN_CHARS])
        raise LoginFailed(
            f"the authorization server registered the client for the method of authentication {shown!r}, {fault}; "
            f"{_IN_ADVANCE}"
        )
    listed = found.redirect_uris
    compared = listed[:_MAX_LISTED] if is_array(listed) else []
    if compared and not any(_is_same_redirect(redirect_uri, each) for each in compared):
        raise LoginFailed(
            f"the authorization server did not register the redirect URI {redirect_uri!r}, but others; {_IN_ADVANCE}"
        )
    secret = None if method == _NONE else found.client_secret
    expires_at = found.client_secret_expires_at or 0
    return Registration(issuer, found.client_id, secret, method, redirect_uri, expires_at)


def _is_same_redirect(ours: str, listed: object) -> bool:
    """Return whether a registration of *listed* allows *ours*.

    The port of a loopback address does not count, nor does a slash at the end, which some servers add to an empty path.

    Spec:
        RFC 8252, section 7.3.
    """
    return isinstance(listed, str) and _comparable(ours) == _comparable(listed)


def _comparable(uri: str) -> str:
    return _LOOPBACK_PORT.sub(r"\1", uri).removesuffix("/")


def secret_method(metadata: ServerMetadata, secret: str | None) -> str:
    """Return how a client with these credentials authenticates, if its registration does not say."""
    if secret is None:
        return _NONE
    listed = metadata.token_endpoint_auth_methods_supported
    # RFC 8414, section 2: without a list, it is client_secret_basic.
    return _POST if listed is not None and BASIC not in listed and _POST in listed else BASIC


def _public_or_secret(metadata: ServerMetadata) -> str:
    listed = metadata.token_endpoint_auth_methods_supported
    if listed is None:
        return _NONE
    # The Python SDK, as an authorization server, wants `client_id` in the form even where the header has it.
    return next((each for each in (_NONE, _POST, BASIC) if each in listed), _NONE)
