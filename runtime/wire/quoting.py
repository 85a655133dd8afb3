"""Repeating to a peer, in a log or on a terminal, what a peer sent."""

from __future__ import annotations

import unicodedata

__all__ = ["printable", "quoted"]

# Enough to recognise it; an error must not be as long as what caused it.
MAX_QUOTED_CHARS = 300

# Blanks of other widths, such as the one between Japanese words: they are no danger, and an escape would be ugly.
_BLANK = "Zs"


def quoted(text: str) -> str:
    """Return a text that may hold what a peer sent, cut to a bearable length, and harmless to a terminal."""
    shown = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
    return "\n".join(map(printable, shown.split("\n")))


def printable(text: str) -> str:
    """Return *text* on one line, with what could steer a terminal written as an escape."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == _BLANK:
        return character
    return character.encode("unicode_escape").decode("ascii")
