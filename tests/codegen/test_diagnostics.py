"""The codes: stable, documented, and shown without harm."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from mcpgen.codegen.console import MOST_SHOWN, echo_diagnostics, exit_status
from mcpgen.codegen.diagnostics import CODES, Diagnostic, Refused, codes_table, pointer_to
from mcpgen.codegen.keywords import CHECKS

DOCS = Path(__file__).parents[2] / "docs" / "diagnostics.md"


def finding(code: str = "MG101", **others: str) -> Diagnostic:
    return Diagnostic(code=code, **{"message": "m", "hint": "h"} | others)  # type: ignore[arg-type]  # strings all


def test_every_code_is_documented() -> None:
    assert codes_table() in DOCS.read_text(encoding="utf-8")


def test_every_supported_keyword_is_documented() -> None:
    documented = set(re.findall(r"`([^`\n]+)`", DOCS.read_text(encoding="utf-8")))

    assert set(CHECKS) <= documented


def test_every_code_is_used_and_every_used_code_has_a_meaning() -> None:
    rooms = (files("mcpgen") / "codegen", files("mcpgen") / "codegen" / "adapters")
    sources = [path for room in rooms for path in room.iterdir() if path.name.endswith(".py")]
    used = {
        code
        for path in sources
        if path.name != "diagnostics.py"
        for code in re.findall(r"MG\d{3}", path.read_text(encoding="utf-8"))
    }

    assert used == set(CODES)


def test_pointers_escape_as_rfc_6901_says() -> None:
    assert pointer_to("a/b", "m~n", 0, "") == "/a~1b/m~0n/0/"


def test_a_refusal_reads_as_its_findings() -> None:
    assert str(Refused([finding(pointer="/a"), finding("MG102")])) == "MG101 error at /a: m\nMG102 error: m"


def test_findings_go_to_stderr_with_one_hint_for_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    echo_diagnostics([finding(pointer="/a"), finding(pointer="/b"), finding("MG102", hint="i")], as_json=False)

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "MG101 error at /a: m",
        "MG101 error at /b: m",
        "  hint: h",
        "MG102 error: m",
        "  hint: i",
    ]


def test_findings_go_to_stdout_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    echo_diagnostics([finding(pointer="/\x1b")], as_json=True)

    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out) == {
        "diagnostics": [{"code": "MG101", "severity": "error", "pointer": "/\x1b", "message": "m", "hint": "h"}]
    }


def test_names_from_a_document_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    echo_diagnostics([finding(pointer="/a\x1b[2J\r\n\u202eb", hint="\x07")], as_json=False)

    assert capsys.readouterr().err == "MG101 error at /a\\x1b[2J\\r\\n\\u202eb: m\n  hint: \\x07\n"


def test_a_flood_of_findings_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    echo_diagnostics([finding()] * (MOST_SHOWN + 3), as_json=False)

    lines = capsys.readouterr().err.splitlines()
    assert lines.count("MG101 error: m") == MOST_SHOWN
    assert lines[-1] == "3 more diagnostics are not shown; use --json to list all"


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([], 0),
        ([finding(severity="warning")], 0),
        ([finding()], 1),
        ([finding(), finding("MG303")], 1),
        ([finding("MG303")], 2),
        ([finding("MG304"), finding(severity="warning")], 2),
    ],
)
def test_the_exit_status_says_who_has_to_act(findings: list[Diagnostic], status: int) -> None:
    assert exit_status(findings) == status
