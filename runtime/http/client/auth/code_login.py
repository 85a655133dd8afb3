"""The authorization code flow: a person logs in, and the client gets tokens.

Spec:
    2026-07-28, basic/authorization, "Authorization Flow Steps"; RFC 8252; RFC 7636; RFC 9207.
"""

from __future__ import annotations

import secrets
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from mcpgen.runtime.http.auth.grants import code_form, decode_error
from mcpgen.runtime.http.auth.issuers import AuthorizationRequest, ScopeRefused, code_of_response, has_state
from mcpgen.runtime.http.auth.pkce import check_pkce, code_challenge
from mcpgen.runtime.http.auth.registration import (
    BASIC,
    Registration,
    decode_registration,
    registration_kind,
    registration_request,
    secret_method,
)
from mcpgen.runtime.http.auth.scopes import OFFLINE
from mcpgen.runtime.http.client.auth.credentials import client_key
from mcpgen.runtime.http.client.auth.loopback_receiver import open_receiver
from mcpgen.runtime.http.client.auth.page_visit import NoResponse, page_response
from mcpgen.runtime.http.client.auth.server_discovery import NO_SERVER
from mcpgen.runtime.http.client.auth.token_endpoint import INVALID_CLIENT, TokenEndpoint, TokenRefused
from mcpgen.runtime.http.client.auth.token_store import stored_client
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.auth.discovery import ServerMetadata
    from mcpgen.runtime.http.auth.grants import Tokens
    from mcpgen.runtime.http.auth.proofs import ProofKey
    from mcpgen.runtime.http.auth.registration import RegistrationKind
    from mcpgen.runtime.http.client.auth.address_guard import AddressGuard
    from mcpgen.runtime.http.client.auth.auth_requests import AuthReply, AuthRequests
    from mcpgen.runtime.http.client.auth.credentials import OAuth
    from mcpgen.runtime.http.client.auth.loopback_receiver import LoopbackReceiver
    from mcpgen.runtime.http.client.auth.server_discovery import Discovery

__all__ = ["CodeLogin", "login_page"]

# Metadata of a hostile server can name the login page of another one. With such a parameter in its URL, that page would
# issue a token for another resource or another client.
_RESERVED: Final = frozenset({"prompt", "request", "request_uri", "resource", "response_mode", "scope"})

# Browsers and commands take this much. The scopes and the id of the client come from servers.
_MAX_URL_CHARS: Final = 16 * 1024


class CodeLogin:
    """One login.

    Args:
        oauth: The choices of the program.
        found: The authorization server.
        requests: Makes the requests.
        guard: Checks the URL of the login page.
        key: The key to bind tokens to; None for bearer tokens.
    """

    def __init__(
        self, oauth: OAuth, found: Discovery, requests: AuthRequests, guard: AddressGuard, key: ProofKey | None
    ) -> None:
        self._oauth = oauth
        self._found = found
        self._metadata = found.metadata
        self._requests = requests
        self._guard = guard
        self._key = key
        self._is_new = False  # whether the client has registered for this login

    async def run(self, scopes: Sequence[str]) -> Tokens:
        """Let the person log in, and return tokens for *scopes*.

        Raises:
            LoginFailed: The login has failed, or took too long.
        """
        # 2025-03-26, "Fallbacks for Servers without Metadata Discovery": there is no metadata to check.
        if not self._found.is_guess and not self._oauth.assume_pkce:
            check_pkce(self._metadata)
        self._guard.check_url(self._metadata.token_endpoint, "the token endpoint")  # before a person is asked
        login_page(self._metadata)  # before the client registers
        known = await self._stored_client()
        port = 0 if known is None else urlsplit(known.redirect_uri).port or 0
        async with AsyncExitStack() as stack:
            redirect_uri, receiver = self._oauth.redirect_uri, None
            if redirect_uri is None or redirect_uri.startswith("http://"):
                receiver = await stack.enter_async_context(open_receiver(redirect_uri, port))
                redirect_uri = receiver.redirect_uri
            client = known
            if client is None or (client.redirect_uri and client.redirect_uri != redirect_uri):
                client = await self._new_client(redirect_uri)
            try:
                try:
                    return await self._log_in(client, redirect_uri, receiver, scopes)
                except ScopeRefused:
                    if self._kind() != "dynamic" or not scopes:
                        raise
                # Some authorization servers allow only the scopes of the registration, such as those of the Python SDK.
                client = await self._register(redirect_uri, scopes)
                return await self._log_in(client, redirect_uri, receiver, scopes)
            except TokenRefused as refused:
                if refused.error.error == INVALID_CLIENT:  # it was removed there; the next login registers again
                    await self._forget_client()
                raise LoginFailed(f"the token endpoint answered {refused.error}; log in again") from None

    async def _log_in(
        self, client: Registration, redirect_uri: str, receiver: LoopbackReceiver | None, scopes: Sequence[str]
    ) -> Tokens:
        metadata, resource = self._metadata, self._found.resource
        request = AuthorizationRequest(
            issuer=metadata.issuer,
            sends_issuer=bool(metadata.authorization_response_iss_parameter_supported),
            state=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            redirect_uri=redirect_uri,
        )
        waiting = None if receiver is None else receiver.waiting_for(lambda each: has_state(each, request))
        try:
            response_url = await page_response(self._oauth, self._url(request, client, scopes), waiting)
        except NoResponse:
            if not self._is_new:
                await self._forget_client()  # the page may have said that it does not know the client any more
            raise
        code = code_of_response(response_url, request)
        endpoint = TokenEndpoint(self._requests, metadata.token_endpoint, client, key=self._key)
        form = code_form(code=code, redirect_uri=redirect_uri, verifier=request.verifier, resource=resource)
        return await endpoint.tokens(
            form, resource=resource, scopes=scopes, revocation_endpoint=metadata.revocation_endpoint
        )

    def _url(self, request: AuthorizationRequest, client: Registration, scopes: Sequence[str]) -> str:
        """Return the URL of the login page."""
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": request.redirect_uri,
            "state": request.state,
            "code_challenge": code_challenge(request.verifier),
            "code_challenge_method": "S256",
        }
        if scopes:
            query["scope"] = " ".join(scopes)
        if OFFLINE in scopes:
            query["prompt"] = "consent"  # OpenID Connect, section 11: without it, the scope is ignored
        if self._found.resource is not None:
            query["resource"] = self._found.resource
        page = login_page(self._metadata)
        self._guard.check_url(page, "the login page")
        if "#" in page:
            raise LoginFailed("the URL of the login page has a fragment; do not log in")
        url = f"{page}{'&' if '?' in page else '?'}{urlencode(query)}"
        if len(url) > _MAX_URL_CHARS:  # before its parameters are read, each of which takes some microseconds
            raise LoginFailed(
                f"the URL of the login page is longer than {_MAX_URL_CHARS} characters; pass fewer `scopes`"
            )
        if not _RESERVED.union(query).isdisjoint(
            name for name, _ in parse_qsl(urlsplit(page).query, keep_blank_values=True)
        ):
            raise LoginFailed(
                "the URL of the login page has a parameter that only the client may set, such as `scope`; do not log in"
            )
        return url

    # --- the client's id

    @property
    def _client_key(self) -> str:
        return client_key(self._oauth, self._metadata.issuer)

    async def _stored_client(self) -> Registration | None:
        """Return the client of an earlier registration at this authorization server."""
        if self._kind() != "dynamic":
            return None
        found = await stored_client(self._oauth.store, self._client_key)
        if found is None or 0 < found.expires_at <= time.time():
            return None
        return found if found.issuer == self._metadata.issuer else None

    async def _new_client(self, redirect_uri: str) -> Registration:
        oauth, metadata, kind = self._oauth, self._metadata, self._kind()
        if kind == "given" and oauth.client_id is not None:
            method = secret_method(metadata, oauth.client_secret)
            return Registration(metadata.issuer, oauth.client_id, oauth.client_secret, method)
        if kind == "document" and oauth.client_metadata_url is not None:
            return Registration(metadata.issuer, oauth.client_metadata_url)
        return await self._register(redirect_uri)

    async def _register(self, redirect_uri: str, scopes: Sequence[str] = ()) -> Registration:
        metadata = self._metadata
        reply = await self._registration_reply(redirect_uri, scopes)
        error = None if reply.is_success else decode_error(reply.body)
        lists_methods = metadata.token_endpoint_auth_methods_supported is not None
        if error is not None and error.error == "invalid_client_metadata" and not lists_methods:
            # RFC 8414, section 2: without a list, clients authenticate with client_secret_basic. Most take others, too.
            reply = await self._registration_reply(redirect_uri, scopes, BASIC)
            error = None if reply.is_success else decode_error(reply.body)
        if not reply.is_success:
            if self._found.is_guess:
                raise LoginFailed(NO_SERVER)
            said = f"answered {reply.status}" if error is None else f"said: {error}"
            raise LoginFailed(
                f"the client cannot register itself: the authorization server {said}; register it there, and pass "
                "OAuth(client_id=…)"
            )
        made = decode_registration(reply.body, issuer=metadata.issuer, redirect_uri=redirect_uri)
        await self._oauth.store.save(self._client_key, msgspec.json.encode(made))
        self._is_new = True
        return made

    async def _registration_reply(self, redirect_uri: str, scopes: Sequence[str], method: str = "") -> AuthReply:
        name = self._oauth.client_name
        request = registration_request(
            self._metadata, name=name, redirect_uri=redirect_uri, scopes=scopes, method=method
        )
        return await self._requests.post_json(self._metadata.registration_endpoint or "", request)

    async def _forget_client(self) -> None:
        if self._kind() == "dynamic":
            await self._oauth.store.save(self._client_key, None)

    def _kind(self) -> RegistrationKind:
        oauth = self._oauth
        return registration_kind(
            client_id=oauth.client_id, document_url=oauth.client_metadata_url, metadata=self._metadata
        )


def login_page(metadata: ServerMetadata) -> str:
    """Return the URL of the login page.

    Raises:
        LoginFailed: There is none.
    """
    if metadata.authorization_endpoint is None:
        raise LoginFailed(f"the authorization server {metadata.issuer!r} has no login page; use ClientCredentials")
    return metadata.authorization_endpoint
