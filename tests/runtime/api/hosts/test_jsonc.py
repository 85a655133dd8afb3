"""JSON with comments: what is read, what is refused and where, and the places of the parts."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any, SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.api.hosts.jsonc import JsoncError, parse_jsonc

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=VALUES, indent=st.sampled_from([None, 2, "\t"]), is_ascii=st.booleans())
@pytest.mark.slow
def test_it_reads_json_as_json_does(value: Any, indent: int | str | None, *, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)

    assert value == parse_jsonc(text).value


def test_comments_and_trailing_commas_are_no_part_of_the_value() -> None:
    text = '// a\n{ /* b */ "k" /* c */ : [1, 2, /* d */ ], // "e": 1\n "u": "//x /* y */", }\n/* f\n */ // g'

    assert {"k": [1, 2], "u": "//x /* y */"} == parse_jsonc(text).value


def test_each_member_has_its_place() -> None:
    text = '{ "a": {"b": [1]}, "c": "d" }'
    root = parse_jsonc(text)

    assert ['{"b": [1]}', '"d"'] == [text[each.node.start : each.node.end] for each in root.members]
    assert ['"a"', '"c"'] == [text[each.start : each.start + 3] for each in root.members]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1, column 1: a JSON value is missing"),
        ("{", "line 1, column 2: a key in double quotes, or a closing brace, is missing"),
        ('{"a": 1 "b": 2}', "line 1, column 9: a comma or a closing brace is missing"),
        ('{"a" 1}', "line 1, column 6: a colon is missing after the key"),
        ('{"a": 1}\n\n]', "line 3, column 1: there is more text after the end of the value"),
        ('{\n  "a": [1 2]}', "line 2, column 11: a comma or a closing bracket is missing"),
        ('{"a": hunter2}', "line 1, column 7: a JSON value is missing"),
        ('{"a": "hunter2\n"}', "line 1, column 7: the string has no end, or has a line break, a tab or the like in it"),
        ('{"a": "\\x"}', "line 1, column 7: the value is invalid: Invalid \\escape"),
        ("{,}", "line 1, column 2: a key in double quotes, or a closing brace, is missing"),
        ("[,]", "line 1, column 2: a JSON value is missing"),
        ("{'a': 1}", "line 1, column 2: a key in double quotes, or a closing brace, is missing"),
        ("/* {}", "line 1, column 1: a JSON value is missing"),
        ("NaN", "line 1, column 1: a JSON value is missing"),
        ("01", "line 1, column 2: there is more text after the end of the value"),
        ("[" * 200, "line 1, column 102: there are more than 100 nested levels"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_without_the_text(text: str, reason: str) -> None:
    with pytest.raises(JsoncError) as failure:
        parse_jsonc(text)

    assert reason == str(failure.value)


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(JsoncError, match="line 1, column 1: the number has too many digits"):
        parse_jsonc("1" * 5000)


def test_many_objects_do_not_make_the_text_be_copied_many_times() -> None:
    copied = 0

    class Text(str):
        __slots__ = ()

        def __getitem__(self, key: SupportsIndex | slice) -> str:
            nonlocal copied
            found = super().__getitem__(key)
            copied += len(found)
            return found

    text = Text(f"[{'{},' * 2000}]")

    assert [{}] * 2000 == parse_jsonc(text).value
    assert copied < 10 * len(text)


@pytest.mark.parametrize("text", ['"' + "a" * 500_000 + '"', '"' + "\\n" * 250_000 + '"', "// a\n" * 100_000 + "1"])
def test_long_strings_and_many_comments_take_little_memory(text: str) -> None:
    tracemalloc.start()
    try:
        parse_jsonc(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 5 * len(text)
