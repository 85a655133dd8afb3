"""What counts as JSON, and how a fault is placed."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.generated.v2025_11_25 import Root
from mcpgen.runtime.adapt.payloads import definition_payload, message_payload
from mcpgen.runtime.errors import InvalidPayload


class Whole(int):
    """An integer that msgspec does not encode."""


ARGUMENTS = message_payload("2025-11-25", "tools/call", "params", None)


@pytest.mark.parametrize(
    ("value", "pointer", "says"),
    [
        ({"a": float("nan")}, "/a", "nan is not a JSON value"),
        ({"a": [1, float("-inf")]}, "/a/1", "-inf is not a JSON value"),
        ({"a/b": {"~": (1, 2)}}, "/a~1b/~0", "a value of the type tuple is not a JSON value"),
        ({"a": {1: 2}}, "/a", "a key of an object is not a string: 1"),
        ({"a": {None: 2}}, "/a", "a key of an object is not a string: None"),
        ({"a": b"x"}, "/a", "a value of the type bytes is not a JSON value"),
        ({"a": {1, 2}}, "/a", "a value of the type set is not a JSON value"),
        ({"a": object()}, "/a", "a value of the type object is not a JSON value"),
        (
            {"a": Root(uri="file:///a")},
            "/a",
            "a value of the type Root is not a JSON value; convert it: msgspec.to_builtins(…)",
        ),
        ({"a": "\ud800"}, "/a", "a string holds half of a surrogate pair"),
        ({"a": {"\udc00": 1}}, "/a", "a key of an object holds half of a surrogate pair: '\\udc00'"),
        ({"a": Whole(1)}, "/a", "a value of the type Whole is not a JSON value"),
        ({"a": 10**5000}, "/a", "an integer is too large"),
    ],
)
def test_what_is_no_json_is_refused_where_it_stands(value: Any, pointer: str, says: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        ARGUMENTS.check({"name": "a", "arguments": value})

    assert (f"/arguments{pointer}", says) == (caught.value.pointer, caught.value.reason)


@pytest.mark.parametrize("value", [-0.0, 5e-324, 1.7976931348623157e308, 2**63, -(2**63), "\U0001f600", None, True])
def test_every_json_value_is_accepted_where_anything_may_stand(value: Any) -> None:
    ARGUMENTS.check({"name": "a", "arguments": {"x": value}})


class Odd(dict[str, int]):
    """A dict that equals nothing."""

    __hash__ = None  # type: ignore[assignment]  # as for every dict; mypy wants a method where __eq__ is overridden

    def __eq__(self, other: object) -> bool:
        return False


def test_what_only_seems_to_be_json_is_refused() -> None:
    with pytest.raises(InvalidPayload, match="it is not a JSON value"):
        ARGUMENTS.check(Odd())


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_params_are_an_object(value: Any) -> None:
    with pytest.raises(
        InvalidPayload, match=r"^the params of tools/call are not valid in 2025-11-25: Expected `object`"
    ):
        ARGUMENTS.check(value)


SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("name", "value", "pointer"),
    [
        ("ListToolsResult", {"tools": [{"name": 1, "inputSchema": SCHEMA}]}, "/tools/0/name"),
        ("ListToolsResult", {"tools": [{"name": "a", "inputSchema": {"type": "x"}}]}, "/tools/0/inputSchema/type"),
        (
            "ListToolsResult",
            {"tools": [{"name": "a", "inputSchema": SCHEMA | {"properties": {"secret key": 1}}}]},
            "/tools/0/inputSchema/properties",
        ),
        ("CallToolResult", {"content": [{"type": "nope"}]}, "/content/0/type"),
        ("CallToolResult", {"content": [{"type": "resource", "resource": {"uri": "x"}}]}, "/content/0/resource"),
        ("PaginatedRequestParams", {"_meta": {"progressToken": []}}, "/_meta/progressToken"),
        ("PaginatedRequestParams", {"cursor": None}, "/cursor"),
        ("ElicitResult", {"action": "accept", "content": {"a": {}}}, "/content"),
        ("Error", {"code": 1, "message": "x", "data": 1, "code ": 2}, None),
        ("Error", {"code": 1.5, "message": "x"}, "/code"),
    ],
)
def test_a_fault_has_a_pointer(name: str, value: Any, pointer: str | None) -> None:
    payload = definition_payload("2025-11-25", name)
    if pointer is None:
        payload.check(value)
        return
    with pytest.raises(InvalidPayload) as caught:
        payload.check(value)

    assert pointer == caught.value.pointer


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"x": 1, "y": "z"}, "Expected `str`, got `int` in one of its values"),
        (1, "Expected `object`, got `int`"),
    ],
)
def test_a_fault_of_a_value_in_a_map_is_not_told_of_the_map(arguments: Any, reason: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        message_payload("2025-11-25", "prompts/get", "params", None).check({"name": "a", "arguments": arguments})

    assert ("/arguments", reason) == (caught.value.pointer, caught.value.reason)


def test_a_fault_below_a_name_with_dots_has_a_pointer() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": 1, "version": "1"},
    }
    with pytest.raises(InvalidPayload) as caught:
        message_payload("2026-07-28", "tools/list", "params", None).check({"_meta": meta})

    assert "/_meta/io.modelcontextprotocol~1clientInfo/name" == caught.value.pointer


@pytest.mark.parametrize("text", ["x" * 10**6, "` - at `$.name" * 10_000, " in `" * 10_000, "'\n" * 10_000])
def test_what_a_peer_wrote_makes_no_long_message(text: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        definition_payload("2025-11-25", "LoggingMessageNotificationParams").check({"level": text, "data": 1})

    assert len(str(caught.value)) < 2500
