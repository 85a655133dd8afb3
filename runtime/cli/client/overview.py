"""The text of ``mcpgen inspect``, laid out for a terminal of any width, or for a pipe."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from anyio.lowlevel import checkpoint

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.client.inventory import LISTS
from mcpgen.runtime.cli.client.schema_text import PropertyRow, property_rows, repeats_name, type_text
from mcpgen.runtime.cli.terminal_text import display_width, escaped_line, lay_out, size_text, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.runtime.cli.client.inventory import Inventory
    from mcpgen.runtime.cli.client.terminal import Screen

__all__ = ["overview_lines", "parameter_lines", "write_overview"]

_INDENT: Final = "  "
_BODY: Final = "    "
_LABEL_COLUMNS: Final = 15
_MIN_TEXT_COLUMNS: Final = 40  # for text beside a table; with fewer columns, the text goes below
_MAX_NAME_COLUMNS: Final = 20  # of a name in a table; a longer name shifts the rest of its line
_MAX_TYPE_COLUMNS: Final = 28
_MAX_SIZE: Final = 1 << 63  # of a resource, in bytes; larger numbers are not sizes
_MAX_LINES: Final = 20  # that are written in one turn of the event loop


async def write_overview(inventory: Inventory, screen: Screen) -> None:
    """Write the lines that describe a server, in several turns of the event loop, so that Ctrl-C ends it."""
    lines = overview_lines(inventory, screen)
    while some := list(islice(lines, _MAX_LINES)):
        screen.lines(some)
        await checkpoint()


def overview_lines(inventory: Inventory, screen: Screen) -> Iterator[str]:
    """Yield the lines that describe a server."""
    page = _Page(screen)
    yield from page.head(inventory)
    instructions = inventory.hello.get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        yield from page.section("Instructions")
        yield from lay_out(instructions, screen.width, _INDENT)
    for _, key, title in LISTS:
        items = inventory.lists.get(key)
        if items is not None and (items or key != "resourceTemplates"):
            yield from page.section(title, len(items))
            yield from page.items(key, items)


def parameter_lines(schema: object, screen: Screen) -> list[str]:
    """Return the table of a tool's arguments."""
    return list(_Page(screen).table(property_rows(schema), _INDENT))


class _Page:
    def __init__(self, screen: Screen) -> None:
        self._paint = screen.paint
        self._fact = partial(screen.fact, columns=_LABEL_COLUMNS, indent=_INDENT)
        self._width = screen.width

    def head(self, inventory: Inventory) -> Iterator[str]:
        info = inventory.info
        name = escaped_line(info.get("name") or "(unnamed server)")
        version, title = info.get("version"), info.get("title")
        first = self._paint(name, "name") + (f" {escaped_line(version)}" if version else "")
        yield first + (f" — {escaped_line(title)}" if title and title != info.get("name") else "")
        if info.get("description"):
            yield from lay_out(info["description"], self._width, _INDENT)
        if info.get("websiteUrl"):
            yield from self._fact("website", escaped_line(info["websiteUrl"]))
        yield ""
        yield from self._fact("URL" if inventory.kind == "url" else inventory.kind, escaped_line(inventory.server))
        yield from self._fact("revision", f"{inventory.revision} ({inventory.era})")
        supported = inventory.hello.get("supportedVersions")
        if is_array(supported) and len(supported) > 1:
            others = ", ".join(str(each) for each in supported if each != inventory.revision)
            yield from self._fact("also supports", escaped_line(others))
        yield from self._fact("capabilities", ", ".join(_capabilities(inventory.capabilities)) or "none")

    def section(self, title: str, count: int | None = None) -> Iterator[str]:
        yield ""
        yield self._paint(title, "heading") + ("" if count is None else f" ({count})")

    def items(self, key: str, items: list[Any]) -> Iterator[str]:
        if not items:
            yield f"{_INDENT}{self._paint('none', 'dim')}"
        was_long = True
        for item in items:
            lines = list(self._item(key, item))
            is_long = len(lines) > 1
            if is_long or was_long:
                yield ""
            yield from lines
            was_long = is_long

    def _item(self, key: str, item: object) -> Iterator[str]:
        if not is_object(item):
            yield f"{_INDENT}(not an object: {escaped_line(item)[:60]})"
            return
        match key:
            case "tools":
                yield from self._tool(item)
            case "prompts":
                yield from self._prompt(item)
            case _:
                yield from self._resource(item)

    def _title(self, value: object, *titles: object) -> Iterator[str]:
        """Yield a name, and the titles that differ from it."""
        name = str(value).strip() or "(no name)"
        shown = {name}
        text = escaped_line(name)
        for title in titles:
            if isinstance(title, str) and title and title not in shown and not repeats_name(title, name):
                text += f" — {escaped_line(title)}"
                shown.add(title)
        lines = list(wrap(text, self._width, indent=_INDENT, hang=_BODY))
        length = len(_INDENT + escaped_line(name))
        yield _INDENT + self._paint(lines[0][len(_INDENT) : length], "name") + lines[0][length:]
        yield from lines[1:]

    def _described(self, item: Mapping[str, Any]) -> Iterator[str]:
        description = item.get("description")
        if isinstance(description, str) and description.strip():
            yield from lay_out(description, self._width, _BODY)

    def _tool(self, tool: Mapping[str, Any]) -> Iterator[str]:
        annotations = tool.get("annotations")
        hints: dict[str, Any] = annotations if is_object(annotations) else {}
        yield from self._title(tool.get("name", ""), tool.get("title"), hints.get("title"))
        description = list(self._described(tool))
        yield from description
        yield from self._hinted(list(_hints(hints, tool.get("execution"))))
        table = list(self.table(property_rows(tool.get("inputSchema")), _BODY))
        if table and "" in description:
            yield ""
        yield from table
        if is_object(tool.get("outputSchema")):
            yield from self._output(tool["outputSchema"])

    def _hinted(self, hints: list[tuple[str, str]]) -> Iterator[str]:
        """Yield the annotations of a tool, each in its colour."""
        listed = ", ".join(text for text, _ in hints)
        for line in wrap(f"hints: {listed}" if hints else "", self._width, indent=_BODY):
            painted = line
            for text, style in hints:
                painted = painted.replace(text, self._paint(text, style))
            yield painted.replace("hints:", self._paint("hints:", "dim"), 1)

    def _output(self, schema: Mapping[str, Any]) -> Iterator[str]:
        members = [row for row in property_rows(schema) if not row.depth]
        listed = ", ".join(f"{escaped_line(row.name)}{'' if row.is_required else '?'}: {row.type}" for row in members)
        text = f"{{ {listed} }}" if listed else type_text(schema, schema)
        lines = list(wrap(f"returns {text}", self._width, indent=_BODY, hang=_BODY + _INDENT))
        yield _BODY + self._paint("returns", "dim") + lines[0][len(_BODY) + len("returns") :]
        yield from lines[1:]

    def _prompt(self, prompt: Mapping[str, Any]) -> Iterator[str]:
        yield from self._title(prompt.get("name", ""), prompt.get("title"))
        yield from self._described(prompt)
        arguments = prompt.get("arguments")
        made = [
            PropertyRow(str(each.get("name")), 0, "", each.get("required") is True, _text(each), "")
            for each in (arguments if is_array(arguments) else [])
            if is_object(each)
        ]
        yield from self.table(made, _BODY)

    def _resource(self, resource: Mapping[str, Any]) -> Iterator[str]:
        yield from self._title(resource.get("uri", resource.get("uriTemplate", "")))
        names = dict.fromkeys(str(resource[key]) for key in ("title", "name") if resource.get(key))
        size = resource.get("size")
        facts = [escaped_line(resource[key]) for key in ("mimeType",) if resource.get(key)]
        facts += [size_text(int(size))] if isinstance(size, int | float) and 0 <= size < _MAX_SIZE else []
        line = " — ".join(map(escaped_line, names)) + (f" ({', '.join(facts)})" if facts else "")
        yield from wrap(line, self._width, indent=_BODY)
        yield from self._described(resource)

    def table(self, members: list[PropertyRow], indent: str) -> Iterator[str]:
        """Lay out properties: name, type, "required"; and the description beside them, or below."""
        if not members:
            return
        names = [_INDENT * row.depth + escaped_line(row.name) for row in members]
        kinds = [", ".join(filter(None, (row.type, "required" if row.is_required else ""))) for row in members]
        first, second = _widest(names, _MAX_NAME_COLUMNS), _widest(kinds, _MAX_TYPE_COLUMNS)
        beside = len(indent) + first + second + (4 if second else 2)
        is_beside = self._width is None or self._width - beside >= _MIN_TEXT_COLUMNS
        for row, name, kind in zip(members, names, kinds, strict=True):
            text = _sentences(row)
            gap = " " * max(2, first + 2 - display_width(name)) if kind else ""
            line = f"{indent}{self._paint(name, 'strong')}{gap}{self._kind(kind)}"
            taken = len(indent) + display_width(name) + len(gap) + display_width(kind)
            if kind and self._width is not None and taken > self._width:
                yield f"{indent}{self._paint(name, 'strong')}"
                line = f"{indent}{_INDENT * (row.depth + 2)}{self._kind(kind)}"
            if not text:
                yield line
                continue
            margin = " " * beside if is_beside else indent + _INDENT * (row.depth + 2)
            lines = list(lay_out(text, self._width, margin))
            if is_beside and taken <= beside - 2:
                yield line + " " * (beside - taken) + lines[0][len(margin) :]
                yield from lines[1:]
            else:
                yield line
                yield from lines

    def _kind(self, text: str) -> str:
        before, required, after = text.partition("required")
        return self._paint(before, "dim") + self._paint(required, "warning") + after


def _widest(texts: list[str], most: int) -> int:
    return max((width for each in texts if (width := display_width(each)) <= most), default=0)


def _text(item: Mapping[str, Any]) -> str:
    return str(item.get("description") or item.get("title") or "")


def _sentences(row: PropertyRow) -> str:
    """Return the description of a property, with its constraints as a second sentence."""
    text = row.text.strip()
    notes = row.notes[:1].upper() + row.notes[1:]
    if not (text and notes):
        return text or (f"{notes}." if notes else "")
    end = "" if text.endswith((".", "!", "?", ":", "。")) else "."
    return f"{text}{end} {notes}."


def _capabilities(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """Yield each capability with its members, under the names that the specification gives them."""
    for key, value in capabilities.items():
        inner: dict[str, Any] = value if is_object(value) else {}
        members = [escaped_line(each) for each in inner if each != "requests" and inner[each] not in (False, None)]
        members += _paths(inner.get("requests"))
        if members or key not in ("experimental", "extensions"):
            yield escaped_line(key) + (f" ({', '.join(members)})" if members else "")


def _paths(requests: object, before: str = "") -> Iterator[str]:
    if not is_object(requests):
        return
    for key, value in requests.items():
        path = f"{before}{escaped_line(key)}"
        if is_object(value) and value and not before:
            yield from _paths(value, f"{path}/")
        else:
            yield path


_HINTS: Final = {
    ("readOnlyHint", True): ("read-only", "good"),
    ("readOnlyHint", False): ("changes data", "warning"),
    ("destructiveHint", True): ("may destroy data", "bad"),
    ("destructiveHint", False): ("non-destructive", "good"),
    ("idempotentHint", True): ("idempotent", "plain"),
    ("idempotentHint", False): ("not idempotent", "plain"),
    ("openWorldHint", True): ("open world", "plain"),
    ("openWorldHint", False): ("closed world", "plain"),
}


def _hints(hints: Mapping[str, Any], execution: object) -> Iterator[tuple[str, str]]:
    """Yield the text and the style of each annotation of a tool."""
    for (key, value), (text, style) in _HINTS.items():
        if hints.get(key) is value:
            yield text, style
    support = execution.get("taskSupport") if is_object(execution) else None
    if support in ("required", "optional"):
        yield ("must run as a task" if support == "required" else "can run as a task"), "plain"
