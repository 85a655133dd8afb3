"""The access tokens of one connection: which one a request carries, when it is refreshed, and when a login is needed.

Theory of operation. A request goes out with the token that the store has, or with none. The server's challenge decides
what follows: a refresh, a login, or a login for more scopes. All requests that are refused meanwhile wait for the same
task, which belongs to the connection: a call that is cancelled does not end the login that others wait for. While they
wait, the clocks of their calls stand still.

The task holds the lock of the store, which reaches across processes. First it reads the tokens again: another program
may have just got new ones.

Spec:
    2026-07-28, basic/authorization, "Error Handling" and "Refresh Tokens"; and
    basic/authorization/client-registration, "Authorization Server Binding".
"""

from __future__ import annotations

import copy
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Struct, structs

from mcpgen.runtime.errors import McpgenError
from mcpgen.runtime.http.auth.discovery import resource_metadata_urls
from mcpgen.runtime.http.auth.issuers import ScopeRefused
from mcpgen.runtime.http.auth.proofs import MAX_NONCE_CHARS, NONCE_ERROR, ProofKey
from mcpgen.runtime.http.auth.scopes import needs_step_up, selected_scopes, step_up_scopes
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard
from mcpgen.runtime.http.client.auth.attempts import Logins
from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
from mcpgen.runtime.http.client.auth.bindings import bound_issuer, check_binding
from mcpgen.runtime.http.client.auth.code_login import CodeLogin, login_page
from mcpgen.runtime.http.client.auth.credentials import OAuth, tokens_key
from mcpgen.runtime.http.client.auth.machine_grants import machine_tokens
from mcpgen.runtime.http.client.auth.server_discovery import discover
from mcpgen.runtime.http.client.auth.token_refresh import refreshed_tokens
from mcpgen.runtime.http.client.auth.token_store import MemoryTokenStore, stored_tokens
from mcpgen.runtime.http.errors import LoginFailed, LoginNeeded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from mcpgen.runtime.http.auth.challenges import Challenge
    from mcpgen.runtime.http.auth.grants import Tokens
    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.auth.attempts import Attempts
    from mcpgen.runtime.http.client.auth.credentials import Credentials
    from mcpgen.runtime.http.client.auth.server_discovery import Discovery
    from mcpgen.runtime.http.client.auth.token_store import TokenStore
    from mcpgen.runtime.transports.spawner import Group

__all__ = ["AccessTokens"]

_FORBIDDEN: Final = 403

# 2026-07-28, basic/authorization, "Step-Up Authorization Flow": "no more than a few times".
_MAX_STEP_UPS: Final = 2

# Requests that need different scopes wait for each other, and are sent again each time. A server that refuses a hundred
# of them again and again would get ten thousand requests.
_MAX_REFUSALS: Final = 16

# 2025-06-18 and later, basic/authorization, "Overview": clients MUST use the protected resource metadata.
_NO_RESOURCE_METADATA: Final = (
    "the server does not name its authorization server; its operator has to add protected resource metadata"
)
_OR_LEGACY: Final = ", or `revisions` has to allow 2025-03-26, which needs none"
_NEW_BUT_REFUSED: Final = "the server refuses the token that was issued for it just now; its operator can say why"


class _Flight(Struct, eq=False):
    """Work that all refused requests wait for."""

    done: anyio.Event
    failure: Exception | None = None


class AccessTokens:
    """The tokens of one connection.

    Attributes:
        pausing: Returns a block in which the clocks of calls stand still.
        on_change: Called when the next request will carry other tokens than the last one.

    Args:
        credentials: The choices of the program.
        address: The URL of the MCP server.
        group: Runs logins.
        allows_legacy: Whether the login may follow the rules of 2025-03-26.
    """

    def __init__(self, credentials: Credentials, address: Address, group: Group, *, allows_legacy: bool = True) -> None:
        self.pausing: Callable[[], AbstractContextManager[object]] = nullcontext
        self.on_change: Callable[[], None] = lambda: None
        self._credentials = credentials
        self._address = address
        self._group = group
        self._allows_legacy = allows_legacy
        self._store: TokenStore = credentials.store if isinstance(credentials, OAuth) else MemoryTokenStore()
        self._key = tokens_key(credentials, address)
        self._guard = AddressGuard(address.url, [credentials.issuer or ""])
        self._requests = AuthRequests(self._guard)
        self._tokens: Tokens | None = None
        self._last: Tokens | None = None  # the same, or those before
        self._proof_key: ProofKey | None = None
        self._nonce: str | None = None
        self._metadata_url: str | None = None  # of the resource, as a challenge has named it last
        self._is_loaded = False
        self._stored_token = ""  # the access token that the store has, unless another program has changed it
        self._is_closed = False
        self._has_no_server = False  # whether no authorization server was found, and no person can be asked
        self._refused = ""  # the last access token that was refused although it was new
        self._refreshed = ""  # the access token of the last refresh
        self._has_vain_login = False  # whether another token than that was refused although it was new
        self._logins = Logins()
        self._flight: _Flight | None = None

    def close(self) -> None:
        """Get no more tokens: the connection is being closed."""
        self._is_closed = True

    async def tokens(self, attempts: Attempts) -> Tokens | None:
        """Return the tokens for a request; None if there are none yet.

        They may have expired. If they could not be refreshed, the authorization server may have another token endpoint
        now, or the MCP server another authorization server. The server's 401 leads to both.

        Args:
            attempts: What was tried for this request.
        """
        if not self._is_loaded:
            self._use(await self._stored())
            self._is_loaded = True
        tokens = self._tokens
        if tokens is None or self._is_closed or tokens.is_fresh(time.time()):
            return tokens
        try:
            await self._once(lambda: self._refresh_expired(tokens))
        except LoginFailed as failure:
            attempts.failure = failure
        return self._tokens

    def header_lines(self, tokens: Tokens, verb: str, url: str) -> list[tuple[str, str]]:
        """Return the headers with which a request carries *tokens*."""
        if tokens.key is None or self._proof_key is None:
            return [("authorization", f"Bearer {tokens.access_token}")]
        proof = self._proof_key.proof(verb, url, now=time.time(), token=tokens.access_token, nonce=self._nonce)
        return [("authorization", f"DPoP {tokens.access_token}"), ("dpop", proof)]

    def note_nonce(self, nonce: str | None) -> None:
        """Keep the nonce of a response for the next proof."""
        if nonce and len(nonce) <= MAX_NONCE_CHARS and nonce.isascii() and nonce.isprintable():
            self._nonce = nonce

    def reaction(
        self, status: int, challenge: Challenge | None, used: Tokens | None, attempts: Attempts
    ) -> Callable[[], Awaitable[None]] | None:
        """Return what to do before the request is sent again, after its response *status*; None if it is final.

        What to do raises `LoginNeeded` if a person has to log in, but may not be asked; and `LoginFailed`.

        Args:
            status: The status of the response.
            challenge: Its challenge; None if it has none for access tokens.
            used: The tokens that the request carried.
            attempts: What was tried for this request before.

        Raises:
            LoginFailed: The server refuses new tokens, too.
        """
        if self._is_closed or self._has_no_server:
            return None
        if status == _FORBIDDEN:
            return self._reaction_to_forbidden(challenge, used, attempts)
        if challenge is not None and challenge.error == NONCE_ERROR and not attempts.has_nonce and self._nonce:
            attempts.has_nonce = True
            return anyio.lowlevel.checkpoint  # the nonce is known
        if attempts.has_token:
            self._refused = "" if used is None else used.access_token
            # The token of a login may be accepted where that of a refresh is not.
            self._has_vain_login |= self._refused != self._refreshed
            if self._has_vain_login or attempts.has_login:
                raise LoginFailed(_NEW_BUT_REFUSED)
            attempts.has_login = True
        attempts.has_token = True
        return lambda: self._once(lambda: self._renew(used, challenge, attempts.failure))

    def _reaction_to_forbidden(
        self, challenge: Challenge | None, used: Tokens | None, attempts: Attempts
    ) -> Callable[[], Awaitable[None]] | None:
        if challenge is None or challenge.error != "insufficient_scope" or used is None:
            return None
        if not isinstance(self._credentials, OAuth) and self._credentials.scopes is not None:
            return None  # no person sees what the server wants, so the program's own list is the limit
        attempts.refusals += 1
        if attempts.step_ups >= _MAX_STEP_UPS or attempts.refusals > _MAX_REFUSALS:
            return None
        if self._tokens is used and not needs_step_up(used.scopes, challenge.scopes):
            return None  # the server demands what was requested before
        return lambda: self._once(lambda: self._step_up(used, challenge, attempts))

    # --- one task for all requests that wait

    async def _once(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the running task; start *work* if none runs."""
        flight = self._flight
        if flight is None:
            flight = self._flight = _Flight(anyio.Event())
            self._group.start_soon(self._run, flight, work)
        with self.pausing():
            await flight.done.wait()
        if flight.failure is not None:
            raise copy.copy(flight.failure) from flight.failure.__cause__

    async def _run(self, flight: _Flight, work: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self._store.lock(self._key) if await self._may_save() else nullcontext():
                await work()
        except McpgenError as failure:
            flight.failure = failure
        except Exception as failure:  # noqa: BLE001 (the boundary: a store of the program, or a bug)
            flight.failure = LoginFailed(
                f"{type(failure).__name__} was raised unexpectedly; the `__cause__` of this LoginFailed is that error"
            )
            flight.failure.__cause__ = failure
        except BaseException:
            flight.failure = LoginFailed("the connection was closed; connect again")
            raise
        finally:
            self._flight = None
            flight.done.set()

    async def _may_save(self) -> bool:
        """Return whether there can be new tokens: if there are some to refresh, or a person can be asked."""
        credentials = self._credentials
        may_get = self._tokens is not None or not isinstance(credentials, OAuth) or credentials.interactive
        return may_get or await self._stored() is not None  # those of another program

    async def _refresh_expired(self, expired: Tokens) -> None:
        """Replace tokens that expire soon, if that needs no login; forget expired ones, so that the server asks."""
        newest = await self._newest(expired)
        if _replaces(newest, expired):
            return
        expired = newest or expired
        if expired.resource is None and not self._allows_legacy:
            # A refresh would name no resource. Other programs may refresh the tokens, so they stay in the store.
            if expired.has_expired(time.time()):
                self._use(None)
            return
        refreshed = await refreshed_tokens(self._credentials, self._requests, expired)
        if refreshed is None and not expired.has_expired(time.time()):
            refreshed = structs.replace(expired, refresh_token=None)  # the access token is valid for some seconds
        await self._keep(refreshed)

    async def _renew(
        self, refused: Tokens | None, challenge: Challenge | None, failure: LoginFailed | None = None
    ) -> None:
        """Replace tokens that the server refuses.

        Args:
            refused: The tokens.
            challenge: Of the server.
            failure: Why they could not be refreshed a moment ago.
        """
        newest = await self._newest(refused)
        if _replaces(newest, refused):
            return
        refused, credentials = newest, self._credentials
        found = await self._discover(challenge)
        if found is None:
            self._has_no_server = True
            return
        metadata = found.metadata
        is_vain = refused is not None and refused.access_token == self._refused
        is_same = refused is not None and (refused.issuer, refused.resource) == (metadata.issuer, found.resource)
        if refused is not None and is_same and (not is_vain or self._has_vain_login):
            endpoint = metadata.token_endpoint
            if failure is not None and endpoint == refused.token_endpoint:
                raise failure
            moved = structs.replace(refused, token_endpoint=endpoint, revocation_endpoint=metadata.revocation_endpoint)
            refreshed = await refreshed_tokens(credentials, self._requests, moved)
            if refreshed is not None:
                self._refreshed = refreshed.access_token
                await self._keep(refreshed)
                return
        if is_vain and self._has_vain_login:
            raise LoginFailed(_NEW_BUT_REFUSED)  # another login would end the same way
        challenged = () if challenge is None else challenge.scopes
        # Programs need no refresh tokens.
        listed = metadata.scopes_supported if isinstance(credentials, OAuth) else None
        scopes = selected_scopes(credentials.scopes, challenged, found.scopes, listed)
        last = refused or self._last
        wanted = scopes
        if last is not None and last.issuer == metadata.issuer and isinstance(credentials, OAuth):
            wanted = step_up_scopes(last.scopes, scopes)  # or the next call would need another login
        try:
            await self._obtain(found, wanted, challenge)
        except ScopeRefused:
            if wanted == scopes:
                raise
            await self._obtain(found, scopes, challenge)  # some of the earlier ones may not exist any more

    async def _step_up(self, used: Tokens, challenge: Challenge, attempts: Attempts) -> None:
        """Get tokens that have the scopes of *challenge*, too."""
        if not _replaces(await self._newest(used), used):
            attempts.step_ups += 1
            found = await self._discover(challenge, allows_legacy=used.resource is None)
            if found is not None:
                await self._obtain(found, step_up_scopes(used.scopes, challenge.scopes), challenge)

    async def _newest(self, used: Tokens | None) -> Tokens | None:
        """Return the tokens that another task or program has got after *used*, and keep them; *used* if there are none.

        Expired tokens are returned if they have a refresh token, because the one of *used* cannot be used again.
        """
        stored = await self._stored()
        token = "" if stored is None else stored.access_token
        # If the tokens of this program could not be stored, the store has older ones, which are not newer than these.
        is_changed, self._stored_token = token not in ("", self._stored_token), token
        newest = stored if is_changed or self._tokens is None else self._tokens
        if newest is None or (newest.refresh_token is None and not newest.is_fresh(time.time())):
            return used
        self._use(newest)
        return newest

    # --- tokens

    async def _discover(self, challenge: Challenge | None, *, allows_legacy: bool = True) -> Discovery | None:
        """Return the authorization server; None if there is none, and no person could be asked anyway."""
        self._guard.check_url(self._address.url, "the URL of the server")  # others could read the tokens of plain http
        named = None if challenge is None else challenge.resource_metadata
        known = self._metadata_url = named or self._metadata_url  # a challenge for more scopes need not repeat it
        urls = resource_metadata_urls(self._address.url, named)
        urls += [] if known is None or known in urls else [known]
        credentials, allows = self._credentials, allows_legacy and self._allows_legacy
        bound = await bound_issuer(credentials, self._address.url)
        used = bound if bound is not None or self._last is None else self._last.issuer
        found = await discover(
            self._requests, self._address.url, urls, credentials.issuer, known=used, allows_legacy=allows
        )
        if found is None and (not isinstance(credentials, OAuth) or credentials.interactive):
            raise LoginFailed(_NO_RESOURCE_METADATA + ("" if self._allows_legacy else _OR_LEGACY))
        return found

    async def _obtain(self, found: Discovery, scopes: tuple[str, ...], challenge: Challenge | None) -> None:
        credentials = self._credentials
        needs_dpop = found.needs_dpop or (challenge is not None and challenge.scheme == "dpop")
        key = ProofKey() if credentials.dpop == "on" or (credentials.dpop == "auto" and needs_dpop) else None
        if not isinstance(credentials, OAuth):
            await check_binding(credentials, self._address.url, found.metadata.issuer)
            tokens = await machine_tokens(credentials, found, self._requests, key, scopes)
        elif credentials.interactive:
            await check_binding(credentials, self._address.url, found.metadata.issuer)
            self._logins.count(time.monotonic())
            tokens = await CodeLogin(credentials, found, self._requests, self._guard, key).run(scopes)
        elif found.is_guess:
            self._has_no_server = True  # the 401 itself says best what is wrong
            return
        else:
            login_page(found.metadata)  # without one, `mcpgen login` does not help
            raise LoginNeeded(self._address.shown, shares_tokens=credentials.shares_tokens)
        await self._keep(tokens)

    async def _stored(self) -> Tokens | None:
        """Return the stored tokens; None if there are none, or not such as the program demands."""
        found, credentials = await stored_tokens(self._store, self._key), self._credentials
        if found is None or credentials.client_id not in (None, found.client.client_id):
            return None
        is_unbound = credentials.dpop == "on" and found.key is None
        return None if is_unbound or credentials.issuer not in (None, found.issuer) else found

    async def _keep(self, tokens: Tokens | None) -> None:
        """Use and store *tokens*.

        Raises:
            LoginFailed: They are not bound to a key, although the program demands it.
        """
        if tokens is not None and tokens.key is None and self._credentials.dpop == "on":
            raise LoginFailed("the authorization server has not bound the token to the key; pass dpop='auto'")
        self._use(tokens)
        await self._store.save(self._key, None if tokens is None else msgspec.json.encode(tokens))
        self._stored_token = "" if tokens is None else tokens.access_token

    def _use(self, tokens: Tokens | None) -> None:
        self._tokens = tokens
        self._last = tokens or self._last
        self.on_change()
        self._proof_key = None if tokens is None or tokens.key is None else ProofKey(tokens.key)


def _replaces(newest: Tokens | None, used: Tokens | None) -> bool:
    """Return whether *newest* are fresh, and others than *used*."""
    is_same = used is not None and newest is not None and newest.access_token == used.access_token
    return newest is not None and not is_same and newest.is_fresh(time.time())
