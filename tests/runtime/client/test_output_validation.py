"""What is done about structured content: when it is checked, with which schema, and what a hostile one cannot do."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import UNSET, Struct

from mcpgen.generated import registry, v2025_06_18, v2026_07_28
from mcpgen.runtime.client import output_validation, schema_cost
from mcpgen.runtime.client.output_validation import OutputValidator, Policy
from mcpgen.runtime.errors import InvalidStructuredContent, UsageError
from mcpgen.runtime.limits import MAX_SCHEMA_DEPTH

NEWEST = "2026-07-28"
WEATHER = {
    "type": "object",
    "properties": {"temperature": {"type": "number"}, "stations": {"type": "array", "items": {"type": "string"}}},
    "required": ["temperature"],
}
FITS = {"temperature": 22.5, "stations": ["north"]}
LOOKS_AROUND = "^(?:(?=x|a)a+)+$"
BOOM = "a" * 40 + "!"


class Tool(Struct):
    name: str
    output_schema: Any = UNSET


class Result(Struct):
    structured_content: Any = UNSET
    is_error: Any = UNSET


def checker(schema: object, policy: Policy = "strict") -> OutputValidator:
    made = OutputValidator(policy)
    made.learn([Tool("weather", schema)])
    return made


def finding(schema: object, content: object, *, revision: str = NEWEST) -> InvalidStructuredContent | None:
    try:
        checker(schema).check(revision, "weather", Result(content))
    except InvalidStructuredContent as error:
        return error
    return None


def reason(schema: object, content: object) -> str:
    found = finding(schema, content)
    return "" if found is None else found.reason


def nested(depth: int, leaf: object = 1) -> object:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def chained(length: int, keyword: str, *, times: int = 1) -> dict[str, Any]:
    """Return a schema of definitions, each of which leads to the next one *times* over."""
    links: dict[str, Any] = {f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * times} for i in range(length)}
    return {"$ref": "#/$defs/a0", "$defs": {**links, f"a{length}": {"type": "string"}}}


# What is checked


@pytest.mark.spec("2025-06-18", "server/tools#output-schema")
@pytest.mark.spec("2025-11-25", "server/tools#output-schema")
@pytest.mark.spec("2026-07-28", "server/tools#output-schema")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_content_that_does_not_fit_raises_where_it_does_not(revision: str) -> None:
    content = {"temperature": 1, "stations": ["north", 5]}
    found = finding(WEATHER, content, revision=revision)

    assert found is not None
    assert (revision, "/stations/1") == (found.revision, found.pointer)
    assert 'it is not of type "string"' == found.reason
    assert Result(content) == found.result


def test_content_that_fits_passes() -> None:
    assert finding(WEATHER, FITS) is None


@pytest.mark.parametrize("content", [None, 5, "text", True, [1, 2]])
@pytest.mark.spec("2026-07-28", "server/tools#structured-content")
def test_any_json_is_content(content: object) -> None:
    assert finding({"not": {"type": "object"}}, content) is None
    assert finding({"type": "object"}, content) is not None


def test_the_steps_to_find_the_subschemas_of_a_place_count(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {"$defs": {"many": {"anyOf": [{}] * 30}}, "additionalProperties": {"$ref": "#"}}  # recursive, so walked
    content: dict[str, int] = dict.fromkeys(map(str, range(20)), 1)
    schema = {**many, "properties": {name: {"$ref": "#/$defs/many"} for name in content}}

    monkeypatch.setattr(schema_cost, "MAX_STEPS", 2500)
    assert finding(schema, content) is None
    monkeypatch.setattr(schema_cost, "MAX_STEPS", 1000)  # 661 are those of the visits
    assert "the content is too large to check against this schema" in reason(schema, content)


def test_content_that_is_missing_is_a_finding() -> None:
    assert "the result has no structured content, but the tool has an output schema" == reason(WEATHER, UNSET)


def test_a_result_that_says_it_is_an_error_is_not_checked() -> None:
    checker(WEATHER).check(NEWEST, "weather", Result({"temperature": "hot"}, is_error=True))
    checker(WEATHER).check(NEWEST, "weather", Result(UNSET, is_error=True))


def test_a_result_that_says_it_is_none_is_checked() -> None:
    with pytest.raises(InvalidStructuredContent):
        checker(WEATHER).check(NEWEST, "weather", Result({"temperature": "hot"}, is_error=False))


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_revisions_without_structured_content_are_not_checked(revision: str) -> None:
    old = registry.revision(revision).bindings().models.CallToolResult(content=[])
    found = checker(WEATHER)

    found.check(revision, "weather", old)
    with pytest.raises(InvalidStructuredContent):
        found.check(NEWEST, "weather", Result(UNSET))


def test_a_tool_that_was_never_listed_is_not_checked() -> None:
    checker(WEATHER).check(NEWEST, "forecast", Result({"temperature": "hot"}))


def test_a_tool_without_an_output_schema_is_not_checked() -> None:
    assert finding(UNSET, {"temperature": "hot"}) is None


@pytest.mark.parametrize("models", [v2025_06_18, v2026_07_28])
def test_the_bindings_of_a_revision_are_read(models: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
    made = OutputValidator("strict")
    made.learn([models.Tool(name="weather", input_schema={"type": "object"}, output_schema=schema)])
    with pytest.raises(InvalidStructuredContent) as caught:
        made.check("2025-06-18", "weather", models.CallToolResult(content=[], structured_content={"a": 1}))

    assert "/a" == caught.value.pointer


# What is known


def test_what_is_listed_anew_replaces() -> None:
    made = checker(WEATHER)
    made.check(NEWEST, "weather", Result(FITS))
    made.learn([Tool("weather", {"type": "array"})])
    with pytest.raises(InvalidStructuredContent):
        made.check(NEWEST, "weather", Result(FITS))
    made.learn([Tool("weather")])
    made.check(NEWEST, "weather", Result(5))


def test_a_new_listing_that_was_not_read_to_the_end_forgets_nothing() -> None:
    made = checker(WEATHER)
    made.learn([Tool("other")], is_first_page=True)
    with pytest.raises(InvalidStructuredContent):
        made.check(NEWEST, "weather", Result(5))


def test_what_is_forgotten_is_not_checked() -> None:
    made = checker(WEATHER)
    made.forget()
    made.check(NEWEST, "weather", Result(5))


@pytest.mark.parametrize(("bound", "value"), [("MAX_TOOLS", 2), ("MAX_KEPT_BYTES", 150)])
def test_what_is_kept_is_bounded_and_the_rest_is_not_taken_for_valid(
    monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(output_validation, bound, value)
    made = OutputValidator("strict")
    made.learn([Tool(name, {"type": "string"}) for name in ("a", "b", "c")])
    made.check(NEWEST, "b", Result("text"))
    made.check(NEWEST, "c", Result(UNSET))
    with pytest.raises(InvalidStructuredContent, match="too many or too large output schemas"):
        made.check(NEWEST, "c", Result("text"))
    made.learn([Tool("c", {"type": "string"})], is_first_page=True)
    made.check(NEWEST, "c", Result("text"))


def test_what_the_new_listing_has_is_not_what_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_validation, "MAX_TOOLS", 1)
    made = checker(WEATHER)
    made.learn([Tool("weather", WEATHER), Tool("other", WEATHER)], is_first_page=True)
    with pytest.raises(InvalidStructuredContent, match="temperature"):
        made.check(NEWEST, "weather", Result({}))


def test_compiled_schemas_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_validation, "MAX_COMPILED", 2)
    made = OutputValidator("strict")
    made.learn([Tool(name, {"type": "string"}) for name in "abc"])
    for name in "abcab":
        made.check(NEWEST, name, Result("text"))

    assert {"a", "b"} == set(made._compiled)


@pytest.mark.slow
def test_the_memory_of_compiled_schemas_is_bounded() -> None:
    made = OutputValidator("strict")
    # Each takes 10 MB or more: short constants, and long patterns.
    constants = {"type": "string", "enum": [f"v{each}" for each in range(20_000)]}
    patterns = {"type": "string", "allOf": [{"pattern": f"^.{{1,900}}{each}?$"} for each in range(10)]}
    made.learn([Tool(f"constants {each}", constants) for each in range(10)])
    made.learn([Tool(f"patterns {each}", patterns) for each in range(10)])
    for kind, text in (("constants", "v1"), ("patterns", "x")):
        for each in range(10):
            made.check(NEWEST, f"{kind} {each}", Result(text))
        kept = [name for name in made._compiled if name.startswith(kind)]
        assert 2 <= len(kept) <= 8
        assert f"{kind} 9" == kept[-1]


def test_the_patterns_of_a_schema_are_bounded_together() -> None:
    """A hundred of them took 100 MB, and half a second."""
    schema = {"type": "string", "allOf": [{"pattern": f"^.{{1,990}}{each}?$"} for each in range(100)]}

    assert reason(schema, "x").endswith("/pattern is not a regular expression, or is too large")


# What is done


def test_a_warning_says_it_once_for_each_tool_and_kind(caplog: pytest.LogCaptureFixture) -> None:
    made = checker(WEATHER, "warn")
    made.learn([Tool("other", WEATHER)])
    with caplog.at_level(logging.WARNING, "mcpgen.results"):
        for _ in range(3):
            made.check(NEWEST, "weather", Result({"temperature": "hot"}))
            made.check(NEWEST, "weather", Result())
            made.check(NEWEST, "other", Result())

    missing = "the result has no structured content, but the tool has an output schema"
    assert [
        "structured content of the tool 'weather' at /temperature: it is not of type \"number\"",
        f"structured content of the tool 'weather': {missing}",
        f"structured content of the tool 'other': {missing}",
    ] == [record.getMessage() for record in caplog.records]


@pytest.mark.slow
def test_off_does_nothing_and_loads_nothing() -> None:
    code = (
        "import sys; from mcpgen.runtime.client.output_validation import OutputValidator; import mcpgen.runtime;"
        "OutputValidator('off').learn([]); sys.exit('jsonschema_rs' in sys.modules)"
    )

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
    checker(WEATHER, "off").check(NEWEST, "weather", Result(5))


def test_another_policy_is_refused() -> None:
    with pytest.raises(UsageError, match="off, warn or strict"):
        OutputValidator("loud")  # type: ignore[arg-type]  # that is the test


@pytest.mark.parametrize("policy", ["warn", "strict"])
def test_without_the_extra_it_says_what_to_install(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    OutputValidator("off")
    with pytest.raises(UsageError, match=r'pip install "mcpgen\[validate\]"'):
        OutputValidator(policy)


# Dialects


@pytest.mark.spec("2025-11-25", "basic/index#implementation-requirements", "54c1f6e0", "ba417168")
@pytest.mark.spec("2026-07-28", "basic/index#implementation-requirements", "54c1f6e0", "ba417168")
@pytest.mark.spec("2025-11-25", "basic/index#schema-dialect", "bbdcac58", "f9f16a05")
@pytest.mark.spec("2026-07-28", "basic/index#schema-dialect", "bbdcac58", "f9f16a05")
def test_the_dialect_is_2020_12_unless_the_schema_names_another() -> None:
    schema = {"prefixItems": [{"type": "string"}]}

    assert finding(schema, [1]) is not None
    assert finding({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, [1]) is not None
    assert finding({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, [1]) is None
    for older in ("draft-04", "draft-06", "draft-07", "draft/2019-09"):
        named = {"$schema": f"http://json-schema.org/{older}/schema#", "items": [{"type": "string"}]}
        assert finding(named, ["text"]) is None
        assert finding(named, [1]) is not None


@pytest.mark.spec("2025-11-25", "basic/index#implementation-requirements", "eb3922d8")
@pytest.mark.spec("2026-07-28", "basic/index#implementation-requirements", "eb3922d8")
@pytest.mark.parametrize(
    "dialect", ["https://example.com/mine", "http://json-schema.org/draft-03/schema#", "", 5, None]
)
def test_a_dialect_that_is_not_known_is_a_finding(dialect: object) -> None:
    assert reason({"$schema": dialect, "type": "object"}, {}).startswith(
        "it cannot be checked: the dialect of the output schema"
    )


def test_formats_are_annotations() -> None:
    for dialect in ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"):
        assert finding({"$schema": dialect, "format": "email"}, "nobody") is None


@pytest.mark.spec("2025-11-25", "basic/index#schema-validation", "caea1f66")
@pytest.mark.parametrize("schema", [{"type": "strin"}, {"minimum": "1"}, {"pattern": "("}, {"properties": []}])
def test_a_schema_that_is_none_is_a_finding(schema: object) -> None:
    assert reason(schema, {}).startswith("it cannot be checked: the output schema cannot be used: the value at /")


def test_the_place_of_a_fault_in_a_schema_is_named() -> None:
    told = "it cannot be checked: the output schema cannot be used: "

    assert f'{told}the value at /properties is not of type "object"' == reason({"type": "object", "properties": 3}, {})
    for pattern in ("(", "(a{1000}){1000}"):
        assert f"{told}the value at /pattern is not a regular expression, or is too large" == reason(
            {"pattern": pattern}, ""
        )


# References


@pytest.mark.spec("2026-07-28", "server/tools#security-considerations", "ccf63081")
@pytest.mark.spec("2026-07-28", "basic/index#ref-resolution", "7cc2495c", "a0fcf5b3", "4748ad1c")
def test_nothing_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": url},
            {"$dynamicRef": url},
            {"properties": {"a": {"$ref": f"{url}#/$defs/a"}}},
            {"$id": url, "$ref": "other.json"},
            {"$defs": {"a": {"$id": url, "$ref": "other.json"}}},
            {"$schema": url},
            {"properties": {"a": {"$schema": url}}},
            {"$schema": "http://json-schema.org/draft-04/schema#", "id": url, "$ref": "other.json"},
            {"$ref": "file:///etc/hostname"},
        ):
            found = reason(schema, {})

            assert found.startswith("it cannot be checked: ")
            with pytest.raises(BlockingIOError):
                listener.accept()


def test_the_library_would_not_fetch_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second lock: even a reference that the graph does not see."""

    class Blind:
        patterns = ()

        def __init__(self, *_: object, **__: object) -> None:
            pass

    monkeypatch.setattr(output_validation, "SchemaGraph", Blind)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"

        assert "is not present" in reason({"$ref": url}, {})
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#/%24defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}},
        {"$ref": "#name", "$defs": {"a": {"$anchor": "name", "type": "string"}}},
        {"$dynamicRef": "#name", "$defs": {"a": {"$dynamicAnchor": "name", "type": "string"}}},
        {"$id": "https://example.com/a", "$ref": "https://example.com/a#/$defs/a", "$defs": {"a": {"type": "string"}}},
    ],
)
def test_references_within_the_document_are_followed(schema: object) -> None:
    assert (None, 'it is not of type "string"') == (finding(schema, "text"), reason(schema, 1))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "#none"},
        {"$ref": "#/%ff"},
        {"$ref": "#/required", "required": []},
        {"$defs": {"a": {"$id": "https://example.com/a"}}},
        {"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}},
        {"$ref": "#"},
        {"not": {"$ref": "#"}},
        {"$dynamicAnchor": "x", "anyOf": [{"$dynamicRef": "#x"}]},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "allOf": [{"$recursiveRef": "#"}]},
    ],
)
def test_what_the_graph_cannot_follow_is_not_used(schema: object) -> None:
    assert reason(schema, {}).startswith("it cannot be checked: the output schema is not supported: ")


# Bounds


@pytest.mark.spec("2026-07-28", "basic/index#composition-keyword-resource-use", "5c026d28")
@pytest.mark.parametrize(
    "schema",
    [
        {"description": "x" * output_validation.MAX_SCHEMA_BYTES},
        {"default": nested(MAX_SCHEMA_DEPTH)},
        {"properties": {f"a{i}": {} for i in range(schema_cost.MAX_SUBSCHEMAS)}},
        {"properties": {f"a{i}": {"pattern": f"a{i}"} for i in range(schema_cost.MAX_PATTERNS + 1)}},
        {"patternProperties": {f"a{i}": {} for i in range(schema_cost.MAX_PATTERNS + 1)}},
        {"pattern": "(((a{1000}){1000}){1000})"},
        {"pattern": "(" * 20_000 + ")" * 20_000},
        {"pattern": "(?=" * 20_000 + ")" * 20_000},
        chained(schema_cost.MAX_IN_PLACE, "anyOf"),
        chained(1000, "anyOf"),
    ],
)
def test_schemas_are_bounded(schema: object) -> None:
    assert reason(schema, {}).startswith("it cannot be checked: the output schema ")


@pytest.mark.slow
def test_a_schema_that_is_nested_too_deep_to_be_encoded_is_a_finding() -> None:
    assert "cannot be checked: " in reason({"default": nested(100_000)}, {})


def unevaluated(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(depth):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


LOOKUPS: dict[str, Any] = {
    "anyOf": [{"properties": {f"a{each}": True}} for each in range(2000)],
    "unevaluatedProperties": False,
}
TWICE = [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "content"),
    [
        (chained(30, "anyOf", times=2), 1),
        (chained(30, "oneOf", times=2), 1),
        ({"propertyNames": {"$ref": "#/$defs/a0"}, "$defs": chained(30, "anyOf", times=2)["$defs"]}, {"a": 1}),
        (unevaluated(30), {"a": 1}),
        (LOOKUPS, {str(each): each for each in range(20_000)}),
        (LOOKUPS | {"unevaluatedProperties": True, "unevaluatedItems": False}, list(range(20_000))),
        ({"anyOf": TWICE, "type": "array"}, nested(60)),
        ({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}}, {"a": nested(3)}),
    ],
)
def test_work_that_multiplies_is_not_begun(schema: Any, content: Any) -> None:
    if "patternProperties" in schema:  # 2 to the 60th, by way of objects
        for _ in range(60):
            content = {"a": content}

    assert "it cannot be checked: the content is too large to check against this schema" == reason(schema, content)


DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
NAMES = [str(each) for each in range(200)]
ALL_NEED_ALL = {"dependentRequired": dict.fromkeys(NAMES, NAMES)}


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ({"items": {"not": {"enum": [[0, 0, 0, 0, each] for each in range(1, 1000)]}}}, [[0, 0, 0, 0, 0]] * 2000),
        ({"items": {"not": {"enum": [{"a": 0, "b": each} for each in range(1, 1000)]}}}, [{"a": 0, "b": 0}] * 3000),
        ({"items": {"not": {"enum": [each + 0.5 for each in range(1000)]}}}, [0.1] * 1000),
        ({"items": {"allOf": [{"const": [0] * 20}] * 500}}, [[0] * 20] * 1000),
        ({"items": {"allOf": [{"multipleOf": 1e-300}] * 100}}, [5] * 1000),
        ({"items": {"allOf": [{"multipleOf": 0.01}] * 100}}, [5] * 3000),
        ({"items": {"allOf": [{"maximum": 1e300}] * 500}}, [1.5] * 3000),
        ({"allOf": [{"uniqueItems": True}] * 2000}, list(range(2000))),
        ({"allOf": [{"uniqueItems": True}] * 2000}, ["x" * 5000]),
        (DRAFT_7 | {"allOf": [{"contentMediaType": "application/json"}] * 2000}, f"[{'1,' * 5000}1]"),
        (
            {"items": {"allOf": [{"$ref": "#/$defs/a"}] * 20}, "$defs": {"a": ALL_NEED_ALL}},
            [dict.fromkeys(NAMES, 0)] * 200,
        ),
        (DRAFT_7 | {"items": {"dependencies": dict.fromkeys(NAMES, NAMES)}}, [dict.fromkeys(NAMES, 0)] * 600),
        ({"uniqueItems": True}, [2**63 + each for each in range(1000)]),
        ({"uniqueItems": True}, [2**62 + each for each in range(5000)]),
        ({"uniqueItems": True}, [[2**63 + each] for each in range(1000)]),
        ({"uniqueItems": True}, [10**999 + each for each in range(300)]),
        ({"items": {"allOf": [{"minimum": 0.5}] * 200}}, [10**4200] * 70),
        ({"items": {"allOf": [{"const": [1] * 60}] * 1000}}, [[10**4200]] * 70),
        (DRAFT_7 | {"allOf": [{"contentEncoding": "base64"}] * 2000}, "QUFB" * 2000),
        ({"properties": {"a": {"$ref": "#"}}, "allOf": [{"uniqueItems": True}] * 2000}, {"a": list(range(2000))}),
    ],
)
def test_keywords_that_take_long_cost_more(schema: Any, content: Any) -> None:
    assert "it cannot be checked: the content is too large to check against this schema" == reason(schema, content)


def test_long_results_match_usual_keywords() -> None:
    item = {
        "properties": {"price": {"type": "number", "minimum": 0, "multipleOf": 0.01}, "unit": {"enum": ["g", "kg"]}}
    }

    assert (
        finding({"items": item, "uniqueItems": True}, [{"price": each, "unit": "g"} for each in range(12_000)]) is None
    )
    assert finding(DRAFT_7 | {"contentEncoding": "base64"}, "QUFB" * 500_000) is None
    assert finding({"uniqueItems": True}, [2**63 + each for each in range(500)]) is None
    assert finding({"uniqueItems": True}, [2**59 + each for each in range(2000)]) is None
    assert finding({"items": {"uniqueItems": True}}, [[2**63, 2**64, 2**65]] * 5000) is None
    assert finding({"uniqueItems": True}, [str(2**63 + each) for each in range(20_000)]) is None
    assert finding({"items": {"minimum": 0}}, [10**600] * 20) is None


def test_a_costly_check_is_not_made_twice() -> None:
    content = [10**16] * 8000

    assert "nested too deeply, to find out where" in reason(
        {"items": {"allOf": [{"minimum": 0.5}] * 20}}, [*content, 0]
    )


def test_a_value_that_is_nested_too_deep_for_its_schema_is_not_let_loose_on_the_stack() -> None:
    schema: dict[str, Any] = {"$ref": "#"}
    for _ in range(25):
        schema = {"anyOf": [schema, False]}

    assert "it cannot be checked: the content is nested too deeply to check against this schema" == reason(
        {"items": schema}, nested(100)
    )


def test_what_is_let_loose_fits_a_small_stack() -> None:
    schema: dict[str, Any] = {"$ref": "#"}
    for _ in range(25):
        schema = {"anyOf": [schema, {"type": "null"}]}
    found: list[str] = []
    before = threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(reason({"items": schema, "type": "array"}, nested(35))))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()

    assert ["it does not match the schema; it is too large, or nested too deeply, to find out where"] == found


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(?=(a+)+$)(a+)+$", "^(a+)+\\1$", LOOKS_AROUND])
def test_patterns_do_not_run_away(pattern: str) -> None:
    for schema in ({"pattern": pattern}, {"anyOf": [{"pattern": pattern}]}):
        assert reason(schema, BOOM) != ""
    assert reason({"patternProperties": {pattern: False}, "required": [BOOM, "b"]}, {BOOM: 1}) != ""


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"pattern": LOOKS_AROUND}},
        {"not": {"anyOf": [{"pattern": LOOKS_AROUND}, {"type": "null"}]}},
        {"oneOf": [{"pattern": LOOKS_AROUND}, True]},
        {"if": {"pattern": LOOKS_AROUND}, "else": True, "then": False},
        {"propertyNames": {"pattern": LOOKS_AROUND}},
    ],
)
def test_a_match_that_was_given_up_is_no_verdict(schema: dict[str, Any]) -> None:
    content = {BOOM: 1} if "propertyNames" in schema else BOOM

    assert "it cannot be checked: matching a `pattern` of the output schema takes too long" == reason(schema, content)


def test_a_long_text_is_not_tried_on_a_pattern_that_looks_around() -> None:
    schema = {"properties": {"name": {"pattern": "^(?:(?=.*x)a)*$"}, "body": {"type": "string"}}}

    assert "more than 1000 characters, and the schema has a `pattern`" in reason(schema, {"name": "a" * 100_000 + "x"})
    assert finding(schema, {"name": "", "body": "a" * 100_000}) is None  # which no such pattern meets


def test_an_address_is_matched_with_a_pattern_that_looks_around() -> None:
    pattern = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
    schema = {"items": {"pattern": pattern}}

    assert finding(schema, ["some.body@mail.example.org"] * 300) is None
    assert "/1" == getattr(finding(schema, ["a@example.org", "a..b@example.org"]), "pointer", None)


def test_a_large_pattern_is_matched_with_short_texts_only() -> None:
    schema = {"items": {"pattern": "^.{1,1000}$"}}

    assert finding(schema, ["a" * 1000] * 9) is None
    assert "it cannot be checked: the content is too large to check against this schema" == reason(
        schema, ["a" * 1000] * 11
    )
    assert finding({"items": {"pattern": "^.{1,10}$"}}, ["a" * 10] * 9000) is None


def test_a_defect_of_the_library_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    class Broken:
        def __init__(self, *_: object, **__: object) -> None:
            raise PanicException

    monkeypatch.setattr(jsonschema_rs, "Draft202012Validator", Broken)

    assert "it cannot be checked: the JSON Schema validator (jsonschema_rs) crashed" == reason(WEATHER, FITS)


@pytest.mark.parametrize("content", ["\ud800", {1: 2}, b"x", object(), float("nan")])
def test_what_is_no_json_is_a_finding(content: object) -> None:
    assert finding({"type": ["object", "string", "number"]}, content) is not None


# What is said


def test_a_finding_quotes_no_content_and_is_short() -> None:
    content = {"\x1b[31m" + "secret" * 1000: "\x1b[31m" + "secret" * 100_000}
    found = finding({"additionalProperties": {"type": "number"}}, content)

    assert found is not None
    assert output_validation.MAX_POINTER_LENGTH <= len(found.pointer) < output_validation.MAX_POINTER_LENGTH + 10
    assert str(found).isprintable()
    assert 'it is not of type "number"' == found.reason
    assert len(str(found)) < 2000


def test_what_the_server_wrote_is_shortened_and_harmless() -> None:
    found = reason({"additionalProperties": False}, {"\x1b[31m\n" + "x" * 1000: 1})

    assert len(found) <= output_validation.MAX_REASON_LENGTH + 10
    assert found.isprintable()


def test_errors_are_not_collected_where_they_would_copy_the_content_for_each_alternative() -> None:
    content = [{"a": "x" * 50}] * 5000

    assert "nested too deeply, to find out where" in reason({"anyOf": [{"type": "string"}] * 500}, content)


# That nothing of the above refuses what is ordinary, or decides otherwise than the reference implementation

leaves = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"minimum": 1}, {"enum": ["a", 1]}, {"pattern": "^a"}, True, False, {}]
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
                "additionalProperties": inner,
                "items": inner,
                "prefixItems": st.lists(inner, min_size=1, max_size=2),
                "unevaluatedProperties": inner,
                "contains": inner,
                "propertyNames": inner,
            },
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2), "not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
        st.just({"items": {"$ref": "#"}, "properties": {"a": {"$ref": "#"}}}),
    ),
    max_leaves=8,
)
values = st.recursive(
    st.sampled_from(["a", "b", 1, 0, None, True, 1.5]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("schema", "content", "expected"),
    [
        ({"contains": {"type": "string"}}, [1], "too few or too many of its items match the schema of `contains`"),
        ({"not": {"type": "string"}}, "a", "it matches the schema of `not`"),
        (False, "a", "the schema is `false`, which accepts no value"),
    ],
)
def test_the_reason_is_a_sentence_about_the_value(schema: Any, content: Any, expected: str) -> None:
    assert expected == reason({"properties": {"value": schema}}, {"value": content})


def test_the_text_of_the_error_does_not_call_unchecked_content_invalid() -> None:
    error = InvalidStructuredContent(
        revision="2025-11-25", pointer="", tool="t", reason="it cannot be checked", result=0
    )
    assert "the structured content of the tool 't' was refused: it cannot be checked" == str(error)


@pytest.mark.slow
@given(schema=schemas.filter(lambda each: isinstance(each, dict)), content=values)
def test_verdicts_are_those_of_the_reference(schema: dict[str, Any], content: Any) -> None:
    root = {"properties": {"value": {"$ref": "#/$defs/a"}}, "$defs": {"a": schema}}
    found = finding(root, {"value": content})
    expected = Draft202012Validator(root).is_valid({"value": content})
    if found is not None and found.reason.startswith("it cannot be checked"):
        assert '"$ref":"#"' in msgspec.json.encode(schema).decode()  # a reference to the root, in place
        return

    assert expected == (found is None)
