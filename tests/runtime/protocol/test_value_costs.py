"""Calls are charged for the objects that their arguments become; too many large ones are refused."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
from collections import deque, namedtuple
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import anyio
import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from mcpgen import Limits, Server, UnexpectedResult, connect
from mcpgen.runtime.protocol.json_costs import PLAIN_COSTS, JsonCosts
from mcpgen.runtime.protocol.message_size import memory_bytes
from mcpgen.runtime.protocol.value_costs import argument_costs, memory_check, type_costs
from mcpgen.runtime.protocol.value_types import any_object, pydantic_type
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio


@dataclass
class Address:
    street: str = ""
    city: str = ""


@dataclass
class Person:
    name: str = ""
    home: Address = field(default_factory=Address)
    work: Address = field(default_factory=Address)
    tags: set[str] = field(default_factory=set)
    friends: list[Person] = field(default_factory=list)


@attrs.define
class Parcel:
    home: Address = attrs.Factory(Address)
    labels: list[str] = attrs.Factory(list)


class Row(msgspec.Struct):
    tags: list[str] = []
    labels: dict[str, str] = {}
    notes: list[str] = msgspec.field(default_factory=lambda: ["none"])
    parts: list[Row] = []


named: Any = namedtuple  # noqa: PYI024 (a checker of types wants the names of all fields)
PLACE: Any = named("Place", [f"f{number}" for number in range(60)], defaults=[0] * 60)


class Map(pydantic.BaseModel):
    place: Any = PLACE(*([number] for number in range(60)))


class Cells(msgspec.Struct, array_like=True):
    names: list[str] = []
    rows: list[Cells] = []
    columns: list[Cells] = []
    sums: list[int] = []
    notes: list[str] = []


WIDE: Any = pydantic.create_model("Wide", **{f"f{number}": (int | None, None) for number in range(40)})


class Inner(pydantic.BaseModel):
    count: int = 0
    labels: list[str] = []


class Outer(pydantic.BaseModel):
    first: Inner = pydantic.Field(default_factory=Inner)
    second: Inner = Inner()
    tags: set[str] = pydantic.Field(default_factory=set)


@pydantic.dataclasses.dataclass
class Mixed:
    inner: Inner = field(default_factory=Inner)
    person: Person = field(default_factory=Person)


def costs_of(kind: Any) -> JsonCosts:
    return argument_costs(msgspec.defstruct("Arguments", [("value", kind)]))


class Columns(pydantic.BaseModel):
    names: list[str] = [f"column {number}" for number in range(100)]
    widths: dict[str, list[int]] = {"all": [10] * 100}


@pytest.mark.parametrize("kind", [Person, list[Person], dict[str, Person | int], list[tuple[Person, ...]] | None])
def test_the_largest_class_counts_wherever_it_is(kind: Any) -> None:
    assert costs_of(Person) == costs_of(kind)
    assert costs_of(kind).object_bytes > 2 * costs_of(Address).object_bytes > 0


T = TypeVar("T")


class StructPage(msgspec.Struct, Generic[T]):
    items: list[T] = []


@dataclass
class DataPage(Generic[T]):
    items: list[T] = field(default_factory=list)


@attrs.define
class AttrsPage(Generic[T]):
    items: list[T] = attrs.Factory(list)


@pytest.mark.parametrize("page", [StructPage, DataPage, AttrsPage])
def test_a_generic_class_counts_with_its_type_arguments_as_without(page: Any) -> None:
    without = type_costs(page)
    assert without == type_costs(page[int]) == costs_of(list[page[int]])
    assert type_costs(Person) == type_costs(page[Person])


@pytest.mark.parametrize("kind", [int, list[str], dict[str, list[int]], Any])
def test_other_values_count_as_usual(kind: Any) -> None:
    assert costs_of(kind) is PLAIN_COSTS


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Decimal, "1"),
        (Annotated[Decimal, pydantic.Field(gt=0)], "1"),
        (pydantic.AnyUrl, "a:b"),
        (IPv4Interface, "1.1.1.1"),
        (Path, "a"),
        (Inner, {}),
        (Outer, {}),
        (Mixed, {}),
        (Parcel, {}),
        (Columns, {}),
        (set[int], []),
        (deque[int], []),
        (Annotated[frozenset[int], pydantic.AfterValidator(lambda each: each)], []),
        (Iterable[int], []),
        (PLACE, []),
        (Annotated[PLACE, pydantic.AfterValidator(lambda each: each)], []),
        (Annotated[PLACE, pydantic.AfterValidator(lambda each: each)], {}),
        (Cells, []),
        (Map, {}),
    ],
)
def test_what_a_value_is_charged_is_at_least_half_of_what_it_takes(kind: Any, value: object) -> None:
    text = json.dumps([value] * 1000, separators=(",", ":")).encode()
    own = list[kind] if kind in (Decimal, Parcel, set[int], PLACE, Cells) else pydantic_type(list[kind], "`value`")
    arguments: Any = msgspec.defstruct("Arguments", [("value", own)])
    read = msgspec.json.Decoder(arguments, dec_hook=any_object).decode
    frame = b'{"value":%s}' % text
    kept = [read(frame)]  # what is made once
    tracemalloc.start()
    try:
        kept += [read(frame) for _ in range(4)]
        taken = tracemalloc.get_traced_memory()[0] / 4
    finally:
        tracemalloc.stop()

    assert taken < 2 * memory_bytes(frame, argument_costs(arguments))


@pytest.mark.parametrize("kind", [Person, Row, WIDE])
async def test_pending_calls_are_charged_for_the_defaults_of_their_objects(kind: Any) -> None:
    # 1,000 empty objects are 3 kB of JSON and 150 kB as dicts, but 400 kB and more with their defaults.
    server = Server("held", version="1", limits=Limits(max_in_flight_bytes=700_000))

    async def hold(rows: Any) -> int:
        await anyio.sleep_forever()
        return len(rows)

    hold.__annotations__["rows"] = list[kind]
    server.tool(hold)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "hold", "arguments": {"rows": [{}] * 1000}, "_meta": meta}
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.wire(server) as wire:
            for number in (1, 2):
                await wire.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            refused = await wire.receive()

    assert "(max_in_flight_bytes)" in refused["error"]["message"]


def test_the_defaults_of_many_models_are_copied_by_no_function_in_python() -> None:
    kind = pydantic_type(list[Columns], "`value`")
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        found: Any = kind.read([{}] * 500)
    finally:
        sys.setprofile(None)
    assert "deepcopy" not in names
    assert found == [Columns()] * 500
    assert found[0].names is not found[1].names
    assert found[0].widths["all"] is not found[1].widths["all"]


WIDE_LISTS: Any = pydantic.create_model("WideLists", **{f"f{number}": (list[int], []) for number in range(40)})

TOO_LARGE = "Expected fewer objects: the defaults of their fields could take 24 MiB of memory"


@pytest.mark.parametrize(("objects", "is_refused"), [(9900, True), (5000, False)])
async def test_values_with_many_large_defaults_are_refused_before_they_are_made(
    objects: int, *, is_refused: bool
) -> None:
    server = Server("wide", version="1")

    async def count(rows: Any) -> int:
        return len(rows)

    async def rows(count: int) -> Any:
        return [{}] * count

    count.__annotations__["rows"] = list[WIDE_LISTS]
    server.tool(count)
    server.tool(rows)
    async with connect(server) as client:
        arguments = await client.call_tool("count", {"rows": [{}] * objects})
        assert is_refused == (re.search(TOO_LARGE, arguments.text) is not None)
        refused = pytest.raises(UnexpectedResult, match=TOO_LARGE) if is_refused else nullcontext()
        with refused:
            assert objects == len(await client.call_tool("rows", {"count": objects}, returns=list[WIDE_LISTS]))


def test_arrays_are_refused_as_objects_are_if_they_stand_for_objects_with_large_defaults() -> None:
    check = memory_check(type_costs(list[Cells]))

    assert check is not None
    with pytest.raises(msgspec.ValidationError, match=r"Expected fewer objects: .* could take \d+ MiB of memory"):
        check([[]] * 100_000)


@pytest.mark.parametrize("escape", [str, lambda text: "".join(f"\\u{ord(each):04X}" for each in text)])
def test_objects_in_texts_of_json_count_as_others(escape: Callable[[str], str]) -> None:
    costs = type_costs(pydantic_type(list[pydantic.Json[list[WIDE_LISTS]]], "`value`"))
    check = memory_check(costs)
    text = str([{}] * 4000)

    assert memory_bytes(b'["%s"]' % escape(text).encode(), costs) > 4000 * costs.object_bytes
    assert check is not None
    check([text])
    with pytest.raises(msgspec.ValidationError, match="Expected fewer objects"):
        check([text, text])


CHART: Any = pydantic.create_model(
    "Chart", points=(list[Address], ...), **{f"f{number}": (list[int], []) for number in range(10)}
)


def test_objects_for_which_few_defaults_are_made_are_not_refused() -> None:
    """However many fields they have, and also beside one whose defaults are large."""
    check = memory_check(type_costs(pydantic_type(CHART, "`value`")))

    assert memory_check(type_costs(pydantic_type(list[WIDE], "`value`"))) is None
    assert check is not None
    check({"points": [{"street": "", "city": ""}] * 16_000})
