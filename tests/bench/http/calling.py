"""What calling over HTTP costs a client: one call at a time, and many at once.

Ours, the official SDK's and the floors run at the same time, each in a process of its own, and take turns with one
server, which is ours.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.http import serving
from tests.bench.http.listening import Listening
from tests.bench.http.serving import REVISIONS
from tests.bench.ordered import Ordered
from tests.bench.stopwatch import Timing, timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.ordered import Alone, Together

WINDOW: Final = 100

OURS: Final = "mcpgen"
SDK: Final = "mcp"
FLOOR: Final = "httpx"

_CLIENTS: Final = Path(__file__).parents[1] / "clients"
_BATCH_SECONDS: Final = 0.5
_LEAST_CALLS: Final = 500
_MOST_CALLS: Final = 10_000
_SLICES: Final = 5
_WARM_UP: Final = 5


class Contender(msgspec.Struct, frozen=True):
    """A client to be measured.

    Attributes:
        name: What it is called in the tables.
        program: The one of ``clients/`` that it is, and its last arguments.
    """

    name: str
    program: tuple[str, ...]

    def command(self, revision: str, url: str) -> tuple[str, ...]:
        """Return what starts it."""
        program, *rest = self.program
        return (sys.executable, "-E", "-s", str(_CLIENTS / program), revision, url, *rest)


class CallingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What calls cost, in microseconds each.

    Attributes:
        contender: Who calls.
        revision: What it speaks.
        median: The median of a round's calls, one at a time.
        tail: Their 99th percentile.
        cpu: The client's CPU for one of them.
        wide: A call of a batch with many in flight.
        wide_cpu: The client's CPU for one of those.
    """

    contender: Contender
    revision: str
    median: Timing
    tail: Timing
    cpu: Timing
    wide: Timing
    wide_cpu: Timing


def contenders() -> tuple[Contender, ...]:
    """Return who is compared."""
    with_token = Contender(f"{OURS}, `OAuth`", ("http_ours.py", "token"))
    return (Contender(OURS, ("http_ours.py",)), with_token, Contender(SDK, ("http_sdk.py",)), *floors())


def floors() -> tuple[Contender, ...]:
    """Return those that do the least: on the library that ours uses, and without one."""
    return (Contender(FLOOR, ("http_floor.py",)), Contender("sockets", ("http_floor.py", "sockets")))


def rows(racing: Sequence[Contender], server: Sequence[str], *, rounds: int) -> Iterator[CallingRow]:
    """Measure calls, one revision after the other."""
    for revision in REVISIONS:
        with ExitStack() as running:
            listening = running.enter_context(Listening(server))
            runners = [_Runner(each, revision, listening.address.url, running) for each in racing]
            for _ in range(rounds):
                for _ in range(_SLICES):
                    for runner in runners:
                        runner.call_one_at_a_time()
                for runner in runners:
                    runner.call_many()
        for runner in runners:
            yield runner.row()


def answering() -> tuple[str, ...]:
    """Return the command of the server that all call."""
    return serving.ours()


class _Runner:
    """One client, and the samples that it gave so far."""

    def __init__(self, contender: Contender, revision: str, url: str, running: ExitStack) -> None:
        self._contender = contender
        self._revision = revision
        self._client = running.enter_context(Ordered(contender.command(revision, url)))
        self._singles: list[Alone] = []
        self._wide: list[Together] = []
        # Also warms it up. A client that is slow is known to be so after few calls.
        alone = self._client.alone(_LEAST_CALLS // 2).clock
        self._alone = _count(sum(alone) / len(alone)) // _SLICES
        self._many = _count(self._client.together(_LEAST_CALLS, window=WINDOW).clock)

    def call_one_at_a_time(self) -> None:
        """Measure one slice of a round's calls that wait for each other."""
        self._client.alone(_WARM_UP)
        self._singles.append(self._client.alone(self._alone))

    def call_many(self) -> None:
        """Measure a round's calls that do not wait for each other."""
        self._wide.append(self._client.together(self._many, window=WINDOW))

    def row(self) -> CallingRow:
        """Return what was measured."""
        starts = range(0, len(self._singles), _SLICES)
        singles = [chain.from_iterable(each.clock for each in self._singles[at : at + _SLICES]) for at in starts]
        percentiles = [quantiles(each, n=100) for each in singles]
        return CallingRow(
            contender=self._contender,
            revision=self._revision,
            median=timing([each[49] for each in percentiles]),
            tail=timing([each[98] for each in percentiles]),
            cpu=timing([each.cpu for each in self._singles]),
            wide=timing([each.clock for each in self._wide]),
            wide_cpu=timing([each.cpu for each in self._wide]),
        )


def _count(microseconds: float) -> int:
    return max(_LEAST_CALLS, min(_MOST_CALLS, int(_BATCH_SECONDS * 1e6 / microseconds)))
