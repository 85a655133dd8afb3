"""The protocol without input and output: frames, JSON-RPC messages, negotiation, capabilities, and payload codecs."""

from __future__ import annotations

__all__: list[str] = []
