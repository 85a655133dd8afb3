"""Checks of messages against their revision. `mcpgen trace` shows the findings, and `mcpgen.testing` fails a test.

`tracer.Tracer` is a state machine without I/O and clock: frames in, annotations out.
"""

from __future__ import annotations

__all__: list[str] = []
