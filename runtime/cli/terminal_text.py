"""The layout of text for people: what may reach a terminal, how wide it is, and where lines break.

What servers write reaches a terminal through here, and nothing in it may steer the terminal or pass for something else:
control characters, those that turn the direction of writing round, and those that nobody sees are written as escapes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "as_json",
    "bytes_in_words",
    "display_width",
    "joined",
    "escaped_text",
    "laid_out",
    "escaped_line",
    "wrapped",
]

_LEAST: Final = 16  # columns of a line of prose: where less is left, the terminal had better break it


def escaped_line(text: object) -> str:
    """Return *text* on one line, with what could steer a terminal written as an escape."""
    return printable(text if isinstance(text, str) else str(text))


def escaped_text(text: str) -> str:
    """Return *text* likewise, but keep its lines and tabs."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(escaped_line, line.split("\t"))) for line in lines)


def display_width(text: str) -> int:
    """Return how many columns of a terminal *text* takes, which has no colours."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int | None, *, indent: str = "", hang: str | None = None) -> Iterator[str]:
    """Break one line of text, which is `escaped_line`, between words.

    Args:
        text: The line.
        width: The columns of a line; None for no end of them.
        indent: What the first begins with.
        hang: What the others begin with; *indent* by default.
    """
    hang = indent if hang is None else hang
    line, room = indent, None if width is None else max(width, len(indent) + _LEAST, len(hang) + _LEAST)
    is_begun = False
    for word in _pieces(text, None if room is None else room - len(hang)):
        if is_begun and room is not None and display_width(line) + 1 + display_width(word) > room:
            yield line
            line, is_begun = hang, False
        line += f" {word}" if is_begun else word
        is_begun = True
    if is_begun:
        yield line


def _pieces(text: str, room: int | None) -> Iterator[str]:
    """Yield the words of *text*, those that no line holds in parts."""
    for word in re.split(r"[ \u3000]+", text.strip(" \u3000")):
        rest = word
        while room is not None and display_width(rest) > room:
            taken = width = 0
            while width + _width(rest[taken]) <= room:
                width += _width(rest[taken])
                taken += 1
            yield rest[:taken]
            rest = rest[taken:]
        if rest:
            yield rest


_ITEM: Final = re.compile(r"[-*+•] +|\d{1,3}[.)] +")


def laid_out(text: object, width: int | None, indent: str = "") -> Iterator[str]:
    """Lay out what a server has written in its lines and paragraphs: common indentation goes, lists hang."""
    lines = escaped_text(text if isinstance(text, str) else str(text)).expandtabs(4).split("\n")
    lines = [line.rstrip() for line in lines]
    # The first line of a docstring stands behind its quotation marks; the others are indented as the code is.
    margins = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line]
    margin = min(margins, default=0)
    lines = [lines[0].lstrip(" "), *(line[margin:] for line in lines[1:])]
    is_blank, is_begun = False, False
    for line in lines:
        if not line:
            is_blank = is_begun
            continue
        if is_blank:
            yield ""
        is_blank, is_begun = False, True
        body = line.lstrip(" ")
        own = indent + " " * (len(line) - len(body))
        item = _ITEM.match(body)
        hang = own + " " * (0 if item is None else len(item[0]))
        yield from wrapped(body, width, indent=own, hang=hang)


def joined(parts: Iterable[str], last: str = "or") -> str:
    """Return *parts* as they are listed in a sentence."""
    *first, end = list(parts) or [""]
    return f"{', '.join(first)} {last} {end}" if first else end


def bytes_in_words(count: int) -> str:
    """Return a size as people say it."""
    if count == 1:
        return "1 byte"
    return f"{count:,} bytes"


_BEYOND_ASCII: Final = re.compile(r"[^\x20-\x7e\n]")


def as_json(value: Any, *, is_pretty: bool) -> str:  # noqa: ANN401 (any JSON value)
    """Return *value* as JSON in ASCII, which no encoding refuses and no terminal obeys."""
    data = msgspec.json.encode(value)
    if is_pretty:
        data = msgspec.json.format(data, indent=2)
    return _BEYOND_ASCII.sub(_json_escaped, data.decode("utf-8"))


def _json_escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"
