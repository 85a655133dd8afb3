"""Write the entry of a server into the text of a host's configuration, and leave all the rest as it is.

The text is edited, not written anew: comments, order, indentation, line ends and escapes of the other parts stay. The
new part has the indentation and the line ends of the text around it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcpgen.runtime.api.hosts.jsonc import JsoncError, parse_jsonc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.api.hosts.jsonc import Member, Node

__all__ = ["EditError", "current_entry", "with_entry"]


class EditError(ValueError):
    """A text has no place for the entry. The message shows no value of the text."""


def current_entry(text: str, section: str, name: str) -> Any:  # noqa: ANN401 (any JSON value)
    """Return the entry *name* that the text has now; None if it has none.

    Raises:
        EditError: The text is not a configuration.
    """
    root = _root(text)
    if root is None:
        return None
    servers = _member(root, section)
    found = None if servers is None else _member(_object(servers), name)
    return None if found is None else found.node.value


def with_entry(text: str, section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return *text* with *entry* as the member *name* of the object *section*, which is added if there is none.

    Raises:
        EditError: The text is not a configuration.
    """
    root = _root(text)
    if root is None:
        return _Style("\n", "  ", is_compact=False).dumps({section: {name: entry}}, "") + "\n"
    style = _style(text, root)
    servers = _member(root, section)
    if servers is None:
        return _added(text, root, section, {name: entry}, style)
    found = _member(_object(servers), name)
    if found is None:
        return _added(text, servers.node, name, entry, style)
    value = style.dumps(entry, _line_indent(text, found.start))
    return text[: found.node.start] + value + text[found.node.end :]


def _root(text: str) -> Node | None:
    """Return the whole object; None if the text is empty."""
    if not text.strip():
        return None
    try:
        root = parse_jsonc(text)
    except JsoncError as error:
        raise EditError(f"it cannot be read as JSON: {error}") from None
    if not isinstance(root.value, dict):
        raise EditError("it is not a JSON object")
    return root


def _object(member: Member) -> Node:
    if not isinstance(member.node.value, dict):
        raise EditError(f'its `{member.key}` is not an object; write {{"{member.key}": {{}}}}, and try again')
    return member.node


def _member(node: Node, key: str) -> Member | None:
    """Return the member *key* of an object; None if it has none."""
    found = [each for each in node.members if each.key == key]
    if len(found) > 1:  # hosts read one of them, and it depends on the host which one
        raise EditError(f"it has `{key}` twice; remove one of them")
    return found[0] if found else None


class _Style:
    """How a text is laid out."""

    def __init__(self, newline: str, unit: str, *, is_compact: bool) -> None:
        self.newline = newline
        self.unit = unit
        self.is_compact = is_compact

    def dumps(self, value: object, indent: str) -> str:
        """Return *value* as JSON. *indent* is that of the line on which it begins."""
        if self.is_compact:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self.unit, ensure_ascii=False).split("\n")
        return f"{self.newline}{indent}".join(lines)


def _style(text: str, root: Node) -> _Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    body = text[root.start : root.end]
    indents = [_own_line_indent(text, each.start) for each in root.members]
    unit = next((each for each in indents if each), "  ")
    return _Style(newline, unit, is_compact=bool(root.members) and "\n" not in body)


def _added(text: str, node: Node, key: str, value: object, style: _Style) -> str:
    """Return *text* with one more member at the end of the object *node*."""
    member = f"{json.dumps(key, ensure_ascii=False)}: "
    if node.members and "\n" not in text[node.start : node.end]:  # an object on one line stays on it
        compact = _Style(style.newline, style.unit, is_compact=True)
        end = node.members[-1].node.end
        if node.has_trailing_comma:
            return f"{text[: node.content_end]} {member}{compact.dumps(value, '')}{text[node.content_end :]}"
        return f"{text[:end]}, {member}{compact.dumps(value, '')}{text[end:]}"
    if style.is_compact:
        return f"{text[: node.content_end]}{member}{style.dumps(value, '')}{text[node.content_end :]}"
    outer = _line_indent(text, node.start)
    own = [_own_line_indent(text, each.start) for each in node.members]
    inner = next((each for each in own if each is not None), outer + style.unit)
    line = f"{style.newline}{inner}{member}{style.dumps(value, inner)}"
    # The comma follows the last member; the new one follows the comments behind that.
    rest = text[node.content_end :]
    if "\n" not in rest[: rest.index("}")]:
        rest = style.newline + outer + rest.lstrip(" \t")
    if not node.members or node.has_trailing_comma:
        return f"{text[: node.content_end]}{line}{rest}"
    end = node.members[-1].node.end
    return f"{text[:end]},{text[end : node.content_end]}{line}{rest}"


def _line_indent(text: str, offset: int) -> str:
    """Return the white space at the beginning of the line of *offset*."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = re.match(r"[ \t]*", text[start:offset])
    return found[0] if found else ""


def _own_line_indent(text: str, offset: int) -> str | None:
    """Return the white space before *offset*; None if something else is on the line before it."""
    start = text.rfind("\n", 0, offset) + 1
    before = text[start:offset]
    return before if start and not before.strip(" \t") else None
