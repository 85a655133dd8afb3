"""Print a diff as text for a terminal, or as Markdown for GitHub."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

import click

from mcpgen.codegen.console import printable
from mcpgen.codegen.diff.model import MECHANICAL, UNCOVERED
from mcpgen.codegen.diff.rows import Mark, Row, Section, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.diff.model import Diff

__all__ = ["markdown", "text"]

# Wide enough for most rows and narrow enough for most terminals. The same in a pipe, so that outputs can be compared.
_WIDTH = 110
_WIDEST_HEAD = 60
_NARROWEST_TAIL = 20

_COLOURS: dict[Mark, str] = {"+": "green", "-": "red", "~": "yellow"}
_RULE_COLOUR = "cyan"
_NO_RULE, _NO_RULE_COLOUR = "no rule", "red"
_TO = "\xa0to\xa0"


def text(diff: Diff) -> str:
    """Return *diff* as text with colours. ``click.echo`` removes them if the output is not a terminal."""
    lines = [click.style(f"{printable(diff.old)} -> {printable(diff.new)}", bold=True), _summary(diff)]
    for section in sections(diff):
        lines += ["", click.style(section.title, bold=True)]
        heads = [_head(section, row) for row in section.rows]
        width = min(max(map(len, heads)), _WIDEST_HEAD)
        for group, rows in groupby(zip(section.rows, heads, strict=True), key=lambda pair: pair[0].group):
            lines += [f"  {printable(group)}"] if group else []
            for row, head in rows:
                lines += _text_row(row, head, width, _tail(section, row), "    " if group else "  ")
    if _has_rules(diff):
        lines += [
            "",
            "In brackets: the declared change that covers the row. A row without brackets needs no declared change.",
        ]
        lines += [click.style(line, fg=_NO_RULE_COLOUR) for line in _uncovered(diff)]
    return "\n".join(lines) + "\n"


def markdown(diff: Diff) -> str:
    """Return *diff* as GitHub-flavoured Markdown."""
    blocks = [f"# Changes from {_code(diff.old)} to {_code(diff.new)}", _summary(diff)]
    for section in sections(diff):
        blocks += [f"## {section.title}", "\n".join(_table(section, has_rules=_has_rules(diff)))]
    if _has_rules(diff):
        legend = "A rule is the declared change that covers the row. Rows with an empty cell need no declared change."
        blocks.append("\n".join([legend, *_uncovered(diff)]))
    return "\n\n".join(blocks) + "\n"


def _summary(diff: Diff) -> str:
    count = len(diff.changes)
    found = f"{count} differences." if count > 1 else "1 difference." if count else "No differences."
    if diff.uncompared:
        found += f" Not compared, because only revisions have them: {', '.join(diff.uncompared)}."
    return found


def _has_rules(diff: Diff) -> bool:
    return any(each.rule for each in diff.changes)


def _uncovered(diff: Diff) -> Iterator[str]:
    """Yield a line about the differences that need a rule and have none, if there are any."""
    count = sum(each.rule == UNCOVERED for each in diff.changes)
    if count:
        found = f"{count} differences have" if count > 1 else "1 difference has"
        yield f"{found} no rule and cannot be adapted. `mcpgen build --all` shows the changes to declare."


def _head(section: Section, row: Row) -> str:
    """Return the first column. It includes the notes if they come before the detail, because then they are short."""
    if list(section.columns) != ["label", "notes", "detail"]:
        return printable(row.label)
    width = max(len(other.label) for other in section.rows)
    return printable(f"{row.label.ljust(width)}  {', '.join(row.notes)}")


def _tail(section: Section, row: Row) -> list[str]:
    """Return the cells of the second column, each for its own line."""
    names = ", ".join(row.notes) if list(section.columns)[-1] == "notes" else ""
    return [printable(cell) for cell in (row.detail, names) if cell]


def _text_row(row: Row, head: str, head_width: int, tail: list[str], indent: str) -> Iterator[str]:
    """Yield the lines of *row*. The second column is beside the head, or below it if there is too little room."""
    gap = "  " if head_width else ""
    margin = " " * (len(indent) + 2 + max(head_width, len(head))) + gap
    is_below = len(margin) > _WIDTH - _NARROWEST_TAIL
    if is_below:
        margin = " " * (len(indent) + 2 + head_width) + gap
    width = _WIDTH - len(margin)
    change, *names = tail or [""]
    lines = _with_rule(_wrapped(change, width), row.rule, width)
    lines += [line for cell in names for line in _wrapped(cell, width)]
    first = f"{indent}{click.style(row.mark, fg=_COLOURS[row.mark])} {head.ljust(head_width)}"
    yield (first + gap + lines.pop(0) if lines and not is_below else first).rstrip()
    yield from (margin + line for line in lines)


def _with_rule(lines: list[str], rule: str, width: int) -> list[str]:
    """Return *lines* with *rule* in brackets after the last one, or below it if there is no room."""
    if rule in {"", MECHANICAL}:
        return lines
    shown, colour = (_NO_RULE, _NO_RULE_COLOUR) if rule == UNCOVERED else (printable(rule), _RULE_COLOUR)
    brackets = _wrapped(f"[{shown.replace(' to ', _TO)}]", width)
    if max(map(len, brackets)) > width:
        brackets = _wrapped(f"[{shown}]", width)
    if lines and len(brackets) == 1 and len(f"{lines[-1]}  {brackets[0]}") <= width:
        return [*lines[:-1], f"{lines[-1]}  {click.style(brackets[0], fg=colour)}"]
    return [*lines, *(click.style(line, fg=colour) for line in brackets)]


def _wrapped(cell: str, width: int) -> list[str]:
    # A key and its value stay on one line, and so do the ends of a step: textwrap does not break at this space.
    lines = textwrap.wrap(cell.replace(": ", ":\xa0"), width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _table(section: Section, *, has_rules: bool) -> Iterator[str]:
    titles = ["", *section.columns.values(), *(["rule"] if has_rules else [])]
    yield _line(titles)
    yield "|" + "---|" * len(titles)
    for row in section.rows:
        cells = {
            "group": _code(row.group),
            "label": _code(row.label),
            "notes": ", ".join(map(_code, row.notes)),
            "detail": _code(row.detail),
        }
        rules = [_rule_cell(row.rule)] if has_rules else []
        yield _line([_code(row.mark), *(cells[column] for column in section.columns), *rules])


def _rule_cell(rule: str) -> str:
    if rule == UNCOVERED:
        return f"**{_NO_RULE}**"
    return "" if rule == MECHANICAL else _code(rule)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(cell: str) -> str:
    """Return *cell* as a code span for a table, with pipes escaped: they end a cell even inside code."""
    if not cell:
        return ""
    shown = printable(cell).replace("|", "\\|")
    # A code span ends at the same number of backticks with which it began.
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}{shown}{fence}" if fence == "`" else f"{fence} {shown} {fence}"
