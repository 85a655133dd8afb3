"""The charts of ``docs/benchmarks.md``: what some of its tables say, as bars beside the floor."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import calling, serving
from tests.bench.figures import per_second, rounded
from tests.bench.http import calling as http_calling
from tests.bench.http import serving as http_serving
from tests.bench.svg import Bar, Chart, Group, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.bench.page import CodecRow, Measurements

# The table has more floors. The others do not start a task for each call, so no handler of theirs could wait.
_OTHER_FLOORS: Final = frozenset(each.name for each in serving.floors()) - {serving.FLOOR}
# The table compares with httpx, which is no floor: our client is faster.
HTTP_CLIENT_FLOOR: Final = "sockets"
_MORE: Final = "The table below has all the figures."
_MORE_FLOORS: Final = "The table below has more floors and all the figures."


class Illustration(msgspec.Struct, frozen=True):
    """A chart and its place.

    Attributes:
        file: Its name beside the page.
        heading: The section of the page that it belongs to.
        chart: What it shows.
    """

    file: str
    heading: str
    chart: Chart

    @property
    def alternative(self) -> str:
        """The text for those who do not see the image: the title, and how far from the floor we are."""
        ours = [
            (bar.value / group.floor, bar.ratio.partition(" ")[0])
            for group in self.chart.groups
            for bar in group.bars
            if group.floor and bar.label == serving.OURS
        ]
        if not ours:
            return f"Bar chart: {self.chart.title}."
        ends = dict.fromkeys((min(ours)[1], max(ours)[1]))
        return f"Bar chart: {self.chart.title}. {serving.OURS} is at {' to '.join(ends)} times the floor."


def illustrations(found: Measurements) -> list[Illustration]:
    """Return the charts of all tables that have rows."""
    drawn = (
        Illustration("benchmarks-codecs.svg", "Decoding and encoding", _codecs(found.codecs)),
        Illustration("benchmarks-stdio-server.svg", "Serving over stdio", _serving(found.serving)),
        Illustration("benchmarks-stdio-start.svg", "Starting a stdio server", _openings(found.openings)),
        Illustration("benchmarks-stdio-client.svg", "Client", _calling(found.calling.rows)),
        Illustration("benchmarks-http-server.svg", "Serving over HTTP", _http_serving(found.http.serving)),
        Illustration("benchmarks-http-client.svg", "Client over HTTP", _http_calling(found.http.calling)),
    )
    return [each for each in drawn if each.chart.groups]


def illustrated(page: str, drawn: Iterable[Illustration]) -> str:
    """Return *page* with the image of each chart under the heading of its section.

    Raises:
        ValueError: There is no such heading.
    """
    for each in drawn:
        before, heading, after = page.partition(f"\n## {each.heading}\n\n")
        if not heading:
            raise ValueError(f"the page has no section {each.heading}")
        page = f"{before}{heading}![{each.alternative}]({each.file})\n\n{after}"
    return page


def _codecs(rows: Sequence[CodecRow]) -> Chart:
    groups = []
    for row in rows:
        times = {
            "mcpgen": row.ours.median,
            "mcp-types, fastest": row.fastest.median,
            "mcp-types, functions": row.functions.median,
            "floor": row.floor.median,
        }
        # Messages differ in size by hundreds of times, so the axis counts floors.
        group = _times(f"{row.name}, {row.revision}", times, unit="µs", floor="floor")
        bars = (msgspec.structs.replace(bar, value=bar.value / row.floor.median) for bar in group.bars)
        groups.append(Group(group.title, tuple(bars), 1.0))
    return Chart(
        title="CPU time to decode a message and encode it again",
        subtitle="Shorter is better. The floor is msgspec with dicts and lists instead of types. Messages differ in "
        f"size, so the axis counts multiples of each message's floor. {_MORE}",
        unit="times the floor of the message",
        groups=tuple(groups),
    )


def _serving(rows: Sequence[serving.ServingRow]) -> Chart:
    shown = [row for row in rows if row.contender.name not in _OTHER_FLOORS]
    return Chart(
        title=f"Calls a second of a server over stdio, {serving.WIDE:,} in flight",
        subtitle="Longer is better. The floor is msgspec on asyncio with a task for each call, and no protocol. "
        f"{_MORE_FLOORS}",
        unit="calls a second",
        groups=tuple(
            _rates(revision, {row.contender.name: row.wide.median for row in group}, floor=serving.FLOOR)
            for revision, group in groupby(shown, key=lambda row: row.revision)
        ),
    )


def _openings(rows: Sequence[serving.OpeningRow]) -> Chart:
    shown = [row for row in rows if row.contender.name not in _OTHER_FLOORS]
    return Chart(
        title="Time from starting a stdio server to its first answer",
        subtitle=f"Shorter is better. The floor is a server of msgspec and asyncio without a protocol. {_MORE_FLOORS}",
        unit="milliseconds",
        groups=tuple(
            _times(
                revision,
                {row.contender.name: row.clock.median for row in group},
                unit="ms",
                floor=serving.FLOOR,
            )
            for revision, group in groupby(shown, key=lambda row: row.revision)
        ),
    )


def _calling(rows: Sequence[calling.CallingRow]) -> Chart:
    return Chart(
        title=f"Calls a second of a client, {serving.WIDE:,} in flight",
        subtitle="Longer is better. The floor is msgspec with dicts and a future for each call, and nothing checked. "
        f"In memory there is no floor. {_MORE}",
        unit="calls a second",
        groups=tuple(
            _rates(
                f"{server if server == calling.IN_MEMORY else f'server: {server}'}, {revision}",
                {row.contender.name: row.wide.median for row in group},
                floor=calling.FLOOR,
                sdk=calling.SDK,
            )
            for (server, revision), group in groupby(rows, key=lambda row: (row.server, row.revision))
        ),
    )


def _http_serving(rows: Sequence[http_serving.ServingRow]) -> Chart:
    return Chart(
        title=f"Calls a second of a server over HTTP, {http_serving.FEW} connections",
        subtitle="Longer is better. All are on the same uvicorn. The floor answers with a fixed JSON. "
        "By the clock; the table below also has the server's CPU for a call, and all other figures.",
        unit="calls a second",
        groups=tuple(
            _rates(
                revision,
                {row.contender.name: row.few.clock.median for row in group},
                floor=http_serving.FLOOR,
            )
            for revision, group in groupby(rows, key=lambda row: row.revision)
        ),
    )


def _http_calling(rows: Sequence[http_calling.CallingRow]) -> Chart:
    return Chart(
        title=f"Calls a second of a client over HTTP, {http_calling.WINDOW} in flight",
        subtitle="Longer is better. The floor is msgspec on bare sockets, and nothing checked. The server is ours. "
        f"{_MORE}",
        unit="calls a second",
        groups=tuple(
            _rates(
                revision,
                {row.contender.name: row.wide.median for row in group},
                floor=HTTP_CLIENT_FLOOR,
            )
            for revision, group in groupby(rows, key=lambda row: row.revision)
        ),
    )


def _rates(title: str, microseconds: Mapping[str, float], *, floor: str, sdk: str = "") -> Group:
    values = {name: 1e6 / each for name, each in microseconds.items()}
    figures = {name: f"{per_second(each)}/s" for name, each in microseconds.items()}
    return _group(title, values, figures, rounded, floor=floor, sdk=sdk)


def _times(title: str, values: Mapping[str, float], *, unit: str, floor: str) -> Group:
    figures = {name: f"{rounded(each)} {unit}" for name, each in values.items()}
    return _group(title, values, figures, lambda ratio: f"{ratio:.1f}", floor=floor)


def _group(  # noqa: PLR0913 -- two words are keywords
    title: str,
    values: Mapping[str, float],
    figures: Mapping[str, str],
    ratio: Callable[[float], str],
    *,
    floor: str,
    sdk: str = "",
) -> Group:
    """Return a group of *values*, by name, beside that of *floor*, or if there is none, of *sdk*."""
    beside = next((name for name in (floor, sdk) if name in values), None)
    bars = []
    for name, value in values.items():
        # A floor has a longer name where there are several.
        multiple = f"{ratio(value / values[beside])} of {'floor' if beside == floor else beside}" if beside else ""
        bars.append(Bar(_plain(name), value, figures[name], multiple, _kind(name, floor)))
    return Group(_plain(title), tuple(bars), values.get(floor))


def _kind(name: str, floor: str) -> Kind:
    if name == floor:
        return Kind.FLOOR
    return Kind.OURS if name.startswith(serving.OURS) else Kind.OTHER


def _plain(name: str) -> str:
    return name.replace("`", "")
