"""The public keys of one issuer (JWKS), which it may replace at any time.

Theory of operation. The keys are fetched with the first token, and again when they are old. While one request fetches
them, others use the old ones. A token with an unknown `kid` may be signed with a new key, so the keys are fetched
again, but not more often than once in `_COOLDOWN_SECONDS`: any client can send tokens with invented names. The same
holds for a token that none of the keys has signed, since some issuers give the name of an old key to a new one. If the
issuer cannot be reached, old keys are used for a while, since a short failure of the issuer should not end all service.

Spec:
    RFC 7517, section 5; RFC 8414, section 2.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from mcpgen.runtime.http.server.auth.issuer_metadata import fetch_json, issuer_endpoint
from mcpgen.runtime.http.server.auth.token_verifier import IssuerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    import jwt

__all__ = ["FAMILIES", "KeySet"]

_LOG = logging.getLogger("mcpgen.http.auth")

# An issuer that replaces its keys publishes the new ones some time before it uses them.
_FRESH_SECONDS: Final = 600.0
_COOLDOWN_SECONDS: Final = 30.0
_STALE_SECONDS: Final = 24 * 3600.0

# How long a token waits for new keys while there are old ones.
_WITH_OLD_SECONDS: Final = 5.0

# Large issuers have about ten.
_MAX_KEYS: Final = 100

# A token without the name of its key makes us try several.
_MAX_TRIED: Final = 5

_MIN_RSA_BITS: Final = 2048  # RFC 7518, section 3.3
# To check a signature with 16,384 bits takes a millisecond, and grows with the square.
_MAX_RSA_BITS: Final = 16_384
# Nearly all keys have 65537. With an exponent of 2,000 bits, a signature takes a hundred times as long.
_MAX_RSA_EXPONENT: Final = 2**64

# Which type of key an algorithm needs. No symmetric one: a public key would be its secret.
FAMILIES: Final = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
}


class KeySet:
    """The keys of one issuer.

    Args:
        issuer: The issuer.
        url: The URL of its keys; None if its metadata names it.
        clock: Returns seconds, which never go back.
    """

    def __init__(self, issuer: str, url: str | None, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._url = url
        self._clock = clock
        self._keys: list[_Key] = []
        self._fetched = -_STALE_SECONDS
        self._tried = -_COOLDOWN_SECONDS
        self._renewed = -_COOLDOWN_SECONDS
        self._lock = anyio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """Return the keys that may have signed a token; none if the issuer has no such key.

        Args:
            kid: The name of the key in the token; None if it has none.
            algorithm: The algorithm in the token, one of `FAMILIES`.

        Raises:
            IssuerUnavailable: There are no keys, and the issuer cannot be reached.
        """
        before = self._fetched
        age = self._clock() - before
        if age >= _STALE_SECONDS or (age >= _FRESH_SECONDS and not self._lock.locked()):
            await self._fetch(_FRESH_SECONDS)
        found = self._matching(kid, algorithm)
        if not found and kid is not None and self._fetched == before:
            found = await self.find_newer(kid, algorithm)
        return found

    async def find_newer(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """Fetch the keys again, unless that was done a moment ago, and return those that may have signed a token.

        Args:
            kid: As for `find`.
            algorithm: As for `find`.

        Raises:
            IssuerUnavailable: There are no keys, and the issuer cannot be reached.
        """
        known = self._fetched
        async with self._lock:
            now = self._clock()
            # The keys may be young: a fetch for another reason does not count.
            if self._fetched == known and now - self._renewed >= _COOLDOWN_SECONDS:
                self._renewed = now
                await self._replace(now)
        return self._matching(kid, algorithm)

    def _matching(self, kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
        found = [each for each in self._keys if kid is None or each.kid == kid]
        keys = [each.usable_for(algorithm) for each in found[:_MAX_TRIED]]
        return [each for each in keys if each is not None]

    async def _fetch(self, max_age: float) -> None:
        """Fetch the keys, unless they are younger than *max_age* or were asked for a moment ago.

        Raises:
            IssuerUnavailable: There are none that could be used instead.
        """
        async with self._lock:
            now = self._clock()
            if now - self._fetched < max_age or now - self._tried < _COOLDOWN_SECONDS:
                if now - self._fetched >= _STALE_SECONDS:
                    raise IssuerUnavailable(f"the keys of {self._issuer} could not be fetched a moment ago")
                return
            await self._replace(now)

    async def _replace(self, now: float) -> None:
        """Fetch the keys. The caller has the lock.

        Raises:
            IssuerUnavailable: There are none that could be used instead.
        """
        self._tried = now
        has_old = now - self._fetched < _STALE_SECONDS
        try:
            # Its metadata may be at three URLs, and a hanging issuer takes the whole time for each. The request that
            # fetches the keys may have to give way to others, which need the same keys, so it fetches them first.
            with anyio.fail_after(_WITH_OLD_SECONDS if has_old else None, shield=True):
                url = self._url or await issuer_endpoint(self._issuer, "jwks_uri")
                document = await fetch_json(url)
        except (IssuerUnavailable, TimeoutError) as unavailable:
            if not has_old:
                raise
            _LOG.warning("old keys of %s are used: %s", self._issuer, str(unavailable) or "it does not answer")
            return
        self._keys = _usable(document.get("keys"), url)
        self._fetched = self._clock()
        if not self._keys:
            _LOG.error("%s has no keys that can be used, so all its tokens are refused", url)


class _Key:
    """A public key of an issuer, for one algorithm or for all of its family."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.kid: str | None = members.get("kid")
        self._members = members
        self._made: dict[str, jwt.PyJWK | None] = {}

    def usable_for(self, algorithm: str) -> jwt.PyJWK | None:
        """Return the key for *algorithm*; None if it is a key for something else, too weak or too long."""
        if algorithm not in self._made:
            self._made[algorithm] = self._make(algorithm)
        return self._made[algorithm]

    def _make(self, algorithm: str) -> jwt.PyJWK | None:
        import jwt  # noqa: PLC0415 (in an extra)

        members = self._members
        if members.get("kty") != FAMILIES[algorithm] or members.get("alg", algorithm) != algorithm:
            return None
        try:
            key = jwt.PyJWK(members, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None  # of a kind that is not known here
        if key.key_type != "RSA":
            return key
        has_length = _MIN_RSA_BITS <= key.key.key_size <= _MAX_RSA_BITS
        return key if has_length and key.key.public_numbers().e < _MAX_RSA_EXPONENT else None


def _usable(members: object, url: str) -> list[_Key]:
    """Return the keys of *url* that may sign tokens; others are left out."""
    found: list[_Key] = []
    for each in cast("list[object]", members)[:_MAX_KEYS] if isinstance(members, list) else ():
        if not isinstance(each, dict):
            continue
        key = cast("dict[str, Any]", each)
        if "d" in key:
            _LOG.error("%s publishes a private key, which is not used; tell the operator of the issuer", url)
        elif key.get("use", "sig") == "sig" and key.get("kty") in FAMILIES.values():
            found.append(_Key(key))
    return found
