"""Pydantic models as parameters and results; without them, pydantic is not imported.

datamodel-code-generator, of the extra `codegen`, brings pydantic to the tests.
"""

from __future__ import annotations

import datetime as dt
import enum
import subprocess
import sys
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import msgspec
import pydantic
import pytest
from typing_extensions import TypedDict  # pydantic requires it on Python 3.11

from mcpgen import Limits, Server, UnexpectedResult, UsageError, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.v2026_07_28 import CallToolResult
from mcpgen.runtime.protocol import value_types

pytestmark = pytest.mark.anyio


class Color(enum.Enum):
    RED = "red"


class Address(pydantic.BaseModel):
    city: str = pydantic.Field(min_length=2)


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")
    born: dt.date
    color: Color = Color.RED
    home: Address | None = None
    friends: list[Person] = []


class Row(pydantic.BaseModel):
    """A model that counts how often it is read."""

    reads: ClassVar[list[object]] = []
    name: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def count(cls, value: object) -> object:
        cls.reads.append(value)
        return value


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    day: dt.date
    count: int = 1


@pydantic.dataclasses.dataclass
class Size:
    width: int = pydantic.Field(gt=0)


@dataclass
class Pair:
    left: Address
    right: Address


class Entry(TypedDict):
    at: Address


class Names(pydantic.RootModel[list[str]]):
    pass


def other_address() -> type[Any]:
    class Address(pydantic.BaseModel):
        street: str

    return Address


ANN = Person(fullName="Ann", born=dt.date(2000, 1, 2), home=Address(city="Oslo"))
FRIEND = Person(fullName="Bo", born=dt.date(2001, 1, 2), friends=[ANN])


@pytest.fixture(params=[each.label for each in REVISIONS])
def revision(request: pytest.FixtureRequest) -> Any:
    return request.param


def echo(kind: Any) -> Server:
    """Return a server with a tool that returns its argument of a type."""
    server = Server("echo")

    def it(value: Any) -> Any:
        return value

    it.__annotations__.update(value=kind)
    it.__annotations__["return"] = kind
    server.tool(it)
    return server


VALUES = [
    (Person, FRIEND),
    (Person | None, None),
    (list[Person], [ANN, FRIEND]),
    (dict[str, Address], {"a": Address(city="Oslo")}),
    (Strict, Strict(day=dt.date(2000, 1, 2))),
    (Size, Size(3)),
    (Pair, Pair(Address(city="Oslo"), Address(city="Rome"))),
    (Entry, {"at": Address(city="Oslo")}),
    (Names, Names(["a"])),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
async def test_a_model_goes_there_and_back_under_every_revision(revision: str, kind: Any, value: Any) -> None:
    written = pydantic.TypeAdapter(kind).dump_python(value, mode="json", by_alias=True)
    async with connect(echo(kind), revisions=[revision]) as client:
        assert value == await client.call_tool("it", {"value": written}, returns=kind)


@pytest.mark.parametrize(("kind", "value"), VALUES)
async def test_the_schemas_allow_what_is_sent(kind: Any, value: Any) -> None:
    written = pydantic.TypeAdapter(kind).dump_python(value, mode="json", by_alias=True)
    async with connect(echo(kind)) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool("it", {"value": written})

    for schema, instance in ((tool.input_schema, {"value": written}), (tool.output_schema, result.data)):
        assert isinstance(schema, dict)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(instance, schema)


async def test_two_models_of_one_name_keep_their_own_schemas() -> None:
    server = Server("two")

    def it(a: Any, b: Any) -> None: ...

    it.__annotations__.update(a=list[Address], b=list[other_address()])  # type: ignore[misc]
    server.tool(it)
    async with connect(server) as client:
        (tool,) = (await client.list_tools()).tools
    schema = tool.input_schema

    jsonschema.validate({"a": [{"city": "Oslo"}], "b": [{"street": "x"}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"a": [{"street": "x"}], "b": []}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"a": [], "b": [{"city": "Oslo"}]}, schema)


async def test_an_argument_that_a_model_refuses_is_named_by_field_and_without_its_value() -> None:
    secret = {"fullName": "Ann", "born": "not a day: 123", "home": {"city": ""}}
    async with connect(echo(Person)) as client:
        result = await client.call_tool("it", {"value": secret})

    assert result.is_error is True
    assert "Invalid arguments for tool it: `born`: Input should be a valid date" in result.text
    assert "`home.city`: String should have at least 2 characters - at `$.value`" in result.text
    assert "123" not in result.text
    assert "pydantic" not in result.text


async def test_many_refused_fields_are_listed_up_to_ten() -> None:
    async with connect(echo(list[Address])) as client:
        result = await client.call_tool("it", {"value": [{}] * 12})

    assert result.text.endswith("`9.city`: Field required; and 2 more - at `$.value`")


async def test_thousands_of_errors_are_counted_and_not_listed() -> None:
    """To list them takes seconds, and so does each further attempt to read the value."""
    server = Server("wide")
    wide = pydantic.create_model("Wide", **{f"field{index}": (int, ...) for index in range(1500)})  # type: ignore[call-overload]

    def add(value: Any) -> None: ...

    add.__annotations__.update(value=wide)
    server.tool(add)

    async with connect(server) as client:
        refused = await client.call_tool("add", {"value": {}})

    assert refused.text == "Invalid arguments for tool add: it has 1500 errors - at `$.value`"


async def test_a_long_value_is_read_up_to_its_first_wrong_item() -> None:
    """Each of thousands of wrong items makes an error for each field of each member of a union."""
    server = Server("rows")

    @server.tool
    def add(rows: list[Row]) -> None: ...

    @server.tool
    def name(rows: dict[str, Row | Address]) -> None: ...

    @server.tool(structured=False)
    def rows() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"result": [{}] * 1500})

    async with connect(server) as client:
        Row.reads.clear()
        refused = await client.call_tool("add", {"rows": [{"name": "x"}, *[{}] * 1500]})
        assert refused.text == "Invalid arguments for tool add: `1.name`: Field required - at `$.rows`"
        assert len(Row.reads) <= 2 * 3  # to decode the request, to name the error, and to read whole numbers

        Row.reads.clear()
        refused = await client.call_tool("name", {"rows": {f"{each}": {} for each in range(1500)}})
        assert refused.text.endswith("`0.Row.name`: Field required; `0.Address.city`: Field required - at `$.rows`")
        assert len(Row.reads) <= 3

        Row.reads.clear()
        with pytest.raises(UnexpectedResult, match=r"`0\.name`: Field required"):
            await client.call_tool("rows", returns=list[Row])
        assert len(Row.reads) <= 2


class All(pydantic.BaseModel):
    kind: Literal["all"]
    parts: list[All | Any_ | Not | Is]


class Any_(pydantic.BaseModel):  # noqa: N801 (`Any` is taken)
    kind: Literal["any"]
    inner: list[All | Any_ | Not | Is] = pydantic.Field(validation_alias="parts")


class Not(pydantic.BaseModel):
    part: All | Any_ | Not | Is


class Is(pydantic.BaseModel):
    count: ClassVar[int] = 0
    value: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def count_it(cls, value: object) -> object:
        Is.count += 1
        return value


Tagged = Annotated["TaggedAll | TaggedAny", pydantic.Field(discriminator="kind")]


class TaggedAll(pydantic.BaseModel):
    kind: Literal["all"]
    parts: list[Tagged]


class TaggedAny(pydantic.BaseModel):
    kind: Literal["any"]
    parts: list[Tagged]


class Query(pydantic.BaseModel):
    root: Tagged


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {"value": "x"}
    for _ in range(depth):
        value = {"kind": "all", "parts": [value]}
    return value


async def test_a_value_is_not_nested_so_deeply_that_it_is_read_thousands_of_times() -> None:
    """pydantic tries each member of a union that has no discriminator, and reads fields of one name for each."""
    server = Server("nested")

    @server.tool
    def find(value: All | Any_ | Not | Is) -> None: ...

    @server.tool
    def tagged(value: Query) -> None: ...

    async with connect(server) as client:
        Is.count = 0
        assert (await client.call_tool("find", {"value": nested(10)})).is_error is not True
        assert 2**10 <= Is.count < 2**11
        Is.count = 0
        for depth in (20, 60):
            refused = await client.call_tool("find", {"value": nested(depth)})
            assert "in unions without a discriminator - at `$.value`" in refused.text
        assert Is.count == 0

        value: dict[str, object] = {"value": "x"}
        for _ in range(60):
            value = {"part": value}
        assert (await client.call_tool("find", {"value": value})).is_error is not True
        value = {"kind": "any", "parts": []}
        for _ in range(60):
            value = {"kind": "all", "parts": [value]}
        assert (await client.call_tool("tagged", {"value": {"root": value}})).is_error is not True


STRICT = pydantic.ConfigDict(extra="forbid")
CLOSED: Any = [pydantic.create_model(f"Closed{n}", __config__=STRICT, **{f"k{n}": (int, ...)}) for n in range(3)]
AnyClosed: Any = reduce(or_, CLOSED)
# A field with the name of a member of pydantic's own schemas.
OUTER: Any = [pydantic.create_model(f"Outer{n}", type=(list[AnyClosed], ...)) for n in range(3)]
AnyOuter: Any = reduce(or_, OUTER)


@pytest.mark.parametrize(
    ("kind", "value", "too_much"),
    [
        (AnyClosed, lambda count: {f"other{n}": 1 for n in range(count)}, 17_000),
        (AnyOuter, lambda count: {"type": [{f"other{n}": 1 for n in range(count)}]}, 6_000),
        (AnyOuter, lambda count: {"type": [{"k1": 1}] * count}, 17_000),
    ],
)
async def test_wide_values_are_not_read_too_often_either(kind: Any, value: Any, too_much: int) -> None:
    """An unknown key is an error in each model that forbids it; a few hundred thousand of them took seconds."""
    server = Server("closed", limits=Limits(max_values=50_000))

    def find(value: Any) -> None: ...

    find.__annotations__["value"] = kind
    server.tool(find)
    async with connect(server) as client:
        small = await client.call_tool("find", {"value": value(100)})
        refused = await client.call_tool("find", {"value": value(too_much)})

    assert "unions without" not in small.text
    assert "in unions without a discriminator - at `$.value`" in refused.text


def optional_fields(count: int, first: int = 0) -> Any:
    fields: Any = {f"f{number}": (int | None, None) for number in range(first, first + count)}
    return pydantic.create_model(f"Optional{first}", **fields)


def test_an_object_counts_more_if_pydantic_looks_for_many_fields_in_it() -> None:
    """To make models of a large union, or of 200 fields, of 70 kB of empty objects took a second."""
    union = reduce(or_, [optional_fields(10, first) for first in range(10)])

    for kind, few, many in ((union, 6_600, 6_700), (optional_fields(380), 4_900, 5_100)):
        check = value_types.pydantic_type(list[kind], "`value`").check_nesting
        assert check is not None
        check([{}] * few)
        with pytest.raises(ValueError, match="fewer are allowed for models with many fields"):
            check([{}] * many)

    assert value_types.pydantic_type(list[optional_fields(20)], "`value`").check_nesting is None


async def test_a_model_that_was_changed_to_another_type_is_an_error_that_keeps_its_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("changed")

    @server.tool
    def it() -> Address:
        address = Address(city="Oslo")
        address.city = 12345  # type: ignore[assignment]
        return address

    @server.tool
    def other() -> Address:
        return {"city": ""}  # type: ignore[return-value]

    async with connect(server) as client:
        found = [(await client.call_tool(name)).text for name in ("it", "other")]

    expected = "The result of the tool {} does not fit its output schema."
    assert [expected.format(name) for name in ("it", "other")] == found
    assert "it() is not of its annotated type" in caplog.text
    assert "other() is not of its annotated type: `city`: String should have at least 2 characters" in caplog.text


class Written(pydantic.BaseModel):
    """What it writes is not what it reads."""

    model_config = pydantic.ConfigDict(strict=True)

    day: dt.date
    home: Address
    count: int = pydantic.Field(validation_alias="how_many", serialization_alias="count", gt=0)
    hidden: str = pydantic.Field(exclude=True, min_length=2)

    @pydantic.field_serializer("day")
    def _day(self, day: dt.date) -> str:
        return day.strftime("%d.%m.%Y")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.count


async def test_a_model_may_write_what_it_does_not_read(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("written")

    @server.tool
    def it(count: int) -> list[Written]:
        whole = Written(day=dt.date(2000, 1, 2), home=Address(city="Oslo"), how_many=1, hidden="xx")
        return [whole.model_copy(update={"count": count})]

    async with connect(server) as client:
        found = (await client.call_tool("it", {"count": 3})).data
        refused = await client.call_tool("it", {"count": -4711})

    assert {"result": [{"day": "02.01.2000", "home": {"city": "Oslo"}, "count": 3, "twice": 6}]} == found
    assert refused.is_error
    assert "`0.count`: Input should be greater than 0" in caplog.text
    assert "4711" not in caplog.text


class Price(pydantic.BaseModel):
    net: int = 0
    tax: int = 0

    @pydantic.field_serializer("net", "tax")
    def _money(self, value: int) -> str:
        return f"{value} €"


class CardPrice(Price):
    """Another member of a union."""


class Bill(pydantic.BaseModel):
    items: list[Price | CardPrice] = []


def test_few_errors_are_made_of_many_items_that_are_not_read_as_they_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []
    looked_at: list[object] = []
    field_values = value_types._field_values

    def validated(validate: Any, value: Any) -> object:
        try:
            return validate(value)
        except pydantic.ValidationError as error:
            counts.append(error.error_count())
            raise ValueError from error

    def counted(value: object) -> object:
        looked_at.append(value)
        return field_values(value)

    kind = value_types.pydantic_type(Bill, "the bill")
    monkeypatch.setattr(value_types.PydanticType, "_validated", staticmethod(validated))
    monkeypatch.setattr(value_types, "_field_values", counted)
    data = kind.dump(Bill(items=[Price()] * 1000))

    assert 1000 == data.count(b'{"net":')
    assert [4] == counts  # of the first item: two fields for each member of the union
    assert 1002 == len(looked_at)  # the bill, the list and its items, but not the 2000 numbers in them


class Measured(pydantic.BaseModel):
    value: float


async def test_a_number_that_json_does_not_have_is_refused() -> None:
    server = Server("measured")

    @server.tool
    def it() -> Measured:
        return Measured(value=float("nan"))

    async with connect(server) as client:
        assert (await client.call_tool("it")).is_error


async def test_a_model_without_an_annotation_is_sent_as_text() -> None:
    server = Server("text")

    @server.tool
    def it() -> Any:
        return [Address(city="Oslo")]

    @server.resource("a:b")
    def resource() -> Address:
        return Address(city="Oslo")

    async with connect(server) as client:
        assert '[{"city":"Oslo"}]' == (await client.call_tool("it")).text
        contents: Any = (await client.read_resource("a:b")).contents
        assert '{"city":"Oslo"}' == contents[0].text


async def test_a_default_model_is_in_the_schema_and_reaches_the_function() -> None:
    server = Server("default")

    @server.tool
    def it(value: Address = Address(city="Oslo")) -> str:  # noqa: B008 (models are values)
        return value.city

    async with connect(server) as client:
        (tool,) = (await client.list_tools()).tools
        assert "Oslo" == (await client.call_tool("it")).text

    assert {"city": "Oslo"} == tool.input_schema["properties"]["value"]["default"]


async def test_a_result_that_the_model_of_the_caller_refuses_names_the_field() -> None:
    async with connect(echo(Person)) as client:
        with pytest.raises(UnexpectedResult, match=r"is not of the type Address: `city`: Field required; change"):
            await client.call_tool("it", {"value": {"fullName": "A", "born": "2000-01-01"}}, returns=Address)


class Holder(msgspec.Struct):
    address: Address


class Opaque:
    """A class that neither library knows."""


def test_a_struct_that_holds_a_model_is_refused_with_the_model_and_the_way_out() -> None:
    with pytest.raises(UsageError) as failure:
        echo(Holder)

    assert f"(msgspec does not know the class {__name__}.Address in it); put the pydantic model into" in str(
        failure.value
    )


async def test_a_struct_of_the_caller_that_holds_a_model_is_refused_with_the_way_out() -> None:
    async with connect(echo(Person)) as client:
        with pytest.raises(UsageError, match=r"in it\); put the pydantic model into a dataclass, .* instead$"):
            await client.call_tool("it", {}, returns=Holder)


@pytest.mark.parametrize("kind", [dict[str, Address | Opaque], list[Address | Opaque]])
def test_a_type_that_pydantic_cannot_validate_is_refused_at_registration(kind: Any) -> None:
    with pytest.raises(UsageError, match=r"^parameter `value` of .*it\(\) has the type .*; (beside|use)"):
        echo(kind)


def test_a_model_is_no_text_for_a_prompt() -> None:
    def prompt(value: Address) -> str:
        return value.city

    with pytest.raises(UsageError, match=r"has the type .*Address.*, but its value arrives as text"):
        Server("x").prompt(prompt)


@pytest.mark.slow
def test_pydantic_is_imported_by_nothing_but_a_model() -> None:
    program = """
import sys
from mcpgen import Depends, Server, ToolResult, connect

server = Server("plain")

@server.tool
def it(a: int, b: list[str] | None = None) -> dict[str, int]:
    return {"a": a}

import anyio

async def main():
    async with connect(server) as client:
        assert await client.call_tool("it", {"a": 1}, returns=dict[str, int]) == {"a": 1}

anyio.run(main)
assert not [each for each in sys.modules if each.partition(".")[0].startswith("pydantic")]
"""
    subprocess.run([sys.executable, "-c", program], check=True, encoding="utf-8")


async def test_a_generator_is_no_list_of_models(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("pydantic", version="1")

    @server.tool
    def half() -> list[Address]:
        return (Address.model_construct(city="4711") for _ in range(2))  # type: ignore[return-value]

    async with connect(server) as client:
        assert "The tool half failed." == (await client.call_tool("half")).text

    assert "half() returned a generator; return a list" in caplog.text
    assert "4711" not in caplog.text
