"""Verified tokens, by the SHA-256 of their header, so that most requests need no verification.

Theory of operation. Only the hash of a token is kept, so that a dump of the memory shows no token of an idle client.
When the cache is full, the oldest entries go. An entry ends when its token does, or earlier: a key or a token that its
issuer has revoked is not accepted for longer than that.

A hash takes 5 % of a call, as much as all other checks of a known token. So the headers of clients that call now are
kept with their hashes, and all of them are forgotten after some seconds.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.server.auth.token_verifier import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.client_address import Client

__all__ = ["TokenCache"]

_MAX_TOKENS: Final = 10_000
_MAX_BYTES: Final = 32 * 1024 * 1024

# Beside its claims and scopes, which an issuer that is asked for each token may make longer than the token.
_ENTRY_BYTES: Final = 1024

# The headers that are kept as they are: 4 MiB at most, and usually 1 MiB. They do not count.
_RECENT_SECONDS: Final = 10.0
_MAX_RECENT: Final = 1000
_MAX_RECENT_CHARS: Final = 4096


class TokenCache:
    """The clients whose tokens were verified.

    Args:
        seconds: How long an entry is used.
        clock: Returns the seconds since 1970.
        max_tokens: The largest number of entries.
        max_bytes: The largest size of all entries.

    Attributes:
        kept_bytes: The size of all entries, estimated.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float],
        max_tokens: int = _MAX_TOKENS,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self.kept_bytes: int = 0
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._clock = clock
        self._max_tokens = max_tokens
        self._entries: dict[bytes, tuple[Client, float, int]] = {}
        self._recent: dict[str, bytes] = {}  # headers with a known token, and their hashes
        self._recent_since = clock()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, credentials: str) -> Client | None:
        """Return the client of a header with a token, if the token was verified not long ago."""
        now = self._clock()
        if not 0 <= now - self._recent_since < _RECENT_SECONDS:  # the clock of the system may go back
            self._recent.clear()
            self._recent_since = now
        key = self._recent.get(credentials) or self._hash(credentials)
        found = self._entries.get(key)
        if found is None:
            return None
        if now < found[1]:
            return found[0]
        self._remove(key)
        return None

    def _hash(self, credentials: str) -> bytes:
        """Return the hash of a header, and keep it for the next calls if the token is known."""
        key = sha256(credentials.encode()).digest()
        if key in self._entries and len(credentials) <= _MAX_RECENT_CHARS:
            if len(self._recent) >= _MAX_RECENT:
                self._recent.clear()
            self._recent[credentials] = key
        return key

    def add(self, credentials: str, client: Client, expires_at: float | None) -> None:
        """Keep the client of a header with a verified token, which expires at *expires_at*."""
        until = self._clock() + self._seconds
        key = sha256(credentials.encode()).digest()
        if key in self._entries:
            self._remove(key)  # the new entry goes to the end
        size = _ENTRY_BYTES + memory_of((client.user, client.owner)) + client.access_bytes
        self._entries[key] = client, until if expires_at is None else min(until, expires_at), size
        self.kept_bytes += size
        while len(self._entries) > self._max_tokens or self.kept_bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: bytes) -> None:
        self.kept_bytes -= self._entries.pop(key)[2]
