"""Lines of source that black would break differently: with several items on each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from mcpgen.codegen.docstrings import LINE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["call", "filled", "literal", "packed", "union", "words"]


def literal(text: str) -> str:
    """Return *text* as a string literal in ASCII, with the quotes that black prefers."""
    found = ascii(text)
    return found if '"' in found or "\\'" in found else f'"{found[1:-1]}"'


def filled(items: Iterable[str], *, indent: int = 4) -> tuple[str, ...]:
    """Return *items* on lines that stand *indent* deep, as many on each as fit; no item is broken."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) < LINE_LENGTH - indent:
            lines[-1] += f" {item}"
        else:
            lines.append(item)
    return tuple(lines)


def packed(names: Iterable[str]) -> tuple[str, ...]:
    """Return the lines of an indented list with *names* as string literals."""
    return filled(f'"{name}",' for name in names)


def words(names: Iterable[str]) -> tuple[str, ...]:
    """Return *names*, separated by blanks, as adjacent string literals for the lines of a deeply indented table."""
    lines = textwrap.wrap(" ".join(names), LINE_LENGTH - 20, break_long_words=False, break_on_hyphens=False)
    return tuple(ascii(line + " " * (line is not lines[-1])) for line in lines)


def union(start: str, arms: list[str]) -> list[str]:
    """Return the lines of *start* and a union, as black would break them, but with several arms on a line."""
    line = start + " | ".join(arms)
    if len(line) <= LINE_LENGTH or len(arms) == 1:
        return [line]
    indent = " " * (len(start) - len(start.lstrip()))
    inside = filled([arms[0], *(f"| {each}" for each in arms[1:])], indent=len(indent) + 4)
    return [f"{start}(", *(f"{indent}    {each}" for each in inside), f"{indent})"]


def call(start: str, items: list[str], end: str) -> list[str]:
    """Return the lines of *start*, *items* with their commas and *end*, with several items on a line."""
    joined = " ".join(items)
    line = start + (joined if len(items) == 1 and end.startswith("))") else joined.removesuffix(",")) + end
    if len(line) <= LINE_LENGTH:
        return [line]
    indent = " " * (len(start) - len(start.lstrip()))
    return [start, *(f"{indent}    {each}" for each in filled(items, indent=len(indent) + 4)), f"{indent}{end}"]
