"""Verify tokens by asking their issuer: `Introspection`.

Theory of operation. Only the issuer can read an opaque token. The answer is used for a minute at most, since the issuer
can revoke the token. Requests with the same token wait for one answer. Any client can send invented tokens, and each of
them costs the issuer a request; `TokenCheck` limits how many tokens wait for an answer at once.

Spec:
    RFC 7662; RFC 6749, section 2.3.1.
"""

from __future__ import annotations

import time
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

import anyio

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.auth.issuer_metadata import fetch_json, issuer_endpoint
from mcpgen.runtime.http.server.auth.protection import check_url
from mcpgen.runtime.http.server.auth.token_verifier import ExpectedToken, InvalidToken, IssuerUnavailable, access_of
from mcpgen.runtime.protocol.argument_checks import check_numbers, check_strings, check_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.http.server.auth.token_verifier import Verify
    from mcpgen.runtime.server.access import Access

__all__ = ["Introspection"]

_MAX_CACHE_SECONDS: Final = 60.0

# An invented token is not asked for again within this time.
_REFUSED_SECONDS: Final = 5.0
_MAX_REFUSED: Final = 1000


class Introspection:
    """Verify tokens by asking their issuer: ``Protect(verify=Introspection(…))``.

    The issuer must know this server as a client, and its answer must name this server as an audience.

    Args:
        client_id: The name of this server at the issuer.
        client_secret: Its secret.
        url: The introspection endpoint, if the issuer has no metadata.
        cache_seconds: How long an answer is used; at most 60. A revoked token is accepted for this long.
        leeway_seconds: How far the clocks of the issuer and of this machine may differ.
        scope_claims: The members of the answer that hold scopes.

    Attributes:
        cache_seconds: The same.
        asks_for_each_token: True.

    Raises:
        UsageError: An argument is not valid.
    """

    asks_for_each_token: bool = True

    def __init__(  # noqa: PLR0913 (settings, each by its name)
        self,
        *,
        client_id: str,
        client_secret: str,
        url: str | None = None,
        cache_seconds: float = _MAX_CACHE_SECONDS,
        leeway_seconds: float = 30.0,
        scope_claims: Sequence[str] = ("scope",),
    ) -> None:
        check_texts(client_id=client_id, client_secret=client_secret)
        check_numbers(cache_seconds=cache_seconds, leeway_seconds=leeway_seconds)
        if not client_id or not client_secret:
            raise UsageError("`client_id` and `client_secret` must not be empty; the issuer gives both")
        if not 0 <= cache_seconds <= _MAX_CACHE_SECONDS:
            raise UsageError(f"`cache_seconds` is {cache_seconds}; it must be between 0 and {_MAX_CACHE_SECONDS:.0f}")
        if not leeway_seconds >= 0:
            raise UsageError(f"`leeway_seconds` is {leeway_seconds}; it must not be negative")
        check_strings("scope_claims", scope_claims, "scp")
        # RFC 6749, section 2.3.1: both are form-encoded before they are used for HTTP Basic.
        self.credentials: tuple[str, str] = (quote_plus(client_id), quote_plus(client_secret))
        self.url: str | None = None if url is None else check_url("url", url)
        self.cache_seconds: float = cache_seconds
        self.leeway_seconds: float = leeway_seconds
        self.scope_claims: tuple[str, ...] = tuple(scope_claims)

    def __repr__(self) -> str:
        return f"Introspection(client_id={self.credentials[0]!r})"  # without the secret

    def verifier(self, expected: ExpectedToken) -> Verify:
        """Return a new verifier of tokens that match *expected*.

        Raises:
            UsageError: There are several issuers, or httpx is not installed.
        """
        if len(expected.issuers) > 1:
            raise UsageError(
                "Introspection(…) is for a single issuer, since an opaque token does not name its issuer; name one in "
                "`issuers`"
            )
        if find_spec("httpx") is None:
            raise UsageError('access tokens need httpx, which is not installed: pip install "mcpgen[http,auth]"')
        return _Introspector(self, expected, time.time).verify


class _Introspector:
    def __init__(self, config: Introspection, expected: ExpectedToken, clock: Callable[[], float]) -> None:
        self._config = config
        self._expected = expected
        self._clock = clock
        self._url = config.url
        self._open: dict[bytes, _Question] = {}
        self._refused: dict[bytes, float] = {}

    async def verify(self, token: str) -> Access:
        """Return what *token* allows.

        Raises:
            InvalidToken: It is not valid.
            IssuerUnavailable: The issuer does not answer.
        """
        key = sha256(token.encode()).digest()
        if self._clock() < self._refused.get(key, 0):
            raise InvalidToken("the token is not valid")
        question = self._open.get(key)
        if question is None:
            question = self._open[key] = _Question()
        question.waiting += 1
        try:
            async with question.lock:  # if the request that asks is cancelled, the next one asks
                if question.access is None and question.failure is None:
                    await self._ask(token, question)
        finally:
            question.waiting -= 1
            if not question.waiting:
                del self._open[key]
        if question.access is not None:
            return question.access
        if isinstance(question.failure, IssuerUnavailable):
            raise IssuerUnavailable(str(question.failure))
        self._refuse(key)
        raise InvalidToken(str(question.failure))

    async def _ask(self, token: str, question: _Question) -> None:
        issuer = self._expected.issuers[0]
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            if self._url is None:
                self._url = await issuer_endpoint(issuer, "introspection_endpoint")
            answer = await fetch_json(self._url, form, self._config.credentials)
            question.access = self._access(answer, issuer)
        except (InvalidToken, IssuerUnavailable) as failure:
            question.failure = failure

    def _access(self, answer: dict[str, Any], issuer: str) -> Access:
        if answer.get("active") is not True:
            raise InvalidToken("the token is not valid, or has expired")
        if answer.get("iss", issuer) != issuer:
            raise InvalidToken("the issuer of the token is not trusted")
        if str(answer.get("token_type", "bearer")).lower() not in {"bearer", "access_token"}:
            raise InvalidToken("the token is not a bearer token")
        now, leeway = self._clock(), self._config.leeway_seconds
        expires, begins = answer.get("exp", now), answer.get("nbf", now)
        if not isinstance(expires, int | float) or not isinstance(begins, int | float):
            raise InvalidToken("the token is not valid")
        if expires < now - leeway or begins > now + leeway:
            raise InvalidToken("the token has expired, or is not valid yet")
        return access_of(answer, issuer, self._expected, self._config.scope_claims)

    def _refuse(self, key: bytes) -> None:
        self._refused.pop(key, None)
        self._refused[key] = self._clock() + _REFUSED_SECONDS
        while len(self._refused) > _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]


class _Question:
    """What several requests with one token wait for."""

    def __init__(self) -> None:
        self.lock: anyio.Lock = anyio.Lock()
        self.waiting: int = 0
        self.access: Access | None = None
        self.failure: InvalidToken | IssuerUnavailable | None = None
