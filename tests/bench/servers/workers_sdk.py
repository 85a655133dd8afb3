"""The official SDK for ``uvicorn --workers``: stateless, and with answers in JSON, which costs it the least."""

from __future__ import annotations

from mcp_types import CallToolRequestParams
from sdk import ECHO, call_tool, server

server.get_tool_input_schema = lambda _name: ECHO.input_schema
server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
app = server.streamable_http_app(streamable_http_path="/mcp", json_response=True, stateless_http=True)
