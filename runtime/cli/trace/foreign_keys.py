"""Keys that a revision does not define, and which revision does.

A schema of MCP lets most objects have further keys, so that a validator passes what a peer has written for another
revision. It is a mistake all the same: the peer that reads it may not know the key. A key that no revision defines is
odd, but allowed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_array, is_object, pointer_to
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.cli.trace.annotations import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["foreign_keys", "foreign_keys_of_open", "when"]

# A list of a thousand tools has some ten thousand objects; beyond that, looking takes longer than it is worth.
_MOST_OBJECTS: Final = 20_000

_MOST_CHARACTERS: Final = 100  # of a key that is quoted


def foreign_keys(label: str, model: object, value: object, prefix: str) -> list[Finding]:
    """Return the keys in *value* that the revision *label* does not define, each once for each type that has it.

    Args:
        label: The revision.
        model: *value* as the bindings of that revision decoded it.
        value: The JSON value.
        prefix: The pointer to it.
    """
    found: dict[tuple[str, str], tuple[str, int]] = {}
    pending: list[tuple[Any, Any, Any]] = [(model, value, ())]
    for _ in range(_MOST_OBJECTS):
        if not pending:
            break
        holder, members, at = pending.pop()
        if isinstance(holder, Struct) and is_object(members):
            fields = _fields(type(holder))
            for key, member in members.items():
                attribute = fields.get(key)
                if attribute is None:
                    name = type(holder).__name__
                    first, count = found.get((name, key)) or (prefix + _pointer((at, key)), 0)
                    found[name, key] = first, count + 1
                elif type(member) in (dict, list):
                    pending.append((getattr(holder, attribute), member, (at, key)))
        elif is_array(holder) and is_array(members):
            pairs = enumerate(zip(holder, members, strict=False))
            # The last is looked at first, so that this order finds the first place first.
            pending += [(a, b, (at, index)) for index, (a, b) in pairs if type(b) in (dict, list)][::-1]
        elif is_object(holder) and is_object(members):  # a map; or an open object, which may have any key
            pending += [(each, members[key], (at, key)) for key, each in holder.items() if isinstance(each, Struct)]
    return [_finding(label, name, key, first, count) for (name, key), (first, count) in found.items()]


def foreign_keys_of_open(label: str, view: type[Struct], value: Mapping[str, object], prefix: str) -> list[Finding]:
    """Return the keys of *value*, an object that may have any key, which another revision defines for it."""
    own, others = _fields(view), _elsewhere(label, view.__name__)
    return [
        _finding(label, view.__name__, key, f"{prefix}/{key}", 1) for key in value if key not in own and key in others
    ]


def when(label: str, having: list[str]) -> str:
    """Return, as seen from the revision *label*, since or until when there is what the revisions *having* have."""
    labels = [each.label for each in registry.REVISIONS]
    later = [each for each in having if labels.index(each) > labels.index(label)]
    return f"since {later[0]}" if later else f"until {having[-1]}"


def _finding(label: str, name: str, key: str, pointer: str, count: int) -> Finding:
    shown = key if len(key) <= _MOST_CHARACTERS else f"{key[:_MOST_CHARACTERS]}…"
    more = f", {count} times" if count > 1 else ""
    having = _elsewhere(label, name).get(key)
    if having is None:
        return Finding("unknown key", pointer, f"no revision has {shown} in {name}{more}")
    return Finding("foreign key", pointer, f"{shown} is unknown to {label} ({having}){more}")


@cache
def _fields(struct: type[Struct]) -> dict[str, str]:
    """Return the attribute of each key that *struct* has."""
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))


@cache
def _elsewhere(label: str, name: str) -> dict[str, str]:
    """Return the keys that other revisions define for the type *name*, and when."""
    having: dict[str, list[str]] = {}
    for revision in registry.REVISIONS:
        struct = getattr(bindings(revision.label), name, None)
        if isinstance(struct, type) and issubclass(struct, Struct):
            for key in _fields(struct):
                having.setdefault(key, []).append(revision.label)
    return {key: when(label, labels) for key, labels in having.items() if label not in labels}


def _pointer(at: tuple[Any, ...]) -> str:
    tokens: list[str | int] = []
    while at:
        at, token = at
        tokens.append(token)
    return pointer_to(reversed(tokens))
