"""Format annotations as text for people, and as JSON for programs.

Text from peers must not control the terminal: characters that are not printable are written as escapes. JSON is ASCII.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec
from msgspec import Raw

from mcpgen.runtime.cli.terminal_text import display_width, json_in_ascii
from mcpgen.runtime.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.protocol.trace.annotations import Annotation, Finding

__all__ = ["Style", "as_json", "as_text"]

# The column where the type begins if there is room, so that 80 columns hold most types; and its usual width.
_TYPE_COLUMN: Final = 45
_TYPE_COLUMNS: Final = 40
_WIDE: Final = 100  # on lines of this width, the type begins later
_WIDE_SHIFT: Final = 10  # by so many columns
_VERY_WIDE: Final = 150  # lines of this width hold a part of the summary too
_MIN_SUMMARY: Final = 8  # columns
_INDENT: Final = 12  # the columns of the time and the arrow
_MAX_FINDINGS: Final = 8  # shown for one message; `--json` writes all of them
_MAX_ID: Final = 24
_MAX_INDENT_BYTES: Final = 4 * 1024 * 1024  # the lists of a message of 100 kB can be so deep that it would be 90 MB
_MAX_METHOD: Final = 60
_METHOD_INDEX: Final = 3  # of the method among the facts

# Bytes that are not UTF-8, as "surrogateescape" decodes them. "backslashreplace" takes a second for a message of them.
_BYTES: Final = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}

_ARROWS: Final = {"to server": "→", "to client": "←"}
_COLOURS: Final = {"to server": "cyan", "to client": "green"}


class Style(NamedTuple):
    """The layout of the text.

    Attributes:
        width: The columns of a line.
        is_coloured: Whether to use colours.
        is_whole: Whether to show the whole message instead of a summary.
    """

    width: int = 200
    is_coloured: bool = False
    is_whole: bool = False


def as_text(annotation: Annotation, style: Style) -> str:
    """Return *annotation* as lines, each with its line break."""
    paint = _paint if style.is_coloured else _plain
    facts, painted = _facts(annotation, style.width, paint)
    type_name = " ".join(filter(None, (annotation.revision, annotation.type)))
    summary = "" if style.is_whole else printable(annotation.summary)
    lines = [painted]
    begin = _TYPE_COLUMN + _WIDE_SHIFT * (style.width >= _WIDE)
    left = style.width - display_width(facts)
    gap = max(2, begin - display_width(facts))
    if len(type_name) + gap > left:
        gap = 2
    if type_name and len(type_name) + gap <= left:
        lines[0] += " " * gap + paint(type_name, "dim")
        left -= gap + len(type_name)
        type_name = ""
    if summary and style.width >= _VERY_WIDE and not type_name:
        gap = max(2, left - (style.width - begin - _TYPE_COLUMNS))
        lines[0] += " " * gap + _fitting(summary, left - gap)
        summary = ""
    if type_name or summary:
        lines.append(_second_line(type_name, summary, style.width - _INDENT, paint))
    lines += _findings(annotation, paint, style.width)
    if style.is_whole:
        lines += [" " * _INDENT + line for line in _body(annotation)]
    return "\n".join(lines) + "\n"


def _facts(annotation: Annotation, width: int, paint: Callable[[str, str], str]) -> tuple[str, str]:
    """Return the beginning of the first line, plain and painted."""
    arrow = _ARROWS[annotation.direction]
    is_bad = annotation.kind in ("error", "malformed")
    begin = " " * 8 if annotation.item is not None else f"{annotation.time_seconds:8.3f}"
    inside = "└ " if annotation.item is not None else ""
    kind = f"{inside}{annotation.kind}"
    method = "" if annotation.method is None else printable(_cut(annotation.method, _MAX_METHOD))
    identity = "" if annotation.id is None else f"#{_identity(annotation.id)}"
    latency = "" if annotation.latency_seconds is None else _duration(annotation.latency_seconds)
    plain = [begin, arrow, f"{kind:<12}", method, identity, latency]
    styles = ["dim", _COLOURS[annotation.direction], "red" if is_bad else "", "bold", "", "yellow"]
    if (excess := sum(map(display_width, plain)) + len(plain) - 1 - width) > 0:
        plain[_METHOD_INDEX] = _fitting(method, max(_MIN_SUMMARY, display_width(method) - excess))
    pairs = [(text, name) for text, name in zip(plain, styles, strict=True) if text]
    pairs[-1] = pairs[-1][0].rstrip(), pairs[-1][1]
    return " ".join(text for text, _ in pairs), " ".join(paint(text, name) for text, name in pairs)


def _second_line(type_name: str, summary: str, room: int, paint: Callable[[str, str], str]) -> str:
    """Return the line for what the first line has no room for."""
    type_name = _fitting(type_name, room)
    left = room - len(type_name) - 2 if type_name else room
    summary = _fitting(summary, left) if left >= _MIN_SUMMARY else ""
    return " " * _INDENT + "  ".join(filter(None, (paint(type_name, "dim"), summary)))


def _findings(annotation: Annotation, paint: Callable[[str, str], str], width: int) -> Iterator[str]:
    for mark, colour, found in (("✗", "red", annotation.violations), ("·", "yellow", annotation.notes)):
        for each in found[:_MAX_FINDINGS]:
            yield from _wrapped(f"{mark} {_sentence(each)}", width, colour, paint)
        if len(found) > _MAX_FINDINGS:
            yield " " * _INDENT + paint(f"{mark} and {len(found) - _MAX_FINDINGS} more", colour)


def _sentence(finding: Finding) -> str:
    place = f"{finding.pointer}: " if finding.pointer else ""
    return printable(f"{_cut(place, 200)}{finding.reason}")


def _wrapped(text: str, width: int, colour: str, paint: Callable[[str, str], str]) -> Iterator[str]:
    indent, room = _INDENT, max(20, width - _INDENT)
    while text:
        line = _fitting(text, room, mark="")
        if len(line) < len(text) and (space := line.rfind(" ")) > room // 2:
            line = line[:space]
        yield " " * indent + paint(line, colour)
        text = text[len(line) :].lstrip()
        indent, room = _INDENT + 2, max(18, width - _INDENT - 2)


def _body(annotation: Annotation) -> list[str]:
    if annotation.frame is None:
        return []
    if annotation.is_json:
        indented = msgspec.json.format(annotation.frame, indent=2)
        is_deep = len(indented) - len(annotation.frame) > _MAX_INDENT_BYTES
        text = (annotation.frame if is_deep else indented).decode("utf-8")
    else:
        text = annotation.frame.decode("utf-8", "surrogateescape").translate(_BYTES)
    return [printable(line) for line in text.split("\n")]


def _identity(raw: Raw) -> str:
    text = bytes(raw).decode("utf-8")
    if text.startswith('"'):
        text = json.loads(text)
    return _fitting(printable(_cut(text, _MAX_ID)), _MAX_ID)


def _duration(seconds: float) -> str:
    if seconds < 0.001:  # noqa: PLR2004 (a millisecond)
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.1:  # noqa: PLR2004 (short times get one more digit)
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _fitting(text: str, room: int, mark: str = "…") -> str:
    """Cut *text* to *room* columns."""
    if display_width(text) <= room:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += display_width(character)
        if taken > room - len(mark):
            return text[:index] + mark
    return text


def _paint(text: str, name: str) -> str:
    style: dict[str, Any] = {name: True} if name in ("dim", "bold") else {"fg": name}
    return click.style(text, **style) if text and name else text


def _plain(text: str, name: str) -> str:
    del name
    return text


def as_json(annotation: Annotation) -> str:
    """Return *annotation* as one line of JSON in ASCII, with its line break.

    The message itself is under ``message``; if it is not JSON, under ``text``; if it is not UTF-8, under ``base64``. A
    message that was too long to keep is left out.
    """
    facts = msgspec.structs.asdict(annotation)
    frame, is_json = facts.pop("frame"), facts.pop("is_json")
    for name in ("time_seconds", "latency_seconds"):
        facts[name] = None if facts[name] is None else round(facts[name], 6)
    if not annotation.summary:
        del facts["summary"]
    line = {name: value for name, value in facts.items() if value not in (None, ())}
    text = json_in_ascii(msgspec.json.encode(line).decode("utf-8"))
    return f"{text[:-1]}{'' if frame is None else _member(frame, is_json)}}}\n"


def _member(frame: bytes, is_json: bool) -> str:  # noqa: FBT001 (of an annotation)
    """Return *frame* as the last member of an object, in ASCII."""
    try:
        text = frame.decode("utf-8")
    except UnicodeDecodeError:
        return f',"base64":"{base64.b64encode(frame).decode("ascii")}"'
    if not is_json:
        return f',"text":{json.dumps(text)}'
    text = text.replace("\t", " ").replace("\r", " ").replace("\n", " ")  # in a string, these are escapes
    return f',"message":{json_in_ascii(text)}'
