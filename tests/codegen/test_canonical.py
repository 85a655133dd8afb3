"""The vendored form of a document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpgen.codegen.canonical import canonical_bytes, reduce
from mcpgen.codegen.pinned import SchemaRoom

# A busy machine is no finding: how long an example takes says nothing about what is tested here.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_prose_goes_and_facts_stay() -> None:
    official: dict[str, object] = {
        "$schema": "s",
        "description": "prose",
        "definitions": {
            "description": {"description": "prose", "type": "object"},
            "Tool": {
                "description": "prose",
                "title": "Tool",
                "$comment": "kept",
                "properties": {
                    "description": {"description": "prose", "type": "string"},
                    "properties": {"description": "prose", "items": {"description": "prose"}},
                },
                "required": ["description"],
                "additionalProperties": {"description": "prose", "type": "string"},
                "anyOf": [{"description": "prose"}, {"allOf": [{"description": "prose"}]}],
                "enum": [{"description": "a value"}],
                "const": {"a": {"description": "a value"}},
                "default": {"a": {"description": "a value"}},
                "examples": [{"description": "a value"}],
            },
        },
    }

    assert reduce(official) == {
        "$schema": "s",
        "definitions": {
            "description": {"type": "object"},
            "Tool": {
                "title": "Tool",
                "$comment": "kept",
                "properties": {"description": {"type": "string"}, "properties": {"items": {}}},
                "required": ["description"],
                "additionalProperties": {"type": "string"},
                "anyOf": [{}, {"allOf": [{}]}],
                "enum": [{"description": "a value"}],
                "const": {"a": {"description": "a value"}},
                "default": {"a": {"description": "a value"}},
                "examples": [{"description": "a value"}],
            },
        },
    }


def test_the_document_itself_is_left_alone() -> None:
    document: dict[str, object] = {"$defs": {"A": {"description": "prose"}}}

    reduce(document)

    assert document == {"$defs": {"A": {"description": "prose"}}}


def test_canonical_form_is_two_spaces_ascii_own_order_and_a_newline() -> None:
    assert canonical_bytes({"b": [1, 1.0], "a": "é"}) == b'{\n  "b": [\n    1,\n    1.0\n  ],\n  "a": "\\u00e9"\n}\n'


@pytest.mark.parametrize("revision", SchemaRoom().revisions)
def test_vendored_documents_are_reduced_and_canonical(revision: str) -> None:
    room = SchemaRoom()

    assert canonical_bytes(reduce(room.document(revision))) == room.document_bytes(revision)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["description", "properties", "items", "anyOf", "const", "default", "not", "A"]), inner
        )
    ),
    max_leaves=15,
)


@pytest.mark.slow
@PATIENT
@given(st.dictionaries(st.sampled_from(["description", "$defs", "properties", "allOf", "examples"]), JSON))
def test_reducing_twice_changes_nothing_more(document: dict[str, Any]) -> None:
    once = reduce(document)

    assert reduce(once) == once


@pytest.mark.slow
@PATIENT
@given(st.dictionaries(st.text(), JSON))
def test_canonical_bytes_say_the_same_document(document: dict[str, Any]) -> None:
    assert json.loads(canonical_bytes(document)) == document
