"""The part of the page that is about serving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.figures import figure, promise, rate, ratio
from tests.bench.serving import FLOOR, NARROW, OURS, SDK, WIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.serving import OpeningRow, ServingRow

MOST_MEDIAN_MICROSECONDS: Final = 75
LEAST_CALLS_A_SECOND: Final = 80_000
MOST_OPENING_MILLISECONDS: Final = 120
MOST_RESIDENT_MEBIBYTES: Final = 34

SERVING: Final = f"""
## Serving over stdio

Calls of a tool that returns its argument, by clients of three revisions. The server of mcpgen is written against the
newest revision. The client writes bytes that were prepared in advance, with blocking calls, and does nothing else while
the clock runs. Afterwards it checks every answer. All servers run at once and take turns.

* *median*, *99th*: microseconds by the clock from writing a call to having read its answer, one call at a time: the
  median and the 99th percentile of a round's calls. Most of this time belongs to the operating system: to wake a
  process takes 20 microseconds or more on a processor that sleeps, and two or three on a busy one.
* *{NARROW}* and *{WIDE:,} in flight*: calls a second by the clock, with another call for each answer. Here the figure
  in brackets is the greatest sample.
* *CPU*: microseconds of the server's CPU for a call, with {WIDE:,} in flight. A busy machine changes these least.
* *of `mcp`*, *of floor*: the column before as a multiple of the figure of `mcp`, and of the first floor.
* *mcpgen*: `mcpgen serve FILE`, with a function registered with `@server.tool`. One function returns text, for which
  the engine has a fast path. The other returns a `CallToolResult`, which takes the usual path.
* *mcp*: the low-level `Server` of the official SDK with `stdio_server`, which costs less than its `MCPServer`. Its
  tracing, which is on by default, is off.
* *floor*: msgspec on the bare descriptors, without a protocol. The first starts an asyncio task for each call, which a
  server needs if its handlers may wait. The second answers in a callback of the event loop. The third blocks.

"""
# The bold ones are ratios: of the median, and of calls a second with many in flight.
COLUMNS: Final = (
    "revision",
    "server",
    "median",
    "of `mcp`",
    "of floor",
    "99th",
    f"{NARROW} in flight",
    f"{WIDE:,} in flight",
    "of `mcp`",
    "of floor",
    "CPU",
    "promised",
)
OPENINGS: Final = """
## Starting a stdio server

Milliseconds by the clock from the start of the process to its first answer, with the request waiting in the pipe:
`initialize`, or `tools/list` if there is no handshake. Also the CPU of the process until then, which a busy machine
changes less, and the resident memory of the idle server after it, in MiB.

| revision | server | first answer, ms | of `mcp` | CPU, ms | resident, MiB | of `mcp` | promised |
|---|---|--:|--:|--:|--:|--:|---|
"""


def text(serving: Sequence[ServingRow], openings: Sequence[OpeningRow]) -> str:
    """Return the two tables."""
    return "".join(_parts(serving, openings))


def _parts(serving: Sequence[ServingRow], openings: Sequence[OpeningRow]) -> Iterator[str]:
    yield SERVING
    yield f"| {' | '.join(COLUMNS)} |\n|---|---|{'--:|' * (len(COLUMNS) - 3)}---|\n"
    by_name = {(row.revision, row.contender.name): row for row in serving}
    for row in serving:
        yield _serving(row, by_name.get((row.revision, SDK)), by_name.get((row.revision, FLOOR)))
    yield OPENINGS
    theirs = {row.revision: row for row in openings if row.contender.name == SDK}
    for opening in openings:
        yield _opening(opening, theirs.get(opening.revision))


def _serving(row: ServingRow, sdk: ServingRow | None, floor: ServingRow | None) -> str:
    promised = ""
    if row.contender.name == OURS:
        calls = (f"≥ {LEAST_CALLS_A_SECOND:,} calls/s", 1e6 / row.wide.median >= LEAST_CALLS_A_SECOND)
        median = (f"≤ {MOST_MEDIAN_MICROSECONDS} µs", row.median.median <= MOST_MEDIAN_MICROSECONDS)
        promised = promise(median, calls)
    cells = (
        row.revision,
        row.contender.name,
        figure(row.median),
        *(ratio(row.median.median, each.median.median if each else None) for each in (sdk, floor)),
        figure(row.tail),
        rate(row.narrow),
        rate(row.wide),
        *(ratio(each.wide.median if each else None, row.wide.median) for each in (sdk, floor)),
        "" if row.cpu is None else figure(row.cpu),
        promised,
    )
    return f"| {' | '.join(cells)} |\n"


def _opening(row: OpeningRow, theirs: OpeningRow | None) -> str:
    promised = ""
    if row.contender.is_ours:
        clock = (f"≤ {MOST_OPENING_MILLISECONDS} ms", row.clock.median <= MOST_OPENING_MILLISECONDS)
        memory = (f"≤ {MOST_RESIDENT_MEBIBYTES} MiB", row.memory.median <= MOST_RESIDENT_MEBIBYTES)
        promised = promise(clock, memory)
    cells = (
        row.revision,
        row.contender.name,
        figure(row.clock),
        ratio(row.clock.median, theirs.clock.median if theirs else None),
        "" if row.cpu is None else figure(row.cpu),
        figure(row.memory),
        ratio(row.memory.median, theirs.memory.median if theirs else None),
        promised,
    )
    return f"| {' | '.join(cells)} |\n"
