"""The official Python SDK, 1.x, as a protected server. Arguments: its port, and the issuer."""

from __future__ import annotations

from introspection import ISSUER, PORT, RESOURCE, SCOPE, Introspection, whose
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP

settings = AuthSettings(
    issuer_url=ISSUER, resource_server_url=RESOURCE, required_scopes=[SCOPE], validate_token_resource=True
)
server = FastMCP("files", port=PORT, auth=settings, token_verifier=Introspection())
server.add_tool(whose)
server.run("streamable-http")
