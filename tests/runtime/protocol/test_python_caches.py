"""A peer cannot fill caches of Python that are never emptied."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Flag, IntFlag, auto
from ipaddress import IPv6Network
from typing import Any, cast

import anyio
import pydantic
import pytest

from mcpgen import Server, connect
from mcpgen.runtime.protocol.json_costs import PLAIN_COSTS
from mcpgen.runtime.protocol.python_caches import cache_check
from mcpgen.runtime.protocol.value_costs import type_costs


class Access(IntFlag):
    READ = 1
    WRITE = 2


class Modelled(IntFlag):
    READ = 1


class Written(IntFlag):
    READ = 1


class Wide(Flag):  # 65,536 combinations
    BIT_0 = auto()
    BIT_1 = auto()
    BIT_2 = auto()
    BIT_3 = auto()
    BIT_4 = auto()
    BIT_5 = auto()
    BIT_6 = auto()
    BIT_7 = auto()
    BIT_8 = auto()
    BIT_9 = auto()
    BIT_10 = auto()
    BIT_11 = auto()
    BIT_12 = auto()
    BIT_13 = auto()
    BIT_14 = auto()
    BIT_15 = auto()


class Shared(IntFlag):
    READ = 1


class Few(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Readings:
    access: Few
    values: list[int]


class Samples(pydantic.BaseModel):
    access: Access
    values: list[float]


class Door(pydantic.BaseModel):
    access: list[Modelled]


class Route(pydantic.BaseModel):
    networks: list[IPv6Network]


server = Server("doors", version="1")
held: list[Access] = []


@server.tool
async def access(values: list[Access]) -> None:
    held.append(values[0])


@server.tool
async def wide(values: dict[str, list[Wide]]) -> None: ...


@server.tool
async def door(values: Door) -> None: ...


@server.tool
async def readings(values: Readings) -> None: ...


@server.tool
async def samples(values: Samples) -> None: ...


@server.tool
async def route(values: Route) -> None: ...


@server.prompt
def enter(access: Written) -> str:
    return str(int(access))


def combinations(kind: type[Flag]) -> int:
    return len(cast("Any", kind)._value2member_map_)


@pytest.mark.parametrize(
    ("tool", "kind", "key"), [("access", Access, ""), ("wide", Wide, "all"), ("door", Modelled, "access")]
)
def test_combinations_of_flags_that_nobody_uses_are_not_kept(tool: str, kind: type[Flag], key: str) -> None:
    async def main() -> None:
        async with connect(server) as client:
            for first in range(1000, 41_000, 4000):
                values = list(range(first, first + 4000))
                assert not (await client.call_tool(tool, {"values": {key: values} if key else values})).is_error

    anyio.run(main)

    assert combinations(kind) < 10_000
    assert all(each is Access(each.value) for each in held)


@pytest.mark.parametrize(("tool", "first"), [("readings", 1), ("samples", 1.5)])
def test_many_numbers_that_cannot_fill_a_cache_are_allowed(tool: str, first: float) -> None:
    async def main() -> None:
        async with connect(server) as client:
            values = {"access": 3, "values": [first + each for each in range(6000)]}
            assert not (await client.call_tool(tool, {"values": values})).is_error

    anyio.run(main)

    assert PLAIN_COSTS == type_costs(dict[str, list[Few]])


@pytest.mark.parametrize(("count", "refusal"), [(250, ""), (251, "a number of more than 64 bits counts as 20")])
def test_long_integers_that_can_have_one_hash_are_few(count: int, refusal: str) -> None:
    values = [sys.hash_info.modulus * (1000 + each) for each in range(count)]  # the hash of each is 0

    async def main() -> None:
        async with connect(server) as client:
            result = await client.call_tool("access", {"values": values})
            assert bool(result.is_error) == bool(refusal)
            assert refusal in result.text

    anyio.run(main)


def test_a_combination_that_a_thread_asks_for_meanwhile_is_kept_or_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    forget = cache_check(list[Shared])
    assert forget is not None
    used: list[Shared] = []
    count = sys.getrefcount

    def count_and_use(value: object) -> int:
        if value is last:
            used.append(Shared(1000))  # the first one
        return count(value) - 1  # the argument of this function

    for each in range(1000, 4000):
        Shared(each)
    last = Shared(3999)
    monkeypatch.setattr("mcpgen.runtime.protocol.python_caches.sys.getrefcount", count_and_use)
    forget([])

    assert combinations(Shared) < 10
    assert [Shared(1000)] == used
    assert Shared(1000) is used[0]


def test_combinations_of_flags_in_arguments_of_prompts_are_not_kept() -> None:
    async def main() -> None:
        async with connect(server) as client:
            for each in range(1000, 4000):
                await client.get_prompt("enter", {"access": str(each)})

    anyio.run(main)

    assert combinations(Written) < 2000


def test_long_prefixes_of_networks_are_not_kept() -> None:
    networks = [f"::/{'0' * zeros}64" for zeros in range(20, 4020)]

    async def main() -> None:
        async with connect(server) as client:
            for at in range(0, len(networks), 500):
                assert not (await client.call_tool("route", {"values": {"networks": networks[at:][:500]}})).is_error

    anyio.run(main)

    prefixes: dict[str, object] = cast("Any", IPv6Network)._netmask_cache
    assert sum(map(len, map(str, prefixes))) < 5_000_000
