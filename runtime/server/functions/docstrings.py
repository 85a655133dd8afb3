"""Read the descriptions of a function and its parameters from its docstring.

Three styles are read, and may be mixed: Google (``Args:``), NumPy (``Parameters`` underlined) and Sphinx
(``:param name:``). Sections about results and errors are for programmers, so the description omits them.
"""

from __future__ import annotations

import inspect
import re
from itertools import takewhile

from msgspec import Struct

__all__ = ["Docstring", "parse"]

PARAMETERS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
OMITTED = frozenset(
    {"returns", "return", "yields", "yield", "raises", "except", "exceptions", "warns", "attributes", "see also"}
)
FIELDS = re.compile(r":(?P<field>[a-z]+)(?:\s+(?P<subject>[^:]+))?:(?:\s+(?P<text>.*))?$")
PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
OMITTED_FIELDS = frozenset(
    {"type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype"}
)
GOOGLE_ITEM = re.compile(r"(?P<names>\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(?P<text>.*))?$")
NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


class Docstring(Struct, frozen=True):
    """The descriptions in a docstring.

    Attributes:
        description: The prose, with its paragraphs; may be empty.
        parameters: The description of each parameter, by name.
    """

    description: str
    parameters: dict[str, str]


def parse(text: str | None) -> Docstring:
    """Return the descriptions in a docstring; all text outside of known sections is prose."""
    lines = inspect.cleandoc(text or "").splitlines()
    prose: list[str] = []
    parameters: dict[str, str] = {}
    while lines:
        taken = _sphinx(lines, parameters) or _google(lines, parameters) or _numpy(lines, parameters)
        if not taken:
            prose.append(lines[0].rstrip())
        del lines[: taken or 1]
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return Docstring(description, {name: text for name, text in parameters.items() if text})


def _sphinx(lines: list[str], parameters: dict[str, str]) -> int:
    """Read a field at the top of *lines*; return how many lines it takes."""
    match = FIELDS.match(lines[0])
    if match is None or match["field"] not in PARAMETER_FIELDS | OMITTED_FIELDS:
        return 0
    more = _indented(lines[1:])
    if match["field"] in PARAMETER_FIELDS and match["subject"]:
        name = match["subject"].split()[-1].lstrip("*")
        parameters[name] = _joined([match["text"] or "", *more])
    return 1 + len(more)


def _google(lines: list[str], parameters: dict[str, str]) -> int:
    """Read a section ``Title:`` with an indented body at the top of *lines*; return how many lines it takes."""
    title = lines[0].rstrip().lower()
    if not title.endswith(":") or title[:-1] not in PARAMETERS | OMITTED:
        return 0
    body = _indented(lines[1:])
    if not any(each.strip() for each in body):
        return 0
    if title[:-1] in PARAMETERS:
        _read_items(GOOGLE_ITEM, inspect.cleandoc("\n" + "\n".join(body)).splitlines(), parameters)
    return 1 + len(body)


def _numpy(lines: list[str], parameters: dict[str, str]) -> int:
    """Read a section with an underlined title at the top of *lines*; return how many lines it takes."""
    if not _is_underlined(lines) or lines[0].strip().lower() not in PARAMETERS | OMITTED:
        return 0
    body = lines[2:]
    end = next((index for index in range(len(body)) if _is_underlined(body[index:])), len(body))
    if lines[0].strip().lower() in PARAMETERS:
        _read_items(NUMPY_ITEM, body[:end], parameters)
    return 2 + end


def _read_items(item: re.Pattern[str], lines: list[str], parameters: dict[str, str]) -> None:
    """Read the body of a section: items that match *item*, each with the indented lines behind it."""
    while lines:
        more = _indented(lines[1:])
        if match := item.match(lines[0].rstrip()):
            description = _joined([match.groupdict().get("text") or "", *more])
            names = [each.strip().lstrip("*") for each in match["names"].split(",")]
            parameters.update(dict.fromkeys(names, description))
        del lines[: 1 + len(more)]


def _is_underlined(lines: list[str]) -> bool:
    return len(lines) > 1 and bool(lines[0].strip()) and bool(re.fullmatch(r"-{3,}\s*", lines[1]))


def _indented(lines: list[str]) -> list[str]:
    """Return the lines up to the first that is neither indented nor blank."""
    return list(takewhile(lambda line: not line.strip() or line[0] in " \t", lines))


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
