"""Checks of a function before it is registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from mcpgen.runtime.adapt.json_pointer import pointer_to
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_fields
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.sent_values import sent_value_fault
from mcpgen.runtime.server.access import SCOPE
from mcpgen.runtime.server.functions.completions import Completion
from mcpgen.runtime.server.functions.prompts import Prompt
from mcpgen.runtime.server.functions.resources import ResourceFunction
from mcpgen.runtime.server.functions.tools import Tool
from mcpgen.runtime.server.functions.visibility import check_names

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_definition", "check_scopes", "check_unused"]

# A server SHOULD NOT ask for it (2026-07-28, basic/authorization, "Refresh Tokens").
_OFFLINE: Final = "offline_access"

Registered: TypeAlias = Tool | Prompt | Completion | ResourceFunction


def check_definition(definition: msgspec.Struct, label: str) -> None:
    """Refuse a definition that no list could hold: one that cannot be sent makes its whole list fail.

    Raises:
        UsageError: An option is of the wrong type, or has a value that cannot be sent.
    """
    kind: Any = type(definition)
    _check_annotations(definition, label)
    for name in definition.__struct_fields__:
        if isinstance(getattr(definition, name), bytes):  # which msgspec would write as Base64
            wanted = {"annotations": "an object", "size": "an integer"}.get(name, "a string")
            raise UsageError(f"`{name}` in the decorator of {label} must be {wanted}, not bytes")
    check_fields(definition, f"in the decorator of {label}")
    fault = sent_value_fault(models.decode(msgspec.json.encode(definition), kind))
    if fault is not None:
        names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        place = f" at {pointer_to(fault[0][1:])}" if fault[0][1:] else ""
        raise UsageError(f"`{names[str(fault[0][0])]}` in the decorator of {label} is not valid{place}: {fault[1]}")


def _check_annotations(definition: msgspec.Struct, label: str) -> None:
    """Refuse annotations whose names are lost: a schema allows any other key.

    Raises:
        UsageError: They are those of another kind, or a mapping with the Python name of a field.
    """
    kinds: list[type[msgspec.Struct]] = [models.ToolAnnotations, models.Annotations]
    wanted, other = kinds if isinstance(definition, models.Tool) else reversed(kinds)
    given: Any = getattr(definition, "annotations", None)
    if isinstance(given, other):
        raise UsageError(f"`annotations` of {label} must be {wanted.__name__}(…), not {other.__name__}(…)")
    for name, key in zip(wanted.__struct_fields__, wanted.__struct_encode_fields__, strict=True):
        if isinstance(given, Mapping) and name != key and name in given:
            made = f"{wanted.__name__}({name}={given[name]!r})"
            raise UsageError(f"`annotations` of {label} has the unknown key {name!r}; write {made}, or {key}")
    if isinstance(given, Mapping):
        from difflib import get_close_matches  # noqa: PLC0415 (most functions have no such mapping)

        keys = wanted.__struct_encode_fields__
        for unknown in cast("Mapping[object, object]", given).keys() - set(keys):
            if meant := get_close_matches(str(unknown), keys, 1, 0.8):
                raise UsageError(f"`annotations` of {label} has the unknown key {unknown!r}; did you mean {meant[0]}?")


def check_unused(kind: str, key: str, added: Registered, existing: Registered | None) -> None:
    """Refuse a second function of the same name or URI.

    Raises:
        UsageError: There is an *existing* one.
    """
    if existing is not None:
        remedies = {"resource": "give one of them another URI", "completion of": "remove one of them"}
        remedy = remedies.get(kind, "rename one of them")
        if added.label == existing.label:  # one function, or two of the same name
            remedy = f"register it once, or, if there are two functions, {remedy}"
        raise UsageError(f"the {kind} {key!r} of {added.label} is registered already, by {existing.label}; {remedy}")


def check_scopes(scopes: Iterable[str], argument: str = "scopes") -> frozenset[str]:
    """Return scopes that were given as *argument*.

    Raises:
        UsageError: They are not a collection of scopes.
    """
    found = check_names(argument, scopes)
    for each in found:
        if not SCOPE.fullmatch(each):
            raise UsageError(
                f"`{argument}` has {each!r}, which is not a scope; use visible ASCII without spaces, quotes and "
                "backslashes"
            )
        if each == _OFFLINE:
            raise UsageError(f"`{argument}` has {_OFFLINE}, which only clients ask for; remove it")
    return found
