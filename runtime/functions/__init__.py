"""Functions as tools, resources, prompts and completions: their schemas, their calls, and what becomes of results."""

from __future__ import annotations

from mcpgen.runtime.functions.catalogue import Catalogue
from mcpgen.runtime.functions.resources import ResourceNotFound
from mcpgen.runtime.functions.tools import ToolError

__all__ = ["Catalogue", "ResourceNotFound", "ToolError"]
