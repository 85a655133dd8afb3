"""The check of the token of each request: who sends it, or the answer that tells the client how to get a token.

Spec:
    2025-11-25, basic/authorization, "Access Token Usage" and "Error Handling"; RFC 6750, sections 2.1 and 3.
"""

from __future__ import annotations

import logging
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import UNSET
from msgspec.structs import replace

from mcpgen.runtime.http.auth.challenge_header import bearer_challenge
from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.auth.resource_metadata import ResourceMetadata
from mcpgen.runtime.http.server.auth.token_cache import TokenCache
from mcpgen.runtime.http.server.auth.token_verifier import (
    ExpectedToken,
    InvalidToken,
    IssuerUnavailable,
    VerificationMethod,
    access_bytes,
    canonical_audience,
)
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES, headers_bytes
from mcpgen.runtime.server.access import Access
from mcpgen.runtime.server.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from msgspec import UnsetType

    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.http.server.auth.token_verifier import Verify
    from mcpgen.runtime.http.server.responses import Header, Send
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["TokenCheck"]

_LOG = logging.getLogger("mcpgen.http.auth")

# RFC 6750, section 2.1. Headers of 16 KiB are the most that common servers accept.
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_MAX_TOKEN_CHARS: Final = 16 * 1024

# How long the result of an author's own function is used.
_OWN_SECONDS: Final = 60.0

# How often an issuer that cannot be reached is logged: as often as its keys are asked for.
_LOG_SECONDS: Final = 30.0

# Tokens that wait for an answer of their issuer, or of an author's own function. Anyone can send invented ones.
_MAX_WAITING: Final = 128

# The same where the keys of the issuer are fetched for all of them. Each request keeps its head meanwhile.
_MAX_WAITING_FOR_KEYS: Final = 10_000
_MAX_WAITING_BYTES: Final = 24 * 1024 * 1024

# A body up to this length is discarded with the answer; for a longer one, the connection is closed.
_MAX_DISCARDED_BYTES: Final = 64 * 1024

_CLOSE: Final[Header] = (b"connection", b"close")


class TokenCheck:
    """Checks the tokens of one application.

    Args:
        protect: The configuration.
        path: The path of the endpoint.
        sse_path: The path of the stream of HTTP+SSE; None if there is none.
        clock: Returns the seconds since 1970.

    Attributes:
        metadata: The documents that tell clients where to get tokens.

    Raises:
        UsageError: Something that the verification needs is not installed.
    """

    def __init__(
        self, protect: Protect, path: str, sse_path: str | None, clock: Callable[[], float] = time.time
    ) -> None:
        self.metadata: ResourceMetadata = ResourceMetadata(protect, path, sse_path)
        self._protect = protect
        self._clock = clock
        audiences = {canonical_audience(each) for each in (*self.metadata.resources, *protect.audience)}
        # A URL without a path is the same with a slash (RFC 3986, 6.2.3), and some clients add it.
        audiences |= {f"{each}/" for each in audiences if each.count("/") == 2}  # noqa: PLR2004 (those of ://)
        method = protect.verify
        if method is None:
            from mcpgen.runtime.http.server.auth.jwt_verification import Jwt  # noqa: PLC0415 (in an extra)

            method = Jwt()
        if isinstance(method, VerificationMethod):
            self._verify: Verify = method.verifier(ExpectedToken(protect.issuers, frozenset(audiences)))
            asks = method.asks_for_each_token
            self._cache = TokenCache(method.cache_seconds, clock)
        else:
            self._verify = partial(_checked, method, clock)
            self._cache = TokenCache(_OWN_SECONDS, clock)
            asks = True
        self._waiting = Quota(_MAX_WAITING if asks else _MAX_WAITING_FOR_KEYS, _MAX_WAITING_BYTES)
        self._scopes = protect.scopes
        self._logged = -_LOG_SECONDS

    @property
    def kept_bytes(self) -> int:
        """The size of the verified tokens that are kept, estimated."""
        return self._cache.kept_bytes

    def known_client(self, headers: Mapping[str, str]) -> Client | None:
        """Return the client whose token was verified not long ago; None if there is none."""
        credentials = headers.get("authorization")
        return None if credentials is None else self._cache.find(credentials)

    async def client(self, headers: Mapping[str, str], send: Send, *, owner: str, is_sse: bool) -> Client | None:
        """Return the client that the token of a request belongs to; refuse the request and return None if it has none.

        Args:
            headers: Of the request.
            send: Of ASGI.
            owner: What the request counts for until its user is known: the address of the client.
            is_sse: Whether the request is for HTTP+SSE.
        """
        credentials = headers.get("authorization")
        more = (_CLOSE,) if _has_long_body(headers) else ()
        if credentials is None or credentials[:7].lower() != "bearer ":
            await self._refuse(send, 401, "the request needs an access token", is_sse=is_sse, headers=more)
            return None
        token = credentials[7:].strip(" ")
        if not token or " " in token:
            # RFC 6750, section 3.1: a malformed request gets 400, but a malformed token 401, as all invalid tokens do.
            reason = "the Authorization header does not have exactly one token"
            await self._refuse(send, 400, reason, error="invalid_request", is_sse=is_sse, headers=more)
            return None
        credentials = f"Bearer {token}"  # one entry of the cache, however a client writes the header
        known = self._cache.find(credentials)
        if known is not None:
            return known
        try:
            access = await self._access(token, owner, OPEN_REQUEST_BYTES + headers_bytes(headers))
        except InvalidToken as invalid:
            await self._refuse(send, 401, str(invalid), error="invalid_token", is_sse=is_sse, headers=more)
            return None
        except IssuerUnavailable as unavailable:
            self._log(unavailable)
            reason = "the token cannot be verified now; try again later"
            await responses.send_error(send, 503, reason, headers=(responses.RETRY_AFTER, *more))
            return None
        client = Client(access.user, f"user {access.user}", True, access, self._protect.hide, access_bytes(access))  # noqa: FBT003 (it is known)
        self._cache.add(credentials, client, access.expires_at)
        return client

    def _log(self, unavailable: IssuerUnavailable) -> None:
        """Log that tokens cannot be verified, but not for each request."""
        now = self._clock()
        if abs(now - self._logged) >= _LOG_SECONDS:  # the clock of the system may go back
            self._logged = now
            _LOG.error("tokens cannot be verified: %s", unavailable)

    async def _access(self, token: str, owner: str, size: int) -> Access:
        """Return what *token* allows; the addresses of clients share the requests that wait for it, of *size* bytes.

        Raises:
            InvalidToken: It is not valid.
            IssuerUnavailable: Whether it is valid cannot be found out now.
        """
        if len(token) > _MAX_TOKEN_CHARS or _TOKEN.fullmatch(token) is None:
            raise InvalidToken("the token has characters that no token has, or is too long")
        found = await self._in_share(token, owner, size)
        if found is None:
            raise InvalidToken("the token is not valid")
        return replace(found, scopes=self._protect.granted(found.scopes))

    async def _in_share(self, token: str, owner: str, size: int) -> Access | None:
        scope = anyio.CancelScope()
        entry = self._waiting.admit(owner, size, give_way=scope.cancel)
        if entry is not None:
            try:
                with scope:
                    return await self._verify(token)
            finally:
                entry.release()
        raise IssuerUnavailable("too many tokens are being verified")

    def allows(self, access: Access, scopes: Iterable[str]) -> bool:
        """Return whether *access* has *scopes*, and those that all requests need."""
        return self._scopes <= access.scopes and access.scopes.issuperset(scopes)

    async def refuse_scopes(
        self,
        send: Send,
        access: Access,
        scopes: Iterable[str],
        *,
        request_id: RequestId | UnsetType = UNSET,
        is_sse: bool = False,
    ) -> bool:
        """Refuse a request that needs *scopes*, and return True, if *access* lacks one of them.

        The challenge names all scopes that the request needs, so that the client asks for them at once.
        """
        if self.allows(access, scopes):
            return False
        needed = self._scopes.union(scopes)
        reason = f"the request needs the scopes {', '.join(access.missing(needed))}"
        await self._refuse(
            send, 403, reason, error="insufficient_scope", scopes=needed, is_sse=is_sse, request_id=request_id
        )
        return True

    async def _refuse(  # noqa: PLR0913 (the parts of an answer)
        self,
        send: Send,
        status: int,
        reason: str,
        *,
        is_sse: bool,
        error: str = "",
        scopes: Iterable[str] | None = None,
        request_id: RequestId | UnsetType = UNSET,
        headers: tuple[Header, ...] = (),
    ) -> None:
        challenge = bearer_challenge(
            self.metadata.sse_url if is_sse else self.metadata.url,
            scopes=self._scopes if scopes is None else scopes,
            error=error,
            description=reason if error else "",
        )
        lines = ((b"www-authenticate", challenge), *headers)
        await responses.send_error(send, status, reason, request_id=request_id, headers=lines)


async def _checked(verify: Verify, clock: Callable[[], float], token: str) -> Access | None:
    """Call the function of an author, and check what it returns.

    Raises:
        InvalidToken: The token has expired, or belongs to no user and no client.
        IssuerUnavailable: The function failed.
    """
    try:
        found: Any = await verify(token)
    except Exception as error:  # noqa: BLE001 (the boundary: a function of the author)
        # Neither the message nor the traceback, which could show the token.
        raise IssuerUnavailable(f"the function `verify` raised {type(error).__name__}") from None
    if found is None:
        return None
    if not isinstance(found, Access) or isinstance(found.scopes, str):
        raise IssuerUnavailable("the function `verify` must return an Access with a set of scopes, or None")
    if not found.subject and not found.client_id:
        raise InvalidToken("the token names neither a subject nor a client")
    if found.expires_at is not None and not found.expires_at > clock():  # a NaN is no time in the future either
        raise InvalidToken("the token has expired")
    return found


def _has_long_body(headers: Mapping[str, str]) -> bool:
    length = headers.get("content-length", "0")
    is_short = length.isdecimal() and len(length) < 10 and int(length) <= _MAX_DISCARDED_BYTES  # noqa: PLR2004 (digits)
    return "transfer-encoding" in headers or not is_short
