"""Requests to the token endpoint, and their replies.

Spec:
    RFC 6749, sections 2.3, 4.1.3, 4.4, 5 and 6; RFC 7523; RFC 8693; RFC 8707, section 2.2; 2026-07-28,
    basic/authorization, "Resource Parameter Implementation".
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

import msgspec
from msgspec import Struct

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.auth.registration import BASIC, Registration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "JWT_BEARER",
    "InvalidReply",
    "Reply",
    "TokenError",
    "Tokens",
    "client_authentication",
    "client_credentials_form",
    "code_form",
    "decode_error",
    "decode_tokens",
    "exchange_form",
    "jwt_bearer_form",
    "refresh_form",
]

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

# A token is renewed a little before it expires, so that it does not expire on its way.
_LEEWAY_SECONDS: Final = 30.0
_MAX_SHOWN_CHARS: Final = 300

# A JWT with groups has 10 KiB. To encode a megabyte of tokens and secrets for a form takes half a second.
_MAX_TOKEN_CHARS: Final = 64 * 1024
_MAX_SECONDS: Final = 10**15
_TYPES: Final = frozenset({"bearer", "dpop"})


class InvalidReply(Exception):  # noqa: N818 (what it is)
    """The reply of a token endpoint is not valid. The message holds nothing of it."""


class TokenError(Struct, frozen=True):
    """The error that a token endpoint answers, RFC 6749, section 5.2.

    Attributes:
        error: The code.
        error_description: More text; empty or None if there is none.
    """

    error: str
    error_description: str | None = ""

    def __str__(self) -> str:
        text = f"{self.error}: {self.error_description}" if self.error_description else self.error
        return printable(text[:_MAX_SHOWN_CHARS])

    def without(self, secrets: Iterable[str]) -> TokenError:
        """Return the error with dots in place of *secrets*: it may repeat what it was sent."""
        code, text = self.error, self.error_description or ""
        for each in sorted(secrets, key=len, reverse=True):  # one may be a part of another
            if each:
                code, text = code.replace(each, "…"), text.replace(each, "…")
        return TokenError(code, text)


class Tokens(Struct, frozen=True, omit_defaults=True):
    """Tokens for one MCP server, as they are stored.

    Attributes:
        access_token: The access token.
        issuer: The authorization server that has issued them.
        token_endpoint: Where they are refreshed.
        client: The client that they were issued to.
        resource: The resource; None for a server of 2025-03-26, which has none.
        scopes: The scopes that were requested or granted.
        refresh_token: The refresh token; None if there is none.
        expires_at: When the access token expires, in seconds of the system's clock; None if the server does not say.
        key: The private key of DPoP to which they are bound, as PEM; None for bearer tokens.
        revocation_endpoint: Where they are revoked; None if there is no such endpoint.
    """

    access_token: str
    issuer: str
    token_endpoint: str
    client: Registration
    resource: str | None = None
    scopes: tuple[str, ...] = ()
    refresh_token: str | None = None
    expires_at: float | None = None
    key: str | None = None
    revocation_endpoint: str | None = None

    def __repr__(self) -> str:
        return f"Tokens(issuer={self.issuer!r}, resource={self.resource!r})"

    def is_fresh(self, now: float) -> bool:
        """Return whether the access token can be used at the time *now*, and need not be refreshed soon."""
        leeway = 0 if self.refresh_token is None else _LEEWAY_SECONDS  # without one, another login would follow
        return self.expires_at is None or now < self.expires_at - leeway

    def has_expired(self, now: float) -> bool:
        """Return whether the server refuses the access token at the time *now*."""
        return self.expires_at is not None and now >= self.expires_at


class Reply(Struct, frozen=True):
    """What a token endpoint has issued.

    Attributes:
        access_token: The access token.
        token_type: Its type.
        expires_in: How many seconds it is valid.
        refresh_token: The refresh token.
        scope: The granted scopes, if they are not those that were requested.
        issued_token_type: What a token exchange has issued; None in other replies.
    """

    access_token: str
    token_type: str
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None

    def __repr__(self) -> str:
        return f"Reply(token_type={self.token_type!r})"


def code_form(*, code: str, redirect_uri: str, verifier: str, resource: str | None) -> dict[str, str]:
    """Return the form that redeems an authorization code."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    return _with(form, resource)


def refresh_form(*, refresh_token: str, resource: str | None) -> dict[str, str]:
    """Return the form that refreshes tokens. It asks for the scopes that they have."""
    return _with({"grant_type": "refresh_token", "refresh_token": refresh_token}, resource)


def client_credentials_form(*, scopes: Sequence[str], resource: str | None) -> dict[str, str]:
    """Return the form with which a client gets a token for itself."""
    return _with({"grant_type": "client_credentials"}, resource, scopes)


def jwt_bearer_form(*, assertion: str, scopes: Sequence[str], resource: str | None) -> dict[str, str]:
    """Return the form that exchanges a JWT for an access token, RFC 7523, section 2.1."""
    return _with({"grant_type": JWT_BEARER, "assertion": assertion}, resource, scopes)


def exchange_form(*, id_token: str, audience: str, resource: str, scopes: Sequence[str]) -> dict[str, str]:
    """Return the form that exchanges an ID token for an identity assertion grant, RFC 8693, section 2.1."""
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token": id_token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": audience,
    }
    return _with(form, resource or None, scopes)


def client_authentication(client: Registration, assertion: str | None = None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the fields of a form with which *client* authenticates.

    Args:
        client: The client.
        assertion: The JWT of ``private_key_jwt``.

    Spec:
        RFC 6749, section 2.3.1: id and secret are encoded like a form before they become credentials of HTTP Basic.
    """
    if assertion is not None:
        return {}, {
            "client_id": client.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion,
        }
    if client.method == BASIC and client.secret is not None:
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}
    if client.method == "client_secret_post" and client.secret is not None:
        return {}, {"client_id": client.client_id, "client_secret": client.secret}
    return {}, {"client_id": client.client_id} if client.client_id else {}  # a JWT may be enough, RFC 7521, section 4.1


def decode_tokens(body: bytes) -> Reply:
    """Return what the token endpoint has issued.

    Raises:
        InvalidReply: It is no such reply, or the token has a type that a client cannot use.
    """
    try:
        reply = msgspec.json.decode(body, type=Reply, strict=False)  # some servers send `expires_in` as a string
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidReply(
            "the reply of the token endpoint is not JSON, lacks `access_token` or `token_type`, or has a field of a "
            "wrong type"
        ) from None
    if reply.expires_in is not None and not abs(reply.expires_in) < _MAX_SECONDS:  # the text "nan" is a number, too
        raise InvalidReply("the token has a lifetime that makes no sense (`expires_in`)")
    if reply.issued_token_type is None and reply.token_type.lower() not in _TYPES:
        raise InvalidReply("the token has an unknown type (`token_type`)")
    if max(len(reply.access_token), len(reply.refresh_token or "")) > _MAX_TOKEN_CHARS:
        raise InvalidReply(f"a token has more than {_MAX_TOKEN_CHARS} characters")
    if not reply.access_token or any(not "!" <= each <= "~" for each in reply.access_token):
        raise InvalidReply("the access token is empty, or has characters that a header cannot contain")
    return reply


def decode_error(body: bytes) -> TokenError | None:
    """Return the error in *body*; None if it holds none."""
    try:
        return msgspec.json.decode(body, type=TokenError)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _with(form: dict[str, str], resource: str | None, scopes: Sequence[str] = ()) -> dict[str, str]:
    if scopes:
        form["scope"] = " ".join(scopes)
    if resource is not None:
        form["resource"] = resource
    return form
