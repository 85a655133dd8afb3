"""The garbage collector of a process that does nothing but serve."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["tune_gc"]

_DEFAULT_THRESHOLDS: Final = gc.get_threshold()


@contextmanager
def tune_gc() -> Generator[None]:
    """Keep the garbage collector from looking at all that was loaded, again and again, while requests come and go.

    What is there when serving starts is there to stay, and requests leave few cycles behind. Collecting as often as a
    process does by default took 1.5 to 3 µs of each call, of about 12 (docs/benchmarks.md). Whoever has chosen other
    thresholds keeps them.
    """
    before = gc.get_threshold()
    if before != _DEFAULT_THRESHOLDS:
        yield
        return
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
