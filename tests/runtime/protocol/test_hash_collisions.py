"""Numbers that a peer chooses by their hash do not make a set, or the keys of a dict, slow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import anyio
import msgspec
import pydantic
import pytest

from mcpgen import Server, UnexpectedResult, connect
from mcpgen.runtime.protocol.hash_collisions import hash_check
from mcpgen.runtime.protocol.value_types import pydantic_type

COLLIDING = [(2**61 - 1) * each for each in range(8, 2008)]  # one hash, 65 bits and more


@dataclass
class Node:
    ids: set[int]
    next: Node | None = None


class Pair(NamedTuple):
    first: int
    second: int


class Model:
    """A class of another library."""


class Plain(TypedDict):
    names: set[str]
    numbers: list[int]


@pytest.mark.parametrize(
    "kind",
    [
        set[int],
        frozenset[Any],
        dict[int, str],
        dict[str, dict[int, str]],
        list[set[int | None]],
        set[Pair],
        set[UUID],
        dict[Decimal, str],
        set[tuple[int, ...]],
        set[float],
        dict[datetime, str],
        Node,
        Annotated[set[int], msgspec.Meta(max_length=10)],
        Model,
    ],
    ids=repr,
)
def test_types_that_hash_numbers_are_found(kind: Any) -> None:
    assert hash_check(kind) is not None


@pytest.mark.parametrize("kind", [int, list[int], dict[str, int], set[str], Plain, Pair, Any], ids=str)
def test_other_types_are_not(kind: Any) -> None:
    assert hash_check(kind) is None


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int


@pytest.mark.parametrize(
    "kind", [set[tuple[int, int]], frozenset[tuple[str, int]], set[Pair], list[set[Point]]], ids=str
)
def test_a_thousand_tuples_in_a_set_are_read_and_no_more(kind: Any) -> None:
    """A second number can be computed for each first one so that all tuples have one hash."""
    check_hashes = hash_check(kind)
    assert check_hashes is not None

    check_hashes([[0, each] for each in range(1000)])
    with pytest.raises(msgspec.ValidationError, match="at most 1000 members"):
        check_hashes([[0, each] for each in range(1001)])


class Named(msgspec.Struct, frozen=True):
    name: str
    ids: frozenset[int]


@pytest.mark.parametrize(
    "kind",
    [
        set[frozenset[int]],
        list[frozenset[frozenset[int]]],
        set[tuple[str, frozenset[int]]],
        frozenset[Named],
        set[tuple[int, ...]],
    ],
    ids=str,
)
def test_few_sets_or_tuples_of_any_length_in_a_set_are_read(kind: Any) -> None:
    """Two numbers can be computed for each of them so that all have one hash, and they may have others in common."""
    check_hashes = hash_check(kind)
    assert check_hashes is not None

    check_hashes([[0, each] for each in range(300)])
    with pytest.raises(msgspec.ValidationError, match="at most 300 members"):
        check_hashes([[0, each] for each in range(301)])
    assert hash_check(set[frozenset[str]]) is None


class Frozen(pydantic.BaseModel, frozen=True):
    x: int
    y: int


class Area(pydantic.BaseModel):
    corners: frozenset[Frozen] = frozenset()
    others: frozenset[Frozen] = frozenset()


class Corner(pydantic.BaseModel):
    at: set[tuple[int, int]]


class Waves(pydantic.BaseModel):
    waves: set[complex]


class NamedWaves(pydantic.BaseModel):
    waves: dict[complex, str]


class Paths(pydantic.BaseModel):
    paths: set[tuple[int, ...]]


class Groups(pydantic.BaseModel):
    ids: frozenset[int]
    groups: set[tuple[frozenset[int], str]]


@pytest.mark.parametrize(
    ("kind", "most"),
    [(Corner, 1000), (Area, 300), (list[Area], 300), (Groups, 300), (Paths, 300), (Waves, 1000), (NamedWaves, 1000)],
    ids=str,
)
def test_few_tuples_models_or_sets_in_a_set_of_pydantic_are_read(kind: Any, most: int) -> None:
    check_hashes = hash_check(pydantic_type(kind, "value"))
    assert check_hashes is not None

    check_hashes([{"x": 0, "y": each} for each in range(most)])
    with pytest.raises(msgspec.ValidationError, match=f"at most {most} members"):
        check_hashes([[0, each] for each in range(most + 1)])


@pytest.mark.parametrize(
    "write",
    [
        " {}".format,
        "\u2003{}".format,
        lambda each: f"urn:uuid:{UUID(int=each)}",
        lambda each: f"{{{UUID(int=each)}}}",
        lambda each: str(UUID(int=each | 0xF << 124)),
        lambda each: f"{each | 0xF << 124:x}",
        lambda each: f"f{each % 4096:03x}:{each % 65536:x}::/128",
        lambda each: f"PT{each % 86400}S",
    ],
)
def test_pydantic_may_read_a_text_as_a_number(write: Any) -> None:
    """It allows spaces, and other ways to write a UUID than msgspec."""
    check_hashes = hash_check(pydantic_type(Names, "value"))
    assert check_hashes is not None
    check_hashes([write(each) for each in range(5000)])
    with pytest.raises(msgspec.ValidationError, match="at most 5000 numbers"):
        check_hashes([write(each) for each in range(5001)])


@pytest.mark.parametrize("write", [" {}".format, lambda each: f"urn:uuid:{UUID(int=each)}"])
def test_numbers_that_pydantic_reads_may_not_have_one_hash(write: Any) -> None:
    check_hashes = hash_check(pydantic_type(Names, "value"))
    assert check_hashes is not None
    with pytest.raises(msgspec.ValidationError, match="at most 1000 numbers with the same hash"):
        check_hashes([write((2**61 - 1) * (2**60 + each)) for each in range(1001)])


class Names(pydantic.BaseModel):
    names: list[str]


def test_keys_of_a_class_of_another_library_are_not_long() -> None:
    """pydantic copies the keys that lead to an error, for each error."""
    check_hashes = hash_check(pydantic_type(Names, "value"))
    assert check_hashes is not None
    check_hashes({"names": [{"k" * 1024: 1}, "x" * 5000]})
    with pytest.raises(msgspec.ValidationError, match="keys of at most 1024 characters"):
        check_hashes({"names": [{"k" * 1025: 1}]})


@pytest.mark.parametrize("kind", [set[int], set[tuple[str, str]] | dict[int, str], dict[int, Pair]], ids=str)
def test_sets_without_tuples_of_numbers_may_be_larger(kind: Any) -> None:
    check_hashes = hash_check(kind)
    assert check_hashes is not None

    check_hashes(list(range(5000)))
    with pytest.raises(msgspec.ValidationError, match="at most 5000 members"):
        check_hashes(list(range(5001)))


DIGITS = [f"{each:032}" for each in COLLIDING]
UUIDS = [str(UUID(int=(2**61 - 1) * (2**60 + each))) for each in range(2000)]


def test_a_thousand_numbers_with_one_hash_are_read_and_no_more() -> None:
    check_hashes = hash_check(set[Decimal])
    assert check_hashes is not None
    check_hashes({"a": COLLIDING[:500], "b": {str(each): "" for each in COLLIDING[:500]}})
    check_hashes([each**3 for each in range(10**9, 10**9 + 5000)])
    check_hashes([str(UUID(int=each**4)) for each in range(10**9, 10**9 + 5000)])
    check_hashes([f"{each:030x}" for each in range(5000)])
    assert {hash(UUID(each)) for each in UUIDS} == {hash(UUID(UUIDS[0]))}
    for each in (COLLIDING[:1001], DIGITS, dict.fromkeys(DIGITS, 0), UUIDS, [f"{text}.00" for text in DIGITS]):
        with pytest.raises(msgspec.ValidationError, match="at most 1000 numbers with the same hash"):
            check_hashes([[each]])


@pytest.mark.parametrize("sign", [1, -1])
def test_keys_may_not_be_a_thousand_numbers_with_one_hash(sign: int) -> None:
    check_hashes = hash_check(list[dict[int, int]])
    assert check_hashes is not None
    keys = [str(sign * each) for each in COLLIDING]

    check_hashes([dict.fromkeys(keys[:500], 0), dict.fromkeys(keys[500:1000], 0)])
    with pytest.raises(msgspec.ValidationError, match="at most 1000 numbers with the same hash"):
        check_hashes([dict.fromkeys(keys[:500], 0), dict.fromkeys(keys[500:1001], 0)])


def test_texts_of_thousands_of_digits_are_refused_by_their_count() -> None:
    check_hashes = hash_check(dict[int, int])
    assert check_hashes is not None
    check_hashes({f"{each:04300}": 1 for each in range(250)})
    check_hashes({f"{each:0300}": 1 for each in range(5000)})
    check_hashes(["x" * 4300] * 5000)
    with pytest.raises(msgspec.ValidationError, match="fewer numbers with many digits"):
        check_hashes({f"{each:04300}": 1 for each in range(251)})


def colliding_slots(count: int, bits: int) -> list[int]:
    """Return integers of which the second half have to try thousands of slots of a table of 2***bits* slots."""
    mask = (1 << bits) - 1
    path = [0]  # the slots that CPython tries, once it has used all bits of the hash
    while len(path) < count // 2:
        path.append((5 * path[-1] + 1) & mask)
    first = dict.fromkeys(path[: len(path) // 4])
    chosen: list[int] = []
    for number in range(1 << bits, 1 << 40, 1 << bits):
        slot, rest = 0, number
        while rest:
            rest >>= 5
            slot = (5 * slot + rest + 1) & mask
        if slot in first:
            chosen.append(number)
        if len(chosen) == count - len(path):
            return path + chosen
    raise AssertionError


@pytest.mark.parametrize("kind", [dict[int, int], set[int], set[float]], ids=str)
def test_numbers_whose_slots_collide_are_refused_by_their_count(kind: Any) -> None:
    chosen = colliding_slots(6000, 14)
    assert len({hash(each) for each in chosen}) == 6000  # no two have the same hash
    check_hashes = hash_check(kind)
    assert check_hashes is not None
    check_hashes({str(each): 0 for each in chosen[:5000]})
    check_hashes([chosen[:5000], chosen[1000:]])
    for each in (chosen, {str(each): 0 for each in chosen}, [[chosen]]):
        with pytest.raises(msgspec.ValidationError, match="at most 5000 members in an array or object, because"):
            check_hashes(each)


def test_four_of_the_largest_sets_of_tuples_are_read_and_no_more() -> None:
    largest = [[0, each] for each in range(1000)]
    check_hashes = hash_check(list[set[tuple[int, int]]])
    assert check_hashes is not None

    check_hashes([largest] * 4)
    check_hashes([largest[:50]] * 300)
    with pytest.raises(msgspec.ValidationError, match="fewer or smaller arrays and objects"):
        check_hashes([largest] * 5)


@pytest.mark.parametrize("digits", [30, 60])  # with 30, a text is as long as a UUID without hyphens
def test_numbers_with_a_fraction_may_not_have_one_hash(digits: int) -> None:
    check_hashes = hash_check(dict[Decimal, int])
    assert check_hashes is not None

    check_hashes({f"0.{7 * each:0{digits}}": 0 for each in range(5000)})
    with pytest.raises(msgspec.ValidationError, match="at most 1000 numbers with the same hash"):
        check_hashes({f"0.{each:0{digits}}": 0 for each in COLLIDING})


def test_ten_thousand_numbers_with_a_fraction_are_hashed_and_no_more() -> None:
    many = {f"0.{each:060}": 0 for each in range(5000)}
    few = {f"1.{each:060}": 0 for each in range(20)}
    check_decimals, check_integers = hash_check(list[dict[Decimal, int]]), hash_check(list[dict[int, int]])
    assert check_decimals is not None
    assert check_integers is not None

    check_decimals([many, many])
    check_integers([many, many, few])
    with pytest.raises(msgspec.ValidationError, match="at most 10000 texts of 19 or more characters"):
        check_decimals([many, many, few])


def test_numbers_in_small_arrays_and_objects_are_not_hashed() -> None:
    """A set of sixteen numbers is fast whatever they are. Most texts of a message can be keys of small objects."""
    check_hashes = hash_check(list[dict[Decimal, int]])
    assert check_hashes is not None

    check_hashes([{f"0.{each:060}": 0 for each in range(first, first + 16)} for first in range(0, 30_000, 16)])
    with pytest.raises(msgspec.ValidationError, match="fewer numbers with many digits"):
        check_hashes([{str(each) * 4300: 0} for each in [7] * 300])


def test_many_large_sets_of_numbers_are_read() -> None:
    check_hashes = hash_check(list[set[int]])
    assert check_hashes is not None

    check_hashes([[*range(5000)]] * 9)


def test_a_long_list_beside_a_set_of_numbers_is_read() -> None:
    class Arguments(msgspec.Struct, rename="camel"):
        vector: list[float]
        some_ids: set[int]

    check_hashes = hash_check(Arguments)
    assert check_hashes is not None
    check_hashes({"vector": [0.5] * 20_000, "someIds": [1, 2]})
    with pytest.raises(msgspec.ValidationError, match="at most 5000 members"):
        check_hashes({"vector": [], "someIds": list(range(5001))})


def test_an_array_of_texts_that_is_too_long_is_not_said_to_have_numbers() -> None:
    class Row(msgspec.Struct):
        ids: set[int]
        names: list[str]

    check_hashes = hash_check(list[Row])
    assert check_hashes is not None
    with pytest.raises(msgspec.ValidationError, match="at most 5000 members in an array or object, because the value"):
        check_hashes([{"ids": [], "names": ["a"] * 5001}])


def test_a_class_of_another_library_takes_long_lists_but_not_so_many_numbers() -> None:
    check_hashes = hash_check(Model)
    assert check_hashes is not None
    check_hashes({"rows": [{"name": "a"}] * 6000, "names": ["a"] * 6000, "embedding": [0.5] * 20_000})
    for each in (list(range(5001)), [1.0] * 5001, {str(number): "" for number in range(5001)}):
        with pytest.raises(msgspec.ValidationError, match="at most 5000 numbers"):
            check_hashes({"rows": each})


def test_fractions_count_only_where_all_their_digits_are_kept() -> None:
    large = [each * 1e9 + 0.5 for each in range(10**9, 10**9 + 2000)]
    whole, exact = hash_check(set[int]), hash_check(dict[str, set[Decimal]])
    assert whole is not None
    assert exact is not None
    whole(large)
    with pytest.raises(msgspec.ValidationError, match="the same hash"):
        exact(large)


def test_a_tool_refuses_more() -> None:
    server = Server("s", version="1")

    @server.tool
    async def total(ids: set[int]) -> int:
        return len(ids)

    async def main() -> None:
        async with connect(server) as client:
            assert (await client.call_tool("total", {"ids": COLLIDING[:1000]})).data == {"result": 1000}
            refused = await client.call_tool("total", {"ids": COLLIDING})
            assert refused.is_error
            assert "numbers with the same hash" in refused.text

    anyio.run(main)


def test_a_client_refuses_more() -> None:
    server = Server("s", version="1")

    @server.tool
    async def ids() -> list[int]:
        return COLLIDING

    async def main() -> None:
        async with connect(server) as client:
            assert await client.call_tool("ids", {}, returns=list[int]) == COLLIDING
            with pytest.raises(UnexpectedResult, match="numbers with the same hash"):
                await client.call_tool("ids", {}, returns=set[int])

    anyio.run(main)


class Written(pydantic.BaseModel):
    numbers: pydantic.Json[set[int]]


def test_the_json_in_a_text_that_pydantic_decodes_is_checked() -> None:
    check_hashes = hash_check(pydantic_type(Written, "value"))
    assert check_hashes is not None
    check_hashes({"numbers": "[1, 2]", "other": "[1 is no JSON"})
    with pytest.raises(msgspec.ValidationError, match="at most 1000 numbers with the same hash"):
        check_hashes({"numbers": f" {COLLIDING[:1001]}"})
    with pytest.raises(msgspec.ValidationError, match="at most 20000 values in a string that contains JSON"):
        check_hashes({"numbers": str([0] * 20_001)})
    with pytest.raises(msgspec.ValidationError, match="at most 70000 values, including those in strings of JSON"):
        check_hashes([str([0] * 19_000)] * 4)


class Words(pydantic.BaseModel):
    words: pydantic.Json[list[str]]


def test_a_client_reads_a_text_of_json_with_as_many_values_as_a_message() -> None:
    server = Server("s", version="1")

    @server.tool
    async def words() -> Any:
        return {"words": '["a"' + ',"a"' * 39_999 + "]"}

    async def main() -> None:
        async with connect(server) as client:
            assert 40_000 == len((await client.call_tool("words", {}, returns=Words)).words)

    anyio.run(main)


def test_texts_that_are_no_numbers_are_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[str] = []

    def convert(text: str) -> Decimal:
        converted.append(text)
        return Decimal(text)

    monkeypatch.setattr("mcpgen.runtime.protocol.hash_collisions.Decimal", convert)
    check_hashes = hash_check(pydantic_type(Written, "value"))
    assert check_hashes is not None
    others = ["2026-01-01T00:00:00.123456+23:59", "-sNaN00000000000000000001", f"{'1' * 20}x"]
    numbers = [f"+1_0.{'0' * 20}e-3", f"_-1_0.{'0' * 20}e_-3"]  # `Decimal` reads underscores at any place
    check_hashes({"numbers": "[]", "other": [*others * 10, *numbers]})
    assert converted == numbers
