"""What the protected servers of the Python SDKs have in common: they ask the authorization server about each token."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

__all__ = ["ISSUER", "ORIGIN", "PORT", "RESOURCE", "SCOPE", "Introspection", "whose"]

PORT = int(sys.argv[1])
ISSUER = sys.argv[2]
ORIGIN = f"http://127.0.0.1:{PORT}"
RESOURCE = f"{ORIGIN}/mcp"
SCOPE = "files:read"


class Introspection:
    """A verifier of tokens, as both SDKs have them."""

    async def verify_token(self, token: str) -> AccessToken | None:
        found = await anyio.to_thread.run_sync(_introspected, token)
        if not found["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=found["client_id"],
            scopes=found["scope"].split(),
            expires_at=found["exp"],
            resource=found["aud"],
            subject=found["sub"],
        )


def whose() -> str:
    """Say whose token it is."""
    access = get_access_token()
    assert access is not None
    return f"{access.subject}: {' '.join(access.scopes)}"


def _introspected(token: str) -> dict[str, Any]:
    credentials = b64encode(b"files:of+files").decode()
    request = Request(f"{ISSUER}/token/introspection", urlencode({"token": token}).encode())  # noqa: S310 (of the tests)
    request.add_header("authorization", f"Basic {credentials}")
    with urlopen(request, timeout=60) as response:  # noqa: S310 (of the tests)
        found: dict[str, Any] = json.load(response)
    return found
