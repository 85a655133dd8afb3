"""Checking the answer to a form takes no longer for many options, and reads any form that a revision allows."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.client.form_answers import find_mismatch, get_choices

compared = 0


class Option(str):
    """An option that counts how often it is compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        global compared  # noqa: PLW0603 (an instance has no place for it)
        compared += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def test_each_value_of_a_long_selection_is_looked_up_once() -> None:
    names = [str(number) for number in range(1000)]
    form = {"properties": {"many": {"type": "array", "items": {"enum": [Option(each) for each in names]}}}}
    assert find_mismatch({"many": names}, form) is None
    assert compared < 3 * len(names)
    assert str(find_mismatch({"many": ["none"]}, form)).endswith("'18', '19', …")
    assert find_mismatch({"many": [[]]}, form) is not None


@pytest.mark.parametrize(
    "more",
    [
        {"oneOf": [{"title": "a"}]},
        {"oneOf": ["a"]},
        {"oneOf": []},
        {"anyOf": 5},
        {"enum": [["a"]]},
        {"enum": 5},
        {"enum": []},
    ],
)
def test_a_field_with_something_else_in_place_of_options_takes_any_value(more: dict[str, Any]) -> None:
    form = {"properties": {"x": {"type": "string", **more}}}

    assert find_mismatch({"x": "a"}, form) is None
    assert not get_choices(form["properties"]["x"])
