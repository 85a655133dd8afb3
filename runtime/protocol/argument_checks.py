"""Checks of the types of arguments that users pass, for values that Python would accept until later."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from os import PathLike
from typing import Any, cast

import msgspec

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.value_syntax import uri_fault

__all__ = [
    "check_fields",
    "check_file_path",
    "check_flags",
    "check_lists",
    "check_method",
    "check_numbers",
    "check_option_names",
    "check_parameters",
    "check_required_texts",
    "check_strings",
    "check_texts",
    "check_whole_numbers",
    "function_name",
]


def check_flags(**flags: object) -> None:
    """Refuse values other than True and False, such as the text of an environment variable: ``"0"`` counts as true.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UsageError(f"`{name}` must be True or False, not {value!r}")


def check_texts(**texts: object) -> None:
    """Refuse values other than strings and None. The message does not show the value, which may be a secret.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"`{name}` must be a string, not {type(value).__name__}")


def check_required_texts(**texts: object) -> None:
    """Refuse values other than strings, as `check_texts` does, and None.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in texts.items():
        if value is None:
            raise UsageError(f"`{name}` must be a string, not None")
    check_texts(**texts)


def check_fields(value: msgspec.Struct, where: str) -> None:
    """Refuse a Struct that its own type does not accept: Python does not check the values of its fields.

    Raises:
        UsageError: A field is not valid, or cannot be written as JSON. The message names it, and *where* it was given.
    """
    kind: Any = type(value)
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    for name in names.values():
        field = getattr(value, name)
        try:
            msgspec.json.encode(None if field is msgspec.UNSET else field)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"`{name}` {where} cannot be written as JSON: {error}; correct its value") from error
    try:
        checked = models.decode(msgspec.json.encode(value), kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        place = re.search(r" - at `\$\.(\w+)(`$)?", str(error))
        if place is None or place[1] not in names:
            raise UsageError(f"an option {where} is not valid: {error}; correct its value") from error
        # The place is the field itself, or inside of it.
        reason = str(error)[: place.start()] if place[2] else str(error)
        raise UsageError(f"`{names[place[1]]}` {where} is not valid: {reason}; correct its value") from error
    for icon in getattr(checked, "icons", None) or ():
        if uri_fault(icon.src):
            raise UsageError(
                f"`src` of an icon {where} is {icon.src[:100]!r}; write a URI, such as https://… or data:…"
            )
    website_url = getattr(checked, "website_url", None)
    if isinstance(website_url, str) and uri_fault(website_url):
        raise UsageError(f"`website_url` {where} is {website_url[:100]!r}; write a URI, such as https://example.com")


def check_option_names(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse an option that *function* does not have.

    Raises:
        UsageError: There is one. The message names those that there are, or the one that was meant.
    """
    for each in given:
        if each not in known:
            import difflib  # noqa: PLC0415 (only this error needs it)

            meant = difflib.get_close_matches(each, known, 1)
            hint = f"did you mean `{meant[0]}`?" if meant else f"the options are {', '.join(known)}"
            raise UsageError(f"{function}() has no option `{each}`; {hint}")


def check_icons(icons: object) -> None:
    """Refuse icons that are no list.

    Raises:
        UsageError: They are something else, and not None.
    """
    if icons is not None and (isinstance(icons, str) or not isinstance(icons, Iterable)):
        raise UsageError(f"`icons` must be a list of Icon, such as [Icon(src='https://…')], not {icons!r}")


def check_lists(**lists: object) -> None:
    """Refuse values that are neither lists nor other collections; a string is none.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in lists.items():
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise UsageError(f"`{name}` must be a list, not {value!r}")


def check_strings(name: str, value: object, example: str) -> None:
    """Refuse an argument that is no collection of strings; a string is none.

    Raises:
        UsageError: It is something else. The message names the argument.
    """
    is_list = isinstance(value, Collection) and not isinstance(value, str)
    if not is_list or not all(isinstance(each, str) for each in cast("Collection[object]", value)):
        raise UsageError(f"`{name}` must be a list of strings, such as {[example]!r}, not {value!r}")


def check_numbers(**numbers: object) -> None:
    """Refuse values other than numbers.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"`{name}` must be a number, not {value!r}")


def check_whole_numbers(**numbers: object) -> None:
    """Refuse values other than whole numbers.

    Raises:
        UsageError: A value is something else. The message names its argument.
    """
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"`{name}` must be a whole number, not {value!r}")


def check_method(method: object, example: str) -> None:
    """Refuse anything but a constant of a generated module ``methods``, such as the *example* if it is not empty.

    Raises:
        UsageError: It is something else, such as the name of a method.
    """
    if not hasattr(method, "name"):
        such = f", such as methods.{example}," if example else " or of an extension,"
        raise UsageError(f"`method` must be a constant of the module `methods` of the bindings{such} not {method!r}")


def check_file_path(name: str, value: object) -> None:
    """Refuse an argument that is no path of a file: one that is neither ``str`` nor `os.PathLike`, or empty.

    Raises:
        UsageError: It is something else. The message names the argument.
    """
    if not isinstance(value, str | PathLike):
        raise UsageError(f"`{name}` must be a path, as a string or a Path, not {value!r}")
    text = str(cast("object", value))
    if not text or "\0" in text:
        raise UsageError(f"`{name}` is {text!r}; write a path that is not empty and has no NUL character")


def check_parameters(name: str, function: Callable[..., object], arguments: str, count: int) -> None:
    """Check that *function*, given as the option *name*, can be called with *count* arguments.

    Raises:
        UsageError: It cannot.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some functions that are written in C have none
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise UsageError(
            f"`{name}` must be a function that takes {arguments}, but {function_name(function)} takes {signature}"
        ) from None


def function_name(function: object) -> str:
    """Return how an error names a *function*: ``f()``."""
    return f"{getattr(function, '__qualname__', type(function).__name__)}()"
