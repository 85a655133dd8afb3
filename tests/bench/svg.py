"""Bar charts as SVG text.

A chart is a table with a bar in each row: the label on the left, the figures on the right, the bar between them. No
text stands in the area of the bars, so no bar and no line crosses it. Labels wrap, rows grow with them, and the same
chart is always the same text.

Browsers choose a font that we do not know, so widths are those of DejaVu Sans, which is one of the widest.
"""

from __future__ import annotations

import math
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

# GitHub shows a page at 700 to 830 pixels, and makes wider images smaller, their text included.
WIDTH: Final = 720
SIZE: Final = 13
TITLE_SIZE: Final = 16

_MARGIN: Final = 16
_GAP: Final = 10
_LINE: Final = 17
_ROW: Final = 22
_BAR: Final = 14
_MOST_LABEL: Final = 210
_MOST_TICKS: Final = 5
# Letters that sit on the base line look centred when it is this far below the middle.
_BASELINE: Final = 0.36
# A bold letter, as a multiple of the same in regular weight.
BOLD: Final = 1.12

# In units of the font's size. What is not here, or above ASCII, is taken to be a square.
_WIDTHS: Final = {
    **dict.fromkeys(map(chr, range(32, 127)), 0.66),
    **dict.fromkeys("ABCDEFGHKNOQRUVXZ&#+<>=~", 0.84),
    **dict.fromkeys("mwMW@%", 1.0),
    **dict.fromkeys(" ,.:;!|'`/\\ijlIJ-()[]", 0.4),
    **dict.fromkeys("µ…", 0.84),
}


class Kind(Enum):
    """Whose bar it is; the value is its class in the style sheet."""

    OURS = "ours"
    OTHER = "other"
    FLOOR = "floor"


class Bar(msgspec.Struct, frozen=True):
    """One row.

    Attributes:
        label: What was measured.
        value: The length, in units of the axis.
        figure: The figure with its unit.
        ratio: The figure as a multiple of another one; may be empty.
        kind: Whose it is.
    """

    label: str
    value: float
    figure: str
    ratio: str
    kind: Kind


class Group(msgspec.Struct, frozen=True):
    """Bars that are compared with one floor.

    Attributes:
        title: What they have in common.
        bars: At least one.
        floor: Where the floor is, in units of the axis; None if there is none.
    """

    title: str
    bars: tuple[Bar, ...]
    floor: float | None


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart.

    Attributes:
        title: What was measured.
        subtitle: How, and whether a long bar is good or bad.
        unit: What the axis counts.
        groups: At least one.
    """

    title: str
    subtitle: str
    unit: str
    groups: tuple[Group, ...]


class Paint(msgspec.Struct, frozen=True):
    """How a class of the style sheet is painted: the property, and its colours on a light and on a dark page."""

    name: str
    light: str
    dark: str


# The paper has a colour of its own: what a browser takes for dark is not always what the page around the image is.
PAPER: Final = "paper"
TEXTS: Final = ("text", "muted")
PAINTS: Final = {
    PAPER: Paint("fill", "#ffffff", "#0d1117"),
    "text": Paint("fill", "#1f2328", "#f0f6fc"),
    "muted": Paint("fill", "#59636e", "#9da7b3"),
    "grid": Paint("stroke", "#d1d9e0", "#30363d"),
    "ours": Paint("fill", "#0969da", "#4493f8"),
    "other": Paint("fill", "#818b98", "#767e89"),
    "floor": Paint("fill", "#d1570a", "#db6d28"),
    # Of the floor: the colour of text is seen on bars of every colour.
    "mark": Paint("stroke", "#1f2328", "#f0f6fc"),
}


class _Columns(msgspec.Struct, frozen=True):
    """Where the columns of a chart are.

    Attributes:
        label: The width of a label.
        bars: Where bars begin.
        end: Where the axis ends.
        figure: Where figures end.
        last: Where ratios end.
        values: The ticks of the axis; the first is zero.
    """

    label: float
    bars: float
    end: float
    figure: float
    last: float
    values: tuple[float, ...]

    def x(self, value: float) -> float:
        return self.bars + (self.end - self.bars) * value / self.values[-1]


def drawing(chart: Chart) -> str:
    """Return *chart* as an SVG document."""
    columns = _columns(chart)
    body: list[str] = []
    y = _head(body, chart)
    for group in chart.groups:
        y = _group(body, group, columns, y)
    body += _axis(columns, y + _LINE)
    y += 2 * _LINE
    body.append(_text(chart.unit, _MARGIN, y, "muted"))
    if any(group.floor is not None for group in chart.groups):
        body += _legend(y)
    height = math.ceil(y + _MARGIN)
    size = f'width="{WIDTH}" height="{height}"'
    name = 'role="img" aria-labelledby="title description"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}" {name}>',
        f'<title id="title">{escape(chart.title)}</title>',
        f'<desc id="description">{escape(description(chart))}</desc>',
        f"<style>{_style()}</style>",
        f'<rect class="{PAPER}" {size} rx="6"/>',
        *body,
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in lines)


def description(chart: Chart) -> str:
    """Return all that *chart* shows in words, for those who do not see it."""
    groups = (f"{group.title}: {'; '.join(map(_words, group.bars))}." for group in chart.groups)
    return " ".join((chart.subtitle, *groups))


def width_of(text: str, size: float = SIZE) -> float:
    """Return how many pixels *text* takes at most."""
    return size * sum(_WIDTHS.get(each, 1.0) for each in text)


def wrapped(text: str, width: float, size: float = SIZE) -> list[str]:
    """Return the lines of *text*, none of which is wider than *width* pixels; words break only where they must."""
    lines = [""]
    for word in text.split():
        if not lines[-1] or width_of(f"{lines[-1]} {word}", size) <= width:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
        else:
            lines.append(word)
        while width_of(lines[-1], size) > width and len(lines[-1]) > 1:
            end = len(lines[-1]) - 1
            while end > 1 and width_of(lines[-1][:end], size) > width:
                end -= 1
            lines[-1:] = [lines[-1][:end], lines[-1][end:]]
    return lines


def step_of(most: float) -> float:
    """Return the distance of ticks, which is 1, 2 or 5 times a power of ten, so that few of them reach *most*."""
    power = 10.0 ** math.floor(math.log10(most / _MOST_TICKS))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step * _MOST_TICKS >= most * (1 - 1e-9))


def _words(bar: Bar) -> str:
    return ", ".join(filter(None, (bar.label, bar.figure, bar.ratio)))


def _columns(chart: Chart) -> _Columns:
    bars = [bar for group in chart.groups for bar in group.bars]
    floors = [group.floor for group in chart.groups if group.floor is not None]
    most = max([*(bar.value for bar in bars), *floors])
    step = step_of(most)
    last = WIDTH - _MARGIN
    figure = last - BOLD * max(width_of(bar.ratio) for bar in bars) - _GAP
    end = figure - BOLD * max(width_of(bar.figure) for bar in bars) - 2 * _GAP
    label = min(_MOST_LABEL, BOLD * max(width_of(bar.label) for bar in bars))
    return _Columns(
        label=label,
        bars=_MARGIN + label + _GAP,
        end=end,
        figure=figure,
        last=last,
        values=tuple(step * index for index in range(math.ceil(most / step * (1 - 1e-9)) + 1)),
    )


def _head(body: list[str], chart: Chart) -> float:
    y = _MARGIN + TITLE_SIZE
    for line in wrapped(chart.title, (WIDTH - 2 * _MARGIN) / BOLD, TITLE_SIZE):
        body.append(_text(line, _MARGIN, y, "text title"))
        y += TITLE_SIZE + 6
    for line in wrapped(chart.subtitle, WIDTH - 2 * _MARGIN):
        body.append(_text(line, _MARGIN, y, "muted"))
        y += _LINE
    return y


def _group(body: list[str], group: Group, columns: _Columns, y: float) -> float:
    y += _GAP
    for line in wrapped(group.title, (WIDTH - 2 * _MARGIN) / BOLD):
        y += _LINE
        body.append(_text(line, _MARGIN, y, "text bold"))
    top = y + 6
    rows: list[str] = []
    y = top
    for bar in group.bars:
        y = _row(rows, bar, columns, y)
    body += [_line("grid", columns.x(value), top, y) for value in columns.values]
    body += rows
    if group.floor is not None:
        body.append(_line("mark", columns.x(group.floor), top, y))
    return y


def _row(body: list[str], bar: Bar, columns: _Columns, y: float) -> float:
    weight = " bold" if bar.kind is Kind.OURS else ""
    lines = wrapped(bar.label, columns.label / (BOLD if weight else 1))
    height = _ROW + _LINE * (len(lines) - 1)
    middle = y + height / 2
    first = middle - _LINE * (len(lines) - 1) / 2 + SIZE * _BASELINE
    body += [_text(line, _MARGIN, first + _LINE * index, f"text{weight}") for index, line in enumerate(lines)]
    # A figure that is almost nothing is seen nevertheless.
    width = max(1.0, columns.x(bar.value) - columns.bars)
    body.append(
        f'<rect class="{bar.kind.value}" x="{_number(columns.bars)}" y="{_number(middle - _BAR / 2)}" '
        f'width="{_number(width)}" height="{_BAR}"/>'
    )
    baseline = middle + SIZE * _BASELINE
    body.append(_text(bar.figure, columns.figure, baseline, f"text end{weight}"))
    if bar.ratio:
        body.append(_text(bar.ratio, columns.last, baseline, f"text end{weight}"))
    return y + height


def _axis(columns: _Columns, y: float) -> Iterator[str]:
    places = [columns.x(value) for value in columns.values]
    names = [f"{value:,.10g}" for value in columns.values]
    # If neighbours would touch, keep every second name, and so the zero.
    is_crowded = _GAP + max(map(width_of, names)) > places[1] - places[0]
    for name, place in list(zip(names, places, strict=True))[:: 2 if is_crowded else 1]:
        yield _text(name, place, y, "muted middle")


def _legend(y: float) -> Iterator[str]:
    name = "floor"
    left = WIDTH - _MARGIN - width_of(name)
    yield _line("mark", left - 8, y - 14, y + 4)
    yield _text(name, left, y, "muted")


def _line(kind: str, x: float, top: float, bottom: float) -> str:
    place = _number(x)
    return f'<line class="{kind}" x1="{place}" y1="{_number(top)}" x2="{place}" y2="{_number(bottom)}"/>'


def _text(text: str, x: float, y: float, classes: str) -> str:
    return f'<text class="{classes}" x="{_number(x)}" y="{_number(y)}">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _style() -> str:
    light = "".join(f".{name}{{{paint.name}:{paint.light}}}" for name, paint in PAINTS.items())
    dark = "".join(f".{name}{{{paint.name}:{paint.dark}}}" for name, paint in PAINTS.items())
    fonts = "-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif"
    return (
        f"text{{font:{SIZE}px {fonts}}}.title{{font-size:{TITLE_SIZE}px;font-weight:600}}.bold{{font-weight:600}}"
        ".end{text-anchor:end}.middle{text-anchor:middle}.mark{stroke-width:2;stroke-dasharray:4 3}"
        f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    )
