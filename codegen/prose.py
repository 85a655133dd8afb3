"""Text that goes into docstrings: ours, and that of documents, which may hold anything."""

from __future__ import annotations

import textwrap

__all__ = ["prose", "wrapped"]

_LINE_LENGTH = 120


def prose(text: str) -> str:
    """Return *text* as it may stand in a docstring: one paragraph, printable, without quotes that could end it."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat.replace("\\", "\\\\").replace('"""', "'''").removesuffix('"') + ('\\"' if flat.endswith('"') else "")


def wrapped(*paragraphs: str, indent: str) -> str:
    """Return the inside of a docstring that stands *indent* deep: one line if it is one, else closed on its own."""
    width = _LINE_LENGTH - len(indent)
    # The first line also holds the opening quotes, and a lone line the closing ones.
    first = textwrap.wrap(paragraphs[0], width - len('""""""'), break_long_words=False, break_on_hyphens=False)
    if len(first) > 1:
        first = textwrap.wrap(f"___{paragraphs[0]}", width, break_long_words=False, break_on_hyphens=False)
        first[0] = first[0].removeprefix("___")
    lines = list(first)
    for paragraph in paragraphs[1:]:
        lines += ["", *textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(
        [lines[0], *(indent + line if line else "" for line in lines[1:]), *([indent] if lines[1:] else [])]
    )
