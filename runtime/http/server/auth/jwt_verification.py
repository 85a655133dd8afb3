"""Verify tokens that are JSON Web Tokens, by the public keys of their issuer: `Jwt`.

Theory of operation. The token names its issuer and the algorithm, but the configuration decides: the issuer must be one
of those that are trusted, and the algorithm one of those that are allowed. Only keys of that issuer are tried, and only
those of the algorithm's type.

Spec:
    RFC 9068, section 4; RFC 8725, sections 3.1, 3.2, 3.9 and 3.11.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.auth.key_sets import FAMILIES, KeySet
from mcpgen.runtime.http.server.auth.protection import check_url
from mcpgen.runtime.http.server.auth.token_verifier import ExpectedToken, InvalidToken, access_of
from mcpgen.runtime.protocol.argument_checks import check_numbers, check_strings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jwt

    from mcpgen.runtime.http.server.auth.token_verifier import Verify
    from mcpgen.runtime.server.access import Access

__all__ = ["Jwt"]

# RFC 9068, section 4, demands at+jwt, but many issuers write JWT or nothing. A token for another purpose has its own.
_TYPES: Final = frozenset({"at+jwt", "application/at+jwt", "jwt"})

# What issuers write into tokens that are not access tokens: Keycloak, and Amazon Cognito.
_OTHER_USES: Final = {"typ": {"ID", "Refresh", "Offline", "Logout"}, "token_use": {"id", "refresh"}}

# How long a token is accepted after its issuer has withdrawn the key.
_CACHE_SECONDS: Final = 300.0

_SEGMENTS: Final = 3


class Jwt:
    """Verify tokens by the public keys of their issuer: ``Protect(verify=Jwt(…))``.

    It needs the extra ``auth``.

    Args:
        algorithms: The algorithms that are allowed, all with public keys.
        keys_url: The URL of the keys, if the issuer has no metadata. It can be given for a single issuer only.
        leeway_seconds: How far the clocks of the issuer and of this machine may differ.
        scope_claims: The claims that hold scopes.
        types: The allowed values of the header ``typ``, without case; a token without it is accepted if ``jwt`` is one.

    Attributes:
        algorithms: The same, as a set.
        keys_url: The same.
        leeway_seconds: The same.
        scope_claims: The same.
        types: The same, in lower case.
        cache_seconds: How long a verified token is not verified again.
        asks_for_each_token: False: the keys are fetched for all tokens.

    Raises:
        UsageError: An argument is not valid.
    """

    cache_seconds: float = _CACHE_SECONDS
    asks_for_each_token: bool = False

    def __init__(
        self,
        *,
        algorithms: Sequence[str] = ("RS256", "PS256", "ES256", "EdDSA"),
        keys_url: str | None = None,
        leeway_seconds: float = 30.0,
        scope_claims: Sequence[str] = ("scope", "scp"),
        types: Sequence[str] = tuple(sorted(_TYPES)),
    ) -> None:
        check_numbers(leeway_seconds=leeway_seconds)
        check_strings("algorithms", algorithms, "RS256")
        check_strings("scope_claims", scope_claims, "scp")
        check_strings("types", types, "jwt")
        unknown = sorted(set(algorithms) - FAMILIES.keys())
        if unknown or not algorithms:
            fault = f"has {unknown[0]!r}" if unknown else "is empty"
            raise UsageError(f"`algorithms` {fault}; use a list of {', '.join(FAMILIES)}")
        if not leeway_seconds >= 0:
            raise UsageError(f"`leeway_seconds` is {leeway_seconds}; it must not be negative")
        self.algorithms: frozenset[str] = frozenset(algorithms)
        self.keys_url: str | None = None if keys_url is None else check_url("keys_url", keys_url)
        self.leeway_seconds: float = leeway_seconds
        self.scope_claims: tuple[str, ...] = tuple(scope_claims)
        self.types: frozenset[str] = frozenset(each.lower() for each in types)

    def verifier(self, expected: ExpectedToken) -> Verify:
        """Return a new verifier of tokens that match *expected*.

        Raises:
            UsageError: A module of the extra is not installed, or `keys_url` is given for several issuers.
        """
        # They are loaded before the server answers: this takes 0.2 seconds, which all clients would wait.
        for module, package in (("cryptography", "pyjwt[crypto]"), ("jwt", "pyjwt[crypto]"), ("httpx", "httpx")):
            try:
                import_module(module)
            except ImportError:
                raise UsageError(
                    f'access tokens need {package}, which is not installed: pip install "mcpgen[http,auth]"'
                ) from None
        if self.keys_url is not None and len(expected.issuers) > 1:
            raise UsageError("`keys_url` is for a single issuer; name one in `issuers`, or remove `keys_url`")
        return _JwtVerifier(self, expected).verify


_NULL: Final = Raw(b"null")

# A time has some ten digits. Anyone can send a token, and a list of 2,000 numbers in place of the time takes 20 ms.
_MAX_TIME_BYTES: Final = 32


class _Header(Struct):
    alg: str
    kid: str | None = None
    typ: str = "jwt"
    crit: Raw = _NULL


class _Claims(Struct):
    iss: str
    exp: Raw = _NULL


_decode_header: Final = msgspec.json.Decoder(_Header).decode
_decode_claims: Final = msgspec.json.Decoder(_Claims).decode
_decode_time: Final = msgspec.json.Decoder().decode


class _JwtVerifier:
    """Verifies tokens, with the keys that it has fetched."""

    def __init__(self, config: Jwt, expected: ExpectedToken) -> None:
        self._config = config
        self._expected = expected
        self._keys = {each: KeySet(each, config.keys_url, time.monotonic) for each in expected.issuers}

    async def verify(self, token: str) -> Access:
        """Return what *token* allows.

        Raises:
            InvalidToken: It is not valid.
            IssuerUnavailable: There are no keys.
        """
        header, issuer = self._read(token)
        keys = self._keys[issuer]
        found = await keys.find(header.kid, header.alg)
        claims = self._claims(token, found, header.alg)
        if claims is None and found and (newer := await keys.find_newer(header.kid, header.alg)) != found:
            claims = self._claims(token, newer, header.alg)
        if claims is None:
            raise InvalidToken("the token is not signed with a key of its issuer")
        return self._access(claims, issuer)

    def _claims(self, token: str, keys: list[jwt.PyJWK], algorithm: str) -> dict[str, Any] | None:
        """Return the claims of *token*; None if none of *keys* has signed it.

        Raises:
            InvalidToken: It is not valid.
        """
        import jwt  # noqa: PLC0415 (in an extra; it takes long to load)

        for key in keys:
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    leeway=self._config.leeway_seconds,
                    options={"require": ["exp", "iss", "aud"], "verify_aud": False, "verify_iss": False},
                )
            except jwt.InvalidSignatureError:
                continue
            except jwt.ExpiredSignatureError:
                raise InvalidToken("the token has expired") from None
            except jwt.ImmatureSignatureError:
                raise InvalidToken("the token is not valid yet") from None
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError):  # no message: it could show the token
                raise InvalidToken("the token is not valid") from None
            return claims
        return None

    def _read(self, token: str) -> tuple[_Header, str]:
        """Return the header of *token* and its issuer, neither of which is verified yet.

        Raises:
            InvalidToken: The configuration does not allow one of them.
        """
        segments = token.split(".")
        if len(segments) != _SEGMENTS:
            raise InvalidToken("the token is not a JSON Web Token")
        try:
            header = _decode_header(_bytes(segments[0]))
            claims = _decode_claims(_bytes(segments[1]))
            expires = _decode_time(claims.exp) if len(claims.exp) <= _MAX_TIME_BYTES else None
        except (ValueError, msgspec.MsgspecError, RecursionError):
            raise InvalidToken("the token is not a JSON Web Token") from None
        config = self._config
        if header.alg not in config.algorithms:
            raise InvalidToken("the algorithm of the token is not allowed")
        if header.crit != _NULL:
            raise InvalidToken("the header of the token has `crit`, which this server does not support")
        if header.typ.lower() not in config.types:
            raise InvalidToken("the token is not an access token")
        if claims.iss not in self._keys:
            raise InvalidToken("the issuer of the token is not trusted")
        if isinstance(expires, int | float) and expires <= time.time() - config.leeway_seconds:
            raise InvalidToken("the token has expired")  # even if the issuer cannot be reached now
        return header, claims.iss

    def _access(self, claims: dict[str, Any], issuer: str) -> Access:
        if claims.get("iss") != issuer or not isinstance(claims.get("exp"), int | float):
            raise InvalidToken("the token is not valid")
        if any(claims.get(name) in uses for name, uses in _OTHER_USES.items() if isinstance(claims.get(name), str)):
            raise InvalidToken("the token is not an access token")
        return access_of(claims, issuer, self._expected, self._config.scope_claims)


def _bytes(segment: str) -> bytes:
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
