"""Functions as tools, resources, prompts and completions: their schemas, their calls, and what becomes of results."""

from __future__ import annotations

from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.resources import ResourceNotFound
from mcpgen.runtime.server.functions.tools import ToolError

__all__ = ["FunctionHandlers", "ResourceNotFound", "ToolError"]
