"""Methods of a document: none vanishes unseen, and what a side can do is declared only where that is always valid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen.diagnostics import Refused
from tests.codegen.packages import build, load

if TYPE_CHECKING:
    from pathlib import Path


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def message(method: Any, *, required: bool = True) -> dict[str, Any]:
    return {"type": "object", "properties": {"method": method}, "required": ["method"] * required}


def document(**more: Any) -> dict[str, Any]:
    """Return a document in which a client may ask for ``tools/list``."""
    definitions: dict[str, Any] = {
        "ClientRequest": {"anyOf": [ref("ListToolsRequest")]},
        "ListToolsRequest": message({"const": "tools/list"}),
        "ListToolsResult": {"type": "object", "properties": {"tools": {}}},
    }
    definitions |= more
    if "ListToolsRequest" not in json.dumps([each for name, each in definitions.items() if name != "ListToolsRequest"]):
        del definitions["ListToolsRequest"]  # a request that no union lists is a fault of its own
    return {"$defs": definitions}


def errors(content: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        build(content)
    return [(each.code, each.pointer) for each in refused.value.diagnostics if each.severity == "error"]


UNIONS = ["ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification", "InputRequest"]


@pytest.mark.parametrize("union", UNIONS)
def test_two_messages_of_a_direction_have_two_methods(union: str) -> None:
    arms = {"OneMessage": message({"const": "same"}), "OtherMessage": message({"const": "same"})}
    content = document(**arms, **{union: {"anyOf": [*map(ref, arms)]}})

    assert [("MG131", "/$defs/OneMessage")] == errors(content)


def test_both_directions_may_have_a_method(tmp_path: Path) -> None:
    content = document(
        PingRequest=message({"const": "ping"}), ClientRequest=ref("PingRequest"), ServerRequest=ref("PingRequest")
    )
    door = load(build(content), tmp_path)

    assert ["ping"] == list(door.methods.CLIENT_REQUESTS) == list(door.methods.SERVER_REQUESTS)


@pytest.mark.slow
def test_a_message_may_be_reached_by_two_ways(tmp_path: Path) -> None:
    ways = {"Way": {"anyOf": [ref("ListToolsRequest")]}, "Other": {"anyOf": [ref("Way"), ref("ListToolsRequest")]}}
    door = load(build(document(**ways, ClientRequest={"anyOf": [ref("Way"), ref("Other")]})), tmp_path)

    assert ["tools/list"] == list(door.methods.CLIENT_REQUESTS)


@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize(
    "odd",
    [
        message({"enum": ["x", "y"]}),
        message({"type": "string"}),
        message({"const": 1}),
        message({"const": "x"}, required=False),
        {"type": "object", "properties": {"id": {"type": "string"}}},
    ],
)
def test_a_message_fixes_its_method(odd: dict[str, Any], union: str) -> None:
    assert [("MG132", "/$defs/OddRequest")] == errors(document(OddRequest=odd, **{union: ref("OddRequest")}))


def test_a_message_is_an_object() -> None:
    union = {"anyOf": [ref("ListToolsRequest"), {"type": "string"}]}

    assert [("MG132", "/$defs/ClientRequest")] == errors(document(ClientRequest=union))


# Capabilities

OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"tools": {"type": "object"}}}


def with_tools(tools: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"tools": tools}, "required": list(required)}


@pytest.mark.parametrize(
    "capabilities",
    [
        OPTIONAL,
        with_tools({"type": "boolean"}),
        with_tools({}),
        with_tools({"anyOf": [{"type": "string"}, {"type": "object"}]}),
        with_tools({"type": "object", "properties": {"listChanged": {"type": "boolean"}}}),
        {"type": "object", "additionalProperties": {"type": "object"}},
        {},
        ref("Others"),
    ],
)
@pytest.mark.slow
def test_what_is_declared_is_valid_whatever_is_served(capabilities: dict[str, Any], tmp_path: Path) -> None:
    package = build(document(ServerCapabilities=capabilities, Others=OPTIONAL))
    server = load(package, tmp_path).server

    class Tools(server.ServerHandlers):  # type: ignore[misc]  # of a package that exists only now
        async def list_tools(self, params: object, context: object, /) -> object: ...

    assert "MG133" not in {each.code for each in package.findings}
    server.ServerHandlers().capabilities()
    Tools().capabilities()


@pytest.mark.parametrize(
    "capabilities",
    [
        with_tools({"type": "object"}, "tools"),
        with_tools({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        with_tools({"type": "string"}),
        with_tools({"const": "yes"}),
        with_tools({"type": "array"}),
        with_tools({"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        {"type": "string"},
        {"type": "boolean"},
        {"type": ["null", "integer"]},
    ],
)
@pytest.mark.slow
def test_capabilities_that_methods_cannot_make_are_not_declared(capabilities: dict[str, Any], tmp_path: Path) -> None:
    package = build(document(ServerCapabilities=capabilities))
    found = [(each.code, each.severity, each.pointer) for each in package.findings]

    assert [("MG133", "warning", "/$defs/ServerCapabilities")] == found
    assert not hasattr(load(package, tmp_path).server.ServerHandlers, "capabilities")


STRAY = message({"const": "stray/do"})


@pytest.mark.slow
def test_a_message_that_no_direction_lists_is_refused() -> None:
    assert [("MG135", "/$defs/StrayRequest")] == errors(document(StrayRequest=STRAY))
    assert [("MG135", "/$defs/StrayNotification")] == errors(document(StrayNotification=STRAY))


def test_a_document_without_directions_may_describe_messages(tmp_path: Path) -> None:
    assert "stray/do" in build({"$defs": {"StrayRequest": STRAY}}).files["messages.py"]


def test_a_response_without_its_request_is_a_warning() -> None:
    response = {"type": "object", "properties": {"result": {"$ref": "#/$defs/ListToolsResult"}}}
    package = build(document(MovedResultResponse=response, MovedRequestParams={"type": "object", "properties": {}}))

    assert ("MG136", "warning", "/$defs/MovedResultResponse") in [
        (each.code, each.severity, each.pointer) for each in package.findings
    ]
