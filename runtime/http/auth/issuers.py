"""Which authorization server has sent a document or a response: the checks against mix-up attacks.

Issuers are compared character by character, as RFC 3986, section 6.2.1, says: two spellings of one URL are two issuers.

Spec:
    RFC 9207, section 2.4; RFC 8414, section 3.3; 2026-07-28, basic/authorization, "Authorization Response Validation".
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.auth.discovery import ServerMetadata

__all__ = ["AuthorizationRequest", "chosen_issuer", "code_of_response", "has_state", "is_issuer_of"]

_MAX_SHOWN_CHARS: Final = 300
_MAX_RESPONSE_CHARS: Final = 16 * 1024
_MAX_FIELDS: Final = 50


class AuthorizationRequest(Struct, frozen=True, kw_only=True):
    """What a client remembers of an authorization request until its response comes.

    Attributes:
        issuer: The issuer of the validated metadata.
        sends_issuer: Whether the metadata says that responses have ``iss``.
        state: The value of ``state``, which belongs to this login alone.
        verifier: The PKCE code verifier.
        redirect_uri: Where the response goes.
    """

    issuer: str
    sends_issuer: bool
    state: str
    verifier: str
    redirect_uri: str

    def __repr__(self) -> str:
        return f"AuthorizationRequest(issuer={self.issuer!r})"


def is_issuer_of(metadata: ServerMetadata, issuer: str) -> bool:
    """Return whether *metadata* may be used for *issuer*, from which its URL was made."""
    return metadata.issuer == issuer


def chosen_issuer(listed: Sequence[str], wanted: str | None) -> str:
    """Return the authorization server to use.

    Args:
        listed: Those of the protected resource metadata.
        wanted: The issuer that the program demands; None for the first one. It may differ from its listed spelling by a
            slash at the end, which some services add in one place and not in the other.

    Raises:
        LoginFailed: There is none.
    """
    if wanted is None:
        if not listed:
            raise LoginFailed("the server's resource metadata names no authorization server")
        return listed[0]
    if not any(each.rstrip("/") == wanted.rstrip("/") for each in listed):
        shown = printable(", ".join(listed)[:_MAX_SHOWN_CHARS]) or "none"
        raise LoginFailed(
            f"the server's authorization servers are {shown}, but the credentials are for {wanted!r} (`issuer`); "
            "if the server has moved, get credentials from the new one"
        )
    return wanted


def has_state(response_url: str, request: AuthorizationRequest) -> bool:
    """Return whether *response_url* is the response to *request*."""
    state = _fields(response_url).get("state", "")
    return hmac.compare_digest(state.encode(), request.state.encode())


def code_of_response(response_url: str, request: AuthorizationRequest) -> str:
    """Return the authorization code of *response_url*, to which the browser was redirected.

    Raises:
        LoginFailed: The response belongs to another login or another issuer, or is an error. The text of an error is
            shown only if the issuer is the right one.

    Spec:
        2026-07-28, basic/authorization, "Authorization Response Validation".
    """
    fields = _fields(response_url)
    if not has_state(response_url, request):
        raise LoginFailed("the response has another `state` than the login that was started; log in again")
    issuer = fields.get("iss")
    if issuer is None and request.sends_issuer:
        raise LoginFailed(
            "the response does not name its issuer (`iss`), although the authorization server says it does"
        )
    if issuer is not None and issuer != request.issuer:
        raise LoginFailed("the response comes from another issuer than the one that was asked; its content is ignored")
    if "error" in fields:
        raise LoginFailed(f"the authorization server answered: {_error_text(fields)}")
    code = fields.get("code")
    if not code:
        raise LoginFailed("the response has no `code`")
    return code


def _fields(url: str) -> dict[str, str]:
    """Return the fields of the query; those that occur more than once are left out (RFC 6749, section 3.1)."""
    try:
        pairs = parse_qsl(urlsplit(url[:_MAX_RESPONSE_CHARS]).query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return {}
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}


def _error_text(fields: dict[str, str]) -> str:
    description = fields.get("error_description", "")
    text = f"{fields['error']}: {description}" if description else fields["error"]
    return printable(text[:_MAX_SHOWN_CHARS])
