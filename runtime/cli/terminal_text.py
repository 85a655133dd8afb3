"""Text for terminals: escaping, display width and line breaks; and JSON in ASCII.

Text from servers must not control the terminal or pass for other text. So control characters, characters that change
the writing direction, and invisible characters are written as escapes.
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
    "size_text",
    "clip",
    "display_width",
    "join_words",
    "error_text",
    "escaped_text",
    "lay_out",
    "escaped_line",
    "json_in_ascii",
    "json_reason",
    "range_text",
    "sentence",
    "wrap",
]

# What errors say to programs, and what a user of the commands can do.
_OPTIONS: Final = {
    "Http(url, auth=OAuth()) to log in, or Http(url, auth=bearer(token)), or headers": "--bearer-env, or --header",
    "Http(url, auth=bearer(token)), or headers": "--bearer-env, or --header",
    "pass OAuth(assume_pkce=True)": "run `mcpgen login --assume-pkce URL`",
    "pass OAuth(client_id=…)": "run `mcpgen login --client-id ID URL`",
    "pass its id: OAuth(client_id=…), or `mcpgen login --client-id`": "run `mcpgen login --client-id ID URL`",
    "; or pass the URL of such a document: OAuth(client_metadata_url=…)": "",
    "pass it as `issuer`": "run `mcpgen login --issuer ISSUER URL`",
    "pass its URL as `issuer`": "run `mcpgen login --issuer ISSUER URL`",
    "pass OAuth(…, issuer=…)": "run `mcpgen login --client-id ID --issuer ISSUER URL`",
    "pass dpop='on'": "tell the operator of the authorization server",
    "use ClientCredentials": "get a token in another way, and pass --bearer-env, or --header",
    "with FileTokenStore(folder) or the environment variable": "with the environment variable",
    "`revisions` has to allow": "`--revision` has to allow",
}

_MIN_COLUMNS: Final = 16  # for text beside an indent; on narrower terminals, the terminal breaks the lines
_MAX_INDENT: Final = 40  # of text from a server; each line repeats it


def escaped_line(text: object) -> str:
    """Return *text* on one line, with control characters, and characters that mislead, as escapes."""
    return printable(text if isinstance(text, str) else str(text))


def escaped_text(text: str) -> str:
    """Return *text* escaped like `escaped_line`, but keep its line breaks and tabs."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(escaped_line, line.split("\t"))) for line in lines)


def error_text(error: Exception) -> str:
    """Return the message of *error*, with the options of the commands in place of arguments of Python."""
    text = str(error)
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return text


def sentence(error: Exception) -> str:
    """Return the message of *error* on one escaped line, with a full stop."""
    text = escaped_line(error)
    return text if text.endswith((".", "?")) else f"{text}."


def display_width(text: str) -> int:
    """Return how many columns *text* takes on a terminal; it must not contain colour codes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int) -> str:
    """Return the start of *text* that fits into *columns* columns."""
    used = 0
    for at, character in enumerate(text):
        used += _width(character)
        if used > columns:
            return text[:at]
    return text


def wrap(text: str, width: int | None, *, indent: str = "", hang: str | None = None) -> Iterator[str]:
    """Break one line of escaped text between words.

    Args:
        text: The line.
        width: The columns of a line; None for no limit.
        indent: The prefix of the first line.
        hang: The prefix of the other lines; default: *indent*.
    """
    hang = indent if hang is None else hang
    line, room = indent, None if width is None else max(width, len(indent) + _MIN_COLUMNS, len(hang) + _MIN_COLUMNS)
    is_begun = False
    used = 0  # counted once for each word: a line of zero-width characters can have megabytes
    for word in _pieces(text, None if room is None else room - len(hang)):
        columns = 0 if room is None else display_width(word)
        if is_begun and room is not None and used + 1 + columns > room:
            yield line
            line, is_begun = hang, False
        used = used + 1 + columns if is_begun else display_width(line) + columns
        line += f" {word}" if is_begun else word
        is_begun = True
    if is_begun:
        yield line


def _pieces(text: str, room: int | None) -> Iterator[str]:
    """Yield the words of *text*; split words that are wider than a line."""
    for word in re.split(r"[ \u3000]+", text.strip(" \u3000")):
        start = width = 0
        if room is not None and not (word.isascii() and len(word) <= room):
            for at, character in enumerate(word):
                width += _width(character)
                if width > room:
                    yield word[start:at]
                    start, width = at, _width(character)
        if start < len(word):
            yield word[start:]


_ITEM: Final = re.compile(r"[-*+•] +|\d{1,3}[.)] +")


def lay_out(text: object, width: int | None, indent: str = "") -> Iterator[str]:
    """Wrap *text* from a server: remove common indentation, keep paragraphs, and indent list items."""
    lines = escaped_text(text if isinstance(text, str) else str(text)).expandtabs(4).split("\n")
    lines = [line.rstrip() for line in lines]
    # The first line of a docstring has no indentation; the other lines are indented like the code.
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
        own = indent + " " * min(len(line) - len(body), _MAX_INDENT)
        item = _ITEM.match(body)
        hang = own + " " * (0 if item is None else min(len(item[0]), _MAX_INDENT))
        yield from wrap(body, width, indent=own, hang=hang)


def join_words(parts: Iterable[str], last: str = "or") -> str:
    """Join *parts* as a list in a sentence: ``a, b or c``."""
    *first, end = list(parts) or [""]
    return f"{', '.join(first)} {last} {end}" if first else end


def range_text(least: object, most: object, noun: str) -> Iterator[str]:
    """Yield a range of numbers as text, if there is a limit: ``1 to 3 items``, ``at most 5``."""
    low, high = (
        each if isinstance(each, int | float) and not isinstance(each, bool) else None for each in (least, most)
    )
    last = low if high is None else high
    unit = f" {noun}{'' if last == 1 else 's'}" if noun else ""
    if low is not None and high is not None:
        yield f"{low} to {high}{unit}" if low != high else f"exactly {low}{unit}"
    elif last is not None:
        yield f"{'at most' if low is None else 'at least'} {last}{unit}"


# Our words for those of Python's parser, as in `mcpgen.runtime.api.hosts.jsonc`.
_JSON_REASONS: Final = {
    "Expecting value": "a JSON value is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Expecting ':' delimiter": "a colon is missing after the key",
    "Expecting ',' delimiter": "a comma, or a closing bracket or brace, is missing",
    "Extra data": "there is more text after the end of the value",
    "Unterminated string starting at": "the string has no end",
    "Invalid control character at": "a string contains a line break or another control character",
}


def json_reason(error: json.JSONDecodeError) -> str:
    """Return the place and the reason of *error*."""
    return f"line {error.lineno}, column {error.colno}: {_JSON_REASONS.get(error.msg, error.msg)}"


def size_text(count: int) -> str:
    """Return a size in bytes as text."""
    return "1 byte" if count == 1 else f"{count:,} bytes"


def as_json(value: Any, *, is_pretty: bool) -> str:  # noqa: ANN401 (any JSON value)
    """Return *value* as JSON in ASCII, which every encoding has and which cannot control a terminal."""
    data = msgspec.json.encode(value)
    if is_pretty:
        data = msgspec.json.format(data, indent=2)
    return json_in_ascii(data.decode("utf-8"))


def json_in_ascii(text: str) -> str:
    """Return the JSON *text* with escapes in place of characters beyond ASCII.

    The encoder of `json` does it, since a pattern takes seconds for millions of such characters. So what it must not
    escape stands aside meanwhile, as control characters, which JSON does not contain.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    aside = text.replace("\\", "\x00").replace('"', "\x01").replace("\n", "\x02")
    escaped = json.dumps(aside)[1:-1].replace("\x7f", "\\u007f")
    return escaped.replace("\\u0002", "\n").replace("\\u0001", '"').replace("\\u0000", "\\")
