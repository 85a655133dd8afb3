"""Drafts: the knowledge about their base applies where it fits, and the build says what does not fit."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen.adapters.missing_changes import to_do_list
from mcpgen.codegen.commands import build, check
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.document_facts import era_of
from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen import drafts
from tests.codegen.packages import load_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BASE = drafts.BASE


def run(document: dict[str, Any], folder: Path, *options: object, label: str = "next") -> Result:
    """Build *document* from a file in *folder*."""
    (folder / "next.json").write_text(json.dumps(document), encoding="utf-8")
    arguments = ["--schema", folder / "next.json", "--revision", label, "--out", folder / "out", *options]
    result = CliRunner().invoke(build, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def built(document: dict[str, Any], folder: Path, *options: object) -> tuple[Any, dict[str, Any]]:
    """Return the package of *document*, and the report of the build."""
    result = run(document, folder, "--json", *options)
    assert 0 == result.exit_code, result.output
    return load_folder(folder / "out" / "vnext", f"draft_{folder.name}"), json.loads(result.stdout)


def findings(result: Result) -> list[tuple[str, str]]:
    return [(each["code"], each["pointer"]) for each in json.loads(result.stdout)["diagnostics"]]


def test_a_draft_with_one_more_key_keeps_all_that_is_known_of_its_base(tmp_path: Path) -> None:
    door, report = built(drafts.one_field(), tmp_path, "--based-on", BASE)

    assert "stateless" == door.methods.ERA
    assert {-32020, -32021, -32022} < {each.value for each in door.methods.ErrorCode}
    assert range(-32099, -32019) == door.methods.RESERVED_ERRORS
    assert "complete" == door.CallToolResult(content=[]).result_type
    assert 1.5 == door.decode('{"name": "x", "inputSchema": {"type": "object"}, "costHint": 1.5}', door.Tool).cost_hint
    assert [] == report["diagnostics"]
    (package,) = report["built"]
    assert BASE == package["base"]
    assert [("key-added", "Tool.costHint")] == [
        (each["kind"], each["id"]) for each in package["differences"]["changes"]
    ]


def test_without_a_base_the_build_proposes_the_nearest_revision_and_stops(tmp_path: Path) -> None:
    result = run(drafts.one_field(), tmp_path)

    assert 2 == result.exit_code
    assert f"MG318 error: `--based-on` is missing; the nearest revision is {BASE}: " in result.stderr
    assert f"--based-on {BASE}" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("required", [True, 5, None])
def test_required_keys_that_are_no_list_are_refused(required: object, tmp_path: Path) -> None:
    document = drafts.one_field()
    document["$defs"]["ListToolsResult"]["required"] = required
    result = run(document, tmp_path, "--based-on", BASE, "--json")

    assert 1 == result.exit_code
    assert "/$defs/ListToolsResult/required" in {pointer for _, pointer in findings(result)}


def test_a_check_writes_no_file_of_changes(tmp_path: Path) -> None:
    document = drafts.one_field()
    result_type = document["$defs"]["ListToolsResult"]
    result_type["properties"]["catalogVersion"] = {"type": "string"}
    result_type["required"].append("catalogVersion")
    (tmp_path / "next.json").write_text(json.dumps(document), encoding="utf-8")
    changes = tmp_path / "changes.py"
    arguments = [
        "--schema",
        tmp_path / "next.json",
        "--revision",
        "next",
        "--out",
        tmp_path / "out",
        "--based-on",
        BASE,
    ]
    result = CliRunner().invoke(check, [*map(str, arguments), "--adapters", "--changes", str(changes)])

    assert "MG501 error" in result.stderr
    assert not changes.exists()


def test_a_name_in_a_to_do_list_stays_in_its_comment() -> None:
    told = Diagnostic(code="MG501", message="`a\nb = 1 #` cannot be adapted", hint="Add a `Change`.")

    statements = ast.parse(to_do_list(BASE, "next", [told])).body

    assert ["Expr", "ImportFrom", "ImportFrom", "ImportFrom", "Assign"] == [type(each).__name__ for each in statements]
    (call,) = (each.value for each in statements if isinstance(each, ast.Assign))
    assert isinstance(call, ast.Call)
    assert ["old", "new", "renames", "changes"] == [each.arg for each in call.keywords]
    assert "()" == ast.unparse(call.keywords[-1].value)


def test_a_file_without_definitions_is_near_to_no_revision(tmp_path: Path) -> None:
    result = run({"tools": []}, tmp_path)

    assert "MG010 error" in result.stderr
    assert "MG318" not in result.stderr


def test_without_a_base_an_official_document_with_another_label_is_named(tmp_path: Path) -> None:
    result = run(SchemaRoom().document(BASE), tmp_path)

    assert 2 == result.exit_code
    assert "MG318 error: `--based-on` is missing." in result.stderr
    assert f"The document has the definitions of {BASE}, but `--revision` gives it the label next\n" in result.stderr


def test_an_older_draft_is_nearest_to_the_revision_that_it_came_from(tmp_path: Path) -> None:
    document = SchemaRoom().document("2025-03-26")
    document["definitions"]["Tool"]["properties"]["costHint"] = {"type": "number"}  # type: ignore[index, call-overload]

    assert "--based-on 2025-03-26" in run(document, tmp_path).stderr


def test_without_the_knowledge_of_a_base_the_document_alone_counts(tmp_path: Path) -> None:
    door, report = built(drafts.one_field(), tmp_path, "--based-on", "none")

    assert "stateless" == door.methods.ERA
    assert not hasattr(door.methods, "RESERVED_ERRORS")
    with pytest.raises(TypeError):
        door.CallToolResult(content=[])
    assert (
        "The era is stateless, because the document has `server/discover` and no `initialize`."
        in report["built"][0]["assumptions"]
    )


def test_a_capability_that_the_document_lacks_is_named_with_the_overlay_that_wants_it(tmp_path: Path) -> None:
    overlay = tmp_path / "own.toml"
    overlay.write_text('[capabilities.server]\n"tools/list" = ["tooling"]\n', encoding="utf-8")
    result = run(drafts.one_field(), tmp_path, "--based-on", BASE, "--overlay", overlay)

    assert "the capability tooling for tools/list of the overlay: the document has no such key" in result.stderr


def test_what_does_not_fit_is_left_out_with_its_place_and_reason(tmp_path: Path) -> None:
    result = run(drafts.other_error_codes(), tmp_path, "--based-on", BASE, "--json")
    diagnostics = json.loads(result.stdout)["diagnostics"]
    unfit = {each["pointer"]: each["message"] for each in diagnostics}
    hints = {each["pointer"]: each["hint"] for each in diagnostics}
    codes = {each.name: each.value for each in load_folder(tmp_path / "out" / "vnext", "unfit").methods.ErrorCode}

    assert 0 == result.exit_code
    assert {"MG317", "MG130"} == {code for code, _ in findings(result)}
    assert "matches nothing" in unfit["/$defs/SubscriptionsListenResult/properties/resultType/default"]
    assert "the code -32001, which is used instead of -32020" in unfit["/$defs/HeaderMismatchError"]
    assert "correct it in the document" in hints["/$defs/HeaderMismatchError"]  # an overlay would contradict it
    assert "no UnsupportedProtocolVersionError" in unfit[""]
    assert "into your overlay" in hints[""]
    assert (-32001, -32050) == (codes["HEADER_MISMATCH"], codes["BUSY"])
    assert "UNSUPPORTED_PROTOCOL_VERSION" not in codes


def test_a_new_message_is_an_assumption_and_gets_the_defaults_of_its_base(tmp_path: Path) -> None:
    door, report = built(drafts.next_revision(), tmp_path, "--based-on", BASE)
    (package,) = report["built"]
    request = door.methods.CLIENT_REQUESTS["tools/estimate"]

    assert (door.EstimateToolRequestParams, door.EstimateToolResult) == (request.params, request.result)
    assert "complete" == door.EstimateToolResult(seconds=1.5).result_type
    assert "notifications/catalog/moved" in door.methods.SERVER_NOTIFICATIONS
    assert (
        "The request tools/estimate is new: a client sends it, and its result is EstimateToolResult."
        " A server that handles it declares no capability for it." in package["assumptions"]
    )
    assert "EstimateToolResult.resultType has the default 'complete', as in 2026-07-28." in package["assumptions"]


def test_the_knowledge_of_a_base_fits_a_draft_with_and_without_descriptions(tmp_path: Path) -> None:
    plain, described = tmp_path / "plain", tmp_path / "described"
    plain.mkdir()
    described.mkdir()
    _, expected = built(drafts.next_revision(), plain, "--based-on", BASE)
    door, found = built(drafts.with_prose(drafts.next_revision()), described, "--based-on", BASE)

    assert expected["built"][0]["assumptions"] == found["built"][0]["assumptions"]
    assert [] == expected["diagnostics"] == found["diagnostics"]
    assert "complete" == door.EstimateToolResult(seconds=1.5).result_type


def test_a_request_that_no_direction_lists_stops_the_build(tmp_path: Path) -> None:
    result = run(drafts.stray_request(), tmp_path, "--based-on", BASE, "--json")

    assert (1, [("MG135", "/$defs/StrayRequest")]) == (result.exit_code, findings(result))
    assert not (tmp_path / "out").exists()


def test_a_request_is_not_taken_for_another_one_that_runs_as_a_task(tmp_path: Path) -> None:
    document = json.loads((SchemaRoom().root / "2025-11-25" / "schema.json").read_text(encoding="utf-8"))
    request = {"type": "object", "properties": {"method": {"const": "x/y", "type": "string"}}, "required": ["method"]}
    document["$defs"]["CallToolAsTaskRequest"] = request
    document["$defs"]["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/CallToolAsTaskRequest"})
    result = run(document, tmp_path, "--based-on", "2025-11-25", "--json")

    assert ("MG213", "/$defs/CallToolAsTaskRequest") in findings(result)


def test_an_overlay_of_ones_own_counts_more_than_the_base(tmp_path: Path) -> None:
    (tmp_path / "next.toml").write_text(
        """
[capabilities.server]
"tools/estimate" = ["tools"]

[[patch]]
pointers = ["/$defs/EstimateToolResult/properties/seconds/maximum"]
new = 60
reason = "An estimate is at most a minute."

[[errors]]
code = -32050
name = "HEADER_MISMATCH"
text = "A header is wrong."
""",
        encoding="utf-8",
    )
    overlay = ("--overlay", tmp_path / "next.toml")
    door, _ = built(drafts.next_revision(), tmp_path, "--based-on", BASE, *overlay)

    class Handlers(door.ServerHandlers):  # type: ignore[misc, name-defined]
        async def estimate_tool(self, params: object, context: object, /) -> object: ...

    assert Handlers().capabilities().tools is not None
    assert -32050 == door.methods.ErrorCode.HEADER_MISMATCH
    assert "stateless" == door.methods.ERA  # the overlay does not state it
    with pytest.raises(msgspec.ValidationError):
        door.decode('{"seconds": 61, "resultType": "complete"}', door.EstimateToolResult)


def test_an_overlay_of_ones_own_has_to_fit(tmp_path: Path) -> None:
    (tmp_path / "next.toml").write_text(
        '[[patch]]\npointers = ["/$defs/Nothing"]\nold = {}\nnew = {}\nreason = "none"\n', encoding="utf-8"
    )
    result = run(drafts.one_field(), tmp_path, "--based-on", BASE, "--overlay", tmp_path / "next.toml", "--json")

    assert 1 == result.exit_code
    assert [("MG310", "/$defs/Nothing")] == findings(result)


@pytest.mark.parametrize("label", ["2025-11-25", "2026.07.28"])
def test_a_label_that_is_taken_is_refused(label: str, tmp_path: Path) -> None:
    result = run(drafts.one_field(), tmp_path, "--based-on", BASE, "--json", label=label)

    assert (1, [("MG305", "")]) == (result.exit_code, findings(result))


def test_a_known_document_with_an_overlay_needs_a_label_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "next.toml").write_text('era = "stateless"\n', encoding="utf-8")
    result = run(drafts.base(), tmp_path, "--overlay", tmp_path / "next.toml", "--json", label=BASE)

    assert (1, [("MG305", "")]) == (result.exit_code, findings(result))


def test_an_unknown_base_is_refused(tmp_path: Path) -> None:
    assert [("MG303", "")] == findings(run(drafts.one_field(), tmp_path, "--based-on", "2027-01-01", "--json"))


def test_headers_speak_of_files_that_the_user_has(tmp_path: Path) -> None:
    assert 0 == run(drafts.one_field(), tmp_path, "--based-on", BASE).exit_code
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "vnext").glob("*.py")}

    assert all("schema/docs.toml" not in text and "codegen/" not in text for text in files.values())
    assert all("--schema next.json --revision next --based-on 2026-07-28``" in text for text in files.values())
    assert "of mcpgen " in files["__init__.py"].partition('"""\n')[0]


def test_the_summary_shows_files_assumptions_and_differences(tmp_path: Path) -> None:
    result = run(drafts.one_field(), tmp_path, "--based-on", BASE)

    for expected in (
        f"next: 184 types, based on {BASE}",
        "12 files written, 0 unchanged",
        "* The era is stateless, as in 2026-07-28.",
        "differences from 2026-07-28: 1",
        "+ costHint?  number (>= 0)",
    ):
        assert expected in result.stdout


def test_a_summary_without_all_differences_says_where_they_are(tmp_path: Path) -> None:
    document = drafts.one_field()
    document["$defs"] |= {f"Extra{index}": {"type": "object"} for index in range(50)}

    assert "    50 definition-added\n" in (result := run(document, tmp_path, "--based-on", BASE)).stdout
    assert "    --json lists them all.\n" in result.stdout


def test_the_summary_escapes_names_of_the_document(tmp_path: Path) -> None:
    document = drafts.one_field()
    document["$defs"]["ListToolsRequest"]["properties"]["method"]["const"] = "\x1b]0;title\x07"

    shown = run(document, tmp_path, "--based-on", BASE).stdout
    assert "* The request \\x1b]0;title\\x07 is new: a client sends it" in shown


def test_a_method_that_is_no_text_shows_no_era() -> None:
    assert era_of({"$defs": {"A": {"properties": {"method": {"const": ["initialize"]}}}}}) is None
