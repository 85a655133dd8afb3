"""What a server reports while it works, in the status line of the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from mcpgen.generated.v2026_07_28 import LoggingMessageNotificationParams
from mcpgen.runtime.cli.client import progress_display
from mcpgen.runtime.cli.client.progress_display import ProgressDisplay
from mcpgen.runtime.cli.client.terminal import Screen


def test_a_long_message_is_cut_before_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def display_width(text: str) -> int:
        measured.append(len(text))
        return len(text)

    monkeypatch.setattr(progress_display, "display_width", display_width)
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding="utf-8")
    ProgressDisplay(Screen(stream, is_terminal=True, width=80)).progress(1, None, "x" * 10_000)
    stream.flush()

    assert b"1  " + b"x" * 76 in out.getvalue()
    assert b"x" * 77 not in out.getvalue()
    assert len(measured) < 100


@pytest.mark.parametrize("data", ["\u202e" * 2_000, {"key": "\u202e" * 2_000}], ids=["text", "object"])
@pytest.mark.slow
def test_what_waits_for_the_end_of_a_question_is_short_and_bounded(data: Any) -> None:
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding="utf-8")
    display = ProgressDisplay(Screen(stream, is_terminal=True, width=80, is_coloured=False))
    display.hold()
    entry = LoggingMessageNotificationParams(level="error", data=data, logger="\u202e" * 2_000)
    for _ in range(300):
        display.log(entry, None)
    display.release()
    display.log(entry, None)
    stream.flush()
    lines = out.getvalue().decode().splitlines()

    assert len(lines) <= 1001
    assert sum(map(len, lines)) < 1_100_000
    assert lines[0].startswith("[error] \\u202e\\u202e")
    assert max(map(len, lines)) < 6000


@pytest.mark.parametrize(
    ("progress", "total", "shown"),
    [(10**400, None, "1.79769e+308"), (10**400, 10**400, "100%"), (10**400, 5e-324, "100%"), (-(10**400), 1, "0%")],
)
def test_numbers_of_400_digits_are_shown_as_the_nearest_float(progress: int, total: float | None, shown: str) -> None:
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding="utf-8")
    ProgressDisplay(Screen(stream, is_terminal=True, width=80)).progress(progress, total, None)
    stream.flush()

    assert shown in out.getvalue().decode()
