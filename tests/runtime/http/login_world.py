"""A protected server and its authorization server in this process, and what they have seen."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx
import uvicorn

from mcpgen import MemoryTokenStore, OAuth, Server
from mcpgen.runtime.http.auth.pkce import code_challenge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, MutableMapping
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")

PRM = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"

# All is plain HTTP, and to load the certificates of the machine takes longer than a login.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def example_server(world: LoginWorld) -> Server:
    """Return a server with a tool that returns, and one that waits."""
    server = Server("protected")

    @server.tool
    async def wait() -> str:
        world.waiting.set()
        await world.gate.wait()
        return "done"

    @server.tool
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    return server


class LoginWorld:
    """A protected server at ``/mcp``, and its authorization server at the same origin.

    Attributes:
        asked: The requests to the authorization server: method and path.
        forms: The forms that the token endpoint has got.
        logins: The queries that the login page has got.
        registrations: What has registered.
        bearers: The values of ``Authorization`` at ``/mcp``.
        queries: The queries of the URLs there.
        valid: The access tokens that the server accepts, with their scopes.
        refreshable: The refresh tokens that the authorization server accepts.
        lifetime: What ``expires_in`` says.
        rotates: Whether a refresh token works only once.
        refusal: The error that the token endpoint answers to a refresh that names the resource, if any.
        needed: The scopes that a call of a tool needs.
        authorizations: The values of ``Authorization`` at the token endpoint.
        proofs: The proofs of DPoP at ``/mcp``.
        nonce: The nonce that both demand in such proofs, if any.
        binds: Whether tokens are bound to the key of a proof.
        is_strict: Whether a client may request only the scopes that it has registered.
        wants_client_id: Whether the token endpoint wants the id of the client in the form, even with HTTP Basic.
        keeps_scopes: Whether a refreshed token has the scopes of the last one.
        waiting: Set when the tool that waits was called.
        gate: What it waits for.
        overrides: Answers by path, for other documents: a status, headers and a body.
    """

    def __init__(self, url: str) -> None:
        self.origin = url
        self.url = f"{url}/mcp"
        self.asked: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.logins: list[dict[str, str]] = []
        self.registrations: list[dict[str, Any]] = []
        self.bearers: list[str] = []
        self.queries: list[str] = []
        self.valid: dict[str, list[str]] = {}
        self.refreshable: set[str] = set()
        self.lifetime: int | None = 3600
        self.rotates = True
        self.refusal = ""
        self.needed: list[str] = []
        self.authorizations: list[str] = []
        self.proofs: list[str] = []
        self.nonce = ""
        self.binds = True
        self.wants_client_id = False
        self.keeps_scopes = False
        self.waiting, self.gate = anyio.Event(), anyio.Event()
        self._last: list[str] = []
        self.is_strict = False
        self.overrides: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.metadata: dict[str, Any] = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "revocation_endpoint": f"{url}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["read", "write", "offline_access"],
        }
        self.resource: dict[str, Any] = {
            "resource": self.url,
            "authorization_servers": [url],
            "scopes_supported": ["read"],
        }
        self._codes: dict[str, dict[str, str]] = {}
        self._app: Any = example_server(self).asgi()

    def oauth(self, **options: Any) -> OAuth:
        """Return credentials whose browser logs in at once."""
        return OAuth(**{"visit": visit, "store": MemoryTokenStore(), **options})

    def revoke(self) -> None:
        """Let the server refuse all access tokens that were issued."""
        self.valid.clear()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path in self.overrides:
            await answer(send, *self.overrides[path])
            self.asked.append(f"{scope['method']} {path}")
            return
        if path == "/mcp":
            await self._serve(scope, receive, send)
            return
        self.asked.append(f"{scope['method']} {path}")
        body = await whole(receive)
        query = fields(scope["query_string"].decode())
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                await answer_json(send, 200, self.resource)
            case "/.well-known/oauth-authorization-server":
                await answer_json(send, 200, self.metadata)
            case "/authorize":
                self.logins.append(query)
                response = urlencode(self._response(query) | {"state": query["state"], "iss": self.metadata["issuer"]})
                await answer(send, 302, {"location": f"{query['redirect_uri']}?{response}"}, b"")
            case "/register":
                self.registrations.append(json.loads(body))
                await answer_json(send, 201, {"client_id": f"client-{len(self.registrations)}"})
            case "/token" | "/moved/token":
                await self._answer_grant(dict(scope["headers"]), fields(body.decode()), send)
            case "/revoke":
                self.forms.append(fields(body.decode()))
                await answer(send, 200, {}, b"")
            case _:
                await answer(send, 404, {}, b"")

    def _response(self, query: dict[str, str]) -> dict[str, str]:
        if self.is_strict:
            client = self.registrations[int(query["client_id"].removeprefix("client-")) - 1]
            if not set(query["scope"].split()) <= set(client.get("scope", "").split()):
                return {"error": "invalid_scope"}
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return {"code": code}

    async def _answer_grant(self, headers: dict[bytes, bytes], form: dict[str, str], send: Any) -> None:
        self.forms.append(form)
        self.authorizations.append(headers.get(b"authorization", b"").decode())
        proof = headers.get(b"dpop", b"").decode()
        if self.wants_client_id and "client_id" not in form:
            await answer_json(send, 401, {"error": "invalid_client", "error_description": "Missing client_id"})
            return
        if self.nonce and self.nonce not in claims_of(proof):
            await answer_json(send, 400, {"error": "use_dpop_nonce"}, {"dpop-nonce": self.nonce})
            return
        status, document = self._token(form)
        await answer_json(send, status, document | ({"token_type": "DPoP"} if proof and self.binds else {}))

    async def _serve(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        authorization = dict(scope["headers"]).get(b"authorization", b"").decode()
        self.bearers.append(authorization)
        self.queries.append(scope["query_string"].decode())
        scopes = self.valid.get(authorization.removeprefix("Bearer ").removeprefix("DPoP "))
        self.proofs.append(dict(scope["headers"]).get(b"dpop", b"").decode())
        if self.nonce and scopes is not None and self.nonce not in claims_of(self.proofs[-1]):
            challenge = 'DPoP error="use_dpop_nonce"'
            await answer(send, 401, {"www-authenticate": challenge, "dpop-nonce": self.nonce}, b"")
            return
        if scopes is None:
            challenge = f'Bearer resource_metadata="{self.origin}{PRM}"'
            await answer(send, 401, {"www-authenticate": challenge}, b"")
            return
        body = await whole(receive)
        if b'"tools/call"' in body and not set(self.needed) <= set(scopes):
            challenge = f'Bearer error="insufficient_scope", scope="{" ".join(self.needed)}"'
            await answer(send, 403, {"www-authenticate": challenge}, b"")
            return
        given = False

        async def again() -> dict[str, Any]:
            nonlocal given
            if given:
                found: dict[str, Any] = await receive()
                return found
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "refresh_token":
            if self.refusal and "resource" in form:
                return 400, {"error": self.refusal}
            if form["refresh_token"] not in self.refreshable:
                return 400, {"error": "invalid_grant"}
            if self.rotates:
                self.refreshable.discard(form["refresh_token"])
            return 200, self._issue(self._last if self.keeps_scopes else ["read"])
        if form["grant_type"].endswith("token-exchange"):
            issued = "urn:ietf:params:oauth:token-type:id-jag"
            return 200, {"access_token": "id.jag.signed", "token_type": "N_A", "issued_token_type": issued}
        if form["grant_type"] != "authorization_code":
            return 200, self._issue(form.get("scope", "").split())
        asked = self._codes.pop(form["code"], None)
        if asked is None or code_challenge(form["code_verifier"]) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, self._issue(asked.get("scope", "").split())

    def _issue(self, scopes: list[str]) -> dict[str, Any]:
        token, refresh = f"access-{secrets.token_urlsafe(8)}", f"refresh-{secrets.token_urlsafe(8)}"
        self.valid[token] = self._last = scopes
        self.refreshable.add(refresh)
        lifetime = {} if self.lifetime is None else {"expires_in": self.lifetime}
        return {"access_token": token, "token_type": "Bearer", "refresh_token": refresh, **lifetime}


async def visit(url: str) -> str:
    """Log in as a browser that shows where it is redirected to."""
    async with httpx.AsyncClient(verify=NO_CERTIFICATES) as browser:
        response = await browser.get(url)
    return response.headers["location"]


async def browse(url: str) -> None:
    """Log in as a browser that follows the redirect."""
    async with httpx.AsyncClient(verify=NO_CERTIFICATES, follow_redirects=True) as browser:
        (await browser.get(url)).raise_for_status()


def login_world() -> AbstractAsyncContextManager[LoginWorld]:
    """Serve a world within the block."""
    return served(LoginWorld)


@asynccontextmanager
async def served(make: Callable[[str], T]) -> AsyncGenerator[T]:
    """Serve the application that *make* returns for its URL within the block."""
    with socket.socket() as wire:
        wire.bind(("127.0.0.1", 0))
        world = make(f"http://127.0.0.1:{wire.getsockname()[1]}")
        app: Any = world
        config = uvicorn.Config(app, lifespan="on", log_level="error", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as group:
            group.start_soon(_serve, server, wire)
            while not server.started:  # noqa: ASYNC110 (uvicorn sets no event)
                await anyio.sleep(0.01)
            try:
                yield world
            finally:
                server.should_exit = True


async def _serve(server: uvicorn.Server, wire: socket.socket) -> None:
    await server._serve([wire])  # `serve` would take the signals of the test run


def fields(text: str) -> dict[str, str]:
    """Return the fields of a form or a query."""
    return {name: values[0] for name, values in parse_qs(text).items()}


def query_of(url: str) -> dict[str, str]:
    """Return the query of *url*."""
    return fields(urlsplit(url).query)


async def whole(receive: Callable[[], Any]) -> bytes:
    """Return the body of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def claims_of(proof: str) -> str:
    """Return the claims of a JWT as JSON; empty if it is none."""
    _, _, rest = proof.partition(".")
    claims = rest.partition(".")[0]
    return base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode()


async def answer_json(send: Any, status: int, document: object, headers: dict[str, str] | None = None) -> None:
    """Answer with a JSON document."""
    lines = {"content-type": "application/json", **(headers or {})}
    await answer(send, status, lines, json.dumps(document).encode())


async def answer(send: Any, status: int, headers: dict[str, str], body: bytes) -> None:
    """Answer a request."""
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
