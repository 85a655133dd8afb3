"""What serving over stdio costs: each call, and the time and memory before the first.

Ours, the official SDK's and the floors run at the same time, each in a process of its own, and take turns.
"""

from __future__ import annotations

import sys
import sysconfig
import time
from itertools import chain
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.load import Started
from tests.bench.stopwatch import Timing, timing
from tests.bench.traffic import REVISIONS, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.load import Pipelined

NARROW: Final = 64
WIDE: Final = 1000

OURS: Final = "mcpgen"
SDK: Final = "mcp"
FLOOR: Final = "floor, asyncio"

_SERVERS: Final = Path(__file__).parent / "servers"
# Long enough for a few hundred wake-ups of the fastest, short enough that a disturbance spoils one batch of many.
_BATCH_SECONDS: Final = 0.2
# A window must be filled more than once to be more than a burst.
_FILLINGS: Final = 2
# So that ten of them lie beyond the 99th percentile.
_LEAST_ONE_AT_A_TIME: Final = 1000
_MOST_CALLS: Final = 100_000
# Whether processors sleep between two calls depends on what else the machine does, for a second or so: in turns as
# short as this everybody meets the same. What was asleep, and whose memory is cold, gets a few calls to wake up.
_SLICES: Final = 10
_WARM_UP: Final = 5
# What a server still does after its first answer is over by then, a hundred times.
_IDLE_SECONDS: Final = 0.05


class Contender(msgspec.Struct, frozen=True):
    """A server to be measured.

    Attributes:
        name: What it is called in the tables.
        command: What starts it.
    """

    name: str
    command: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether promises are made for it."""
        return self.name.startswith(OURS)


class ServingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What calls cost, in microseconds each.

    Attributes:
        contender: Who serves.
        revision: What the client speaks.
        median: The median of a round's calls, one at a time.
        tail: Their 99th percentile.
        narrow: A call of a batch with few in flight.
        wide: A call of a batch with many in flight.
        cpu: The server's CPU for the latter; None if the system does not count it.
    """

    contender: Contender
    revision: str
    median: Timing
    tail: Timing
    narrow: Timing
    wide: Timing
    cpu: Timing | None


class OpeningRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the first answer costs.

    Attributes:
        contender: Who is started.
        revision: What the client speaks.
        clock: Milliseconds from starting the process to the first answer.
        cpu: Milliseconds of CPU that the server had by then; None if the system does not count them.
        memory: MiB that are resident when the server has nothing more to do.
    """

    contender: Contender
    revision: str
    clock: Timing
    cpu: Timing | None
    memory: Timing


def script() -> str:
    """Return the path of the installed command."""
    return str(Path(sysconfig.get_path("scripts")) / "mcpgen")


def command(server: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs one of the servers as a program, isolated from this checkout."""
    return (sys.executable, "-I", str(_SERVERS / server), *arguments)


def contenders() -> tuple[Contender, ...]:
    """Return who is compared when calls are timed."""
    return (
        Contender(OURS, (script(), "serve", str(_SERVERS / "ours.py"))),
        Contender(f"{OURS}, `CallToolResult`", (script(), "serve", str(_SERVERS / "results.py"))),
        Contender(SDK, command("sdk.py")),
        *floors(),
    )


def floors() -> tuple[Contender, ...]:
    """Return those that do the least."""
    return (
        Contender(FLOOR, command("floor.py", "tasks")),
        Contender("floor, asyncio without tasks", command("floor.py", "asyncio")),
        Contender("floor, blocking", command("floor.py", "blocking")),
    )


def starters() -> tuple[Contender, ...]:
    """Return who is compared when processes are started: all of them, and ours as a program of its own too."""
    ours, _, *others = contenders()
    return (ours, Contender(f"{OURS}, `server.run()`", command("ours.py")), *others)


def rows(racing: Sequence[Contender], *, rounds: int) -> Iterator[ServingRow]:
    """Measure calls, one revision after the other."""
    for revision in REVISIONS:
        runners = [_Runner(each, revision) for each in racing]
        try:
            for _ in range(rounds):
                for _ in range(_SLICES):
                    for runner in runners:
                        runner.call_one_at_a_time()
                for runner in runners:
                    runner.call_many()
        finally:
            for runner in runners:
                runner.end()
        for runner in runners:
            yield runner.row()


class _Runner:
    """One server, with the samples that it gave so far."""

    def __init__(self, contender: Contender, revision: str) -> None:
        self._contender = contender
        self._server = Started(contender.command, Traffic(revision))
        self._singles: list[list[float]] = []
        self._narrow: list[Pipelined] = []
        self._wide: list[Pipelined] = []
        calls = self._server.traffic.calls
        # Also warms it up. A server that is slow is known to be so after few calls.
        alone = self._server.one_at_a_time(calls(_LEAST_ONE_AT_A_TIME // 2))
        self._alone = _count(sum(alone) / len(alone), least=_LEAST_ONE_AT_A_TIME) // _SLICES
        together = self._server.pipelined(calls(WIDE), window=WIDE).clock
        self._few, self._many = (_count(together, least=_FILLINGS * each) for each in (NARROW, WIDE))

    def call_one_at_a_time(self) -> None:
        """Measure one slice of a round's calls that wait for each other."""
        calls = self._server.traffic.calls(_WARM_UP + self._alone)
        self._singles.append(self._server.one_at_a_time(calls)[_WARM_UP:])

    def call_many(self) -> None:
        """Measure a round's calls that do not wait for each other."""
        server, calls = self._server, self._server.traffic.calls
        self._narrow.append(server.pipelined(calls(self._few), window=NARROW))
        self._wide.append(server.pipelined(calls(self._many), window=WIDE))

    def end(self) -> None:
        """End the server."""
        self._server.__exit__(None, None, None)

    def row(self) -> ServingRow:
        """Return what was measured."""
        slices = [self._singles[start : start + _SLICES] for start in range(0, len(self._singles), _SLICES)]
        percentiles = [quantiles(chain.from_iterable(each), n=100) for each in slices]
        cpu = [each.cpu for each in self._wide if each.cpu is not None]
        return ServingRow(
            contender=self._contender,
            revision=self._server.traffic.revision,
            median=timing([each[49] for each in percentiles]),
            tail=timing([each[98] for each in percentiles]),
            narrow=timing([each.clock for each in self._narrow]),
            wide=timing([each.clock for each in self._wide]),
            cpu=timing(cpu) if cpu else None,
        )


def openings(racing: Sequence[Contender], *, rounds: int) -> Iterator[OpeningRow]:
    """Measure starts, one revision after the other."""
    for revision in REVISIONS:
        samples: list[list[tuple[float, float | None, float]]] = [[] for _ in racing]
        for _ in range(rounds + 1):
            for found, contender in zip(samples, racing, strict=True):
                with Started(contender.command, Traffic(revision)) as server:
                    time.sleep(_IDLE_SECONDS)
                    found.append((server.first_answer, server.cpu_milliseconds, server.resident()))
        for contender, found in zip(racing, samples, strict=True):
            # The first round may have to write bytecode and read files from disk.
            clock, cpu, memory = zip(*found[1:], strict=True)
            counted = [each for each in cpu if each is not None]
            yield OpeningRow(
                contender=contender,
                revision=revision,
                clock=timing(list(clock)),
                cpu=timing(counted) if counted else None,
                memory=timing(list(memory)),
            )


def _count(microseconds: float, *, least: int) -> int:
    return max(least, min(_MOST_CALLS, int(_BATCH_SECONDS * 1e6 / microseconds)))
