"""The stash by itself: differences, edits, and where they lie in a message."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpgen.runtime.adapt import stash as stashing
from mcpgen.runtime.adapt.stash import KEY, Edit, Stash, apply_stash, difference, is_same_json, put_stash, take_stash

KEYS = st.sampled_from(["a", "b", "c/d", "~", "", "0"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 2.5]) | st.text(max_size=2)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def ordered(value: Any) -> str:
    return json.dumps(value)


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.slow
@given(now=JSON, wanted=JSON)
@example(now={"a": 1, "b": 2, "c": 3}, wanted={"b": 2, "x": 0, "a": 1})
@example(now={"a": {"0": 1}}, wanted={"a": [1]})
@example(now=[[1], [1]], wanted=[[1], [2]])
@example(now={"b": 1}, wanted={"a": 1, "b": 1, "c": 1})
@example(now=True, wanted=1)
@example(now=1, wanted=1.0)
def test_applying_a_difference_gives_what_was_wanted_with_its_keys_in_order(now: Any, wanted: Any) -> None:
    before = ordered(now)
    patch = apply_stash(difference(now, wanted), now)

    assert ordered(wanted) == ordered(patch.value)
    assert 0 == patch.stale
    assert before == ordered(now)


@pytest.mark.slow
@given(value=JSON)
def test_there_is_no_difference_between_a_value_and_its_copy(value: Any) -> None:
    found = difference(value, json.loads(json.dumps(value)))

    assert ([], {}) == (found.edits, found.orders)


@pytest.mark.slow
@given(now=JSON, wanted=JSON, other=JSON)
def test_a_stash_for_another_value_only_makes_edits_that_it_announces(now: Any, wanted: Any, other: Any) -> None:
    found = difference(now, wanted)
    patch = apply_stash(found, other)

    assert len(found.edits) == len(patch.restored) + patch.stale
    if not patch.restored and not found.orders:
        assert ordered(other) == ordered(patch.value)


@pytest.mark.slow
@given(now=JSON, wanted=JSON)
def test_a_stash_survives_the_wire(now: Any, wanted: Any) -> None:
    kept = put_stash({}, "_meta", "2025-06-18", difference(now, wanted))
    message, found, problem = take_stash(json.loads(json.dumps(kept)), "_meta", "2025-06-18")

    assert ({}, None) == (message, problem)
    assert found is not None
    assert ordered(wanted) == ordered(apply_stash(found, now).value)


def test_a_key_in_no_list_is_known_by_itself() -> None:
    found = difference({"a": 1}, {"a": 1, "b": {"c": 2}})

    assert [Edit(at="/b", value={"c": 2}, index=1)] == found.edits
    assert {"a": 5, "b": {"c": 2}} == apply_stash(found, {"a": 5}).value


def test_a_key_in_an_item_is_known_by_the_item() -> None:
    found = difference({"tools": [{"n": 1}, {"n": 2}]}, {"tools": [{"n": 1, "t": "one"}, {"n": 2}]})

    assert 1 == apply_stash(found, {"tools": [{"n": 2}, {"n": 1}]}).stale
    assert {"tools": [{"n": 1, "t": "one"}, {"n": 3}]} == apply_stash(found, {"tools": [{"n": 1}, {"n": 3}]}).value


def test_lists_of_different_length_are_one_edit() -> None:
    assert [Edit(at="/a", was=difference([1], 0).edits[0].was, value=[1, 2])] == difference(
        {"a": [1]}, {"a": [1, 2]}
    ).edits


def test_what_lies_deeper_than_pointers_reach_is_one_edit() -> None:
    now, wanted = nested(300, 1), nested(300, 2)
    found = difference(now, wanted)

    assert [stashing.MAX_TOKENS] == [edit.at.count("/") for edit in found.edits]
    assert wanted == apply_stash(found, now).value


@pytest.mark.parametrize(
    ("at", "was"),
    [
        ("/9", "item"),
        ("/-", "item"),
        ("/01", "item"),
        ("/-1", "item"),
        ("/\u0661", "item"),
        ("/1e0", "item"),
        ("/99999999999999999999999", "item"),
        ("/0/a/b", "item"),
        ("/0/__class__", "item"),
        ("/0/a/__init__/__globals__", None),
    ],
)
def test_pointers_to_no_place_do_nothing(at: str, was: str | None) -> None:
    value: list[Any] = [{"a": 1}]
    known = difference(value, [{"a": 2}]).edits[0].was
    edit = Edit(at=at, was=known, value="evil") if was else Edit(at=at, value="evil")
    patch = apply_stash(Stash(edits=[edit]), value)

    if at == "/0/__class__":  # a key like any other
        assert [{"a": 1, "__class__": "evil"}] == patch.value
    else:
        assert (value, 1) == (patch.value, patch.stale)


def test_items_are_not_deleted_and_the_whole_is_not_either() -> None:
    value = [1]
    was = difference(value, 0).edits[0].was
    item = difference(value, [2]).edits[0].was
    patch = apply_stash(Stash(edits=[Edit(at="", was=was), Edit(at="/0", was=item)]), value)

    assert (value, 2) == (patch.value, patch.stale)


def test_edits_that_undo_each_other_and_orders_of_keys_that_are_not_there_are_harmless() -> None:
    edits = [
        Edit(at="/b", value={"c": 1}, index=0),
        Edit(at="/b/c", value=2, index=7),
        Edit(at="/b", value=3, index=99),
        Edit(at="/a"),
    ]
    orders = {"": ["z", "b", "b", "a"], "/a": ["x"], "/nowhere": ["x"]}
    patch = apply_stash(Stash(edits=edits, orders=orders), {"a": 1})

    assert {"b": 3, "a": 1} == patch.value


def test_a_stash_made_to_be_slow_is_stopped() -> None:
    value: Any = ["x" * 2_000_000]
    for _ in range(60):
        value = [value]
    pointers = ["/0" * depth for depth in range(1, 60)]
    patch = apply_stash(Stash(edits=[Edit(at=at, was="0" * 16, value=1) for at in pointers]), value)

    assert len(pointers) == patch.stale


# In a message


def test_the_key_is_one_that_the_specification_leaves_to_us() -> None:
    prefix, _, name = KEY.partition("/")
    labels = prefix.split(".")

    assert all(re.fullmatch(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?", label) for label in labels)
    assert {"modelcontextprotocol", "mcp"}.isdisjoint(labels)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", name)


EMPTY = Stash(edits=[])


@pytest.mark.parametrize("message", [{"a": 1}, {"_meta": {}, "a": 1}, {"a": 1, "_meta": {"x": 1}}])
def test_taking_a_stash_leaves_the_message_that_it_was_put_into(message: dict[str, Any]) -> None:
    before = ordered(message)
    kept = put_stash(message, "_meta", "2025-06-18", EMPTY)

    assert before == ordered(message)
    assert kept is not None
    assert before == ordered(take_stash(kept, "_meta", "2025-06-18")[0])


def test_stashes_for_several_revisions_lie_side_by_side() -> None:
    one = put_stash({}, "_meta", "2025-06-18", EMPTY)
    both = put_stash(one or {}, "_meta", "2025-11-25", EMPTY)
    rest, _, _ = take_stash(both, "_meta", "2025-11-25")

    assert one == rest
    assert (both, None, None) == take_stash(both, "_meta", "2024-11-05")


@pytest.mark.parametrize("message", [1, [], None, "x", {}, {"_meta": 1}, {"_meta": []}, {"_meta": {"x": 1}}])
def test_a_message_without_a_stash_is_left_alone(message: Any) -> None:
    assert (message, None, None) == take_stash(message, "_meta", "2025-06-18")


FORGED: list[Any] = [
    1,
    None,
    "x",
    [],
    {},
    {"edits": 1},
    {"edits": [1]},
    {"edits": [{}]},
    {"edits": [{"at": 1}]},
    {"edits": [{"at": "a"}]},
    {"edits": [{"at": "/a", "was": None}]},
    {"edits": [{"at": "/a", "index": -1}]},
    {"edits": [{"at": "/a", "index": True}]},
    {"edits": [{"at": "/a", "command": "rm"}]},
    {"edits": [], "orders": {"x": []}},
    {"edits": [], "orders": {"": [1]}},
    {"edits": [], "alone": 1},
    {"edits": [], "more": 1},
    {"edits": [{"at": "/a" * 65}]},
    {"edits": [{"at": "/a"}] * 6001},
    {"edits": [{"at": "/a", "value": "x" * 70_000}]},
    {"edits": [{"at": "/a", "value": object()}]},
]


@pytest.mark.parametrize("raw", FORGED, ids=range(len(FORGED)))
def test_a_stash_that_we_did_not_write_is_taken_out_and_said_to_be_bad(raw: Any) -> None:
    message = {"_meta": {KEY: {"2025-06-18": raw}, "x": 1}}
    rest, found, problem = take_stash(message, "_meta", "2025-06-18")

    assert ({"_meta": {"x": 1}}, None) == (rest, found)
    assert problem is not None
    assert problem.startswith("the stash ")


@pytest.mark.parametrize("raw", [1, [], None, "x"])
def test_what_is_no_map_of_revisions_is_taken_out(raw: Any) -> None:
    rest, found, problem = take_stash({"_meta": {KEY: raw}}, "_meta", "2025-06-18")

    assert ({"_meta": {}}, None, "the stash of lost values is malformed") == (rest, found, problem)


def test_a_stash_that_is_too_large_is_left_out() -> None:
    large = Stash(edits=[Edit(at="/a", value="x" * stashing.MAX_STASH_BYTES)])
    many = Stash(edits=[Edit(at="/a")] * (stashing.MAX_EDITS + 1))

    assert put_stash({}, "_meta", "2025-06-18", large) is None
    assert put_stash({}, "_meta", "2025-06-18", many) is None


def test_a_stash_has_no_place_in_what_is_no_object() -> None:
    assert put_stash({"data": "text"}, "data", "2025-06-18", EMPTY) is None


def test_the_largest_stash_can_be_read() -> None:
    text = "x" * (stashing.MAX_STASH_BYTES - 200)
    kept = put_stash({}, "_meta", "2025-06-18", Stash(edits=[Edit(at="/a", value=text)]))

    assert take_stash(kept, "_meta", "2025-06-18")[2] is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [({"a": 1, "b": 2}, {"b": 2, "a": 1}, True), (1, 1.0, False), (True, 1, False), ([1, 2], [2, 1], False)],
)
def test_sameness_is_that_of_json(one: Any, other: Any, expected: bool) -> None:  # noqa: FBT001
    assert expected == is_same_json(one, other)


def test_every_stash_is_readable_json() -> None:
    kept = put_stash({}, "_meta", "2025-06-18", difference({"a": [1]}, {"a": [2], "b": None}))

    assert kept == msgspec.json.decode(msgspec.json.encode(kept))
