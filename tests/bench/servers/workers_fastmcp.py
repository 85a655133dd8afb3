"""FastMCP for ``uvicorn --workers``: stateless, as it advises for several workers, and with answers in JSON."""

from __future__ import annotations

from http_fastmcp import server

app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
