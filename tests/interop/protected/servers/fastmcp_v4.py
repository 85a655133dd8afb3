"""FastMCP 4 as a protected server. Arguments: its port, and the issuer, or ``itself``.

As its own issuer, it has the authorization server that FastMCP has for tests.
"""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.dependencies import get_access_token

port, issuer = int(sys.argv[1]), sys.argv[2]
origin = f"http://127.0.0.1:{port}"
SCOPE = "files:read"

if issuer == "itself":
    options = ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE])
    auth = InMemoryOAuthProvider(base_url=origin, client_registration_options=options, required_scopes=[SCOPE])
else:
    verifier = IntrospectionTokenVerifier(
        introspection_url=f"{issuer}/token/introspection",
        client_id="files",
        client_secret="of files",  # noqa: S106 (of the tests)
        required_scopes=[SCOPE],
        audience=f"{origin}/mcp",
    )
    auth = RemoteAuthProvider(verifier, [issuer], origin)
server = FastMCP("files", auth=auth)


@server.tool
def whose() -> str:
    """Say whose token it is."""
    access = get_access_token()
    assert access is not None
    return f"{access.claims.get('sub')}: {' '.join(access.scopes)}"


server.run("http", host="127.0.0.1", port=port, show_banner=False)
