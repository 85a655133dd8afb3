"""What is built of definitions that are large, or lead back to themselves."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.texts import Texts
from mcpgen.codegen.unions import MAX_ARMS
from tests.codegen.packages import build, build_decoders, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# Unions with a recursive alias

RECURSIVE: dict[str, Any] = {
    "Tree": {"type": "object", "additionalProperties": ref("Tree")},
    "Lists": {"type": "array", "items": ref("Lists")},
    "JSONObject": {"type": "object", "additionalProperties": ref("JSONValue")},
    "JSONValue": {
        "anyOf": [ref("JSONObject"), {"type": "array", "items": ref("JSONValue")}, {"type": ["string", "integer"]}]
    },
    "Other": ref("Tree"),
    "Point": obj(x=STRING),
}

# By name: the arms of a union, what it admits and what it refuses.
SUBJECTS: dict[str, tuple[list[dict[str, Any]], list[Any], list[Any]]] = {
    "string or tree": ([STRING, ref("Tree")], ["abc", {}, {"a": {"b": {}}}], [1, None, [], {"a": 1}, {"a": {"b": ""}}]),
    "tree or string": ([ref("Tree"), STRING], ["abc", {}, {"a": {"b": {}}}], [1, None, [], {"a": 1}]),
    "string or another name": ([STRING, ref("Other")], ["abc", {"a": {}}], [1, None, [], {"a": 1}]),
    "integer or JSON": ([INTEGER, ref("JSONObject")], [1, {}, {"a": [1, {"b": "c"}]}], ["abc", 1.5, [], {"a": [None]}]),
    "null or JSON": ([NULL, ref("JSONObject")], [None, {}, {"a": "b"}], ["abc", 1, [], {"a": 1.5}]),
    "object or lists": ([ref("Point"), ref("Lists")], [{}, {"x": "y"}, [], [[], [[]]]], ["abc", {"x": 1}, [1], [[""]]]),
    "lists or string": ([ref("Lists"), STRING], ["abc", [], [[]]], [1, None, {}, ["abc"], [[1]]]),
    "lists or tree": ([ref("Lists"), ref("Tree"), NULL], [[], [[]], {}, {"a": {}}, None], ["abc", [{}], {"a": []}]),
    "object or tree": ([ref("Point"), ref("Tree")], [{}, {"x": "y"}, {"a": {"b": {}}}], ["abc", [], None]),
}

# By name: where a value of the union stands.
PLACES: dict[str, Callable[[Any], Any]] = {
    "Root": lambda value: value,
    "Renamed": lambda value: value,
    "Wider": lambda value: value,
    "List": lambda value: [value, value],
    "Dict": lambda value: {"k": value},
    "Holder": lambda value: {"inline": value, "named": value, "items": [value], "members": {"k": value}},
    "Required": lambda value: {"named": value},
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_arm_beside_a_recursive_one_is_taken_and_what_no_arm_admits_refused(subject: str, tmp_path: Path) -> None:
    arms, admitted, refused = SUBJECTS[subject]
    union = {"anyOf": arms}
    items, members = ({"type": "array", "items": union}, {"type": "object", "additionalProperties": union})
    definitions = RECURSIVE | {
        "Root": union,
        "Renamed": ref("Root"),
        "Wider": {"anyOf": [{"type": "boolean"}, ref("Root")]},
        "List": items,
        "Dict": members,
        "Holder": obj(inline=union, named=ref("Root"), items=items, members=members),
        "Required": obj(named=ref("Root")) | {"required": ["named"]},
    }
    models = load(build({"$defs": definitions}), tmp_path)

    for (name, put), value in product(PLACES.items(), admitted):
        text = json.dumps(put(value)).encode()
        for decode in (models.decode, msgspec.json.decode):
            made = decode(text, type=getattr(models, name))

            assert put(value) == json.loads(msgspec.json.encode(made)), (name, decode)
    for (name, put), value in product(PLACES.items(), refused):
        text = json.dumps(put(value)).encode()
        with pytest.raises(msgspec.ValidationError):
            models.decode(text, getattr(models, name))
        if name in {"Holder", "Required"}:  # the others are settled by `decode` alone
            with pytest.raises(msgspec.ValidationError):
                msgspec.json.decode(text, type=getattr(models, name))


def test_msgspec_itself_tells_apart_what_it_can(tmp_path: Path) -> None:
    definitions = RECURSIVE | {"Root": {"anyOf": [STRING, ref("Tree")]}}
    models = load(build({"$defs": definitions}), tmp_path)

    with pytest.raises(msgspec.ValidationError, match=r"Expected `str \| object`, got `int`"):
        msgspec.json.decode(b"1", type=models.Root)


# Sizes


def arms(count: int) -> dict[str, Any]:
    return {"anyOf": [{"type": "number", "minimum": index} for index in range(count)]}


def test_the_largest_union_can_be_compiled(tmp_path: Path) -> None:
    build_decoders(load(build({"$defs": {"Large": arms(MAX_ARMS)}}), tmp_path))


@pytest.mark.parametrize(
    ("definitions", "pointer"),
    [({"A": arms(MAX_ARMS + 1)}, "/$defs/A"), ({"A": obj(b=arms(MAX_ARMS + 1))}, "/$defs/A/properties/b")],
)
def test_a_union_of_more_arms_is_refused(definitions: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Refused) as refused:
        build({"$defs": definitions})

    assert [("MG134", pointer)] == [(each.code, each.pointer) for each in refused.value.diagnostics]


def test_where_the_interpreter_gives_up_the_definition_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = Texts.doc

    def endless(self: Texts, name: str, description: str, **others: Any) -> str:
        return (endless if name == "Deep" else doc)(self, name, description, **others)

    monkeypatch.setattr(Texts, "doc", endless)
    for deep in (obj(a=STRING), {"type": "array"}):
        with pytest.raises(Refused) as refused:
            build({"$defs": {"A": obj(a=STRING), "B": STRING, "Deep": deep, "Z": ref("Deep")}})

        assert [("MG006", "/$defs/Deep")] == [(each.code, each.pointer) for each in refused.value.diagnostics]


# Members of a union with the same key


@pytest.mark.parametrize("leaf", [{"leaf": 5}, {"leaf": "a"}], ids=["no arm", "several arms"])
def test_a_key_that_several_arms_share_is_settled_once_at_each_depth(leaf: dict[str, Any], tmp_path: Path) -> None:
    definitions: dict[str, Any] = {
        "Node": {"anyOf": [ref("Left"), ref("Right"), ref("Leaf")]},
        "Left": obj(child=ref("Node"), x=INTEGER) | {"required": ["child"]},
        "Right": obj(child=ref("Node"), y=INTEGER) | {"required": ["child"]},
        "Leaf": obj(leaf=STRING) | {"required": ["leaf"]},
    }
    models = load(build({"$defs": definitions}), tmp_path)

    def calls(depth: int) -> int:
        value = leaf
        for _ in range(depth):
            value = {"child": value}
        made: list[str] = []
        sys.setprofile(lambda frame, event, _: made.append(frame.f_code.co_name) if event == "call" else None)
        try:
            with suppress(msgspec.ValidationError):
                models.decode(json.dumps(value), models.Node)
        finally:
            sys.setprofile(None)
        return len(made)

    calls(1)  # makes the arms
    assert calls(12) < 3 * calls(6)


def test_the_place_of_an_error_takes_no_search_of_its_text_at_each_depth(tmp_path: Path) -> None:
    definitions: dict[str, Any] = {
        "Node": {"anyOf": [ref("Left"), ref("Right")]},
        "Left": obj(child=ref("Node"), x=INTEGER) | {"required": ["child"]},
        "Right": obj(child=ref("Node"), y=INTEGER) | {"required": ["child"]},
    }
    models = load(build({"$defs": definitions}), tmp_path)
    value: dict[str, Any] = {"child": 5}
    for _ in range(20):
        value = {"child": value}
    searches: list[str] = []

    def note(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and isinstance(getattr(called, "__self__", None), re.Pattern):
            searches.append(repr(called))

    sys.setprofile(note)
    try:
        with pytest.raises(msgspec.ValidationError, match="No arm of the union fits"):
            models.decode(json.dumps(value), models.Node)
    finally:
        sys.setprofile(None)

    assert len(searches) < 10
