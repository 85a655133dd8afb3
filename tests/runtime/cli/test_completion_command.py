"""``mcpgen completion``: shells complete commands, options and the names of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from mcpgen.cli import main
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="runs bash")


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _mcpgen_completion mcpgen\n"),
        ("zsh", "#compdef mcpgen"),
        ("fish", "complete --no-files --command mcpgen --arguments"),
    ],
)
def test_each_shell_gets_a_script(shell: str, line: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell], prog_name="mcpgen")

    assert 0 == done.exit_code
    assert line in done.output
    assert "_MCPGEN_COMPLETE" in done.output


def test_another_shell_is_refused() -> None:
    done = CliRunner().invoke(main, ["completion", "tcsh"], prog_name="mcpgen")

    assert 2 == done.exit_code
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'." in done.output


@pytest.mark.parametrize("command", ["serve", "inspect", "call", "read", "prompt"])
def test_the_server_of_a_command_is_completed_as_a_file(command: str) -> None:
    found = ShellComplete(main, {}, "mcpgen", "_MCPGEN_COMPLETE").get_completions([command], "ser")

    assert [("ser", "file")] == [(each.value, each.type) for each in found]


@bash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [("mcpgen comp", ["completion"]), ("mcpgen serve --rel", ["--reload"]), ("mcpgen serve", ["serve"])],
)
def test_bash_completes_with_the_script(words: str, expected: list[str], tmp_path: Path) -> None:
    program = tmp_path / "mcpgen"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mcpgen "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = f"""
        eval "$(mcpgen completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}
        _mcpgen_completion mcpgen
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],  # noqa: S607 (the bash of the machine)
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )

    assert expected == done.stdout.split()
