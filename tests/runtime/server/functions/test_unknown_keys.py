"""``unknown_keys="refuse"`` holds at every depth of the arguments, and the schema says so."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest

from mcpgen import Server, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.server.functions.unknown_keys import check_keys

pytestmark = pytest.mark.anyio


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Size(TypedDict):
    width: int


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    age: int


class Node(msgspec.Struct):
    name: str
    nodes: list[Node] = []


class Model(pydantic.BaseModel):
    a: int
    inner: Model | None = None


NODE = "$.value.nodes[0]"


CASES = [
    (Point, {"x": 1}, {"x": 1, "z": 2}, "$.value", "z"),
    (list[Point], [{"x": 1}], [{"x": 1}, {"x": 1, "z": 2}], "$.value[1]", "z"),
    (tuple[int, Point], [1, {"x": 1}], [1, {"x": 1, "z": 2}], "$.value[1]", "z"),
    (dict[str, Point], {"k": {"x": 1}}, {"k": {"x": 1, "z": 2}}, "$.value.k", "z"),
    (Point | None, None, {"x": 1, "z": 2}, "$.value", "z"),
    (Size, {"width": 1}, {"width": 1, "z": 2}, "$.value", "z"),
    (Cat | Dog, {"type": "Dog", "age": 1}, {"type": "Dog", "age": 1, "lives": 9}, "$.value", "lives"),
    (
        Node,
        {"name": "a", "nodes": [{"name": "b"}]},
        {"name": "a", "nodes": [{"name": "b", "z": 1}]},
        "$.value.nodes[0]",
        "z",
    ),
    (Model, {"a": 1, "inner": {"a": 2}}, {"a": 1, "inner": {"a": 2, "z": 3}}, "$.value.inner", "z"),
    (list[Model], [{"a": 1}], [{"a": 1, "z": 3}], "$.value[0]", "z"),
]


def made(kind: Any, **options: Any) -> Server:
    server = Server("strict", **options)

    def it(value: Any) -> str:
        return "fine"

    it.__annotations__["value"] = kind
    server.tool(it)
    return server


@pytest.mark.parametrize("revision", [each.label for each in REVISIONS])
@pytest.mark.parametrize(("kind", "good", "bad", "place", "key"), CASES)
async def test_an_unknown_key_is_refused_at_every_depth_with_its_place(  # noqa: PLR0913, PLR0917 (the table)
    revision: Any, kind: Any, good: Any, bad: Any, place: str, key: str
) -> None:
    async with connect(made(kind, unknown_keys="refuse"), revisions=[revision]) as client:
        assert "fine" == (await client.call_tool("it", {"value": good})).text
        try:
            text = (await client.call_tool("it", {"value": bad})).text
        except Exception as error:  # noqa: BLE001 (earlier revisions answer with an error)
            text = str(error)

    assert f"Invalid arguments for tool it: Object contains unknown field `{key}` - at `{place}`" in text


@pytest.mark.parametrize(("kind", "good", "bad", "_place", "_key"), CASES)
async def test_the_schema_refuses_and_allows_the_same(kind: Any, good: Any, bad: Any, _place: str, _key: str) -> None:
    async with connect(made(kind, unknown_keys="refuse")) as client:
        (tool,) = (await client.list_tools()).tools

    jsonschema.validate({"value": good}, tool.input_schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"value": bad}, tool.input_schema)


@pytest.mark.parametrize("options", [{}, {"unknown_keys": None}, {"unknown_keys": "ignore"}])
@pytest.mark.parametrize(("kind", "_good", "bad", "_place", "_key"), CASES)
async def test_the_types_decide_unless_the_author_asks(
    options: dict[str, Any], kind: Any, _good: Any, bad: Any, _place: str, _key: str
) -> None:
    async with connect(made(kind, **options)) as client:
        assert "fine" == (await client.call_tool("it", {"value": bad})).text


async def test_free_objects_keep_their_keys() -> None:
    server = made(dict[str, Any] | list[Any] | None, unknown_keys="refuse")
    async with connect(server) as client:
        for value in ({"properties": {"a": 1}}, [{"b": 1}], None):
            assert "fine" == (await client.call_tool("it", {"value": value})).text


def test_a_value_that_fits_several_arms_at_each_depth_takes_no_exponential_time() -> None:
    """A search that tries both arms at each of 60 depths would never end (pydantic's own does not, for such models)."""
    value: dict[str, Any] = {"z": 1}
    for _ in range(60):
        value = {"inner": value}
    arms = {"anyOf": [{"$ref": "#/$defs/Left"}, {"$ref": "#/$defs/Right"}]}
    node = {"type": "object", "properties": {"inner": arms}, "additionalProperties": False}
    schema = {"$ref": "#/$defs/Left", "$defs": {"Left": node, "Right": dict(node)}}

    with pytest.raises(msgspec.ValidationError, match=r"unknown field `z` - at `\$(\.inner){60}`$"):
        check_keys(value, schema)


class Key(str):
    """A key that counts how often it is copied into another text."""

    __slots__ = ()
    copies: ClassVar[int] = 0

    def __format__(self, _: str) -> str:
        Key.copies += 1
        return str(self)


def test_no_path_is_made_for_known_keys() -> None:
    """The path to each of 24,000 objects below a key of 3.5 MB took 3.3 s."""
    schema = {"additionalProperties": {"items": {"properties": {"x": {}}, "additionalProperties": False}}}
    Key.copies = 0
    check_keys({Key("k"): [{}] * 100}, schema)
    assert Key.copies == 0
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `y` - at `\$\.k\[1\]`"):
        check_keys({Key("k"): [{}, {"y": 1}]}, schema)
