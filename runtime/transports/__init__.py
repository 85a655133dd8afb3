"""Transports: shells that move frames between an endpoint and its peer, and know nothing of what they mean.

`mcpgen.runtime.transports.stdio` moves them over descriptors, `mcpgen.runtime.transports.memory` within a process.
"""

from __future__ import annotations

from mcpgen.runtime.transports.interfaces import Connectable, Endpoint, Endpoints, Writer

__all__ = ["Connectable", "Endpoint", "Endpoints", "Writer"]
