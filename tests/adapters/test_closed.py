"""The closed documents refuse foreign keys, wherever they are, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.closed import closed, foreign
from tests.adapters.injections import UNKNOWN
from tests.adapters.subjects import payloads
from tests.oracle.instances import Instances
from tests.oracle.oracle import encoded
from tests.oracle.subjects import REVISIONS, patched
from tests.oracle.validators import Validators, sampled

if TYPE_CHECKING:
    from tests.oracle.shapes import Json

pytestmark = pytest.mark.slow

# jsonschema looks at one instance in this many, jsonschema-rs at all of them.
REFERENCE_SAMPLE = 50

revisions = pytest.mark.parametrize("revision", REVISIONS)

TOOL = {"name": "x", "inputSchema": {"type": "object"}}
TEXT = {"type": "text", "text": ""}
META = {"io.modelcontextprotocol/protocolVersion": "", "io.modelcontextprotocol/clientCapabilities": {}}
ALL = frozenset(REVISIONS)
SINCE_JUNE = frozenset(REVISIONS[2:])
SINCE_NOVEMBER = frozenset(REVISIONS[3:])
NOVEMBER = frozenset(REVISIONS[3:4])
NEWEST = frozenset(REVISIONS[4:])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        pytest.param("Tool", TOOL, ALL, id="the smallest tool"),
        pytest.param("Tool", TOOL | {"x": 1, "Title": ""}, ALL, id="keys that no revision has"),
        pytest.param("Tool", TOOL | {"title": ""}, SINCE_JUNE, id="a key that came"),
        pytest.param("Tool", TOOL | {"execution": {}}, NOVEMBER, id="a key that went again"),
        pytest.param(
            "Tool",
            TOOL | {"inputSchema": {"type": "object", "$schema": ""}},
            ALL,
            id="the dialect of a schema",
        ),
        pytest.param(
            "Tool",
            TOOL | {"inputSchema": {"type": "object", "properties": {"a": {"title": ""}}, "required": []}},
            ALL,
            id="the keywords of a schema",
        ),
        pytest.param("Tool", TOOL | {"_meta": {"progressToken": 1}}, SINCE_JUNE, id="metadata of a definition is free"),
        pytest.param("PromptMessage", {"role": "user", "content": TEXT | {"_meta": {}}}, SINCE_JUNE, id="in a union"),
        pytest.param(
            "CallToolResult", {"content": [TEXT], "structuredContent": {}}, SINCE_JUNE - NEWEST, id="a result"
        ),
        pytest.param(
            "ClientCapabilities", {"sampling": {"tools": {}}}, SINCE_NOVEMBER, id="an object that was free before"
        ),
        pytest.param("ClientCapabilities", {"roots": {"listChanged": True}}, ALL - NEWEST, id="an object without keys"),
        pytest.param("ClientCapabilities", {"experimental": {"tasks": {"url": {}}}}, ALL, id="a map is free"),
        pytest.param(
            "CallToolRequest",
            {"method": "tools/call", "params": {"name": "", "task": {}}},
            frozenset(),  # 2025-11-25 demands jsonrpc and id
            id="inline params",
        ),
        pytest.param(
            "NotificationParams", {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}, NEWEST, id="_meta"
        ),
        pytest.param("RequestMetaObject", META | {"progressToken": 1}, NEWEST, id="the metadata of a request"),
    ],
)
def test_a_key_is_allowed_where_its_revision_has_it(name: str, value: Json, allowed: frozenset[str]) -> None:
    accepting = {revision for revision in REVISIONS if Validators(closed(revision)).accepts(name, value)}

    assert allowed == accepting


@revisions
def test_instances_of_the_patched_document_are_instances_of_the_closed_one(revision: str) -> None:
    validators = Validators(closed(revision))
    instances = Instances(patched(revision))
    refused = [
        (name, value)
        for name in instances.names
        for value in instances.systematic(name)
        if not validators.accepts(name, value)
    ]

    assert refused == []


@revisions
def test_injected_instances_show_every_foreign_key_and_every_unknown_one(revision: str) -> None:
    found = payloads(revision)
    shown: set[str] = set()
    for subject in found.schemas:
        for value in found.instances(subject):
            shown |= set(_keys(value))
    messages = {"id", "jsonrpc"}  # of the messages around the payloads

    assert {key for keys in foreign(revision).values() for key in keys} - messages - shown == set()
    assert set(UNKNOWN) <= shown


@revisions
def test_both_validators_agree(revision: str) -> None:
    found = payloads(revision)
    crossed = [
        (subject, value)
        for subject in found.schemas
        for value in found.instances(subject)
        if sampled(encoded(value), REFERENCE_SAMPLE)
        and found.closed.accepts(subject.key, value) != found.closed.reference_accepts(subject.key, value)
    ]

    assert crossed == []


@revisions
def test_there_are_enough_instances_of_everything(revision: str) -> None:
    found = payloads(revision)

    assert {str(subject): count for subject in found.schemas if (count := len(found.instances(subject))) < 200} == {}


def _keys(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for inner in value.values() for key in _keys(inner))]
    return [key for inner in value for key in _keys(inner)] if isinstance(value, list) else []
