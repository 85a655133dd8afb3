"""Which places of a value its schema declares."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.adapt.declared_keys import is_declared
from mcpgen.runtime.adapt.json_pointer import index_of, look_up, pointer_to, tokens_of
from mcpgen.runtime.adapt.payloads import definition_payload

TOOLS = {
    "tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"q": {"x": 1}}, "x": 1}, "x": 1}],
    "_meta": {"x": {"y": 1}},
    "x": 1,
}
PARAMS = {"_meta": {"progressToken": 1, "x": 1}}
ASKED = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "x": 1}}, "x": 1},
}
SAID = {"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]}


@pytest.mark.parametrize(
    ("name", "value", "pointer", "expected"),
    [
        ("ListToolsResult", TOOLS, "", True),
        ("ListToolsResult", TOOLS, "/tools", True),
        ("ListToolsResult", TOOLS, "/tools/0", True),
        ("ListToolsResult", TOOLS, "/tools/0/name", True),
        ("ListToolsResult", TOOLS, "/tools/0/title", True),
        ("ListToolsResult", TOOLS, "/tools/0/x", False),
        ("ListToolsResult", TOOLS, "/tools/0/name/x", False),
        ("ListToolsResult", TOOLS, "/tools/7/name", False),
        ("ListToolsResult", TOOLS, "/tools/x/name", False),
        ("ListToolsResult", TOOLS, "/tools/0/inputSchema/type", True),
        ("ListToolsResult", TOOLS, "/tools/0/inputSchema/properties/q", True),
        ("ListToolsResult", TOOLS, "/tools/0/inputSchema/properties/q/x", False),
        ("ListToolsResult", TOOLS, "/tools/0/inputSchema/x", False),
        ("ListToolsResult", TOOLS, "/_meta", True),
        ("ListToolsResult", TOOLS, "/_meta/x", False),
        ("ListToolsResult", TOOLS, "/x", False),
        ("PaginatedRequestParams", PARAMS, "/_meta/progressToken", True),
        ("PaginatedRequestParams", PARAMS, "/_meta/x", False),
        ("ElicitRequestParams", ASKED | {"mode": "form"}, "/requestedSchema/properties/a", True),
        ("ElicitRequestParams", ASKED | {"mode": "form"}, "/requestedSchema/properties/a/title", True),
        ("ElicitRequestParams", ASKED | {"mode": "form"}, "/requestedSchema/properties/a/x", False),
        ("ElicitRequestParams", ASKED | {"mode": "form"}, "/requestedSchema/x", False),
        ("SamplingMessage", SAID, "/content/0/annotations", True),
        ("SamplingMessage", SAID, "/content/0/x", False),
        ("Result", {"_meta": {}}, "/_meta", True),
        ("EmptyResult", {"x": 1}, "/x", False),
        ("Error", {"code": 1, "message": "a"}, "/data", True),
        ("Cursor", "a", "/_meta", False),
    ],
)
def test_a_place_is_declared_by_a_key_a_list_or_a_typed_map(
    name: str,
    value: Any,
    pointer: str,
    expected: bool,  # noqa: FBT001
) -> None:
    model, annotation = definition_payload("2025-11-25", name).check(value)

    assert expected == is_declared(model, annotation, tokens_of(pointer))


@pytest.mark.parametrize("tokens", [(), ("a",), ("a/b", "~", ""), ("~1", "0")])
def test_pointers_say_what_they_were_made_of(tokens: tuple[str, ...]) -> None:
    assert tokens == tokens_of(pointer_to(tokens))


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="not a JSON Pointer"):
        tokens_of("a")


def test_looking_up_finds_null() -> None:
    assert look_up({"a": [None]}, ("a", "0")) is None


@pytest.mark.parametrize("token", ["", "-", "-1", "01", "1.0", "\u0661", "3", "9" * 30])
def test_an_index_is_spelt_in_one_way(token: str) -> None:
    assert index_of(token, 3) is None
