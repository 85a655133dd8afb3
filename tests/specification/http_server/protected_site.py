"""A server that demands access tokens, and requests with and without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpgen import Access, Context, Protect, Server
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, initialize, mirrored
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from tests.specification.http_server.asgi_exchange import Exchange, Lines
    from tests.specification.http_server.http_site import Site

RESOURCE = "https://mcp.example.com/mcp"
ISSUER = "https://login.example.com"
METADATA = "/.well-known/oauth-protected-resource"
METADATA_URL = f"https://mcp.example.com{METADATA}/mcp"

ANN = Access(
    subject="ann", client_id="app", issuer=ISSUER, scopes=frozenset({"mcp"}), claims={"email": "a@example.com"}
)
TOKENS: Mapping[str, Access] = {
    "ann": ANN,
    "ann-writes": Access(subject="ann", client_id="app", issuer=ISSUER, scopes=frozenset({"mcp", "files:write"})),
    "ann-elsewhere": Access(subject="ann", client_id="app", issuer="https://other.example.com", scopes=ANN.scopes),
    "ann-app2": Access(subject="ann", client_id="app2", issuer=ISSUER, scopes=ANN.scopes),
    "bob": Access(subject="bob", client_id="app", issuer=ISSUER, scopes=ANN.scopes),
    "poor": Access(subject="ann", client_id="app", issuer=ISSUER),
}


async def verify(token: str) -> Access | None:
    return TOKENS.get(token)


def protect(**changes: Any) -> Protect:
    return Protect(**{"resource": RESOURCE, "issuers": [ISSUER], "scopes": ["mcp"], "verify": verify} | changes)


def files() -> Server:
    """Return a server with a tool, a prompt and resources that need more scopes than others."""
    server = Server("files")

    @server.tool
    def look() -> str:
        return "seen"

    @server.tool(scopes=["files:write"])
    def write(context: Context) -> str:
        return str(context.access and context.access.subject)

    @server.tool
    async def claims(context: Context) -> str:
        assert context.access is not None
        return json.dumps({**context.access.claims, "scopes": sorted(context.access.scopes), "user": context.user})

    @server.prompt(scopes=["files:read"])
    def summary(name: str) -> str:
        return f"Summarize {name}."

    @server.resource("file:secret", scopes=["files:read"])
    def secret() -> str:
        return "secret"

    @server.resource("file:{name}", scopes=["files:list"])
    def one(name: str) -> str:
        return name

    return server


def protected(server: Server | None = None, **options: Any) -> AbstractAsyncContextManager[Site]:
    """Run a server that demands tokens."""
    return site(server or files(), **{"auth": protect()} | options)


def token(value: str) -> Lines:
    return [("Authorization", f"Bearer {value}")]


TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def stateless(method: str, capabilities: Mapping[str, Any] | None = None, /, **params: Any) -> bytes:
    """Return the body of a request of the newest revision."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": STATELESS,
        f"{prefix}clientInfo": {"name": "client", "version": "1"},
        f"{prefix}clientCapabilities": capabilities or {},
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).encode()


async def ask(web: Site, value: str | None, method: str, **params: Any) -> Exchange:
    """Send a request of the newest revision, with a token if there is one."""
    body = stateless(method, **params)
    lines = [JSON, BOTH, *mirrored(json.loads(body)), *(token(value) if value else [])]
    return await web.ask("POST", "/mcp", lines, body)


async def ask_tasks(web: Site, value: str, method: str, **params: Any) -> Exchange:
    """Send a request of the newest revision, as a client of tasks."""
    body = stateless(method, TASKS, **params)
    return await web.ask("POST", "/mcp", [JSON, BOTH, *mirrored(json.loads(body)), *token(value)], body)


async def ask_in_session(web: Site, own: Lines, value: str, method: str, **params: Any) -> Exchange:
    """Send a request in a session."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token(value)], body)


async def session(web: Site, value: str, revision: str) -> Lines:
    """Start a session with a token, and return the header that names it."""
    answer = await web.ask("POST", "/mcp", [JSON, BOTH, *token(value)], initialize(revision))
    assert 200 == answer.status, answer
    return [("Mcp-Session-Id", answer.header("mcp-session-id") or "")]


def challenge(answer: Exchange) -> dict[str, str]:
    """Return the parameters of the challenge in an answer."""
    scheme, _, rest = (answer.header("www-authenticate") or "").partition(" ")
    assert "Bearer" == scheme, answer
    pairs = (each.split("=", 1) for each in rest.split(", ") if "=" in each)
    return {name: value.strip('"') for name, value in pairs}
