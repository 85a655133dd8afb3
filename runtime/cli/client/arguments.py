"""Arguments from the command line: the tool's schema decides how ``KEY=VALUE`` is read; ``KEY:=JSON`` is JSON."""

from __future__ import annotations

import difflib
import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.client.schema_text import NOTHING_ALLOWED, constraints, resolve_ref, type_names, type_text
from mcpgen.runtime.cli.terminal_text import escaped_line, join_words, json_reason
from mcpgen.runtime.transports.command_line import join_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["InvalidArguments", "check_names", "convert_arguments", "parse_json_object", "parse_pairs", "did_you_mean"]

_MAX_SUGGESTIONS: Final = 3
_MAX_COMPARED: Final = 1000  # names; each takes 15 µs, and a server can list 100,000

# Keywords with schemas that can name more arguments than `properties` does.
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("then", "else")
_MAPS: Final = ("dependentSchemas", "dependencies")
_NAMING: Final = frozenset({"properties", "patternProperties", "additionalProperties", "$ref", *_LISTS, "if"})

_MAX_BYTES: Final = 16 * 1024 * 1024  # of `--json-args`; four times what servers accept, and a device has no end

# Numbers as in JSON. Python's `int` and `float` accept more, such as "1_000" and "infinity".
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)

# Python does not convert integers of more than 4,300 digits.
_MAX_DIGITS: Final = 4000


class InvalidArguments(Exception):  # noqa: N818 (never leaves the command line)
    """Arguments do not match the tool's schema.

    Attributes:
        reasons: One sentence for each error.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons: tuple[str, ...] = tuple(reasons)
        super().__init__(*reasons)


def parse_pairs(words: Iterable[str], *, forms: str = "KEY=VALUE or KEY:=JSON") -> dict[str, tuple[str, bool]]:
    """Return the value of each key, and whether the value is JSON.

    Args:
        words: The words of the command line.
        forms: The forms that the command accepts, for the error.

    Raises:
        click.UsageError: A word is neither ``KEY=VALUE`` nor ``KEY:=JSON``, or a key occurs twice.
    """
    made: dict[str, tuple[str, bool]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        is_json = key.endswith(":") and len(key) > 1
        key = key.removesuffix(":") if is_json else key
        if not (equals and key):
            raise click.UsageError(f"Arguments are {forms}, not {escaped_line(word)!r}.")
        if key in made:
            raise click.UsageError(f"Argument `{escaped_line(key)}` is given twice.")
        made[key] = value, is_json
    return made


def parse_json_object(source: str) -> dict[str, Any]:
    """Return the JSON object in *source*: in the text itself, in ``@FILE``, or on standard input for ``-``.

    Raises:
        click.UsageError: The source cannot be read, or is not a JSON object.
    """
    try:
        if source == "-":
            text = _read_text(sys.stdin.buffer)
        elif source.startswith("@"):
            with Path(source[1:]).open("rb") as file:
                text = _read_text(file)
        else:
            text = source
    except OSError as error:
        raise click.UsageError(f"Cannot read {escaped_line(source[1:])} (`--json-args`): {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError("The JSON of `--json-args` is not UTF-8.") from None
    if source == "-" and not text.strip():
        raise click.UsageError("`--json-args` is `-`, but standard input is empty; write a JSON object to it.")
    try:
        value = _parse_json(text)
    except ValueError as error:
        raise click.UsageError(f"`--json-args` cannot be read as JSON: {error}.") from None
    if not is_object(value):
        raise click.UsageError("`--json-args` must be a JSON object, such as '{\"key\": 1}'.")
    return dict(value)


def _read_text(file: IO[bytes]) -> str:
    content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise click.UsageError(f"The JSON of `--json-args` has more than {_MAX_BYTES} bytes.")
    return content.decode("utf-8")


def _parse_json(text: str) -> Any:  # noqa: ANN401 (any JSON value)
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError(json_reason(error)) from None
    except RecursionError:
        raise ValueError("too many nested levels") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python converts a few thousand digits at most
        raise ValueError("a number has too many digits") from None


def convert_arguments(pairs: dict[str, tuple[str, bool]], schema: object) -> dict[str, Any]:
    """Convert *pairs* to the arguments of a tool with the input schema *schema*.

    Raises:
        InvalidArguments: An argument is unknown or missing, or its value does not match the schema.
    """
    whole = resolve_ref(schema, schema)
    found = whole.get("properties")
    properties: dict[str, Any] = found if is_object(found) else {}
    required = whole.get("required")
    is_open = whole.get("additionalProperties", "properties" not in whole) not in (None, False)
    if whole.get("additionalProperties") is not False:
        is_open = is_open or _names_elsewhere(schema) or _names_elsewhere(whole)
    made: dict[str, Any] = {}
    reasons = check_names(pairs, properties, required if is_array(required) else [], is_open=is_open)
    for key, (text, is_json) in pairs.items():
        inner = properties.get(key, whole.get("additionalProperties"))
        try:
            made[key] = _parse_json(text) if is_json else _convert(text, inner, schema)
        except ValueError as error:
            if is_json:
                is_text = text.lstrip()[:1] not in {"{", "["} and _takes_text(text, inner, schema)
                hint = f"; for text, write {escaped_line(join_command([f'{key}={text}']))}" if is_text else ""
                reasons.append(f"`{escaped_line(key)}` cannot be read as JSON: {error}{hint}.")
            elif key in properties or is_open:
                reasons.append(_mismatch(key, text, inner, schema))
    if reasons:
        raise InvalidArguments(reasons)
    return made


def _names_elsewhere(schema: object) -> bool:
    """Return whether *schema* can name arguments outside of its own ``properties``."""
    if not is_object(schema):
        return False
    inner = [schema[key] for key in _SINGLES if key in schema]
    inner += [each for key in _LISTS if is_array(schema.get(key)) for each in schema[key]]
    inner += [each for key in _MAPS if is_object(schema.get(key)) for each in schema[key].values()]
    return "patternProperties" in schema or any(is_object(each) and not _NAMING.isdisjoint(each) for each in inner)


def check_names(
    given: Iterable[str], known: Iterable[str], required: Iterable[object], *, is_open: bool = False
) -> list[str]:
    """Return a sentence for each unknown argument, and one for the missing ones."""
    known, given = list(known), list(given)
    unknown = [] if is_open else [key for key in given if key not in known]
    reasons = [f"There is no argument `{escaped_line(key)}`.{did_you_mean(key, known)}" for key in unknown]
    missing = [f"`{escaped_line(each)}`" for each in required if isinstance(each, str) and each not in given]
    if missing:
        noun, verb = ("Argument", "is") if len(missing) == 1 else ("Arguments", "are")
        reasons.append(f"{noun} {join_words(missing, 'and')} {verb} missing.")
    return reasons


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests names like *name* among *known*, with a space before it; empty if none is."""
    by_folded = {each.casefold(): each for each in islice(known, _MAX_COMPARED)}
    found = difflib.get_close_matches(name.casefold(), by_folded, _MAX_SUGGESTIONS)
    return f" Did you mean {join_words(escaped_line(by_folded[each]) for each in found)}?" if found else ""


def _mismatch(key: str, text: str, schema: object, root: object) -> str:
    found = list(constraints(schema, root))
    name = escaped_line(key)
    if NOTHING_ALLOWED in found:
        return f"`{name}` cannot have a value: its schema has an empty `enum`."
    choices = [each for each in found if each.startswith(("one of", "only"))]
    expected = "; ".join(choices) or f"of type {type_text(schema, root)}"
    return f"`{name}` must be {expected}, not {escaped_line(text)!r}.{_value_hint(key, schema, root)}"


def _value_hint(key: str, schema: object, root: object) -> str:
    names = type_names(schema, root)
    if "boolean" in names and "enum" not in resolve_ref(schema, root):
        return " Write true or false."
    example = "[…]" if "array" in names else "{…}" if "object" in names else ""
    return f" Write JSON: {escaped_line(key)}='{example}'" if example else ""


def _convert(text: str, schema: object, root: object) -> Any:  # noqa: ANN401 (any JSON value)
    """Read *text* as a value of *schema*. If the schema allows a string, it is a string.

    Raises:
        ValueError: It cannot be such a value.
    """
    choices = resolve_ref(schema, root).get("enum")
    if is_array(choices):
        return _choice(text, choices)
    names = type_names(schema, root)
    if "string" in names:
        return text
    if not names:  # any type: JSON if it is valid JSON, otherwise text
        try:
            return _parse_json(text)
        except ValueError:
            return text
    for name in names:
        if _looks_like(text, name):
            return _number(text) if name in ("integer", "number") else _parse_json(text)
    raise ValueError(text)


def _takes_text(text: str, schema: object, root: object) -> bool:
    try:
        return isinstance(_convert(text, schema, root), str)
    except ValueError:
        return False


def _looks_like(text: str, name: str) -> bool:
    match name:
        case "integer":
            return _INTEGER.fullmatch(text) is not None and len(text) < _MAX_DIGITS
        case "number":
            return _NUMBER.fullmatch(text) is not None and len(text) < _MAX_DIGITS
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


def _choice(text: str, choices: list[Any]) -> Any:  # noqa: ANN401 (any JSON value)
    for each in choices:
        if each == text or (not isinstance(each, str) and json.dumps(each) == text):
            return each
    raise ValueError(text)
