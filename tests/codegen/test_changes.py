"""The declared changes: each is about a real difference, and its conversions do what they say to literal values."""

from __future__ import annotations

import copy
import itertools
import json
import re
from functools import cache
from hashlib import sha256
from typing import Any

import jsonschema
import pytest

from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.changes import v2024_11_05_to_v2025_03_26 as to_b
from mcpgen.codegen.changes import v2025_03_26_to_v2025_06_18 as to_c
from mcpgen.codegen.changes import v2025_06_18_to_v2025_11_25 as to_d
from mcpgen.codegen.changes import v2025_11_25_to_v2026_07_28 as to_e
from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Default, Drop, Keep, Recode, Refuse, Step
from mcpgen.codegen.diff import Edition, compare, edition
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.runtime.adapt import definition_route

ROOM = SchemaRoom()
STEPS = (to_b.STEP, to_c.STEP, to_d.STEP, to_e.STEP)
CHANGES = [(step, change) for step in STEPS for change in step.changes]

# What an adapter must do that no diff lists, because it is about what a method may answer or what an open object held.
BEYOND_THE_DIFF = {
    to_d.STEP.new: ["arm-added tools/call result[CreateTaskResult]"],
    to_e.STEP.new: [
        "arm-removed tools/call result[CreateTaskResult]",
        "key-removed ListRootsRequestParams._meta.progressToken",
    ],
}


class RefusedError(Exception):
    """What `Told.refuse` raises."""


class Told:
    """Losses, as a test reads them."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def dropped(self, at: At, reason: str) -> None:
        self._add("dropped", at, reason)

    def degraded(self, at: At, reason: str) -> None:
        self._add("degraded", at, reason)

    def defaulted(self, at: At, reason: str) -> None:
        self._add("defaulted", at, reason)

    def refuse(self, at: At, reason: str, service: str | None = None) -> Any:
        self._add("refused", at, reason)
        raise RefusedError(service)

    def _add(self, severity: str, at: At, reason: str) -> None:
        assert reason
        tokens: list[str] = []
        while at:
            at, token = at
            tokens.insert(0, str(token))
        self.found.append((severity, "/".join(tokens)))


def converted(function: Any, value: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return what *function* makes of *value*, and the losses; it must not have touched *value*."""
    before, losses = copy.deepcopy(value), Told()
    result = function(value, ((), "x"), losses)
    assert before == value
    json.dumps(result, allow_nan=False)

    return result, losses.found


@cache
def released(revision: str) -> Edition:
    return edition(pinned_source(ROOM, revision), vendored=True)


@cache
def differences(old: str, new: str) -> tuple[str, ...]:
    step = next(each for each in STEPS if (each.old, each.new) == (old, new))
    diff = compare(released(old), released(new), renames=step.renames)
    return tuple(f"{each.kind} {each.id}" for each in diff.changes)


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def change_named(step: Step, name: str) -> Change:
    return next(each for each in step.changes if each.name == name)


# The declarations


def test_every_step_between_neighbours_is_declared() -> None:
    revisions = ROOM.revisions

    assert list(itertools.pairwise(revisions)) == [(step.old, step.new) for step in STEPS]


@pytest.mark.parametrize(("step", "change"), CHANGES, ids=[f"{step.new} {change.name}" for step, change in CHANGES])
def test_what_a_change_covers_is_a_difference(step: Step, change: Change) -> None:
    known = [*differences(step.old, step.new), *BEYOND_THE_DIFF.get(step.new, [])]

    assert [] == [each for each in change.covers if not any(matches(each, one) for one in known)]
    assert change.covers or change.at


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.new)
def test_changes_of_a_step_are_told_apart(step: Step) -> None:
    for told in ([each.name for each in step.changes], [each.says for each in step.changes]):
        assert sorted(set(told)) == sorted(told)


@pytest.mark.parametrize(("step", "change"), CHANGES, ids=[f"{step.new} {change.name}" for step, change in CHANGES])
def test_a_change_states_a_fact_of_one_revision_in_one_sentence_and_has_its_place(step: Step, change: Change) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", change.name)
    assert re.fullmatch(rf"(In )?({step.new}|{step.old}) [^.]*\.", change.says)
    assert re.fullmatch(rf"({step.new}|{step.old}), [a-z/-]+#[a-z-]+", change.spec)


def test_renames_are_of_definitions_that_changed_too() -> None:
    renamed = [each for each in differences(to_d.STEP.old, to_d.STEP.new) if each.startswith("definition-renamed")]

    assert {f"definition-renamed {each}" for each in to_d.STEP.renames.values()} <= set(renamed)


MESSAGES = ("request-added", "request-removed", "notification-added", "notification-removed")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.new)
def test_a_message_that_a_side_lacks_is_refused_with_a_service(step: Step) -> None:
    for text in differences(step.old, step.new):
        kind, _, place = text.partition(" ")
        if kind not in MESSAGES:
            continue
        change = next(each for each in step.changes if any(matches(pattern, text) for pattern in each.covers))
        action = change.down if kind.endswith("-added") else change.up

        assert isinstance(action, Refuse), text
        assert action.service is not None, text
        assert not change.at or place in change.at, text


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.new)
def test_an_error_code_that_a_side_lacks_becomes_one_of_json_rpc(step: Step) -> None:
    for text in differences(step.old, step.new):
        kind, _, _ = text.partition(" ")
        if kind in {"error-added", "error-removed"}:
            change = next(each for each in step.changes if text in each.covers)
            action = change.down if kind == "error-added" else change.up

            stays = isinstance(action, (Keep, Refuse))
            assert stays or (isinstance(action, Recode) and -32603 <= action.code <= -32600), text


def test_error_codes() -> None:
    found = {
        pattern.split()[1]: (change.down or change.up)
        for _, change in CHANGES
        for pattern in change.covers
        if pattern.startswith("error-")
    }

    assert Recode(-32602) == found["-32002"]  # 2026-07-28, server/resources "Error Handling"
    assert Recode(-32602) == found["-32022"]  # 2025-11-25, basic/lifecycle "Error Handling"
    assert Recode(-32600) == found["-32020"] == found["-32021"]
    assert Keep() == found["-1"]  # outside JSON-RPC's range: 2026-07-28, basic/index "Error Codes"
    assert Recode(-32603) == change_named(to_d.STEP, "url-elicitation-error").down
    assert Refuse(service="input") == change_named(to_e.STEP, "url-elicitation-error").up


def test_what_every_request_of_2026_07_28_carries() -> None:
    assert Default(value={}, implied=True) == change_named(to_e.STEP, "request-metadata").up
    assert Default(value=to_e.STEP.new, implied=True) == change_named(to_e.STEP, "revision-of-a-request").up
    assert Default(value={}) == change_named(to_e.STEP, "capabilities-of-a-request").up


def test_what_every_list_of_2026_07_28_carries() -> None:
    assert Default(value="complete", implied=True) == change_named(to_e.STEP, "result-type").up
    assert Default(value=0) == change_named(to_e.STEP, "time-to-live").up
    assert Default(value="private") == change_named(to_e.STEP, "cache-scope").up


@pytest.mark.parametrize(
    "name", ["task-augmentation", "task-capabilities", "tool-execution", "elicitation-id", "input-response-metadata"]
)
def test_what_2026_07_28_took_away_is_a_named_loss(name: str) -> None:
    assert Drop() == change_named(to_e.STEP, name).up


@pytest.mark.parametrize(("step", "change"), CHANGES, ids=[f"{step.new} {change.name}" for step, change in CHANGES])
def test_a_conversion_says_what_it_returns(step: Step, change: Change) -> None:
    for action in (change.up, change.down):
        function = (
            action.function if isinstance(action, Convert) else action.make if isinstance(action, Default) else None
        )
        if function is not None:
            assert (function.__doc__ or "").startswith("Return "), step.new


# 2024-11-05 to 2025-03-26


AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": {"priority": 1}, "x": 1}


def test_audio_becomes_an_embedded_resource() -> None:
    resource = {"uri": f"attachment:audio/{sha256(b'AAAA').hexdigest()[:16]}", "mimeType": "audio/wav", "blob": "AAAA"}
    expected = {"type": "resource", "annotations": {"priority": 1}, "x": 1, "resource": resource}

    assert (expected, [("degraded", "x")]) == converted(to_b.attached_audio, AUDIO)


@pytest.mark.parametrize(
    ("function", "block", "key"),
    [
        (to_b.attached_audio, AUDIO, "resource"),
        (to_b.audio_note, AUDIO, "text"),
        (to_c.link_text, {"type": "resource_link", "uri": "file:///a", "name": "a"}, "text"),
        (to_d.tool_note, {"type": "tool_use", "id": "1", "name": "n", "input": {}}, "annotations"),
    ],
)
def test_an_unknown_key_does_not_get_a_meaning_by_a_change_of_type(
    function: Any, block: dict[str, Any], key: str
) -> None:
    plain, _ = converted(function, block)
    made, losses = converted(function, {**block, key: 5})

    assert plain == made
    assert ("degraded", f"x/{key}") in losses


def test_audio_becomes_a_note_in_sampling() -> None:
    text = "[Audio left out: audio/wav, 3 bytes]"
    expected = {"type": "text", "annotations": {"priority": 1}, "x": 1, "text": text}

    assert (expected, [("degraded", "x")]) == converted(to_b.audio_note, AUDIO)


# 2025-03-26 to 2025-06-18


def test_a_text_that_is_the_json_of_what_was_wrapped_is_enough() -> None:
    result = {"content": [{"type": "text", "text": "[1, 2]"}], "structuredContent": {"result": [1, 2]}}

    assert {"content": result["content"]} == converted(to_c.structured_as_text, result)[0]


def test_a_link_becomes_text() -> None:
    link = {
        "type": "resource_link",
        "uri": "file:///a.rs",
        "name": "a.rs",
        "title": "Entry point",
        "description": "Where it starts",
        "mimeType": "text/x-rust",
        "size": 3,
        "annotations": {"priority": 0.5},
        "_meta": {"k": 1},
    }
    kept = {"annotations": {"priority": 0.5}, "_meta": {"k": 1}}

    text = {"type": "text", "text": "Entry point: file:///a.rs\nWhere it starts", **kept}
    assert (text, [("degraded", "x")]) == converted(to_c.link_text, link)


def test_a_link_without_a_title_goes_by_its_name() -> None:
    text, _ = converted(to_c.link_text, {"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs"})

    assert {"type": "text", "text": "a.rs: file:///a.rs"} == text


def text_of(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_structured_content_goes_beside_the_text() -> None:
    result = {"content": [text_of("Sunny.")], "structuredContent": {"sky": "☀", "n": 1}, "isError": False}
    expected = {"content": [text_of("Sunny."), text_of('{"sky": "☀", "n": 1}')], "isError": False}

    assert (expected, [("degraded", "x/structuredContent")]) == converted(to_c.structured_as_text, result)


@pytest.mark.parametrize("text", ['{"n":1,"sky":"☀"}', ' {\n"sky": "\\u2600", "n": 1 }'])
def test_structured_content_that_is_there_as_text_is_not_repeated(text: str) -> None:
    result = {"content": [text_of(text)], "structuredContent": {"sky": "☀", "n": 1}}

    assert {"content": [text_of(text)]} == converted(to_c.structured_as_text, result)[0]


@pytest.mark.parametrize("text", ["{", '{"n": 1', '{"n": true}', '{"n": 1.0}', "[1]", "", '{"n":' * 5000, '{"n": 01}'])
def test_other_text_is_not_the_json_of_structured_content(text: str) -> None:
    result = {"content": [text_of(text), AUDIO], "structuredContent": {"n": 1}}

    assert [text_of(text), AUDIO, text_of('{"n": 1}')] == converted(to_c.structured_as_text, result)[0]["content"]


def test_a_result_without_structured_content_stays() -> None:
    result = {"content": []}

    assert (result, []) == converted(to_c.structured_as_text, result)


# 2025-06-18 to 2025-11-25


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"elicitation": {}},
        {"elicitation": {"form": {"x": 1}, "url": {}}},
        {"elicitation": {"x": 1}},
        {"sampling": {"tools": {}}},
    ],
)
def test_a_client_that_shows_forms_still_does(capabilities: dict[str, Any]) -> None:
    assert (capabilities, []) == converted(to_d.form_or_nothing, capabilities)


def test_that_a_client_shows_forms_is_meant_without_a_word() -> None:
    assert ({"elicitation": {"url": {}}}, []) == converted(
        to_d.form_or_nothing, {"elicitation": {"form": {}, "url": {}}}
    )


def test_a_client_that_only_opens_urls_shows_no_forms() -> None:
    capabilities = {"elicitation": {"url": {}}, "roots": {}}

    assert ({"roots": {}}, [("dropped", "x/elicitation")]) == converted(to_d.form_or_nothing, capabilities)


def test_a_form_needs_no_word_about_its_mode() -> None:
    assert ({"message": "?"}, []) == converted(to_d.as_form, {"mode": "form", "message": "?"})


TITLED = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]


def test_titles_of_options_become_a_list_of_names() -> None:
    schema = {"type": "string", "title": "Colour", "oneOf": TITLED, "default": "g"}
    choice = {"enum": ["r", "g"], "enumNames": ["Red", "Green"]}

    assert ({"type": "string", "title": "Colour", "default": "g", **choice}, []) == converted(
        to_d.named_options, schema
    )


def test_a_choice_of_several_becomes_a_choice_of_one() -> None:
    schema = {
        "type": "array",
        "description": "Which?",
        "items": {"type": "string", "enum": ["r", "g"]},
        "minItems": 1,
        "maxItems": 2,
        "default": ["r", "g"],
    }
    expected = {"type": "string", "description": "Which?", "enum": ["r", "g"]}

    assert (expected, [("degraded", "x")]) == converted(to_d.one_choice, schema)


def test_a_titled_choice_of_several_keeps_its_titles() -> None:
    schema = {"type": "array", "items": {"anyOf": TITLED}}
    expected = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}

    assert (expected, [("degraded", "x")]) == converted(to_d.one_choice, schema)


def test_options_are_read_from_the_key_that_holds_them() -> None:
    schema = {"type": "array", "items": {"type": "string", "enum": ["r"], "anyOf": [1]}}

    assert {"type": "string", "enum": ["r"]} == converted(to_d.one_choice, schema)[0]


@pytest.mark.parametrize(("chosen", "answer"), [(["r", "g"], "r, g"), (["r"], "r"), ([], "")])
def test_chosen_options_become_one_string(chosen: list[str], answer: str) -> None:
    assert (answer, [("degraded", "x")]) == converted(to_d.one_answer, chosen)


CALL = {"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Köln"}, "_meta": {"k": 1}}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
OUTCOME = {
    "type": "tool_result",
    "toolUseId": "1",
    "isError": True,
    "structuredContent": {"n": 1},
    "content": [
        text_of("no"),
        IMAGE,
        {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}},
        {"type": "resource", "resource": {"uri": "a:c", "text": "t"}, "annotations": {}},
    ],
}
CALL_TEXT = '[Tool call] {"id": "1", "name": "weather", "input": {"city": "Köln"}}'


def test_a_tool_call_becomes_a_note() -> None:
    assert ({**text_of(CALL_TEXT), "_meta": {"k": 1}}, [("degraded", "x")]) == converted(to_d.tool_note, CALL)


def test_the_result_of_a_tool_becomes_a_note_without_bytes() -> None:
    note, losses = converted(to_d.tool_note, OUTCOME)
    start, _, told = note["text"].partition("] ")

    assert ("text", "[Tool result", [("degraded", "x")]) == (note["type"], start, losses)
    assert {
        "toolUseId": "1",
        "isError": True,
        "structuredContent": {"n": 1},
        "content": [
            text_of("no"),
            {"type": "image", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a:b"}},
            {"type": "resource", "resource": {"uri": "a:c", "text": "t"}},
        ],
    } == json.loads(told)


@pytest.mark.parametrize(
    ("blocks", "block", "losses"),
    [
        ([], text_of(""), ["degraded"]),
        ([IMAGE], IMAGE, []),
        ([CALL], {**text_of(CALL_TEXT), "_meta": {"k": 1}}, ["degraded"]),
        ([text_of("a"), text_of("b")], text_of("a\n\nb"), ["degraded"]),
        ([text_of("a"), CALL], text_of("a\n\n" + CALL_TEXT), ["degraded"]),
        ([IMAGE, text_of("a")], text_of("[Left out: image, image/png]\n\na"), ["degraded"]),
        ([IMAGE, AUDIO], IMAGE, ["degraded"]),
    ],
)
def test_several_blocks_become_one(blocks: list[Any], block: Any, losses: list[str]) -> None:
    assert (block, [(each, "x") for each in losses]) == converted(to_d.one_block, blocks)


@pytest.mark.parametrize(("blocks", "reason"), [([], "The empty list"), ([IMAGE, AUDIO], "Only the first")])
def test_the_reason_depends_on_the_number_of_blocks(blocks: list[Any], reason: str) -> None:
    way = definition_route("2025-11-25", "2025-06-18", "SamplingMessage")
    (loss,) = way.adapt({"role": "user", "content": blocks}).losses
    assert loss.reason.startswith(reason)


def test_each_block_becomes_a_message() -> None:
    messages = [
        {"role": "user", "content": text_of("a")},
        {"role": "assistant", "content": [text_of("b"), CALL], "_meta": {"k": 1}},
        {"role": "user", "content": [OUTCOME]},
        {"role": "user", "content": []},
    ]
    expected = [
        {"role": "user", "content": text_of("a")},
        {"role": "assistant", "content": text_of("b"), "_meta": {"k": 1}},
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": OUTCOME},
    ]
    losses = [("degraded", "x/1/content"), ("dropped", "x/3")]

    assert (expected, losses) == converted(to_d.one_block_each, messages)


# 2025-11-25 to 2026-07-28


def test_a_complete_result_is_what_older_revisions_know() -> None:
    assert ("complete", []) == converted(to_e.only_complete, "complete")


@pytest.mark.parametrize(("result_type", "service"), [("input_required", "input"), ("task", None)])
def test_no_other_result_is(result_type: str, service: str | None) -> None:
    with pytest.raises(RefusedError) as refused:
        to_e.only_complete(result_type, (), Told())

    assert (service,) == refused.value.args


def test_an_older_result_is_complete_whatever_it_says() -> None:
    for result in ({"content": []}, {"content": [], "resultType": "complete"}):
        assert (result, []) == converted(to_e.as_complete, result)
    for other in ("input_required", 1):
        found = converted(to_e.as_complete, {"content": [], "resultType": other})
        assert ({"content": []}, [("dropped", "x/resultType")]) == found


def test_the_same_elicitation_has_the_same_identifier() -> None:
    params = {"mode": "url", "url": "https://a.example", "message": "Sign in"}
    one = to_e.elicitation_id(params, (), Told())

    assert re.fullmatch("[0-9a-f]{32}", one)
    assert one == to_e.elicitation_id({**params, "x": 1}, (), Told())
    for other in ({"url": "https://b.example"}, {"message": "Sign out"}):
        assert one != to_e.elicitation_id({**params, **other}, (), Told())


def test_at_most_a_hundred_completions() -> None:
    many = {"values": [str(each) for each in range(101)], "hasMore": False, "total": 101}
    expected = {"values": many["values"][:100], "hasMore": True, "total": 101}

    assert (expected, [("degraded", "x/values")]) == converted(to_e.first_hundred, many)
    assert ({**many, "values": []}, []) == converted(to_e.first_hundred, {**many, "values": []})
    assert (expected, []) == converted(to_e.first_hundred, expected)


@pytest.mark.parametrize("value", [None, 1, "a", [], [{"a": 1}], False])
def test_a_result_that_is_no_object_is_wrapped(value: Any) -> None:
    assert ({"result": value}, [("degraded", "x")]) == converted(to_e.as_object, value)


def test_a_result_that_is_an_object_stays() -> None:
    assert ({"a": 1}, []) == converted(to_e.as_object, {"a": 1})


def test_properties_become_objects() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": False, "c": {"type": "string"}}, "required": ["a"]}
    properties = {"a": {}, "b": {"not": {}}, "c": {"type": "string"}}

    assert ({**schema, "properties": properties}, []) == converted(to_e.with_shapes, schema)


def test_what_is_no_schema_goes() -> None:
    schema = {"type": "object", "properties": {"a": 1, "b": {}}, "required": [1]}
    losses = [("dropped", "x/properties/a"), ("dropped", "x/required")]

    assert ({"type": "object", "properties": {"b": {}}}, losses) == converted(to_e.with_shapes, schema)


@pytest.mark.parametrize("junk", [1, "a", None])
def test_keywords_of_the_wrong_shape_go(junk: Any) -> None:
    losses = [("dropped", "x/properties"), ("dropped", "x/required")]

    found = converted(to_e.with_shapes, {"type": "object", "properties": junk, "required": junk})
    assert ({"type": "object"}, losses) == found


WRAPPED = {"properties": {"result": {"$ref": "#/anyOf/0"}}, "required": ["result"]}


def only(schema: dict[str, Any], **outer: Any) -> dict[str, Any]:
    return {**outer, "type": "object", "properties": {"result": schema}, "required": ["result"]}


def either(schema: dict[str, Any], **outer: Any) -> dict[str, Any]:
    return {**outer, "type": "object", "anyOf": [schema, WRAPPED]}


def test_a_schema_of_objects_stays() -> None:
    schema = {"$schema": "s", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": True}}

    assert (schema, []) == converted(to_e.of_objects, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": ["string", "null"]},
        {"const": 1},
        {"enum": ["a", 1, None, []]},
    ],
)
def test_a_schema_without_objects_is_wrapped(schema: dict[str, Any]) -> None:
    assert (only(schema), [("degraded", "x")]) == converted(to_e.of_objects, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["object", "null"]},
        {"const": {}},
        {"enum": [1, {}]},
        {"anyOf": [{"type": "object"}, {"type": "array"}]},
        {"type": 1},
        {"$ref": "https://a.example/s", "type": "array"},
    ],
)
def test_a_schema_that_may_allow_objects_allows_both(schema: dict[str, Any]) -> None:
    assert (either(schema), [("degraded", "x")]) == converted(to_e.of_objects, schema)


def test_the_dialect_stands_at_the_root() -> None:
    found = converted(to_e.of_objects, {"$schema": "s", "type": "array"})[0]

    assert only({"type": "array"}, **{"$schema": "s"}) == found


def test_references_follow_the_schema() -> None:
    schema = {
        "type": "array",
        "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/A"}, {"$ref": "#anchor"}, {"$dynamicRef": "#/$defs/A"}]},
        "$defs": {"A": {"$ref": "other.json#/$defs/A"}, "default": {"$ref": "#"}, "$id": {"$ref": "#"}},
        "properties": {"$ref": {"const": {"$ref": "#"}}, "enum": {"items": [{"$ref": "#/$defs/A"}]}},
        "default": {"$ref": "#"},
        "examples": [{"$ref": "#"}],
    }
    place = "#/properties/result"
    expected = {
        "type": "array",
        "items": {
            "anyOf": [
                {"$ref": place},
                {"$ref": place + "/$defs/A"},
                {"$ref": "#anchor"},
                {"$dynamicRef": place + "/$defs/A"},
            ]
        },
        "$defs": {"A": {"$ref": "other.json#/$defs/A"}, "default": {"$ref": place}, "$id": {"$ref": place}},
        "properties": {"$ref": {"const": {"$ref": "#"}}, "enum": {"items": [{"$ref": place + "/$defs/A"}]}},
        "default": {"$ref": "#"},
        "examples": [{"$ref": "#"}],
    }

    assert only(expected) == converted(to_e.of_objects, schema)[0]


def test_references_into_a_schema_with_an_address_stay() -> None:
    whole = {"$id": "https://a.example/s", "type": "array", "items": {"$ref": "#"}}
    part = {"type": "array", "items": {"$id": "https://a.example/s", "items": {"$ref": "#"}}}
    anchor = {"$id": "#a", "type": "array", "items": {"$ref": "#"}}

    assert only(whole) == converted(to_e.of_objects, whole)[0]
    assert only(part) == converted(to_e.of_objects, part)[0]
    assert only({**anchor, "items": {"$ref": "#/properties/result"}}) == converted(to_e.of_objects, anchor)[0]


@pytest.mark.slow
def test_a_deep_schema_is_no_recursion() -> None:
    schema: dict[str, Any] = {"$ref": "#"}
    for _ in range(100_000):
        schema = {"items": schema}
    found = to_e.moved(schema, "#/anyOf/0", "$id")
    while "items" in found:
        found, schema = found["items"], schema["items"]

    assert ({"$ref": "#/anyOf/0"}, {"$ref": "#"}) == (found, schema)
    while schema.get("items"):
        schema = schema.pop("items")


SCHEMAS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "object", "required": ["a"]}, [{"a": 1}], [{}]),
    ({"type": "array", "items": {"type": "string"}}, [["a"], []], [[1]]),
    ({"type": ["array", "object"], "items": {"$ref": "#"}, "required": ["a"]}, [[], [[]], {"a": 1}], [[1], [[{}]]]),
    ({"$ref": "#/$defs/T", "$defs": {"T": {"enum": [1, {"a": 1}]}}}, [1, {"a": 1}], [2, {"a": 2}]),
    ({"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]}, [None, {"a": 1}], [1, {}]),
    ({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}, [[1, [2]]], [["a"], [[["a"]]]]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SCHEMAS)
@pytest.mark.parametrize(
    "dialect", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_schema_and_value_are_wrapped_by_one_rule(
    schema: dict[str, Any], good: list[Any], bad: list[Any], dialect: str
) -> None:
    given = {"$schema": dialect, **schema}
    wrapped = to_e.of_objects(given, (), Told())
    validators = [jsonschema.validators.validator_for(each)(each) for each in (given, wrapped)]

    for values, is_valid in ((good, True), (bad, False)):
        for value in values:
            found = [
                validators[0].is_valid(value),
                validators[1].is_valid(to_e.as_object(value, (), Told())),
            ]
            assert [is_valid, is_valid] == found, value
    assert "object" == wrapped["type"]
    assert (wrapped, []) == converted(to_e.of_objects, wrapped)
