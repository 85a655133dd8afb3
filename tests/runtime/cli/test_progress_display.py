"""What a server reports while it works, in the status line of the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from mcpgen.generated.v2026_07_28 import LoggingMessageNotificationParams
from mcpgen.runtime.cli import terminal_text
from mcpgen.runtime.cli.client.progress_display import ProgressDisplay
from mcpgen.runtime.cli.client.terminal import Screen


@pytest.mark.parametrize(
    ("message", "shown"),
    [("x" * 10_000, "x" * 52), ("\U000e0041" * 10_000, ("\\U000e0041" * 6)[:52])],
    ids=["long", "escaped"],
)
def test_of_a_message_only_what_fits_on_the_line_is_measured(
    monkeypatch: pytest.MonkeyPatch, message: str, shown: str
) -> None:
    measured: list[str] = []

    def width(character: str) -> int:
        measured.append(character)
        return 1

    monkeypatch.setattr(terminal_text, "_width", width)
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding="utf-8")
    ProgressDisplay(Screen(stream, is_terminal=True, width=80)).progress(1, 2, message)
    stream.flush()

    assert out.getvalue().decode().endswith(f"░  50%  {shown}")
    assert len(measured) <= 80


def test_wide_and_combining_characters_count_as_on_the_terminal() -> None:
    assert terminal_text.clip("日本", 3) == "日"
    assert terminal_text.clip("a\u0301b", 1) == "a\u0301"
    assert terminal_text.clip("ab", 2) == "ab"


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
