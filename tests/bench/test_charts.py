"""The charts show what the tables say, can be read on light and dark pages, and are the same text each time."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.bench import __main__ as command
from tests.bench import calling, charts, page, serving, stopwatch, svg
from tests.bench.http import calling as http_calling
from tests.bench.http import measuring
from tests.bench.http import serving as http_serving
from tests.bench.svg import Bar, Chart, Group, Kind

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
# From WCAG 2.2, 1.4.3 for text and 1.4.11 for graphics.
LEAST_TEXT_CONTRAST = 4.5
LEAST_GRAPHICS_CONTRAST = 3.0


class Image(SingleFileSnapshotExtension):
    """A chart, in a file of its own."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT


def timing(value: float) -> stopwatch.Timing:
    return stopwatch.Timing(value * 0.9, value)


def measured() -> page.Measurements:
    """Return figures that nothing was measured for."""
    servers = {serving.OURS: 8, "mcpgen, `CallToolResult`": 12, "mcp": 400, serving.FLOOR: 4, "floor, blocking": 1}
    clients = {calling.OURS: 9, calling.SDK: 125, calling.FLOOR: 3}
    web_servers = {http_serving.OURS: 36, http_serving.SDK: 200, "mcp, JSON, without sessions": 330, "floor": 22}
    web_clients = {http_calling.OURS: 70, http_calling.SDK: 700, "httpx": 1500, "sockets": 30}
    two, newest = ("2025-11-25", "2026-07-28"), "2026-07-28"
    return page.Measurements(
        codecs=[
            page.CodecRow(
                name="`tools/call` request",
                revision=revision,
                size=106,
                ours=timing(0.6),
                functions=timing(9),
                methods=timing(3),
                fastest=timing(2.5),
                fastest_way="some way",
                floor=timing(0.5),
                least_ratio=None,
                most_microseconds=None,
            )
            for revision in two
        ],
        constructions=[],
        adapting=[],
        starts=[],
        serving=[
            serving.ServingRow(
                contender=serving.Contender(name, ()),
                revision=revision,
                median=timing(20),
                tail=timing(30),
                narrow=timing(cost),
                wide=timing(cost),
                cpu=None,
            )
            for revision in two
            for name, cost in servers.items()
        ],
        openings=[
            serving.OpeningRow(
                contender=serving.Contender(name, ()),
                revision=newest,
                clock=timing(clock),
                cpu=None,
                memory=timing(30),
            )
            for name, clock in {serving.OURS: 86, "mcp": 367, serving.FLOOR: 42}.items()
        ],
        calling=calling.Measurements(
            rows=[
                calling.CallingRow(
                    contender=calling.Contender(name, ""),
                    server=server,
                    revision=newest,
                    median=timing(20),
                    tail=timing(30),
                    near=None,
                    near_cpu=timing(10),
                    wide=timing(cost),
                    wide_cpu=timing(cost),
                )
                for server in (calling.still().name, calling.IN_MEMORY)
                for name, cost in clients.items()
                if (server, name) != (calling.IN_MEMORY, calling.FLOOR)
            ],
            openings=[],
        ),
        http=measuring.Measurements(
            serving=[
                http_serving.ServingRow(
                    contender=http_serving.Contender(name, ()), revision=newest, few=each, many=each
                )
                for name, cost in web_servers.items()
                for each in [http_serving.Cost(clock=timing(cost), cpu=None, median=timing(500), tail=timing(900))]
            ],
            sessions=[],
            streams=[],
            calling=[
                http_calling.CallingRow(
                    contender=http_calling.Contender(name, ()),
                    revision=newest,
                    median=timing(100),
                    tail=timing(200),
                    cpu=timing(50),
                    wide=timing(cost),
                    wide_cpu=timing(cost),
                )
                for name, cost in web_clients.items()
            ],
        ),
        build_clock=timing(3),
        build_cpu=timing(3),
    )


def chart_of(*bars: Bar, floor: float | None = 20.0, title: str = "2026-07-28") -> Chart:
    return Chart(title="Calls", subtitle="Longer is better.", unit="calls", groups=(Group(title, bars, floor),))


def bar(label: str = "mcpgen", value: float = 10.0, figure: str = "10/s", kind: Kind = Kind.OURS) -> Bar:
    return Bar(label, value, figure, "0.50 of floor", kind)


HOSTILE = bar('</text><script>alert("&")</script>', figure="<&>'\"")
LONG = bar("the server side, " * 8 + "a" * 90, figure="1,234,567,890/s")
CHARTS = [
    *(each.chart for each in charts.illustrations(measured())),
    chart_of(LONG, bar(), bar(LONG.label, kind=Kind.OTHER), title="a long title " * 20 + "b" * 200),
    chart_of(bar(value=123_456_789, figure="123,456,789/s"), floor=None),
    chart_of(HOSTILE),
]


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(svg.drawing(chart))  # noqa: S314 -- our own text


def boxes(root: ET.Element) -> list[tuple[str, float, float, float, float]]:
    """Return the texts of a drawing with their left, top, right and bottom edges, as wide as any font makes them."""
    found = []
    for each in root.iter(f"{SVG}text"):
        classes, text = each.attrib["class"].split(), each.text or ""
        size = svg.TITLE_SIZE if "title" in classes else svg.SIZE
        width = svg.width_of(text, size) * (svg.BOLD if {"bold", "title"} & {*classes} else 1)
        left = float(each.attrib["x"]) - width * (1 if "end" in classes else 0.5 if "middle" in classes else 0)
        y = float(each.attrib["y"])
        found.append((text, left, y - size * 0.8, left + width, y + size * 0.2))
    return found


@pytest.mark.parametrize("each", charts.illustrations(measured()), ids=lambda each: each.file.removesuffix(".svg"))
def test_a_chart_is_as_reviewed(each: charts.Illustration, snapshot: SnapshotAssertion) -> None:
    assert snapshot(extension_class=Image) == svg.drawing(each.chart)


@pytest.mark.parametrize("chart", CHARTS)
def test_no_text_is_cut_or_overlaps_another(chart: Chart) -> None:
    root = drawn(chart)
    placed = boxes(root)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    overlapping = [
        (a[0], b[0]) for a, b in combinations(placed, 2) if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]

    assert [] == [box for box in placed if box[1] < 0 or box[3] > width or box[2] < 0 or box[4] > height]
    assert [] == overlapping


@pytest.mark.parametrize("chart", CHARTS)
def test_no_text_stands_on_a_bar_or_a_line(chart: Chart) -> None:
    root = drawn(chart)
    shapes = [
        (float(each.attrib["x"]), float(each.attrib["y"]), float(each.attrib["width"]), float(each.attrib["height"]))
        for each in root.iter(f"{SVG}rect")
        if each.attrib["class"] != svg.PAPER
    ]
    for line in root.iter(f"{SVG}line"):
        x, top, bottom = (float(line.attrib[name]) for name in ("x1", "y1", "y2"))
        shapes.append((x, top, 0.0, bottom - top))

    assert [] == [
        (text, shape)
        for text, left, top, right, bottom in boxes(root)
        for shape in shapes
        if left < shape[0] + shape[2] and shape[0] < right and top < shape[1] + shape[3] and shape[1] < bottom
    ]


def test_bars_are_as_long_as_their_values_from_zero_and_the_floor_is_marked() -> None:
    root = drawn(chart_of(bar(), bar("floor", 20, kind=Kind.FLOOR), floor=20))
    ours, floor = (each for each in root.iter(f"{SVG}rect") if each.attrib["class"] != svg.PAPER)
    mark = next(each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "mark")
    zero = next(each for each in root.iter(f"{SVG}text") if each.text == "0")

    assert float(floor.attrib["width"]) == pytest.approx(2 * float(ours.attrib["width"]), abs=0.2)
    assert float(mark.attrib["x1"]) == pytest.approx(float(floor.attrib["x"]) + float(floor.attrib["width"]), abs=0.2)
    assert zero.attrib["x"] == ours.attrib["x"]


def test_all_text_is_escaped() -> None:
    root = drawn(chart_of(HOSTILE, title=HOSTILE.label))

    assert [] == list(root.iter(f"{SVG}script"))
    assert HOSTILE.label in (root.findtext(f"{SVG}desc") or "")
    assert HOSTILE.figure in [each.text for each in root.iter(f"{SVG}text")]


def test_a_screen_reader_hears_the_title_and_every_figure() -> None:
    root = drawn(chart_of(bar()))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")

    assert title is not None
    assert description is not None
    assert "img" == root.attrib["role"]
    assert [title.attrib["id"], description.attrib["id"]] == root.attrib["aria-labelledby"].split()
    assert "Calls" == title.text
    assert "Longer is better. 2026-07-28: mcpgen, 10/s, 0.50 of floor." == description.text


def luminance(colour: str) -> float:
    """Return the relative luminance that WCAG 2.2 defines."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("page", ["light", "dark"])
def test_texts_bars_and_floors_stand_out_from_the_paper(page: str) -> None:
    paper = getattr(svg.PAINTS[svg.PAPER], page)
    found = {name: contrast(getattr(paint, page), paper) for name, paint in svg.PAINTS.items()}

    assert [] == [name for name in ("text", "muted") if found[name] < LEAST_TEXT_CONTRAST]
    assert [] == [name for name in ("ours", "other", "floor", "mark") if found[name] < LEAST_GRAPHICS_CONTRAST]


def test_a_drawing_has_a_style_for_light_and_for_dark() -> None:
    light, query, dark = svg.drawing(CHARTS[0]).partition("@media (prefers-color-scheme:dark)")

    assert query
    assert [] == [name for name, paint in svg.PAINTS.items() if f".{name}{{{paint.name}:{paint.light}}}" not in light]
    assert [] == [name for name, paint in svg.PAINTS.items() if f".{name}{{{paint.name}:{paint.dark}}}" not in dark]


@pytest.mark.parametrize(("most", "step"), [(0.04, 0.01), (4, 1), (5, 1), (32.2, 10), (44_300, 10_000), (6, 2)])
def test_ticks_are_round_and_few(most: float, step: float) -> None:
    assert step == pytest.approx(svg.step_of(most))


def test_a_long_word_is_broken_and_no_letter_is_lost() -> None:
    text = "short " + "longer" * 20
    lines = svg.wrapped(text, 100)

    assert text.replace(" ", "") == "".join(lines).replace(" ", "")
    assert all(svg.width_of(line) <= 100 for line in lines)


def test_every_chart_says_what_its_table_says() -> None:
    found = measured()
    text = page.text(found, versions={})
    cells = set(re.findall(r"[\d,.]+", text))
    figures = [bar.figure for chart in CHARTS[:6] for group in chart.groups for bar in group.bars]

    assert len(figures) > 20
    assert [] == [each for each in figures if re.sub(r"/s| .s", "", each) not in cells]


def test_the_page_shows_each_chart_under_the_heading_of_its_table() -> None:
    text = page.text(measured(), versions={})
    files = [each.file for each in charts.illustrations(measured())]

    assert files == re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (
        "\n## Serving over stdio\n\n![Bar chart: Calls a second of a server over stdio, 1,000 in flight. mcpgen is at "
        "0.50 times the floor.](benchmarks-stdio-server.svg)\n\nCalls of a tool" in text
    )


def test_the_floors_of_the_charts_are_measured() -> None:
    assert charts.HTTP_CLIENT_FLOOR in {each.name for each in http_calling.floors()}
    assert serving.FLOOR in {each.name for each in serving.floors()}
    assert http_serving.FLOOR in {each.name for each in http_serving.floors()}
    assert calling.FLOOR in {each.name for each in calling.contenders()}


def test_a_heading_that_the_page_does_not_have_is_noticed() -> None:
    with pytest.raises(ValueError, match="no section Codecs"):
        charts.illustrated("\n## Others\n\n", [charts.Illustration("a.svg", "Codecs", CHARTS[0])])


def test_writing_replaces_the_charts_of_the_run_before(tmp_path: Path) -> None:
    (tmp_path / "benchmarks-gone.svg").touch()
    (tmp_path / "other.svg").touch()
    drawn = charts.illustrations(measured())[:1]
    command.write("page", drawn, tmp_path / "benchmarks.md")

    assert {"benchmarks.md", "benchmarks-codecs.svg", "other.svg"} == {each.name for each in tmp_path.iterdir()}
    assert svg.drawing(drawn[0].chart) == (tmp_path / "benchmarks-codecs.svg").read_text(encoding="utf-8")


def test_the_committed_page_shows_every_committed_chart() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (DOCS / "benchmarks.md").read_text(encoding="utf-8"))

    assert sorted(path.name for path in DOCS.glob("benchmarks-*.svg")) == sorted(shown)
