"""What serving over HTTP costs: each call, by few clients and by many.

Ours, the others and the floors run at the same time, each in a process of its own with the same server under it, and
take turns.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.http.connections import allow_descriptors, clients
from tests.bench.http.listening import Listening
from tests.bench.stopwatch import Timing, timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.http.connections import Driven

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
REVISIONS: Final = (HANDSHAKE, STATELESS)

FEW: Final = 16
MANY: Final = 256

OURS: Final = "mcpgen"
PROTECTED: Final = f"{OURS}, protected"
SDK: Final = "mcp, JSON"
FLOOR: Final = "floor"

SERVERS: Final = Path(__file__).parents[1] / "servers"
_BATCH_SECONDS: Final = 0.3
# So that ten calls lie beyond the 99th percentile, and each connection has more than one.
_LEAST_CALLS: Final = 1000
_LEAST_OF_EACH: Final = 4
_MOST_CALLS: Final = 20_000
_WARM_UP: Final = 500
# As long as a JSON Web Token with an RSA signature.
_TOKEN: Final = "t" * 800


class Contender(msgspec.Struct, frozen=True):
    """A server to be measured.

    Attributes:
        name: What it is called in the tables.
        command: What starts it.
        revisions: Those in which it differs from others.
        token: The access token that it wants, if any.
    """

    name: str
    command: tuple[str, ...]
    revisions: tuple[str, ...] = REVISIONS
    token: str = ""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What calls cost with some number of connections, in microseconds.

    Attributes:
        clock: One of a batch, by the clock.
        cpu: The server's CPU for one; None if the system does not count it.
        median: From sending a call to having its answer, the median of a batch.
        tail: The 99th percentile.
    """

    clock: Timing
    cpu: Timing | None
    median: Timing
    tail: Timing


class ServingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one server's calls cost in one revision."""

    contender: Contender
    revision: str
    few: Cost
    many: Cost


def command(server: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs one of the servers as a program."""
    # They find what they share beside themselves, so this is not -I: without -P, and without what the environment says.
    return (sys.executable, "-E", "-s", str(SERVERS / server), *arguments)


def ours(module: str = "ours", *, limit: str = "high") -> tuple[str, ...]:
    """Return the command that serves one of our servers, with a rate limit that is ``high``, or with ``none``."""
    return command("http_served.py", module, limit)


def contenders() -> tuple[Contender, ...]:
    """Return who is compared."""
    return (
        Contender(OURS, ours()),
        protected(),
        Contender(f"{OURS}, `rate_limit=None`", ours(limit="none")),
        Contender(f"{OURS}, `asgi()`", command("http_ours.py")),
        Contender("mcp", command("http_sdk.py")),
        Contender(SDK, command("http_sdk.py", "json")),
        Contender("mcp, JSON, without sessions", command("http_sdk.py", "json", "stateless"), (HANDSHAKE,)),
        Contender("FastMCP", command("http_fastmcp.py")),
        Contender("FastMCP, JSON", command("http_fastmcp.py", "json")),
        *floors(),
    )


def protected() -> Contender:
    """Return our server with access tokens."""
    return Contender(PROTECTED, command("http_protected.py", _TOKEN), token=_TOKEN)


def floors() -> tuple[Contender, ...]:
    """Return those that do the least."""
    return (
        Contender(FLOOR, command("http_floor.py", "httptools")),
        Contender("floor, h11", command("http_floor.py", "h11")),
    )


def rows(racing: Sequence[Contender], *, rounds: int) -> Iterator[ServingRow]:
    """Measure calls, one revision after the other."""
    allow_descriptors()
    for revision in REVISIONS:
        with ExitStack() as running:
            runners = [_Runner(each, revision, running) for each in racing if revision in each.revisions]
            for _ in range(rounds):
                for width in (FEW, MANY):
                    for runner in runners:
                        runner.call(width)
        for runner in runners:
            yield runner.row()


class _Runner:
    """One server with all its clients, and the samples that it gave so far."""

    def __init__(self, contender: Contender, revision: str, running: ExitStack) -> None:
        self._contender = contender
        self._revision = revision
        server = running.enter_context(Listening(contender.command, contender.token))
        self._clients = {n: running.enter_context(clients(server, revision, n)) for n in (FEW, MANY)}
        self._samples: dict[int, list[Driven]] = {FEW: [], MANY: []}
        # Also warms it up. A server that is slow is known to be so after few calls.
        self._counts = {
            width: max(_LEAST_CALLS, _LEAST_OF_EACH * width, min(_MOST_CALLS, int(_BATCH_SECONDS * 1e6 / each.clock)))
            for width, each in ((n, clients.call(_WARM_UP)) for n, clients in self._clients.items())
        }

    def call(self, width: int) -> None:
        """Measure a batch, on connections that have been used once."""
        self._clients[width].reconnect()
        self._clients[width].call(width)
        self._samples[width].append(self._clients[width].call(self._counts[width]))

    def row(self) -> ServingRow:
        """Return what was measured."""
        return ServingRow(
            contender=self._contender,
            revision=self._revision,
            few=_cost(self._samples[FEW]),
            many=_cost(self._samples[MANY]),
        )


def _cost(samples: Sequence[Driven]) -> Cost:
    percentiles = [quantiles(each.waits, n=100) for each in samples]
    cpu = [each.cpu for each in samples if each.cpu is not None]
    return Cost(
        clock=timing([each.clock for each in samples]),
        cpu=timing(cpu) if cpu else None,
        median=timing([each[49] for each in percentiles]),
        tail=timing([each[98] for each in percentiles]),
    )
