"""Documents whose instances carry keys that their revision does not define.

An *injected* document is the patched one with optional keys added to its objects: each foreign key, with values that
its own revision allows and values that it does not, and keys that no revision has. Whatever draws instances from such a
document puts these keys in all places, alone and together; what is then still valid as the patched document says is a
message that a peer may send.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.adapters.closed import foreign
from tests.adapters.correspondence import Document, Pointer, at
from tests.oracle import subjects
from tests.oracle.instances import Instances

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.oracle.shapes import Json, Schema

# Keys of no revision: one that looks like an extension, one of another case, one that is empty.
UNKNOWN = ("x-unknown", "NAME", "")
# At least one of them is invalid for every key that has a type at all.
WRONG: tuple[Json, ...] = (None, 7, {"x-unknown": 1})
# How many valid values of a foreign key are tried, by revision that defines it.
VALID = 4


@cache
def spoken(revision: str) -> Mapping[str, Any]:
    """Return the patched document of *revision*, whose instances say what is said, where it allows any string.

    A result whose type is any string but ``complete`` is no result yet, so that there would be nothing to adapt.
    """
    document = copy.deepcopy(dict(subjects.patched(revision)))
    for definition in document[Document(revision).section].values():
        if definition.get("properties", {}).get("resultType", {}).get("default") == "complete":
            definition["properties"]["resultType"]["enum"] = [*["complete"] * 9, "x-unknown"]
    return document


@cache
def injected(revision: str) -> Mapping[str, Any]:
    """Return the patched document of *revision* with foreign and unknown keys."""
    document = copy.deepcopy(dict(spoken(revision)))
    added: dict[Pointer, dict[str, Schema]] = {}
    for place in _objects(document[Document(revision).section], (Document(revision).section,)):
        added[place] = {key: {} for key in UNKNOWN}
    for pointer, keys in foreign(revision).items():
        place = pointer
        while "$ref" in at(document, place):  # its other uses are given the key too, where it is unknown
            place = (Document(revision).section, at(document, place)["$ref"].rpartition("/")[2])
        for key, origins in keys.items():
            values = [value for origin in origins for value in _valid(*origin)]
            added[place][key] = {"enum": [*values, *WRONG]}
    for pointer, properties in added.items():
        schema: Schema = at(document, pointer)
        if "properties" not in schema:
            schema.setdefault("additionalProperties", True)
        schema["properties"] = properties | schema.get("properties", {})
    return document


def _objects(schema: Any, pointer: Pointer) -> list[Pointer]:
    """Return where *schema* describes objects with known keys, or with any."""
    found: list[Pointer] = []
    if isinstance(schema, dict):
        free = schema.get("additionalProperties", True) in (True, {})
        if schema.get("type") == "object" and free and isinstance(schema.get("properties", {}), dict):
            found.append(pointer)
        for key, inner in schema.items():
            found += _objects(inner, (*pointer, key))
    elif isinstance(schema, list):
        for index, inner in enumerate(schema):
            found += _objects(inner, (*pointer, index))
    return found


@cache
def _valid(revision: str, pointer: Pointer) -> tuple[Json, ...]:
    """Return a few values that *revision* allows at *pointer*."""
    document = subjects.patched(revision)
    section = Document(revision).section
    # In a definition of its own, because that is what the generator takes.
    extended = {**document, section: {**document[section], "the value": at(document, pointer)}}
    values = list(Instances(extended).systematic("the value"))
    return tuple(values[:: max(1, len(values) // VALID)][:VALID])
