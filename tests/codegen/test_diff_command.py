"""``mcpgen diff`` of files that are not vendored, and what it says to whom."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from mcpgen.cli import main
from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.console import MOST_SHOWN
from mcpgen.codegen.diff import compare, edition
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from pathlib import Path

REVISIONS = SchemaRoom().revisions


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def draft(folder: Path, revision: str, key: str = "shiny") -> str:
    """Return the path of a document that is that of *revision* and one key of Tool more."""
    document: Any = SchemaRoom().document(revision)
    definitions = document.get("$defs", document.get("definitions"))
    definitions["Tool"]["properties"][key] = {"type": "string"}
    return write(folder / f"{key}.json", document)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["diff", *arguments], prog_name="mcpgen")


def found(*arguments: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return kind and id of each difference, and what was not compared."""
    result = run(*arguments, "--format", "json")
    assert 0 == result.exit_code, result.output
    diff = json.loads(result.stdout)
    return [(each["kind"], each["id"]) for each in diff["changes"]], diff["uncompared"]


# Drafts


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.slow
def test_a_draft_differs_from_its_revision_in_what_was_drafted(revision: str, tmp_path: Path) -> None:
    file = draft(tmp_path, revision)
    uncompared = ["era", "errors", "deprecations", "overlay"]

    assert ([("key-added", "Tool.shiny")], uncompared) == found(revision, file)
    assert ([("key-removed", "Tool.shiny")], uncompared) == found(file, revision)


@pytest.mark.slow
def test_a_draft_is_also_compared_with_the_file_of_a_revision(tmp_path: Path) -> None:
    file = write(tmp_path / "official.json", SchemaRoom().document("2024-11-05"))

    assert [("key-added", "Tool.shiny")] == found(file, draft(tmp_path, "2024-11-05"))[0]


@pytest.mark.slow
def test_two_drafts_have_no_overlay_that_could_be_left_out(tmp_path: Path) -> None:
    changes = [("key-removed", "Tool.dull"), ("key-added", "Tool.shiny")]

    assert (changes, ["era", "errors", "deprecations"]) == found(
        draft(tmp_path, "2024-11-05", "dull"), draft(tmp_path, "2024-11-05")
    )


def test_what_holds_of_every_document_holds_of_both(tmp_path: Path) -> None:
    result = run("2024-11-05", draft(tmp_path, "2024-11-05"), "--format", "json")
    affected = json.loads(result.stdout)["changes"][0]["affects"]

    assert ["tools/list result"] == affected
    assert "" == result.stderr  # the results that the shared overlay names are known


@pytest.mark.slow
def test_the_report_says_that_the_overlay_was_left_out(tmp_path: Path) -> None:
    said = "because only revisions have them: era, errors, deprecations, overlay."

    assert said in run("2025-11-25", draft(tmp_path, "2025-11-25")).stdout.splitlines()[1]
    assert said in run("2025-11-25", draft(tmp_path, "2025-11-25"), "--format", "md").stdout


@pytest.mark.slow
def test_revisions_are_compared_with_their_overlays() -> None:
    old, new = (edition(pinned_source(SchemaRoom(), each), vendored=True) for each in ("2025-11-25", "2026-07-28"))
    changes, uncompared = found("2025-11-25", "2026-07-28")

    assert [(each.kind, each.id) for each in compare(old, new).changes] == changes
    assert ("era-changed", "era") in changes
    assert [] == uncompared


def test_the_help_says_what_a_file_is_compared_as() -> None:
    said = " ".join(run("--help").stdout.split())

    assert "A file that equals the document of a revision, apart from descriptions, counts as that revision." in said
    assert "if A or B is another document, the corrections are not applied to either" in said


# Findings


@pytest.mark.slow
def test_a_refusal_names_the_document_that_it_is_about(tmp_path: Path) -> None:
    good, bad = draft(tmp_path, "2025-11-25"), write(tmp_path / "bad.json", {"type": "object"})
    twice = tmp_path / "twice.json"
    twice.write_text('{"$defs": {}, "$defs": {}}', encoding="utf-8")

    assert f"MG010 error: {bad}: the document has neither" in run(good, bad).stderr
    assert f"MG010 error: {bad}: the document has neither" in run(bad, good).stderr
    assert f"MG004 error: {twice}: the key '$defs' occurs more than once" in run(good, str(twice)).stderr


def test_a_refusal_that_is_too_long_names_an_option_that_this_command_has(tmp_path: Path) -> None:
    faults = {f"A{index}": {"oneOf": []} for index in range(MOST_SHOWN + 10)}
    file = write(tmp_path / "bad.json", {"$defs": faults})

    assert "10 more diagnostics are not shown; use --format json to list all" == run(file, file).stderr.splitlines()[-1]
    assert MOST_SHOWN + 10 == len(json.loads(run(file, file, "--format", "json").stdout)["diagnostics"])


def test_warnings_that_no_format_lists_are_only_counted(tmp_path: Path) -> None:
    requests = {
        f"R{index}Request": {
            "type": "object",
            "properties": {"method": {"const": f"r{index}"}, "params": {"type": "object"}},
            "required": ["method"],
        }
        for index in range(MOST_SHOWN)
    }
    arms = [{"$ref": f"#/$defs/{name}"} for name in requests]
    file = write(tmp_path / "warned.json", {"$defs": {**requests, "ClientRequest": {"anyOf": arms}}})
    result = run(file, file)

    assert 0 == result.exit_code
    assert f"{MOST_SHOWN} more diagnostics are not shown" == result.stderr.splitlines()[-1]


# Colours


def on_a_terminal(**environment: str) -> str:
    """Return what a terminal is shown where nothing differs."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from mcpgen.cli import main; main()", "diff", "2024-11-05", "2024-11-05"]
    inherited = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM"}}
    subprocess.run(command, check=True, stdin=theirs, stdout=theirs, stderr=theirs, env=inherited | environment)
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert "No differences." in shown
    return shown


@pytest.mark.slow
def test_a_terminal_gets_colours() -> None:
    assert "\x1b[1m" in on_a_terminal(TERM="xterm")
    assert "\x1b[1m" in on_a_terminal(TERM="xterm", NO_COLOR="")


@pytest.mark.parametrize("environment", [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.slow
def test_a_terminal_gets_no_colours_that_nobody_wants(environment: dict[str, str]) -> None:
    assert "\x1b" not in on_a_terminal(**environment)
