"""Unions that no constant tells apart: the right arm, nothing lost, and the same wherever such a union stands."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import pytest

from mcpgen.generated import registry
from mcpgen.generated import v2025_11_25 as sessions
from mcpgen.generated import v2026_07_28 as stateless

if TYPE_CHECKING:
    from types import ModuleType

LABELS = [each.label for each in registry.REVISIONS]
TEXT = '{"uri":"file:///a","text":"hi"}'


@pytest.fixture(params=LABELS)
def mcp(request: pytest.FixtureRequest) -> ModuleType:
    return registry.revision(request.param).bindings()


# Integers that are written as 1.0


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":1.0,"method":"ping"}',
        '{"jsonrpc":"2.0","id":-3e2,"method":"ping","params":{"a":[1.5]}}',
    ],
)
def test_a_request_is_not_taken_for_a_notification_because_of_how_its_id_is_written(
    mcp: ModuleType, message: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        mcp.decode(message, mcp.JSONRPCMessage)
    assert "`JSONRPCRequest`: Expected `int | str`, got `float` - at `$.id`" == str(caught.value)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1.0,"b":[2.0,1e300]}}', "JSONRPCRequest"),
        ('{"jsonrpc":"2.0","method":"ping","params":{"a":1.0,"b":[2.0,1e300]}}', "JSONRPCNotification"),
        # By its schema it is no request, whatever the id is meant for.
        ('{"jsonrpc":"2.0","id":1.5,"method":"ping","params":{"a":1.0}}', "JSONRPCNotification"),
    ],
)
def test_floats_that_stand_for_no_integer_change_nothing(mcp: ModuleType, message: str, kind: str) -> None:
    found = mcp.decode(message, mcp.JSONRPCMessage)

    assert kind == type(found).__name__
    assert json.loads(message)["params"] == found.params


# Results


@pytest.mark.parametrize(
    ("bindings", "union", "data", "kind"),
    [
        (sessions, "ServerResult", '{"tools":[]}', "ListToolsResult"),
        (sessions, "ServerResult", '{"tools":[],"nextCursor":"a"}', "ListToolsResult"),
        (sessions, "ServerResult", '{"content":[{"type":"text","text":"hi"}]}', "CallToolResult"),
        (sessions, "ClientResult", '{"action":"decline"}', "ElicitResult"),
        (sessions, "ClientResult", '{"roots":[]}', "ListRootsResult"),
        (stateless, "ServerResult", '{"resultType":"input_required","inputRequests":{}}', "InputRequiredResult"),
        (stateless, "ServerResult", '{"resultType":"complete","content":[]}', "CallToolResult"),
        (sessions, "ServerResult", "{}", "dict"),
        (sessions, "ServerResult", '{"tools":[],"com.example/more":1}', "dict"),  # which keeps all of it
    ],
)
def test_a_result_is_of_its_class_unless_that_would_lose_something(
    bindings: Any, union: str, data: str, kind: str
) -> None:
    found = bindings.decode(data, getattr(bindings, union))

    assert kind == type(found).__name__
    assert json.loads(data) == json.loads(msgspec.json.encode(found))


# Beside other types


@pytest.mark.parametrize(
    ("data", "kind", "names"),
    [
        ("null", sessions.EmbeddedResourceResource | None, ["NoneType"]),
        (TEXT, sessions.EmbeddedResourceResource | None, ["TextResourceContents"]),
        (f"[null,{TEXT}]", list[sessions.EmbeddedResourceResource | None], ["NoneType", "TextResourceContents"]),
        (
            '{"jsonrpc":"2.0","method":"a"}',
            sessions.JSONRPCMessage | list[sessions.JSONRPCMessage],
            ["JSONRPCNotification"],
        ),
        (
            '[{"jsonrpc":"2.0","method":"a"}]',
            sessions.JSONRPCMessage | list[sessions.JSONRPCMessage],
            ["JSONRPCNotification"],
        ),
        ('"a"', str | sessions.EmbeddedResourceResource, ["str"]),
    ],
)
def test_a_structural_union_may_stand_beside_other_types(data: str, kind: Any, names: list[str]) -> None:
    found = sessions.decode(data, kind)

    assert names == [type(each).__name__ for each in (found if isinstance(found, list) else [found])]


@pytest.mark.parametrize("data", ["5", "[]", "{}", '{"uri":"a"}'])
def test_what_is_none_of_them_is_refused(data: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        sessions.decode(data, sessions.EmbeddedResourceResource | None)


# Inside classes of others


class Holder(msgspec.Struct):
    resource: sessions.EmbeddedResourceResource


class Outer(msgspec.Struct):
    inner: list[Holder] | None = None
    again: Outer | None = None


@dataclasses.dataclass
class Plain:
    resource: sessions.EmbeddedResourceResource


class Typed(TypedDict):
    meta: sessions.RequestMetaObject


@pytest.mark.parametrize("kind", [Holder, list[Holder], Outer, dict[str, Outer], Plain, Typed])
def test_a_class_of_somebody_else_that_holds_one_is_refused_when_its_decoder_is_made(kind: Any) -> None:
    with pytest.raises(
        TypeError, match="contains an open object or a structural union, which cannot be decoded inside"
    ):
        sessions.decoder(kind)


class Tools(msgspec.Struct):
    tools: list[sessions.Tool]
    more: Tools | None = None


def test_a_class_of_somebody_else_may_hold_classes() -> None:
    found = sessions.decode('{"tools":[{"name":"a","inputSchema":{"type":"object","x":1}}]}', Tools)

    assert {"type": "object", "x": 1} == found.tools[0].input_schema


# On construction


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sessions.ReadResourceResult(contents=5), "Expected `array`, got `int` in `contents`"),  # type: ignore[arg-type]  # what is tried
        (lambda: sessions.ReadResourceResult(contents=""), "Expected `array`, got `str` in `contents`"),  # type: ignore[arg-type]  # what is tried
        (lambda: sessions.ReadResourceResult(contents={}), "Expected `array`, got `dict` in `contents`"),  # type: ignore[arg-type]  # what is tried
        (
            lambda: sessions.ElicitRequestFormParamsRequestedSchema(properties=5),  # type: ignore[arg-type]  # what is tried
            "Expected `object`, got `int` in `properties`",
        ),
        (
            lambda: stateless.CallToolRequestParams(
                name="a",
                meta={
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
                input_responses=5,  # type: ignore[arg-type]  # what is tried
            ),
            "Expected `object`, got `int` in `inputResponses`",
        ),
    ],
)
def test_a_container_of_the_wrong_kind_is_refused_with_its_place(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("held", [b"x", object(), {1: 2}, sessions.TextContent(text="a")])
def test_what_a_value_holds_beside_json_is_no_matter_of_its_union(held: object) -> None:
    # The other arm would take it if 1.0 were text: whether something is lost is asked then.
    given: Any = {"uri": "a", "text": "b", "blob": 1.0, "_meta": {"x": held}}
    resource = sessions.EmbeddedResource(resource=given).resource

    assert isinstance(resource, sessions.TextResourceContents)
    assert {"x": held} == resource.meta


def test_an_error_reads_the_same_whenever_it_comes() -> None:
    messages = []
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError) as caught:
            sessions.decode('{"uri":"a","text":5}', sessions.EmbeddedResourceResource)
        messages.append(str(caught.value))

    assert ["Expected `str`, got `int` - at `$.text`"] * 2 == messages


def test_little_is_called_for_an_arm_that_does_not_fit() -> None:
    """A message can have thousands of such values."""
    calls: list[str] = []
    sessions.decode('{"uri":"a","text":"b"}', sessions.EmbeddedResourceResource)  # makes the arms
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        for _ in range(100):
            sessions.decode('{"uri":"a","text":"b","blob":1.0}', sessions.EmbeddedResourceResource)
    finally:
        sys.setprofile(None)

    assert len(calls) < 100 * 20


def test_the_choices_of_a_form_are_not_counted_one_by_one() -> None:
    """A form can have 48,000 choices, and it fits several arms."""
    field = {"type": "string", "enum": [f"choice {number}" for number in range(1000)]}
    form = json.dumps({"message": "", "requestedSchema": {"type": "object", "properties": {"a": field}}})
    stateless.decode(form, stateless.ElicitRequestFormParams)  # makes the arms
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "c_call" else None)
    try:
        stateless.decode(form, stateless.ElicitRequestFormParams)
    finally:
        sys.setprofile(None)

    assert len(calls) < 1000


def test_a_value_that_holds_itself_is_read_to_its_end() -> None:
    meta: dict[str, Any] = {"n": 1.0}
    meta["self"] = meta
    given: Any = {"uri": "a", "text": "b", "blob": 1.0, "_meta": meta}
    resource = sessions.EmbeddedResource(resource=given).resource

    assert isinstance(resource, sessions.TextResourceContents)


LONG = "\x7f" * 100_000
ASKED = '{"message":"","requestedSchema":{"type":"object","properties":{"a":{"type":"%s"}}}}'
RETRIED = (
    '{"name":"t","inputResponses":{"a":{"action":"%s"}},"_meta":{"io.modelcontextprotocol/protocolVersion":"",'
    '"io.modelcontextprotocol/clientCapabilities":{}}}'
)


@pytest.mark.parametrize(
    ("decode", "kind", "message", "place"),
    [
        (sessions.decode, sessions.ElicitRequestFormParams, ASKED, "requestedSchema.properties[...]"),
        (stateless.decode, stateless.CallToolRequestParams, RETRIED, "inputResponses[...].action"),
    ],
)
def test_the_error_about_a_long_value_is_short_and_names_the_place(
    decode: Any, kind: Any, message: str, place: str
) -> None:
    """msgspec repeats the value for each arm, and each level around the union would read all of it again."""
    with pytest.raises(msgspec.ValidationError) as caught:
        decode(message % LONG, kind)

    assert len(str(caught.value)) < 5000
    assert str(caught.value).endswith(f" in `{place}`")


def test_text_that_is_not_utf_8_is_not_json(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.DecodeError, match="UTF-8"):
        mcp.decode(b'{"type":"text","text":"\xff"}', mcp.TextContent)
