"""``mcpgen schema add`` and ``verify`` for the documents of extensions."""

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
from mcpgen.codegen.commands import build, check
from mcpgen.codegen.pinned import PINNED, SchemaRoom
from mcpgen.codegen.schema_commands import schema
from tests.codegen.packages import small_checkout
from tests.codegen.verdicts import STRING, obj, ref

SCHEMA = Path(str(files("mcpgen"))) / "schema"

ROOMS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "description": "Prose.",
    "$defs": {"Room": {**obj(name=STRING, icon=ref("Icon")), "description": "More prose."}},
}
NEXT = {**ROOMS, "$defs": {"Room": obj(name=STRING, floor=STRING)}}
NEW = ("--id", "com.example/rooms", "--base", "2026-07-28", "--source", "example.com/rooms, version 1")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a copy of the schema room; the working directory."""
    (tmp_path / "work" / ".package" / "mcpgen").mkdir(parents=True)
    (tmp_path / "work" / ".package" / "mcpgen" / "__init__.py").touch()
    shutil.copytree(SCHEMA, tmp_path / "work" / "schema")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(schema, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def add(document: dict[str, Any], *options: object, name: str = "rooms") -> Result:
    """Add *document*, from a file, under *name*."""
    Path("official.json").write_text(json.dumps(document), encoding="utf-8")
    return run("add", name, "official.json", *options)


def codes(result: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]


@pytest.mark.slow
def test_an_extension_is_added_pinned_listed_and_verified(checkout: Path) -> None:
    added = add(ROOMS, *NEW)
    room = SchemaRoom(checkout / "schema")
    pin = room.extension_pin("rooms")
    content = (checkout / "schema" / "extensions" / "rooms" / "schema.json").read_bytes()
    official = Path("official.json").read_bytes()

    assert (0, "") == (added.exit_code, added.stderr)
    told = "Added the extension rooms: schema/extensions/rooms/schema.json, and its hashes to schema/PINNED.toml.\n"
    assert told == added.stdout
    assert canonical_bytes(reduce(ROOMS)) == content
    assert ("apps", "rooms", "tasks") == room.extensions
    assert ("com.example/rooms", "2026-07-28", NEW[-1]) == (pin.id, pin.base, pin.source)
    assert (sha256(official).hexdigest(), sha256(content).hexdigest()) == (pin.official_sha256, pin.sha256)
    assert "rooms" in run("list").stdout
    assert "official file, byte for byte" in run("verify", "rooms", "official.json").stdout


@pytest.mark.slow
def test_added_extensions_are_built_and_checked_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_checkout(tmp_path / "small", "2026-07-28")
    monkeypatch.chdir(tmp_path / "small")
    add(ROOMS, *NEW)
    add(NEXT, "--id", "com.example/halls", *NEW[2:], name="halls")
    built = CliRunner().invoke(build, ["--all"])

    assert 0 == built.exit_code, built.output
    assert Path("generated", "extensions", "rooms", "models.py").is_file()
    assert Path("generated", "extensions", "halls", "models.py").is_file()
    assert 0 == CliRunner().invoke(check, []).exit_code


def test_a_new_version_replaces_the_document_and_its_pin_only_on_demand(checkout: Path) -> None:
    add(ROOMS, *NEW)
    before = (checkout / "schema" / PINNED).read_bytes()
    refused = add(NEXT, "--source", "example.com/rooms, version 2", "--json")
    after = (checkout / "schema" / PINNED).read_bytes()
    replaced = add(NEXT, "--source", "example.com/rooms, version 2", "--replace")
    room = SchemaRoom(checkout / "schema")

    assert ((1, ["MG305"]), before) == ((refused.exit_code, codes(refused)), after)
    assert 0 == replaced.exit_code, replaced.output
    assert reduce(NEXT) == room.extension_document("rooms")
    assert ("com.example/rooms", "2026-07-28", "example.com/rooms, version 2") == (
        room.extension_pin("rooms").id,
        room.extension_pin("rooms").base,
        room.extension_pin("rooms").source,
    )


def test_another_record_of_the_same_document_is_not_called_another_document(checkout: Path) -> None:
    add(ROOMS, *NEW)
    refused = add(ROOMS, "--source", "example.com/rooms, version 2")
    replaced = add(ROOMS, "--source", "example.com/rooms, version 2", "--replace")

    assert "schema/PINNED.toml already records the document of the extension rooms, with another `source`" in (
        refused.stderr
    )
    assert "hint: Add `--replace` to replace this record." in refused.stderr
    assert (1, 0) == (refused.exit_code, replaced.exit_code)
    assert "example.com/rooms, version 2" == SchemaRoom(checkout / "schema").extension_pin("rooms").source


def test_an_official_extension_is_repinned(checkout: Path) -> None:
    document = {**SchemaRoom().extension_document("tasks"), "$id": "https://example.com/tasks"}
    overlay = (checkout / "schema" / "extensions" / "tasks" / "overlay.toml").read_bytes()
    replaced = add(document, "--source", "commit 05dde3b", "--replace", name="tasks")

    assert 0 == replaced.exit_code, replaced.output
    assert document == SchemaRoom(checkout / "schema").extension_document("tasks")
    assert overlay == (checkout / "schema" / "extensions" / "tasks" / "overlay.toml").read_bytes()


@pytest.mark.parametrize("replace", [[], ["--replace"]], ids=["", "replace"])
def test_the_same_document_again_changes_nothing(replace: list[str], checkout: Path) -> None:
    add(ROOMS, *NEW)
    before = (checkout / "schema" / PINNED).read_bytes()
    again = add(ROOMS, *NEW, *replace)

    assert (0, before) == (again.exit_code, (checkout / "schema" / PINNED).read_bytes())
    assert "Extension rooms is already in schema/ with the same content. Nothing was changed.\n" == again.stdout


def test_a_replacement_that_fails_leaves_the_old_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(ROOMS, *NEW)

    def fail(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vendoring, "pins_bytes", fail)
    failed = add(NEXT, "--source", "2", "--replace", "--json")

    assert (1, ["MG307"]) == (failed.exit_code, codes(failed))
    assert reduce(ROOMS) == SchemaRoom(checkout / "schema").extension_document("rooms")


def test_an_extension_that_cannot_be_added_leaves_nothing(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vendoring, "pins_bytes", fail)

    assert ["MG307"] == codes(add(ROOMS, *NEW, "--json"))
    assert not (checkout / "schema" / "extensions" / "rooms").exists()


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    ("document", "options", "name", "expected"),
    [
        ({"$defs": {"Room": {"oneOf": []}}}, NEW, "rooms", ["MG101"]),
        ({"$defs": {"Room": ref("Nowhere")}}, NEW, "rooms", ["MG107"]),
        ({"$id": "x"}, NEW, "rooms", ["MG010"]),
        ({"$defs": 3}, NEW, "rooms", ["MG010"]),
        ({"$defs": {}, "definitions": {"Room": {"type": "object"}}}, NEW, "rooms", ["MG010"]),
        (ROOMS, (*NEW, "--base", "2020-01-01"), "rooms", ["MG303"]),
        (ROOMS, NEW, "Rooms", ["MG304"]),
        (ROOMS, NEW, "../rooms", ["MG304"]),
        (ROOMS, NEW, "class", ["MG304"]),
        (ROOMS, NEW, "2026-07-28", ["MG304"]),
        (ROOMS, (*NEW, "--replace"), "tasks", ["MG304"]),
        (ROOMS, (*NEW, "--id", "io.modelcontextprotocol/tasks"), "rooms", ["MG304"]),
    ],
    ids=[
        "keyword",
        "reference",
        "nothing",
        "number",
        "twice",
        "base",
        "capital",
        "path",
        "keyword of Python",
        "label",
        "name",
        "id",
    ],
)
def test_what_cannot_be_an_extension_is_refused(
    document: dict[str, Any], options: tuple[str, ...], name: str, expected: list[str]
) -> None:
    pins = Path("schema", PINNED).read_bytes()
    result = add(document, *options, "--json", name=name)

    assert expected == codes(result)
    assert pins == Path("schema", PINNED).read_bytes()
    assert ["apps", "tasks"] == sorted(path.name for path in Path("schema", "extensions").iterdir())


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--id", "rooms", "--base", "2026-07-28", "--source", "x"), "`--id` is not a valid identifier"),
        (NEW[:4], "`--source` is missing"),
        (NEW[:2], "`--base` is missing"),
        ((*NEW, "--commit", "0" * 40), "`--commit` applies to revisions only"),
        (("--source", "x"), "`--source` applies to extensions only. Add `--id ID`"),
        (("--replace",), "`--replace` applies to extensions only"),
        ((*NEW, "--source", "a\nb"), "`--source` must not contain"),
    ],
)
def test_wrong_options_are_a_wrong_use(options: tuple[str, ...], expected: str) -> None:
    result = add(ROOMS, *options)

    assert 2 == result.exit_code
    assert expected in " ".join(result.stderr.split())


@pytest.mark.usefixtures("checkout")
def test_verify_shows_how_another_version_differs() -> None:
    add(ROOMS, *NEW)
    Path("official.json").write_text(json.dumps(NEXT), encoding="utf-8")
    result = run("verify", "rooms", "official.json", "--json")

    assert 1 == result.exit_code
    assert {"MG306"} == set(codes(result))
