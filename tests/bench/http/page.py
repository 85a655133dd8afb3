"""The part of the page that is about HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.figures import figure, promise, rate, ratio, rounded
from tests.bench.http import calling, serving
from tests.bench.http.calling import WINDOW
from tests.bench.http.serving import FEW, MANY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.http.calling import CallingRow
    from tests.bench.http.crowds import SessionsRow, StreamsRow
    from tests.bench.http.measuring import Measurements
    from tests.bench.http.serving import Cost, ServingRow

LEAST_OF_FLOOR: Final = 0.6
MOST_OF_OPEN: Final = 1.1
MOST_KIBIBYTES: Final = 10
MOST_MILLISECONDS: Final = 100

SERVING: Final = f"""
## Serving over HTTP

Calls of a tool that returns its argument. Each client keeps one connection open and calls again when it has the answer;
in 2025-11-25 each has a session. All servers are ASGI applications on the same uvicorn, with uvloop and httptools, in
one process, without a log of requests. The load comes from a generator in one thread that waits for all connections at
once, with requests that were prepared in advance. Afterwards it checks every answer. All servers run at once and take
turns.

* *{FEW}*, *{MANY} connections*: calls a second by the clock.
* *median*, *99th*: microseconds by the clock from sending a call to having the whole answer. With so many clients that
  never pause, nearly all of this time is waiting for the calls of others.
* *CPU*: microseconds of the server's CPU for a call, with {FEW} connections. They give the calls a second of a server
  that never waits. By the clock, a faster server waits longer for the generator, above all on a busy machine. So the
  promise is about these.
* *of `mcp`*, *of floor*: calls a second as a multiple of the figure of `mcp, JSON`, and of the first floor. After
  *CPU*, the same for the calls a second that follow from the CPU.
* *mcpgen*: a function registered with `@server.tool` that returns text, served as `mcpgen serve FILE --http` does, but
  with a `rate_limit` of `HttpLimits` that is never reached: the default allows a client 100 calls a second. Another
  line has `rate_limit=None`, to show what counting the calls costs. The last is `server.asgi()` on uvicorn as it is,
  without a rate limit, because the other servers have none.
* *mcpgen, protected*: the first again, with `Protect` and a scope. The token of the clients has 800 characters, and was
  verified before.
* *mcp*: the low-level `Server` of the official SDK: with its defaults, which answer with streams; with JSON, which is
  its fastest; and without sessions. Its tracing is off, and it gets the tool's schema from a function.
* *FastMCP*: a function registered with `@server.tool`, with the defaults and with JSON.
* *floor*: an application that reads the body, looks for the id in it and answers with a fixed JSON; also on the parser
  that uvicorn has without httptools.

"""
SERVING_COLUMNS: Final = (
    "revision",
    "server",
    f"{FEW} connections",
    "of `mcp`",
    "of floor",
    "CPU",
    "of floor",
    "median",
    "99th",
    f"{MANY} connections",
    "of `mcp`",
    "of floor",
    "median",
    "99th",
    "promised",
)
SESSIONS: Final = """
## Idle sessions

KiB of resident memory for each session of 2025-11-25 that a client has opened and does not use, less the memory of a
tenth as many sessions, which fill caches. And microseconds by the clock to open a session, with two requests one after
the other.

| server | sessions | KiB each | of `mcp` | opening, µs | promised |
|---|--:|--:|--:|--:|---|
"""
STREAMS: Final = """
## Notifying all listeners

Clients listen for changes, each on a connection of its own. Then one client calls a tool that reports a change of the
tools.

* *all notified*: milliseconds by the clock from sending this call until the last client has read the notification.
* *CPU*: milliseconds of the server's CPU for it.
* *memory*: KiB of the server's resident memory for each listening client, with its connection.
* *mcp*: its `ListenHandler`; in 2025-11-25 it cannot notify all sessions. FastMCP has no subscriptions.

| revision | server | streams | all notified, ms | of `mcp` | CPU, ms | memory, KiB | promised |
|---|---|--:|--:|--:|--:|--:|---|
"""
CALLING: Final = f"""
## Client over HTTP

Calls by clients that are programs of their own, of one server, which is that of mcpgen; as with [stdio](#client).

* *median*, *99th*, *CPU*: of one call at a time.
* *{WINDOW} in flight*: calls a second of {WINDOW} tasks that call at the same time on one client, and the client's CPU
  for one call.
* *mcpgen*: `connect(url)` with `client.call_tool(name, arguments)`. *mcpgen, `OAuth`* has an access token of 800
  characters in its store.
* *mcp*: `ClientSession` over `streamable_http_client`.
* *httpx*: httpx with msgspec, and no checks. *sockets*: bare sockets with msgspec, and no checks.

"""
CALLING_COLUMNS: Final = (
    "revision",
    "client",
    "median",
    "of `mcp`",
    "of httpx",
    "99th",
    "CPU",
    f"{WINDOW} in flight",
    "of `mcp`",
    "of httpx",
    "CPU",
)


def text(found: Measurements) -> str:
    """Return the tables."""
    return "".join(_parts(found))


def _parts(found: Measurements) -> Iterator[str]:
    yield SERVING
    yield f"| {' | '.join(SERVING_COLUMNS)} |\n|---|---|{'--:|' * (len(SERVING_COLUMNS) - 3)}---|\n"
    yield from _serving(found.serving)
    yield SESSIONS
    yield from _sessions(found.sessions)
    yield STREAMS
    yield from _streams(found.streams)
    yield CALLING
    yield f"| {' | '.join(CALLING_COLUMNS)} |\n|---|---|{'--:|' * (len(CALLING_COLUMNS) - 2)}\n"
    yield from _calling(found.calling)


def _serving(rows: Sequence[ServingRow]) -> Iterator[str]:
    by_name = {(row.revision, row.contender.name): row for row in rows}
    for row in rows:
        beside = [by_name.get((row.revision, name)) for name in (serving.SDK, serving.FLOOR)]
        floor = beside[1]
        promised = ""
        if row.contender.name == serving.OURS and floor:
            kept = _work(floor.few) / _work(row.few) >= LEAST_OF_FLOOR
            promised = promise((f"≥ {LEAST_OF_FLOOR} of floor at {FEW}", kept))
        open_one = by_name.get((row.revision, serving.OURS))
        if row.contender.name == serving.PROTECTED and open_one:
            kept = _work(row.few) <= MOST_OF_OPEN * _work(open_one.few)
            promised = promise((f"≤ {MOST_OF_OPEN} of mcpgen's CPU at {FEW}", kept))
        cells = (
            row.revision,
            row.contender.name,
            *_rates(row.few, [each.few if each else None for each in beside]),
            figure(row.few.cpu) if row.few.cpu else "",
            ratio(_work(floor.few) if floor else None, _work(row.few)),
            *_waits(row.few),
            *_rates(row.many, [each.many if each else None for each in beside]),
            *_waits(row.many),
            promised,
        )
        yield f"| {' | '.join(cells)} |\n"


def _rates(cost: Cost, beside: Sequence[Cost | None]) -> tuple[str, ...]:
    return (rate(cost.clock), *(ratio(each.clock.median if each else None, cost.clock.median) for each in beside))


def _work(cost: Cost) -> float:
    # Where the load comes from the same processors, it is the fastest that it slows down most.
    return (cost.cpu or cost.clock).median


def _waits(cost: Cost) -> tuple[str, str]:
    return figure(cost.median), figure(cost.tail)


def _sessions(rows: Sequence[SessionsRow]) -> Iterator[str]:
    theirs = next((row.size for row in rows if row.contender.name == serving.SDK), None)
    for row in rows:
        promised = ""
        if row.contender.name == serving.OURS:
            promised = promise((f"≤ {MOST_KIBIBYTES} KiB", row.size <= MOST_KIBIBYTES))
        cells = (
            row.contender.name,
            f"{row.count:,}",
            rounded(row.size),
            ratio(row.size, theirs),
            rounded(row.opening),
            promised,
        )
        yield f"| {' | '.join(cells)} |\n"


def _streams(rows: Sequence[StreamsRow]) -> Iterator[str]:
    theirs = {row.revision: row.all.median for row in rows if row.contender.name == "mcp"}
    for row in rows:
        promised = ""
        if row.contender.name == serving.OURS:
            promised = promise((f"≤ {MOST_MILLISECONDS} ms", row.all.median <= MOST_MILLISECONDS))
        cells = (
            row.revision,
            row.contender.name,
            f"{row.count:,}",
            figure(row.all),
            ratio(row.all.median, theirs.get(row.revision)),
            figure(row.cpu) if row.cpu else "",
            rounded(row.size),
            promised,
        )
        yield f"| {' | '.join(cells)} |\n"


def _calling(rows: Sequence[CallingRow]) -> Iterator[str]:
    by_name = {(row.revision, row.contender.name): row for row in rows}
    for row in rows:
        beside = [by_name.get((row.revision, name)) for name in (calling.SDK, calling.FLOOR)]
        cells = (
            row.revision,
            row.contender.name,
            figure(row.median),
            *(ratio(row.median.median, each.median.median if each else None) for each in beside),
            figure(row.tail),
            figure(row.cpu),
            rate(row.wide),
            *(ratio(each.wide.median if each else None, row.wide.median) for each in beside),
            figure(row.wide_cpu),
        )
        yield f"| {' | '.join(cells)} |\n"
