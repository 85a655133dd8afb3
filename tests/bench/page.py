"""``docs/benchmarks.md``: what was measured, as tables, and how."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import calling, calling_page, charts, serving_page
from tests.bench.adapting import AdaptingRow
from tests.bench.figures import figure, promise
from tests.bench.http import page as http_page
from tests.bench.http.measuring import Measurements as HttpMeasurements
from tests.bench.serving import OpeningRow, ServingRow
from tests.bench.startup import Cost, Start
from tests.bench.stopwatch import Timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGES: Final = (
    *("mcpgen", "msgspec", "anyio", "mcp", "mcp-types", "fastmcp", "pydantic", "pydantic-core"),
    *("uvicorn", "uvloop", "httptools", "httpx"),
)
MOST_BUILD_SECONDS: Final = 10
# In microseconds, rounded: that of the first line on the page of 2026-11-23, whose machine reached all promised times.
FIRST_FLOOR: Final = 0.6

INTRODUCTION: Final = """\
# Benchmarks

Written by `nox -s bench -- --write`; do not edit. Without `--write`, the command prints the page and writes nothing.
`--stdio`, `--client` and `--http` measure one part: servers over stdio, clients over stdio, or both over HTTP.
`nox -s bench -- --sustained` is a test: it makes a million calls, or 400,000 over HTTP, and a thousand calls that wait
at once. It fails if a server or a client keeps anything of these calls, or if a waiting call gets no answer.

All figures are of one run. Ratios are similar on all machines. Times differ, on a busy machine by half or more. Each
figure is a median, and the sample that other processes disturbed least is in brackets. Ratios compare medians.

"""
CODECS: Final = """
## Decoding and encoding

Microseconds of CPU to decode a message from bytes and to encode it again.

* *mcpgen*: `models.decoder(T)` and a `msgspec.json.Encoder`, made in advance.
* *functions*: mcp-types through its public functions: `jsonrpc_message_adapter` and `parse_client_request`, or
  `parse_server_result` and `serialize_server_result`. They validate twice, and return models that are the same for all
  revisions.
* *surface*: the *surface* model of mcp-types for the same era alone, with `model_validate_json` and
  `model_dump_json(by_alias=True, exclude_none=True)`. This model is internal. The promises compare mcpgen with it.
* *fastest*: the same model in the fastest way that pydantic documents. The list below the table names this way.
* *floor*: msgspec with dicts and lists instead of types. ADR 0018 says why a `tools/call` of 2026-07-28 costs more.

Each returns JSON that equals its input, which is checked. They take turns, in batches of two milliseconds.

| message | revision | bytes | mcpgen | functions | ratio | surface | ratio | fastest | ratio | promised | floor |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|
"""
CONSTRUCTIONS: Final = """
## Constructing

Microseconds of CPU to construct an instance with keyword arguments: a class of mcpgen for 2025-11-25, and the model of
`mcp_types`, which is the same for all revisions. mcpgen does not validate the arguments, because a type checker has
checked them. pydantic validates them.

| class | mcpgen | mcp-types | mcp-types / mcpgen |
|---|--:|--:|--:|
"""
STARTS: Final = """
## Starting

Milliseconds of CPU, and the growth of resident memory in MiB. Each line is measured in processes of its own. None of
them loads a revision of mcpgen that it does not need, which is checked.

| what | CPU, ms | memory, MiB | promised |
|---|--:|--:|---|
"""
ADAPTING: Final = """
## Adapting

Microseconds of CPU. `adapt` checks its input against the source revision and reports losses. `adapt_valid` does the
steps alone, for engines that have decoded the value already. Both take and return Python values. mcp-types has no
adapters. For comparison, the table has the time in which its surface model parses the same list.

| what | mcpgen | beside | | ratio | promised |
|---|--:|---|--:|--:|---|
"""
BUILD: Final = """
## Building

| what | seconds by the clock | seconds of CPU | promised |
|---|--:|--:|---|
"""


class CodecRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table of codecs; the last two say what was promised."""

    name: str
    revision: str
    size: int
    ours: Timing
    functions: Timing
    methods: Timing
    fastest: Timing
    fastest_way: str
    floor: Timing
    least_ratio: float | None
    most_microseconds: float | None


class ConstructionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table of constructions."""

    name: str
    ours: Timing
    theirs: Timing


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run found."""

    codecs: list[CodecRow]
    constructions: list[ConstructionRow]
    adapting: list[AdaptingRow]
    starts: list[tuple[Start, Cost]]
    serving: list[ServingRow]
    openings: list[OpeningRow]
    calling: calling.Measurements
    http: HttpMeasurements
    build_clock: Timing
    build_cpu: Timing


def installed() -> dict[str, str]:
    """Return the versions of the packages that are compared."""
    return {name: version(name) for name in PACKAGES}


def text(found: Measurements, *, versions: Mapping[str, str]) -> str:
    """Return the page, which shows the images of `charts.illustrations`.

    Args:
        found: What was measured.
        versions: By package, what it was measured with.
    """
    return charts.illustrated("".join(_parts(found, versions)), charts.illustrations(found))


def _parts(found: Measurements, versions: Mapping[str, str]) -> Iterator[str]:
    yield INTRODUCTION
    yield f"{_machine()}.\nPackages: {', '.join(f'{name} {number}' for name, number in versions.items())}.\n\n"
    yield _speed(found.codecs[0].floor)
    yield CODECS
    yield from map(_codec, found.codecs)
    yield "\nThe fastest ways:\n\n"
    for way in dict.fromkeys(row.fastest_way for row in found.codecs):
        users = [str(number) for number, row in enumerate(found.codecs, 1) if row.fastest_way == way]
        yield f"* {way}: line {', '.join(users)}.\n"
    yield CONSTRUCTIONS
    for each in found.constructions:
        theirs, ratio = _beside(each.theirs, each.ours)
        yield f"| {each.name} | {figure(each.ours)} | {theirs} | {ratio} |\n"
    yield ADAPTING
    yield from map(_adapting, found.adapting)
    yield STARTS
    for start, cost in found.starts:
        bound = start.most_milliseconds
        promised = promise(None if bound is None else (f"≤ {bound:g} ms", cost.cpu.median <= bound))
        yield f"| {start.name} | {figure(cost.cpu)} | {cost.memory.median:.1f} | {promised} |\n"
    yield serving_page.text(found.serving, found.openings)
    yield calling_page.text(found.calling)
    yield http_page.text(found.http)
    yield BUILD
    promised = promise((f"≤ {MOST_BUILD_SECONDS} s", found.build_clock.median <= MOST_BUILD_SECONDS))
    figures = f"{figure(found.build_clock)} | {figure(found.build_cpu)}"
    yield f"| `mcpgen build --all` | {figures} | {promised} |\n"


def _adapting(row: AdaptingRow) -> str:
    beside = ("", "", "")
    ratio = 0.0
    if row.beside is not None:
        ratio = row.ours.median / row.beside[1].median
        beside = (row.beside[0], figure(row.beside[1]), f"**{ratio:.2f}**")
    promised = promise(
        None
        if row.most_microseconds is None
        else (f"≤ {row.most_microseconds:g} µs", row.ours.median <= row.most_microseconds),
        None if row.most_ratio is None else (f"≤ {row.most_ratio:g} of it", ratio <= row.most_ratio),
    )
    return f"| {' | '.join((row.name, figure(row.ours), *beside, promised))} |\n"


def _codec(row: CodecRow) -> str:
    ratio = row.methods.median / row.ours.median
    promised = promise(
        None if row.least_ratio is None else (f"≥ {row.least_ratio:g} times", ratio >= row.least_ratio),
        None
        if row.most_microseconds is None
        else (f"≤ {row.most_microseconds:g} µs", row.ours.median <= row.most_microseconds),
    )
    cells = (
        row.name,
        row.revision,
        f"{row.size:,}",
        figure(row.ours),
        *_beside(row.functions, row.ours),
        *_beside(row.methods, row.ours),
        *_beside(row.fastest, row.ours),
        promised,
        figure(row.floor),
    )
    return f"| {' | '.join(cells)} |\n"


def _beside(theirs: Timing, ours: Timing) -> tuple[str, str]:
    return figure(theirs), f"**{theirs.median / ours.median:.1f}**"


def _speed(first_floor: Timing) -> str:
    """Return how fast the machine is beside the one on which the promised times were set."""
    slower = first_floor.least / FIRST_FLOOR
    usual = f"a machine on which the first floor below takes {FIRST_FLOOR:g} µs"
    text = f"Speed: all promised times were reached on {usual}.\n"
    if slower < 1.25:  # machines are noisy
        return text
    return (
        f"{text}This machine needs {slower:.1f} times that in its least disturbed sample. So it may miss promised "
        "times and calls a second\nthat a faster one keeps. Ratios do not depend on that.\n"
    )


def _machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"Machine: {os.cpu_count()} logical processors ({platform.machine()}), {platform.system()}, {python}"
