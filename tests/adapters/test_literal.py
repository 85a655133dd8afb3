"""Messages that generated instances do not come upon: literal values, and what the specification makes of them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from mcpgen.runtime.adapt import definition_route, route
from mcpgen.runtime.errors import AdaptationError
from tests.adapters.closed import closed

A, B, C, D, E = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2025-01-01T00:00:00Z",
    "lastUpdatedAt": "2025-01-01T00:00:00Z",
    "ttl": 1,
}
COMPLETE = {"resultType": "complete"}


def adapted(source: str, target: str, method: str, part: Any, value: Any) -> Any:
    return route(source, target, method, part).adapt(value).value


# Keys of one arm of a union may be unknown keys of another


@pytest.mark.spec(D, "basic/utilities/tasks#creating-tasks")
@pytest.mark.parametrize("target", [C, E])
@pytest.mark.parametrize(
    ("method", "junk"),
    [
        ("tools/call", {"content": "x"}),
        ("elicitation/create", {"action": "accept", "content": 5}),
        ("sampling/createMessage", {"role": "user", "content": [5], "model": 5}),
    ],
)
def test_a_task_is_refused_whatever_else_stands_beside_it(target: str, method: str, junk: dict[str, Any]) -> None:
    with pytest.raises(AdaptationError) as refused:
        adapted(D, target, method, "result", {"task": TASK, **junk})

    assert "tasks" == refused.value.service


def test_an_unknown_key_that_is_known_to_the_type_it_becomes_makes_nothing_invalid() -> None:
    block = {"type": "tool_use", "id": "1", "name": "n", "input": {}, "annotations": "hello"}
    params = {"maxTokens": 1, "messages": [{"role": "assistant", "content": block}]}
    (message,) = adapted(D, C, "sampling/createMessage", "params", params)["messages"]

    assert {"type", "text"} == message["content"].keys()


# Errors


@pytest.mark.spec(D, "server/resources#error-handling")
def test_a_resource_that_is_not_there_has_a_code_of_its_own_before_2026_07_28() -> None:
    error = {"code": -32602, "message": "Resource not found", "data": {"uri": "file:///x"}}

    assert {**error, "code": -32002} == adapted(E, D, "resources/read", "error", error)
    assert error == adapted(E, D, "tools/call", "error", error)


@pytest.mark.parametrize("target", [A, B, C, D])
def test_a_missing_resource_of_2026_07_28_with_the_older_code_loses_nothing(target: str) -> None:
    error = {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///x"}}
    kept = route(E, target, "resources/read", "error").adapt(error)
    without_uri = route(E, target, "resources/read", "error").adapt({"code": -32002, "message": "no"})

    assert (error, ()) == (kept.value, tuple(kept.losses))
    assert -32602 == without_uri.value["code"]
    assert [("degraded", "/code")] == [(each.severity, each.pointer) for each in without_uri.losses]


def test_an_error_that_becomes_a_missing_resource_stays_one() -> None:
    error = {"code": -32022, "message": "no", "data": {"uri": "file:///x"}}
    once = adapted(E, D, "resources/read", "error", error)

    assert -32002 == once["code"]
    assert once == adapted(E, D, "resources/read", "error", adapted(D, E, "resources/read", "error", once))


@pytest.mark.spec(E, "basic/index#error-codes")
def test_a_code_outside_the_range_of_json_rpc_is_the_applications() -> None:
    error = {"code": -1, "message": "mine"}

    assert error == adapted(A, E, "tools/call", "error", error)
    assert error == adapted(E, A, "tools/call", "error", error)


@pytest.mark.spec(E, "basic/index#error-codes")
def test_a_code_that_2026_07_28_reserves_is_not_used_by_applications() -> None:
    error = {"code": -32050, "message": "mine"}

    assert {**error, "code": -32603} == adapted(A, E, "tools/call", "error", error)
    assert error == adapted(A, D, "tools/call", "error", error)


@pytest.mark.parametrize(("source", "target"), [(C, A), (B, C), (A, D), (E, D)])
def test_a_code_that_the_source_does_not_define_says_nothing_in_the_target(source: str, target: str) -> None:
    error = {"code": -32042, "message": "m"}

    assert {**error, "code": -32603} == adapted(source, target, "resources/read", "error", error)


# Metadata and capabilities


@pytest.mark.spec(E, "basic/index#meta")
def test_a_request_names_its_own_revision_whatever_an_older_peer_wrote_there() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": D,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }

    assert {**meta, "io.modelcontextprotocol/protocolVersion": E} == adapted(
        D, E, "tools/list", "params", {"_meta": meta}
    )["_meta"]


@pytest.mark.spec(D, "client/elicitation#capabilities")
@pytest.mark.parametrize("source", [A, B])
def test_a_client_that_only_opens_urls_is_not_said_to_show_forms(source: str) -> None:
    way = definition_route(source, D, "ClientCapabilities")

    assert {} == way.adapt({"elicitation": {"url": {}}}).value


# Structured results: schema and value by one rule


WRAPPED = {
    "a list": ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
    "null": ({"type": "null"}, None),
    "a reference to the root": ({"type": ["array", "integer"], "items": {"$ref": "#"}}, [[1], 2]),
    "an empty reference": ({"type": ["array", "integer"], "items": {"$ref": ""}}, [[1], 2]),
    "definitions": ({"type": "array", "items": {"$ref": "#/$defs/i"}, "$defs": {"i": {"type": "integer"}}}, [1]),
    "definitions called as keywords are": (
        {"$ref": "#/components/enum", "components": {"enum": {"type": "array", "items": {"$ref": "#/$defs/i"}}}}
        | {"$defs": {"i": {"type": "integer"}}},
        [1],
    ),
    "anything": ({}, "x"),
    "an object or not": ({"type": ["object", "string"]}, "x"),
    "an object after all": ({"type": ["object", "string"]}, {"a": 1}),
    "draft-07, where a reference has no siblings": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/l", "type": "object"}
        | {"definitions": {"l": {"type": "array"}}},
        [1],
    ),
    "draft-04, where an address is called id": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", "type": "array"}
        | {"items": {"$ref": "#/definitions/i"}, "definitions": {"i": {"type": "integer"}}},
        [1],
    ),
}


@pytest.mark.spec(E, "server/tools#output-schema")
@pytest.mark.parametrize("case", WRAPPED)
@pytest.mark.slow
def test_a_structured_result_is_still_valid_for_its_schema(case: str) -> None:
    schema, value = WRAPPED[case]
    tools = {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}
    listed = {**tools, **COMPLETE, "ttlMs": 0, "cacheScope": "private"}
    (tool,) = adapted(E, D, "tools/list", "result", listed)["tools"]
    result = adapted(E, D, "tools/call", "result", {"content": [], "structuredContent": value, **COMPLETE})

    jsonschema.validate(value, schema)
    jsonschema.validate(result["structuredContent"], tool["outputSchema"])
    jsonschema.validate(tool, {**closed(D), "$ref": "#/$defs/Tool"})


def test_comparing_structured_content_with_many_blocks_takes_linear_time() -> None:
    # Quadratic time took twenty seconds for this.
    blocks = [{"type": "text", "text": "{}"}] * 4000
    result = {"content": blocks, "structuredContent": {"a": [1] * 100_000}}

    assert 4001 == len(adapted(C, B, "tools/call", "result", result)["content"])
