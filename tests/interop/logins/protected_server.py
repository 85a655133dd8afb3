"""A server of MCP that asks an authorization server of others about each token."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any

import httpx

from mcpgen import Server

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["ProtectedServer"]

METADATA = "/.well-known/oauth-protected-resource/mcp"


class ProtectedServer:
    """The application: a server at ``/mcp``, and its metadata.

    Attributes:
        issuer: The authorization server.
        schemes: The schemes with which tokens came.
        claims: What the authorization server said of each token.
        refused: Tokens that are refused, as after a revocation.
        needed: The scope that a call needs.

    Args:
        origin: Where it is served.
    """

    def __init__(self, origin: str) -> None:
        server = Server("protected")

        @server.tool
        def greet(name: str) -> str:
            return f"Hello, {name}!"

        self.app: Any = server.asgi()
        self.url = f"{origin}/mcp"
        self.issuer = ""
        self.schemes: list[str] = []
        self.claims: list[dict[str, Any]] = []
        self.refused: set[str] = set()
        self.needed = "read"
        self._origin = origin

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == METADATA:
            document = {
                "resource": self.url,
                "authorization_servers": [self.issuer],
                "scopes_supported": ["read"],
            }
            await _answer(send, 200, {"content-type": "application/json"}, json.dumps(document).encode())
        elif (challenge := await self._challenge(scope)) is not None:
            await _answer(send, *challenge, b"")
        else:
            await self.app(scope, receive, send)

    async def _challenge(self, scope: MutableMapping[str, Any]) -> tuple[int, dict[str, str]] | None:
        """Return the status and the headers of a refusal; None if the request may pass."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        scheme, _, token = headers.get("authorization", "").partition(" ")
        link = f'Bearer resource_metadata="{self._origin}{METADATA}"'
        if not token or token in self.refused:
            return 401, {"www-authenticate": link}
        claims = await self._introspected(token)
        audience = claims.get("aud")
        if not claims.get("active") or self.url not in (audience if isinstance(audience, list) else [audience]):
            return 401, {"www-authenticate": link}
        if ("cnf" in claims) != (scheme == "DPoP") or (scheme == "DPoP" and _is_foreign(headers["dpop"], claims)):
            return 401, {"www-authenticate": link}
        self.schemes.append(scheme)
        self.claims.append(claims)
        if headers.get("mcp-method") == "tools/call" and self.needed not in claims["scope"].split():
            return 403, {"www-authenticate": f'{link}, error="insufficient_scope", scope="{self.needed}"'}
        return None

    async def _introspected(self, token: str) -> dict[str, Any]:
        if token.count(".") == 2:
            return {"active": True, **_part(token, 1)}  # the suite for servers verifies signatures
        async with httpx.AsyncClient(auth=("resource", "s3cret")) as client:
            reply = await client.post(f"{self.issuer}/token/introspection", data={"token": token})
        found: dict[str, Any] = reply.json()
        return found


def _is_foreign(proof: str, claims: dict[str, Any]) -> bool:
    """Return whether the key of *proof* is not the one to which the token is bound, by RFC 7638."""
    from hashlib import sha256

    from mcpgen.runtime.http.auth.pkce import unpadded

    jwk = _part(proof, 0)["jwk"]
    named = json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
    return unpadded(sha256(named.encode()).digest()) != claims["cnf"]["jkt"]


def _part(token: str, number: int) -> dict[str, Any]:
    part = token.split(".")[number]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


async def _answer(send: Any, status: int, headers: dict[str, str], body: bytes) -> None:
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
