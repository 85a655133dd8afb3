"""Refuse keys that no type declares, at every depth of a tool's arguments: for ``unknown_keys="refuse"``.

msgspec decides about unknown keys by the class of a value, and pydantic by the model. For an author who wants to refuse
them in a whole tool, the arguments are compared with the schema of the tool, which closes each object with properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["check_keys", "closed", "has_nested_keys"]

_DEFINITIONS = "$defs"


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* without additional properties in the objects whose properties it lists."""

    def close(value: object) -> object:
        if isinstance(value, list):
            return [close(each) for each in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        # The keys of these are names, not keywords.
        found = {
            key: {name: close(inner) for name, inner in each.items()} if key in ("properties", _DEFINITIONS) else each
            for key, each in members.items()
        }
        for key in ("items", "prefixItems", "anyOf", "oneOf", "additionalProperties"):
            if key in found:
                found[key] = close(found[key])
        if "properties" in found:
            found.setdefault("additionalProperties", False)
        return found

    return cast("dict[str, Any]", close(schema))


def has_nested_keys(schema: Mapping[str, Any]) -> bool:
    """Whether a value inside of the arguments can have keys that *schema* lists."""
    inner = [*schema.get(_DEFINITIONS, {}).values(), *schema["properties"].values()]
    return any(_lists_keys(each) for each in inner)


def _lists_keys(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_lists_keys, cast("list[object]", value)))
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, object]", value)
    return "properties" in members or any(map(_lists_keys, members.values()))


def check_keys(value: object, schema: Mapping[str, Any]) -> None:
    """Refuse a key that *schema*, which is closed, does not list.

    Raises:
        ValidationError: There is such a key. The message is that of msgspec.
    """
    found = _Search(schema.get(_DEFINITIONS, {})).first(value, schema)
    if found is not None:
        key, *path = found
        raise ValidationError(f"Object contains unknown field `{key}` - at `${''.join(reversed(path))}`")


class _Search:
    """A search for an unknown key in one value.

    Args:
        definitions: The definitions that schemas refer to.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        # By value and union. Without it, a value that fits several arms at each depth would take exponential time.
        self._in_unions: dict[tuple[int, int], tuple[str, ...] | None] = {}

    def first(self, value: object, schema: object) -> tuple[str, ...] | None:
        """Return the first unknown key, and the parts of the path to its object, the last one first; None if none is.

        The path is made on the way back: a peer chooses how long keys are, and how many values are below them.
        """
        if not isinstance(schema, dict) or not isinstance(value, (dict, list)):
            return None
        members = self._resolved(cast("dict[str, Any]", schema))
        arms = members.get("anyOf", members.get("oneOf"))
        if arms is not None:
            key = (id(cast("object", value)), id(arms))
            if key not in self._in_unions:
                self._in_unions[key] = self._first_in_union(cast("object", value), arms)
            return self._in_unions[key]
        if isinstance(value, dict):
            return self._first_in_object(cast("dict[str, object]", value), members)
        leading = members.get("prefixItems", [])
        for index, each in enumerate(cast("list[object]", value)):
            item = leading[index] if index < len(leading) else members.get("items")
            if (found := self.first(each, item)) is not None:
                return (*found, f"[{index}]")
        return None

    def _first_in_object(self, value: Mapping[str, object], schema: Mapping[str, Any]) -> tuple[str, ...] | None:
        properties: Mapping[str, Any] = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, each in value.items():
            if key not in properties and others is False:
                return (key,)
            if (found := self.first(each, properties.get(key, others))) is not None:
                return (*found, f".{key}")
        return None

    def _first_in_union(self, value: object, arms: Sequence[Any]) -> tuple[str, ...] | None:
        """Return nothing if one of the arms that fit knows all keys."""
        found: tuple[str, ...] | None = None
        for arm in map(self._resolved, arms):
            if _fits(value, arm):
                unknown = self.first(value, arm)
                if unknown is None:
                    return None
                found = found or unknown
        return found

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        return schema


def _fits(value: object, arm: Mapping[str, Any]) -> bool:
    """Whether *value* can be of an arm of a union, by its type and its tag."""
    if not isinstance(value, dict):
        return bool(arm.get("type", "array") == "array")
    if arm.get("type", "object") != "object":
        return False
    members = cast("dict[str, object]", value)
    for name, each in arm.get("properties", {}).items():
        allowed = each.get("enum", [each["const"]] if "const" in each else None)
        if allowed is not None and name in members and members[name] not in allowed:
            return False
    return True
