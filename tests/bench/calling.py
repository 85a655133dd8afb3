"""What calling costs a client: over stdio, all with the same servers, and in memory, each with one of its own kind.

Ours, the official SDK's and the floor run at the same time, each in a process of its own, and take turns.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import serving
from tests.bench.ordered import Ordered, processor
from tests.bench.serving import WIDE
from tests.bench.startup import Start, package_of
from tests.bench.stopwatch import Timing, timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.ordered import Alone, Together

# The last with a handshake, and the first without.
REVISIONS: Final = ("2025-11-25", "2026-07-28")
NEWEST: Final = REVISIONS[-1]

OURS: Final = "mcpgen"
SDK: Final = "mcp"
FLOOR: Final = "floor"
IN_MEMORY: Final = "in memory"

_CLIENTS: Final = Path(__file__).parent / "clients"
# As with servers, but that a client starts anew to fill its window in each batch, which should not count.
_BATCH_SECONDS: Final = 0.5
_FILLINGS: Final = 2
_LEAST_ONE_AT_A_TIME: Final = 1000
_MOST_CALLS: Final = 20_000
_SLICES: Final = 10
_WARM_UP: Final = 5


class Contender(msgspec.Struct, frozen=True):
    """A client to be measured.

    Attributes:
        name: What it is called in the tables.
        program: The one of ``clients/`` that it is.
        has_memory: Whether it can talk to a server of its own kind in its own process.
    """

    name: str
    program: str
    has_memory: bool = True

    def command(self, revision: str, server: Sequence[str] = ()) -> tuple[str, ...]:
        """Return what starts it, with the command of a server, or else with one in memory."""
        # The programs find what they share beside themselves, so this is not -I: without -P, and without what the
        # environment has to say.
        return (sys.executable, "-E", "-s", str(_CLIENTS / self.program), revision, *server)


class CallingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What calls cost, in microseconds each.

    Attributes:
        contender: Who calls.
        server: Who answers.
        revision: What they speak.
        median: The median of a round's calls, one at a time.
        tail: Their 99th percentile.
        near: The median when client and server are confined to one processor; None where they cannot be.
        near_cpu: The client's CPU for those; in memory for all of them, as there is but one process.
        wide: A call of a batch with many in flight.
        wide_cpu: The client's CPU for the latter.
    """

    contender: Contender
    server: str
    revision: str
    median: Timing
    tail: Timing
    near: Timing | None
    near_cpu: Timing
    wide: Timing
    wide_cpu: Timing


class OpeningRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the first result costs.

    Attributes:
        contender: Who is started.
        revision: What it speaks.
        clock: Milliseconds from starting the client's process to the first result of a tool that it got.
        cpu: Milliseconds of CPU that it had by then, without the server's.
        memory: MiB that are resident in it afterwards.
    """

    contender: Contender
    revision: str
    clock: Timing
    cpu: Timing
    memory: Timing


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run found about clients."""

    rows: list[CallingRow]
    openings: list[OpeningRow]


def contenders() -> tuple[Contender, ...]:
    """Return who is compared."""
    return (Contender(OURS, "ours.py"), Contender(SDK, "sdk.py"), floor())


def floor() -> Contender:
    """Return the one that does the least."""
    return Contender(FLOOR, "floor.py", has_memory=False)


def servers() -> tuple[serving.Contender, ...]:
    """Return who answers: what costs next to nothing, and ours."""
    return (still(), serving.contenders()[0])


def still() -> serving.Contender:
    """Return the server that costs next to nothing."""
    return next(each for each in serving.floors() if each.name.endswith("blocking"))


def importing() -> list[Start]:
    """Return the imports that a client begins with, over a bare interpreter."""
    return [
        Start(
            name="the client side: `from mcpgen import connect`",
            statement="from mcpgen import connect",
            loads=frozenset({package_of(NEWEST)}),
        ),
        Start(
            name="the client side of mcp: `mcp.client.session`, `mcp.client.stdio`",
            statement="import mcp.client.session, mcp.client.stdio",
        ),
    ]


def rows(racing: Sequence[Contender], answering: Sequence[serving.Contender], *, rounds: int) -> Iterator[CallingRow]:
    """Measure calls: with each server, and then in memory, one revision after the other."""
    for server in (*answering, None):
        for revision in REVISIONS:
            with ExitStack() as running:
                runners = [_Runner(each, server, revision, running) for each in racing if server or each.has_memory]
                for _ in range(rounds):
                    for _ in range(_SLICES):
                        for runner in runners:
                            runner.call_one_at_a_time()
                    for runner in runners:
                        runner.call_many()
            for runner in runners:
                yield runner.row()


class _Runner:
    """One client with its server, and once more on one processor, with the samples that they gave so far."""

    def __init__(
        self, contender: Contender, server: serving.Contender | None, revision: str, running: ExitStack
    ) -> None:
        self._contender = contender
        self._server = server
        self._revision = revision
        self._singles: list[Alone] = []
        self._near: list[Alone] = []
        self._wide: list[Together] = []
        command = contender.command(revision, server.command if server else ())
        self._client = running.enter_context(Ordered(command))
        self._kept: Ordered | None = None
        # In memory there is one process, which no other has to wake.
        if server and (kept_to := processor()) is not None:
            self._kept = running.enter_context(Ordered(command, processor=kept_to))
        # Also warms it up. A client that is slow is known to be so after few calls.
        alone = self._client.alone(_LEAST_ONE_AT_A_TIME // 2).clock
        self._alone = _count(sum(alone) / len(alone), least=_LEAST_ONE_AT_A_TIME) // _SLICES
        together = self._client.together(WIDE, window=WIDE).clock
        self._many = _count(together, least=_FILLINGS * WIDE)

    def call_one_at_a_time(self) -> None:
        """Measure one slice of a round's calls that wait for each other."""
        for client, samples in ((self._client, self._singles), (self._kept, self._near)):
            if client:
                client.alone(_WARM_UP)
                samples.append(client.alone(self._alone))

    def call_many(self) -> None:
        """Measure a round's calls that do not wait for each other."""
        self._wide.append(self._client.together(self._many, window=WIDE))

    def row(self) -> CallingRow:
        """Return what was measured."""
        singles = _rounds(self._singles)
        percentiles = [quantiles(each, n=100) for each in singles]
        near = _rounds(self._near)
        return CallingRow(
            contender=self._contender,
            server=self._server.name if self._server else IN_MEMORY,
            revision=self._revision,
            median=timing([each[49] for each in percentiles]),
            tail=timing([each[98] for each in percentiles]),
            near=timing([median(each) for each in near]) if near else None,
            near_cpu=timing([each.cpu for each in self._near or self._singles]),
            wide=timing([each.clock for each in self._wide]),
            wide_cpu=timing([each.cpu for each in self._wide]),
        )


def openings(racing: Sequence[Contender], *, rounds: int) -> Iterator[OpeningRow]:
    """Measure starts, with the server that costs least."""
    for revision in REVISIONS:
        samples: list[list[tuple[float, float, float]]] = [[] for _ in racing]
        for _ in range(rounds + 1):
            for found, contender in zip(samples, racing, strict=True):
                with Ordered(contender.command(revision, still().command)) as client:
                    found.append((client.first_answer, client.cpu_milliseconds, client.resident()))
        for contender, found in zip(racing, samples, strict=True):
            # The first round may have to write bytecode and read files from disk.
            clock, cpu, memory = zip(*found[1:], strict=True)
            yield OpeningRow(
                contender=contender,
                revision=revision,
                clock=timing(list(clock)),
                cpu=timing(list(cpu)),
                memory=timing(list(memory)),
            )


def _rounds(slices: Sequence[Alone]) -> list[list[float]]:
    starts = range(0, len(slices), _SLICES)
    return [[*chain.from_iterable(each.clock for each in slices[start : start + _SLICES])] for start in starts]


def _count(microseconds: float, *, least: int) -> int:
    return max(least, min(_MOST_CALLS, int(_BATCH_SECONDS * 1e6 / microseconds)))
