"""What verifies an access token, and the rules that all kinds of tokens share.

Spec:
    2025-11-25, basic/authorization, "Token Handling"; RFC 9068, sections 2.2 and 4; RFC 7662, section 2.2.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from msgspec import Struct

from mcpgen.runtime.server.access import SCOPE, Access

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ExpectedToken",
    "InvalidToken",
    "IssuerUnavailable",
    "VerificationMethod",
    "Verify",
    "access_bytes",
    "access_of",
    "canonical_audience",
    "memory_of",
    "scopes_of",
]

Verify: TypeAlias = Callable[[str], Awaitable[Access | None]]
"""Returns what a token allows; None if it is not valid."""


class InvalidToken(Exception):  # noqa: N818 (the client's fault, and an answer)
    """A token is not valid. The message is sent to its client, and has nothing of the token."""


class IssuerUnavailable(Exception):  # noqa: N818 (named by its cause)
    """A token cannot be verified now, because its issuer does not answer."""


class ExpectedToken(Struct, frozen=True):
    """What a token must say.

    Attributes:
        issuers: The authorization servers that are trusted.
        audiences: One of these must be among the token's audiences, in the spelling of `canonical_audience`.
    """

    issuers: tuple[str, ...]
    audiences: frozenset[str]


@runtime_checkable
class VerificationMethod(Protocol):
    """A way to verify tokens: `Jwt` or `Introspection`.

    Attributes:
        cache_seconds: How long the result for a token is used.
        asks_for_each_token: Whether each token costs a request to the issuer.
    """

    cache_seconds: float
    asks_for_each_token: bool

    def verifier(self, expected: ExpectedToken) -> Verify:
        """Return a new verifier of tokens that match *expected*.

        Raises:
            UsageError: Something that it needs is not installed, or the configuration does not fit.
        """
        ...


# Beyond all years that a date can have, and far from what a float cannot hold.
_MAX_SECONDS: Final = 10**15

_ORIGIN: Final = re.compile(r"https?://[!-\"$-.0->@-~]+", re.IGNORECASE)  # up to the path, and only ASCII

# A session keeps the claims of its last token, and a token of 16 KiB has some 20 KiB of them. OpenID Connect allows a
# subject of 255 characters, and a client may be named by a URL.
_MAX_CLAIMS_BYTES: Final = 64 * 1024
_MAX_NAME_CHARS: Final = 2048

# Claims with the name of a user. A name can change, and then belong to another user, so it is no subject.
_USER_NAMES: Final = ("username", "preferred_username")

# Claims that an author's function returns may be anything, and contain themselves.
_MAX_MEASURED: Final = 10_000

# Claims that bind a token to a key (RFC 9449, 8705): a thief could use it as a plain bearer token.
_CONFIRMATION: Final = "cnf"


def access_of(claims: Mapping[str, Any], issuer: str, expected: ExpectedToken, scope_claims: Sequence[str]) -> Access:
    """Return the access that verified *claims* of *issuer* describe.

    Raises:
        InvalidToken: The token is for another server, bound to a key, belongs to no user and no client, or says too
            much.
    """
    if memory_of(claims) > _MAX_CLAIMS_BYTES:
        raise InvalidToken("the claims of the token are too long")
    if not expected.audiences.intersection(map(canonical_audience, _texts(claims.get("aud")))):
        raise InvalidToken("the token was not issued for this server")
    if claims.get(_CONFIRMATION) is not None:
        raise InvalidToken("the token is bound to a key, and this server accepts bearer tokens only")
    if not isinstance(claims.get("sub"), str | None):  # without it, all users would be one: the client
        raise InvalidToken("the subject of the token is not a text")
    subject, client_id = _text(claims, "sub"), _text(claims, "client_id", "azp", "appid", "cid")
    if not subject and not client_id:
        raise InvalidToken("the token names neither a subject nor a client")
    if not subject and _text(claims, *_USER_NAMES):  # all users of the client would be one, and share their tasks
        raise InvalidToken("the token is of a user, but has no subject")
    if max(len(subject), len(client_id)) > _MAX_NAME_CHARS:
        raise InvalidToken("the subject or the client of the token has a name that is too long")
    expires = claims.get("exp")
    if isinstance(expires, int) and abs(expires) > _MAX_SECONDS:
        raise InvalidToken("the token is not valid")
    return Access(
        subject=subject,
        client_id=client_id,
        issuer=issuer,
        scopes=scopes_of(claims, scope_claims),
        expires_at=float(expires) if isinstance(expires, int | float) else None,
        claims=dict(claims),
    )


def canonical_audience(audience: str) -> str:
    """Return *audience* with scheme and host in lower case, and without a default port, if it is a URL.

    Clients and authorization servers may write the URL of a server in another spelling than its author.

    Spec:
        2026-07-28, basic/authorization, "Canonical Server URI".
    """
    found = _ORIGIN.match(audience)
    if found is None:
        return audience
    origin = found[0].lower()
    port = ":80" if origin.startswith("http:") else ":443"
    return origin.removesuffix(port) + audience[found.end() :]


def scopes_of(claims: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    """Return the scopes in the claims *names*: each a list, or a text with spaces between them."""
    return frozenset(
        scope
        for name in names
        for text in _texts(claims.get(name))
        for scope in text.split(" ")
        if SCOPE.fullmatch(scope)
    )


def memory_of(value: object) -> int:
    """Return how much memory *value* takes: claims, scopes, or a text."""
    size, pending = 0, [value]
    for _ in range(_MAX_MEASURED):
        if not pending:
            break
        found = pending.pop()
        size += sys.getsizeof(found)
        if isinstance(found, dict):
            members = cast("dict[object, object]", found)
            pending += [*members, *members.values()]
        elif isinstance(found, list | tuple | set | frozenset):
            pending += cast("list[object]", found)
    return size


def access_bytes(access: Access) -> int:
    """Return how much memory the parts of *access* take that its issuer chooses."""
    return memory_of(access.claims) + memory_of(access.scopes)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _text(claims: Mapping[str, Any], *names: str) -> str:
    """Return the first claim that is a text; empty if there is none."""
    found = (claims.get(each) for each in names)
    return next((each for each in found if isinstance(each, str) and each), "")
