"""A client that follows orders: they come on its input, one a line, and its measurements go to its output.

Between two orders nothing runs: reading the next line blocks the event loop, which no task needs then.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    # The name of a tool and its arguments; the one text of its result.
    Call = Callable[[str, dict[str, Any]], Awaitable[str]]


class WrongAnswer(Exception):  # noqa: N818 (said as a sentence)
    """A tool did not return what it was called with."""


async def obey(call: Call) -> None:
    """Call once, tell the nanoseconds of CPU until then, and do what is ordered until the input ends."""
    await _echo(call, "first")
    _tell([time.process_time_ns()])
    for line in sys.stdin:
        order, *numbers = line.split()
        _tell(await _ORDERS[order](call, *map(int, numbers)))


async def alone(call: Call, count: int) -> list[int]:
    """Return the nanoseconds of CPU of *count* calls, one at a time, and those that each took by the clock."""
    clock = time.perf_counter_ns
    spent = [0]
    before = time.process_time_ns()
    for number in range(count):
        text = f"hello, {number}"
        start = clock()
        answer = await call("echo", {"text": text})
        spent.append(clock() - start)
        if answer != text:
            raise WrongAnswer(answer)
    spent[0] = time.process_time_ns() - before
    return spent


async def together(call: Call, count: int, window: int) -> list[int]:
    """Return the nanoseconds of CPU, and by the clock, of *count* calls with *window* of them in flight."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await _echo(call, f"hello, {number}")

    before, start = time.process_time_ns(), time.perf_counter_ns()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(window):
            tasks.create_task(some())
    return [time.process_time_ns() - before, time.perf_counter_ns() - start]


async def hold(call: Call, count: int) -> list[int]:
    """Return how many of *count* calls, which a server holds back, were answered when it was told to let them go."""
    waiting = [asyncio.create_task(call("wait", {"text": f"hello, {number}"})) for number in range(count)]
    while int(await call("tasks", {})) < count:  # a client that does not get there is killed after a while
        pass
    await call("release", {})
    return [sum(text == f"hello, {number}" for number, text in enumerate(await asyncio.gather(*waiting)))]


async def count_tasks(call: Call) -> list[int]:
    """Return how many tasks there are, with this one, when all that is ready to run has run."""
    del call
    for _ in range(10):
        await asyncio.sleep(0)
    return [len(asyncio.all_tasks())]


_ORDERS: dict[str, Any] = {"alone": alone, "together": together, "hold": hold, "tasks": count_tasks}


async def _echo(call: Call, text: str) -> None:
    if (answer := await call("echo", {"text": text})) != text:
        raise WrongAnswer(answer)


def _tell(numbers: list[int]) -> None:
    print(*numbers, flush=True)  # noqa: T201 (the output is the channel)
