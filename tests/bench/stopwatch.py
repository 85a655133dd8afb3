"""Timing that survives a busy machine: CPU time, short batches, all contenders in turns.

In each round every contender runs one batch. What slows the machine down for a while slows all of them down, so the
ratio of their medians holds where the figures themselves drift.
"""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Long enough that reading the clock costs under 0.1 %, short enough that most batches are not interrupted.
BATCH_NS = 2_000_000


class Timing(msgspec.Struct, frozen=True):
    """How long something takes.

    Attributes:
        least: The fastest sample, which is the least disturbed one.
        median: The median of the samples.
    """

    least: float
    median: float


def timing(samples: list[float]) -> Timing:
    """Return what *samples* come to."""
    return Timing(min(samples), median(samples))


def race(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, Timing]:
    """Return the microseconds of CPU that one call of each contender takes."""
    loops = {name: _loops(run) for name, run in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.freeze()  # so that a collection costs what the contender's own garbage costs
    try:
        for _ in range(rounds):
            for name, run in contenders.items():
                gc.collect()
                samples[name].append(_batch(run, loops[name]) / loops[name] / 1000)
    finally:
        gc.unfreeze()
    return {name: timing(found) for name, found in samples.items()}


def _loops(run: Callable[[], object]) -> int:
    loops = 1
    while (spent := _batch(run, loops)) < BATCH_NS // 2:
        loops *= 2
    return max(1, loops * BATCH_NS // spent)


def _batch(run: Callable[[], object], loops: int) -> int:
    turns = range(loops)
    start = time.thread_time_ns()
    for _ in turns:
        run()
    return time.thread_time_ns() - start
