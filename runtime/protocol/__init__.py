"""Bytes and what they say: frames of a stream, and the messages of JSON-RPC in them."""

from __future__ import annotations

__all__: list[str] = []
