"""What headers repeat of a request's body: what a client sends, what a server compares, what neither lets pass."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.headers import headers_by_name
from mcpgen.runtime.protocol.param_headers import (
    InvalidParamHeader,
    ParamHeader,
    ParamHeaders,
    Rule,
    header_mismatch,
    param_header_values,
    param_headers_of,
    standard_headers,
)
from tests.specification.citation import spec

REVISION = "2026-07-28"
SQL = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "description": "The region to execute the query in", "x-mcp-header": "Region"},
        "query": {"type": "string", "description": "The SQL query to execute"},
    },
    "required": ["region", "query"],
}
# One of each type, one of them nested.
MIRROR = param_headers_of(
    {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            "tenant": {"type": "object", "properties": {"id": {"type": "string", "x-mcp-header": "Tenant"}}},
        },
    }
)
ARGUMENTS: dict[str, Any] = {"region": "us-west1", "limit": 42, "dry": True, "tenant": {"id": "acme"}, "query": "…"}
CALL: dict[str, Any] = {"name": "execute_sql", "arguments": ARGUMENTS}
HEADERS = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "execute_sql",
    "mcp-param-region": "us-west1",
    "mcp-param-limit": "42",
    "mcp-param-dry-run": "true",
    "mcp-param-tenant": "acme",
}


def judged(headers: dict[str, str], params: dict[str, Any] | None = None, method: str = "tools/call") -> str | None:
    return header_mismatch(headers, method, CALL if params is None else params, REVISION, MIRROR)


def on_region(header: str | None, value: object, json_type: Any = "string") -> str | None:
    """Return what a server says of one header, or none, for one argument."""
    mirror = ParamHeaders((ParamHeader("Region", "mcp-param-region", ("region",), json_type),))
    headers = {"mcp-protocol-version": REVISION, "mcp-method": "tools/call", "mcp-name": "t"}
    if header is not None:
        headers["mcp-param-region"] = header
    return header_mismatch(headers, "tools/call", {"name": "t", "arguments": {"region": value}}, REVISION, mirror)


def refusal(schema: dict[str, Any]) -> InvalidParamHeader:
    with pytest.raises(InvalidParamHeader) as caught:
        param_headers_of(schema)
    return caught.value


def asking(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# --- annotations


@spec("2026-07-28", "server/tools#x-mcp-header")
def test_the_example_of_the_text() -> None:
    mirror = param_headers_of(SQL)

    assert ParamHeaders((ParamHeader("Region", "mcp-param-region", ("region",), "string"),)) == mirror
    assert {"mcp-param-region": "us-west1"} == param_header_values(mirror, {"region": "us-west1", "query": "SELECT 1"})


@spec("2026-07-28", "server/tools#x-mcp-header")
@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, asking(a={"type": "string"}), asking(a=True), {"properties": 1}]
)
def test_a_tool_need_not_ask_for_headers(schema: dict[str, Any]) -> None:
    assert ParamHeaders() == param_headers_of(schema)
    assert {} == param_header_values(ParamHeaders(), ARGUMENTS)


@spec("2026-07-28", "server/tools#x-mcp-header")
@pytest.mark.parametrize("name", ["Region", "a", "Method", "X_1", "!#$%&'*+-.^_`|~", "9", "A" * 10_000])
def test_a_name_may_be_any_token(name: str) -> None:
    (found,) = param_headers_of(asking(a={"type": "string", "x-mcp-header": name})).annotations

    assert (name, "mcp-param-" + name.lower()) == (found.name, found.header)


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "625122ba", "6c2b9e54", "3a4c341f")
@spec("2026-07-28", "server/tools#x-mcp-header", "6cc4c45e", "53f114c9", "57f177a5")
@pytest.mark.parametrize(
    "name",
    ["", " ", "My Region", "Region:Primary", "Région", "Region\t1", "a\r\nX-Evil: 1", "a\n", "\0", "a\x7f", "(a)",
     '"a"',
     "a/b", "a,b", "\u212aey", "a\u2010b", 1, 10**5000, 1.5, True, None, [], ["Region"], {}],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_name_that_is_no_token_makes_the_tool_invalid(name: object) -> None:
    error = refusal(asking(a={"type": "string", "x-mcp-header": name}))

    assert (Rule.NAME, ("a",)) == (error.rule, error.path)
    assert error.reason.isprintable()
    assert "is not a header name" in str(error)


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "23b8e458")
@spec("2026-07-28", "server/tools#x-mcp-header", "187435c6")
@pytest.mark.parametrize("other", ["Region", "REGION", "region", "rEGION"])
def test_names_are_unique_without_regard_to_case(other: str) -> None:
    a, b = ({"type": "string", "x-mcp-header": each} for each in ("Region", other))
    flat, nested = refusal(asking(a=a, b=b)), refusal(asking(a=a, b=asking(c=b)))

    assert (Rule.UNIQUE, ("b",), ("a",)) == (flat.rule, flat.path, flat.other)
    assert (Rule.UNIQUE, ("b", "c"), ("a",)) == (nested.rule, nested.path, nested.other)
    assert "of the property 'b.c'" in nested.reason
    assert "is already used by the property 'a'" in nested.reason


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "b16ac733")
@spec("2026-07-28", "server/tools#x-mcp-header", "8fb9e64b")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number"}, {"type": "array"}, {"type": "object"}, {"type": "null"}, {"type": "String"}, {"type": ""},
        {"type": ["string"]}, {"type": ["string", "null"]}, {"type": None}, {"type": {}}, {}, {"enum": ["a"]},
        {"const": 1},
        {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"$ref": "#/$defs/Region"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_only_strings_integers_and_booleans_can_be_in_headers(schema: dict[str, Any]) -> None:
    error = refusal(asking(a={**schema, "x-mcp-header": "A"}))

    assert (Rule.TYPE, ("a",)) == (error.rule, error.path)


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "9ade14a7")
def test_a_property_of_a_property_may_ask() -> None:
    deep = asking(
        a=asking(b=asking(c={"type": "boolean", "x-mcp-header": "C"})), d={"type": "integer", "x-mcp-header": "D"}
    )

    assert {("a", "b", "c"): "boolean", ("d",): "integer"} == {
        each.path: each.json_type for each in param_headers_of(deep).annotations
    }


ASKING = {"type": "string", "x-mcp-header": "Region"}


@spec("2026-07-28", "server/tools#x-mcp-header", "3d7b46a9")
@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "9ade14a7", "35d4fb3e")
@pytest.mark.parametrize(
    "schema",
    [
        ASKING,
        {"x-mcp-header": "Region"},
        *(asking(a={keyword: ASKING}) for keyword in ("items", "not", "if", "then", "else", "additionalProperties",
                                                       "contains", "propertyNames", "unevaluatedItems", "unknown")),
        *(asking(a={keyword: [True, ASKING]}) for keyword in ("oneOf", "anyOf", "allOf", "prefixItems", "items")),
        *({keyword: [asking(a=ASKING)]} for keyword in ("oneOf", "anyOf", "allOf")),
        *({keyword: asking(a=ASKING)} for keyword in ("if", "then", "else", "not", "additionalProperties")),
        *({keyword: {"R": ASKING}} for keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas")),
        {"$defs": {"R": ASKING}, "properties": {"a": {"$ref": "#/$defs/R"}}},
        {"$defs": {"R": asking(a=ASKING)}, "$ref": "#/$defs/R"},
        asking(a={"type": "array", "items": asking(b=ASKING)}),
        asking(a=asking(b={"type": "array", "items": {"items": {"items": ASKING}}})),
        {"properties": [ASKING]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_an_annotation_that_properties_alone_do_not_lead_to_makes_the_tool_invalid(schema: dict[str, Any]) -> None:
    error = refusal(schema)

    assert (Rule.PLACE, None) == (error.rule, error.path)
    assert "'Region'" in error.reason


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
@pytest.mark.parametrize(
    "schema",
    [
        asking(**{"x-mcp-header": {"type": "string"}}),
        asking(a={"$ref": "#/$defs/x-mcp-header"}) | {"$defs": {"x-mcp-header": {"type": "string"}}},
        {"patternProperties": {"x-mcp-header": True}},
        {"dependentRequired": {"x-mcp-header": ["a"]}},
        *(asking(a={"type": "object", keyword: {"x-mcp-header": 1}}) for keyword in ("const", "default")),
        *(asking(a={"type": "object", keyword: [{"x-mcp-header": 1}]}) for keyword in ("enum", "examples")),
        asking(a={"type": "string", "description": "x-mcp-header"}),
    ],
    ids=json.dumps,
)
def test_what_only_has_the_name_of_an_annotation_is_none(schema: dict[str, Any]) -> None:
    assert ParamHeaders() == param_headers_of(schema)


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = asking(properties=asking(items={"type": "string", "x-mcp-header": "A"}, default=ASKING))

    assert [("properties", "items"), ("properties", "default")] == [
        each.path for each in param_headers_of(schema).annotations
    ]


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
def test_a_schema_may_be_as_deep_as_its_author_likes() -> None:
    good, bad = dict(ASKING), dict(ASKING)
    arguments: Any = "eu"
    for _ in range(3000):
        good, bad, arguments = asking(a=good), {"items": bad}, {"a": arguments}

    assert {"mcp-param-region": "eu"} == param_header_values(param_headers_of(good), arguments)
    assert Rule.PLACE is refusal(bad).rule


@spec("2026-07-28", "server/tools#x-mcp-header")
def test_a_long_name_does_not_make_a_long_reason() -> None:
    assert len(refusal(asking(**{"a" * 10_000: {"type": "number", "x-mcp-header": "B" * 10_000}})).reason) < 400


# --- what a client sends


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "get_weather", "uri": "no"}, "get_weather"),
        ("prompts/get", {"name": "my prompt", "uri": "no"}, "my prompt"),
        (
            "resources/read",
            {"uri": "file:///projects/myapp/config.json", "name": "no"},
            "file:///projects/myapp/config.json",
        ),
        ("tools/call", {"name": "größe"}, "=?base64?Z3LDtsOfZQ==?="),
        ("tools/call", {"name": "a\r\nX-Evil: 1"}, "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("tools/call", {"name": "=?base64?QQ==?="}, "=?base64?PT9iYXNlNjQ/UVE9PT89?="),
        ("tools/call", {"name": ""}, ""),
    ],
)
def test_a_client_names_the_revision_the_method_and_what_it_is_about(
    method: str, params: dict[str, Any], name: str
) -> None:
    expected = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name}

    assert expected == standard_headers(method, params, "2026-07-28")


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize(
    "method", ["tools/list", "server/discover", "completion/complete", "subscriptions/listen", "x/y"]
)
def test_other_methods_have_no_name(method: str) -> None:
    expected = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}

    assert expected == standard_headers(method, {"name": "a", "uri": "b"}, "2026-07-28")


@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
def test_a_method_cannot_smuggle_a_header() -> None:
    for method in ("a\r\nX-Evil: 1", "a\n", "", " tools/call", "tools/cäll"):
        with pytest.raises(UsageError, match="HTTP does not allow in a header"):
            standard_headers(method, {}, "2026-07-28")


@spec("2024-11-05", "basic/transports#http-with-sse")
@spec("2025-03-26", "basic/transports#streamable-http")
@spec("2025-06-18", "basic/transports#protocol-version-header")
@spec("2025-11-25", "basic/transports#protocol-version-header")
def test_earlier_revisions_know_the_header_of_the_revision_or_none() -> None:
    def sent(revision: str) -> dict[str, str]:
        return standard_headers("tools/call", {"name": "a"}, revision)

    assert {} == sent("2024-11-05") == sent("2025-03-26")
    assert {"mcp-protocol-version": "2025-06-18"} == sent("2025-06-18")
    assert {"mcp-protocol-version": "2025-11-25"} == sent("2025-11-25")


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@pytest.mark.parametrize(
    ("value", "header"),
    [("us-west1", "us-west1"), ("", ""), (" a", "=?base64?IGE=?="), (0, "0"), (-7, "-7"), (42.0, "42"), (True, "true"),
     (False, "false"), ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?=")],
)  # fmt: skip
def test_a_client_sends_each_argument_that_there_is(value: object, header: str) -> None:
    assert {"mcp-param-region": header} == param_header_values(param_headers_of(SQL), {"region": value})


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "4374d6c5", "3981f2ff")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"region": None}, {"Region": "a"}, {"tenant": None}, {"tenant": {}}, {"tenant": {"id": None}},
     {"tenant": "id"},
     {"tenant": [{"id": "acme"}]}, {"id": "acme"}, {"tenant.id": "acme"}],
    ids=json.dumps,
)  # fmt: skip
def test_what_is_null_or_absent_has_no_header(arguments: dict[str, Any]) -> None:
    assert {} == param_header_values(MIRROR, arguments)
    without = {key: value for key, value in HEADERS.items() if "param" not in key}
    assert None is judged(without, {"name": "execute_sql", "arguments": arguments})


@spec("2026-07-28", "server/tools#x-mcp-header")
@pytest.mark.parametrize("value", [[], {}, ["a"], 1.5, 2**53, -(2**53), 1e300])
def test_a_client_does_not_send_what_no_header_can_carry(value: object) -> None:
    with pytest.raises(UsageError, match=r"'region' cannot be put into the header Mcp-Param-Region"):
        param_header_values(param_headers_of(SQL), {"region": value})


# --- what a server compares


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_headers_that_repeat_the_body_are_accepted() -> None:
    assert HEADERS == standard_headers("tools/call", CALL, REVISION) | param_header_values(MIRROR, ARGUMENTS)
    assert None is judged(HEADERS)


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("missing", HEADERS)
def test_each_header_must_be_there(missing: str) -> None:
    said = judged({key: value for key, value in HEADERS.items() if key != missing})

    assert said is not None
    assert said.lower() == f"header mismatch: {missing} header is missing"


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("second", ["{}", "other", ""])
@pytest.mark.parametrize("first", [True, False])
def test_no_header_may_be_given_twice(name: str, second: str, first: bool) -> None:  # noqa: FBT001 (which comes first)
    lines = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
    more = (name.title().encode(), second.format(HEADERS[name]).encode())
    headers = headers_by_name([more, *lines] if first else [*lines, more])

    assert "is repeated" in str(judged(headers))


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_two_headers_do_not_add_up_to_the_body() -> None:
    """A list of two is what HTTP makes of two lines; a name may look like that."""
    lines = [(b"MCP-Protocol-Version", b"2026-07-28"), (b"Mcp-Method", b"prompts/get")]
    params = {"name": "a, b"}

    assert None is judged(headers_by_name([*lines, (b"Mcp-Name", b"a, b")]), params, "prompts/get")
    assert "is repeated" in str(
        judged(headers_by_name([*lines, (b"Mcp-Name", b"a"), (b"Mcp-Name", b"b")]), params, "prompts/get")
    )


@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "2bf61d34")
@pytest.mark.parametrize("name", HEADERS)
@given(data=st.data())
def test_a_header_that_is_changed_anywhere_is_a_mismatch(name: str, data: st.DataObject) -> None:
    value = HEADERS[name]
    at = data.draw(st.integers(0, len(value)))
    cut = data.draw(st.integers(0, len(value) - at))
    changed = value[:at] + data.draw(st.text(st.characters(max_codepoint=0x17F), max_size=4)) + value[at + cut :]
    # 42.0 is 42, and whitespace around a value is none of it.
    same = changed.strip(" \t") == value or (
        name == "mcp-param-limit" and re.fullmatch(r"42\.0+", changed.strip(" \t")) is not None
    )

    assert same == (judged(HEADERS | {name: changed}) is None)


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "727e71cf")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("character", ["\0", "\r", "\n", "\r\n ", "\x1f", "\x7f", "\x80", "é", "\xa0", "世"])
def test_a_header_with_a_character_that_none_may_have_is_refused(name: str, character: str) -> None:
    for value in (HEADERS[name] + character, character + HEADERS[name], f"=?base64?QUJD{character}?="):
        said = judged(HEADERS | {name: value})

        assert said is not None
        assert said.isprintable()


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_what_no_header_may_have_is_refused_although_the_body_has_it_too() -> None:
    for name in ("gr\xf6\xdfe", "a\0b", "a\x7f"):
        headers = {"mcp-protocol-version": REVISION, "mcp-method": "tools/call", "mcp-name": name}

        assert "characters that HTTP does not allow" in str(judged(headers, {"name": name}))
    headers = {"mcp-protocol-version": REVISION, "mcp-method": "x/\xe9"}
    assert "characters that HTTP does not allow" in str(judged(headers, {}, "x/\xe9"))


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_the_message_is_as_in_the_example_of_the_text() -> None:
    headers = {"mcp-protocol-version": REVISION, "mcp-method": "tools/call", "mcp-name": "foo"}
    expected = "Header mismatch: Mcp-Name header value 'foo' does not match body value 'bar'"

    assert expected == judged(headers, {"name": "bar"})


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity")
@pytest.mark.parametrize(
    ("name", "value"),
    [("mcp-method", "TOOLS/CALL"), ("mcp-method", "Tools/call"), ("mcp-name", "Execute_SQL"),
     ("mcp-param-region", "US-WEST1"),
     ("mcp-param-dry-run", "True"), ("mcp-param-dry-run", "TRUE"), ("mcp-param-dry-run", "1"),
     ("mcp-param-tenant", "Acme")],
)  # fmt: skip
def test_values_are_compared_with_regard_to_case(name: str, value: str) -> None:
    assert "does not match" in str(judged(HEADERS | {name: value}))


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity", "3998b66b")
@pytest.mark.parametrize("write", [str.lower, str.upper, str.title, str.swapcase])
def test_names_are_compared_without_regard_to_case(write: Any) -> None:
    assert None is judged(headers_by_name((write(key).encode(), value.encode()) for key, value in HEADERS.items()))


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("name", HEADERS)
def test_whitespace_around_a_value_is_none_of_it(name: str) -> None:
    assert None is judged(HEADERS | {name: f" \t{HEADERS[name]}\t "})


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_whitespace_around_a_value_of_the_body_is_part_of_it() -> None:
    assert "does not match" in str(on_region("us-west1", "us-west1 "))
    assert "does not match" in str(on_region("us-west1 ", "us-west1 "))
    assert None is on_region("=?base64?dXMtd2VzdDEg?=", "us-west1 ")


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_texts_that_only_look_the_same_are_different() -> None:
    composed, decomposed = (unicodedata.normalize(form, "Zoë") for form in ("NFC", "NFD"))
    headers = {
        name: standard_headers("tools/call", {"name": name}, REVISION)
        for name in (composed, decomposed, "ﬁ", "fi", "K", "\u212a")
    }

    for said, sent in headers.items():
        for name in headers:
            assert (said == name) == (judged(sent, {"name": name}) is None)


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method"])
def test_only_names_and_parameters_may_be_encoded(name: str) -> None:
    encodings = {"mcp-protocol-version": "=?base64?MjAyNi0wNy0yOA==?=", "mcp-method": "=?base64?dG9vbHMvY2FsbA==?="}

    assert "does not match" in str(judged(HEADERS | {name: encodings[name]}))


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers", "b8bb65d5")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "19eccabf")
@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "360506a1", "21a2dcf3")
@pytest.mark.parametrize(
    ("name", "value"),
    [("mcp-name", "=?base64?ZXhlY3V0ZV9zcWw=?="), ("mcp-param-region", "=?base64?dXMtd2VzdDE=?="),
     ("mcp-param-limit", "=?base64?NDI=?="), ("mcp-param-limit", "=?base64?NDIuMA==?="),
     ("mcp-param-dry-run", "=?base64?dHJ1ZQ==?=")],
)  # fmt: skip
def test_what_may_be_encoded_is_decoded_before_it_is_compared(name: str, value: str) -> None:
    assert None is judged(HEADERS | {name: value})


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@pytest.mark.parametrize(
    ("header", "problem"),
    [("=?base64?dXMtd2VzdDE?=", "marked as base64"), ("=?base64?dXMtd2VzdDF=?=", "marked as base64"),
     ("=?base64?=", "marked as base64"), ("=?BASE64?dXMtd2VzdDE=?=", "does not match"),
     ("=?base64?dXMtd2VzdDE=", "does not match"), ("dXMtd2VzdDE=", "does not match"),
     ("=?base64?PT9iYXNlNjQ/ZFhNdGQyVnpkREU9Pz0=?=", "does not match")],  # encoded twice
)  # fmt: skip
def test_an_encoding_that_is_none_is_refused_or_taken_as_it_stands(header: str, problem: str) -> None:
    assert problem in str(on_region(header, "us-west1"))
    assert on_region(header, header) is None or "marked as base64" in problem or "PT9" in header


@spec("2026-07-28", "basic/transports/streamable-http#server-validation", "2ce624c9")
@pytest.mark.parametrize(
    ("header", "value", "same"),
    [
        ("42", 42, True), ("42.0", 42, True), ("42.000", 42, True), ("42", 42.0, True), ("-7", -7, True),
        ("-7.0", -7, True),
        ("0", 0, True), ("-0", 0, True), ("0.0", 0, True), ("0", -0.0, True), ("9007199254740991", 2**53 - 1, True),
        ("-9007199254740991.0", -(2**53) + 1, True),
        ("43", 42, False), ("42.1", 42, False), ("-42", 42, False), ("", 0, False), ("+42", 42, False),
        ("042", 42, False),
        ("42.", 42, False), (".0", 0, False), ("4_2", 42, False), ("4.2e1", 42, False), ("0x2a", 42, False),
        ("4 2", 42, False),
        ("42,0", 42, False), ("9007199254740990", 2**53 - 1, False), ("9007199254740991.4", 2**53 - 1, False),
        ("true", 1, False), ("1", True, False), ("0", False, False), ("1.0", True, False), ("42.0", "42", False),
        ("42", "42", True),
        ("=?base64?2aTZog==?=", 42, False), ("=?base64?NNmi?=", 42, False),  # the digits of another script
        ("NaN", 0, False), ("9" * 5000, 42, False), ("42." + "0" * 5000, 42, True),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_integers_are_compared_as_numbers(header: str, value: object, same: bool) -> None:  # noqa: FBT001 (the verdict)
    assert same == (on_region(header, value, "integer") is None)


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_only_integers_are_compared_as_numbers() -> None:
    assert "does not match" in str(on_region("42.0", "42", "string"))
    assert "does not match" in str(on_region("042", "42", "string"))
    assert "does not match" in str(on_region("42.0", 42, "string"))
    assert None is on_region("42", 42, "string")
    assert "does not match" in str(on_region("1", value=True, json_type="boolean"))
    assert "does not match" in str(on_region("true", 1, "boolean"))
    assert None is on_region("false", value=False, json_type="boolean")


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension", "4a893ef5")
@spec("2026-07-28", "server/tools#x-mcp-header", "0764af0d")
@pytest.mark.parametrize("value", [2**53, -(2**53), 10**400])
def test_integers_that_not_every_reader_knows_exactly_are_refused(value: int) -> None:
    assert "between" in str(on_region(str(value), value, "integer"))


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
@pytest.mark.parametrize("value", [[], ["us-west1"], {}, {"a": 1}, 1.5])
def test_a_value_that_no_header_can_carry_is_refused_with_a_header_and_without(value: object) -> None:
    assert "is missing" in str(on_region(None, value))
    assert "cannot match" in str(on_region(json.dumps(value), value))


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
@pytest.mark.parametrize("header", ["us-west1", "", "null", "None"])
@pytest.mark.parametrize("arguments", [{}, {"region": None}, None, "us-west1", ["us-west1"]])
def test_a_header_for_what_the_body_does_not_have_is_a_mismatch(header: str, arguments: object) -> None:
    headers = {
        "mcp-protocol-version": REVISION,
        "mcp-method": "tools/call",
        "mcp-name": "t",
        "mcp-param-region": header,
    }
    params = {"name": "t", "arguments": arguments}

    assert "the body has no such value" in str(
        header_mismatch(headers, "tools/call", params, REVISION, param_headers_of(SQL))
    )


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
def test_an_empty_value_is_a_value() -> None:
    assert None is on_region("", "")
    assert "is missing" in str(on_region(None, ""))
    assert "is missing" in str(on_region(None, 0, "integer"))
    assert "is missing" in str(on_region(None, value=False, json_type="boolean"))


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
@pytest.mark.parametrize(
    "name",
    ["mcp-param-other", "mcp-param-", "mcp-param", "mcp_param_region", "mcp-param-region2", "x-mcp-header", "x-évil"],
)
def test_a_header_that_nothing_asks_for_is_ignored(name: str) -> None:
    assert None is judged(HEADERS | {name: "\0é"})
    assert "is missing" in str(
        judged({key: value for key, value in HEADERS.items() if key != "mcp-param-region"} | {name: "us-west1"})
    )


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
def test_without_a_mirror_no_parameter_is_compared() -> None:
    assert None is header_mismatch(HEADERS | {"mcp-param-region": "mars"}, "tools/call", CALL, REVISION, None)


@spec("2026-07-28", "basic/transports/streamable-http#schema-extension")
def test_a_parameter_called_method_is_no_method() -> None:
    mirror = param_headers_of(
        asking(a={"type": "string", "x-mcp-header": "Method"}, b={"type": "string", "x-mcp-header": "Name"})
    )
    params: dict[str, Any] = {"name": "t", "arguments": {"a": "x", "b": "y"}}
    headers = standard_headers("tools/call", params, REVISION) | param_header_values(mirror, params["arguments"])

    assert {
        "mcp-method": "tools/call",
        "mcp-name": "t",
        "mcp-param-method": "x",
        "mcp-param-name": "y",
    }.items() <= headers.items()
    assert None is header_mismatch(headers, "tools/call", params, REVISION, mirror)


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
def test_the_name_is_the_one_that_the_method_goes_by(method: str, key: str) -> None:
    other = {"name": "uri", "uri": "name"}[key]
    headers = {"mcp-protocol-version": REVISION, "mcp-method": method, "mcp-name": "a"}

    assert None is judged(headers, {key: "a", other: "b"}, method)
    assert "does not match" in str(judged(headers, {key: "b", other: "a"}, method))
    assert f"the body: `params.{key}` is missing or not a string" in str(judged(headers, {other: "a"}, method))
    assert f"the body: `params.{key}` is missing or not a string" in str(judged(headers, {key: None}, method))
    assert f"the body: `params.{key}` is missing or not a string" in str(
        judged(headers | {"mcp-name": "1"}, {key: 1}, method)
    )
    assert "Mcp-Name header is missing" in str(
        judged({key: value for key, value in headers.items() if key != "mcp-name"}, {key: "a"}, method)
    )


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete", "x/y"])
def test_other_methods_need_no_name(method: str) -> None:
    headers = {"mcp-protocol-version": REVISION, "mcp-method": method}

    assert None is judged(headers, {"name": "a"}, method)
    assert None is judged(headers | {"mcp-name": "b"}, {"name": "a"}, method)


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
def test_the_revision_must_be_that_of_the_body() -> None:
    for said, body in (
        ("2025-11-25", "2026-07-28"),
        ("2026-07-28", "2025-11-25"),
        ("2026-7-28", "2026-07-28"),
        ("", "x"),
    ):
        found = header_mismatch(HEADERS | {"mcp-protocol-version": said}, "tools/call", CALL, body, MIRROR)

        assert f"MCP-Protocol-Version header value '{said}' does not match body value '{body}'" in str(found)


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
def test_a_revision_that_nobody_knows_is_no_mismatch() -> None:
    assert None is header_mismatch(HEADERS | {"mcp-protocol-version": "9999"}, "tools/call", CALL, "9999", MIRROR)


@spec("2026-07-28", "basic/index#meta")
def test_a_body_without_a_revision_has_another_error_than_a_header_that_is_missing() -> None:
    assert None is header_mismatch(HEADERS, "tools/call", CALL, None, MIRROR)
    assert "MCP-Protocol-Version header is missing" in str(header_mismatch({}, "tools/call", CALL, None, MIRROR))
    assert "characters" in str(
        header_mismatch(HEADERS | {"mcp-protocol-version": "é"}, "tools/call", CALL, None, MIRROR)
    )


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_a_very_long_value_is_compared_to_its_end_and_not_repeated() -> None:
    long = "a" * 100_000

    assert None is on_region(long, long)
    for header, value in ((long, long + "b"), (long + "b", long), (long + "é", long), (f"=?base64?{long}?=", long)):
        said = on_region(header, value)

        assert said is not None
        assert len(said) < 400


# --- both

values = {
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "integer": st.integers(-(2**53) + 1, 2**53 - 1) | st.integers(-1000, 1000).map(float),
    "boolean": st.booleans(),
}
tokens = st.text("abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=8)


@st.composite
def calls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw an input schema with annotations at any depth, and arguments for it."""
    names = draw(st.lists(tokens, max_size=5, unique_by=str.lower))
    root, arguments = asking(), dict[str, Any]()
    for number, name in enumerate(names):
        schema, given_to = root, arguments
        for step in draw(st.lists(st.sampled_from(["a", "b", "properties", "é"]), max_size=2)):
            schema = schema["properties"].setdefault(step, asking())
            given_to = given_to.setdefault(step, {})
        json_type = draw(st.sampled_from(sorted(values)))
        schema["properties"][f"leaf{number}"] = {"type": json_type, "x-mcp-header": name}
        if draw(st.booleans()):
            given_to[f"leaf{number}"] = draw(st.none() | values[json_type])
    return root, arguments


@pytest.mark.slow
@spec("2026-07-28", "basic/transports/streamable-http#client-behavior")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@given(call=calls(), name=values["string"], method=st.sampled_from(["tools/call", "prompts/get", "tools/list"]))
def test_a_server_accepts_what_a_client_sends_and_nothing_less_or_twice(
    call: tuple[dict[str, Any], dict[str, Any]], name: str, method: str
) -> None:
    schema, arguments = call
    mirror = param_headers_of(schema)
    params = {"name": name, "arguments": arguments}
    sent = standard_headers(method, params, REVISION) | (
        param_header_values(mirror, arguments) if method == "tools/call" else {}
    )
    lines = [(key.encode("ascii"), value.encode("ascii")) for key, value in sent.items()]

    def judge(lines: list[tuple[bytes, bytes]]) -> str | None:
        # As a server has it: the body went through JSON.
        return header_mismatch(headers_by_name(lines), method, json.loads(json.dumps(params)), REVISION, mirror)

    assert None is judge(lines)
    for each in lines:
        assert "is missing" in str(judge([other for other in lines if other != each]))
        assert "is repeated" in str(judge([*lines, each]))


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@given(json_type=st.sampled_from(sorted(values)), data=st.data())
def test_the_header_of_one_value_is_a_mismatch_for_another(json_type: str, data: st.DataObject) -> None:
    one, other = data.draw(values[json_type]), data.draw(values[json_type])
    mirror = ParamHeaders((ParamHeader("Region", "mcp-param-region", ("region",), "string"),))
    header = param_header_values(mirror, {"region": one})["mcp-param-region"]

    assert (one == other) == (on_region(header, other, json_type) is None)
