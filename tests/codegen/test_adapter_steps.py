"""What the compiled adapters do to values, in revisions small enough to see why."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.discriminators import conditions, may_overlap
from mcpgen.codegen.adapters.known_keys import RevisionTypes
from mcpgen.codegen.changes.vocabulary import Convert, Default, Drop, Keep, Read, Recode, Refuse, Rename
from mcpgen.codegen.overlay import ErrorCode
from tests.codegen.adapter_cases import SAYS, Adapters, change, compiled, functions
from tests.codegen.editions import INTEGER, STRING, any_of, obj, read, ref, request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from mcpgen.codegen.adapters.ops import Condition

BOOLEAN: dict[str, Any] = {"type": "boolean"}
SHORT: dict[str, Any] = {"type": "string", "maxLength": 3}


def array(items: Any, **bounds: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **bounds}


def mapping(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def constant(value: str | int) -> dict[str, Any]:
    return {"const": value}


# Functions that changes declare, as a module of changes holds them.
SOURCE = '''
def cut(value: str, at: At, losses: Losses) -> str:
    """Return the first three characters."""
    if len(value) > 3:
        losses.degraded(at, "It was too long.")
    return value[:3]


def as_text(value: object, at: At, losses: Losses) -> str:
    """Return a value as text."""
    losses.degraded(at, "It became text.")
    return str(value)


def as_block(value: object, at: At, losses: Losses) -> dict[str, Any]:
    """Return a number or a picture as a text block."""
    losses.degraded(at, "It became a text.")
    return {"type": "text", "text": "?"}


def made(holder: dict[str, Any], at: At, losses: Losses) -> str:
    """Return a key made from what stands beside it."""
    return "made of " + ", ".join(holder)


def without_odd(value: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return an object without its key odd."""
    if "odd" not in value:
        return value
    losses.dropped((at, "odd"), "Odd.")
    return {key: held for key, held in value.items() if key != "odd"}
'''
F = functions(SOURCE)

Compile = partial[Adapters]


@pytest.fixture
def build(tmp_path: Path) -> Compile:
    return partial(compiled, tmp_path, source=SOURCE)


# Keys that came


ADDED = {"A": obj(x=STRING)}, {"A": obj(x=STRING, y=INTEGER)}


@pytest.mark.slow
def test_an_optional_key_that_came_stays_going_up_if_it_is_valid_there(build: Compile) -> None:
    assert ({"y": 1, "x": "s"}, []) == build(*ADDED).up({"y": 1, "x": "s"})


@pytest.mark.slow
def test_an_optional_key_that_came_goes_with_a_loss_going_up_if_it_is_not_valid_there(build: Compile) -> None:
    assert ({"x": "s"}, [("dropped", "/y")]) == build(*ADDED).up({"x": "s", "y": "s"})


@pytest.mark.slow
def test_an_optional_key_that_came_goes_with_a_loss_going_down(build: Compile) -> None:
    assert ({"x": "s"}, [("dropped", "/y")]) == build(*ADDED).down({"x": "s", "y": 1})


@pytest.mark.parametrize("way", ["up", "down"])
def test_an_optional_key_that_came_is_not_missed(build: Compile, way: str) -> None:
    assert ({"x": "s"}, []) == getattr(build(*ADDED), way)({"x": "s"})


def test_a_loss_says_what_where_why_and_in_which_step(build: Compile) -> None:
    adapters = build(*ADDED)
    up, down = (
        adapters.losses(getattr(adapters.step(), way).definitions["A"][1], {"y": "s"}) for way in ("UP", "DOWN")
    )

    assert [("/y", "step", "2 does not allow this value there.", "dropped")] == [
        (each.pointer, each.step, each.reason, each.severity) for each in up
    ]
    assert ["1 does not define this key."] == [each.reason for each in down]


@pytest.mark.slow
def test_a_change_says_why_its_key_is_dropped(build: Compile) -> None:
    adapters = build(*ADDED, changes=[change("key-added A.y", down=Drop())])
    (loss,) = adapters.losses(adapters.step().DOWN.definitions["A"][1], {"y": 1})

    assert SAYS == loss.reason


@pytest.mark.slow
def test_a_change_may_be_called_as_the_tables_are(build: Compile) -> None:
    adapters = build(*ADDED, changes=[change("key-added A.y", name="down", down=Drop())])
    (loss,) = adapters.losses(adapters.step().DOWN.definitions["A"][1], {"y": 1})

    assert SAYS == loss.reason


def test_a_pointer_escapes_the_names_of_keys(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=STRING)}, {"A": obj(**{"a/b~c": STRING})}, changes=[change("key-removed A.x", up=Drop())]
    )

    assert ({}, [("dropped", "/a~1b~0c")]) == adapters.down({"a/b~c": "s"})


NESTED: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "a key": (ref("P"), lambda held: held, "/x"),
    "a list": (array(ref("P")), lambda held: [{"p": "other"}, held], "/x/1"),
    "a map": (mapping(ref("P")), lambda held: {"other": {"p": "other"}, "k": held}, "/x/k"),
    "a list of maps": (array(mapping(ref("P"))), lambda held: [{"k": held}], "/x/0/k"),
    "a map of lists": (mapping(array(ref("P"))), lambda held: {"k": [held]}, "/x/k/0"),
    "a list of lists": (array(array(ref("P"))), lambda held: [[], [held]], "/x/1/0"),
    "an alias": (ref("Alias"), lambda held: held, "/x"),
    "an alias of a list": (ref("List"), lambda held: [held], "/x/0"),
    "a union": (any_of(ref("P"), STRING), lambda held: held, "/x"),
    "an alias of a union": (ref("Union"), lambda held: held, "/x"),
    "a list of a union": (array(ref("Union")), lambda held: ["s", held], "/x/1"),
    "a list in a union": (any_of(array(ref("P")), STRING), lambda held: [held], "/x/0"),
    "an inline object": (obj(k=ref("P")), lambda held: {"k": held}, "/x/k"),
}


def around(held: Any, **keys: Any) -> dict[str, Any]:
    """Return a revision in which ``P`` with *keys* stands inside what *held* says."""
    return {
        "A": obj(x=held),
        "P": obj("p", p=STRING, **keys),
        "Alias": ref("P"),
        "List": array(ref("P")),
        "Union": any_of(ref("P"), STRING),
    }


@pytest.mark.parametrize("place", NESTED)
@pytest.mark.slow
def test_a_key_that_came_is_found_inside(build: Compile, place: str) -> None:
    held, wrap, pointer = NESTED[place]
    adapters = build(around(held), around(held, q=INTEGER))
    bare, full, wrong = ({"x": wrap({"p": "s", **more})} for more in ({}, {"q": 1}, {"q": "s"}))

    assert (full, []) == adapters.up(full)
    assert (bare, [("dropped", f"{pointer}/q")]) == adapters.up(wrong)
    assert (bare, [("dropped", f"{pointer}/q")]) == adapters.down(full)


@pytest.mark.parametrize("place", ["a union", "an alias of a union", "a list in a union"])
@pytest.mark.slow
def test_other_arms_of_a_union_pass(build: Compile, place: str) -> None:
    held, _, _ = NESTED[place]

    assert ({"x": "s"}, []) == build(around(held), around(held, q=INTEGER)).down({"x": "s"})


@pytest.mark.slow
def test_a_type_that_holds_itself_is_followed_as_deep_as_it_goes(build: Compile) -> None:
    holding = {"child": ref("A"), "children": array(ref("A"))}
    adapters = build({"A": obj(**holding)}, {"A": obj(**holding, y=INTEGER)})

    result, losses = adapters.down({"child": {"children": [{}, {"child": {"y": 1}}], "y": 2}})

    assert {"child": {"children": [{}, {"child": {}}]}} == result
    assert {("dropped", "/child/children/1/child/y"), ("dropped", "/child/y")} == set(losses)


@pytest.mark.slow
def test_an_alias_that_holds_itself_is_followed_as_deep_as_it_goes(build: Compile) -> None:
    tree = {"A": obj(x=ref("Tree")), "Tree": any_of(ref("Leaf"), array(ref("Tree")))}
    adapters = build(tree | {"Leaf": obj(l=STRING)}, tree | {"Leaf": obj(l=STRING, y=INTEGER)})

    assert ({"x": [[{}], {}]}, [("dropped", "/x/0/0/y")]) == adapters.down({"x": [[{"y": 1}], {}]})


# Keys of other revisions


THREE = {"A": obj(x=STRING)}, {"A": obj(x=STRING)}, {"A": obj(x=STRING, y=INTEGER)}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_key_that_only_a_later_revision_defines_goes_where_neither_side_does(build: Compile, way: str) -> None:
    assert ({"x": "s"}, [("dropped", "/y")]) == getattr(build(*THREE), way)({"y": 1, "x": "s"})


@pytest.mark.slow
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_key_that_only_an_earlier_revision_defined_goes_where_neither_side_does(build: Compile, way: str) -> None:
    adapters = build(*reversed(THREE), changes=[change("key-removed A.y", up=Drop())])

    assert ({"x": "s"}, [("dropped", "/y")]) == getattr(adapters, way)({"y": 1, "x": "s"}, old="2")


def test_going_down_the_target_does_not_get_keys_that_the_source_does_not_define(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=STRING, y=STRING)}, {"A": obj(x=STRING)}, changes=[change("key-removed A.y", up=Drop())]
    )

    assert ({"x": "s"}, [("dropped", "/y")]) == adapters.down({"x": "s", "y": "s"})


@pytest.mark.slow
def test_a_key_is_foreign_even_if_no_message_of_the_revision_that_defines_it_holds_its_type(build: Compile) -> None:
    lost = change("type-changed GoParams.a", up=Refuse(), down=Refuse())
    adapters = build(*THREE[:2], THREE[2] | {"GoParams": obj("a", a=STRING)}, later=[[lost]])

    assert ({"x": "s"}, [("dropped", "/y")]) == adapters.up({"x": "s", "y": 1})


@pytest.mark.slow
def test_what_holds_keys_of_still_later_revisions_is_not_admitted(build: Compile) -> None:
    revisions = (
        {"A": obj(x=STRING)},
        {"A": obj(x=STRING, p=array(ref("P"))), "P": obj(a=STRING)},
        {"A": obj(x=STRING, p=array(ref("P"))), "P": obj(a=STRING, b=INTEGER)},
    )

    adapters = build(*revisions)

    assert ({"p": [{}, {"a": "s", "u": 0}]}, []) == adapters.up({"p": [{}, {"a": "s", "u": 0}]})
    assert ({}, [("dropped", "/p")]) == adapters.up({"p": [{}, {"a": "s", "b": 1, "u": 0}]})


# What is left alone


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.slow
def test_keys_that_no_revision_knows_stay_where_they_stand(build: Compile, way: str) -> None:
    result, losses = getattr(build(*ADDED), way)({"z": [1], "x": "s", "y": "wrong", "b": None})

    assert (["z", "x", "b"], [("dropped", "/y")]) == (list(result), losses)


@pytest.mark.slow
def test_what_is_filled_in_comes_last(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=STRING)},
        {"A": obj("y", x=STRING, y=STRING)},
        changes=[change("key-added A.y", up=Default(value="d"))],
    )

    assert ["z", "x", "y"] == list(adapters.up({"z": 1, "x": "s"})[0])


@pytest.mark.slow
def test_a_key_stands_where_its_value_was_adapted(build: Compile) -> None:
    adapters = build(
        around(ref("P")) | {"A": obj(w=STRING, x=ref("P"))},
        around(ref("P"), q=STRING) | {"A": obj(w=STRING, x=ref("P"))},
    )

    assert ["x", "w"] == list(adapters.down({"x": {"q": "s"}, "w": "s"})[0])


@pytest.mark.slow
def test_a_part_that_only_foreign_keys_keep_busy_is_idle(build: Compile) -> None:
    step = build(*ADDED).step()

    assert (True, False) == (step.UP.messages["go"].params.idle, step.DOWN.messages["go"].params.idle)
    assert (True, False) == (step.UP.definitions["A"][1].idle, step.DOWN.definitions["A"][1].idle)


@pytest.mark.slow
def test_a_part_that_calls_one_that_is_not_idle_is_not_idle(build: Compile) -> None:
    held = array(ref("P"))
    adapters = build(
        around(held),
        around(held, q=SHORT) | {"P": obj("p", "q", p=STRING, q=STRING)},
        changes=[change("key-added P.q", up=Default(value="d"))],
    )

    assert not adapters.step().UP.messages["go"].params.idle


@pytest.mark.slow
@pytest.mark.parametrize("action", [Default(value="d"), Default(value="d", implied=True), Refuse()])
def test_a_demand_keeps_a_part_busy(build: Compile, action: Any) -> None:
    adapters = build(*NEEDED, changes=[change("key-added A.y", up=action)])

    assert not adapters.step().UP.definitions["A"][1].idle


@pytest.mark.slow
def test_what_needs_no_work_has_no_function(build: Compile) -> None:
    both = {"N": obj(n=STRING), "GoResult": obj(n=ref("N")), "U": any_of(ref("N"), STRING)}
    adapters = build(*({"A": each["A"], **both} for each in ADDED))
    step = adapters.step()

    assert {"up_a", "up_go_params", "down_a", "down_go_params"} == set(
        re.findall(r"^def (\w+)", adapters.text(), re.MULTILINE)
    ) - vars(F).keys()
    assert step.UP.messages["go"].result.adapt is adapters.adapting.keep
    assert step.UP.definitions["N"][1].adapt is adapters.adapting.keep


@pytest.mark.slow
def test_functions_that_do_the_same_are_one(build: Compile) -> None:
    old, new = (
        {"A": obj(p=ref("P"), q=ref("Q")), "P": obj(n=STRING, **more), "Q": obj(m=STRING, **more)}
        for more in ({}, {"y": STRING})
    )
    down = build(old, new).step().DOWN.definitions

    assert down["P"][1].adapt is down["Q"][1].adapt


@pytest.mark.slow
def test_functions_that_call_functions_that_do_the_same_are_one(build: Compile) -> None:
    old, new = (
        {
            "A": obj("p", "q", p=ref("P"), q=ref("Q")),
            "P": obj("h", h=ref("R")),
            "Q": obj("h", h=ref("S")),
            "R": obj(n=STRING, **more),
            "S": obj(m=STRING, **more),
        }
        for more in ({}, {"y": STRING})
    )
    down = build(old, new).step().DOWN.definitions

    assert down["P"][1].adapt is down["Q"][1].adapt
    assert down["A"][1].adapt is not down["P"][1].adapt


def test_functions_that_do_alike_for_different_reasons_are_two(build: Compile) -> None:
    old, new = (
        {"A": obj(p=ref("P"), q=ref("Q")), "P": obj(n=STRING, **more), "Q": obj(m=STRING, **more)}
        for more in ({}, {"y": STRING})
    )
    down = build(old, new, changes=[change("key-added P.y", down=Drop())]).step().DOWN.definitions

    assert down["P"][1].adapt is not down["Q"][1].adapt


# Labels of revisions


@pytest.mark.parametrize("key", ["protocolVersion", "io.modelcontextprotocol/protocolVersion"])
def test_the_label_of_the_source_becomes_that_of_the_target(build: Compile, key: str) -> None:
    adapters = build(*[{"A": obj(**{key: STRING})}] * 2)

    assert ({key: "2"}, []) == adapters.up({key: "1"})
    assert ({key: "1"}, []) == adapters.down({key: "2"})


def test_any_other_label_stays(build: Compile) -> None:
    adapters = build(*[{"A": obj(protocolVersion=STRING)}] * 2)

    assert ({"protocolVersion": "2"}, []) == adapters.up({"protocolVersion": "2"})
    assert ({"protocolVersion": "0"}, []) == adapters.down({"protocolVersion": "0"})
    assert ({}, []) == adapters.up({})


# Definitions with other names


def test_a_definition_that_only_changed_its_name_goes_by_the_other_one(build: Compile) -> None:
    keys = obj("t", "u", t=STRING, u=STRING)
    step = build({"A": obj(x=ref("Old")), "Old": keys}, {"A": obj(x=ref("New")), "New": keys}).step()

    assert ("New", "Old") == (step.UP.definitions["Old"][0], step.DOWN.definitions["New"][0])


@pytest.mark.slow
def test_a_declared_rename_joins_definitions_that_changed_more(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=ref("Old")), "Old": obj(t=STRING)},
        {"A": obj(x=ref("New")), "New": obj(t=STRING, u=INTEGER)},
        renames={"Old": "New"},
    )

    assert "New" == adapters.step().UP.definitions["Old"][0]
    assert ({"x": {"t": "s"}}, [("dropped", "/x/u")]) == adapters.down({"x": {"t": "s", "u": 1}})
    assert ({"x": {"t": "s"}}, [("dropped", "/x/u")]) == adapters.up({"x": {"t": "s", "u": "wrong"}})


@pytest.mark.slow
def test_keys_are_foreign_across_a_rename(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=ref("Old")), "Old": obj("t", t=STRING)},
        {"A": obj(x=ref("New")), "New": obj("t", t=STRING, v=STRING)},
        {"A": obj(x=ref("New")), "New": obj("t", t=STRING, u=INTEGER, v=STRING)},
        renames={"Old": "New"},
    )

    assert ({"x": {"t": "s", "v": "s"}}, [("dropped", "/x/u")]) == adapters.up({"x": {"t": "s", "u": 1, "v": "s"}})


def test_a_definition_is_adapted_to_its_own_kin_even_if_another_one_takes_its_place_somewhere(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=ref("K"), y=ref("K")), "K": obj(k=STRING)},
        {"A": obj(x=ref("K"), y=ref("M")), "K": obj(k=STRING), "M": obj(k=STRING, m=STRING)},
    )

    assert "K" == adapters.step().UP.definitions["K"][0]


# Keys that both sides have: what a change says


BOUNDS = {"A": obj(x=STRING)}, {"A": obj(x=SHORT)}
COVERED = "bounds-changed A.x"


def test_a_key_is_converted(build: Compile) -> None:
    adapters = build(*BOUNDS, changes=[change(COVERED, up=Convert(F.cut))])

    assert ({"x": "abc", "z": 1}, [("degraded", "/x")]) == adapters.up({"x": "abcd", "z": 1})
    assert ({}, []) == adapters.up({})
    assert ({"x": "abc"}, []) == adapters.down({"x": "abc"})


@pytest.mark.slow
def test_a_converted_value_is_adapted_after_it(build: Compile) -> None:
    odd = change(at="A.x", name="odd", down=Convert(F.without_odd))
    adapters = build(around(ref("P")), around(ref("P"), q=INTEGER), changes=[odd])

    assert ({"x": {"p": "s"}}, [("dropped", "/x/odd"), ("dropped", "/x/q")]) == adapters.down(
        {"x": {"p": "s", "q": 1, "odd": 1}}
    )


@pytest.mark.slow
def test_a_key_of_both_is_dropped(build: Compile) -> None:
    adapters = build(*BOUNDS, changes=[change(COVERED, up=Drop())])

    assert ({}, [("dropped", "/x")]) == adapters.up({"x": "a"})


def test_a_key_of_both_is_kept_whatever_it_holds(build: Compile) -> None:
    assert ({"x": "abcd"}, []) == build(*BOUNDS, changes=[change(COVERED, up=Keep())]).up({"x": "abcd"})


def test_a_key_of_both_is_refused(build: Compile) -> None:
    adapters = build(*BOUNDS, changes=[change(COVERED, up=Refuse("tasks"))])

    assert ("/x", SAYS, "tasks") == adapters.refusal("UP", {"x": "a"})
    assert ({}, []) == adapters.up({})


# Keys that the target demands


NEEDED = {"A": obj(x=STRING)}, {"A": obj("y", x=STRING, y=STRING)}
MORE_NEEDED = {"A": obj(y=STRING)}, {"A": obj("y", y=STRING)}
DEMANDS = pytest.mark.parametrize(
    ("revisions", "covered"), [(NEEDED, "key-added A.y"), (MORE_NEEDED, "requiredness-changed A.y")]
)


@DEMANDS
def test_what_is_demanded_is_filled_in(build: Compile, revisions: Any, covered: str) -> None:
    adapters = build(*revisions, changes=[change(covered, up=Default(value="d"))])

    assert ({"y": "d"}, [("defaulted", "/y")]) == adapters.up({})
    assert ({"y": "s"}, []) == adapters.up({"y": "s"})


@DEMANDS
def test_what_is_implied_is_filled_in_without_a_loss(build: Compile, revisions: Any, covered: str) -> None:
    adapters = build(*revisions, changes=[change(covered, up=Default(value="d", implied=True))])

    assert ({"y": "d"}, []) == adapters.up({})
    assert ({"y": "s"}, []) == adapters.up({"y": "s"})


@DEMANDS
def test_what_is_demanded_is_made_from_the_object(build: Compile, revisions: Any, covered: str) -> None:
    adapters = build(*revisions, changes=[change(covered, up=Default(make=F.made))])

    assert ({"x": "s", "z": 1, "y": "made of x, z"}, [("defaulted", "/y")]) == adapters.up({"x": "s", "z": 1})


@DEMANDS
def test_without_what_is_demanded_a_message_is_refused(build: Compile, revisions: Any, covered: str) -> None:
    adapters = build(*revisions, changes=[change(covered, up=Refuse("input"))])

    assert ("/y", SAYS, "input") == adapters.refusal("UP", {})
    assert ({"y": "s"}, []) == adapters.up({"y": "s"})


def test_an_older_revision_may_demand_something_too(build: Compile) -> None:
    adapters = build(*reversed(NEEDED), changes=[change("key-removed A.y", up=Drop(), down=Default(value="d"))])

    assert ({"x": "s", "y": "d"}, [("defaulted", "/y")]) == adapters.down({"x": "s"})


def test_a_foreign_value_does_not_fill_what_an_older_revision_demands(build: Compile) -> None:
    adapters = build(*reversed(NEEDED), changes=[change("key-removed A.y", up=Drop(), down=Default(value="d"))])

    assert ({"y": "d"}, [("dropped", "/y"), ("defaulted", "/y")]) == adapters.down({"y": 1})


def test_a_default_that_is_a_container_is_made_anew_for_each_message(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=STRING)},
        {"A": obj("y", x=STRING, y=mapping(STRING))},
        changes=[change("key-added A.y", up=Default(value={}, implied=True))],
    )
    first, second = adapters.up({})[0], adapters.up({})[0]

    assert first["y"] is not second["y"]


def test_going_down_what_is_implied_goes_without_a_loss(build: Compile) -> None:
    adapters = build(*NEEDED, changes=[change("key-added A.y", up=Default(value="d", implied=True))])

    assert ({}, []) == adapters.down({"y": "d"})
    assert ({}, [("dropped", "/y")]) == adapters.down({"y": "s"})


def test_going_down_what_the_way_back_fills_in_goes_without_a_loss(build: Compile) -> None:
    adapters = build(*NEEDED, changes=[change("key-added A.y", up=Default(value="d"))])

    assert ({}, []) == adapters.down({"y": "d"})
    assert ({}, [("dropped", "/y")]) == adapters.down({"y": "e"})


# Keys that went


GONE = {"A": obj(x=STRING, y=STRING)}, {"A": obj(x=STRING)}


def test_a_key_that_went_is_dropped_going_up(build: Compile) -> None:
    adapters = build(*GONE, changes=[change("key-removed A.y", up=Drop())])

    assert ({"x": "s"}, [("dropped", "/y")]) == adapters.up({"x": "s", "y": "s"})


def test_a_change_without_an_action_explains_a_key_that_went(build: Compile) -> None:
    adapters = build(*GONE, changes=[change("key-removed A.y")])
    (loss,) = adapters.losses(adapters.step().UP.definitions["A"][1], {"y": "s"})

    assert ("dropped", SAYS) == (loss.severity, loss.reason)


def test_a_key_that_went_is_refused(build: Compile) -> None:
    adapters = build(*GONE, changes=[change("key-removed A.y", up=Refuse("roots"))])

    assert ("/y", SAYS, "roots") == adapters.refusal("UP", {"y": "s"})
    assert ({"x": "s"}, []) == adapters.up({"x": "s"})


def test_a_key_that_came_is_refused_going_down(build: Compile) -> None:
    adapters = build(*ADDED, changes=[change("key-added A.y", down=Refuse("roots"))])

    assert ("/y", SAYS, "roots") == adapters.refusal("DOWN", {"y": 1})


def test_a_conversion_sees_a_key_before_it_goes(build: Compile) -> None:
    adapters = build(*GONE, changes=[change("key-removed A.y", up=Convert(F.cut))])

    assert ({}, [("degraded", "/y"), ("dropped", "/y")]) == adapters.up({"y": "abcd"})


def test_a_key_that_is_kept_stays_both_ways_and_in_later_steps(build: Compile) -> None:
    adapters = build(*GONE, GONE[1], changes=[change("key-removed A.y", up=Keep(), down=Keep())])
    value = {"y": "s", "x": "s"}

    assert [(value, [])] * 4 == [
        adapters.up(value),
        adapters.up(value, old="2"),
        adapters.down(value, old="2"),
        adapters.down(value),
    ]


# Keys with other names


MOVED = {"A": obj(name=ref("P")), "P": obj(p=STRING, q=STRING)}, {"A": obj(title=ref("P")), "P": obj(p=STRING)}
MOVES = [
    change(("key-removed A.name", "key-added A.title"), up=Rename("title"), down=Rename("name")),
    change("key-removed P.q", up=Drop()),
]


@pytest.mark.slow
def test_a_key_gets_its_other_name_where_it_stands(build: Compile) -> None:
    adapters = build(*MOVED, changes=MOVES)
    up, down = adapters.up({"z": 1, "name": {}, "y": 2}), adapters.down({"z": 1, "title": {}, "y": 2})

    assert (["z", "title", "y"], []) == (list(up[0]), up[1])
    assert (["z", "name", "y"], []) == (list(down[0]), down[1])
    assert ({}, []) == adapters.up({})


def test_a_key_with_another_name_is_adapted(build: Compile) -> None:
    result, losses = build(*MOVED, changes=MOVES).up({"name": {"p": "s", "q": "s"}})

    assert ({"title": {"p": "s"}}, ["dropped"]) == (result, [severity for severity, _ in losses])


def test_a_loss_inside_a_key_with_another_name_points_into_the_message_as_it_was(build: Compile) -> None:
    assert [("dropped", "/name/q")] == build(*MOVED, changes=MOVES).up({"name": {"q": "s"}})[1]


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_foreign_key_does_not_take_the_place_of_one_that_gets_its_name(build: Compile, way: str) -> None:
    adapters = build(*MOVED, changes=MOVES)
    before, after = ("name", "title") if way == "up" else ("title", "name")

    assert ({after: {}}, [("dropped", f"/{after}")]) == getattr(adapters, way)({after: 5, before: {}})
    assert ({after: {}}, [("dropped", f"/{after}")]) == getattr(adapters, way)({before: {}, after: 5})
    assert ({}, [("dropped", f"/{after}")]) == getattr(adapters, way)({after: 5})


# Definitions


def test_a_definition_is_converted_before_its_keys(build: Compile) -> None:
    whole = change(at="A", name="whole", up=Convert(F.without_odd))

    assert ({"z": 1}, [("dropped", "/odd"), ("dropped", "/y")]) == build(*ADDED, changes=[whole]).up(
        {"odd": 1, "y": "wrong", "z": 1}
    )


@pytest.mark.slow
def test_a_definition_is_refused(build: Compile) -> None:
    adapters = build(*ADDED, changes=[change(at="A", name="whole", down=Refuse("tasks"))])

    assert ("", SAYS, "tasks") == adapters.refusal("DOWN", {})
    assert ("/a", SAYS, "tasks") == adapters.refusal("DOWN", {"a": {}}, "GoParams")


# Arms of unions


def blocks(*arms: Any, **more: Any) -> dict[str, Any]:
    return {
        "A": obj(x=ref("Block")),
        "Block": any_of(*arms),
        "Text": obj("type", "text", type=constant("text"), text=STRING),
        **more,
    }


PICTURE = obj("type", "data", type=constant("picture"), data=STRING)
ARMS = blocks(ref("Text"), INTEGER), blocks(ref("Text"), INTEGER, ref("Picture"), Picture=PICTURE)
ARM = "arm-added Block[Picture]"
SHOWN = {"type": "picture", "data": "d"}


@pytest.mark.slow
def test_an_arm_is_converted_into_another_which_is_then_adapted(build: Compile) -> None:
    new = ARMS[1] | {"Text": obj("type", "text", type=constant("text"), text=STRING, note=STRING)}
    adapters = build(ARMS[0], new, changes=[change(ARM, down=Convert(F.as_block))])

    assert ({"x": {"type": "text", "text": "?"}}, [("degraded", "/x")]) == adapters.down({"x": SHOWN})
    assert ({"x": {"type": "text", "text": "t"}}, [("dropped", "/x/note")]) == adapters.down(
        {"x": {"type": "text", "text": "t", "note": "n"}}
    )
    assert ({"x": 1}, []) == adapters.down({"x": 1})


def test_an_arm_is_refused(build: Compile) -> None:
    adapters = build(*ARMS, changes=[change(ARM, down=Refuse("input"))])

    assert ("/x", SAYS, "input") == adapters.refusal("DOWN", {"x": SHOWN})
    assert ({"x": {"type": "text", "text": "t"}}, []) == adapters.down({"x": {"type": "text", "text": "t"}})


def test_an_arm_is_read_as_another_definition(build: Compile) -> None:
    new = blocks(
        ref("Text"),
        INTEGER,
        ref("Rich"),
        Rich=obj("type", "text", "rich", type=constant("text"), text=STRING, rich=STRING),
    )
    adapters = build(ARMS[0], new, changes=[change("arm-added Block[Rich]", down=Read("Text"))])

    assert ({"x": {"type": "text", "text": "t", "z": 1}}, [("dropped", "/x/rich")]) == adapters.down(
        {"x": {"type": "text", "text": "t", "rich": "r", "z": 1}}
    )


def test_a_scalar_arm_is_converted(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=any_of(STRING, INTEGER))},
        {"A": obj(x=any_of(STRING, INTEGER, BOOLEAN))},
        changes=[change("arm-added A.x[boolean]", down=Convert(F.as_text))],
    )

    assert ({"x": "True"}, [("degraded", "/x")]) == adapters.down({"x": True})
    assert ({"x": 1}, []) == adapters.down({"x": 1})


@pytest.mark.slow
def test_a_union_is_converted_as_a_whole(build: Compile) -> None:
    adapters = build(*ARMS, changes=[change(ARM, at="Block", down=Convert(F.as_block))])

    assert ({"x": {"type": "text", "text": "?"}}, [("degraded", "/x")]) == adapters.down({"x": SHOWN})


def test_a_union_that_became_one_of_its_arms_is_told_apart_all_the_same(build: Compile) -> None:
    old, new = {"A": obj(x=any_of(STRING, INTEGER))}, {"A": obj(x=STRING)}
    adapters = build(old, new, changes=[change("type-changed A.x", at="A.x[integer]", up=Convert(F.as_text))])

    assert ({"x": "1"}, [("degraded", "/x")]) == adapters.up({"x": 1})
    assert ({"x": "s"}, []) == adapters.up({"x": "s"})


# How arms are told


def told(*arms: Any, **definitions: Any) -> list[tuple[Any, Condition]]:
    """Return the arms of a union in the order in which they are tried, by name or kind, and how each is told."""
    side = RevisionTypes(read(**definitions, Arms=any_of(*arms)))
    found = conditions(side, side.unions.arms(ir.Named(name="Arms")))
    return [(getattr(arm, "name", "") or getattr(arm, "kind", "list"), condition) for arm, condition in found]


def test_arms_are_told_by_their_json_type() -> None:
    found = told(STRING, INTEGER, BOOLEAN, {"type": "null"}, array(STRING), ref("P"), P=obj("p", p=STRING))

    assert {
        "string": "string",
        "integer": "number",
        "boolean": "boolean",
        "null": "null",
        "list": "array",
        "P": "object",
    } == {name: condition.sort for name, condition in found}


def test_an_arm_without_rivals_demands_no_keys() -> None:
    ((_, text), (_, picture)) = told(
        ref("Text"), ref("Picture"), Text=obj("type", "t", type=constant("text"), t=STRING), Picture=PICTURE
    )

    assert ((("type", ("text",)),), ()) == (text.constants, text.keys)
    assert ((("type", ("picture",)),), ()) == (picture.constants, picture.keys)


def test_arms_with_the_same_constant_are_told_by_required_keys_the_most_demanding_first() -> None:
    plain, rich = (
        obj("type", "t", type=constant("text"), t=STRING),
        obj("type", "t", "r", type=constant("text"), t=STRING, r=STRING),
    )

    assert [("Rich", {"t", "r"}), ("Plain", {"t"})] == [
        (name, set(condition.keys)) for name, condition in told(ref("Plain"), ref("Rich"), Plain=plain, Rich=rich)
    ]


def test_otherwise_equal_arms_are_told_by_optional_keys() -> None:
    found = told(ref("P"), ref("Q"), P=obj("a", a=STRING), Q=obj("a", a=STRING, q=STRING))

    assert [("Q", ("q",)), ("P", ()), ("Q", ())] == [(name, condition.some_of) for name, condition in found]


def test_arms_that_nothing_tells_are_tried_in_the_order_of_the_schema() -> None:
    found = told(ref("P"), ref("Q"), P=obj("v", v=STRING), Q=obj("v", v=INTEGER))

    assert ["P", "Q"] == [name for name, _ in found]


def test_of_otherwise_equal_arms_each_key_finds_one_that_has_it() -> None:
    some, most, bare = obj("v", v=STRING, x=STRING), obj("v", v=STRING, x=STRING, y=STRING), obj("v", v=STRING)
    found = told(ref("Some"), ref("Bare"), ref("Most"), Some=some, Most=most, Bare=bare)
    taken = next(name for name, condition in found if not condition.some_of or "x" in condition.some_of)

    assert taken != "Bare"


def test_arms_overlap_unless_a_constant_or_their_json_type_parts_them() -> None:
    defined = {"P": obj("t", t=constant("p")), "Q": obj("t", t=constant("q")), "R": obj("r", r=STRING)}
    by_name = dict(told(ref("P"), ref("Q"), ref("R"), STRING, **defined))

    assert not may_overlap(by_name["P"], by_name["Q"])
    assert may_overlap(by_name["P"], by_name["R"])
    assert not may_overlap(by_name["P"], by_name["string"])


@pytest.mark.slow
def test_a_value_goes_to_the_arm_whose_keys_it_has(build: Compile) -> None:
    old, new = (
        {
            "A": obj(x=any_of(ref("Blob"), ref("Words"))),
            "Blob": obj("uri", "blob", uri=STRING, blob=STRING, **blob),
            "Words": obj("uri", "words", uri=STRING, words=STRING, **words),
        }
        for blob, words in (({}, {}), ({"b": STRING}, {"w": STRING}))
    )
    adapters = build(old, new)

    assert [("dropped", "/x/b")] == adapters.down({"x": {"uri": "u", "blob": "b", "b": "b", "w": "kept"}})[1]
    assert [("dropped", "/x/w")] == adapters.down({"x": {"uri": "u", "words": "w", "b": "kept", "w": "w"}})[1]


@pytest.mark.slow
def test_an_arm_that_needs_no_work_is_not_taken_for_an_overlapping_one_that_does(build: Compile) -> None:
    old, new = (
        {
            "A": obj(x=any_of(ref("Plain"), ref("Rich"))),
            "Plain": obj("t", t=STRING, **plain),
            "Rich": obj("t", "r", t=STRING, r=STRING),
        }
        for plain in ({}, {"n": STRING})
    )

    assert ({"x": {"t": "t", "r": "r", "n": 1}}, []) == build(old, new).down({"x": {"t": "t", "r": "r", "n": 1}})


@pytest.mark.slow
def test_a_number_is_not_taken_for_a_boolean(build: Compile) -> None:
    adapters = build(
        {"A": obj(x=any_of(STRING, BOOLEAN))},
        {"A": obj(x=any_of(STRING, BOOLEAN, {"type": "number"}))},
        changes=[change("arm-added A.x[number]", down=Convert(F.as_text))],
    )

    assert ({"x": True}, []) == adapters.down({"x": True})
    assert ({"x": "1.5"}, [("degraded", "/x")]) == adapters.down({"x": 1.5})


def test_a_union_of_two_lists_that_did_not_change_needs_nothing(build: Compile) -> None:
    same = {"A": obj(x=any_of(array(ref("P")), array(STRING))), "P": obj(p=STRING)}

    assert ({"x": ["s"]}, []) == build(same, same).up({"x": ["s"]})


@pytest.mark.slow
def test_the_constant_one_is_not_taken_for_true(build: Compile) -> None:
    old, new = (
        {
            "A": obj(x=any_of(ref("One"), ref("Yes"))),
            "One": obj("k", k=constant(1), **more),
            "Yes": obj("k", k={"const": True}),
        }
        for more in ({}, {"n": STRING})
    )

    assert ({"x": {"k": True, "n": "s"}}, []) == build(old, new).down({"x": {"k": True, "n": "s"}})


# Messages


def sent(*names: str, by: str = "Client", kind: str = "Request") -> dict[str, Any]:
    """Return a revision in which *by* sends the messages *names*."""
    made = {f"{name.title()}{kind}": request(name) for name in names}
    results = {f"{name.title()}Result": obj() for name in names if kind != "Notification"}
    union = "InputRequest" if kind == "Input" else f"{by}{kind}"
    return {**made, **results, union: any_of(*map(ref, made))}


@pytest.mark.parametrize("kind", ["Request", "Notification"])
def test_a_message_that_went_is_gone_for_its_sender_with_the_reason_and_the_service(build: Compile, kind: str) -> None:
    old, new = sent("stay", "leave", by="Server", kind=kind), sent("stay", by="Server", kind=kind)
    adapters = build(old, new, changes=[change(f"{kind.lower()}-removed server leave", up=Refuse("roots"))])
    message = adapters.step().UP.messages["leave"]

    assert (None, None, None) == (message.params, message.result, message.error)
    assert {"server": (SAYS, "roots")} == {sender: (each.reason, each.service) for sender, each in message.gone.items()}
    assert "leave" not in adapters.step().DOWN.messages


def test_a_message_that_came_is_gone_going_down(build: Compile) -> None:
    adapters = build(sent("stay"), sent("stay", "come"), changes=[change("request-added client come", down=Refuse())])

    assert {"client": (SAYS, None)} == {
        sender: (each.reason, each.service) for sender, each in adapters.step().DOWN.messages["come"].gone.items()
    }


def test_a_message_that_one_sender_lost_is_adapted_for_the_other(build: Compile) -> None:
    old = sent("stay") | sent("stay", by="Server")
    adapters = build(old, sent("stay"), changes=[change("request-removed server stay", up=Refuse("roots"))])
    message = adapters.step().UP.messages["stay"]

    assert ["server"] == list(message.gone)
    assert message.params is not None
    assert message.result is not None


def test_a_message_that_turned_round_is_gone_for_who_sent_it(build: Compile) -> None:
    adapters = build(
        sent("stay", "turn"),
        sent("stay") | sent("turn", by="Server"),
        changes=[change("direction-changed server turn", up=Refuse(), down=Refuse())],
    )

    assert ["client"] == list(adapters.step().UP.messages["turn"].gone)
    assert ["server"] == list(adapters.step().DOWN.messages["turn"].gone)


def test_a_notification_has_neither_result_nor_error(build: Compile) -> None:
    message = build(*[sent("note", kind="Notification")] * 2).step().UP.messages["note"]

    assert (True, None, None) == (message.params is not None, message.result, message.error)


def test_what_is_asked_inside_a_result_takes_no_error_for_an_answer(build: Compile) -> None:
    old, asked = sent("ask", by="Server"), sent("ask", by="Server") | {"InputRequest": ref("AskRequest")}
    new = {name: each for name, each in asked.items() if name != "ServerRequest"}
    adapters = build(old, new, changes=[change("carrier-changed server ask", up=Refuse("input"))])
    step = adapters.step()

    assert ("", SAYS, "input") == adapters.refusal_of(step.UP.messages["ask"].error, {"code": 1, "message": "m"})
    assert step.UP.messages["ask"].result is not None
    assert step.DOWN.messages["ask"].error is None


@pytest.mark.slow
def test_params_and_results_are_adapted_by_method(build: Compile) -> None:
    old, new = (
        {"A": obj(**more), "GoResult": obj("a", a=ref("A"))} for more in ({"x": STRING}, {"x": STRING, "y": STRING})
    )
    adapters = build(old, new)

    assert ({"a": {}}, [("dropped", "/a/y")]) == adapters.part("DOWN", "params", {"a": {"y": "s"}})
    assert ({"a": {}}, [("dropped", "/a/y")]) == adapters.part("DOWN", "result", {"a": {"y": "s"}})


@pytest.mark.slow
def test_an_answer_that_came_is_an_arm_of_the_result(build: Compile) -> None:
    responses = [
        {"GoResultResponse": obj("result", result=any_of(*map(ref, names))), "MoreResult": obj("more", more=STRING)}
        for names in (["GoResult"], ["GoResult", "MoreResult"])
    ]
    adapters = build(
        *({"GoResult": obj("done", done=BOOLEAN), **each} for each in responses),
        changes=[change("result-changed client go", at="go result[MoreResult]", down=Refuse("input"))],
    )
    result = adapters.step().DOWN.messages["go"].result

    assert ("", SAYS, "input") == adapters.refusal_of(result, {"more": "m"})
    assert ({"done": True}, []) == adapters.part("DOWN", "result", {"done": True})


# Errors


def codes(*numbers: int) -> tuple[ErrorCode, ...]:
    return tuple(ErrorCode(code=each, name=f"E{each}".replace("-", "_"), text="") for each in numbers)


def test_an_error_that_went_gets_another_code_and_keeps_the_rest(build: Compile) -> None:
    adapters = build({}, {}, errors=[codes(1, 2), codes(2)], changes=[change("error-removed 1", up=Recode(2))])

    assert ({"code": 2, "message": "m", "data": [1]}, [("degraded", "/code")]) == adapters.part(
        "UP", "error", {"code": 1, "message": "m", "data": [1]}
    )
    assert ({"code": 3, "message": "m"}, []) == adapters.part("UP", "error", {"code": 3, "message": "m"})


def test_an_error_that_went_is_refused(build: Compile) -> None:
    adapters = build({}, {}, errors=[codes(1), codes()], changes=[change("error-removed 1", up=Refuse("tasks"))])
    error = adapters.step().UP.messages["go"].error

    assert ("/code", SAYS, "tasks") == adapters.refusal_of(error, {"code": 1, "message": "m"})


def test_a_code_that_is_foreign_going_down_becomes_what_it_becomes_going_up(build: Compile) -> None:
    adapters = build({}, {}, errors=[codes(1, 2), codes(2)], changes=[change("error-removed 1", up=Recode(2))])

    assert ({"code": 2, "message": "m"}, [("degraded", "/code")]) == adapters.part(
        "DOWN", "error", {"code": 1, "message": "m"}
    )


@pytest.mark.slow
def test_an_error_whose_code_has_a_new_meaning_keeps_it_only_if_it_fits(build: Compile) -> None:
    fault = obj("code", "message", "data", code=constant(7), message=STRING, data=obj("url", url=STRING))
    adapters = build(
        {}, {"Fault": fault}, errors=[codes(), codes(7)], changes=[change("error-added 7", down=Recode(1))]
    )
    fits = {"code": 7, "message": "m", "data": {"url": "u"}}

    assert (fits, []) == adapters.part("UP", "error", fits)
    assert ({"code": -32603, "message": "m"}, [("degraded", "/code")]) == adapters.part(
        "UP", "error", {"code": 7, "message": "m"}
    )
    assert ({**fits, "code": 1}, [("degraded", "/code")]) == adapters.part("DOWN", "error", fits)


def test_errors_that_did_not_change_are_left_alone(build: Compile) -> None:
    adapters = build({}, {}, errors=[codes(1), codes(1)])

    assert adapters.step().UP.messages["go"].error.adapt is adapters.adapting.keep


# All together


class PythonSource(SingleFileSnapshotExtension):
    file_extension = "py"
    _write_mode = WriteMode.TEXT


@pytest.mark.slow
def test_an_adapter_with_one_of_each_reads_as_reviewed(build: Compile, snapshot: SnapshotAssertion) -> None:
    old = {
        "ClientRequest": any_of(ref("GoRequest"), ref("LeaveRequest")),
        "LeaveRequest": request("leave"),
        "LeaveResult": obj(),
        "A": obj(
            "went", went=STRING, named=STRING, cut=STRING, label=STRING, block=ref("Block"), held=array(ref("Held"))
        ),
        "Block": any_of(ref("Text"), ref("Both")),
        "Text": obj("type", "text", type=constant("text"), text=STRING),
        "Both": obj("type", type=constant("both"), protocolVersion=STRING),
        "Held": obj(h=STRING),
        "GoResult": obj(done=BOOLEAN, kept=STRING),
    }
    new = {
        "A": obj(
            "demanded",
            "implied",
            demanded=STRING,
            implied=STRING,
            called=STRING,
            cut=SHORT,
            label=STRING,
            block=ref("Block"),
            held=array(ref("Held")),
            came=mapping(ref("Held")),
        ),
        "Block": any_of(ref("Text"), ref("Both"), ref("Picture"), ref("Sound")),
        "Text": old["Text"],
        "Both": old["Both"],
        "Picture": PICTURE,
        "Sound": obj("type", type=constant("sound")),
        "Held": obj(h=STRING, i=INTEGER),
        "GoResult": obj(done=BOOLEAN),
    }
    adapters = build(
        old,
        new,
        new | {"Held": obj(h=STRING, i=INTEGER, later=STRING)},
        errors=[codes(1), codes(2), codes(2)],
        changes=[
            change("key-removed A.went", name="went", says="It went.", up=Drop(), down=Default(make=F.made)),
            change(
                ("key-removed A.named", "key-added A.called"), name="called", up=Rename("called"), down=Rename("named")
            ),
            change("bounds-changed A.cut", name="cut", says="It is short.", up=Convert(F.cut)),
            change("key-added A.demanded", name="demanded", says="It is demanded.", up=Default(value="d")),
            change("key-added A.implied", name="implied", says="It is implied.", up=Default(value="i", implied=True)),
            change("arm-added Block[Picture]", name="pictures", says="There are pictures.", down=Convert(F.as_block)),
            change("arm-added Block[Sound]", name="sounds", says="There are sounds.", down=Refuse("input")),
            change("key-removed GoResult.kept", name="kept", says="It is any key.", up=Keep(), down=Keep()),
            change("request-removed client leave", name="leave", says="Nobody leaves.", up=Refuse("negotiation")),
            change("error-removed 1", name="one", says="One is two.", up=Recode(2)),
            change("error-added 2", name="two", says="Two was one.", down=Recode(1)),
        ],
    )

    assert snapshot(extension_class=PythonSource) == adapters.text()
