"""Arguments from a command line: ``key=value`` becomes JSON by the schema of the tool, ``key:=JSON`` says it itself."""

from __future__ import annotations

import difflib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.schema_text import constraints, resolved, type_in_words, types
from mcpgen.runtime.cli.terminal_text import escaped_line, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["InvalidArguments", "check_names", "converted", "json_object", "pairs_of", "similar"]

_MOST_SIMILAR: Final = 3

# As JSON has them; Python's own functions take more, such as "1_000" and "infinity".
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)

# Python refuses to convert integers of more digits.
_LONGEST_NUMBER: Final = 4000


class InvalidArguments(Exception):  # noqa: N818 (never leaves the command line)
    """Arguments are not what the server wants.

    Attributes:
        reasons: What is wrong, one sentence each.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons: tuple[str, ...] = tuple(reasons)
        super().__init__(*reasons)


def pairs_of(words: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """Return for each key its value, and whether that is JSON.

    Raises:
        click.UsageError: A word is neither ``key=value`` nor ``key:=JSON``, or a key comes twice.
    """
    made: dict[str, tuple[str, bool]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        is_json = key.endswith(":") and len(key) > 1
        key = key.removesuffix(":") if is_json else key
        if not (equals and key):
            raise click.UsageError(f"Arguments are key=value or key:=JSON, not {escaped_line(word)!r}.")
        if key in made:
            raise click.UsageError(f"{escaped_line(key)} is given twice.")
        made[key] = value, is_json
    return made


def json_object(source: str) -> dict[str, Any]:
    """Return the object that stands in *source*, in ``@FILE``, or on standard input for ``-``.

    Raises:
        click.UsageError: There is none.
    """
    try:
        if source == "-":
            text = sys.stdin.buffer.read().decode("utf-8")
        elif source.startswith("@"):
            text = Path(source[1:]).read_text(encoding="utf-8")
        else:
            text = source
    except OSError as error:
        raise click.UsageError(f"{escaped_line(source[1:])} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError("The arguments are not UTF-8.") from None
    try:
        value = _parsed(text)
    except ValueError as error:
        raise click.UsageError(f"--json-args takes a JSON object: {error}.") from None
    if not is_object(value):
        raise click.UsageError("--json-args takes a JSON object, such as '{\"key\": 1}'.")
    return dict(value)


def _parsed(text: str) -> Any:  # noqa: ANN401 (any JSON value)
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def converted(pairs: dict[str, tuple[str, bool]], schema: object) -> dict[str, Any]:
    """Return the arguments that *pairs* are for a tool that takes *schema*.

    Raises:
        Misfit: It takes no such arguments, lacks some, or they cannot be what it takes.
    """
    whole = resolved(schema, schema)
    found = whole.get("properties")
    properties: dict[str, Any] = found if is_object(found) else {}
    required = whole.get("required")
    is_open = whole.get("additionalProperties") not in (None, False) or "patternProperties" in whole
    made: dict[str, Any] = {}
    reasons = check_names(pairs, properties, required if is_array(required) else [], is_open=is_open)
    for key, (text, is_json) in pairs.items():
        inner = properties.get(key, whole.get("additionalProperties"))
        try:
            made[key] = _parsed(text) if is_json else _converted(text, inner, schema)
        except ValueError as error:
            if is_json:
                reasons.append(f"{escaped_line(key)} is not JSON: {error}.")
            elif key in properties or is_open:
                hint = _hint(key, inner, schema)
                reasons.append(f"{escaped_line(key)} takes {_wanted(inner, schema)}, not {escaped_line(text)!r}{hint}.")
    if reasons:
        raise InvalidArguments(reasons)
    return made


def check_names(
    given: Iterable[str], known: Iterable[str], required: Iterable[object], *, is_open: bool = False
) -> list[str]:
    """Return what is wrong with the names of arguments."""
    known, given = list(known), list(given)
    unknown = [] if is_open else [key for key in given if key not in known]
    reasons = [f"There is no argument {escaped_line(key)}{similar(key, known) or '.'}" for key in unknown]
    missing = [escaped_line(each) for each in required if isinstance(each, str) and each not in given]
    if missing:
        reasons.append(f"{joined(missing, 'and')} {'is' if len(missing) == 1 else 'are'} missing.")
    return reasons


def similar(name: str, known: Iterable[str]) -> str:
    """Return a question whether one of *known* is meant, to go behind *name*; empty if none is like it."""
    by_small = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(name.casefold(), by_small, _MOST_SIMILAR)
    return f"; did you mean {joined(escaped_line(by_small[each]) for each in found)}?" if found else ""


def _wanted(schema: object, root: object) -> str:
    kind = type_in_words(schema, root)
    bounds = "; ".join(each for each in constraints(schema, root) if each.startswith(("one of", "only")))
    return f"{kind}{f' ({bounds})' if bounds else ''}"


def _hint(key: str, schema: object, root: object) -> str:
    names = types(schema, root)
    if "array" in names:
        return f", in JSON: {escaped_line(key)}='[…]'"
    return f", in JSON: {escaped_line(key)}='{{…}}'" if "object" in names else ""


def _converted(text: str, schema: object, root: object) -> Any:  # noqa: ANN401 (any JSON value)
    """Return what *text* is where *schema* is wanted; where that may be text, it is text.

    Raises:
        ValueError: It is nothing of the kind.
    """
    choices = resolved(schema, root).get("enum")
    if is_array(choices):
        return _chosen(text, choices)
    names = types(schema, root)
    if "string" in names:
        return text
    if not names:  # anything goes: what is JSON is meant so
        try:
            return _parsed(text)
        except ValueError:
            return text
    for name in names:
        if _is_written_as(text, name):
            return _number(text) if name in ("integer", "number") else _parsed(text)
    raise ValueError(text)


def _is_written_as(text: str, name: str) -> bool:
    match name:
        case "integer":
            return _INTEGER.fullmatch(text) is not None and len(text) < _LONGEST_NUMBER
        case "number":
            return _NUMBER.fullmatch(text) is not None and len(text) < _LONGEST_NUMBER
        case "boolean":
            return text in ("true", "false")
        case "null":
            return text == "null"
        case "array":
            return text.lstrip().startswith("[")
        case _:
            return text.lstrip().startswith("{")


def _number(text: str) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise ValueError(text)
    return found


def _chosen(text: str, choices: list[Any]) -> Any:  # noqa: ANN401 (any JSON value)
    for each in choices:
        if each == text or (not isinstance(each, str) and json.dumps(each) == text):
            return each
    raise ValueError(text)
