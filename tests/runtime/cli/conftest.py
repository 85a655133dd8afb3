"""Terminals are closed, whatever a test finds there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.runtime.cli.terminals import Terminal

if os.name != "posix":
    collect_ignore = ["test_elicitation_prompt.py", "test_overview.py"]


@pytest.fixture
def at_terminal() -> Generator[Callable[..., Terminal]]:
    from tests.runtime.cli.terminals import Terminal  # there are pseudo terminals on POSIX only

    opened: list[Terminal] = []

    def begin(*words: str, **options: Any) -> Terminal:
        opened.append(Terminal(*words, **options))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()
