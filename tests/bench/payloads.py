"""The messages that are timed: JSON texts that are valid, and no less than what real peers send."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

REVISIONS: Final = ("2025-11-25", "2026-07-28")

# What the stateless era adds. A client repeats who it is in every request; a server says how long its answer holds.
_CLIENT: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "title": "A benchmark", "version": "1.2.3"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "sampling": {}},
}
_COMPLETE: Final = {"resultType": "complete"}
_CACHED: Final = {**_COMPLETE, "ttlMs": 60_000, "cacheScope": "private"}

_BYTES: Final = base64.b64encode(bytes(range(192))).decode()


def request(revision: str) -> bytes:
    """Return a small tools/call request, with no more metadata than its era demands."""
    return _request(_CLIENT if _is_stateless(revision) else {}, {"city": "Zürich"})


def followed_request(revision: str) -> bytes:
    """Return a tools/call request with more arguments, of which the client wants to see the progress."""
    meta = {"progressToken": "p-17", **(_CLIENT if _is_stateless(revision) else {})}
    units = {"temperature": "C", "wind": "km/h"}
    return _request(meta, {"city": "Zürich", "days": 3, "units": units, "tags": ["now", "later"]})


def _request(meta: Mapping[str, Any], arguments: Mapping[str, Any]) -> bytes:
    params = {"name": "weather", "arguments": arguments, **({"_meta": meta} if meta else {})}
    return _json({"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": params})


def tool_result(revision: str) -> bytes:
    """Return a CallToolResult of 11 blocks: each of the five kinds twice, and a third text."""
    note = {"audience": ["user"], "priority": 0.8}
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "Line 1: the quick brown fox jumps over the lazy dog."},
        {"type": "text", "text": "Line 2: the quick brown fox jumps over the lazy dog."},
        {"type": "text", "text": "Zeile 3: Fünf große Äpfel.", "annotations": note},
        {"type": "image", "data": _BYTES, "mimeType": "image/png"},
        {"type": "image", "data": _BYTES, "mimeType": "image/jpeg"},
        {"type": "audio", "data": _BYTES, "mimeType": "audio/wav"},
        {"type": "audio", "data": _BYTES, "mimeType": "audio/ogg"},
        {"type": "resource_link", "uri": "file:///src/main.py", "name": "main.py", "mimeType": "text/x-python"},
        {"type": "resource_link", "uri": "file:///README.md", "name": "README.md", "size": 1204},
        {"type": "resource", "resource": {"uri": "file:///a.md", "mimeType": "text/markdown", "text": "# A\n\nBody."}},
        {"type": "resource", "resource": {"uri": "file:///a.png", "mimeType": "image/png", "blob": _BYTES}},
    ]
    return _json({"content": content, "isError": False, **(_COMPLETE if _is_stateless(revision) else {})})


def tool_list(revision: str) -> bytes:
    """Return a ListToolsResult of 100 tools with schemas and annotations."""
    return _json({"tools": [_tool(number) for number in range(100)], **(_CACHED if _is_stateless(revision) else {})})


def _tool(number: int) -> dict[str, Any]:
    properties = {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "fields": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "name": f"search_{number}",
        "title": f"Search collection {number}",
        "description": "Finds the entries of one collection that match a query, best match first.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["query"]},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def _is_stateless(revision: str) -> bool:
    return revision == "2026-07-28"


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
