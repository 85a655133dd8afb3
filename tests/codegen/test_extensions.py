"""Extensions: packages that have only what an extension adds to its base."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen.commands import build, check
from mcpgen.codegen.docs import load_docs
from mcpgen.codegen.extension_document import is_identifier
from mcpgen.codegen.extensions import extension_package
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.generated import v2026_07_28
from mcpgen.generated.extensions import apps, tasks
from tests.codegen.packages import load_folder
from tests.codegen.verdicts import INTEGER, STRING, obj, ref

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BASE = "2026-07-28"
IDENTIFIER = "com.example/rooms"

ANNOTATIONS = SchemaRoom().document(BASE)["$defs"]["Annotations"]  # type: ignore[index, call-overload]  # any JSON
OFFICIAL = "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol"
META = {"io.modelcontextprotocol/protocolVersion": BASE, "io.modelcontextprotocol/clientCapabilities": {}}
SENDER = '[methods."rooms/reserve"]\nsender = "client"\n'


def message(method: str, **properties: Any) -> dict[str, Any]:
    return {**obj(method={"const": method}, **properties), "required": ["method", *properties]}


def arguments(folder: Path, document: dict[str, Any], *options: object, overlay: str = "") -> list[str]:
    (folder / "rooms.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "rooms.toml").write_text(overlay, encoding="utf-8")
    given = ["--extension", folder / "rooms.json", "--id", IDENTIFIER, "--base", BASE, "--out", folder / "out"]
    given += ["--overlay", folder / "rooms.toml"] if overlay else []
    return [str(each) for each in (*given, *options)]


def run(folder: Path, document: dict[str, Any], *options: object, overlay: str = "") -> Result:
    """Build the extension *document* in *folder*."""
    result = CliRunner().invoke(build, arguments(folder, document, *options, overlay=overlay))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def built(folder: Path, overlay: str = "", **definitions: Any) -> Any:
    """Return the package of an extension with *definitions*."""
    result = run(folder, {"$defs": definitions}, overlay=overlay)
    assert 0 == result.exit_code, result.output
    return load_folder(folder / "out" / "rooms", f"extension_{folder.name}")


def codes(result: Result) -> list[tuple[str, str]]:
    return [(each["code"], each["pointer"]) for each in json.loads(result.stdout)["diagnostics"]]


def test_equal_definitions_are_the_classes_of_the_base(tmp_path: Path) -> None:
    door = built(tmp_path, Annotations=ANNOTATIONS, Role={"enum": ["user", "assistant"]}, Room=obj(name=STRING))

    assert door.Annotations is v2026_07_28.Annotations
    assert door.Room(name="x").name == "x"
    assert 1 == (tmp_path / "out" / "rooms" / "models.py").read_text(encoding="utf-8").count("\nclass ")


def test_a_definition_that_differs_from_that_of_the_base_is_new(tmp_path: Path) -> None:
    changed = {**ANNOTATIONS, "properties": {**ANNOTATIONS["properties"], "floor": INTEGER}}
    door = built(tmp_path, Annotations=changed)

    assert door.Annotations is not v2026_07_28.Annotations
    assert 3 == door.Annotations(floor=3).floor


def test_a_definition_that_only_refers_to_a_changed_one_is_new_too(tmp_path: Path) -> None:
    door = built(tmp_path, Icon={**obj(src=INTEGER), "required": ["src"]})

    assert door.Implementation is not v2026_07_28.Implementation
    data = b'{"name": "a", "version": "1", "icons": [{"src": 5}]}'
    assert 5 == door.decode(data, door.Implementation).icons[0].src


def test_a_reference_can_name_a_definition_of_the_base(tmp_path: Path) -> None:
    door = built(tmp_path, Room=obj(icon=ref("Icon")))

    assert door.decode(b'{"icon": {"src": "x"}}', door.Room).icon == v2026_07_28.Icon(src="x")


@pytest.mark.parametrize(
    "place",
    [
        "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/main/schema",
        "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/refs/heads/main/schema",
        "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/0a1b2c/schema",
    ],
)
def test_a_reference_can_name_a_definition_of_the_base_by_its_address(place: str, tmp_path: Path) -> None:
    there = f"{place}/{BASE}/schema.json#/$defs/Icon"
    door = built(tmp_path, Room=obj(icon={"$ref": there}))

    assert door.decode(b'{"icon": {"src": "x"}}', door.Room).icon == v2026_07_28.Icon(src="x")


@pytest.mark.parametrize(
    ("address", "definitions"),
    [
        ("https://example.com/modelcontextprotocol/modelcontextprotocol/main/schema/2026-07-28/schema.json", {}),
        (f"{OFFICIAL}/main/schema/2025-11-25/schema.json", {}),
        (f"{OFFICIAL}/main/schema/2026-07-28/schema.json", {"Icon": obj(other=STRING)}),
        (f"{OFFICIAL}/main/schema/2026-07-28/schema.json?raw=1", {}),
    ],
    ids=["elsewhere", "of another revision", "hidden by an own definition", "with a query"],
)
def test_a_reference_to_another_document_is_refused(address: str, definitions: dict[str, Any], tmp_path: Path) -> None:
    room = obj(icon={"$ref": f"{address}#/$defs/Icon"})
    result = run(tmp_path, {"$defs": {"Room": room, **definitions}}, "--json")

    assert [("MG106", "/$defs/Room/properties/icon/$ref")] == codes(result)


def test_an_extension_can_have_a_general_type_for_what_a_server_asks(tmp_path: Path) -> None:
    anything = {"anyOf": [{}, {}]}
    asked = {**obj(method=STRING, params={"type": "object"}), "required": ["method"]}
    door = built(tmp_path, InputRequest=asked, InputRequests={"type": "object", "additionalProperties": anything})

    assert "x/y" == door.decode(b'{"method": "x/y"}', door.InputRequest).method
    assert not hasattr(door, "methods")


@pytest.mark.parametrize("changed", [{}, {"$id": "https://example.com/another"}], ids=["as it is", "under another $id"])
def test_the_document_of_an_official_extension_is_recognised(changed: dict[str, str], tmp_path: Path) -> None:
    document = {**SchemaRoom().extension_document("tasks"), **changed}
    result = run(tmp_path, document, "--id", tasks.EXTENSION)

    assert 0 == result.exit_code, result.output
    assert "class SubscriptionFilter" in (tmp_path / "out" / "tasks" / "models.py").read_text(encoding="utf-8")


def test_an_overlay_of_the_user_replaces_that_of_an_official_extension(tmp_path: Path) -> None:
    document = SchemaRoom().extension_document("tasks")
    result = run(tmp_path, document, "--id", tasks.EXTENSION, overlay="models_only = true\n")

    assert 0 == result.exit_code, result.output
    assert ["__init__.py", "models.py"] == sorted(path.name for path in (tmp_path / "out" / "tasks").glob("*.py"))


def test_an_inline_copy_of_a_base_type_is_the_class_of_the_base(tmp_path: Path) -> None:
    door = built(tmp_path, Room=obj(notes=ANNOTATIONS, other=obj(title=STRING, floor=INTEGER)))

    notes = door.decode(b'{"notes": {"priority": 1}, "other": {"floor": 1}}', door.Room).notes
    assert type(notes) is v2026_07_28.Annotations


def test_an_inline_copy_of_a_definition_is_that_definition(tmp_path: Path) -> None:
    floor = obj(level=INTEGER)
    door = built(tmp_path, Floor=floor, Building=obj(top=floor), Town=obj(house=obj(top=floor)))

    assert type(door.decode(b'{"top": {"level": 1}}', door.Building).top) is door.Floor
    assert type(door.decode(b'{"house": {"top": {"level": 1}}}', door.Town).house) is door.Building


def test_a_definition_inside_another_one_becomes_one_of_the_root(tmp_path: Path) -> None:
    inner = {"__tree0": {"type": "array", "items": ref("__tree0")}}
    door = built(tmp_path, Room=obj(tree=ref("__tree0")) | {"$defs": inner})

    assert [[], [[]]] == door.decode(b'{"tree": [[], [[]]]}', door.Room).tree
    with pytest.raises(msgspec.ValidationError):
        door.decode(b'{"tree": [1]}', door.Room)


def test_the_overlay_says_who_sends_a_message(tmp_path: Path) -> None:
    definitions = {
        "ReserveRoomRequest": message("rooms/reserve", params=obj(_meta=ref("RequestMetaObject"), seats=INTEGER)),
        "ReserveRoomResult": obj(done={"type": "boolean"}),
    }
    unknown = run(tmp_path, {"$defs": definitions}, "--json")
    door = built(tmp_path, SENDER, **definitions)

    assert [("MG135", "/$defs/ReserveRoomRequest")] == codes(unknown)
    assert ["rooms/reserve"] == list(door.methods.CLIENT_REQUESTS)
    assert door.methods.RESERVE_ROOM.result is door.ReserveRoomResult
    assert hasattr(door.ServerHandlers, "reserve_room")
    assert hasattr(door.ClientMethods, "reserve_room")
    assert not hasattr(door.ClientHandlers, "reserve_room")
    assert (IDENTIFIER, BASE) == (door.EXTENSION, door.BASE)


def test_the_document_can_say_who_sends_a_message(tmp_path: Path) -> None:
    definitions = {"ClientNotification": {"anyOf": [ref("RoomNotification")]}, "RoomNotification": message("room")}
    door = built(tmp_path, **definitions)

    assert ["room"] == list(door.methods.CLIENT_NOTIFICATIONS)


def test_a_result_of_the_base_can_be_narrowed(tmp_path: Path) -> None:
    kind = {**obj(resultType={"const": "room"}, room=STRING), "required": ["resultType", "room"]}
    door = built(tmp_path, RoomResult={"allOf": [ref("Result"), kind]})

    assert "room" == door.RoomResult(room="5").result_type
    with pytest.raises(msgspec.ValidationError):
        door.decode(b'{"resultType": "complete", "room": "5"}', door.RoomResult)


def test_an_extension_can_have_models_only(tmp_path: Path) -> None:
    door = built(tmp_path, "models_only = true\n", RoomRequest=message("room"))

    assert "room" == door.RoomRequest().method
    assert ["__init__.py", "models.py"] == sorted(path.name for path in (tmp_path / "out" / "rooms").glob("*.py"))


def test_the_head_of_a_module_names_what_its_user_can_change(tmp_path: Path) -> None:
    built(tmp_path, overlay="models_only = true\n", Room=obj(name=STRING))
    head = (tmp_path / "out" / "rooms" / "models.py").read_text(encoding="utf-8")

    assert (
        "\nTo change this file, change rooms.json, rooms.toml or the template models.py.jinja (--templates).\n" in head
    )


def test_a_copied_base_needs_msgspec_alone(tmp_path: Path) -> None:
    result = run(tmp_path, {"$defs": {"Annotations": ANNOTATIONS, "Room": obj(icon=ref("Icon"))}}, "--copy-base")
    program = (
        "import sys; sys.modules['mcpgen'] = None; sys.path.insert(0, '')\n"
        "from out import rooms, v2026_07_28\n"
        "assert rooms.Annotations is v2026_07_28.Annotations\n"
        'assert type(rooms.decode(b\'{"icon": {"src": "x"}}\', rooms.Room).icon) is v2026_07_28.Icon\n'
    )

    assert 0 == result.exit_code, result.output
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_check_compares_an_extension_with_a_fresh_build(tmp_path: Path) -> None:
    document = {"$defs": {"Room": obj(name=STRING)}}
    run(tmp_path, document)
    given = arguments(tmp_path, document)
    same = CliRunner().invoke(check, given)
    (tmp_path / "out" / "rooms" / "models.py").write_text("", encoding="utf-8")
    changed = CliRunner().invoke(check, given)

    assert (0, 1) == (same.exit_code, changed.exit_code)
    assert "MG403" in changed.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--id", "rooms"], "`--id` is not a valid identifier"),
        (["--id", f"com.example/{'a' * 80}"], "at most 80 characters"),
        (["--all"], "`--extension` cannot be combined with"),
        (["--base", ""], "`--extension FILE` needs"),
    ],
)
def test_wrong_options_are_a_wrong_use(options: list[str], expected: str, tmp_path: Path) -> None:
    result = run(tmp_path, {"$defs": {"Room": obj()}}, *options)

    assert 2 == result.exit_code
    assert expected in result.stderr


def test_an_extension_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    run(tmp_path, {"$defs": {"Room": obj()}})
    result = run(tmp_path, {"$defs": {"Room": obj()}}, "--id", f"org.another/{IDENTIFIER.partition('/')[2]}")

    assert 1 == result.exit_code
    assert "holds the bindings of another revision or extension" in result.stderr
    assert "so do extensions with the same name after the slash" in result.stderr


def test_options_of_extensions_need_an_extension(tmp_path: Path) -> None:
    result = CliRunner().invoke(build, ["--all", "--copy-base", "--out", str(tmp_path)])

    assert 2 == result.exit_code
    assert "need `--extension FILE`" in result.stderr


def test_what_is_no_schema_under_a_name_of_the_base_is_refused(tmp_path: Path) -> None:
    address = {"$ref": f"{OFFICIAL}/main/schema/2026-07-28/schema.json#/$defs/Icon"}

    assert ("MG102", "/$defs/Icon") in codes(run(tmp_path, {"$defs": {"Icon": "x", "Room": address}}, "--json"))


def test_a_base_that_is_not_vendored_is_refused(tmp_path: Path) -> None:
    assert [("MG303", "")] == codes(run(tmp_path, {"$defs": {"Room": obj()}}, "--base", "2020-01-01", "--json"))


def test_names_that_the_package_needs_are_refused(tmp_path: Path) -> None:
    assert [("MG212", "/$defs/EXTENSION")] == codes(run(tmp_path, {"$defs": {"EXTENSION": obj(a=STRING)}}, "--json"))


@pytest.mark.parametrize("text", ["a/b", "com.example/rooms", "io.modelcontextprotocol/ui", "com.a-b/x_y.z"])
def test_an_identifier_has_a_prefix(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize(
    "text", ["", "rooms", "/rooms", "com.example/", "1a/b", "a..b/c", "a/b/c", "a/-b", "a-/b", "a/b\n"]
)
def test_what_is_no_identifier_is_refused(text: str) -> None:
    assert not is_identifier(text)


@pytest.mark.parametrize(
    ("identifier", "folder"),
    [("a/rooms", "rooms"), ("a/my-Rooms.v2", "my_rooms_v2"), ("a/2d", "x_2d"), ("a/is", "is_")],
)
def test_the_folder_is_the_name_without_its_prefix(identifier: str, folder: str) -> None:
    assert folder == extension_package(identifier)


def test_the_tasks_extension_shares_the_types_of_its_base() -> None:
    assert tasks.ContentBlock is v2026_07_28.ContentBlock
    assert tasks.Tool is v2026_07_28.Tool
    assert tasks.JSONRPCRequest is v2026_07_28.JSONRPCRequest
    assert tasks.SubscriptionFilter is not v2026_07_28.SubscriptionFilter
    assert ["1"] == tasks.decode(b'{"taskIds": ["1"]}', tasks.SubscriptionFilter).task_ids


def test_a_tool_call_with_the_tasks_extension_can_have_a_task_as_its_result() -> None:
    task = {"taskId": "1", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None}
    method = tasks.methods.CALL_TOOL

    created = tasks.decode(json.dumps({**task, "resultType": "task"}), method.result)
    plain = tasks.decode(b'{"content": [], "resultType": "complete"}', method.result)
    assert type(created) is tasks.CreateTaskResult
    assert type(plain) is v2026_07_28.CallToolResult


def test_requests_of_the_tasks_extension_carry_metadata_as_all_requests() -> None:
    params = tasks.methods.GET_TASK.params

    assert "1" == tasks.decode(json.dumps({"taskId": "1", "_meta": META}), params).task_id
    with pytest.raises(msgspec.ValidationError, match="_meta"):
        tasks.decode(b'{"taskId": "1"}', params)


def test_keys_that_must_be_absent_are_refused() -> None:
    assert "ui://x" == apps.decode(b'{"resourceUri": "ui://x"}', apps.McpUiToolMeta).resource_uri
    with pytest.raises(msgspec.ValidationError, match="csp"):
        apps.decode(b'{"csp": {}}', apps.McpUiToolMeta)


@pytest.mark.parametrize("name", SchemaRoom().extensions)
def test_our_texts_are_about_definitions_that_exist(name: str) -> None:
    door = importlib.import_module(f"mcpgen.generated.extensions.{name}")
    about = load_docs(SchemaRoom().root / "extensions" / name / "docs.toml").names()

    # An envelope of the base is not repeated, but it is part of the document.
    assert {each for each in about if not hasattr(door, each)} <= {"CallToolResultResponse"}
