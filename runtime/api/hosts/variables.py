"""The variables to which the values of a configuration refer, and their values."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpgen.runtime.errors import printable
from mcpgen.runtime.transports.environment import HOME_VARIABLE

__all__ = ["EntryError", "Variables", "check_unicode", "kind_of"]

_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

# The halves that Python uses for bytes that are not UTF-8 are left out: a file name can have them.
_HALF_OF_A_PAIR: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")

# In characters. A reference can have four, and its value a hundred thousand. Linux passes 2 MiB to a process.
_MAX_VALUES: Final = 16 * 1024 * 1024


class EntryError(Exception):
    """An entry is wrong. Its text shows no value."""


class Variables:
    """Puts the values of variables into the texts of one configuration, until the values have 16 million characters."""

    def __init__(self) -> None:
        self._left = _MAX_VALUES

    def take(self, chars: int) -> None:
        """Count *chars* characters of values.

        Raises:
            EntryError: There are too many.
        """
        self._left -= chars
        if self._left < 0:
            raise EntryError(f"the values of variables have more than {_MAX_VALUES} characters; use fewer of them")

    def replaced(self, where: str, value: object) -> str:
        """Return *value* as text with the values of its variables.

        Raises:
            EntryError: It is not text, or no valid Unicode, a variable has no value, or the values are too long.
        """
        if isinstance(value, int | float) and not isinstance(value, bool):  # a port, for example, without its quotes
            return str(value)
        if not isinstance(value, str):
            raise EntryError(f"`{where}` must be a string, not {kind_of(value)}")
        check_unicode(f"`{where}`", value)

        def replacement(found: re.Match[str]) -> str:
            text = _variable(where, found[1])
            self.take(len(text))
            return text

        return _REFERENCE.sub(replacement, value)


def check_unicode(what: str, text: str) -> None:
    """Check that *text* is valid Unicode; *what* names it in the error.

    Raises:
        EntryError: It has half of a surrogate pair, which JSON can write as an escape.
    """
    if _HALF_OF_A_PAIR.search(text):
        raise EntryError(f"{what} is not valid Unicode: it contains half of a surrogate pair; correct it")


def _variable(where: str, name: str) -> str:
    match name:
        case "userHome":
            return _user_home(where)
        case "pathSeparator" | "/":
            return os.sep
        case _:
            pass
    if name == "workspaceFolder":  # `read_config` replaces it
        reason = "which is known only for a configuration in a file; pass read_config(path), or write the value itself"
        raise EntryError(f"`{where}` refers to ${{{name}}}, {reason}")
    found = _VARIABLE.fullmatch(name)
    if found is None:
        shown = printable(name.partition(":-")[0][:40])
        raise EntryError(f"`{where}` refers to ${{{shown}}}, which only the host can replace; write the value itself")
    default: str | None = found[2]
    value = os.environ.get(found[1])
    value = default if value is None else value
    if value is None:
        raise EntryError(f"`{where}` refers to ${{{name}}}, but the environment variable {found[1]} is not set")
    return value


def _user_home(where: str) -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        reason = f"this user has no home folder; set the environment variable {HOME_VARIABLE}"
        raise EntryError(f"`{where}` refers to ${{userHome}}, but {reason}") from None


def kind_of(value: object) -> str:
    """Return what *value* is, in the words of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return type(value).__name__
