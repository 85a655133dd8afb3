"""Which authorization server has sent a document or a response: the checks against mix-up attacks.

Issuers are compared character by character, as RFC 3986, section 6.2.1, says: two spellings of one URL are two issuers.

Spec:
    RFC 9207, section 2.4; RFC 8414, section 3.3; 2026-07-28, basic/authorization, "Authorization Response Validation".
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.auth.discovery import origin_of
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.auth.discovery import ServerMetadata

__all__ = [
    "AuthorizationRequest",
    "ScopeRefused",
    "chosen_issuer",
    "code_of_response",
    "has_root_slash",
    "has_state",
    "is_issuer_of",
]

_MAX_SHOWN_CHARS: Final = 300
_MAX_ISSUER_CHARS: Final = 2000
_ISSUER: Final = re.compile(r"https?://[!$-;=A-Z\[\]_a-z~]+")  # RFC 3986, section 2, but neither "?" nor "#"

_MAX_RESPONSE_CHARS: Final = 16 * 1024
_MAX_FIELDS: Final = 50

# If `iss` were left out because it is there twice, the response of another issuer would pass as one without it.
_ONCE: Final = frozenset({"code", "error", "iss"})


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


class ScopeRefused(LoginFailed):
    """The authorization server does not let this client request these scopes."""


def is_issuer_of(metadata: ServerMetadata, issuer: str) -> bool:
    """Return whether *metadata* may be used for *issuer*, from which its URL was made."""
    return metadata.issuer == issuer


def has_root_slash(issuer: str, other: str) -> bool:
    """Return whether two issuers differ only by the slash that is their whole path.

    Both have the same metadata document, which then says which one is right. Protected servers of the Python SDK 1.x
    add such a slash to the issuer that their author writes.

    Args:
        issuer: Any text.
        other: The URL of an issuer.
    """
    origin = origin_of(other)
    return {issuer, other} == {origin, f"{origin}/"}


def chosen_issuer(listed: Sequence[str], wanted: str | None, known: str | None = None) -> str:
    """Return the authorization server to use.

    Args:
        listed: Those of the protected resource metadata. RFC 9728 gives their order no meaning.
        wanted: The issuer that the program demands; None for the first one. It may differ from its listed spelling by a
            slash at the end, which some services add in one place and not in the other.
        known: The issuer that the client has used before. It counts before the first one if it is still listed.

    Raises:
        LoginFailed: There is none, or it is not valid.
    """
    if not listed:
        raise LoginFailed("the server's resource metadata names no authorization server; its operator has to add one")
    if wanted is None:
        chosen = known if known is not None and known in listed else listed[0]
        _check_issuer(chosen)
        return chosen
    if not any(each.rstrip("/") == wanted.rstrip("/") for each in listed):
        shown = printable(", ".join(listed)[:_MAX_SHOWN_CHARS])
        raise LoginFailed(
            f"the server's authorization servers are {shown}, but `issuer` is {wanted!r}; correct `issuer` if it is "
            "wrong; if the server has another authorization server now, get credentials from that one"
        )
    return wanted


def _check_issuer(issuer: str) -> None:
    """Check that *issuer* is a URL that names a host, and nothing that could look like another one.

    Raises:
        LoginFailed: It is not.

    Spec:
        RFC 8414, section 2: an issuer has no query and no fragment.
    """
    # First: `urlsplit` normalises a host, which takes a time that grows with the square of its combining marks.
    is_url = len(issuer) <= _MAX_ISSUER_CHARS and _ISSUER.fullmatch(issuer)
    try:
        is_host = is_url and bool(urlsplit(issuer).hostname) and "@" not in urlsplit(issuer).netloc
    except ValueError:
        is_host = False
    if not is_host:
        shown = printable(issuer[:_MAX_SHOWN_CHARS])
        raise LoginFailed(
            f"the server's resource metadata names {shown!r}, which cannot be an authorization server; do not log in"
        )


def has_state(response_url: str, request: AuthorizationRequest) -> bool:
    """Return whether *response_url* is the response to *request*."""
    state = _fields(response_url).get("state", "")
    return hmac.compare_digest(state.encode(errors="replace"), request.state.encode())


def code_of_response(response_url: str, request: AuthorizationRequest) -> str:
    """Return the authorization code of *response_url*, to which the browser was redirected.

    Raises:
        ScopeRefused: The response is the error ``invalid_scope``.
        LoginFailed: The response belongs to another login or another issuer, or is another error. The text of an error
            is shown only if the issuer is the right one.

    Spec:
        2026-07-28, basic/authorization, "Authorization Response Validation".
    """
    fields = _fields(response_url)
    if not has_state(response_url, request):
        raise LoginFailed("the response does not have the `state` of the login that was started; log in again")
    if not _ONCE.isdisjoint(_repeated(_pairs(response_url))):
        raise LoginFailed("the response has a parameter more than once (RFC 6749, section 3.1); log in again")
    issuer = fields.get("iss")
    if issuer is None and request.sends_issuer:
        raise LoginFailed(
            "the response does not name its issuer (`iss`), although the metadata of the authorization server says "
            "that responses name it; log in again"
        )
    if issuer is not None and issuer != request.issuer:
        raise LoginFailed(
            "the response comes from another issuer than the one that was asked; its content is ignored; log in again"
        )
    if "error" in fields:
        failure = ScopeRefused if fields["error"] == "invalid_scope" else LoginFailed
        raise failure(
            f"the authorization server answered with an error: {_error_text(fields)}; to try once more, log in again"
        )
    code = fields.get("code")
    if not code:
        raise LoginFailed("the response has no `code`; log in again")
    return code


def _pairs(url: str) -> list[tuple[str, str]]:
    """Return the query of *url*; nothing if it is longer than a response: what is cut off could be ``iss``."""
    if len(url) > _MAX_RESPONSE_CHARS:
        return []
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return []


def _fields(url: str) -> dict[str, str]:
    """Return the fields of the query; those that occur more than once are left out."""
    pairs = _pairs(url)
    repeated = _repeated(pairs)
    return {name: value for name, value in pairs if name not in repeated}


def _repeated(pairs: Sequence[tuple[str, str]]) -> set[str]:
    names = [name for name, _ in pairs]
    return {name for name in names if names.count(name) > 1}


def _error_text(fields: dict[str, str]) -> str:
    description = fields.get("error_description", "")
    text = f"{fields['error']}: {description}" if description else fields["error"]
    return printable(text[:_MAX_SHOWN_CHARS])
