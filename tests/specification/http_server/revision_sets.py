"""Which revisions a rule of HTTP holds in."""

from __future__ import annotations

import pytest

from tests.specification.citation import HANDSHAKES, LABELS, since, spec

__all__ = [
    "BATCHING",
    "NEWEST",
    "POLLING",
    "SESSIONS",
    "STREAMABLE",
    "everywhere",
    "on_both_loops",
    "polling",
    "spec",
    "with_sessions",
    "with_version_header",
]

NEWEST = LABELS[-1]
BATCHING = "2025-03-26"
POLLING = since("2025-11-25", "2026-07-28")

# Streamable HTTP came with 2025-03-26; before, there is HTTP+SSE.
STREAMABLE = since("2025-03-26")
SESSIONS = [each for each in STREAMABLE if each in HANDSHAKES]

on_both_loops = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
everywhere = pytest.mark.parametrize("revision", STREAMABLE)
with_sessions = pytest.mark.parametrize("revision", SESSIONS)
with_version_header = pytest.mark.parametrize("revision", since("2025-06-18", "2026-07-28"))
polling = pytest.mark.parametrize("revision", POLLING)
