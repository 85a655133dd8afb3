"""``mcpgen schema list``, ``add`` and ``verify``."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen import vendoring
from mcpgen.codegen.canonical import canonical_bytes, reduce
from mcpgen.codegen.pinned import PINNED, SchemaRoom
from mcpgen.codegen.schema_commands import schema

SCHEMA = Path(str(files("mcpgen"))) / "schema"
COMMIT = "0123456789" * 4

# With prose, laid out as upstream does not, and beyond ASCII: what reduction has to cope with.
OFFICIAL: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "JSONRPCRequest": {"description": "Prose — with a dash.", "type": "object"},
        "ClientRequest": {"anyOf": [{"$ref": "#/$defs/JSONRPCRequest", "description": "More prose."}]},
    },
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a copy of the schema room; the working directory."""
    (tmp_path / "work" / ".package" / "mcpgen").mkdir(parents=True)
    (tmp_path / "work" / ".package" / "mcpgen" / "__init__.py").touch()
    shutil.copytree(SCHEMA, tmp_path / "work" / "schema")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """An official file, with prose."""
    path = tmp_path / "official.json"
    path.write_text(json.dumps(OFFICIAL, ensure_ascii=False, indent=4), encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(schema, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def codes(result: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]


# --- list --------------------------------------------------------------------------------------------------------


def test_list_shows_each_revision_with_its_origin() -> None:
    result = run("list")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["REVISION", "DEFINITIONS", "COMMIT", "DATE", "SHA256"]
    assert [line.split() for line in lines if line.startswith("2025-11-25")] == [
        ["2025-11-25", "145", "c4c367f9f582", "2026-07-27", "d3f68db1a8b7"]
    ]


def test_list_as_json_has_whole_hashes() -> None:
    rows = json.loads(run("list", "--json").stdout)

    assert [row["revision"] for row in rows if "revision" in row] == list(SchemaRoom(SCHEMA).revisions)
    assert [row["name"] for row in rows if "name" in row] == ["apps", "tasks"]
    assert rows[0] == {
        "revision": "2024-11-05",
        "path": "schema/2024-11-05/schema.json",
        "commit": "dfc88487d491ae1f3e21963b55f56be073cc1859",
        "date": "2025-02-21",
        "official_sha256": "61cea2392d4f284092d09bc84b9ac488c0d5618ac2b38a56942fc5b99fd960ce",
        "sha256": "02995d43304bc4e88daa12312e32511ff1115989b106392085cd9d22a03dd598",
        "definitions": 79,
    }


def test_what_the_pins_of_a_checkout_say_does_not_control_the_terminal(checkout: Path) -> None:
    pins = checkout / "schema" / "PINNED.toml"
    text = pins.read_text(encoding="utf-8")
    pins.write_text(text.replace('source = "', 'source = "\\u001b[2J', 1), encoding="utf-8")

    assert " \\x1b[2J" in run("list").stdout


def test_list_finds_a_document_that_was_changed(checkout: Path) -> None:
    (checkout / "schema" / "2025-03-26" / "schema.json").write_bytes(b"{}")

    result = run("list", "--json")

    assert (result.exit_code, codes(result)) == (1, ["MG301"])


# --- add ---------------------------------------------------------------------------------------------------------


def test_add_vendors_the_facts_and_pins_both_hashes(checkout: Path, official: Path) -> None:
    before = content_of(checkout)

    result = run(
        "add", "2027-01-01", official, "--upstream-path", "schema/x.json", "--commit", COMMIT, "--date", "2027-01-02"
    )

    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == "Added the revision 2027-01-01: schema/2027-01-01/schema.json, and its hashes to schema/PINNED.toml.\n"
    )
    content = (checkout / "schema" / "2027-01-01" / "schema.json").read_bytes()
    assert content == canonical_bytes(reduce(OFFICIAL))
    assert b"rose" not in content
    pinned = (checkout / "schema" / PINNED).read_text(encoding="utf-8")
    documents, mark, extensions = before["schema/PINNED.toml"].decode().partition("\n[[extension]]\n")
    added = (
        f'\n[[document]]\nrevision = "2027-01-01"\npath = "schema/x.json"\ncommit = "{COMMIT}"\ndate = 2027-01-02\n'
        f'official_sha256 = "{sha256(official.read_bytes()).hexdigest()}"\nsha256 = "{sha256(content).hexdigest()}"\n'
    )
    assert pinned == documents + added + mark + extensions
    after = content_of(checkout)
    assert set(after) - set(before) == {"schema/2027-01-01", "schema/2027-01-01/schema.json"}
    assert {name for name in before if before[name] != after[name]} == {"schema/PINNED.toml"}


def test_the_first_document_can_be_added(checkout: Path, official: Path) -> None:
    pins = checkout / "schema" / PINNED
    pins.write_text('repository = "https://example.com/mcp"\n', encoding="utf-8")
    result = run("add", "2031-01-01", official)

    assert 0 == result.exit_code
    assert ("2031-01-01",) == SchemaRoom(checkout / "schema").revisions


def test_what_was_added_is_listed_and_verifies(checkout: Path, official: Path) -> None:
    assert run("add", "DRAFT-2027", official, "--json").exit_code == 0

    assert SchemaRoom(checkout / "schema").revisions[-1] == "DRAFT-2027"
    assert "The file is the official file, byte for byte." in run("verify", "DRAFT-2027", official).stdout
    assert "DRAFT-2027  2            -             -" in run("list").stdout


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["2025-07-01"], ["2024-11-05", "2025-03-26", "2025-06-18", "2025-07-01", "2025-11-25", "2026-07-28"]),
        (["2020-01-01"], ["2020-01-01", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        (
            ["DRAFT", "2027-01-01", "AFTER"],
            ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2027-01-01", "DRAFT", "AFTER"],
        ),
    ],
)
def test_dated_revisions_are_pinned_by_date_and_drafts_last(
    checkout: Path, official: Path, labels: list[str], expected: list[str]
) -> None:
    for label in labels:
        assert run("add", label, official).exit_code == 0

    assert list(SchemaRoom(checkout / "schema").revisions) == expected


def test_adding_the_same_content_again_changes_nothing_and_says_so(checkout: Path) -> None:
    before = content_of(checkout)

    result = run("add", "2025-11-25", SCHEMA / "2025-11-25" / "schema.json")

    assert result.exit_code == 0
    assert "Nothing was changed" in result.stdout
    assert content_of(checkout) == before


def mcp(**definitions: Any) -> bytes:
    return json.dumps(OFFICIAL | {"$defs": {**OFFICIAL["$defs"], **definitions}}).encode()  # type: ignore[dict-item]  # it is a dict


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ["MG001"]),
        (b"not JSON", ["MG003"]),
        (b"[]", ["MG009"]),
        (b"{}", ["MG010"]),
        (b'{"definitions": {"Package": {}, "Server": {}}}', ["MG011"]),
        (mcp(A={"oneOf": []}, B={"$ref": "https://example.com/"}), ["MG101", "MG106"]),
        (mcp(**{"Record string": {}}), ["MG201"]),
    ],
)
def test_a_refused_document_changes_nothing(
    checkout: Path, tmp_path: Path, content: bytes | None, expected: list[str]
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    before = content_of(checkout)

    result = run("add", "2027-01-01", path, "--json")

    assert (result.exit_code, codes(result), result.stderr) == (1, expected, "")
    assert content_of(checkout) == before


def test_refusals_are_shown_on_stderr_with_a_hint(checkout: Path, tmp_path: Path) -> None:
    del checkout
    (tmp_path / "x.json").write_bytes(mcp(A={"oneOf": []}))

    result = run("add", "2027-01-01", tmp_path / "x.json")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "MG101 error at /$defs/A/oneOf: the keyword 'oneOf' is not supported\n"
        "  hint: Use `anyOf`: it means the same if the alternatives exclude each other.\n"
    )


def test_warnings_are_shown_and_do_not_stop(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(OFFICIAL | {"type": "object"}), encoding="utf-8")

    result = run("add", "2027-01-01", tmp_path / "x.json")

    assert result.exit_code == 0
    assert result.stderr.startswith("MG116 warning: ")
    assert "2027-01-01" in SchemaRoom(checkout / "schema").revisions


def test_a_pinned_revision_is_not_replaced(checkout: Path, official: Path) -> None:
    before = content_of(checkout)

    result = run("add", "2025-11-25", official, "--json")

    assert (result.exit_code, codes(result)) == (1, ["MG305"])
    assert content_of(checkout) == before


@pytest.mark.parametrize("label", ["../evil", "a/b", "..", "", "2025_11", "2025-11.25", "2025.11.25"])
def test_a_label_that_cannot_be_a_folder_or_a_package_is_a_usage_error(
    checkout: Path, official: Path, tmp_path: Path, label: str
) -> None:
    before = content_of(tmp_path)

    result = run("add", "--json", label, official)

    assert (result.exit_code, codes(result)) == (2, ["MG304"])
    assert content_of(tmp_path) == before
    assert checkout.is_dir()


@pytest.mark.parametrize(
    "options",
    [
        ["--commit", "abc"],
        ["--commit", "z" * 40],
        ["--commit", "A" * 40],
        ["--date", "yesterday"],
        ["--upstream-path", "a\nb"],
    ],
)
def test_origins_that_cannot_be_are_usage_errors(checkout: Path, official: Path, options: list[str]) -> None:
    before = content_of(checkout)

    assert run("add", "2027-01-01", official, *options).exit_code == 2
    assert content_of(checkout) == before


def test_add_works_in_a_checkout_only(tmp_path: Path, official: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = run("add", "2027-01-01", official)

    assert result.exit_code == 2
    assert "checkout" in result.stderr


def test_an_occupied_place_is_a_diagnostic(checkout: Path, official: Path) -> None:
    (checkout / "schema" / "2027-01-01").write_bytes(b"a file")
    before = content_of(checkout)

    result = run("add", "2027-01-01", official, "--json")

    assert (result.exit_code, codes(result)) == (1, ["MG307"])
    assert content_of(checkout) == before


@pytest.mark.parametrize("name", ["2027-01-01", "2027-01-01/schema.json"])
def test_what_stands_in_the_way_is_not_a_matter_of_permissions(checkout: Path, official: Path, name: str) -> None:
    occupied = checkout / "schema" / name
    occupied.parent.mkdir(exist_ok=True)
    if name.endswith(".json"):
        occupied.mkdir()
    else:
        occupied.touch()
    result = run("add", "2027-01-01", official)

    assert 1 == result.exit_code
    assert str(occupied) in result.stderr
    assert "hint: Move it away, or choose another label or name. Nothing was changed." in result.stderr


def test_a_room_that_cannot_be_written_is_to_be_made_writable(
    checkout: Path, official: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", fail)

    assert "hint: Make the folder writable. Nothing was changed." in run("add", "2027-01-01", official).stderr
    assert checkout.is_dir()


@pytest.mark.parametrize("previous", [None, b"left over"])
def test_a_document_that_cannot_be_pinned_is_taken_back(
    checkout: Path, official: Path, monkeypatch: pytest.MonkeyPatch, previous: bytes | None
) -> None:
    if previous is not None:
        (checkout / "schema" / "2027-01-01").mkdir()
        (checkout / "schema" / "2027-01-01" / "schema.json").write_bytes(previous)
    before = content_of(checkout)
    rename = Path.replace

    def fail_on_pins(self: Path, target: Path) -> Path:
        if target.name == PINNED:
            raise OSError(28, "No space left on device", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", fail_on_pins)

    result = run("add", "2027-01-01", official, "--json")

    assert (result.exit_code, codes(result)) == (1, ["MG307"])
    assert content_of(checkout) == before


def test_an_overlay_may_be_there_first(checkout: Path, official: Path) -> None:
    (checkout / "schema" / "2027-01-01").mkdir()
    (checkout / "schema" / "2027-01-01" / "overlay.toml").write_bytes(b"")

    assert run("add", "2027-01-01", official).exit_code == 0
    assert sorted(path.name for path in (checkout / "schema" / "2027-01-01").iterdir()) == [
        "overlay.toml",
        "schema.json",
    ]


def test_the_pins_are_written_last(checkout: Path, official: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = vendoring._write

    def record(target: Path, content: bytes) -> None:
        written.append(target.name)
        write(target, content)

    monkeypatch.setattr(vendoring, "_write", record)

    run("add", "2027-01-01", official)

    assert written == ["schema.json", PINNED]
    assert checkout.is_dir()


# --- verify ------------------------------------------------------------------------------------------------------


def test_verify_says_whether_a_file_is_the_official_one_or_only_equal(
    checkout: Path, official: Path, tmp_path: Path
) -> None:
    del checkout
    run("add", "2027-01-01", official)
    (tmp_path / "other.json").write_text(json.dumps(OFFICIAL), encoding="utf-8")

    exact, equal = run("verify", "2027-01-01", official), run("verify", "2027-01-01", tmp_path / "other.json")

    assert (exact.exit_code, equal.exit_code) == (0, 0)
    assert "The file is the official file, byte for byte." in exact.stdout
    assert "The file is not the official file byte for byte" in equal.stdout


@pytest.mark.parametrize(("name", "official_bytes"), [("official.json", True), ("other.json", False)])
def test_verify_as_json(checkout: Path, official: Path, tmp_path: Path, name: str, official_bytes: bool) -> None:  # noqa: FBT001
    del checkout
    run("add", "2027-01-01", official)
    (tmp_path / "other.json").write_text(json.dumps(OFFICIAL), encoding="utf-8")

    report = json.loads(run("verify", "2027-01-01", tmp_path / name, "--json").stdout)

    assert report == {"revision": "2027-01-01", "equal": True, "official": official_bytes, "diagnostics": []}


def test_verify_points_at_every_difference(tmp_path: Path) -> None:
    document: Any = json.loads((SCHEMA / "2024-11-05" / "schema.json").read_bytes())
    definitions = document["definitions"]
    del definitions["Tool"]["properties"]["description"]
    definitions["Tool"]["properties"]["extra/~"] = {}
    definitions["TextContent"]["required"].append("type")
    definitions["ModelPreferences"]["properties"]["costPriority"]["minimum"] = 0.0
    definitions["Prompt"] = dict(reversed(definitions["Prompt"].items()))
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")

    result = run("verify", "2024-11-05", tmp_path / "x.json", "--json")

    findings = json.loads(result.stdout)["diagnostics"]
    assert result.exit_code == 1
    assert {finding["code"] for finding in findings} == {"MG306"}
    assert [finding["pointer"] for finding in findings] == [
        "/definitions/ModelPreferences/properties/costPriority/minimum",
        "/definitions/Prompt",
        "/definitions/TextContent/required",
        "/definitions/Tool/properties/description",
        "/definitions/Tool/properties/extra~1~0",
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["/a"]),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": 1}, {}, ["/a"]),
        ({}, {"a/b": 1}, ["/a~1b"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, [""]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ["/a", "/c"]),
        ({"a": [1, 2]}, {"a": [1]}, ["/a"]),
        ({"a": [1, {"b": 2}]}, {"a": [0, {"b": 3}]}, ["/a/0", "/a/1/b"]),
        ({"a": []}, {"a": {}}, ["/a"]),
    ],
)
def test_differences_are_found_where_they_are(ours: object, theirs: object, expected: list[str]) -> None:
    assert [finding.pointer for finding in vendoring.differences(ours, theirs)] == expected


def test_a_difference_in_length_is_told_by_the_lengths() -> None:
    (finding,) = vendoring.differences({"a": [1, 2]}, {"a": [1]})

    assert finding.message == "the document in schema/ has 2 items here, and the file has 1"


def test_verify_fails_on_another_revision() -> None:
    result = run("verify", "2025-11-25", SCHEMA / "2026-07-28" / "schema.json")

    assert result.exit_code == 1
    assert result.stderr.startswith("MG306 error at /$defs/")


def test_verify_of_an_unknown_revision_is_a_usage_error_that_says_which_exist(official: Path) -> None:
    result = run("verify", "2025-11-26", official)

    assert result.exit_code == 2
    assert "2025-11-25, 2026-07-28" in result.stderr


def test_verify_without_such_a_revision_or_extension_says_which_there_are(checkout: Path, official: Path) -> None:
    assert checkout == Path.cwd()
    result = run("verify", "fooo", official)

    assert 2 == result.exit_code
    assert "MG303 error: there is no revision or extension 'fooo'\n" in result.stderr
    assert f"hint: Use one of {', '.join((*SchemaRoom().revisions, *SchemaRoom().extensions))}.\n" in result.stderr
