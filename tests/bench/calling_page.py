"""The part of the page that is about clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.calling import FLOOR, IN_MEMORY, OURS, SDK, still
from tests.bench.figures import figure, promise, rate, ratio
from tests.bench.serving import WIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.calling import CallingRow, Measurements, OpeningRow

LEAST_RATIO: Final = 5

CALLING: Final = f"""
## Client

Calls of a tool that returns its argument, by clients that are programs of their own: each starts the server, uses one
revision with it, and reads the text of each result, which is compared with the argument. The client reads the clock
before and after `await client.call_tool(…)`. All clients run at once and take turns.

* *median*, *99th*, *calls/s*: one call at a time, on the processors that the operating system chooses: microseconds by
  the clock, the median and the 99th percentile of a round's calls, and the calls a second that follow from the median.
  If processors sleep between two messages, waking the server and then the client takes longer than all other work, and
  takes the same time for all clients. The *floor* shows this time.
* *one processor*: calls a second, one at a time, if client and server are confined to one processor, so that no other
  processor has to wake up. This column compares the clients themselves. In memory there is one process, so the column
  before has this figure.
* *CPU*: microseconds of the client's CPU for each of these calls; in memory this includes the server's.
* *{WIDE:,} in flight*: calls a second of {WIDE:,} tasks that call at the same time on one client, and the client's CPU
  for one call.
* *of `mcp`*, *of floor*: the column before as a multiple of the figure of `mcp`, or of the floor.
* *mcpgen*: `connect(command)`, written against the newest revision, with `client.call_tool(name, arguments)`.
* *mcp*: the official SDK's `ClientSession` over `stdio_client`, which costs less than the `Client` around them. Its
  tracing cannot be switched off, but has no exporter.
* *floor*: msgspec with dicts on the bare descriptors, a future for each call, and no checks.

Over stdio all clients have the same two servers: a *blocking* one that costs about a microsecond a call, and `mcpgen
serve`. *In memory* the servers differ. mcpgen is `connect(server)` with a `Server`, and encodes and decodes messages as
on a pipe. *mcp* is `Client(server)` with its own low-level `Server`: messages pass as objects. Without a handshake
(2026-07-28) there are no messages, because the client awaits the server's dispatcher.

"""
COLUMNS: Final = (
    "server",
    "revision",
    "client",
    "median",
    "99th",
    "calls/s",
    "of `mcp`",
    "of floor",
    "one processor",
    "of `mcp`",
    "of floor",
    "CPU",
    f"{WIDE:,} in flight",
    "of `mcp`",
    "of floor",
    "CPU",
    "promised",
)
OPENINGS: Final = """
## Starting a client

Milliseconds by the clock from the start of the client's process to its first result of a tool, with a blocking server;
the start of this server takes about 25 ms of it. Also the CPU of the client until then, which a busy machine changes
less, and its resident memory in MiB. [Starting](#starting) has the import alone.

| revision | client | first result, ms | of `mcp` | CPU, ms | of `mcp` | resident, MiB | of `mcp` |
|---|---|--:|--:|--:|--:|--:|--:|
"""


def text(found: Measurements) -> str:
    """Return the two tables."""
    return "".join(_parts(found))


def _parts(found: Measurements) -> Iterator[str]:
    yield CALLING
    yield f"| {' | '.join(COLUMNS)} |\n|---|---|---|{'--:|' * (len(COLUMNS) - 4)}---|\n"
    by_name = {(row.server, row.revision, row.contender.name): row for row in found.rows}
    for row in found.rows:
        yield _calling(row, *(by_name.get((row.server, row.revision, name)) for name in (SDK, FLOOR)))
    yield OPENINGS
    theirs = {row.revision: row for row in found.openings if row.contender.name == SDK}
    for opening in found.openings:
        yield _opening(opening, theirs.get(opening.revision))


def _calling(row: CallingRow, sdk: CallingRow | None, floor: CallingRow | None) -> str:
    promised = ""
    # With another server its time would count as much as the client's.
    if row.contender.name == OURS and sdk is not None and row.server in {still().name, IN_MEMORY}:
        kept = _near(sdk) / _near(row) >= LEAST_RATIO
        where = "" if row.server == IN_MEMORY or row.near is None else ", one processor"
        promised = promise((f"≥ {LEAST_RATIO} times the calls/s of `mcp`{where}", kept))
    near = ("", "", "")
    if row.near is not None:
        near = (rate(row.near), *(ratio(_near(each) if each else None, _near(row)) for each in (sdk, floor)))
    cells = (
        row.server,
        row.revision,
        row.contender.name,
        figure(row.median),
        figure(row.tail),
        rate(row.median),
        *(ratio(each.median.median if each else None, row.median.median) for each in (sdk, floor)),
        *near,
        figure(row.near_cpu),
        rate(row.wide),
        *(ratio(each.wide.median if each else None, row.wide.median) for each in (sdk, floor)),
        figure(row.wide_cpu),
        promised,
    )
    return f"| {' | '.join(cells)} |\n"


def _near(row: CallingRow) -> float:
    return (row.near or row.median).median


def _opening(row: OpeningRow, theirs: OpeningRow | None) -> str:
    cells = (
        row.revision,
        row.contender.name,
        figure(row.clock),
        ratio(row.clock.median, theirs.clock.median if theirs else None),
        figure(row.cpu),
        ratio(row.cpu.median, theirs.cpu.median if theirs else None),
        figure(row.memory),
        ratio(row.memory.median, theirs.memory.median if theirs else None),
    )
    return f"| {' | '.join(cells)} |\n"
