"""Looking on at a conversation of MCP: what each message is, to which revision it belongs, and what is wrong with it.

No bytes are moved here, and no clock is read: `mcpgen.runtime.cli.trace_command` does both.
"""

from __future__ import annotations

from mcpgen.runtime.cli.trace.annotations import Annotation, Direction, Finding
from mcpgen.runtime.cli.trace.tracer import Tracer

__all__ = ["Annotation", "Direction", "Finding", "Tracer"]
