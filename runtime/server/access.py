"""What an access token lets its client do: the value that handlers find in `Context.access`.

The token itself is not part of it. A handler that got the token could forward it to another service, which
2025-06-18 and later forbid (basic/authorization, "Token Handling").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NO_SCOPES", "SCOPE", "Access"]

NO_SCOPES: Final[frozenset[str]] = frozenset()

# RFC 6749, section 3.3.
SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class Access(Struct, frozen=True, kw_only=True):
    """What a verified access token allows, and to whom.

    Attributes:
        subject: The user; empty if the client acts for itself.
        client_id: The client that the token was issued to; may be empty if there is a subject.
        issuer: The authorization server that issued the token.
        scopes: The scopes of the token, and those that they imply (`Protect(implies=…)`).
        expires_at: When the token expires, in seconds since 1970; None if it does not say.
        claims: The claims of the token, as its issuer wrote them.
    """

    subject: str = ""
    client_id: str = ""
    issuer: str = ""
    scopes: frozenset[str] = NO_SCOPES
    expires_at: float | None = None
    claims: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"Access(subject={self.subject!r}, client_id={self.client_id!r}, issuer={self.issuer!r}, "
            f"scopes={sorted(self.scopes)!r})"
        )

    @property
    def user(self) -> str:
        """The user to whom sessions, tasks and states belong: issuer, client and subject, as a JSON array."""
        return msgspec.json.encode((self.issuer, self.client_id, self.subject)).decode()

    def allows(self, *scopes: str) -> bool:
        """Return whether the token has all *scopes*."""
        return self.scopes.issuperset(scopes)

    def missing(self, scopes: Iterable[str]) -> list[str]:
        """Return those of *scopes* that the token does not have, sorted."""
        return sorted(frozenset(scopes) - self.scopes)
