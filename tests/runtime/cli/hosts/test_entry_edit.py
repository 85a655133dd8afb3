"""The text of a host's configuration gets one entry, and every other byte of it stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.api.hosts.jsonc import parse_jsonc
from mcpgen.runtime.cli.hosts.entry_edit import EditError, current_entry, with_entry

ENTRY = {"command": "py"}
CASES: dict[str, tuple[str, str]] = {
    "an empty file": (
        "",
        '{\n  "s": {\n    "new": {\n      "command": "py"\n    }\n  }\n}\n',
    ),
    "an empty object": (
        "{}\n",
        '{\n  "s": {\n    "new": {\n      "command": "py"\n    }\n  }\n}\n',
    ),
    "another key": (
        '{\n\t"a": 1\n}',
        '{\n\t"a": 1,\n\t"s": {\n\t\t"new": {\n\t\t\t"command": "py"\n\t\t}\n\t}\n}',
    ),
    "no servers yet": (
        '{\n "s": {},\n "b": 2\n}',
        '{\n "s": {\n  "new": {\n   "command": "py"\n  }\n },\n "b": 2\n}',
    ),
    "servers, comments and Windows line ends": (
        '{ // m\r\n "s": {\r\n  "x": {"k":  1} //\r\n  /* z */\r\n }\r\n}',
        '{ // m\r\n "s": {\r\n  "x": {"k":  1}, //\r\n  /* z */\r\n  "new": {\r\n   "command": "py"\r\n  }\r\n }\r\n}',
    ),
    "a trailing comma": (
        '{"s": {\n    "x": {},\n}}',
        '{"s": {\n    "x": {},\n    "new": {\n      "command": "py"\n    }\n}}',
    ),
    "one line": (
        '{"a":1,"s":{"x":{}}}',
        '{"a":1,"s":{"x":{}, "new": {"command": "py"}}}',
    ),
    "one line without servers": ('{"a":1}', '{"a":1, "s": {"new": {"command": "py"}}}'),
    "one line with no servers yet": ('{"a":1,"s":{}}', '{"a":1,"s":{"new": {"command": "py"}}}'),
    "one line with a trailing comma": (
        '{"s":{"x":{},} }',
        '{"s":{"x":{}, "new": {"command": "py"}} }',
    ),
    "servers on one line of many": (
        '{\n  "s": {"x": {}}\n}',
        '{\n  "s": {"x": {}, "new": {"command": "py"}}\n}',
    ),
    "the same name": (
        '{\n  "s": {\n    "new": {"command": "old"}, // keep\n    "y": {}\n  }\n}',
        '{\n  "s": {\n    "new": {\n      "command": "py"\n    }, // keep\n    "y": {}\n  }\n}',
    ),
    "the same name on one line": (
        '{"s":{"new":{"command":"old"},"y":{}}}',
        '{"s":{"new":{"command": "py"},"y":{}}}',
    ),
    "a comment in an empty object": (
        '{\n  "s": { /* none */ }\n}',
        '{\n  "s": { /* none */\n    "new": {\n      "command": "py"\n    }\n  }\n}',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_entry_is_added_in_the_layout_of_the_text(case: str) -> None:
    before, after = CASES[case]

    assert after == with_entry(before, "s", "new", ENTRY)


SPACES = st.sampled_from(["", " ", "\n", "\r\n  ", "\t", "/* a */", "\n// b\n", " /* { */ "])
KEYS = st.sampled_from(["s", "new", "a", "é", 'q"', "\\u0041", ""])
SCALARS = st.sampled_from(["1", "-1.50e3", '"x"', '"\\u00e9 \\" {"', "null", "true", '"//"', "[]", "[1, 2,]"])


@st.composite
def jsonc_object(draw: st.DrawFn, depth: int = 2) -> str:
    """Return the text of an object with comments, any white space, and perhaps a trailing comma."""
    parts: list[str] = []
    for key in draw(st.lists(KEYS, max_size=4, unique=True)):
        value = draw(jsonc_object(depth - 1)) if depth and (key in "snew" or draw(st.booleans())) else draw(SCALARS)
        parts.append(f"{draw(SPACES)}{json.dumps(key)}{draw(SPACES)}:{draw(SPACES)}{value}{draw(SPACES)}")
    comma = "," if parts and draw(st.booleans()) else ""
    return "{" + ",".join(parts) + comma + draw(SPACES) + "}"


@pytest.mark.slow
@given(before=jsonc_object(), around=st.tuples(SPACES, SPACES))
def test_the_value_changes_in_one_place_and_no_other_text_goes(before: str, around: tuple[str, str]) -> None:
    text = around[0] + before + around[1]
    value: dict[str, Any] = parse_jsonc(text).value
    if not isinstance(value.get("s", {}), dict):
        with pytest.raises(EditError, match="is not an object"):
            with_entry(text, "s", "new", ENTRY)
        return
    after = with_entry(text, "s", "new", ENTRY)

    expected = {**value, "s": {**value.get("s", {}), "new": ENTRY}}
    assert expected == parse_jsonc(after).value
    old = value.get("s", {}).get("new")
    assert old == current_entry(text, "s", "new")
    if old is None:  # text was only added: all of the old text is there, in its order
        rest = iter(after)
        assert all(each in rest for each in text if each not in " \t")  # { } is broken into lines
    assert ENTRY == current_entry(after, "s", "new")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "it is not a JSON object"),
        ('{"s": }', "it cannot be read as JSON: line 1, column 7: a JSON value is missing"),
        ('{"s": []}', 'its `s` is not an object; write {"s": {}}, and try again'),
        ('{"s": {}, "s": {}}', "it has `s` twice; remove one of them"),
        ('{"s": {"new": 1, "n\\u0065w": 2}}', "it has `new` twice; remove one of them"),
        ("// only a comment", "it cannot be read as JSON: line 1, column 18: a JSON value is missing"),
    ],
)
def test_a_text_without_a_place_for_it_is_refused(text: str, reason: str) -> None:
    for function in (lambda: with_entry(text, "s", "new", ENTRY), lambda: current_entry(text, "s", "new")):
        with pytest.raises(EditError) as failure:
            function()

        assert reason == str(failure.value)


def test_names_and_values_of_other_languages_stay_readable() -> None:
    after = with_entry("{}", "s", "läden", {"command": "C:\\Programme\\ü"})

    assert '"läden": {\n      "command": "C:\\\\Programme\\\\ü"' in after
