"""What a server reports while it works, in the status line of the terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from mcpgen.runtime.cli.client import progress_display
from mcpgen.runtime.cli.client.progress_display import ProgressDisplay
from mcpgen.runtime.cli.client.terminal import Screen

if TYPE_CHECKING:
    import pytest


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
