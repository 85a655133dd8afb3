"""Parameters that HTTP repeats in headers: ``Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]``.

A client drops a tool whose annotations break the rules, without a word to its author; so they are checked here.

Spec: 2026-07-28, server/tools#x-mcp-header and
basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from __future__ import annotations

from typing import Any

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.param_headers import InvalidParamHeader, Rule, param_headers_of

__all__ = ["check_headers"]


def check_headers(schema: dict[str, Any], label: str) -> None:
    """Check the headers that the schema of a function's arguments asks for.

    Raises:
        UsageError: One breaks the rules.
    """
    try:
        param_headers_of(schema)
    except InvalidParamHeader as error:
        raise UsageError(_in_words_of_python(error, label)) from error


def _in_words_of_python(error: InvalidParamHeader, label: str) -> str:
    what = f"parameter {'.'.join(error.path or ())!r} of {label}"
    match error.rule:
        case Rule.NAME:
            return f"{what} asks for the header {error.header!r}, which is no name of a header"
        case Rule.TYPE:
            return f"{what} asks for a header, which only str, int and bool can be in"
        case Rule.UNIQUE:
            return f"{what} asks for the header {error.header!r}, as does {'.'.join(error.other or ())!r}"
        case Rule.PLACE:
            return f"{label} asks for a header inside of a parameter; only a parameter itself can be in one"
