"""What the tests of bounds share: processes that end with their test, and figures that go with its report."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.attacked_processes import PYTHON, Http, Stdio, watched

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.bounds.attacked_processes import Seen


class Victims:
    """Start processes, and note what is seen of them."""

    def __init__(self, stack: ExitStack, node: pytest.Item) -> None:
        self._stack = stack
        self._node = node

    def http(self, **given: Any) -> Http:
        made = Http(**given)
        self._stack.callback(made.kill)
        return made

    def stdio(self, revision: str = "2026-07-28", *, is_open: bool = True, **given: Any) -> Stdio:
        made = Stdio(revision, **given)
        self._stack.callback(made.kill)
        if is_open:
            made.open()
        return made

    def command(self, *arguments: str) -> Any:
        """Start a command of mcpgen."""
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        popen = self._stack.enter_context(subprocess.Popen([PYTHON, "-m", "mcpgen", *arguments], **pipes))
        self._stack.callback(popen.kill)
        return SimpleNamespace(popen=popen)

    @contextmanager
    def watch(self, process: Any, **options: Any) -> Generator[Seen]:
        with ExitStack() as stack:
            found: list[Seen] = []
            stack.callback(lambda: self.note(**found[0].figures()))  # also of an attack that fails
            found.append(stack.enter_context(watched(process, **options)))
            yield found[0]

    def note(self, **figures: Any) -> None:
        self._node.user_properties += figures.items()


@pytest.fixture
def victims(request: pytest.FixtureRequest) -> Generator[Victims]:
    """Return what starts the attacked processes."""
    if os.name != "posix" or not Path("/proc/self/clear_refs").exists():
        pytest.skip("asks Linux what a process holds")
    with ExitStack() as stack:
        yield Victims(stack, request.node)
