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

Calls of a tool that returns its argument, by clients that are programs of their own: each starts the server, speaks one
revision with it, and reads the text of each result, which is compared with what was sent. The clock is read in the
client, before and after `await client.call_tool(…)`. All of them run at once and take turns.

* *median*, *99th*, *calls/s*: one call at a time, wherever the system lets the two processes run: microseconds by the
  clock, the median and the 99th percentile of a round's calls, and how many calls of the median make a second. Where
  processors sleep between two messages, to wake the server and then the client takes longer than anything else here,
  and is the same for all: what nobody can do without is what the *floor* has.
* *one processor*: calls a second, one at a time, when client and server are confined to one processor, so that nobody
  has to be woken on another. What is compared here is clients. In memory there is one process, and the column before
  says it.
* *CPU*: microseconds of the client's CPU for each of these calls; in memory this is the server's, too.
* *{WIDE:,} in flight*: calls a second of {WIDE:,} tasks that call at the same time on one client, and the client's CPU
  for one.
* *of `mcp`*, *of floor*: the column before as a multiple of what `mcp`, or the floor, has there.
* *mcpgen*: `connect(command)`, written against the newest revision, with `client.call_tool(name, arguments)`.
* *mcp*: the official SDK's `ClientSession` over `stdio_client`, which costs less than the `Client` around them. Its
  tracing, which cannot be switched off, has nobody to tell.
* *floor*: msgspec with dicts on the bare descriptors, a future for each call, and nothing checked.

Over stdio all clients have the same two servers: a *blocking* one that costs about a microsecond a call, and `mcpgen
serve`. *In memory* the server differs: ours is `connect(server)` with our `Server`, and messages are encoded and
decoded as on a pipe. *mcp* is `Client(server)` with its own low-level `Server`: messages pass as objects, and without a
handshake (2026-07-28) there are no messages, as the client awaits the server's dispatcher.

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

Milliseconds by the clock from starting the client's process to the first result of a tool that it has, with a blocking
server, whose own start of some 25 ms is included; its own CPU until then, which holds better on a busy machine; and MiB
that are resident in it. The import alone is among the lines of [Starting](#starting).

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
