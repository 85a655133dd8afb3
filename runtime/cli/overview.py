"""The page that shows what a server has, laid out for a terminal of any width, or for a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.schema_text import Row, rows, says_nothing, type_in_words
from mcpgen.runtime.cli.terminal_text import bytes_in_words, display_width, escaped_line, laid_out, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.runtime.cli.inventory import Inventory
    from mcpgen.runtime.cli.screen import Screen

__all__ = ["overview", "parameters"]

_INDENT: Final = "  "
_BODY: Final = "    "
_LABEL: Final = 14  # columns of what stands before a fact
_ROOMY: Final = 40  # columns that the text beside a table has at least; else it goes below
_MOST_NAME: Final = 20  # columns of a name in a table; what is longer pushes the rest of its line aside
_MOST_KIND: Final = 28

_LISTS: Final = {
    "tools": "Tools",
    "resources": "Resources",
    "resourceTemplates": "Resource templates",
    "prompts": "Prompts",
}

_CAPABILITIES: Final = {
    "tools": "tools",
    "resources": "resources",
    "prompts": "prompts",
    "completions": "completions",
    "logging": "log",
    "tasks": "tasks",
}
_DETAILS: Final = {
    "listChanged": "tells of changes",
    "subscribe": "can be watched",
    "list": "can be listed",
    "cancel": "can be cancelled",
}


def overview(inventory: Inventory, screen: Screen) -> Iterator[str]:
    """Yield the lines of the page."""
    page = _Page(screen)
    yield from page.head(inventory)
    instructions = inventory.hello.get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        yield from page.section("Instructions")
        yield from laid_out(instructions, screen.width, _INDENT)
    for key, title in _LISTS.items():
        items = inventory.lists.get(key)
        if items is not None and (items or key != "resourceTemplates"):
            yield from page.section(title, len(items))
            yield from page.items(key, items)


def parameters(schema: object, screen: Screen) -> list[str]:
    """Return the lines of a table of what a tool takes."""
    return list(_Page(screen).table(rows(schema), _INDENT))


class _Page:
    def __init__(self, screen: Screen) -> None:
        self._paint = screen.paint
        self._width = screen.width

    def head(self, inventory: Inventory) -> Iterator[str]:
        info = inventory.info
        name = escaped_line(info.get("name") or "(a server without a name)")
        version, title = info.get("version"), info.get("title")
        first = self._paint(name, "name") + (f" {escaped_line(version)}" if version else "")
        yield first + (f" — {escaped_line(title)}" if title and title != info.get("name") else "")
        if info.get("description"):
            yield from laid_out(info["description"], self._width, _INDENT)
        if info.get("websiteUrl"):
            yield from self._fact("website", escaped_line(info["websiteUrl"]))
        yield ""
        yield from self._fact(inventory.place, escaped_line(inventory.server))
        yield from self._fact("revision", f"{inventory.revision} ({inventory.era} era)")
        supported = inventory.hello.get("supportedVersions")
        if is_array(supported) and len(supported) > 1:
            yield from self._fact(
                "also speaks", escaped_line(", ".join(str(e) for e in supported if e != inventory.revision))
            )
        offered = list(_offered(inventory.capabilities))
        yield from self._fact("offers", ", ".join(offered) or "nothing")

    def _fact(self, label: str, text: str) -> Iterator[str]:
        margin = _INDENT + " " * _LABEL
        lines = list(wrapped(text, self._width, indent=margin))
        first = f"{_INDENT}{self._paint(f'{label:<{_LABEL}}', 'dim')}{lines[0][len(margin) :]}"
        yield from [first, *lines[1:]]

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
            yield f"{_INDENT}(this is no object: {escaped_line(item)[:60]})"
            return
        match key:
            case "tools":
                yield from self._tool(item)
            case "prompts":
                yield from self._prompt(item)
            case _:
                yield from self._resource(item)

    def _title(self, called: object, *others: object) -> Iterator[str]:
        """Yield a name, and what else it is called if that says more."""
        name = str(called).strip() or "(no name)"
        said = {name}
        text = escaped_line(name)
        for other in others:
            if isinstance(other, str) and other and other not in said and not says_nothing(other, name):
                text += f" — {escaped_line(other)}"
                said.add(other)
        lines = list(wrapped(text, self._width, indent=_INDENT, hang=_BODY))
        length = len(_INDENT + escaped_line(name))
        yield _INDENT + self._paint(lines[0][len(_INDENT) : length], "name") + lines[0][length:]
        yield from lines[1:]

    def _described(self, item: Mapping[str, Any]) -> Iterator[str]:
        description = item.get("description")
        if isinstance(description, str) and description.strip():
            yield from laid_out(description, self._width, _BODY)

    def _tool(self, tool: Mapping[str, Any]) -> Iterator[str]:
        annotations = tool.get("annotations")
        hints: dict[str, Any] = annotations if is_object(annotations) else {}
        yield from self._title(tool.get("name", ""), tool.get("title"), hints.get("title"))
        description = list(self._described(tool))
        yield from description
        yield from self._hinted(list(_hints(hints, tool.get("execution"))))
        table = list(self.table(rows(tool.get("inputSchema")), _BODY))
        if table and "" in description:
            yield ""
        yield from table
        if is_object(tool.get("outputSchema")):
            yield from self._output(tool["outputSchema"])

    def _hinted(self, hints: list[tuple[str, str]]) -> Iterator[str]:
        """Yield what a server says of its tool, each hint in its colour."""
        listed = ", ".join(text for text, _ in hints)
        for line in wrapped(f"says it {listed}" if hints else "", self._width, indent=_BODY):
            painted = line
            for text, look in hints:
                painted = painted.replace(text, self._paint(text, look))
            yield painted.replace("says it ", self._paint("says it ", "dim"), 1)

    def _output(self, schema: Mapping[str, Any]) -> Iterator[str]:
        members = [row for row in rows(schema) if not row.depth]
        listed = ", ".join(f"{escaped_line(row.name)}{'' if row.is_required else '?'}: {row.type}" for row in members)
        text = f"{{ {listed} }}" if listed else type_in_words(schema, schema)
        lines = list(wrapped(f"returns {text}", self._width, indent=_BODY, hang=_BODY + _INDENT))
        yield _BODY + self._paint("returns", "dim") + lines[0][len(_BODY) + len("returns") :]
        yield from lines[1:]

    def _prompt(self, prompt: Mapping[str, Any]) -> Iterator[str]:
        yield from self._title(prompt.get("name", ""), prompt.get("title"))
        yield from self._described(prompt)
        arguments = prompt.get("arguments")
        made = [
            Row(str(each.get("name")), 0, "", each.get("required") is True, _text(each), "")
            for each in (arguments if is_array(arguments) else [])
            if is_object(each)
        ]
        yield from self.table(made, _BODY)

    def _resource(self, resource: Mapping[str, Any]) -> Iterator[str]:
        yield from self._title(resource.get("uri", resource.get("uriTemplate", "")))
        names = dict.fromkeys(str(resource[key]) for key in ("title", "name") if resource.get(key))
        size = resource.get("size")
        facts = [escaped_line(resource[key]) for key in ("mimeType",) if resource.get(key)]
        facts += [bytes_in_words(int(size))] if isinstance(size, int | float) and 0 <= size < _HUGE else []
        line = " — ".join(map(escaped_line, names)) + (f" ({', '.join(facts)})" if facts else "")
        yield from wrapped(line, self._width, indent=_BODY)
        yield from self._described(resource)

    def table(self, members: list[Row], indent: str) -> Iterator[str]:
        """Lay out properties: name, type, whether it is required; and what is said of it beside that or below it."""
        if not members:
            return
        names = [_INDENT * row.depth + escaped_line(row.name) for row in members]
        kinds = [", ".join(filter(None, (row.type, "required" if row.is_required else ""))) for row in members]
        first, second = _widest(names, _MOST_NAME), _widest(kinds, _MOST_KIND)
        beside = len(indent) + first + second + (4 if second else 2)
        is_beside = self._width is None or self._width - beside >= _ROOMY
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
            lines = list(laid_out(text, self._width, margin))
            if is_beside and taken <= beside - 2:
                yield line + " " * (beside - taken) + lines[0][len(margin) :]
                yield from lines[1:]
            else:
                yield line
                yield from lines

    def _kind(self, text: str) -> str:
        before, required, after = text.partition("required")
        return self._paint(before, "dim") + self._paint(required, "odd") + after


_HUGE: Final = 1 << 63


def _widest(texts: list[str], most: int) -> int:
    return max((width for each in texts if (width := display_width(each)) <= most), default=0)


def _text(item: Mapping[str, Any]) -> str:
    return str(item.get("description") or item.get("title") or "")


def _sentences(row: Row) -> str:
    """Return what is said of a property, and its bounds as a sentence behind that."""
    text = row.text.strip()
    notes = row.notes[:1].upper() + row.notes[1:]
    if not (text and notes):
        return text or (f"{notes}." if notes else "")
    end = "" if text.endswith((".", "!", "?", ":", "。")) else "."
    return f"{text}{end} {notes}."


def _offered(capabilities: Mapping[str, Any]) -> Iterator[str]:
    for key, value in capabilities.items():
        inner: dict[str, Any] = value if is_object(value) else {}
        if key in ("experimental", "extensions"):
            if inner:
                yield f"{'experimental' if key == 'experimental' else 'extensions'}: {escaped_line(', '.join(inner))}"
            continue
        details = [_DETAILS[each] for each in inner if each in _DETAILS and inner[each] not in (False, None)]
        requests = inner.get("requests")
        details += [f"for {path}" for path in _paths(requests)] if key == "tasks" else []
        yield _CAPABILITIES.get(key, escaped_line(key)) + (f" ({', '.join(details)})" if details else "")


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
    ("readOnlyHint", True): ("only reads", "good"),
    ("readOnlyHint", False): ("changes things", "odd"),
    ("destructiveHint", True): ("may destroy", "bad"),
    ("destructiveHint", False): ("destroys nothing", "good"),
    ("idempotentHint", True): ("does the same when run again", ""),
    ("idempotentHint", False): ("does more each time", ""),
    ("openWorldHint", True): ("deals with the outside world", ""),
    ("openWorldHint", False): ("stays within its own world", ""),
}


def _hints(hints: Mapping[str, Any], execution: object) -> Iterator[tuple[str, str]]:
    """Yield what a server says of its tool, each as it goes on from "says it", and how it looks."""
    for (key, value), (text, look) in _HINTS.items():
        if hints.get(key) is value:
            yield text, look or "plain"
    support = execution.get("taskSupport") if is_object(execution) else None
    if support in ("required", "optional"):
        yield ("has to run as a task" if support == "required" else "can run as a task"), "plain"
