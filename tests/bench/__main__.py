"""``nox -s bench``: measure everything, print it, and with ``--write`` make it ``docs/benchmarks.md`` and charts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import (
    adapting,
    calling,
    calling_page,
    charts,
    contenders,
    page,
    payloads,
    serving,
    serving_page,
    startup,
    stopwatch,
    sustained,
    svg,
)
from tests.bench.http import measuring as http_measuring
from tests.bench.http import page as http_page
from tests.bench.http import sustained as http_sustained

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write on request; or see whether a server, or a client, that runs for long grows.

    Raises:
        SystemExit: It does.
    """
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and the charts beside it")
    parser.add_argument("--rounds", type=int, default=100, help="batches per message; a tenth as many processes")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--stdio", action="store_true", help="measure and print what serving over stdio costs, alone")
    other.add_argument("--client", action="store_true", help="measure and print what calling costs a client, alone")
    other.add_argument("--http", action="store_true", help="measure and print what both cost over HTTP, alone")
    other.add_argument(
        "--sustained", action="store_true", help="instead, fail if a million calls make a server or client grow"
    )
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a TextIOWrapper, unless it was replaced
    if options.sustained:
        if wrong := [*sustained.run(), *sustained.run_client(), *http_sustained.run()]:
            raise SystemExit("\n".join(wrong))
        return
    if options.stdio:
        sys.stdout.write(serving_page.text(*_serving(options.rounds)))
        return
    if options.client:
        sys.stdout.write(calling_page.text(_calling(options.rounds)))
        return
    if options.http:
        sys.stdout.write(http_page.text(http_measuring.measure(options.rounds)))
        return
    found = measure(options.rounds)
    text = page.text(found, versions=page.installed())
    sys.stdout.write(text)
    if options.write:
        write(text, charts.illustrations(found), FILE)


def write(text: str, drawn: Sequence[charts.Illustration], file: Path) -> None:
    """Write the page to *file*, and its charts beside it in place of those of the run before."""
    for stale in file.parent.glob(f"{file.stem}-*.svg"):
        stale.unlink()
    for each in drawn:
        (file.parent / each.file).write_text(svg.drawing(each.chart), encoding="utf-8")
    file.write_text(text, encoding="utf-8")


def measure(rounds: int) -> page.Measurements:
    """Measure everything."""
    few = max(1, rounds // 10)
    # Processes first, while this one is small and has not warmed the machine up.
    starts = startup.importing(payloads.REVISIONS) + startup.serving() + calling.importing()
    for revision in payloads.REVISIONS:
        starts += startup.first_messages(revision, payloads.request(revision))
    _say("starting")
    costs = startup.measure(starts, rounds=few)
    _say("building")
    build_clock, build_cpu = startup.building(rounds=max(1, few // 3))
    served, opened = _serving(rounds)
    called = _calling(rounds)
    http = http_measuring.measure(rounds)
    return page.Measurements(
        codecs=list(_codecs(rounds)),
        constructions=list(_constructions(rounds)),
        adapting=list(adapting.rows(rounds)),
        starts=list(zip(starts, costs, strict=True)),
        serving=served,
        openings=opened,
        calling=called,
        http=http,
        build_clock=build_clock,
        build_cpu=build_cpu,
    )


def _serving(rounds: int) -> tuple[list[serving.ServingRow], list[serving.OpeningRow]]:
    few = max(1, rounds // 20)
    _say("starting servers")
    opened = list(serving.openings(serving.starters(), rounds=few))
    _say("serving")
    return list(serving.rows(serving.contenders(), rounds=few)), opened


def _calling(rounds: int) -> calling.Measurements:
    few = max(1, rounds // 20)
    racing = calling.contenders()
    _say("starting clients")
    opened = list(calling.openings(racing, rounds=few))
    _say("calling")
    return calling.Measurements(rows=list(calling.rows(racing, calling.servers(), rounds=few)), openings=opened)


def _codecs(rounds: int) -> Iterator[page.CodecRow]:
    for codec in contenders.CODECS:
        for revision in payloads.REVISIONS:
            _say(f"{codec.type} {revision}")
            surface = contenders.surface(codec, revision)
            others = contenders.functions(codec, revision) | contenders.floor(codec, revision)
            racing = contenders.ours(codec, revision) | surface | others
            contenders.check(codec, revision, racing)
            times = stopwatch.race(racing, rounds=rounds)
            fastest = min(surface, key=lambda way: times[way].median)
            yield page.CodecRow(
                name=codec.name,
                revision=revision,
                size=len(codec.text(revision)),
                ours=times[contenders.OURS],
                functions=times[contenders.FUNCTIONS],
                methods=times[contenders.METHODS],
                fastest=times[fastest],
                fastest_way=fastest,
                floor=times[contenders.FLOOR],
                least_ratio=codec.least_ratio,
                most_microseconds=codec.most_microseconds,
            )


def _constructions(rounds: int) -> Iterator[page.ConstructionRow]:
    import mcp_types

    _say("constructing")
    ours = contenders.constructions(contenders.bindings("2025-11-25"))
    theirs = contenders.constructions(mcp_types)
    for name in ours:
        times = stopwatch.race({"ours": ours[name], "theirs": theirs[name]}, rounds=rounds)
        yield page.ConstructionRow(name=name, ours=times["ours"], theirs=times["theirs"])


def _say(what: str) -> None:
    sys.stderr.write(f"measuring: {what}\n")


if __name__ == "__main__":
    main()
