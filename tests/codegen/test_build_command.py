"""``mcpgen build``: what it writes, what it says to whom, and everything that it refuses."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen.commands import build
from mcpgen.codegen.nesting import MAX_NESTING
from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen.packages import FILES, load_folder, names_below, small_checkout

pytestmark = pytest.mark.slow

SMALL = {"$defs": {"Tool": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}
ENTRY = "from mcpgen.cli import main; main(prog_name='mcpgen')"


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The file of a document that builds."""
    return write(tmp_path / "small.json", SMALL)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory outside of any checkout."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(build, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def run_schema(schema: Path, out: Path, *others: object, label: str = "draft") -> Result:
    return run("--schema", schema, "--revision", label, "--based-on", "none", "--out", out, *others)


def command_to_build(schema: Path, out: Path) -> list[str]:
    options = ["--schema", str(schema), "--revision", "x", "--based-on", "none", "--out", str(out)]
    return [sys.executable, "-c", ENTRY, "build", *options]


def codes(result: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


# What it writes


def test_a_document_of_ones_own_becomes_a_package_that_works(small: Path, tmp_path: Path) -> None:
    result = run_schema(small, tmp_path / "out", label="my-draft.2")

    assert (0, "") == (result.exit_code, result.stderr)
    assert FILES == names_below(tmp_path / "out" / "vmy_draft_2")
    models = load_folder(tmp_path / "out" / "vmy_draft_2", "built_by_command")
    assert "x" == models.decode('{"name": "x"}', models.Tool).name


def test_vendored_revisions_are_built_wherever_one_is(elsewhere: Path) -> None:
    result = run(
        "--revision", "2024-11-05", "--revision", "2025-03-26", "--revision", "2024-11-05", "--out", "deep/out"
    )

    assert 0 == result.exit_code
    assert ["v2024_11_05", "v2025_03_26"] == sorted(path.name for path in (elsewhere / "deep" / "out").iterdir())
    models = (elsewhere / "deep" / "out" / "v2024_11_05" / "models.py").read_text(encoding="utf-8")
    changeable = "the version of mcpgen that generates it or the template models.py.jinja (--templates)"
    assert f"\nTo change this file, change {changeable}.\n" in models


def test_a_document_that_is_the_vendored_one_gets_its_overlay(tmp_path: Path) -> None:
    official = write(tmp_path / "official.json", SchemaRoom().document("2024-11-05"))
    run_schema(official, tmp_path / "ours", label="2024-11-05")
    run("--revision", "2024-11-05", "--out", tmp_path / "theirs")
    ours, theirs = (
        (tmp_path / name / "v2024_11_05" / "models.py").read_text(encoding="utf-8").split('"""', 2)[2]
        for name in ("ours", "theirs")
    )

    assert ours == theirs


def test_json_says_what_was_built(small: Path, tmp_path: Path) -> None:
    result = run_schema(small, tmp_path / "out", "--json")
    package = {
        "revision": "draft",
        "path": str(tmp_path / "out" / "vdraft"),
        "types": 1,
        "files": FILES,
        "unchanged": 0,
        "import": f"import vdraft  # with {tmp_path / 'out'} on sys.path",
        "base": "",
        "assumptions": ["The era is handshake, because the document has neither `initialize` nor `server/discover`."],
        "differences": None,
    }

    assert {"built": [package], "diagnostics": []} == json.loads(result.stdout)


def test_warnings_are_told_and_stop_nothing(tmp_path: Path) -> None:
    schema = write(tmp_path / "warned.json", SMALL | {"type": "object"})
    result = run_schema(schema, tmp_path / "out")

    assert 0 == result.exit_code
    assert "MG116 warning" in result.stderr
    assert ["MG116"] == codes(run_schema(schema, tmp_path / "out", "--json"))
    assert (tmp_path / "out" / "vdraft" / "models.py").is_file()


def test_it_prints_a_summary_and_the_import(small: Path, tmp_path: Path) -> None:
    command = command_to_build(small, tmp_path / "src" / "app" / "mcp")
    first, second = (
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, encoding="utf-8") for _ in "12"
    )
    folder = tmp_path / "src" / "app" / "mcp" / "vx"

    assert ("", "") == (first.stderr, second.stderr)
    assert first.stdout.splitlines() == [
        "x: 1 types",
        f"  {folder}: 12 files written, 0 unchanged",
        "  assumptions:",
        "    * The era is handshake, because the document has neither `initialize` nor `server/discover`.",
        "  import: from app.mcp import vx",
    ]
    assert f"  {folder}: 0 files written, 12 unchanged" in second.stdout.splitlines()


def test_on_a_terminal_it_shows_progress(small: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = command_to_build(small, tmp_path / "out")
    done = subprocess.run(command, check=False, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)

    assert 0 == done.returncode
    assert "x: 1 types in " in shown
    assert f"{tmp_path / 'out' / 'vx'}: 12 files written" in shown


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_with_closed_streams_it_writes_all_the_same(closed: str, small: Path, tmp_path: Path) -> None:
    command = f"exec {shlex.join(command_to_build(small, tmp_path / 'out'))} {closed}"
    done = subprocess.run(command, shell=True, check=False, capture_output=True, cwd=tmp_path)  # noqa: S602 (ours)

    assert (0, b"") == (done.returncode, done.stderr)
    assert FILES == names_below(tmp_path / "out" / "vx")


# Usage


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--all", "--revision", "2025-11-25"),
        ("--schema", "x.json"),
        ("--schema", "x.json", "--revision", "a"),
        ("--schema", "x.json", "--out", "out"),
        ("--schema", "x.json", "--revision", "a", "--revision", "b", "--out", "out"),
        ("--schema", "x.json", "--all", "--out", "out"),
        ("--schema", "x.json", "--revision", "../..", "--out", "out"),
        ("--schema", "x.json", "--revision", "", "--out", "out"),
        ("--revision", "2025-11-25", "--based-on", "2025-11-25", "--out", "out"),
        ("--all", "--overlay", "x.toml", "--out", "out"),
        ("--nonsense",),
    ],
)
def test_wrong_usage_is_status_2_and_writes_nothing(arguments: tuple[str, ...], elsewhere: Path) -> None:
    result = run(*arguments)

    assert 2 == result.exit_code
    assert "Usage:" in result.stderr
    assert [] == list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "`--extension FILE --id ID --base R --out DIR`"),
        (("--all", "--revision", "2025-11-25"), "Give either `--all` or `--revision R`, not both."),
    ],
)
def test_wrong_usage_says_what_to_give(arguments: tuple[str, ...], complaint: str, elsewhere: Path) -> None:
    result = run(*arguments)

    assert elsewhere == Path.cwd()
    assert complaint in " ".join(result.stderr.split())


def test_an_unknown_revision_says_which_there_are(elsewhere: Path) -> None:
    result = run("--revision", "2025-11-26", "--out", "out")

    assert 2 == result.exit_code
    assert "MG303 error: there is no revision '2025-11-26'" in result.stderr
    assert ", ".join(SchemaRoom().revisions) in result.stderr
    assert ["MG303"] == codes(run("--revision", "2025-11-26", "--out", "out", "--json"))
    assert [] == list(elsewhere.iterdir())


def test_an_unknown_revision_is_said_before_a_missing_folder(elsewhere: Path) -> None:
    assert ["MG303"] == codes(run("--revision", "2025-11-26", "--json"))
    assert ["MG303"] == codes(run("--revision", "2025-11-25", "--revision", "2025-11-26", "--json"))
    assert [] == list(elsewhere.iterdir())


def test_outside_of_a_checkout_out_is_needed(elsewhere: Path) -> None:
    result = run("--revision", "2025-11-25")

    assert 2 == result.exit_code
    assert "MG404" in result.stderr
    assert "--out DIR" in result.stderr
    assert [] == list(elsewhere.iterdir())


@pytest.mark.parametrize("module", ["black", "jinja2", "datamodel_code_generator"])
def test_a_missing_extra_says_what_to_install(module: str, elsewhere: Path) -> None:
    hidden = f"import sys; sys.modules[{module!r}] = None; {ENTRY}"
    command = [sys.executable, "-c", hidden, "build", "--revision", "2025-11-25", "--out", "out"]
    done = subprocess.run(command, check=False, capture_output=True, cwd=elsewhere, encoding="utf-8")

    assert 2 == done.returncode
    assert 'pip install "mcpgen[codegen]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert [] == list(elsewhere.iterdir())


def test_a_user_without_a_home_can_build(small: Path, elsewhere: Path) -> None:
    """Black looks for the user's folder for caches."""
    homeless = f"import os, pwd; os.environ.pop('HOME', None); pwd.getpwuid = {{}}.__getitem__; {ENTRY}"
    words = [sys.executable, "-c", homeless, *command_to_build(small, elsewhere / "out")[3:]]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    done = subprocess.run(words, check=False, capture_output=True, env=environment, encoding="utf-8")

    assert (0, "") == (done.returncode, done.stderr)
    assert (elsewhere / "out" / "vx" / "__init__.py").is_file()


# Documents


def refused(document: object, tmp_path: Path) -> list[tuple[str, str]]:
    """Return (code, pointer) of each finding about *document*, which must be refused and leave nothing behind."""
    result = run_schema(write(tmp_path / "refused.json", document), tmp_path / "out", "--json")

    assert 1 == result.exit_code
    assert not (tmp_path / "out").exists()
    return [(finding["code"], finding["pointer"]) for finding in json.loads(result.stdout)["diagnostics"]]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "MG003"),
        (b"{", "MG003"),
        (b'{"$defs": {}, // no\n}', "MG003"),
        (b"\xff\xfe{\x00}\x00", "MG002"),
        (b'{"\xff": 1}', "MG002"),
        (b"[]", "MG009"),
        (b'{"a": 1, "a": 2}', "MG004"),
        (b"[" * 100_000, "MG006"),
        (b'{"title": "no definitions"}', "MG010"),
        (b'{"$defs": {}, "definitions": {}}', "MG010"),
        (b'{"$defs": []}', "MG010"),
    ],
)
def test_what_is_no_schema_document_is_refused(content: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    result = run_schema(tmp_path / "bad.json", tmp_path / "out", "--json")

    assert (1, [code]) == (result.exit_code, codes(result))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["missing.json", ".", "x" * 5000])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    result = run_schema(tmp_path / name, tmp_path / "out")

    assert 1 == result.exit_code
    assert "MG001 error: cannot read " in result.stderr


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("#/$defs/Missing", "MG107"),
        ("#/definitions/Tool", "MG107"),
        ("#", "MG105"),
        ("#/$defs/Tool/properties/name", "MG105"),
        ("https://example.invalid/schema.json", "MG106"),
        ("other.json#/$defs/Tool", "MG106"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(reference: str, code: str, tmp_path: Path) -> None:
    holder = {"type": "object", "properties": {"b": {"$ref": reference}}}
    document: dict[str, Any] = {"$defs": {**SMALL["$defs"], "A": holder}}

    assert [(code, "/$defs/A/properties/b/$ref")] == refused(document, tmp_path)


def test_a_circle_of_aliases_is_refused(tmp_path: Path) -> None:
    definitions = {name: {"$ref": f"#/$defs/{other}"} for name, other in ("AB", "BC", "CA")}

    assert [("MG109", "/$defs/A")] == refused({"$defs": definitions}, tmp_path)


def test_properties_that_collide_after_snake_case_are_refused(tmp_path: Path) -> None:
    properties = {name: {"type": "string"} for name in ("clientInfo", "client_info", "com.example/clientInfo")}

    assert [("MG211", "/$defs/A/properties/client_info")] * 1 == refused(
        {"$defs": {"A": {"type": "object", "properties": dict(list(properties.items())[:2])}}}, tmp_path
    )
    assert 2 == len(refused({"$defs": {"A": {"type": "object", "properties": properties}}}, tmp_path))


def test_a_union_that_msgspec_cannot_tell_apart_is_told_apart_by_keys(tmp_path: Path) -> None:
    arms = [{"type": "object", "properties": {key: {"type": "string"}}, "required": [key]} for key in ("text", "blob")]
    schema = write(tmp_path / "union.json", {"$defs": {"Either": {"anyOf": arms}}})

    assert 0 == run_schema(schema, tmp_path / "out").exit_code
    models = load_folder(tmp_path / "out" / "vdraft", "built_with_union")
    assert "EitherBlob" == type(models.decode('{"blob": "x"}', models.Either)).__name__


def test_a_chain_of_definitions_beyond_pythons_stack_is_refused_not_a_traceback(tmp_path: Path) -> None:
    length = 1500
    chain = {
        f"A{index:04}": {"type": "array", "items": {"$ref": f"#/$defs/A{index + 1:04}"}} for index in range(length)
    }

    assert [("MG006", f"/$defs/A{length - MAX_NESTING:04}")] == refused(
        {"$defs": {**chain, f"A{length:04}": {"type": "string"}}}, tmp_path
    )


def test_a_union_with_exponentially_many_ways_through_it_is_built(tmp_path: Path) -> None:
    chain: dict[str, Any] = {}
    for index in range(40):
        both = [{"$ref": f"#/$defs/{letter}{index + 1}"} for letter in "AB"]
        chain |= {f"{letter}{index}": {"anyOf": both} for letter in "AB"}
        held = {key: {"$ref": f"#/$defs/O{index + 1}"} for key in "xy"}
        chain[f"O{index}"] = {"type": "object", "properties": held}
    ends = {"A40": {"type": "string"}, "B40": {"type": "integer"}, "O40": {"type": "null"}}

    assert 0 == run_schema(write(tmp_path / "deep.json", {"$defs": chain | ends}), tmp_path / "out").exit_code


# The output folder


@pytest.fixture
def occupied(small: Path, tmp_path: Path) -> Path:
    """The package that an earlier build wrote."""
    assert 0 == run_schema(small, tmp_path / "out").exit_code
    return tmp_path / "out" / "vdraft"


def test_a_build_replaces_what_an_earlier_one_wrote(occupied: Path, small: Path) -> None:
    before = content_of(occupied.parent)
    (occupied / "models.py").write_text('"""MCP.\n\nGenerated by ``mcpgen build``; edited.\n"""\n', encoding="utf-8")
    (occupied / "__pycache__").mkdir()

    assert 0 == run_schema(small, occupied.parent).exit_code
    assert before == content_of(occupied.parent)


@pytest.mark.parametrize("name", ["notes.py", "notes.txt", "__pycache__/notes.txt"])
def test_a_file_that_only_mentions_us_is_not_taken_for_ours(occupied: Path, small: Path, name: str) -> None:
    (occupied / name).parent.mkdir(exist_ok=True)
    (occupied / name).write_text("see the note: Generated by ``mcpgen build`` and so on\n", encoding="utf-8")
    before = content_of(occupied.parent)

    assert 1 == run_schema(small, occupied.parent).exit_code
    assert before == content_of(occupied.parent)


def test_labels_that_share_a_folder_do_not_replace_each_other(small: Path, tmp_path: Path) -> None:
    assert 0 == run_schema(small, tmp_path / "out", label="a.b").exit_code
    before = content_of(tmp_path / "out")
    refused = run_schema(small, tmp_path / "out", label="a-b")

    assert 1 == refused.exit_code
    assert "MG401" in refused.output
    assert before == content_of(tmp_path / "out")


@pytest.mark.parametrize(
    ("label", "out"),
    [("a\r", "out"), ("a b", "out"), ("a/b", "out"), ("..", "out"), ("NUL", "out"), ("2027-13-01", "out"), ("a", "")],
)
def test_a_label_or_folder_that_nobody_can_read_is_a_wrong_use(small: Path, label: str, out: str) -> None:
    assert 2 == run("--schema", small, "--revision", label, "--out", out).exit_code


def test_a_refused_document_leaves_the_old_output_untouched(occupied: Path, tmp_path: Path) -> None:
    before = content_of(occupied.parent)
    bad = write(tmp_path / "bad.json", {"$defs": {"A": {"oneOf": []}}})

    assert 1 == run_schema(bad, occupied.parent).exit_code
    assert before == content_of(occupied.parent)


def test_one_bad_revision_of_several_leaves_all_untouched(tmp_path: Path) -> None:
    result = run("--revision", "2024-11-05", "--revision", "no-such", "--out", tmp_path / "out")

    assert 2 == result.exit_code
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["notes.txt", "own.py", "sub/own.py"])
def test_a_folder_with_somebody_elses_files_is_not_touched(name: str, occupied: Path, small: Path) -> None:
    (occupied / name).parent.mkdir(exist_ok=True)
    (occupied / name).write_text("mine", encoding="utf-8")
    before = content_of(occupied.parent)
    result = run_schema(small, occupied.parent, "--json")

    assert (1, ["MG401"]) == (result.exit_code, codes(result))
    assert name.partition("/")[0] in result.stdout
    assert before == content_of(occupied.parent)


def test_a_file_of_a_build_with_more_options_is_not_touched(small: Path, tmp_path: Path) -> None:
    given = ("--schema", small, "--revision", "draft", "--based-on", "none", "--out", tmp_path / "out")
    assert 0 == run(*given).exit_code
    adapter = tmp_path / "out" / "vdraft" / "adapter.py"
    adapter.write_text((adapter.parent / "models.py").read_text(encoding="utf-8"), encoding="utf-8")
    refused = run(*given, "--json")

    (finding,) = json.loads(refused.stdout)["diagnostics"]
    assert f"this build does not write {adapter}, which is in its output folder" == finding["message"]
    assert "such as `--adapters`, add them" in finding["hint"]
    assert adapter.exists()


def test_a_folder_that_we_never_wrote_is_not_touched(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "vdraft").mkdir(parents=True)
    (tmp_path / "out" / "vdraft" / "__init__.py").write_text("mine = 1", encoding="utf-8")

    refused = run_schema(small, tmp_path / "out", "--json")

    assert ["MG401"] == codes(refused)
    assert json.loads(refused.stdout)["diagnostics"][0]["message"].endswith("__init__.py was not written by mcpgen")
    assert "mine = 1" == (tmp_path / "out" / "vdraft" / "__init__.py").read_text(encoding="utf-8")


def test_a_file_in_the_place_of_the_package_is_not_touched(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "vdraft").write_text("mine", encoding="utf-8")

    assert ["MG401"] == codes(run_schema(small, tmp_path / "out", "--json"))


def test_a_link_in_the_place_of_the_package_is_not_followed(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "out" / "vdraft").symlink_to(tmp_path / "target", target_is_directory=True)

    assert ["MG401"] == codes(run_schema(small, tmp_path / "out", "--json"))
    assert [] == list((tmp_path / "target").iterdir())


def test_a_pipe_in_the_place_of_a_module_is_not_opened(small: Path, tmp_path: Path) -> None:
    run_schema(small, tmp_path / "out")
    pipe = tmp_path / "out" / "vdraft" / "models.py"
    pipe.unlink()
    os.mkfifo(pipe)
    opened: list[Path] = []

    def end() -> None:  # opening waits for a reader, who is then not left to wait for an end
        pipe.open("wb").close()
        opened.append(pipe)

    writer = threading.Thread(target=end)
    writer.start()
    refused = run_schema(small, tmp_path / "out", "--json")
    readers = len(opened)
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    writer.join()

    assert (["MG401"], 0) == (codes(refused), readers)


# A file where a folder is needed stops root as well, whom permissions do not.
@pytest.mark.parametrize("out", ["small.json", "small.json/below", "loop"])
def test_an_output_folder_that_cannot_be_written_is_refused(out: str, small: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = content_of(tmp_path)
    result = run_schema(small, tmp_path / out, "--json")

    assert (1, ["MG402"]) == (result.exit_code, codes(result))
    assert before == content_of(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)

    assert ["MG402"] == codes(run_schema(small, tmp_path / "locked", "--json"))


@pytest.mark.parametrize("environment", ["site-packages", "dist-packages"])
def test_an_installed_environment_is_never_written_to(environment: str, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lib" / environment / "mcpgen"
    folder.mkdir(parents=True)
    (tmp_path / "innocent").symlink_to(folder, target_is_directory=True)

    for out in (folder, folder / "deeper", tmp_path / "innocent"):
        assert ["MG402"] == codes(run_schema(small, out, "--json"))
    assert [] == list(folder.iterdir())


def test_in_a_checkout_all_revisions_go_to_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_checkout(tmp_path, "2025-03-26")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")

    assert 0 == run("--all").exit_code
    written = sorted(path.name for path in (tmp_path / "generated").iterdir())
    assert ["__init__.py", "adapters", "extensions", "registry.py", "v2025_03_26"] == written


@pytest.mark.parametrize("length", [81, 250, 254, 300])
def test_a_label_too_long_for_a_folder_is_a_wrong_use(length: int, small: Path, tmp_path: Path) -> None:
    result = run_schema(small, tmp_path / "out", label="x" * length)

    assert 2 == result.exit_code
    assert "at most 80 " in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", [".", "..", "./", "out/..", "out/."])
def test_the_working_directory_is_a_folder_like_any_other(out: str, small: Path, elsewhere: Path) -> None:
    (elsewhere / "out").mkdir()
    result = run_schema(small, Path(out))

    assert 0 == result.exit_code
    assert (elsewhere / out / "vdraft" / "models.py").is_file()


def test_a_build_of_everything_that_fails_at_the_last_file_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_checkout(tmp_path, "2025-03-26")
    monkeypatch.chdir(tmp_path)
    assert 0 == run("--all").exit_code
    for path in (tmp_path / "generated").rglob("*.py"):
        path.write_text(path.read_text(encoding="utf-8") + "# old\n", encoding="utf-8")
    before = content_of(tmp_path)
    rename = Path.rename

    def fail_at_the_last(self: Path, target: Path) -> Path:
        if target == tmp_path / "generated" / "__init__.py" and self.suffix == ".new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", fail_at_the_last)
        result = run("--all", "--json")

    assert (1, ["MG402"]) == (result.exit_code, codes(result))
    assert before == content_of(tmp_path)
    assert 0 == run("--all").exit_code
    assert not any(content.endswith(b"# old\n") for content in content_of(tmp_path / "generated").values())


def test_even_a_build_that_fails_puts_back_what_a_killed_one_took_away(occupied: Path, tmp_path: Path) -> None:
    before = content_of(occupied.parent)
    with subprocess.Popen([sys.executable, "-c", ""]) as killed:
        killed.wait()
    occupied.rename(occupied.with_name(f".{occupied.name}.{killed.pid}.old"))
    occupied.with_name(f".{occupied.name}.{killed.pid}.new").mkdir()

    assert 1 == run_schema(tmp_path / "no-such.json", occupied.parent).exit_code
    assert before == content_of(occupied.parent)
