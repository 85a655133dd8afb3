"""The schemas that signatures give, and the signatures that are refused."""

# Annotations in this file are objects, not text: test_signatures.py has those.

import datetime as dt
import enum
import functools
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import jsonschema
import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.context import Context
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers


class Color(enum.Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Point(Struct):
    """A place."""

    x: int
    y: Annotated[float, Meta(description="Height.")] = 0.0


class Tree(Struct):
    children: "list[Tree]" = []


class Cat(Struct, tag=True):
    lives: int


class Dog(Struct, tag=True):
    name: str


@dataclass
class Box:
    point: Point
    color: Color = Color.RED


class Options(TypedDict):
    deep: bool
    label: NotRequired[str]


class Cup(enum.Enum):
    LARGE = "large"
    MEDIUM = "medium"
    SMALL = "small"


class Tray(Struct):
    extras: list[Literal["milk", "lemon"]]


class Size(enum.IntEnum):
    SMALL = 1


class Nothing(enum.Enum):
    """Has no values."""


class Puppy(Struct, tag="Dog"):
    name: str


class Parrot(Struct, tag=True, tag_field="species"):
    name: str


class Opaque:
    pass


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the input schema that is listed for *function*, a valid schema itself."""
    catalogue = FunctionHandlers()
    catalogue.tool(name="it")(function)
    found: dict[str, Any] = catalogue._registry.tools.entries["it"].definition.input_schema
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def refusal(function: Any, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        FunctionHandlers().tool(**{"name": "it"} | options)(function)
    return str(caught.value)


# --- what a schema says


@pytest.mark.spec("2025-11-25", "server/tools#tool")
@pytest.mark.spec("2026-07-28", "server/tools#tool")
def test_no_parameters_make_an_object_without_members() -> None:
    def nothing() -> None: ...

    assert {"type": "object", "properties": {}, "additionalProperties": False} == schema(nothing)


def test_parameters_are_described_by_types_defaults_docstring_and_meta() -> None:
    def order(
        item: str,
        count: Annotated[int, Meta(ge=1, description="How many.", title="Number")] = 1,
        note: str | None = None,
        *,
        size: Literal["l", "s"] = "s",
        ctx: Context,
    ) -> None:
        """Order it.

        Args:
            item: What to buy.
            count: Not this, since Meta precedes.
        """

    assert schema(order) == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "What to buy."},
            "count": {"type": "integer", "minimum": 1, "title": "Number", "description": "How many.", "default": 1},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "size": {"type": "string", "enum": ["l", "s"], "default": "s"},
        },
        "required": ["item"],
        "additionalProperties": False,
    }


def test_a_choice_keeps_the_order_of_its_author() -> None:
    def order(size: Literal["s", "l"], several: list[Literal["b", "a"]]) -> None: ...

    properties = schema(order)["properties"]

    assert (["s", "l"], ["b", "a"]) == (properties["size"]["enum"], properties["several"]["items"]["enum"])


def test_an_enum_and_a_nested_choice_keep_the_order_of_their_author() -> None:
    def serve(cup: Cup, several: list[Cup], named: dict[str, Literal["tea", "coffee"]], tray: Tray) -> None: ...

    found = schema(serve)

    assert ["large", "medium", "small"] == found["$defs"]["Cup"]["enum"]
    assert ["tea", "coffee"] == found["properties"]["named"]["additionalProperties"]["enum"]
    assert ["milk", "lemon"] == found["$defs"]["Tray"]["properties"]["extras"]["items"]["enum"]


def test_a_text_beside_a_type_describes_what_nothing_else_does() -> None:
    def order(
        count: Annotated[int, "How many."],
        size: Annotated[str, Meta(description="How big."), "Not this, since Meta precedes."],
        note: Annotated[str, "Not this, since the docstring precedes."] = "",
    ) -> None:
        """Order it.

        Args:
            note: What else.
        """

    properties = schema(order)["properties"]

    assert {"type": "integer", "description": "How many."} == properties["count"]
    assert ["How big.", "What else."] == [properties[each]["description"] for each in ("size", "note")]


def test_times_and_choices_say_what_they_are_wherever_they_stand() -> None:
    def plan(
        at: dt.datetime, on: dt.date, maybe: dt.datetime | None, several: list[dt.datetime], mixed: Literal["a", 1]
    ) -> None: ...

    assert schema(plan)["properties"] == {
        "at": {"type": "string", "format": "date-time"},
        "on": {"type": "string", "format": "date"},
        "maybe": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "several": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        "mixed": {"enum": ["a", 1]},
    }


def test_what_types_refer_to_is_inside_the_schema() -> None:
    def put(box: Box, tree: Tree, options: Options, where: Optional[Point] = None) -> None: ...  # noqa: UP045 (as users write it)

    found = schema(put)

    assert {"Box", "Point", "Color", "Tree", "Options"} == found["$defs"].keys()
    assert {"$ref": "#/$defs/Box"} == found["properties"]["box"]
    assert "A place." == found["$defs"]["Point"]["description"]
    assert "Height." == found["$defs"]["Point"]["properties"]["y"]["description"]
    assert {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []} == (
        found["$defs"]["Tree"]["properties"]["children"]
    )
    jsonschema.validate({"box": {"point": {"x": 1}}, "tree": {"children": [{}]}, "options": {"deep": True}}, found)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (object, {}),
        (Any, {}),
        (dict[str, object], {"type": "object", "additionalProperties": {}}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (list[dt.datetime], {"type": "array", "items": {"type": "string", "format": "date-time"}}),
        (dt.datetime | None, {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
    ],
    ids=str,
)
def test_types_become_schemas(annotation: Any, expected: dict[str, Any]) -> None:
    def take(it: object) -> None: ...

    take.__annotations__["it"] = annotation

    assert expected == schema(take)["properties"]["it"]


def test_tagged_structs_may_share_a_union() -> None:
    def feed(pet: Cat | Dog) -> None: ...

    assert {"Cat", "Dog"} == schema(feed)["$defs"].keys()


def test_defaults_that_are_lists_structs_or_enums_are_shown_as_json() -> None:
    def paint(
        colors: list[Color] = [Color.RED],  # noqa: B006 (what is tested)
        at: Point = Point(1),  # noqa: B008 (what is tested)
        one: Color = Color.BLUE,
        some: frozenset[str] = frozenset("dcba"),
    ) -> None: ...

    properties = schema(paint)["properties"]

    assert [["red"], {"x": 1, "y": 0.0}, "blue", ["a", "b", "c", "d"]] == [
        properties[each]["default"] for each in ("colors", "at", "one", "some")
    ]


def test_a_default_that_json_has_no_number_for_is_left_out_but_holds() -> None:
    def wait(seconds: float = float("inf"), unset: int | UnsetType = UNSET) -> None: ...

    found = schema(wait)

    assert "required" not in found
    assert not any("default" in each for each in found["properties"].values())


# --- what is refused, and how


@pytest.mark.parametrize("default", [Opaque, Opaque(), [object()], print, "\ud800", (each for each in "ab")])
def test_a_default_that_cannot_be_written_as_json_is_refused(default: object) -> None:
    def wait(mark: Any = default) -> None: ...

    with pytest.raises(UsageError, match=r"the default of parameter `mark` of .* cannot be written as JSON .*; use"):
        schema(wait)


def test_a_default_that_json_would_change_is_refused() -> None:
    def wait(seconds: list[float] = [float("nan")]) -> None: ...  # noqa: B006 (what is tested)

    with pytest.raises(UsageError, match=r"the default of parameter `seconds` of .* contains inf or nan, which"):
        schema(wait)


def test_the_keys_of_a_default_are_texts_in_the_schema() -> None:
    def count(sizes: dict[int, str] = {2: "b", 1: "a"}) -> None: ...  # noqa: B006 (what is tested)

    assert {"1": "a", "2": "b"} == schema(count)["properties"]["sizes"]["default"]


def test_what_no_schema_can_say_is_refused_with_function_parameter_and_way_out() -> None:  # noqa: C901 (a list)
    def stars(*paths: str) -> None: ...
    def options(**more: str) -> None: ...
    def positional(a: int, /) -> None: ...
    def bare(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 (what is tested)
    def custom(a: Opaque) -> None: ...
    def inner(a: list[tuple[int, Opaque]]) -> None: ...
    def union(a: list[Point | Tree]) -> None: ...
    def raw(a: Raw) -> None: ...
    def none(a: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013 (what is tested)
    def wrong(a: int = "x") -> None: ...  # type: ignore[assignment]
    def private(__a__: int) -> None: ...

    here = f"{__name__}.{test_what_no_schema_can_say_is_refused_with_function_parameter_and_way_out.__name__}.<locals>"
    expected = [
        (stars, "takes `*paths`", "of the type `list`"),
        (options, "takes `**more`", "of the type `dict`"),
        (positional, "parameter `a` of", "remove the `/`"),
        (bare, "parameter `a` of", "write its type"),
        (custom, "(msgspec does not know this class)", "use a type that msgspec supports"),
        (inner, f"(msgspec does not know the class {__name__}.Opaque in it)", "use a type that msgspec supports"),
        (union, "parameter `a` of", "use Structs with tags"),
        (raw, "parameter `a` of", "annotate it with `object`"),
        (none, "parameter `a` of", "write `a: … | None = None`"),
        (wrong, "the default of parameter `a` of", "change the default or the type"),
        (private, "parameter `__a__` of", "rename it"),
    ]

    for function, what, way_out in expected:
        message = refusal(function)
        assert (True, True, True) == (
            what in message,
            way_out in message,
            f"{here}.{function.__name__}()" in message,
        ), message


def test_the_way_out_of_a_union_that_msgspec_refuses_fits_its_types() -> None:
    def numbers(a: int | Size) -> None: ...
    def maps(a: dict[int, str] | dict[str, int]) -> None: ...
    def map_or_struct(a: dict[str, int] | Dog) -> None: ...
    def empty(a: Nothing) -> None: ...
    def same_tags(a: Dog | Puppy) -> None: ...
    def other_keys(a: Dog | Parrot) -> None: ...

    tags = "use Structs with tags (`class A(Struct, tag=True)`), or a pydantic model for each"
    expected = [
        (numbers, "use one of them, such as `int`"),
        (maps, "use one of them"),
        (map_or_struct, "use one of them"),
        (empty, "add a value to the Enum"),
        (same_tags, tags),
        (other_keys, tags),
    ]

    assert [way_out for _, way_out in expected] == [refusal(each).rpartition("; ")[2] for each, _ in expected]


@pytest.mark.parametrize("module", ["pydantic.fields", "annotated_types"])
def test_a_constraint_of_another_library_is_refused_since_it_would_be_lost(module: str) -> None:
    constraint = type("Ge", (), {"__module__": module})()

    def order(count: Annotated[int, constraint]) -> None: ...

    message = refusal(order)

    assert "parameter `count` of" in message
    assert "has the constraint Ge in `Annotated`, which is not supported; use `msgspec.Meta`" in message


def test_what_is_no_plain_function_is_refused() -> None:
    def generate() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    assert "is a lambda" in refusal(lambda: 1)
    assert "is a class" in refusal(Point)
    assert "is not a function" in refusal(3)
    assert "return a list" in refusal(generate)
    assert "return a list" in refusal(stream)
    assert "has no readable signature" in refusal(iter)


@pytest.mark.spec("2025-11-25", "server/tools#tool-names", "b812d6b2", "d36f5ecc", "e0d1a21a")
@pytest.mark.spec("2026-07-28", "server/tools#tool-names", "b812d6b2", "d36f5ecc", "e0d1a21a")
@pytest.mark.parametrize("name", ["", "a b", "a,b", "é", "a/b", "a" * 129, "a\n", "<lambda>"])
def test_a_name_that_no_tool_may_have_is_refused(name: str) -> None:
    def it() -> None: ...

    assert "set another with `name=`" in refusal(it, name=name)


@pytest.mark.spec("2025-11-25", "server/tools#tool-names", "d36f5ecc")
@pytest.mark.parametrize("name", ["a", "getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b", "a" * 128])
def test_names_of_the_specification_are_accepted(name: str) -> None:
    def it() -> None: ...

    FunctionHandlers().tool(name=name)(it)


def test_a_partial_has_no_name_and_needs_one() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(UsageError, match="set the name of the tool with `name=`"):
        FunctionHandlers().tool(functools.partial(add, b=1))


# --- headers


def region(header: object) -> Any:
    return Annotated[str, Meta(extra_json_schema={"x-mcp-header": header})]


@pytest.mark.spec("2026-07-28", "server/tools#x-mcp-header")
def test_a_parameter_may_ask_for_a_header() -> None:
    def query(where: region("Region"), sql: str) -> None: ...  # type: ignore[valid-type]

    assert "Region" == schema(query)["properties"]["where"]["x-mcp-header"]


@pytest.mark.spec("2026-07-28", "server/tools#x-mcp-header", "6cc4c45e", "53f114c9")
@pytest.mark.parametrize("header", ["", "a b", "a\r\nb", "é", "a:b", 1])
def test_a_header_has_a_name_that_http_allows(header: object) -> None:
    def query(where: region(header)) -> None: ...  # type: ignore[valid-type]

    assert "which is not a header name" in refusal(query)


@pytest.mark.spec("2026-07-28", "server/tools#x-mcp-header", "187435c6", "8fb9e64b", "3d7b46a9")
def test_headers_are_unique_primitive_and_at_the_top() -> None:
    asked = Meta(extra_json_schema={"x-mcp-header": "Region"})

    class Inner(Struct):
        where: Annotated[str, asked]

    def twice(
        a: Annotated[str, asked], b: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "REGION"})]
    ) -> None: ...
    def number(a: Annotated[float, asked]) -> None: ...
    def nullable(a: Annotated[str | None, asked]) -> None: ...
    def nested(a: Inner) -> None: ...
    def items(a: list[Annotated[str, asked]]) -> None: ...

    assert "which parameter `a` uses already" in refusal(twice)
    assert "of the type str, int or bool" in refusal(number)
    assert "of the type str, int or bool" in refusal(nullable)
    assert "inside of a parameter" in refusal(nested)
    assert "inside of a parameter" in refusal(items)
