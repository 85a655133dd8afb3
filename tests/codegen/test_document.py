"""What is read from a file, and which schemas are taken."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpgen.codegen import references
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.document import (
    MAX_DEPTH,
    MAX_DOCUMENT_BYTES,
    check_document,
    check_mcp,
    parse_document,
    read_document,
)
from mcpgen.codegen.keywords import CHECKS
from mcpgen.codegen.nesting import MAX_NESTING
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.references import MAX_ALIAS_CHAIN, MOST_SUGGESTIONS
from mcpgen.codegen.schema_checks import MAX_FINDINGS

if TYPE_CHECKING:
    from pathlib import Path

# A busy machine is no finding: how long an example takes says nothing about what is tested here.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def found(diagnostics: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.pointer) for finding in diagnostics if finding.severity == "error"]


def refusal(content: bytes) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as caught:
        parse_document(content, name="x.json")
    return found(caught.value.diagnostics)


def faults(schema: Any, **others: Any) -> list[tuple[str, str]]:
    """The codes and places, from the definition on, of the faults in a document that defines A as *schema*."""
    return [
        (code, pointer.removeprefix("/$defs/A"))
        for code, pointer in found(check_document({"$defs": {"A": schema} | others}))
    ]


# --- reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1 "b": 2}', "a comma, or a closing bracket or brace, is missing, line 1, column 9"),
        (b'{"a" 1}', "a colon is missing after the key, line 1, column 6"),
        (b'{"a": "b}', "the string has no end, line 1, column 7"),
    ],
)
def test_a_document_that_is_not_json_is_described_in_our_words(content: bytes, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_document(content, name="x.json")

    assert [f"x.json is not JSON: {reason}"] == [each.message for each in caught.value.diagnostics]


def test_a_document_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"b": [1, 1.0, true, null], "a": "é\\u00e9"}', encoding="utf-8")

    document = read_document(path)

    assert repr(document) == "{'b': [1, 1.0, True, None], 'a': 'éé'}"


@pytest.mark.parametrize("name", ["missing.json", ".", "x" * 300, "null\0character"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as caught:
        read_document(tmp_path / name)

    assert found(caught.value.diagnostics) == [("MG001", "")]


def test_a_huge_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)

    with pytest.raises(Refused) as caught:
        read_document(path)

    assert found(caught.value.diagnostics) == [("MG007", "")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b'{"a": "\xe9"}', [("MG002", "")], id="latin-1"),
        pytest.param(b"\xef\xbb\xbf{}", [("MG002", "")], id="byte order mark"),
        pytest.param("{}".encode("utf-16"), [("MG002", "")], id="utf-16"),
        pytest.param(b"", [("MG003", "")], id="empty"),
        pytest.param(b'{"a": 1,}', [("MG003", "")], id="trailing comma"),
        pytest.param(b"{} {}", [("MG003", "")], id="two values"),
        pytest.param(b'{"a": {"b": 1, "b": 1}}', [("MG004", "/a")], id="repeated key"),
        pytest.param(
            b'{"a": 1, "a": {"b": 1, "b": 1}, "c/d": [{"e": 1, "e": 2}]}',
            [("MG004", ""), ("MG004", "/a"), ("MG004", "/c~1d/0")],
            id="repeated keys",
        ),
        pytest.param(b'{"a": [NaN, -Infinity]}', [("MG005", "/a/0"), ("MG005", "/a/1")], id="not numbers"),
        pytest.param(b'{"a": 1e999}', [("MG005", "/a")], id="too large a float"),
        pytest.param(b'{"a": 1' + b"0" * 5000 + b"}", [("MG005", "/a")], id="too many digits"),
        pytest.param(b'{"a": "\\ud800", "\\udfff": 1}', [("MG008", ""), ("MG008", "/a")], id="half a character"),
        pytest.param(b"[]", [("MG009", "")], id="array"),
        pytest.param(b'{"%s": {"%s": 1}}' % (b"a" * 1000, b"b" * 1001), [("MG013", "")], id="too long keys"),
        pytest.param(b"null", [("MG009", "")], id="null"),
    ],
)
def test_content_that_is_no_document_is_refused(content: bytes, expected: list[tuple[str, str]]) -> None:
    assert refusal(content) == expected


def test_text_in_another_encoding_is_named_where_it_can_be_told() -> None:
    with pytest.raises(Refused, match="is UTF-16 text"):
        parse_document("{}".encode("utf-16"), name="x.json")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 500, 10_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused_without_a_traceback(depth: int, opening: bytes, closing: bytes) -> None:
    content = b'{"x":' + opening * (depth - 1) + b"0" + closing * (depth - 1) + b"}"

    assert [code for code, _ in refusal(content)] == ["MG006"]


def test_nesting_up_to_the_limit_is_read() -> None:
    content = b'{"x":' + b"[" * (MAX_DEPTH - 1) + b"0" + b"]" * (MAX_DEPTH - 1) + b"}"

    assert list(parse_document(content, name="x.json")) == ["x"]


NESTED = st.recursive(st.none() | st.floats() | st.text(), st.lists)


@pytest.mark.slow
@PATIENT
@given(st.binary() | st.text().map(str.encode) | NESTED.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(Refused):
        assert isinstance(parse_document(content, name="x.json"), dict)


# --- what a schema document is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({}, ""),
        ({"type": "object"}, ""),
        ({"$defs": {"A": {}}, "definitions": {"A": {}}}, ""),
        ({"$defs": {}}, ""),
        ({"definitions": []}, "/definitions"),
        ({"definitions": True}, "/definitions"),
    ],
)
def test_a_document_without_one_home_for_definitions_is_no_schema(document: dict[str, object], pointer: str) -> None:
    assert found(check_document(document)) == [("MG010", pointer)]


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        (["JSONRPCMessage", "ClientRequest"], True),
        (["JSONRPCRequest", "ServerNotification"], True),
        (["JSONRPCRequest"], False),  # any JSON-RPC protocol
        (["ClientRequest"], False),
        (["Package", "Server"], False),  # the registry's schema
    ],
)
def test_mcp_is_told_by_its_envelope_and_its_directions(names: list[str], accepted: bool) -> None:  # noqa: FBT001
    findings = check_mcp({"definitions": {name: {} for name in names}})

    assert found(findings) == ([] if accepted else [("MG011", "")])


@pytest.mark.parametrize("revision", SchemaRoom().revisions)
def test_pinned_documents_have_no_faults(revision: str) -> None:
    document = SchemaRoom().document(revision)

    assert check_document(document) + check_mcp(document) == []  # no warnings either


# --- constructs --------------------------------------------------------------------------------------------------

TAKEN: list[Any] = [
    True,
    {},
    {
        "type": ["string", "null"],
        "title": "t",
        "description": "d",
        "$comment": "c",
        "examples": [1],
        "deprecated": True,
    },
    {"type": "object", "properties": {"é~/ x": True}, "required": ["é~/ x"], "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"type": "string"}},
    {"type": "array", "items": {"format": ": uri"}, "additionalItems": {}, "minItems": 1, "maxItems": 1},
    {"enum": ["a", 1, True, None, 2**63 - 1, -(2**63)], "default": [{"oneOf": 1}]},
    {"const": False},
    {"type": "string", "minLength": 0, "maxLength": 3, "pattern": "^[a-z]+$"},
    {"type": "number", "exclusiveMinimum": 0.5, "maximum": 1},
    {"$ref": "#/$defs/B", "default": "x", "description": "d"},
    {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]},
    {"allOf": [{"$ref": "#/$defs/B"}], "required": ["b"]},
    {"allOf": [{"$ref": "#/$defs/B"}, {"required": ["b"]}]},
    {"properties": {"b": {}}, "anyOf": [{"required": ["b"]}]},
    {"items": {"$ref": "#/$defs/A"}},
    {"properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
    {"properties": {"description": {}, "$ref": {"type": "string"}, "oneOf": {}, "not": {}}},
    {"$ref": "#/$defs/%42"},
]


@pytest.mark.parametrize("schema", TAKEN, ids=json.dumps)
def test_supported_constructs_are_taken(schema: Any) -> None:
    assert faults(schema, B={"type": "object", "properties": {"b": {}}}) == []


REFUSED: list[tuple[Any, list[tuple[str, str]]]] = [
    # unknown or unsupported
    *(
        ({keyword: {}}, [("MG101", f"/{keyword}")])
        for keyword in (
            "oneOf", "not", "if", "then", "else", "patternProperties", "uniqueItems", "dependentRequired",
            "dependentSchemas", "dependencies", "prefixItems", "contains", "unevaluatedProperties",
            "unevaluatedItems", "multipleOf", "minProperties", "$anchor", "$dynamicRef", "x-thing", "customTypePath",
        )
    ),
    ({"a/b~c": 1}, [("MG101", "/a~1b~0c")]),
    ({"items": [{}]}, [("MG101", "/items")]),
    ({"propertyNames": {"pattern": "a"}}, [("MG101", "/propertyNames")]),
    ({"$id": "x"}, [("MG101", "/$id")]),
    ({"$defs": {"B": {}}}, [("MG101", "/$defs")]),
    # shapes
    (5, [("MG102", "")]),
    (None, [("MG102", "")]),
    ({"properties": []}, [("MG102", "/properties")]),
    ({"properties": {"a": "string"}}, [("MG102", "/properties/a")]),
    ({"required": "a"}, [("MG102", "/required")]),
    ({"properties": {"a": {}}, "required": ["a", 1, {}]}, [("MG102", "/required/1"), ("MG102", "/required/2")]),
    ({"items": 1}, [("MG102", "/items")]),
    ({"additionalProperties": "no"}, [("MG102", "/additionalProperties")]),
    ({"anyOf": {}}, [("MG102", "/anyOf")]),
    ({"enum": "a"}, [("MG102", "/enum")]),
    ({"type": 1}, [("MG102", "/type")]),
    ({"type": ["string", {}]}, [("MG102", "/type/1")]),
    ({"minimum": "1"}, [("MG102", "/minimum")]),
    ({"exclusiveMinimum": True}, [("MG102", "/exclusiveMinimum")]),
    ({"minLength": -1}, [("MG102", "/minLength")]),
    ({"maxItems": 1.5}, [("MG102", "/maxItems")]),
    *(({keyword: 1}, [("MG102", f"/{keyword}")]) for keyword in ("format", "title", "examples", "deprecated")),
    ({"$ref": 1}, [("MG102", "/$ref")]),
    ({"pattern": 1}, [("MG102", "/pattern")]),
    # the rest, in the order of the codes
    ({"type": "text"}, [("MG103", "/type")]),
    ({"type": ["string", "any"]}, [("MG103", "/type/1")]),
    (False, [("MG104", "")]),
    ({"properties": {"a": False}, "required": ["a"]}, [("MG104", "/required/0")]),
    ({"items": False}, [("MG104", "/items")]),
    ({"$ref": "#"}, [("MG105", "/$ref")]),
    ({"$ref": "#B"}, [("MG105", "/$ref")]),
    ({"$ref": "#/$defs/B/properties/b"}, [("MG105", "/$ref")]),
    ({"$ref": "#/properties/b"}, [("MG105", "/$ref")]),
    ({"$ref": "https://example.com/x.json#/$defs/B"}, [("MG106", "/$ref")]),
    ({"$ref": "//example.com/x"}, [("MG106", "/$ref")]),
    ({"$ref": "file:///etc/passwd"}, [("MG106", "/$ref")]),
    ({"$ref": "other.json#/$defs/B"}, [("MG106", "/$ref")]),
    ({"$ref": ""}, [("MG106", "/$ref")]),
    ({"$ref": "#/$defs/C"}, [("MG107", "/$ref")]),
    ({"$ref": "#/definitions/B"}, [("MG107", "/$ref")]),
    ({"$ref": "#/$defs/B", "type": "object"}, [("MG108", "/type")]),
    ({"$ref": "#/$defs/B", "properties": {}, "format": "uri"}, [("MG108", "/properties"), ("MG108", "/format")]),
    ({"enum": ["a", 1.5, [], {}]}, [("MG110", "/enum/1"), ("MG110", "/enum/2"), ("MG110", "/enum/3")]),
    ({"const": 1.0}, [("MG110", "/const")]),
    ({"const": 2**63}, [("MG111", "/const")]),
    ({"enum": [-(2**63) - 1]}, [("MG111", "/enum/0")]),
    ({"minimum": 2**63}, [("MG111", "/minimum")]),
    ({"maximum": 1e300}, [("MG111", "/maximum")]),
    ({"maxLength": 2**63}, [("MG111", "/maxLength")]),
    *(
        ({"exclusiveMinimum": bound, "type": kind}, [("MG111", "/exclusiveMinimum")])
        for kind in ("integer", "number")
        for bound in (2**63 - 1, 2.0**63)
    ),
    *(
        ({"exclusiveMaximum": bound, "type": kind}, [("MG111", "/exclusiveMaximum")])
        for kind in ("integer", "number")
        for bound in (-(2**63), -(2.0**63))
    ),
    ({"minimum": 2, "maximum": 1}, [("MG112", "/minimum")]),
    ({"minLength": 2, "maxLength": 1}, [("MG112", "/minLength")]),
    ({"minItems": 2, "maxItems": 1}, [("MG112", "/minItems")]),
    ({"exclusiveMinimum": 1, "maximum": 1}, [("MG112", "/exclusiveMinimum")]),
    ({"minimum": 1, "exclusiveMinimum": 0}, [("MG112", "/exclusiveMinimum")]),
    ({"properties": {"a": {}}, "required": ["a", "b"], "additionalProperties": False}, [("MG113", "/required/1")]),
    ({"allOf": [{"required": ["c"]}, {"additionalProperties": False}]}, [("MG113", "/allOf/0/required/0")]),
    ({"enum": []}, [("MG114", "/enum")]),
    ({"anyOf": []}, [("MG114", "/anyOf")]),
    ({"allOf": []}, [("MG114", "/allOf")]),
    ({"type": []}, [("MG114", "/type")]),
    ({"pattern": "("}, [("MG115", "/pattern")]),
    ({"pattern": "[[a]"}, [("MG115", "/pattern")]),
    ({"pattern": "[a&&b]"}, [("MG115", "/pattern")]),
    ({"pattern": "(" * 5000 + ")" * 5000}, [("MG115", "/pattern")]),
    ({"pattern": "a{99999999999999}"}, [("MG115", "/pattern")]),
    ({"pattern": f"a{{{'9' * 5000}}}"}, [("MG115", "/pattern")]),
    ({"pattern": "(?a)(?u)a"}, [("MG115", "/pattern")]),
    ({"pattern": r"a\Z"}, [("MG115", "/pattern")]),
    ({"pattern": r"\Aa"}, [("MG115", "/pattern")]),
    ({"pattern": "(?x) a"}, [("MG115", "/pattern")]),
    ({"pattern": "(?i:a)"}, [("MG115", "/pattern")]),
    ({"pattern": "(?P<n>a)"}, [("MG115", "/pattern")]),
    ({"pattern": "(?#a)"}, [("MG115", "/pattern")]),
    ({"pattern": "(?>a)"}, [("MG115", "/pattern")]),
    ({"pattern": "a++"}, [("MG115", "/pattern")]),
    ({"pattern": "[ab]{1,2}+"}, [("MG115", "/pattern")]),
    ({"pattern": "[]a]"}, [("MG115", "/pattern")]),
    ({"pattern": "[^]a]"}, [("MG115", "/pattern")]),
    ({"pattern": r"^\\Z(?:a|b)+?[(?x)++\]]\++(?=c)(?!d)$"}, []),
    *(({"properties": {name: {}}}, [("MG204", f"/properties/{name}")]) for name in ("", 'a"', "a\\", "a\n", "\0")),
    *(({"required": ["b", name]}, [("MG204", "/required/1")]) for name in ("", 'a"', "a\\", "a\n", "\0")),
    # wherever a schema can be
    *(
        (wrapped, [("MG103", pointer)])
        for wrapped, pointer in (
            ({"items": {"type": "x"}}, "/items/type"),
            ({"additionalProperties": {"type": "x"}}, "/additionalProperties/type"),
            ({"additionalItems": {"type": "x"}}, "/additionalItems/type"),
            ({"anyOf": [{}, {"type": "x"}]}, "/anyOf/1/type"),
            ({"allOf": [{"items": {"type": "x"}}]}, "/allOf/0/items/type"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), REFUSED, ids=[json.dumps(schema)[:60] for schema, _ in REFUSED])
def test_constructs_without_an_exact_type_are_refused_in_their_place(
    schema: Any, expected: list[tuple[str, str]]
) -> None:
    assert faults(schema, B={"type": "object", "properties": {"b": {}}}) == expected


@pytest.mark.parametrize(
    ("schema", "message", "hint"),
    [
        (
            {"type": "number", "maximum": 1e30},
            "the bound 1e+30 is outside of the range of 64-bit integers",
            "2**63 - 1",
        ),
        ({"type": "string", "pattern": "[a&&b]"}, "can get another meaning in a later Python", "one &, | or ~ instead"),
    ],
)
def test_the_advice_fits_the_fault(schema: Any, message: str, hint: str) -> None:
    (finding,) = check_document({"$defs": {"A": schema}})

    assert message in finding.message
    assert hint in finding.hint


def test_all_faults_are_reported_in_the_order_of_the_document() -> None:
    document: dict[str, object] = {
        "definitions": {
            "B": {"properties": {"z": {"type": "x"}, "a": {"enum": []}}, "oneOf": []},
            "A": {"$ref": "#/definitions/Nope"},
        }
    }

    assert found(check_document(document)) == [
        ("MG101", "/definitions/B/oneOf"),
        ("MG103", "/definitions/B/properties/z/type"),
        ("MG114", "/definitions/B/properties/a/enum"),
        ("MG107", "/definitions/A/$ref"),
    ]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("Record[string]", ["MG201"]),
        ("", ["MG201"]),
        ("1a", ["MG201"]),
        ("Ünicode", ["MG201"]),
        ("a\n", ["MG201"]),
        ('x"""', ["MG201"]),
        ("class", ["MG202"]),
        ("None", ["MG202"]),
        ("__init__", ["MG203"]),
        ("_private", []),
        ("Tool", []),
    ],
)
def test_definitions_are_named_by_public_identifiers(name: str, codes: list[str]) -> None:
    assert [code for code, _ in found(check_document({"definitions": {name: {}}}))] == codes


@pytest.mark.parametrize(
    ("definitions", "at"),
    [
        ({"A": {"$ref": "#/$defs/A"}}, ["A"]),
        ({"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/C"}, "C": {"$ref": "#/$defs/B"}}, ["B"]),
        ({"A": {"anyOf": [{"type": "null"}, {"anyOf": [{"$ref": "#/$defs/A"}]}]}}, ["A"]),
        ({"A": {"allOf": [{"$ref": "#/$defs/B"}], "properties": {}}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}, ["A"]),
        ({"A": {"$ref": "#/$defs/A"}, "B": {"$ref": "#/$defs/B"}}, ["A", "B"]),
        ({"A": {"$ref": "#/$defs/C"}, "B": {"$ref": "#/$defs/C"}, "C": {"$ref": "#/$defs/C"}}, ["C"]),
        ({"A": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}]}, "B": {}}, []),
        ({"A": {"items": {"$ref": "#/$defs/A"}}}, []),
    ],
)
def test_a_circle_of_aliases_is_found_and_recursion_through_structure_is_not_one(
    definitions: dict[str, object], at: list[str]
) -> None:
    assert found(check_document({"$defs": definitions})) == [("MG109", f"/$defs/{name}") for name in at]


UNTYPED: list[tuple[dict[str, Any], list[str]]] = [
    ({"properties": {"a": {"items": {}}}}, ["", "/properties/a"]),
    ({"additionalProperties": False}, [""]),
    ({"allOf": [{"$ref": "#/$defs/B"}, {"properties": {}}]}, []),
    ({"allOf": [{"$ref": "#/$defs/C"}, {"properties": {}}]}, ["/allOf/1"]),
    ({"allOf": [{"properties": {}}, {"allOf": [{"properties": {}}, {"type": "object"}]}]}, []),
    ({"type": "object", "anyOf": [{"properties": {}}]}, []),
    ({"anyOf": [{"type": "object"}, {"properties": {}}]}, ["/anyOf/1"]),
    ({"type": "string", "items": {}}, []),  # says nothing of strings
    ({"enum": ["a"], "items": {}}, []),
    ({"const": 1, "properties": {}}, []),
]


@pytest.mark.parametrize(("schema", "places"), UNTYPED, ids=[json.dumps(schema) for schema, _ in UNTYPED])
def test_a_type_that_is_only_implied_is_a_warning(schema: dict[str, Any], places: list[str]) -> None:
    definitions = {"A": schema, "B": {"type": "object", "properties": {}}, "C": {}}

    assert [("MG117", "warning", f"/$defs/A{place}") for place in places] == [
        (finding.code, finding.severity, finding.pointer) for finding in check_document({"$defs": definitions})
    ]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "is not a regular expression in Python: missing ), unterminated subpattern at position 0"),
        ("[[a]", "can get another meaning in a later Python: Possible nested set at position 1"),
        ("(?P<n>a)", "has syntax that ECMA-262 reads in another way than Python, or not at all"),
    ],
)
def test_the_reason_why_a_pattern_is_refused_is_told(pattern: str, reason: str) -> None:
    (finding,) = check_document({"$defs": {"A": {"type": "string", "pattern": pattern}}})

    assert f"'{pattern}' {reason}" == finding.message


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("{" + "1" * 300_000 + "x", []), (f"(?#{'[' * 300_000})", [("MG115", "/$defs/A/pattern")])],
)
def test_a_long_pattern_is_read_once(pattern: str, expected: list[tuple[str, str]]) -> None:
    # Read again from each of its characters, it would take half an hour.
    assert expected == found(check_document({"$defs": {"A": {"type": "string", "pattern": pattern}}}))


def test_the_faults_that_are_reported_have_a_limit() -> None:
    schema = {f"x{index}": 1 for index in range(MAX_FINDINGS + 100)}

    assert ["MG101"] * MAX_FINDINGS == [each.code for each in check_document({"$defs": {"A": schema}})]


def test_warnings_come_after_the_errors() -> None:
    findings = check_document({"$defs": {"A": {"items": {}}, "B": {"type": "x"}}})

    assert ["MG103", "MG117"] == [finding.code for finding in findings]


@pytest.mark.slow
def test_only_the_first_dangling_references_get_a_suggestion() -> None:
    names = [f"Definition{index}" for index in range(4_000)]
    findings = check_document({"$defs": {name: {"$ref": f"#/$defs/{name}x"} for name in names}})
    hints = [finding.hint for finding in findings]

    assert ["MG107"] * len(names) == [finding.code for finding in findings]
    assert all(hint.startswith("Did you mean") for hint in hints[:MOST_SUGGESTIONS])
    assert all(f"first {MOST_SUGGESTIONS} such faults" in hint for hint in hints[MOST_SUGGESTIONS:])


def test_overlong_names_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(_name: str, names: list[str], *, n: int) -> list[str]:
        return names[:n]

    monkeypatch.setattr(references, "get_close_matches", compare)

    assert [False, True] == [
        check_document({"$defs": {name: {}, "A": {"$ref": f"#/$defs/{name}x"}}})[0].hint.startswith("Did you mean")
        for name in ("x" * 100, "x" * 99)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("link", ["$ref", "allOf"])
@pytest.mark.parametrize(
    ("links", "expected"), [(MAX_ALIAS_CHAIN - 1, []), (MAX_ALIAS_CHAIN, ["MG006"]), (4_900, ["MG006"])]
)
def test_a_chain_of_aliases_has_a_limit(links: int, expected: list[str], link: str) -> None:
    references = [{"$ref": f"#/$defs/A{index + 1}"} for index in range(links)]
    definitions: dict[str, object] = {
        f"A{index}": reference if link == "$ref" else {"allOf": [reference]}
        for index, reference in enumerate(references)
    }

    assert [code for code, _ in found(check_document({"$defs": definitions | {f"A{links}": {}}}))] == expected


def held(schema: object) -> dict[str, object]:
    """An object that holds *schema*, one level deeper; *schema* may be the name of a definition."""
    return {"properties": {"held": {"$ref": f"#/$defs/{schema}"} if isinstance(schema, str) else schema}}


@pytest.mark.parametrize(
    ("length", "expected"),
    [(MAX_NESTING, []), (MAX_NESTING + 1, ["A0"]), (4_900, [f"A{4_900 - MAX_NESTING - 1}"])],
)
@pytest.mark.slow
def test_a_chain_of_definitions_that_hold_each_other_has_a_limit(length: int, expected: list[str]) -> None:
    last = length - 1
    definitions = {f"A{index}": held(f"A{index + 1}") for index in range(last)} | {f"A{last}": {}}

    assert found(check_document({"$defs": definitions})) == [("MG006", f"/$defs/{name}") for name in expected]


@pytest.mark.parametrize(("length", "expected"), [(MAX_NESTING, []), (MAX_NESTING + 1, ["A0"]), (4_900, ["A0"])])
@pytest.mark.slow
def test_a_circle_is_as_deep_as_all_its_definitions(length: int, expected: list[str]) -> None:
    definitions = {f"A{index}": held(f"A{(index + 1) % length}") for index in range(length)}

    assert found(check_document({"$defs": definitions})) == [("MG006", f"/$defs/{name}") for name in expected]


@pytest.mark.parametrize(
    ("definitions", "depth"),
    [
        ({"A": {}}, 1),
        ({"A": {"items": {"items": {"type": "string"}}}}, 3),
        ({"A": {"properties": {"a": {"anyOf": [{"type": "null"}, {"items": {"type": "string"}}]}}}}, 4),
        ({"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/C"}, "C": {}}, 3),  # a name counts as what it stands for
        ({"A": held("B"), "B": held({"items": {}})}, 4),
        ({"A": {"items": held("B")}, "B": {}}, 3),
        ({"A": {"properties": {"a": {"$ref": "#/$defs/B"}, "b": held("C")}}, "B": held("C"), "C": {}}, 3),
        ({"A": held("A")}, 1),  # itself, and then nothing new
        ({"A": held("B"), "B": {"items": held("A")}}, 3),
        ({"A": held("B"), "B": held("C"), "C": {"anyOf": [held("B"), held("D")]}, "D": {"items": {}}}, 6),
        ({"A": held("B"), "B": held("C"), "C": held("D"), "D": {"anyOf": [held("A"), held("B"), held("D")]}}, 5),
    ],
)
def test_depth_is_that_of_the_deepest_way_through_the_definitions(definitions: dict[str, Any], depth: int) -> None:
    above = {f"X{index}": held(f"X{index + 1}") for index in range(MAX_NESTING - depth)}
    joined = {**definitions, **above, f"X{MAX_NESTING - depth}": {"$ref": "#/$defs/A"}}

    assert found(check_document({"$defs": {**joined, "X0": held("A")}})) == []
    assert found(check_document({"$defs": joined})) == [("MG006", "/$defs/X0")]


def test_a_type_without_a_name_is_a_warning() -> None:
    (finding,) = check_document({"type": "object", "properties": {}, "$defs": {"A": {}}})

    assert (finding.code, finding.severity) == ("MG116", "warning")


def test_an_alias_at_the_top_and_what_belongs_there_are_taken() -> None:
    top: dict[str, object] = {"$schema": "s", "$id": "i", "title": "t", "$ref": "#/$defs/A", "$defs": {"A": {}}}

    assert check_document(top) == []


@pytest.mark.slow
def test_deep_schemas_do_not_exhaust_the_stack() -> None:
    schema: dict[str, object] = {"type": "x"}
    for _ in range(9_000):
        schema = {"anyOf": [schema]}

    assert [code for code, _ in faults(schema)] == ["MG103", "MG006"]


STRINGS = {"type": "string"}


@pytest.mark.parametrize(
    ("definitions", "limit"),
    [
        ({f"D{index}": STRINGS for index in range(50_000)}, "10000 schemas"),
        ({"X": {"properties": {f"p{index}": STRINGS for index in range(10_000)}, "type": "object"}}, "10000 schemas"),
        ({"X": {"required": [f"p{index}" for index in range(10_000)], "type": "object"}}, "10000 schemas"),
        ({f"E{index}": {"enum": [f"v{each}" for each in range(9_000)]} for index in range(20)}, "40000 values"),
    ],
    ids=["50,000 definitions", "10,000 properties", "10,000 required keys", "20 enums of 9,000 values"],
)
def test_a_document_that_is_too_large_to_build_is_refused_with_the_limit(
    definitions: dict[str, Any], limit: str
) -> None:
    (finding,) = check_document({"$defs": definitions})

    assert ("MG012", "error") == (finding.code, finding.severity)
    assert limit in finding.message


def test_a_document_of_the_largest_size_has_no_faults() -> None:
    enums = {f"E{index}": {"enum": [f"v{each}" for each in range(10_000)]} for index in range(4)}
    strings = {f"D{index}": STRINGS for index in range(10_000 - 4 - 1)}  # the root is a schema, too

    assert [] == check_document({"$defs": {**enums, **strings}})


def test_references_are_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert faults({"$ref": "http://127.0.0.1:9/x.json"}) == [("MG106", "/$ref")]


def test_messages_stay_on_one_line_of_bounded_ascii() -> None:
    hostile = '\x1b[2J\n\'"""' + "é" * 10_000

    for finding in check_document(
        {"$defs": {hostile: {"type": hostile, "$ref": hostile, hostile: 1, "pattern": "(" + hostile}}}
    ):
        assert finding.message.isascii()
        assert finding.message.isprintable()
        assert len(finding.message) < 250


VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    0.5,
    1e300,
    "",
    "x",
    [],
    [[]],
    [{}],
    [None],
    ["x"],
    {},
    {"x": {}},
    {"x": 1},
]


@pytest.mark.parametrize("keyword", [*CHECKS, "oneOf"])
def test_any_value_of_any_keyword_is_checked_without_an_exception(keyword: str) -> None:
    for value in VALUES:
        for other in VALUES:
            schema = {"maximum": other, "properties": other, "allOf": other} | {keyword: value}

            assert all(finding.hint for finding in check_document({"$defs": {"A": schema}}))
            assert all(finding.hint for finding in check_document(schema))


KEYWORDS = st.sampled_from([*CHECKS, "oneOf"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
JSON = st.recursive(
    LEAVES | st.sampled_from(["string", "#/$defs/A", "A", "("]) | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=15,
)
SCHEMA = st.dictionaries(KEYWORDS, JSON, max_size=8)


@pytest.mark.slow
@PATIENT
@given(document=SCHEMA, definitions=st.dictionaries(st.sampled_from("AB"), SCHEMA | JSON))
def test_any_json_object_is_checked_without_an_exception(
    document: dict[str, object], definitions: dict[str, object]
) -> None:
    for candidate in (document, document | {"$defs": definitions}):
        for finding in check_document(candidate):
            assert finding.hint
            assert finding.message.isascii()
        check_mcp(candidate)
