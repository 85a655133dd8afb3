"""Overlays: every change finds what it expects, or says what it found instead."""

from __future__ import annotations

import contextlib
import copy
import json
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.document import MAX_DEPTH, MAX_DOCUMENT_BYTES, check_document
from mcpgen.codegen.methods import Methods
from mcpgen.codegen.overlay import Overlay, SharedOverlay, apply_overlay, load_overlay, load_shared, patched_document
from mcpgen.codegen.parse import parse
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT: dict[str, Any] = {
    "$defs": {
        "Tool": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "_meta": {"type": "object", "properties": {"a": {}}}},
            "required": ["name"],
        },
        "Task": {
            "type": "object",
            "properties": {"ttl": {"type": ["integer", "null"]}, "_meta": {"$ref": "#/$defs/Meta"}},
        },
        "Meta": {"type": "object", "properties": {"b": {}}},
        "Bare": {"properties": {"_meta": {"type": "object"}}},
        "a/b~c": {"type": "string"},
    }
}


def overlay(text: str) -> Overlay:
    return msgspec.convert(tomllib.loads(text), Overlay)


def applied(text: str, *, shared: SharedOverlay | None = None) -> dict[str, Any]:
    return apply_overlay(DOCUMENT, overlay(text), shared or SharedOverlay())


def refusals(text: str) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        applied(text)
    return [(finding.code, finding.pointer) for finding in refused.value.diagnostics]


def patch(pointer: str, rest: str) -> str:
    return f"[[patch]]\npointers = [{pointer!r}]\nreason = 'r'\n{rest}\n"


def test_an_overlay_leaves_the_vendored_document_alone() -> None:
    before = copy.deepcopy(DOCUMENT)
    applied(patch("/$defs/Tool/type", "old = 'object'\nnew = 'array'"), shared=SharedOverlay(open_properties=["_meta"]))

    assert before == DOCUMENT


# Patches


@pytest.mark.parametrize(
    ("pointer", "rest", "expected"),
    [
        ("/$defs/Tool/type", "old = 'object'\nnew = 'array'", "array"),
        ("/$defs/Task/properties/ttl/type/0", "old = 'integer'\nnew = 'number'", "number"),
        ("/$defs/a~1b~0c/type", "old = 'string'\nnew = 'null'", "null"),
        ("/$defs/Tool/title", "new = 'Tool'", "Tool"),
    ],
)
def test_a_patch_replaces_what_it_expects(pointer: str, rest: str, expected: object) -> None:
    found: Any = applied(patch(pointer, rest))
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) else found[key]

    assert expected == found


@pytest.mark.parametrize(
    ("pointer", "rest"),
    [
        ("/$defs/Tool/type", "old = 'array'\nnew = 'object'"),
        ("/$defs/Tool/type", "new = 'object'"),  # something is there already
        ("/$defs/Tool/title", "old = 'Tool'\nnew = 'x'"),  # nothing is there
        ("/$defs/Tool/required", "old = ['name', 'b']\nnew = []"),
        ("/$defs/Task/properties/ttl/type/0", "old = 1\nnew = 'x'"),
    ],
)
def test_a_patch_that_finds_something_else_fails(pointer: str, rest: str) -> None:
    assert [("MG310", pointer)] == refusals(patch(pointer, rest))


@pytest.mark.parametrize(
    ("old", "found"),
    [("1", True), ("1", 1.0), ("1.0", 1), ("[1]", [1.0]), ("{ x = 0 }", {"x": False}), ("{ x = [1] }", {"x": [True]})],
)
def test_what_is_equal_in_python_only_is_something_else(old: str, found: object) -> None:
    document = {"$defs": {"A": {"const": found}}}
    with pytest.raises(Refused, match="MG310"):
        apply_overlay(document, overlay(patch("/$defs/A/const", f"old = {old}\nnew = 2")), SharedOverlay())


def test_the_order_of_keys_is_no_difference() -> None:
    document = {"$defs": {"A": {"const": {"a": 1, "b": 2}}}}
    found = apply_overlay(
        document, overlay(patch("/$defs/A/const", "old = { b = 2, a = 1 }\nnew = 3")), SharedOverlay()
    )

    assert {"$defs": {"A": {"const": 3}}} == found


@pytest.mark.parametrize("pointer", ["/$defs/Missing/type", "/$defs/Tool/required/7", "/$defs/Tool/required/x", "/x/y"])
def test_a_pointer_to_nowhere_fails(pointer: str) -> None:
    assert [("MG311", pointer)] == refusals(patch(pointer, "new = 1"))


def test_a_pointer_without_a_slash_is_named() -> None:
    with pytest.raises(Refused, match=r"MG311 error: the pointer '\$defs' does not begin with a slash"):
        applied(patch("$defs", "old = 1\nnew = 2"))


def test_a_wildcard_stands_for_every_key_and_index() -> None:
    document = applied(patch("/$defs/*/properties/_meta/title", "new = 'M'"))

    assert ["M"] * 3 == [document["$defs"][name]["properties"]["_meta"]["title"] for name in ("Bare", "Task", "Tool")]


def test_a_wildcard_fails_at_each_place_that_differs() -> None:
    found = refusals(patch("/$defs/Task/properties/ttl/type/*", "old = 'null'\nnew = 'string'"))

    assert [("MG310", "/$defs/Task/properties/ttl/type/0")] == found


def test_all_failures_are_told_together() -> None:
    text = patch("/$defs/Tool/type", "old = 1\nnew = 2") + patch("/$defs/No/type", "new = 2")

    assert ["MG310", "MG311"] == [code for code, _ in refusals(text)]


# Openness


def test_an_object_is_marked_open() -> None:
    document = applied("[[open]]\npointers = ['/$defs/Tool', '/$defs/Task/properties/_meta']\nreason = 'r'")

    assert {} == document["$defs"]["Tool"]["additionalProperties"]
    assert {} == document["$defs"]["Meta"]["additionalProperties"]


@pytest.mark.parametrize(("code", "pointer"), [("MG311", "/$defs/Tool/title"), ("MG310", "/$defs/Tool/type")])
def test_only_an_object_can_be_opened(code: str, pointer: str) -> None:
    assert [(code, pointer)] == refusals(f"[[open]]\npointers = ['{pointer}']\nreason = 'r'")


def test_an_object_that_is_open_already_makes_the_mark_fail() -> None:
    twice = "[[open]]\npointers = ['/$defs/Tool', '/$defs/Tool']\nreason = 'r'"

    assert [("MG310", "/$defs/Tool")] == refusals(twice)


def test_properties_are_opened_by_their_name_wherever_they_have_known_keys() -> None:
    definitions = applied("", shared=SharedOverlay(open_properties=["_meta"]))["$defs"]

    assert {} == definitions["Tool"]["properties"]["_meta"]["additionalProperties"]
    assert {} == definitions["Meta"]["additionalProperties"]
    assert "additionalProperties" not in definitions["Bare"]["properties"]["_meta"]
    assert "additionalProperties" not in definitions["Tool"]


# Extraction


def extract(name: str, *pointers: str) -> str:
    return f"[[extract]]\nname = '{name}'\npointers = {list(pointers)}\nreason = 'r'\n"


def test_equal_inline_schemas_become_one_definition() -> None:
    document = copy.deepcopy(DOCUMENT)
    document["$defs"]["Task"]["properties"]["_meta"] = document["$defs"]["Tool"]["properties"]["_meta"]
    text = extract("MetaObject", "/$defs/Tool/properties/_meta", "/$defs/Task/properties/_meta")
    definitions = apply_overlay(document, overlay(text), SharedOverlay())["$defs"]

    assert {"type": "object", "properties": {"a": {}}} == definitions["MetaObject"]
    assert {"$ref": "#/$defs/MetaObject"} == definitions["Tool"]["properties"]["_meta"]
    assert {"$ref": "#/$defs/MetaObject"} == definitions["Task"]["properties"]["_meta"]


def test_inline_schemas_that_differ_are_not_merged() -> None:
    text = extract("MetaObject", "/$defs/Tool/properties/_meta", "/$defs/Task/properties/_meta")

    assert [("MG313", "/$defs/Task/properties/_meta")] == refusals(text)


def test_the_name_of_another_definition_is_not_taken() -> None:
    assert [("MG313", "/$defs/Tool/properties/name")] == refusals(extract("Meta", "/$defs/Tool/properties/name"))


def test_what_is_not_there_cannot_be_extracted() -> None:
    assert [("MG311", "/$defs/Tool/properties/nope")] == refusals(extract("X", "/$defs/Tool/properties/nope"))


# Files


@pytest.mark.parametrize(
    "text",
    [
        "eera = 'handshake'",
        "era = 'hand-shake'",
        "[[patch]]\npointers = ['/a']\nnew = 1",  # no reason
        "[[patch]]\npointer = '/a'\nnew = 1\nreason = 'r'",
        "[[patch]]\npointers = '/a'\nnew = 1\nreason = 'r'",
        "[[extract]]\nname = 'A'\npointers = []\nreason = 'r'\nwhy = 'x'",
        "[methods.'tools/call']\nresults = 'X'",
        "[[errors]]\ncode = 'x'\nname = 'A'\ntext = 't'",
        "reserved_errors = [-1, -2]",
        f"x = {'9' * 5000}",
    ],
)
def test_a_misspelt_overlay_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match=r"MG312 error: overlay\.toml: "):
        load_overlay(tmp_path / "overlay.toml")


def test_an_overlay_is_no_longer_than_a_document(tmp_path: Path) -> None:
    file = tmp_path / "overlay.toml"
    file.write_bytes(b"#" * (MAX_DOCUMENT_BYTES + 1))
    with pytest.raises(Refused, match=f"larger than {MAX_DOCUMENT_BYTES} bytes"):
        load_overlay(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("era = 'handshakes'", r"at `\$\.era`; use handshake or stateless"),
        ("[methods.'tools/call']\nsender = 'host'", "sender`; use client or server"),
    ],
)
def test_a_value_that_is_no_choice_is_refused_with_the_choices(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match=told):
        load_overlay(tmp_path / "overlay.toml")


def test_a_file_in_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "overlay.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Refused, match=r"MG312 error: overlay\.json is not valid TOML: Invalid statement \(at line 1, "):
        load_overlay(tmp_path / "overlay.json")


@pytest.mark.parametrize(
    "name",
    [
        "X = 1\\n    import os\\n    Y",
        "import",
        "mro",
        "name",
        "_X",
        "__X__",
        "x",
        "1X",
        "X Y",
        "X\\n",
        "\u00c4",
        "",
        "None",
    ],
)
def test_the_name_of_an_error_code_is_that_of_a_constant(name: str, tmp_path: Path) -> None:
    text = f'[[errors]]\ncode = 1\nname = "{name}"\ntext = "t"'
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match=r"MG312 error: overlay\.toml: the `name` of an error code .* at `\$\.errors"):
        load_overlay(tmp_path / "overlay.toml")


@pytest.mark.parametrize("value", ["1979-05-27", "07:32:00", "{ default = [1979-05-27T07:32:00Z] }", "nan", "-inf"])
@pytest.mark.parametrize("key", ["old", "new"])
def test_a_patch_holds_what_json_can_say(key: str, value: str, tmp_path: Path) -> None:
    given = {"old": "1", "new": "1"} | {key: value}
    text = patch("/a", "\n".join(f"{name} = {each}" for name, each in given.items()))
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match=r"MG312 error: overlay\.toml: JSON cannot express .* at `\$\.patch"):
        load_overlay(tmp_path / "overlay.toml")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 3000])
def test_a_patch_that_is_nested_too_deeply_is_refused(depth: int, tmp_path: Path) -> None:
    text = patch("/a", f"new = {'[' * depth}{']' * depth}")
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match=r"MG312 error: overlay\.toml: .* nested"):
        load_overlay(tmp_path / "overlay.toml")


def test_a_patch_may_be_nested_as_deeply_as_a_document(tmp_path: Path) -> None:
    text = patch("/a", f"new = {'[' * MAX_DEPTH}{']' * MAX_DEPTH}")
    (tmp_path / "overlay.toml").write_text(text, encoding="utf-8")

    assert 1 == len(load_overlay(tmp_path / "overlay.toml").patch)


def test_the_shared_overlay_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"MG312 error: cannot read .*overlay\.toml: No such file or directory$"):
        load_shared(tmp_path / "overlay.toml")


def test_an_overlay_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_bytes(b"era = '\xff'")
    with pytest.raises(Refused, match="MG312"):
        load_overlay(tmp_path / "overlay.toml")


def test_a_revision_without_an_overlay_has_an_empty_one(tmp_path: Path) -> None:
    assert Overlay() == load_overlay(tmp_path / "overlay.toml")


@pytest.mark.parametrize("revision", SchemaRoom().revisions)
def test_every_patched_document_can_be_generated_from(revision: str) -> None:
    assert [] == check_document(patched_document(revision))


@pytest.mark.parametrize("revision", SchemaRoom().revisions)
def test_every_change_of_an_overlay_changes_something(revision: str) -> None:
    room = SchemaRoom()
    ours = load_overlay(room.root / revision / "overlay.toml")
    shared = load_shared(room.root / "overlay.toml")
    whole = json.dumps(patched_document(revision))

    for kind in ("patch", "open", "extract"):
        tables = getattr(ours, kind)
        for index in range(len(tables)):
            fewer = msgspec.structs.replace(ours, **{kind: tables[:index] + tables[index + 1 :]})
            with contextlib.suppress(Refused):  # where another change builds on this one
                assert whole != json.dumps(apply_overlay(room.document(revision), fewer, shared))


@pytest.mark.slow
@pytest.mark.parametrize("side", ["server", "client"])
def test_every_shared_capability_is_there_in_some_revision(side: str) -> None:
    room = SchemaRoom()
    shared = load_shared(room.root / "overlay.toml")
    declared: set[str] = set()
    for revision in room.revisions:
        methods = Methods(parse(patched_document(revision)), Overlay(), shared).read()
        declared |= {each.name for each in methods if each.capability and each.sender != side}

    assert set(getattr(shared.capabilities, side)) == declared


@pytest.mark.slow
def test_every_shared_method_is_there_in_some_revision() -> None:
    room = SchemaRoom()
    shared = load_shared(room.root / "overlay.toml")
    schemas = [parse(patched_document(revision)) for revision in room.revisions]
    names = {each.name for schema in schemas for each in Methods(schema, Overlay(), shared).read()}

    assert set(shared.methods) <= names
    for facts in shared.methods.values():
        assert any(facts.result in schema.definitions for schema in schemas)
