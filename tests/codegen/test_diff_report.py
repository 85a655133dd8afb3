"""A diff on the screen, in Markdown and as JSON, and the command that shows it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec
import pytest
from click.testing import CliRunner
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from mcpgen.cli import main
from mcpgen.codegen.build import foreign_source
from mcpgen.codegen.diff import Edition, compare, edition
from mcpgen.codegen.diff.model import Diff, Effect, Kind
from mcpgen.codegen.diff.report import markdown, text
from mcpgen.codegen.overlay import ErrorCode
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from click.testing import Result
    from syrupy.assertion import SnapshotAssertion

REVISIONS = SchemaRoom().revisions
STRING: dict[str, Any] = {"type": "string"}


class Text(SingleFileSnapshotExtension):
    file_extension = "txt"
    _write_mode = WriteMode.TEXT


class Markdown(Text):
    file_extension = "md"


def document(**definitions: Any) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def request(method: str) -> dict[str, Any]:
    return obj("method", method={"const": method}, params=ref("GoParams"))


def read(label: str, content: dict[str, Any], **facts: Any) -> Edition:
    found = edition(foreign_source(SchemaRoom(), content, label), vendored=False)
    return msgspec.structs.replace(found, **facts)


OLD = document(
    GoRequest=request("go"),
    StopRequest=request("stop"),
    GoParams=obj(x=STRING, y={"type": "integer", "minimum": 0}),
    GoResult=obj(a=ref("Mode")),
    StopResult=obj(b=STRING),
    Mode={"enum": ["fast", "slow"]},
    Block={"anyOf": [ref("Text"), ref("Image")]},
    Text=obj("type", type={"const": "text"}),
    Image=obj("type", type={"const": "image"}),
    Label=obj("name", "size", name=STRING, size=STRING),
    Gone=STRING,
    ClientRequest={"anyOf": [ref("GoRequest"), ref("StopRequest")]},
    ServerRequest={"anyOf": [ref("GoRequest"), ref("StopRequest")]},
)
NEW = document(
    GoRequest=obj("method", "params", method={"const": "go"}, params=ref("GoParams")),
    StopRequest=request("stop"),
    DoneNotification=request("notifications/done"),
    GoParams=obj("x", x=STRING, y={"type": "integer"}, meta={"type": "object"}),
    GoResult=obj(a=ref("Mode"), meta={"type": "object"}),
    StopResult=obj(b={"anyOf": [STRING, {"type": "array", "items": STRING}]}, meta={"type": "object"}),
    Mode={"enum": ["slow", "warp", "still"]},
    Block={"anyOf": [ref("Text"), ref("Audio"), ref("Video")]},
    Text=obj("type", type={"const": "text"}, words=ref("Words")),
    Audio=obj("type", type={"const": "audio"}),
    Video=obj("type", type={"const": "video"}),
    Words=STRING,
    SizeLabel=obj("name", "size", name=STRING, size=STRING),
    ClientRequest=ref("GoRequest"),
    InputRequest=ref("GoRequest"),
    ServerNotification=ref("DoneNotification"),
)
EARLY = read(
    "early",
    OLD,
    era="handshake",
    errors=(ErrorCode(code=-1, name="BEFORE", text=""), ErrorCode(code=-2, name="MOVED", text="")),
    deprecated=frozenset(),
)
LATE = read(
    "late",
    NEW,
    era="stateless",
    errors=(ErrorCode(code=-1, name="AFTER", text=""), ErrorCode(code=-3, name="MOVED", text="")),
    deprecated=frozenset({"Mode", "Text"}),
)


@pytest.fixture(scope="module")
def both() -> Diff:
    return compare(EARLY, LATE)


def test_the_text_reads_as_reviewed(both: Diff, snapshot: SnapshotAssertion) -> None:
    assert snapshot(extension_class=Text) == click.unstyle(text(both))


def test_the_markdown_reads_as_reviewed(both: Diff, snapshot: SnapshotAssertion) -> None:
    assert snapshot(extension_class=Markdown) == markdown(both)


@pytest.mark.parametrize("render", [text, markdown])
def test_nothing_is_left_out(both: Diff, render: Any) -> None:
    shown = render(both)

    for each in both.changes:
        site = each.new or each.old
        assert site is not None
        assert site.name in shown
        assert site.key in shown


def test_no_difference_is_said_in_one_line() -> None:
    assert "late -> late\nNo differences.\n" == click.unstyle(text(compare(LATE, LATE)))
    assert "# Changes from `late` to `late`\n\nNo differences.\n" == markdown(compare(LATE, LATE))


def test_what_was_not_compared_is_said() -> None:
    unknown = msgspec.structs.replace(LATE, era=None, errors=None, deprecated=None)

    assert "Not compared, because only revisions have them: era, errors, deprecations." in text(compare(LATE, unknown))


@pytest.mark.slow
def test_lines_fit() -> None:
    for old, new in (("2025-06-18", "2025-11-25"), ("2024-11-05", "2026-07-28")):
        assert 100 < max(map(len, run(old, new).stdout.splitlines())) <= 110


def test_a_change_in_many_definitions_is_one_row(both: Diff) -> None:
    assert 3 == sum(each.kind == "key-added" and each.id.endswith(".meta") for each in both.changes)
    assert ["| `+` | `meta?` | `object` | `GoParams`, `GoResult`, `StopResult` |"] == [
        line for line in markdown(both).splitlines() if "meta?" in line
    ]


@pytest.mark.slow
def test_what_stands_beside_a_long_name_goes_below_it() -> None:
    keys = ["k" * length for length in range(55, 130)]
    old, new = (document(A=obj(**dict.fromkeys(keys, kind))) for kind in (STRING, {"type": "integer"}))
    lines = click.unstyle(text(compare(read("old", old), read("new", new)))).splitlines()
    beside = [line for line in lines if re.fullmatch("    ~ k+ +string -> integer", line)]
    below = [lines.index(f"    ~ {key}") + 1 for key in keys if f"    ~ {key}" in lines]

    assert (28, 47) == (len(beside), len(below))
    assert {" " * 68 + "string -> integer"} == {lines[index] for index in below}


HOSTILE_KEY = "a|b`c``d<b>"
HOSTILE = f"{HOSTILE_KEY}\n| x |\x1b[31m"


def test_foreign_names_cannot_break_a_table_or_steer_a_terminal() -> None:
    old, new = document(A=obj(x=STRING)), document(A=obj(**{HOSTILE_KEY: STRING, "x": {"const": HOSTILE}}))
    found = compare(read("old", old), read(HOSTILE, new))
    assert 2 == len(found.changes)

    assert not re.search("\x1b(?!\\[[0-9]*m)|\x1b\\[31", text(found))  # other than our own
    rows = [line for line in markdown(found).splitlines() if line.startswith("|")]
    assert 4 == len(rows)
    # A pipe that is not escaped ends a cell, in code too.
    assert {5} == {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert "\x1b" not in markdown(found)
    assert "``` a\\|b`c``d<b>? ```" in markdown(found)  # a fence longer than any run of backticks inside


def test_the_page_about_diffs_lists_every_kind_and_every_effect() -> None:
    page = Path(__file__).parents[2] / "docs" / "diff.md"
    named = set(re.findall(r"`([a-z-]+)`", page.read_text(encoding="utf-8")))

    assert set() == {*get_args(Kind), *get_args(Effect)} - named
    assert set() == {name for name in named if name.endswith(("-added", "-removed", "-changed"))} - {*get_args(Kind)}


# Rules


def ruled(diff: Diff, **rules: str) -> Diff:
    """Return *diff* with the *rules* of the differences that end with these words; the others are mechanical."""
    changes = []
    for each in diff.changes:
        found = [rule for word, rule in rules.items() if each.id.endswith(word)]
        changes.append(msgspec.structs.replace(each, rule=found[0] if found else "mechanical"))
    return msgspec.structs.replace(diff, changes=tuple(changes))


def shown(diff: Diff) -> list[str]:
    return [line.strip() for line in click.unstyle(text(diff)).splitlines()]


def test_without_rules_nothing_is_said_about_them(both: Diff) -> None:
    assert not any("rule" in line or "[" in line for line in shown(both) if "list[" not in line)
    assert "rule" not in markdown(both)


def test_a_rule_stands_behind_its_row_and_a_mechanical_one_goes_without_saying(both: Diff) -> None:
    found = ruled(both, words="words-of-texts", done="done")

    assert "+ words?  Words  [words-of-texts]" in shown(found)
    assert "+ notifications/done  server  GoParams  [done]" in shown(found)
    assert '- value   "fast"' in shown(found)
    assert (
        "In brackets: the declared change that covers the row. A row without brackets needs no declared change."
        in shown(found)
    )
    assert "mechanical]" not in text(found)


def test_what_has_no_rule_is_red_and_counted(both: Diff) -> None:
    found = text(ruled(both, words="none", done="none"))

    assert "Words  " + click.style("[no rule]", fg="red") in found
    assert "2 differences have no rule and cannot be adapted." in found.splitlines()[-1]
    assert "1 difference has no rule" in text(ruled(both, words="none"))
    assert "no rule" not in text(ruled(both))


def test_a_rule_is_a_column_of_every_table(both: Diff) -> None:
    found = markdown(ruled(both, words="words-of-texts", done="none"))

    assert "| `+` | `Text` | `words?` | `Words` | `words-of-texts` |" in found
    assert "| `+` | `notifications/done` | `server` | `GoParams` | **no rule** |" in found
    assert '| `-` | `Mode` | `value` | `"fast"` |  |' in found
    rows = [line for line in found.splitlines() if line.startswith("|  |")]
    assert rows == [line for line in rows if line.endswith("| rule |")]
    assert "1 difference has no rule" in found


def test_only_what_one_rule_covers_shares_a_row(both: Diff) -> None:
    one = {"[Audio]": "sound", "[Video]": "sound", "meta": "meta"}
    two = {"[Audio]": "sound", "[Video]": "film", "GoParams.meta": "params", "meta": "meta"}

    assert "+ arm     Audio, Video  [sound]" in shown(ruled(both, **one))
    assert "+ meta?  object  [meta]" in shown(ruled(both, **one))
    assert {"+ arm     Audio  [sound]", "+ arm     Video  [film]"} <= set(shown(ruled(both, **two)))
    # Two are not enough to be told once.
    assert ["+ meta?   object  [params]", *["+ meta?   object  [meta]"] * 2] == [
        line for line in shown(ruled(both, **two)) if "meta?" in line
    ]


def test_a_rule_that_does_not_fit_stands_below(both: Diff) -> None:
    long = "2024-11-05 to 2025-03-26: a-change-with-a-long-name; 2025-11-25 to 2026-07-28: another-one, and-a-third"
    lines = click.unstyle(text(ruled(both, Words=long))).splitlines()
    at = lines.index("  + Words               string")

    assert [
        "[2024-11-05 to 2025-03-26: a-change-with-a-long-name;",
        "2025-11-25 to 2026-07-28: another-one, and-a-third]",
    ] == [line.strip() for line in lines[at + 1 : at + 3]]
    assert {24} == {len(line) - len(line.lstrip()) for line in lines[at + 1 : at + 3]}


@pytest.mark.parametrize("pair", [("2024-11-05", "2025-03-26"), ("2024-11-05", "2026-07-28")])
@pytest.mark.slow
def test_the_page_about_diffs_shows_real_output(pair: tuple[str, str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "diff.md").read_text(encoding="utf-8")
    example = page.partition(f"`mcpgen diff {' '.join(pair)}`:\n\n```text\n")[2].partition("```")[0]

    assert example
    assert example in run(*pair).stdout


# The command


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["diff", *arguments], prog_name="mcpgen")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.slow
def test_revisions_come_in_any_order(order: int) -> None:
    old, new = REVISIONS[0::2][:2][::order]
    result = run(old, new)

    assert 0 == result.exit_code
    assert result.stdout.startswith(f"{old} -> {new}\n")
    assert "" == result.stderr


@pytest.mark.slow
def test_differences_or_not_the_status_is_0() -> None:
    assert (0, "No differences.") == ((same := run("2025-11-25", "2025-11-25")).exit_code, same.stdout.splitlines()[1])
    assert 0 == run("2024-11-05", "2026-07-28").exit_code


@pytest.mark.slow
def test_a_pipe_gets_no_colours_and_a_terminal_does() -> None:
    command = ["diff", "2024-11-05", "2025-03-26"]
    runner = CliRunner(env={"NO_COLOR": None, "TERM": "xterm"})

    assert "\x1b" not in runner.invoke(main, command).stdout
    assert "\x1b[32m+\x1b[0m" in runner.invoke(main, command, color=True).stdout


@pytest.mark.slow
def test_markdown_is_a_page() -> None:
    result = run("2025-03-26", "2025-06-18", "--format", "md")

    assert result.stdout.startswith("# Changes from `2025-03-26` to `2025-06-18`\n")
    assert "|  | method | sender | change | rule |\n|---|---|---|---|---|\n" in result.stdout
    row = "| `+` | `elicitation/create` | `server` | `ElicitRequestParams -> ElicitResult` | `elicitation` |"
    assert row in result.stdout.splitlines()


@pytest.mark.slow
def test_json_is_the_value() -> None:
    result = run("2024-11-05", "2025-03-26", "--format", "json")
    found = msgspec.json.decode(result.stdout, type=Diff)

    assert ("2024-11-05", "2025-03-26", 15) == (found.old, found.new, len(found.changes))
    assert {
        "kind": "arm-added",
        "id": "ContentBlock[AudioContent]",
        "effect": "widened",
        "old": None,
        "new": {
            "name": "ContentBlock",
            "part": "[AudioContent]",
            "pointer": "/definitions/ContentBlock",
            "shape": "AudioContent",
        },
        "affects": ["prompts/get result", "tools/call result"],
        "rule": "audio",
    } in json.loads(result.stdout)["changes"]


@pytest.mark.parametrize("arguments", [("2025-11-25", "2025-11-26"), ("draft", "2025-11-25"), ("tests", "tests")])
def test_an_unknown_revision_is_wrong_usage_and_says_which_exist(arguments: tuple[str, str]) -> None:
    result = run(*arguments)

    assert 2 == result.exit_code
    assert "MG303 error" in result.stderr
    assert "is neither a revision nor a file" in result.stderr
    assert "or the path of a schema document. The label of a registered draft does not work" in result.stderr
    assert all(revision in result.stderr for revision in REVISIONS)
    assert "" == result.stdout


def test_refusals_are_json_where_json_was_asked_for() -> None:
    result = run("draft", "2025-11-25", "--format", "json")

    assert 2 == result.exit_code
    assert "MG303" == json.loads(result.stdout)["diagnostics"][0]["code"]


@pytest.mark.parametrize("arguments", [(), ("2025-11-25",), ("2025-11-25", "2025-06-18", "--format", "html")])
def test_wrong_arguments_are_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert 2 == run(*arguments).exit_code


def test_files_are_compared_by_their_paths(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(OLD), encoding="utf-8")
    new.write_text(json.dumps(NEW), encoding="utf-8")
    result = run(str(old), str(new), "--format", "json")

    assert 0 == result.exit_code
    assert ["era", "errors", "deprecations"] == json.loads(result.stdout)["uncompared"]
    assert "definition-renamed" in result.stdout


@pytest.mark.slow
def test_what_is_not_vendored_has_no_rules(tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text(json.dumps(NEW), encoding="utf-8")

    assert {""} == {
        each["rule"] for each in json.loads(run("2025-11-25", str(file), "--format", "json").stdout)["changes"]
    }
    assert "In brackets" not in run("2025-11-25", str(file)).stdout
    assert "rule" not in run("2025-11-25", str(file), "--format", "md").stdout


@pytest.mark.slow
def test_without_rules_their_compiler_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text(json.dumps(NEW), encoding="utf-8")
    code = "import sys; from mcpgen.cli import main; main(standalone_mode=False); sys.exit('%s' in sys.modules)"
    command = [sys.executable, "-c", code % "mcpgen.codegen.adapters.plan", "diff", str(file)]

    assert 0 == subprocess.run([*command, str(file)], check=False, capture_output=True).returncode
    assert 0 == subprocess.run([*command, "2024-11-05"], check=False, capture_output=True).returncode


@pytest.mark.slow
def test_the_file_of_a_revision_has_its_rules(tmp_path: Path) -> None:
    file = tmp_path / "anything.json"
    file.write_bytes(SchemaRoom().document_bytes("2025-03-26"))
    result = run("2024-11-05", str(file))

    assert result.stdout.startswith(f"2024-11-05 -> {file}\n")
    assert "AudioContent  [audio]" in result.stdout


@pytest.mark.slow
def test_the_file_of_a_revision_is_that_revision(tmp_path: Path) -> None:
    file = tmp_path / "anything.json"
    file.write_bytes(SchemaRoom().document_bytes("2025-11-25"))
    result = run("2025-11-25", str(file))

    assert (0, f"2025-11-25 -> {file}\nNo differences.\n") == (result.exit_code, result.stdout)


def test_a_file_that_is_no_schema_is_refused_with_its_code(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("notes", encoding="utf-8")

    assert (1, "") == ((result := run("2025-11-25", str(file))).exit_code, result.stdout)
    assert "MG003" in result.stderr


def test_a_file_that_is_not_there_is_refused_with_its_code(tmp_path: Path) -> None:
    result = run("2025-11-25", str(tmp_path / "nothing.json"))

    assert 1 == result.exit_code
    assert "MG001" in result.stderr


def test_a_method_without_a_known_result_is_a_warning_beside_the_report(tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text(
        json.dumps(document(GoRequest=request("go"), GoParams=STRING, ClientRequest=ref("GoRequest"))), encoding="utf-8"
    )
    result = run(str(file), str(file))

    assert (0, "No differences.") == (result.exit_code, result.stdout.splitlines()[1][:15])
    assert "MG130 warning" in result.stderr


@pytest.mark.slow
def test_the_installed_command_works_in_a_pipe_that_knows_ascii_only(tmp_path: Path) -> None:
    file = tmp_path / "umlaut.json"
    file.write_text(json.dumps(document(A=obj("x", x={"const": "Zoë"}))), encoding="utf-8")
    command = [sys.executable, "-c", "from mcpgen.cli import main; main()", "diff", "2024-11-05", str(file)]
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, check=False, capture_output=True, env=env)

    assert (0, b"") == (done.returncode, done.stderr)
    assert b"+ A" in done.stdout
    assert b'{x: "Zo\\xeb"}' in done.stdout
    assert b"\x1b" not in done.stdout
