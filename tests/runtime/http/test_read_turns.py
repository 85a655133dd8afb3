"""Connections that have sent something at the same time have their data parsed in turns of the event loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

from mcpgen.runtime.http.server.read_turns import ReadTurns
from tests.runtime.http.test_request_cycle import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

IN_A_TURN = 64
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
MIB = 1024 * 1024


async def parsed_each_turn(give: Callable[[ReadTurns, list[str]], object]) -> list[list[str]]:
    """Return what is parsed in each turn of the loop after *give* has given data to the turns."""
    turns = ReadTurns()
    parsed: list[str] = []
    give(turns, parsed)
    found = [parsed.copy()]
    for _ in range(10):
        parsed.clear()
        await asyncio.sleep(0)
        found.append(parsed.copy())
    return found


def read(turns: ReadTurns, parsed: list[str], owner: str, size: int = 100, *, is_behind: bool = False) -> bool:
    is_now = turns.is_turn_of(owner, size, is_behind, parsed.append, owner)
    if is_now:
        parsed.append(owner)
    return is_now


def test_a_turn_parses_64_pieces_and_the_addresses_alternate() -> None:
    def give(turns: ReadTurns, parsed: list[str]) -> None:
        for owner in ["many"] * 200 + ["few"] * 2 + ["one"]:
            read(turns, parsed, owner)

    first, second, third, fourth, *others = asyncio.run(parsed_each_turn(give))
    assert first == ["many"] * IN_A_TURN
    assert second == ["many", "few", "one", "many", "few"] + ["many"] * (IN_A_TURN - 5)
    assert len(third) == IN_A_TURN
    assert len(fourth) == 203 - 3 * IN_A_TURN
    assert not any(others)


def test_data_that_arrives_while_other_waits_does_not_pass_it() -> None:
    async def main() -> None:
        turns = ReadTurns()
        parsed: list[str] = []
        for _ in range(3 * IN_A_TURN):
            read(turns, parsed, "many")
        await asyncio.sleep(0)
        assert not read(turns, parsed, "one")
        await asyncio.sleep(0)
        assert parsed.count("one") == 1

    asyncio.run(main())


def test_at_most_16_mib_wait_except_behind_other_data_of_a_connection() -> None:
    async def main() -> None:
        turns = ReadTurns()
        parsed: list[str] = []
        for _ in range(IN_A_TURN):
            read(turns, parsed, "many", MIB)
        assert [read(turns, parsed, "many", MIB) for _ in range(17)] == [False] * 16 + [True]
        assert not read(turns, parsed, "many", MIB, is_behind=True)
        await asyncio.sleep(0)
        assert len(parsed) == IN_A_TURN + 18

    asyncio.run(main())


def connections(count: int) -> list[Connection]:
    """Return connections of one client, which a server answers."""
    head = {"type": "http.response.start", "status": 200, "headers": []}
    body = {"type": "http.response.body", "body": b"hello"}
    turns = ReadTurns()
    made = [Connection(head, body) for _ in range(count)]
    for each in made:
        each.protocol.reads = turns
    return made


def test_requests_on_many_connections_start_in_several_turns_and_each_is_answered() -> None:
    async def main() -> None:
        made = connections(300)
        for each in made:
            each.protocol.data_received(REQUEST)
        most = before = 0
        while not all(each.answered.is_set() for each in made):
            started = sum(bool(each.received) for each in made)
            most, before = max(most, started - before), started
            await asyncio.sleep(0)
        assert 0 < most <= IN_A_TURN
        assert all(b"hello" in b"".join(each.wire.writes) for each in made)

    asyncio.run(main())


def test_a_connection_is_not_read_while_its_data_waits_and_its_data_stays_in_order() -> None:
    async def main() -> None:
        made = connections(IN_A_TURN + 1)
        last = made[-1]
        for each in made[:-1]:
            each.protocol.data_received(REQUEST)
        last.protocol.data_received(REQUEST[:10])
        assert last.wire.is_paused
        last.protocol.data_received(REQUEST[10:])  # was on its way
        await last.answered.wait()
        assert not last.wire.is_paused
        assert b"hello" in b"".join(last.wire.writes)

    asyncio.run(main())


def test_data_of_a_connection_that_is_lost_is_not_parsed_and_the_ends_are_spread_over_turns() -> None:
    async def main() -> None:
        made = connections(3 * IN_A_TURN)
        for each in made:
            each.protocol.data_received(REQUEST)
            each.wire.close()
        for each in made:
            each.protocol.connection_lost(None)
        counts = [sum(len(each.state.connections) for each in made)]
        while counts[-1]:
            await asyncio.sleep(0)
            counts.append(sum(len(each.state.connections) for each in made))
        assert max(before - after for before, after in pairwise(counts)) <= IN_A_TURN
        assert sum(bool(each.received) for each in made) <= IN_A_TURN

    asyncio.run(main())
