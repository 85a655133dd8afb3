"""The forms that types make, and what becomes of what was filled in."""

# Annotations in this file are objects, not text: forms are made of them.

import datetime as dt
import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from msgspec import Meta, Struct
from pydantic import BaseModel

from mcpgen import Context, Server, UsageError
from mcpgen.runtime.server import elicitation_forms
from mcpgen.runtime.server.elicitation_forms import find_mismatch, form_schema
from mcpgen.runtime.server.functions.schemas import schema_of
from tests.specification.server.revision_client import client


class Size(enum.Enum):
    LARGE = "large"
    SMALL = "small"


class Cup(enum.Enum):
    MEDIUM = "medium"
    LARGE = "large"
    SMALL = "small"


class Order(Struct, rename="camel"):
    count: Annotated[int, Meta(ge=1, description="How many.")]
    due_at: dt.datetime | None = None
    day: dt.date | None = None
    note: str | None = None
    number: float | None = 1.5
    size: Size = Size.LARGE
    kind: Literal["black", "green"] = "black"
    extras: list[Literal["lemon", "milk"]] = []
    sure: bool = False


def test_a_field_that_may_be_none_need_not_be_filled_in_and_the_others_say_what_they_are() -> None:
    assert form_schema(Order) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "description": "How many."},
            "dueAt": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "note": {"type": "string"},
            "number": {"type": "number", "default": 1.5},
            "size": {"type": "string", "enum": ["large", "small"], "default": "large"},
            "kind": {"type": "string", "enum": ["black", "green"], "default": "black"},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["lemon", "milk"]}, "default": []},
            "sure": {"type": "boolean", "default": False},
        },
        "required": ["count"],
    }


def test_dataclasses_and_typed_dicts_are_forms_too() -> None:
    @dataclass
    class Plain:
        name: str
        note: str | None = None

    class Keys(TypedDict):
        name: str
        note: str | None

    expected = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "note": {"type": "string"}},
    }
    assert {**expected, "required": ["name"]} == form_schema(Plain)
    assert {**expected, "required": ["name", "note"]} == form_schema(Keys)


def test_a_field_that_a_typed_dict_need_not_have_need_not_be_filled_in() -> None:
    class Keys(TypedDict):
        name: str
        note: NotRequired[str]

    assert ["name"] == form_schema(Keys)["required"]


def test_a_form_of_optional_fields_requires_none() -> None:
    assert "required" not in form_schema(msgspec.defstruct("Free", [("note", str | None, None)]))


def test_choices_are_shown_in_their_authors_order() -> None:
    choices = msgspec.defstruct("Choices", [("size", Literal["small", "large"]), ("all", list[Literal["b", "a"]])])

    properties = form_schema(choices)["properties"]

    assert (["small", "large"], ["b", "a"]) == (properties["size"]["enum"], properties["all"]["items"]["enum"])


def test_an_enum_and_a_choice_within_another_type_are_shown_in_their_authors_order() -> None:
    wanted = msgspec.defstruct(
        "Wanted",
        [
            ("cup", Cup),
            ("cups", list[Cup]),
            ("maybe", Cup | None, None),
            ("some", list[Literal["z", "y"]] | None, None),
        ],
    )

    properties = form_schema(wanted)["properties"]

    assert ["medium", "large", "small"] == properties["cup"]["enum"]
    assert ["medium", "large", "small"] == properties["cups"]["items"]["enum"]
    assert ["medium", "large", "small"] == properties["maybe"]["enum"]
    assert ["z", "y"] == properties["some"]["items"]["enum"]


def test_a_field_that_may_be_none_keeps_its_constraints() -> None:
    bounded = msgspec.defstruct("Bounded", [("note", Annotated[str, Meta(max_length=5)] | None, None)])

    assert {"type": "string", "maxLength": 5} == form_schema(bounded)["properties"]["note"]


class Nested(Struct):
    order: Order


T = TypeVar("T")


class Box(Struct, Generic[T]):
    value: T


@pytest.mark.parametrize(
    "requested",
    [Nested, None, list[int], tuple[int, str], dict[str, int], Order | None, {"properties": {"a": {"type": "object"}}}],
    ids=str,
)
def test_what_no_form_can_ask_for_is_refused(requested: Any) -> None:
    with pytest.raises(UsageError):
        form_schema(requested)


class Model(BaseModel):
    name: str


@dataclass
class Filed:
    folder: Path


@dataclass
class WithModel:
    model: Model


@pytest.mark.parametrize("requested", [Filed, WithModel, msgspec.defstruct("Holder", [("model", Model)])])
def test_a_field_of_a_type_that_no_form_has_is_refused_with_the_types_that_a_form_has(requested: Any) -> None:
    with pytest.raises(UsageError) as caught:
        form_schema(requested)

    advised = "text, numbers, booleans, choices (Literal or Enum of text) or lists of such choices"
    told = str(caught.value).rpartition("; use ")[2]
    assert told in (advised, f"a dataclass, a TypedDict or a Struct whose fields are {advised}")


@pytest.mark.parametrize("numbers", [Literal[1, 2], Literal["a", 1], list[Literal[1, 2]]])
def test_a_form_has_no_choices_of_numbers(numbers: Any) -> None:
    with pytest.raises(UsageError, match=r"choices \(Literal or Enum of text\)"):
        form_schema(numbers)


def test_a_generic_struct_is_a_form_or_refused() -> None:
    assert {"type": "integer"} == form_schema(Box[int])["properties"]["value"]


@pytest.mark.parametrize(
    ("requested", "field"),
    [
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (Size, {"type": "string", "enum": ["large", "small"]}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (list[Literal["b", "a"]], {"type": "array", "items": {"type": "string", "enum": ["b", "a"]}}),
    ],
    ids=str,
)
def test_a_type_without_fields_is_a_form_with_one_field(requested: Any, field: dict[str, Any]) -> None:
    assert {"type": "object", "properties": {"value": field}, "required": ["value"]} == form_schema(requested)


@pytest.mark.anyio
@pytest.mark.spec("2025-06-18", "client/elicitation#request-schema")
@pytest.mark.slow
async def test_the_value_of_the_one_field_is_the_content() -> None:
    server = Server("asking", version="1")
    found: list[Any] = []

    @server.tool
    async def ask(ctx: Context) -> str:
        found.append((await ctx.elicit("Sure?", bool)).content)
        found.append((await ctx.elicit("Size?", Size)).content)
        found.append((await ctx.elicit("Sure?", bool)).content)
        return "thanks"

    async with client(server, "2025-06-18", '{"elicitation":{}}') as peer:
        (question,) = await peer.call("ask")
        (question,) = await peer.answer(question, '{"action":"accept","content":{"value":false}}')
        (question,) = await peer.answer(question, '{"action":"accept","content":{"value":"small"}}')
        (answer,) = await peer.answer(question, '{"action":"decline"}')

    assert "thanks" == answer["result"]["content"][0]["text"]
    assert [False, Size.SMALL, None] == found


@pytest.mark.anyio
@pytest.mark.spec("2025-06-18", "client/elicitation#request-schema")
async def test_what_was_filled_in_is_of_the_type_and_a_schema_gives_a_dict() -> None:
    server = Server("asking", version="1")
    found: list[Any] = []

    @server.tool
    async def ask(ctx: Context) -> str:
        found.append((await ctx.elicit("What?", Order)).content)
        found.append((await ctx.elicit("What?", {"properties": {"name": {"type": "string"}}})).content)
        return "thanks"

    async with client(server, "2025-06-18", '{"elicitation":{}}') as peer:
        (question,) = await peer.call("ask")
        filled = '{"count":2,"dueAt":"2026-01-02T03:04:05Z","size":"small"}'
        (question,) = await peer.answer(question, f'{{"action":"accept","content":{filled}}}')
        (answer,) = await peer.answer(question, '{"action":"accept","content":{"name":"Ada"}}')

    due = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert "thanks" == answer["result"]["content"][0]["text"]
    assert [Order(2, due, size=Size.SMALL), {"name": "Ada"}] == found


def test_the_schema_of_a_type_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cake(Struct):
        name: str

    made: list[Any] = []

    def counted(kind: Any, what: str, types: str = "") -> dict[str, Any]:
        made.append(kind)
        return schema_of(kind, what, types)

    monkeypatch.setattr(elicitation_forms, "schema_of", counted)
    first = form_schema(Cake)
    count = len(made)
    assert count > 0
    first["required"] = []  # each caller has a dict of its own
    assert form_schema(Cake) == {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert len(made) == count


@pytest.mark.parametrize(
    ("requested", "told"),
    [
        (Box(1), "not a value of the type Box; pass a class itself"),
        ("How many?", "not a value of the type str; pass a class itself"),
        ({"count": {"type": "integer"}}, "has no `properties`; write {'type': 'object', 'properties'"),
    ],
)
def test_a_value_in_place_of_a_type_and_fields_without_properties_are_named(requested: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        form_schema(requested)

    assert told in str(caught.value)


def test_a_type_without_a_hash_is_refused_as_any_other_that_cannot_be_a_form() -> None:
    with pytest.raises(UsageError, match="has no JSON Schema"):
        form_schema(Annotated[str, ["of another library"]])  # type: ignore[arg-type] # it is no class


class Counted(str):
    """A choice that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)


def test_an_item_is_looked_up_among_the_choices_instead_of_being_compared_with_each() -> None:
    names = [f"choice {number}" for number in range(200)]
    schema = {"properties": {"all": {"type": "array", "items": {"enum": list(map(Counted, names))}}}}
    Counted.compared = 0

    assert find_mismatch({"all": [names[-1]] * 1000}, schema) is None
    assert find_mismatch({"all": [names[-1], "none"]}, schema) == ("/all", "one of its items is not one of the choices")
    assert Counted.compared < 2000
