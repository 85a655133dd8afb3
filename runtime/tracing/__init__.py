"""Looking on at a conversation of MCP: what each message is, to which revision it belongs, and what is wrong with it.

No bytes are moved here, and no clock is read: `mcpgen.runtime.trace_commands` does both.
"""

from __future__ import annotations

from mcpgen.runtime.tracing.annotations import Annotation, Direction, Finding
from mcpgen.runtime.tracing.tracer import Tracer

__all__ = ["Annotation", "Direction", "Finding", "Tracer"]
