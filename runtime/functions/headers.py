"""Parameters that HTTP repeats in headers: ``Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]``.

A client drops a tool whose annotations break the rules, without a word to its author; so they are checked here.

Spec: 2026-07-28, server/tools#x-mcp-header and
basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from __future__ import annotations

import re
from typing import Any, cast

from mcpgen.runtime.errors import UsageError

__all__ = ["check_headers"]

KEY = "x-mcp-header"
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2
PRIMITIVES = frozenset({"string", "integer", "boolean"})


def check_headers(schema: dict[str, Any], label: str) -> None:
    """Check the headers that the schema of a function's arguments asks for.

    Raises:
        UsageError: One breaks the rules.
    """
    properties: dict[str, dict[str, Any]] = schema["properties"]
    taken: dict[str, str] = {}
    for name, each in properties.items():
        if KEY not in each:
            continue
        what, header = f"parameter {name!r} of {label}", each[KEY]
        if not isinstance(header, str) or not TOKEN.fullmatch(header):
            raise UsageError(f"{what} asks for the header {header!r}, which is no name of a header")
        if each.get("type") not in PRIMITIVES:
            raise UsageError(f"{what} asks for a header, which only str, int and bool can be in")
        if other := taken.get(header.lower()):
            raise UsageError(f"{what} asks for the header {header!r}, as does {other!r}")
        taken[header.lower()] = name
    beyond = [{key: value for key, value in each.items() if key != KEY} for each in properties.values()]
    if _asks([beyond, schema.get("$defs", {})]):
        raise UsageError(f"{label} asks for a header inside of a parameter; only a parameter itself can be in one")


def _asks(value: object) -> bool:
    """Whether a schema, or one in it, asks for a header."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return KEY in members or any(map(_asks, members.values()))
    return isinstance(value, list) and any(map(_asks, cast("list[object]", value)))
