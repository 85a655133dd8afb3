"""The time of the event loop is shared: a turn that has decoded and encoded enough lets other work wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mcpgen.runtime.server.fair_turns import LARGE_BYTES, REQUEST_COST_BYTES, FairTurns, request_cost
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable

ENOUGH = 256 * 1024 + 1  # bytes, which use up a turn
LONG = 1024 * 1024 + 1  # bytes of a piece after which others have some turns


class Order:
    """What ran, in order, and how many pieces ran in each turn of the loop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.turns = FairTurns(clock=lambda: self.seconds)
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


def test_work_that_takes_long_runs_a_few_pieces_a_turn() -> None:
    async def main() -> None:
        order = Order()

        async def slow(name: str) -> None:
            await order.run(name, order.turns.wait_to_work("a", ""), 1)
            order.seconds += 0.005

        pieces = [asyncio.ensure_future(slow(str(each))) for each in range(60)]
        order.turns.spend(ENOUGH)
        await asyncio.gather(*pieces)

        assert (order.most_at_once, len(order.ran)) == (5, 60)

    asyncio.run(main())


def test_handlers_wait_when_those_of_their_turn_have_taken_long() -> None:
    async def main() -> None:
        order = Order()
        order.turns.spend(1)
        order.seconds += 0.05
        assert not order.turns.is_used_up
        order.seconds += 0.02
        assert order.turns.is_used_up
        await asyncio.sleep(0)
        assert not order.turns.is_used_up

    asyncio.run(main())


def test_owners_take_turns_and_so_do_the_sessions_of_one() -> None:
    found = asyncio.run(Order().work("a/1", "a/1", "a/1", "a/2", "b/1", "b/1"))
    assert found == ["a/1", "b/1", "a/2", "b/1", "a/1", "a/1"]


def test_small_requests_with_large_results_run_one_a_turn() -> None:
    async def main() -> None:
        for size, most in ((ENOUGH, 1), (1, 10)):
            order = Order()
            small = [order.run("small", order.turns.wait_to_decode("a", 1), size) for _ in range(10)]
            waiting = [asyncio.ensure_future(each) for each in small]
            order.turns.spend(ENOUGH)
            await asyncio.gather(*waiting)
            assert (order.most_at_once, len(order.ran)) == (most, 10)

    asyncio.run(main())


def test_small_requests_whose_handlers_take_long_run_a_few_a_turn() -> None:
    async def run(order: Order, waiting: Awaitable[None], milliseconds: int) -> None:
        await order.run("small", waiting, 1)
        order.seconds += milliseconds / 1000

    async def main() -> None:
        for milliseconds, most in ((0, 60), (3, 7), (8, 3), (100, 1)):
            order = Order()
            small = [run(order, order.turns.wait_to_decode("a", 1), milliseconds) for _ in range(60)]
            waiting = [asyncio.ensure_future(each) for each in small]
            order.turns.spend(ENOUGH)
            await asyncio.gather(*waiting)
            assert (order.most_at_once, len(order.ran)) == (most, 60)

    asyncio.run(main())


def test_small_requests_that_arrive_wait_after_a_slow_handler() -> None:
    async def main() -> None:
        order = Order()
        order.turns.spend(1)
        assert not order.turns.must_wait()
        order.seconds += 0.1
        assert order.turns.must_wait()
        await asyncio.sleep(0)
        assert not order.turns.must_wait()

    asyncio.run(main())


def test_small_requests_whose_handlers_run_in_the_next_turn_become_fewer() -> None:
    async def main(milliseconds: int) -> list[int]:
        order = Order()
        begun = 0
        counts: list[int] = []

        def handle() -> None:
            order.seconds += milliseconds / 1000

        async def request() -> None:
            nonlocal begun
            await order.turns.wait_to_decode("a", 1)
            order.turns.spend(REQUEST_COST_BYTES)
            begun += 1
            asyncio.get_running_loop().call_soon(handle)

        waiting = [asyncio.ensure_future(request()) for _ in range(600)]
        order.turns.spend(ENOUGH)
        while not all(each.done() for each in waiting):
            before = begun
            await asyncio.sleep(0)
            counts += [begun - before] if begun > before else []
        return counts

    quick, slow = asyncio.run(main(0)), asyncio.run(main(4))
    assert quick[:4] == [128] * 4
    assert slow[:2] == [128] * 2  # what they need is not known yet
    assert max(slow[6:]) <= 16


def test_other_work_does_not_take_the_part_of_small_requests() -> None:
    async def main() -> None:
        order = Order()
        small = [order.run("small", order.turns.wait_to_decode("a", 1), 1) for _ in range(10)]
        waiting = [asyncio.ensure_future(each) for each in small]
        order.turns.spend(ENOUGH)
        await asyncio.sleep(0)
        order.turns.spend(ENOUGH)  # in the turn that serves them, before they run
        await asyncio.gather(*waiting)
        assert order.most_at_once == 10

    asyncio.run(main())


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


def test_small_requests_of_few_values_pass_those_of_many() -> None:
    async def main() -> list[str]:
        order = Order()
        body = b"1e300," * 2300
        assert len(body) < LARGE_BYTES
        many = [
            asyncio.ensure_future(
                order.run("many", order.turns.wait_to_decode("a", len(body), request_cost(body)), ENOUGH)
            )
            for _ in range(3)
        ]
        few = asyncio.ensure_future(order.run("few", order.turns.wait_to_decode("a", len(body)), 1))
        order.turns.spend(ENOUGH)
        await asyncio.gather(*many, few)
        return order.ran

    assert asyncio.run(main()) == ["few", *["many"] * 3]


def test_small_requests_that_wait_come_before_those_that_arrive() -> None:
    async def main() -> None:
        order = Order()
        order.turns.spend(ENOUGH)
        first = [
            asyncio.ensure_future(order.run("first", order.turns.wait_to_decode("a", 10), REQUEST_COST_BYTES))
            for _ in range(200)
        ]
        for _ in range(3):
            await asyncio.sleep(0)
            if not order.turns.must_wait():
                order.turns.spend(ENOUGH)
                order.ran.append("arrived")
        await asyncio.gather(*first)
        assert order.ran == ["first"] * 200
        assert order.most_at_once == 128

    asyncio.run(main())


def test_a_long_request_that_arrives_does_not_pass_one_that_waits() -> None:
    async def main() -> None:
        order = Order()
        waiting = asyncio.ensure_future(order.run("first", order.turns.wait_to_decode("a", LONG), LONG))
        order.turns.spend(1)  # now, so that the turn ends when it has asked
        await asyncio.sleep(0)
        assert not order.turns.is_used_up
        assert order.ran == []
        assert order.turns.must_wait_if_large(LONG)
        await waiting
        for _ in range(6):  # those that follow a long piece
            await asyncio.sleep(0)
        assert not order.turns.must_wait_if_large(LONG)

    asyncio.run(main())


@pytest.mark.parametrize(("size", "seconds"), [(LONG, 0.0), (1, 0.1)], ids=["of many bytes", "of much time"])
def test_after_a_long_piece_four_turns_take_small_requests_alone(size: int, seconds: float) -> None:
    async def main() -> list[str]:
        order = Order()
        turns = order.turns
        turns.spend(size)
        order.seconds += seconds

        async def turn(number: int) -> None:
            for _ in range(number):
                await asyncio.sleep(0)
            order.ran.append("not used up" if not turns.is_used_up else "small" if not turns.must_wait() else "")

        await asyncio.gather(
            *(turn(number) for number in range(4)),
            order.run("large", turns.wait_to_decode("a", LARGE_BYTES + 1), LONG),
            order.run("work", turns.wait_to_work("a", ""), LONG),
        )
        return order.ran

    assert asyncio.run(main()) == ["small"] * 4 + ["work", "large"]


def test_long_pieces_get_each_fifth_turn_among_many_small_requests() -> None:
    async def main() -> int:
        turns = FairTurns()
        count = 0
        turns.spend(LONG)
        waiting = asyncio.ensure_future(turns.wait_to_decode("a", LONG))
        while not waiting.done():
            await asyncio.sleep(0)
            turns.spend(LONG)  # as cheap as it may be, it counts as a long piece
            count += 1
        return count

    assert asyncio.run(main()) < 10


def test_what_is_cancelled_while_it_waits_holds_up_nothing() -> None:
    async def main() -> None:
        order = Order()
        order.turns.spend(ENOUGH)
        cancelled = [asyncio.ensure_future(order.turns.wait_to_decode("a", ENOUGH)) for _ in range(3)]
        await asyncio.sleep(0)
        for each in cancelled:
            each.cancel()
        async with asyncio.timeout(PATIENCE_SECONDS):
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


def test_a_small_request_of_many_values_costs_more_of_a_turn_than_one_text() -> None:
    async def main(body: bytes) -> int:
        order = Order()
        order.turns.spend(ENOUGH)
        cost = request_cost(body)
        waiting = [order.turns.wait_to_decode("a", len(body), cost) for _ in range(100)]
        await asyncio.gather(*(order.run("", each, cost) for each in waiting))
        assert len(order.ran) == 100
        return order.most_at_once

    answers = b",".join(b'"k%03d":{"action":"accept"}' % number for number in range(500))
    assert asyncio.run(main(b'{"inputResponses":{%s}}' % answers)) <= 4
    assert asyncio.run(main(b'{"text":"%s"}' % (b"x" * len(answers)))) > 15
    assert request_cost(b'{"jsonrpc":"2.0","id":1,"method":"ping"}') == REQUEST_COST_BYTES
