"""Figures as the page shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.bench.stopwatch import Timing


def figure(measured: Timing) -> str:
    """Return the median, and in brackets the least disturbed sample."""
    return f"{rounded(measured.median)} ({rounded(measured.least)})"


def rounded(value: float) -> str:
    """Return three significant figures of *value*."""
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def per_second(microseconds: float) -> str:
    """Return how many there are in a second of what takes so long."""
    return f"{float(f'{1e6 / microseconds:.3g}'):,.0f}"  # three significant figures


def rate(microseconds: Timing) -> str:
    """Return how many there are in a second of what takes so long: the median, and the least disturbed sample."""
    return f"{per_second(microseconds.median)} ({per_second(microseconds.least)})"


def ratio(value: float | None, beside: float | None) -> str:
    """Return *value* as a multiple of what it is compared with, or nothing if one of them is missing."""
    return f"**{rounded(value / beside)}**" if value and beside else ""


def promise(*bounds: tuple[str, bool] | None) -> str:
    """Return what was promised and whether it was kept."""
    return "; ".join(f"{bound}: {'kept' if met else '**missed**'}" for bound, met in filter(None, bounds))
