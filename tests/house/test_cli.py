"""The command line before any command runs: what it lists, what it loads, what it says when something is missing."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from mcpgen import __version__
from mcpgen.cli import COMMANDS, Entry, LazyGroup, main

if TYPE_CHECKING:
    from pathlib import Path

PROBE = """
import json, sys
from mcpgen.cli import main
main({arguments!r}, standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*arguments: str) -> list[str]:
    """Return what is loaded after ``mcpgen`` ran with *arguments*; its output must come before."""
    program = PROBE.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, encoding="utf-8")
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return modules


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    """A group whose commands live in modules that end in various ways."""
    (tmp_path / "lazy_fine.py").write_text(
        "import click\n@click.command()\n@click.option('--loud', is_flag=True)\n"
        "def fine(loud):\n    '''Long help.'''\n    click.echo('FINE' if loud else 'fine')\n",
        encoding="utf-8",
    )
    (tmp_path / "lazy_early.py").write_text("import no_such_package.part\n", encoding="utf-8")
    (tmp_path / "lazy_late.py").write_text(
        "import click\n@click.command()\ndef late():\n    import no_such_package\n", encoding="utf-8"
    )
    (tmp_path / "lazy_ours.py").write_text("import mcpgen.no_such_module\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_fine", "lazy_early", "lazy_late", "lazy_ours"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return LazyGroup(
        "mcpgen",
        {
            "fine": Entry("lazy_fine:fine", "some", "Work."),
            "early": Entry("lazy_early:early", "some", "Miss a package at once."),
            "late": Entry("lazy_late:late", "other", "Miss a package later."),
            "bare": Entry("lazy_early:early", None, "Miss a package that no extra brings."),
            "ours": Entry("lazy_ours:ours", "some", "Miss a module of our own."),
        },
        help="Try.",
    )


def test_version_is_the_packages() -> None:
    result = CliRunner().invoke(main, ["--version"], prog_name="mcpgen")

    assert f"mcpgen {__version__}\n" == result.output


def test_help_lists_every_command_with_its_line() -> None:
    result = CliRunner().invoke(main, ["--help"])

    listed = [line.split(maxsplit=1) for line in result.output.partition("Commands:")[2].strip().splitlines()]
    assert [[name, entry.help] for name, entry in COMMANDS.items()] == listed


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_asking_for_help_or_version_loads_no_room(option: str) -> None:
    rooms = {"mcpgen.codegen", "mcpgen.generated", "mcpgen.runtime", "jinja2", "anyio", "msgspec"}

    assert rooms.isdisjoint(modules_after(option))


def test_completing_a_name_loads_no_room(group: LazyGroup) -> None:
    completions = ShellComplete(group, {}, "mcpgen", "_MCPGEN_COMPLETE").get_completions([], "l")

    assert [("late", "Miss a package later.")] == [(item.value, item.help) for item in completions]
    assert "lazy_late" not in sys.modules


def test_completing_an_option_loads_its_command(group: LazyGroup) -> None:
    completions = ShellComplete(group, {}, "mcpgen", "_MCPGEN_COMPLETE").get_completions(["fine"], "--l")

    assert ["--loud"] == [item.value for item in completions]


def test_completing_behind_an_unknown_command_offers_nothing(group: LazyGroup) -> None:
    assert [] == ShellComplete(group, {}, "mcpgen", "_MCPGEN_COMPLETE").get_completions(["nonsense"], "--l")


def test_a_command_runs_with_its_own_options(group: LazyGroup) -> None:
    result = CliRunner().invoke(group, ["fine", "--loud"])

    assert (0, "FINE\n") == (result.exit_code, result.output)


def test_a_command_shows_its_own_help(group: LazyGroup) -> None:
    assert "Long help." in CliRunner().invoke(group, ["fine", "--help"]).output


def test_an_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["bild"])

    assert 2 == result.exit_code
    assert "bild" in result.output


@pytest.mark.parametrize(("command", "extra"), [("early", "some"), ("late", "other")])
def test_a_missing_package_names_the_extra_that_brings_it(group: LazyGroup, command: str, extra: str) -> None:
    result = CliRunner().invoke(group, [command])

    assert 2 == result.exit_code
    assert f'pip install "mcpgen[{extra}]"' in result.stderr
    assert f"\"mcpgen {command}\" needs the module 'no_such_package'" in result.stderr
    assert "" == result.stdout


@pytest.mark.parametrize(("command", "module"), [("bare", "no_such_package"), ("ours", "mcpgen.no_such_module")])
def test_a_defect_of_ours_is_not_blamed_on_an_extra(group: LazyGroup, command: str, module: str) -> None:
    result = CliRunner().invoke(group, [command])

    assert isinstance(result.exception, ModuleNotFoundError)
    assert module == result.exception.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_of_the_table_leads_to_a_command_of_that_name(name: str) -> None:
    module, _, attribute = COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)

    assert isinstance(command, click.Command)
    assert name == command.name


def test_building_without_the_extra_says_what_to_install() -> None:
    hidden = "import sys; sys.modules.update(dict.fromkeys(['jinja2', 'black', 'datamodel_code_generator']))"
    program = f"{hidden}; from mcpgen.cli import main; main(['build', '--revision', '2025-11-25'])"
    done = subprocess.run([sys.executable, "-I", "-c", program], check=False, capture_output=True, encoding="utf-8")

    assert 2 == done.returncode
    assert 'pip install "mcpgen[codegen]"' in done.stderr
    assert "Traceback" not in done.stderr
