"""Repeating to a peer, or in a log, what a peer sent."""

from __future__ import annotations

__all__ = ["quoted"]

# Enough to recognise it; an error must not be as long as what caused it.
MAX_QUOTED_CHARS = 300


def quoted(text: str) -> str:
    """Return a text that may hold what a peer sent, cut to a bearable length."""
    return text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
