"""Find keys that the revision of a message does not define: keys of other revisions, and unknown keys.

MCP schemas allow additional keys in most objects, so a JSON Schema validator accepts a key of another revision. It is
still a violation: the peer may not know the key. A key that no revision defines is allowed, but unusual.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_array, is_object, linked_pointer
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.protocol.trace.annotations import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["foreign_keys", "foreign_keys_of_open", "defined_when"]

# A list of a thousand tools has about ten thousand objects. More objects take too long to check.
_MAX_OBJECTS: Final = 20_000

# SEP-2133, "Negotiation": peers of handshake revisions declare extensions here, too.
_EXTENSIONS: Final = frozenset({("ClientCapabilities", "extensions"), ("ServerCapabilities", "extensions")})

_MAX_QUOTED_KEY: Final = 100


def foreign_keys(label: str, model: object, value: object, prefix: str) -> list[Finding]:
    """Return the keys in *value* that the revision *label* does not define: one finding for each type and key.

    Args:
        label: The revision.
        model: *value*, decoded by the bindings of that revision.
        value: The JSON value.
        prefix: The pointer to the value.
    """
    found: dict[tuple[str, str], tuple[str, int]] = {}
    pending: list[tuple[Any, Any, Any]] = [(model, value, ())]
    for _ in range(_MAX_OBJECTS):
        if not pending:
            break
        holder, members, at = pending.pop()
        if isinstance(holder, Struct) and is_object(members):
            fields = _fields(type(holder))
            for key, member in members.items():
                attribute = fields.get(key)
                if attribute is None and (type(holder).__name__, key) in _EXTENSIONS:
                    continue
                if attribute is None:
                    name = type(holder).__name__
                    first, count = found.get((name, key)) or (prefix + linked_pointer((at, _shown(key))), 0)
                    found[name, key] = first, count + 1
                elif type(member) in (dict, list):
                    pending.append((getattr(holder, attribute), member, (at, key)))
        elif is_array(holder) and is_array(members):
            pairs = enumerate(zip(holder, members, strict=False))
            # The list is a stack: reversed, so that the first item is checked first.
            pending += [(a, b, (at, index)) for index, (a, b) in pairs if type(b) in (dict, list)][::-1]
        elif is_object(holder) and is_object(members):  # a map, or an open object with any keys
            pending += [
                (each, members[key], (at, _shown(key))) for key, each in holder.items() if isinstance(each, Struct)
            ]
    return [_finding(label, name, key, first, count) for (name, key), (first, count) in found.items()]


def foreign_keys_of_open(label: str, view: type[Struct], value: Mapping[str, object], prefix: str) -> list[Finding]:
    """Return the keys of *value*, an open object, that only other revisions define."""
    own, others = _fields(view), _elsewhere(label, view.__name__)
    return [
        _finding(label, view.__name__, key, f"{prefix}/{key}", 1) for key in value if key not in own and key in others
    ]


def defined_when(label: str, having: list[str]) -> str:
    """Return when something was added or removed, as seen from *label*, if the revisions *having* define it."""
    labels = [each.label for each in registry.known()]
    later = [each for each in having if labels.index(each) > labels.index(label)]
    return f"added in {later[0]}" if later else f"removed after {having[-1]}"


def _finding(label: str, name: str, key: str, pointer: str, count: int) -> Finding:
    shown = _shown(key)
    more = f", {count} times" if count > 1 else ""
    having = _elsewhere(label, name).get(key)
    if having is None:
        return Finding("unknown key", pointer, f"no revision defines `{shown}` in {name}{more}")
    return Finding("key of another revision", pointer, f"{label} has no `{shown}` in {name} ({having}){more}")


def _shown(key: str) -> str:
    """Return *key*, cut: thousands of pointers may lead through it."""
    return key if len(key) <= _MAX_QUOTED_KEY else f"{key[:_MAX_QUOTED_KEY]}…"


@cache
def _fields(struct: type[Struct]) -> dict[str, str]:
    """Return the attribute name of each key of *struct*."""
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))


@cache
def _elsewhere(label: str, name: str) -> dict[str, str]:
    """Return the keys that only other revisions define for the type *name*, and when they were added or removed."""
    having: dict[str, list[str]] = {}
    for revision in registry.known():
        struct = getattr(bindings(revision.label), name, None)
        if isinstance(struct, type) and issubclass(struct, Struct):
            for key in _fields(struct):
                having.setdefault(key, []).append(revision.label)
    return {key: defined_when(label, labels) for key, labels in having.items() if label not in labels}
