"""What is read although its revision does not allow it, rule by rule, and what is not."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcpgen.runtime.adapt import json_pointer
from mcpgen.runtime.adapt.payloads import message_payload
from mcpgen.runtime.protocol import normalization
from mcpgen.runtime.protocol.normalization import Normalized, normalize
from mcpgen.runtime.protocol.normalization_rules import Rule

Json = Any
NEWEST = "2026-07-28"
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def normalized(method: str, value: Json, *, revision: str = "2025-11-25", part: Any = "result") -> Normalized | None:
    sender: Any = "client" if part in ("params", "result") else "server"
    return normalize(message_payload(revision, method, part, sender), Raw(msgspec.json.encode(value)))


def read(method: str, value: Json, *, revision: str = "2025-11-25", part: Any = "result") -> Json:
    """Return what *value* is read as, None if it is refused; what comes back is valid in its revision."""
    found = normalized(method, value, revision=revision, part=part)
    if found is None:
        return None
    sender: Any = "client" if part in ("params", "result") else "server"
    written = msgspec.json.decode(found.raw)
    message_payload(revision, method, part, sender).check(written)
    return written


def read_tool(**members: Json) -> Json:
    found = read("tools/list", {"tools": [{**TOOL, **members}, TOOL]})
    return None if found is None else found["tools"]


def rules(method: str, value: Json, **place: Any) -> list[Rule]:
    found = normalized(method, value, **place)
    assert found is not None
    return [each.rule for each in found.changes]


def test_the_places_of_changes_are_not_made_of_whole_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = json_pointer.pointer_to
    monkeypatch.setattr(json_pointer, "pointer_to", lambda tokens: made.append(make(tokens)) or made[-1])
    answers = {"~" * 100_000: {"action": "accept", "content": None, "_meta": None}}
    meta = {"io.modelcontextprotocol/protocolVersion": NEWEST, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "x", "inputResponses": answers, "_meta": meta}
    assert [Rule.NULL] == rules("tools/call", params, revision=NEWEST, part="params")
    assert made
    assert max(map(len, made)) < 1000


def test_null_of_an_optional_key_is_absent_at_any_depth() -> None:
    assert [TOOL, TOOL] == read_tool(title=None, annotations=None, _meta=None)
    assert [{**TOOL, "annotations": {}}, TOOL] == read_tool(annotations={"readOnlyHint": None})
    assert [Rule.NULL] == rules("tools/list", {"tools": [TOOL], "nextCursor": None, "_meta": None})


def test_null_stays_where_the_revision_allows_it() -> None:
    result = {"content": [], "structuredContent": None, "resultType": "complete", "isError": None}

    assert {"content": [], "structuredContent": None, "resultType": "complete"} == read(
        "tools/call", result, revision=NEWEST
    )
    assert {"content": []} == read("tools/call", {"content": [], "structuredContent": None})


def test_null_in_data_stays() -> None:
    result = {"content": [], "structuredContent": {"a": None}, "isError": None}

    assert {"content": [], "structuredContent": {"a": None}} == read("tools/call", result)
    assert {"name": "t", "arguments": {"a": None}} == read(
        "tools/call", {"name": "t", "arguments": {"a": None}, "_meta": None}, part="params"
    )


def test_an_argument_of_a_prompt_that_is_null_is_absent() -> None:
    params = {"name": "p", "arguments": {"a": None, "b": "x"}}

    assert {"name": "p", "arguments": {"b": "x"}} == read("prompts/get", params, part="params")


@pytest.mark.parametrize(("written", "meant"), [("true", True), ("False", False), (1, True), (0, False), (1.0, True)])
def test_a_text_or_a_number_is_read_as_true_or_false(written: object, meant: bool) -> None:  # noqa: FBT001 (a case)
    assert {"content": [], "isError": meant} == read("tools/call", {"content": [], "isError": written})


@pytest.mark.parametrize("written", ["yes", "", "1", 2, -1, [], {}])
def test_anything_else_is_not_read_as_true_or_false(written: object) -> None:
    assert read("tools/call", {"content": [], "isError": written}) is None


@pytest.mark.parametrize(("written", "meant"), [(5.0, 5), ("5", 5), ("-5", -5), ("5.0", 5)])
def test_a_text_or_a_fraction_of_zero_is_read_as_an_integer(written: object, meant: int) -> None:
    resource = {"uri": "a:b", "name": "a"}
    found = read("resources/list", {"resources": [{**resource, "size": written}]})

    assert {"resources": [{**resource, "size": meant}]} == found
    assert isinstance(found["resources"][0]["size"], int)


@pytest.mark.parametrize("written", [5.5, "5.5", "five", "", " 5", "1e3", "\u0665", "9" * 5000, True, 1e300])
def test_anything_else_is_not_read_as_an_integer(written: object) -> None:
    assert read("completion/complete", {"completion": {"values": [], "total": written}}) is None


def test_a_text_is_read_as_a_number_within_its_range() -> None:
    def block(priority: object) -> Json:
        return {"type": "text", "text": "x", "annotations": {"priority": priority}}

    assert {"content": [block(0.5)]} == read("tools/call", {"content": [block("0.5")]})
    assert read("tools/call", {"content": [block("1.5")]}) is None


def test_a_schema_without_a_type_is_that_of_an_object() -> None:
    assert [TOOL, TOOL] == read_tool(inputSchema={})
    assert [{**TOOL, "outputSchema": {"type": "object"}}, TOOL] == read_tool(outputSchema={"type": None})


def test_properties_that_are_no_objects_become_schemas_that_mean_the_same() -> None:
    given = {"any": True, "none": False, "null": None, "text": "string", "unknown": "thing", "kept": {"type": "null"}}
    meant = {
        "any": {},
        "none": {"not": {}},
        "null": {},
        "text": {"type": "string"},
        "unknown": {},
        "kept": {"type": "null"},
    }

    assert [{**TOOL, "inputSchema": {"type": "object", "properties": meant}}, TOOL] == read_tool(
        inputSchema={"type": "object", "properties": given}
    )


def test_content_that_is_missing_is_empty() -> None:
    assert {"structuredContent": {"a": 1}, "content": []} == read("tools/call", {"structuredContent": {"a": 1}})
    assert [Rule.MISSING] == rules("tools/call", {})


def test_a_result_that_is_meant_as_another_one_is_not_read_without_its_contents() -> None:
    assert read("tools/call", {"task": {"taskId": 1}}) is None
    assert {"resultType": "input_required", "requestState": "s"} == read(
        "tools/call", {"resultType": "input_required", "requestState": "s", "inputRequests": None}, revision=NEWEST
    )


def test_what_a_result_of_the_stateless_revision_must_say_of_caches_is_nothing_if_it_is_missing() -> None:
    found = read("tools/list", {"tools": []}, revision=NEWEST)

    assert {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"} == found


@pytest.mark.parametrize(
    "invalid", [None, 5, [], {"inputSchema": {}}, {"name": 1, "inputSchema": {}}, {"name": "b", "inputSchema": "x"}]
)
def test_an_invalid_item_costs_no_other_and_is_described(invalid: object) -> None:
    found = normalized("tools/list", {"tools": [TOOL, invalid, TOOL]})

    assert found is not None
    assert {"tools": [TOOL, TOOL]} == msgspec.json.decode(found.raw)
    [change] = found.changes
    assert (Rule.ITEM, ["/tools/1"], 1) == (change.rule, change.pointers, change.total)
    assert change.detail


def test_the_name_of_an_item_that_is_left_out_is_given() -> None:
    found = normalized("tools/list", {"tools": [TOOL, {"name": "calc\n", "inputSchema": "none"}]})

    assert found is not None
    assert found.changes[0].detail.startswith("calc\\n: Expected `object`")


def test_items_that_break_a_limit_of_the_types_are_left_out_too() -> None:
    prompt = {"name": "p"}

    assert {"prompts": [prompt]} == read("prompts/list", {"prompts": [prompt, {"name": "q", "icons": [{"src": 5}]}]})


def test_a_list_of_nothing_but_invalid_items_is_refused() -> None:
    assert read("tools/list", {"tools": [{"name": 1}, None]}) is None


def test_few_of_many_invalid_items_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Json] = []
    monkeypatch.setattr(normalization, "_described", lambda item, _: described.append(item) or "wrong")
    found = normalized("tools/list", {"tools": [*range(3000), TOOL]})
    assert found is not None
    assert 3000 == sum(each.total for each in found.changes)
    assert 1000 == len(described)


def test_contents_are_never_left_out() -> None:
    assert read("tools/call", {"content": [{"type": "text", "text": "x"}, {"type": "text"}]}) is None
    assert read("resources/read", {"contents": [{"uri": "a:b", "text": "x"}, {"uri": "a:c"}]}) is None


def test_the_arm_of_a_union_is_that_which_knows_most_keys() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string", "title": None, "maxLength": 5.0}}}
    params = {"message": "?", "requestedSchema": form}
    payload = message_payload("2025-11-25", "elicitation/create", "params", "server")
    found = normalize(payload, Raw(msgspec.json.encode(params)))

    assert found is not None
    fields = msgspec.json.decode(found.raw)["requestedSchema"]["properties"]
    assert {"a": {"type": "string", "maxLength": 5}} == fields


def test_a_block_of_an_unknown_type_is_not_guessed() -> None:
    assert read("tools/call", {"content": [{"type": "video", "text": "x", "annotations": None}]}) is None
    assert read("tools/call", {"content": [{"text": "x"}]}) is None


def test_a_valid_payload_has_nothing_to_normalise() -> None:
    assert normalized("tools/list", {"tools": [TOOL]}) is None


def test_unknown_keys_and_the_order_of_keys_stay() -> None:
    result = {"x": {"y": None}, "tools": [{"b": None, **TOOL, "title": None, "a": 1}], "nextCursor": None, "z": None}

    assert ["x", "tools", "z"] == list(read("tools/list", result))
    assert ["b", "name", "inputSchema", "a"] == list(read("tools/list", result)["tools"][0])


def test_what_is_reported_is_bounded() -> None:
    tools = [{**TOOL, "title": None}] * 500 + [{"name": f"bad-{number}"} for number in range(500)]
    found = normalized("tools/list", {"tools": tools})

    assert found is not None
    assert 500 == next(each.total for each in found.changes if each.rule is Rule.NULL)
    assert len(found.changes) < 50
    assert all(len(each.pointers) <= 3 for each in found.changes)


def test_nesting_that_is_too_deep_is_refused() -> None:
    deep = b'{"tools":[],"nextCursor":null,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert normalize(message_payload("2025-11-25", "tools/list", "result", "client"), Raw(deep)) is None


@pytest.mark.slow
def test_the_work_grows_with_the_size_of_the_payload_and_not_faster() -> None:
    def seconds(count: int) -> float:
        raw = Raw(msgspec.json.encode({"tools": [{**TOOL, "title": None, "annotations": {"title": None}}] * count}))
        payload = message_payload("2025-11-25", "tools/list", "result", "client")
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            assert normalize(payload, raw) is not None
            best = min(best, time.process_time() - start)
        return best

    small = seconds(500)

    assert seconds(5000) < 40 * small  # ten times the size; a quadratic rule would take a hundred times as long
