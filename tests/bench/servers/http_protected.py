"""Our server with access tokens, as `mcpgen serve` runs it, but with the rate limit of ``http_served.py``.

One token is valid. It is verified with the first request, and then known, as those of a real issuer are.
"""

from __future__ import annotations

import sys

from http_served import HIGH
from ours import server

from mcpgen import Access, Protect
from mcpgen.runtime.http.server import uvicorn_server
from mcpgen.runtime.limits import HttpLimits


async def verify(token: str) -> Access | None:
    """Return what the token allows."""
    claims = {"iss": "https://login.example.com", "sub": "ann", "client_id": "bench", "scope": "echo"}
    found = Access(subject="ann", client_id="bench", scopes=frozenset({"echo"}), claims=claims)
    return found if token == sys.argv[1] else None


if __name__ == "__main__":
    auth = Protect(
        resource="https://mcp.example.com/mcp", issuers=["https://login.example.com"], scopes=["echo"], verify=verify
    )
    uvicorn_server.serve_http(server, "127.0.0.1:0", {"limits": HttpLimits(rate_limit=HIGH), "auth": auth})
