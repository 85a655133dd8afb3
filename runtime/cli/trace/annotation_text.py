"""Annotations as text for people, and as JSON for programs.

What peers write reaches a terminal through here, and nothing in it may steer the terminal: whatever is not printable is
written as an escape. JSON is written in ASCII, which says the same.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import msgspec
from msgspec import UNSET, Raw, Struct

from mcpgen.runtime.cli.trace.annotations import Finding
from mcpgen.runtime.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.cli.trace.annotations import Annotation

__all__ = ["Style", "as_json", "as_text"]

# Where the type begins, if it can, so that 80 columns hold most types; and how far it reaches, mostly.
_FACTS: Final = 45
_TYPED: Final = 40
_ROOMY: Final = 100  # columns of a line on which the type may begin later
_MORE: Final = 10  # by so many
_WIDE: Final = 150  # what a line needs to hold something of the summary, too
_LEAST: Final = 8  # columns of a summary: less would tell nothing
_INDENT: Final = 12  # the columns of the time and the arrow
_MOST_FINDINGS: Final = 8  # of one message; a list of a thousand tools can have as many. --json has all
_LONGEST_ID: Final = 24
_LONGEST_METHOD: Final = 60
_METHOD: Final = 3  # the place of the method among the facts

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")
_beyond_ascii: Final = re.compile(r"[^\x00-\x7f]").findall

_NAMES: Final = {"to server": "→", "to client": "←"}
_COLOURS: Final = {"to server": "cyan", "to client": "green"}


class Style(NamedTuple):
    """How text is written.

    Attributes:
        width: The columns of a line.
        is_coloured: Whether the terminal's colours are used.
        is_whole: Whether the whole message is shown, rather than a summary.
    """

    width: int = 200
    is_coloured: bool = False
    is_whole: bool = False


def as_text(annotation: Annotation, style: Style) -> str:
    """Return *annotation* as lines, each with its end."""
    paint = _paint if style.is_coloured else _leave
    facts, painted = _facts(annotation, style.width, paint)
    typed = " ".join(filter(None, (annotation.revision, annotation.type)))
    told = "" if style.is_whole else printable(annotation.summary)
    lines = [painted]
    begin = _FACTS + _MORE * (style.width >= _ROOMY)
    left = style.width - _columns(facts)
    gap = max(2, begin - _columns(facts))
    if len(typed) + gap > left:
        gap = 2
    if typed and len(typed) + gap <= left:
        lines[0] += " " * gap + paint(typed, "dim")
        left -= gap + len(typed)
        typed = ""
    if told and style.width >= _WIDE and not typed:
        gap = max(2, left - (style.width - begin - _TYPED))
        lines[0] += " " * gap + _fitting(told, left - gap)
        told = ""
    if typed or told:
        lines.append(_second(typed, told, style.width - _INDENT, paint))
    lines += _findings(annotation, paint, style.width)
    if style.is_whole:
        lines += [" " * _INDENT + line for line in _body(annotation)]
    return "\n".join(lines) + "\n"


def _facts(annotation: Annotation, width: int, paint: Callable[[str, str], str]) -> tuple[str, str]:
    """Return the first of what is said, plain and painted."""
    arrow = _NAMES[annotation.direction]
    is_bad = annotation.kind in ("error", "malformed")
    begin = " " * 8 if annotation.item is not None else f"{annotation.time_seconds:8.3f}"
    inside = "└ " if annotation.item is not None else ""
    kind = f"{inside}{annotation.kind}"
    method = "" if annotation.method is None else printable(_cut(annotation.method, _LONGEST_METHOD))
    identity = "" if annotation.id is None else f"#{_identity(annotation.id)}"
    latency = "" if annotation.latency_seconds is None else _duration(annotation.latency_seconds)
    plain = [begin, arrow, f"{kind:<12}", method, identity, latency]
    styles = ["dim", _COLOURS[annotation.direction], "red" if is_bad else "", "bold", "", "yellow"]
    if (excess := sum(map(_columns, plain)) + len(plain) - 1 - width) > 0:
        plain[_METHOD] = _fitting(method, max(_LEAST, _columns(method) - excess))
    pairs = [(text, name) for text, name in zip(plain, styles, strict=True) if text]
    pairs[-1] = pairs[-1][0].rstrip(), pairs[-1][1]
    return " ".join(text for text, _ in pairs), " ".join(paint(text, name) for text, name in pairs)


def _second(typed: str, told: str, room: int, paint: Callable[[str, str], str]) -> str:
    """Return what found no place on the first line."""
    typed = _fitting(typed, room)
    left = room - len(typed) - 2 if typed else room
    told = _fitting(told, left) if left >= _LEAST else ""
    return " " * _INDENT + "  ".join(filter(None, (paint(typed, "dim"), told)))


def _findings(annotation: Annotation, paint: Callable[[str, str], str], width: int) -> Iterator[str]:
    for mark, colour, found in (("✗", "red", annotation.violations), ("·", "yellow", annotation.notes)):
        for each in found[:_MOST_FINDINGS]:
            yield from _wrapped(f"{mark} {_sentence(each)}", width, colour, paint)
        if len(found) > _MOST_FINDINGS:
            yield " " * _INDENT + paint(f"{mark} and {len(found) - _MOST_FINDINGS} more", colour)


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
    text = annotation.frame.decode("utf-8", "backslashreplace")
    if annotation.is_json:
        text = msgspec.json.format(annotation.frame, indent=2).decode("utf-8")
    return [printable(line) for line in text.split("\n")]


def _identity(raw: Raw) -> str:
    text = bytes(raw).decode("utf-8")
    if text.startswith('"'):
        text = json.loads(text)
    return _fitting(printable(_cut(text, _LONGEST_ID)), _LONGEST_ID)


def _duration(seconds: float) -> str:
    if seconds < 0.001:  # noqa: PLR2004 (a millisecond)
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.1:  # noqa: PLR2004 (of which one wants to know more than of longer ones)
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _columns(text: str) -> int:
    """Return how many columns of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    return len(text) + sum([_width(character) - 1 for character in _beyond_ascii(text)])


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, room: int, mark: str = "…") -> str:
    """Return as much of *text* as fits into *room* columns."""
    if _columns(text) <= room:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += _width(character)
        if taken > room - len(mark):
            return text[:index] + mark
    return text


def _paint(text: str, name: str) -> str:
    if not text:
        return text
    match name:
        case "":
            return text
        case "dim":
            return click.style(text, dim=True)
        case "bold":
            return click.style(text, bold=True)
        case _:
            return click.style(text, fg=name)


def _leave(text: str, name: str) -> str:
    del name
    return text


class _Line(Struct, omit_defaults=True):
    time_seconds: float
    direction: str
    kind: str
    item: int | None = None
    method: str | None = None
    id: Raw | None = None
    revision: str | None = None
    type: str | None = None
    latency_seconds: float | None = None
    summary: str = ""
    violations: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    size_bytes: int = 0
    message: Raw | msgspec.UnsetType = UNSET
    text: str | msgspec.UnsetType = UNSET
    base64: str | msgspec.UnsetType = UNSET


def as_json(annotation: Annotation) -> str:
    """Return *annotation* as one line of JSON, in ASCII, with its end.

    The message itself stands under ``message``. What is no JSON stands under ``text``; what is not even UTF-8, under
    ``base64``. What was too long to be kept is not there.
    """
    each = annotation
    line = _Line(
        round(each.time_seconds, 6),
        each.direction,
        each.kind,
        each.item,
        each.method,
        each.id,
        each.revision,
        each.type,
        None if each.latency_seconds is None else round(each.latency_seconds, 6),
        each.summary,
        each.violations,
        each.notes,
        each.size_bytes,
    )
    if each.frame is not None:
        if each.is_json:
            line.message = Raw(each.frame)
        else:
            try:
                line.text = each.frame.decode("utf-8")
            except UnicodeDecodeError:
                line.base64 = base64.b64encode(each.frame).decode("ascii")
    text = msgspec.json.encode(line).decode("utf-8")
    # What is not ASCII stands within strings, but for white space between the tokens of the message.
    if not (text.isascii() and text.isprintable()):
        text = _NOT_PLAIN.sub(_escaped, text)
    return text + "\n"


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in "\r\n\t":
        return " "
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"
