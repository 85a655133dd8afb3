"""The command line before any command runs: what it lists, what it loads, what it says when something is missing."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from mcpgen import __version__
from mcpgen.cli import COMMANDS, Entry, LazyGroup, main

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


class HelpText(SingleFileSnapshotExtension):
    """A help text, in a file of its own."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT


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
    (tmp_path / "lazy_names.py").write_text(
        "import click\n@click.command()\ndef foreign():\n    click.echo('\\xe9\\u65e5')\n"
        "@click.command()\ndef long():\n    open('\\x1b' * 5000)\n",
        encoding="utf-8",
    )
    (tmp_path / "lazy_ours.py").write_text("import mcpgen.no_such_module\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_fine", "lazy_early", "lazy_late", "lazy_names", "lazy_ours"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return LazyGroup(
        "mcpgen",
        {
            "fine": Entry("lazy_fine:fine", "some", "Work."),
            "early": Entry("lazy_early:early", "some", "Miss a package at once."),
            "late": Entry("lazy_late:late", "other", "Miss a package later."),
            "foreign": Entry("lazy_names:foreign", None, "Write what few encodings have."),
            "overlong": Entry("lazy_names:long", None, "Open a file whose name is too long."),
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


def test_an_unknown_command_is_told_which_one_may_be_meant() -> None:
    assert list(COMMANDS) == list(main.commands)  # where click looks for what may be meant
    if hasattr(click, "NoSuchCommand"):  # older ones suggest nothing
        assert "Did you mean 'build'?" in CliRunner().invoke(main, ["bild"]).output


# The standard streams


def mcpgen(arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``mcpgen`` in a shell, with what *arguments* redirects."""
    entry = [sys.executable, "-c", "from mcpgen.cli import main; main(prog_name='mcpgen')"]
    command = f"exec {shlex.join(entry)} {arguments}"
    return subprocess.run(command, shell=True, check=False, capture_output=True, encoding="utf-8")  # noqa: S602 (ours)


SPEAKING = [
    "--help",
    "--version",
    "schema --help",
    "schema list",
    "diff 2024-11-05 2025-03-26",
    "diff 2024-11-05 2025-03-26 --format json",
    "losses --from 2024-11-05 --to 2025-03-26",
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that Linux has")
@pytest.mark.parametrize("arguments", SPEAKING)
@pytest.mark.slow
def test_an_output_that_is_full_is_an_error_in_one_line(arguments: str) -> None:
    done = mcpgen(f"{arguments} > /dev/full")

    assert 1 == done.returncode
    assert "Error: cannot write to the standard output: No space left on device\n" == done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that Linux has")
def test_where_nothing_can_be_written_the_status_is_left() -> None:
    assert 1 == mcpgen("schema list > /dev/full 2> /dev/full").returncode


@pytest.mark.parametrize("arguments", SPEAKING)
@pytest.mark.slow
def test_an_output_that_nobody_reads_ends_the_command_as_it_ends_others(arguments: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    entry = [sys.executable, "-c", "from mcpgen.cli import main; main(prog_name='mcpgen')", *arguments.split()]
    done = subprocess.run(entry, check=False, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)

    assert (141, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_good_as_the_null_device(closed: str) -> None:
    done = mcpgen(f"schema list {closed}")

    assert (0, "") == (done.returncode, done.stderr)
    assert (">&-" in closed.split()) == (done.stdout == "")


def test_what_is_opened_later_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, ''); "
        "from mcpgen.cli import Entry, LazyGroup; "
        "LazyGroup('mcpgen', {'open': Entry('opening:command', None, '')}, help='')(['open'])"
    )
    (tmp_path / "opening.py").write_text(
        "import click, os\n@click.command()\ndef command():\n"
        "    with open('kept', 'w') as file:\n        os.write(1, b'noise')\n        raise SystemExit(file.fileno())\n",
        encoding="utf-8",
    )
    command = f"exec {shlex.join([sys.executable, '-c', program])} >&- 2>&-"

    assert 3 <= subprocess.run(command, shell=True, check=False, cwd=tmp_path).returncode  # noqa: S602 (ours)
    assert "" == (tmp_path / "kept").read_text(encoding="utf-8")


def test_another_failure_is_not_taken_for_one_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_failing.py").write_text(
        "import click\n@click.command()\n@click.argument('errno', type=int)\n@click.argument('name', required=False)\n"
        "def failing(errno, name):\n    raise OSError(errno, 'no', *([name] if name else []))\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    failing = LazyGroup("mcpgen", {"failing": Entry("lazy_failing:failing", None, "Fail.")}, help="Try.")

    for arguments in (["98"], ["28", "some/file"]):
        assert isinstance(CliRunner().invoke(failing, ["failing", *arguments]).exception, OSError)


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


EXTRAS = ("black", "datamodel_code_generator", "httpx", "jinja2", "jsonschema_rs", "pydantic", "uvicorn", "watchfiles")


def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``mcpgen`` as if no extra was installed."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))"
    program = f"{hidden}; from mcpgen.cli import main; main({list(arguments)!r}, prog_name='mcpgen')"
    return subprocess.run([sys.executable, "-I", "-c", program], check=False, capture_output=True, encoding="utf-8")


def test_building_without_the_extra_says_what_to_install() -> None:
    done = bare("build", "--revision", "2025-11-25")

    assert 2 == done.returncode
    assert 'pip install "mcpgen[codegen]"' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_its_help_without_any_extra(name: str) -> None:
    done = bare(name, "--help")

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith(f"Usage: mcpgen {name} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    module, _, attribute = COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]

    assert [] == [each.name for each in options if not each.help]


JSON_COMMANDS = [
    ["schema", "list", "--json"],
    ["diff", "2024-11-05", "2025-03-26", "--format", "json"],
    ["losses", "--from", "2024-11-05", "--to", "2025-03-26", "--json"],
    ["inspect", f"{sys.executable} {Path(__file__).parents[1] / 'runtime' / 'cli' / 'everything.py'}", "--json"],
]


@pytest.mark.skipif(os.name != "posix", reason="the helper needs pseudo terminals")
@pytest.mark.slow
@pytest.mark.parametrize("arguments", JSON_COMMANDS, ids=lambda arguments: arguments[0])
def test_json_is_indented_at_a_terminal_and_one_line_elsewhere(arguments: list[str]) -> None:
    from tests.runtime.cli.terminals import Terminal, run  # there are pseudo terminals on POSIX only

    status, compact, _ = run(*arguments)
    terminal = Terminal(*arguments, is_output_too=True)
    try:
        _, _, shown = terminal.end()
    finally:
        terminal.close()

    assert (0, 1) == (status, compact.count("\n"))
    assert ": " not in compact[:20]
    assert json.loads(compact) == json.loads(shown)
    assert "\n  " in shown


@pytest.mark.parametrize("command", ["serve", "completion"])
def test_the_help_of_a_command_is_as_reviewed(command: str, snapshot: SnapshotAssertion) -> None:
    done = CliRunner().invoke(main, [command, "--help"], prog_name="mcpgen", terminal_width=100)

    assert snapshot(extension_class=HelpText) == done.output


def test_what_the_encoding_of_the_output_lacks_is_escaped(group: LazyGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="latin-1"))

    group(["foreign"], standalone_mode=False)

    assert [b"\xe9\\u65e5"] == written.getvalue().splitlines()


@pytest.mark.skipif(os.name != "posix", reason="Windows reports another error")
def test_a_name_that_is_too_long_for_a_file_is_an_error_in_one_line(group: LazyGroup) -> None:
    result = CliRunner().invoke(group, ["overlong"])

    shown = repr("\x1b" * 5000)
    assert (1, f"Error: {shown}: File name too long.\n") == (result.exit_code, result.output)
