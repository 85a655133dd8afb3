"""The time of the event loop is shared: a turn that has decoded and encoded enough lets other work wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcpgen.runtime.server.fair_turns import LARGE_BYTES, FairTurns

if TYPE_CHECKING:
    from collections.abc import Awaitable

ENOUGH = 256 * 1024 + 1  # bytes, which use up a turn


class Order:
    """What ran, in order, and how many pieces ran in each turn of the loop."""

    def __init__(self) -> None:
        self.turns = FairTurns()
        self.ran: list[str] = []
        self.most_at_once = 0
        self._at_once = 0

    async def run(self, name: str, waiting: Awaitable[None], size: int) -> None:
        await waiting
        self.ran.append(name)
        if size:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            asyncio.get_running_loop().call_soon(self._reset)
            self.turns.spend(size)

    def _reset(self) -> None:
        self._at_once = 0

    async def work(self, *named: str, size: int = ENOUGH) -> list[str]:
        """Do work of the owners and sessions that *named* says, such as "a/1", in a turn that is used up."""
        pieces = [
            asyncio.ensure_future(self.run(each, self.turns.wait_to_work(*each.split("/")), size)) for each in named
        ]
        self.turns.spend(ENOUGH)  # now, so that the turn ends when all of them have asked
        await asyncio.gather(*pieces)
        return self.ran


def test_a_turn_is_used_up_by_what_is_decoded_and_encoded_in_it() -> None:
    async def main() -> None:
        turns = FairTurns()
        assert not turns.is_used_up
        turns.spend(ENOUGH - 1)
        assert not turns.is_used_up
        turns.spend(1)
        assert turns.is_used_up
        await asyncio.sleep(0)
        assert not turns.is_used_up

    asyncio.run(main())


def test_large_work_runs_one_piece_a_turn_and_small_work_all_at_once() -> None:
    async def main() -> None:
        order = Order()
        await order.work(*["a/1"] * 5)
        assert (order.most_at_once, len(order.ran)) == (1, 5)
        order = Order()
        await order.work(*["a/1"] * 60, size=1)
        assert order.most_at_once == 60

    asyncio.run(main())


def test_owners_take_turns_and_so_do_the_sessions_of_one() -> None:
    found = asyncio.run(Order().work("a/1", "a/1", "a/1", "a/2", "b/1", "b/1"))
    assert found == ["a/1", "b/1", "a/2", "b/1", "a/1", "a/1"]


def test_small_requests_pass_large_ones_and_work_of_one_owner() -> None:
    async def main() -> list[str]:
        order = Order()
        turns = order.turns
        turns.spend(ENOUGH)
        await asyncio.gather(
            *(order.run(f"work{n}", turns.wait_to_work("a", ""), ENOUGH) for n in range(3)),
            *(order.run(f"large{n}", turns.wait_to_decode("a", LARGE_BYTES + 1), ENOUGH) for n in range(3)),
            order.run("small", turns.wait_to_decode("a", LARGE_BYTES), 0),
        )
        return order.ran

    found = asyncio.run(main())
    assert found.index("small") < 2, found
    assert [each for each in found if each.startswith("large")] == ["large0", "large1", "large2"]
    assert [each for each in found if each.startswith("work")] == ["work0", "work1", "work2"]


def test_what_is_cancelled_while_it_waits_holds_up_nothing() -> None:
    async def main() -> None:
        order = Order()
        order.turns.spend(ENOUGH)
        cancelled = [asyncio.ensure_future(order.turns.wait_to_decode("a", ENOUGH)) for _ in range(3)]
        await asyncio.sleep(0)
        for each in cancelled:
            each.cancel()
        async with asyncio.timeout(10):
            await order.turns.wait_to_decode("a", ENOUGH)
        await asyncio.sleep(0)
        assert not order.turns.is_used_up

    asyncio.run(main())


def test_threads_wait_while_many_results_cannot_be_encoded() -> None:
    async def main() -> None:
        order = Order()
        results = [
            asyncio.ensure_future(order.run("result", order.turns.wait_to_work("a", ""), ENOUGH)) for _ in range(80)
        ]
        threads = [asyncio.ensure_future(order.run("thread", order.turns.wait_to_run("a"), 0)) for _ in range(20)]
        order.turns.spend(ENOUGH)
        await asyncio.sleep(0)
        threads.append(asyncio.ensure_future(order.run("thread of b", order.turns.wait_to_run("b"), 0)))
        await asyncio.gather(*results, *threads)
        assert order.ran.index("thread of b") < 10
        assert order.ran[:30].count("thread") < 20
        assert order.ran.count("thread") == 20

    asyncio.run(main())


def test_threads_do_not_wait_for_a_few_results() -> None:
    async def main() -> None:
        order = Order()
        results = [
            asyncio.ensure_future(order.run("result", order.turns.wait_to_work("a", ""), ENOUGH)) for _ in range(60)
        ]
        order.turns.spend(ENOUGH)
        await asyncio.sleep(0)
        await order.run("thread", order.turns.wait_to_run("a"), 0)
        assert len(order.ran) < 5
        await asyncio.gather(*results)

    asyncio.run(main())
