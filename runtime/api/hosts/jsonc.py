"""JSON with comments, and where each part of it is in its text.

Hosts read JSON, and some of them JSON with comments and trailing commas, as VS Code does. The places let a program
change one part of a file and keep all the rest as it is.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from msgspec import Struct

__all__ = ["JsoncError", "Member", "Node", "parse_jsonc"]

# Possessive: to go back, the expressions would need 120 bytes of memory for each character of a string.
_SPACE: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_SCALAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")

# No host nests its configuration that deeply, and Python's stack ends at a thousand calls.
_MAX_DEPTH: Final = 100


class JsoncError(ValueError):
    """A text is not JSON with comments. The message has the place and the reason, but no part of the text."""

    def __init__(self, text: str, offset: int, reason: str) -> None:
        before = text[:offset]
        line, column = before.count("\n") + 1, offset - before.rfind("\n")
        super().__init__(f"line {line}, column {column}: {reason}")


class Node(Struct):
    """A value in the text.

    Attributes:
        start: Where the value begins.
        end: Where the text after the value begins.
        value: The value, as `json.loads` returns it.
        members: The members, if the value is an object.
        content_end: Where the white space before the closing brace begins, if the value is an object.
        has_trailing_comma: Whether a comma follows the last member, if the value is an object.
    """

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    content_end: int = 0
    has_trailing_comma: bool = False


class Member(Struct):
    """A member of an object.

    Attributes:
        key: The key.
        start: Where the key begins.
        node: The value.
    """

    key: str
    start: int
    node: Node


def parse_jsonc(text: str) -> Node:
    """Parse *text*: JSON that may have comments and trailing commas.

    Raises:
        JsoncError: It is something else.
    """
    parser = _Parser(text)
    node = parser.value(_skipped(text, 0), 0)
    end = _skipped(text, node.end)
    if end < len(text):
        raise JsoncError(text, end, "there is more text after the end of the value")
    return node


def _skipped(text: str, offset: int) -> int:
    """Return where the white space and the comments at *offset* end."""
    found = _SPACE.match(text, offset)
    return offset if found is None else found.end()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, offset: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise JsoncError(self._text, offset, f"there are more than {_MAX_DEPTH} nested levels")
        match self._text[offset : offset + 1]:
            case "{":
                return self._object(offset, depth)
            case "[":
                return self._array(offset, depth)
            case '"':
                end = self._string_end(offset)
                return Node(offset, end, self._loaded(offset, end))
            case _:
                pass
        found = _SCALAR.match(self._text, offset)
        if found is None:
            raise JsoncError(self._text, offset, "a JSON value is missing")
        return Node(offset, found.end(), self._loaded(offset, found.end()))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        end = start + 1
        has_comma = False
        while True:
            offset = _skipped(self._text, end)
            if self._text[offset : offset + 1] == "}":
                break
            if members and not has_comma:
                raise JsoncError(self._text, offset, "a comma or a closing brace is missing")
            if self._text[offset : offset + 1] != '"':
                raise JsoncError(self._text, offset, "a key in double quotes, or a closing brace, is missing")
            key_end = self._string_end(offset)
            colon = _skipped(self._text, key_end)
            if self._text[colon : colon + 1] != ":":
                raise JsoncError(self._text, colon, "a colon is missing after the key")
            node = self.value(_skipped(self._text, colon + 1), depth + 1)
            members.append(Member(str(self._loaded(offset, key_end)), offset, node))
            end, has_comma = self._after_comma(node.end)
        return Node(
            start,
            offset + 1,
            {each.key: each.node.value for each in members},
            tuple(members),
            end + len(self._text[end:offset].rstrip(" \t\r\n")),
            has_comma and bool(members),
        )

    def _array(self, start: int, depth: int) -> Node:
        values: list[Any] = []
        end = start + 1
        has_comma = False
        while True:
            offset = _skipped(self._text, end)
            if self._text[offset : offset + 1] == "]":
                return Node(start, offset + 1, values)
            if values and not has_comma:
                raise JsoncError(self._text, offset, "a comma or a closing bracket is missing")
            node = self.value(offset, depth + 1)
            values.append(node.value)
            end, has_comma = self._after_comma(node.end)

    def _after_comma(self, offset: int) -> tuple[int, bool]:
        """Return where the text after the comma begins, and whether there is a comma."""
        comma = _skipped(self._text, offset)
        return (comma + 1, True) if self._text[comma : comma + 1] == "," else (offset, False)

    def _string_end(self, offset: int) -> int:
        found = _STRING.match(self._text, offset)
        if found is None:
            raise JsoncError(self._text, offset, "the string has no end, or has a line break, a tab or the like in it")
        return found.end()

    def _loaded(self, start: int, end: int) -> Any:
        try:
            return json.loads(self._text[start:end])
        except json.JSONDecodeError as error:  # such as an invalid escape
            raise JsoncError(self._text, start, f"the value is invalid: {error.msg}") from None
        except ValueError:
            raise JsoncError(self._text, start, "the number has too many digits") from None
