"""What has to be declared of a step, what may not be, and what the compiler says about it."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen.adapters import declared as declared_module
from mcpgen.codegen.adapters.declared import declared_in_file, declared_steps, read_declared
from mcpgen.codegen.changes.vocabulary import (
    Action,
    Convert,
    Default,
    Drop,
    Keep,
    Read,
    Recode,
    Refuse,
    Rename,
    Step,
)
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.overlay import ErrorCode
from tests.codegen.adapter_cases import change, compiled, declare, findings, functions, pasted, told
from tests.codegen.editions import INTEGER, STRING, any_of, obj, ref, request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.codegen.adapter_cases import Definitions

SOURCE = '''
def fix(value: Any, at: At, losses: Losses) -> Any:
    """Return what the target takes."""
    losses.degraded(at, "It was fixed.")
    return FIXED.get(type(value).__name__, value)


FIXED = {"str": "abc", "list": ["a"], "int": 3, "float": 3.5, "bool": "yes"}
'''
F = functions(SOURCE)

SHORT = {"type": "string", "maxLength": 3}
PLAIN: Definitions = {"A": obj(x=STRING)}


def array(items: Any, **bounds: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **bounds}


def a(**properties: Any) -> Definitions:
    """Return a revision whose ``A`` has these keys, all optional."""
    return {"A": obj(**properties)}


def sent(*names: str, kind: str, union: str) -> Definitions:
    made = {f"{name.title()}{kind}": request(name) for name in names}
    results = {f"{name.title()}Result": obj() for name in names if kind == "Request"}
    return {**made, **results, union: any_of(*map(ref, made))}


# What nothing covers

ASK = sent("ask", kind="Request", union="ServerRequest")

# By what is asked for: the two revisions, where the difference is in a document, and in which direction it is asked.
NEEDS: dict[str, tuple[Definitions, Definitions, str, str]] = {
    "key-added A.y": (PLAIN, {"A": obj("y", x=STRING, y=STRING)}, "/$defs/A/properties/y", "up"),
    "key-removed A.y": (a(x=STRING, y=STRING), PLAIN, "/$defs/A/properties/y", "up"),
    "key-removed A.z": ({"A": obj("z", x=STRING, z=STRING)}, PLAIN, "/$defs/A/properties/z", "up down"),
    "requiredness-changed A.x": (PLAIN, {"A": obj("x", x=STRING)}, "/$defs/A/properties/x", "up"),
    "type-changed A.x": (a(x=INTEGER), PLAIN, "/$defs/A/properties/x", "up down"),
    "arm-added U[boolean]": (
        a(x=ref("U")) | {"U": any_of(STRING, INTEGER)},
        a(x=ref("U")) | {"U": any_of(STRING, INTEGER, {"type": "boolean"})},
        "/$defs/U",
        "down",
    ),
    "arm-removed U[boolean]": (
        a(x=ref("U")) | {"U": any_of(STRING, INTEGER, {"type": "boolean"})},
        a(x=ref("U")) | {"U": any_of(STRING, INTEGER)},
        "/$defs/U",
        "up",
    ),
    "bounds-changed A.x": (
        a(x=array(STRING)),
        a(x=array(STRING, maxItems=2)),
        "/$defs/A/properties/x",
        "up",
    ),
    "request-added server ask": ({}, ASK, "/$defs/AskRequest", "down"),
    "request-removed server ask": (ASK, {}, "/$defs/AskRequest", "up"),
    "notification-added client note": (
        {},
        sent("note", kind="Notification", union="ClientNotification"),
        "/$defs/NoteNotification",
        "down",
    ),
    "notification-removed server note": (
        sent("note", kind="Notification", union="ServerNotification"),
        {},
        "/$defs/NoteNotification",
        "up",
    ),
    "carrier-changed server ask": (
        ASK,
        {name: each for name, each in ASK.items() if name != "ServerRequest"} | {"InputRequest": ref("AskRequest")},
        "/$defs/AskRequest",
        "up",
    ),
}
FILL = {
    '"..."': '"It changed."',
    "Default(value=...)": 'Default(value="d")',
    "Convert(...)": "Convert(fix)",
}
needs = pytest.mark.parametrize("asked", NEEDS)


@needs
def test_what_nothing_covers_is_asked_for_once_with_a_pointer(asked: str) -> None:
    old, new, pointer, _ = NEEDS[asked]
    (finding,) = findings(old, new)

    assert ("MG501", "error", pointer) == (finding.code, finding.severity, finding.pointer)
    assert finding.message.startswith(f"1 to 2: no declared change covers `{asked}`: ")


@needs
def test_it_is_asked_for_in_the_directions_that_need_it(asked: str) -> None:
    old, new, _, ways = NEEDS[asked]
    (finding,) = findings(old, new)

    assert ways.split() == [way for way in ("up", "down") if f"going {way}, " in finding.message]
    assert ways.split() == [way for way in ("up", "down") if f"    {way}=" in finding.hint]


@needs
@pytest.mark.slow
def test_the_hint_is_a_change_that_makes_the_plan_pass(asked: str, tmp_path: Path) -> None:
    old, new, _, _ = NEEDS[asked]
    (finding,) = findings(old, new)
    where, _, stub = finding.hint.partition("\n")
    (made,) = pasted(stub, fill=FILL, fix=F.fix)

    assert where == "Add this to `changes` of STEP in codegen/changes/v1_to_v2.py:"
    assert (asked,) == made.covers
    assert compiled(tmp_path, old, new, changes=[made], source=SOURCE).step()


@needs
def test_a_hint_as_it_stands_is_python(asked: str) -> None:
    old, new, _, _ = NEEDS[asked]
    (finding,) = findings(old, new)

    assert isinstance(ast.parse(f"({finding.hint.partition(chr(10))[2]}\n)").body[0], ast.Expr)


# By the difference: what the plan asks for, spelt as the diff has it; what a value was, and what the fix makes of it.
NARROWED: dict[str, tuple[Any, Any, Any, Any]] = {
    "the length of a string": (STRING, SHORT, "abcdef", "abc"),
    "the length of a list": (array(STRING), array(STRING, maxItems=1), ["a", "b"], ["a"]),
    "a number": ({"type": "number"}, {"type": "number", "maximum": 4}, 9.5, 3.5),
    "the lower bound of an integer": (INTEGER, {"type": "integer", "minimum": 2}, 1, 3),
    "the values of an enumeration": ({"enum": ["abc", "b"]}, {"enum": ["abc"]}, "b", "abc"),
    "a number that must be whole": ({"type": "number"}, INTEGER, 1, 3),
    "a type": (INTEGER, {"type": "array", "items": STRING}, 1, 3),
}
narrowed = pytest.mark.parametrize("what", NARROWED)


@narrowed
def test_what_became_narrower_is_asked_for_going_up_alone(what: str) -> None:
    old, new, _, _ = NARROWED[what]
    (finding,) = findings(a(x=old), a(x=new))

    assert "MG501" == finding.code
    assert re.search(r" A\.x(\[\"b\"\])?`: going up, ", finding.message)
    assert (what == "a type") == ("going down, " in finding.message)


@narrowed
def test_what_became_narrower_is_asked_for_where_it_stands(what: str) -> None:
    old, new, _, _ = NARROWED[what]
    (finding,) = findings(a(x=old), a(x=new))

    assert "/$defs/A/properties/x" == finding.pointer


@narrowed
@pytest.mark.slow
def test_the_conversion_that_is_asked_for_is_applied(what: str, tmp_path: Path) -> None:
    old, new, value, fixed = NARROWED[what]
    (finding,) = findings(a(x=old), a(x=new))
    made = pasted(finding.hint.partition("\n")[2], fill=FILL, fix=F.fix)
    adapters = compiled(tmp_path, a(x=old), a(x=new), changes=made, source=SOURCE)

    assert ({"x": fixed}, [("degraded", "/x")]) == adapters.up({"x": value})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SHORT, STRING),
        (array(STRING, maxItems=2), array(STRING)),
        ({"type": "number", "maximum": 4}, {"type": "number", "maximum": 5}),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}),
        ({"enum": ["a"]}, STRING),
        (INTEGER, {"type": "number"}),
        (STRING, any_of(STRING, INTEGER)),
        (STRING, {}),
    ],
)
def test_what_became_wider_is_asked_for_going_down_alone(old: Any, new: Any) -> None:
    (finding,) = findings(a(x=old), a(x=new))

    assert "going up, " not in finding.message
    assert "going down, " in finding.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PLAIN, a(x=STRING, y=INTEGER)),
        ({"A": obj("x", x=INTEGER)}, {"A": obj("x", x=INTEGER)}),
        (
            a(x=ref("Old")) | {"Old": obj("t", t=STRING, u=STRING)},
            a(x=ref("New")) | {"New": obj("t", t=STRING, u=STRING)},
        ),
        (a(x=any_of(STRING, INTEGER)), a(x=any_of(INTEGER, STRING))),
        (PLAIN, PLAIN | {"Unused": obj(u=STRING)}),
    ],
)
def test_what_the_mechanical_part_can_do_is_not_asked_for(old: Definitions, new: Definitions) -> None:
    assert [] == findings(old, new)


def test_what_no_message_holds_is_not_asked_for() -> None:
    assert [] == findings(PLAIN | {"Loose": obj(l=STRING)}, PLAIN | {"Loose": obj("m", l=INTEGER, m=STRING)})


def test_a_definition_that_stands_where_another_one_stood_is_asked_for_as_a_rename() -> None:
    old, new = a(x=ref("Old")) | {"Old": obj(t=STRING)}, a(x=ref("New")) | {"New": obj(t=STRING, u=STRING)}
    (finding,) = findings(old, new)

    assert ("MG501", "/$defs/New") == (finding.code, finding.pointer)
    assert 'Add this to `renames` of STEP in codegen/changes/v1_to_v2.py:\n"Old": "New",' in finding.hint
    assert [] == findings(old, new, renames={"Old": "New"})


def test_a_key_that_went_where_one_like_it_came_may_be_that_one() -> None:
    old, new = a(x=INTEGER, name=STRING), a(x=INTEGER, title=STRING)
    (finding,) = findings(old, new)
    renamed = change(("key-removed A.name", "key-added A.title"), up=Rename("title"), down=Rename("name"))

    assert '# Or, if title replaces it: also cover "key-added A.title", and use' in finding.hint
    assert '# up=Rename("title"), down=Rename("name"),' in finding.hint
    assert [] == findings(old, new, changes=[renamed])


def test_an_arm_that_went_where_another_one_came_may_be_that_one() -> None:
    text = obj("type", "text", type={"const": "text"}, text=STRING)
    old, new = (
        {"A": obj(x=any_of(ref("Text"), ref(name))), "Text": text, name: obj("type", type={"const": "p"}, **more)}
        for name, more in (("Old", {"o": STRING}), ("New", {"o": STRING, "n": STRING}))
    )

    hint = '# Or, if one replaces the other, add to `renames` of STEP: "Old": "New",'
    assert [True, True] == [hint in each.hint for each in findings(old, new)]
    assert [] == findings(old, new, renames={"Old": "New"})


def test_no_rename_is_suggested_for_an_arm_that_is_no_definition() -> None:
    old, new = a(x=any_of(STRING, INTEGER)), a(x=any_of(STRING, array(INTEGER)))
    found = findings(old, new)

    assert found
    assert not [each.hint for each in found if "`renames`" in each.hint]


def test_a_place_that_no_longer_takes_every_value_is_told_of_with_the_type_as_a_name() -> None:
    (finding,) = findings(a(x={}), a(x=any_of(STRING, INTEGER)))

    assert "going up, 2 does not allow the type `any` there" in finding.message


def codes(*numbers: int) -> tuple[ErrorCode, ...]:
    return tuple(ErrorCode(code=each, name=f"E{each}", text="") for each in numbers)


@pytest.mark.parametrize(
    ("errors", "asked", "way"),
    [([codes(7), codes()], "error-removed 7", "up"), ([codes(), codes(7)], "error-added 7", "down")],
)
def test_an_error_that_only_one_side_knows_is_asked_for(errors: Any, asked: str, way: str) -> None:
    (finding,) = findings(PLAIN, PLAIN, errors=errors)
    made = pasted(finding.hint.partition("\n")[2], fill=FILL)

    assert f"no declared change covers `{asked}`: going {way}, " in finding.message
    assert [] == findings(PLAIN, PLAIN, errors=errors, changes=made)


def test_all_that_is_asked_for_is_asked_for_together_and_in_order() -> None:
    old, new = a(x=STRING, y=STRING), {"A": obj("z", "x", x=STRING, z=STRING)}

    assert ["`key-added A.z`", "`key-removed A.y`", "`requiredness-changed A.x`"] == [
        text.removeprefix("no declared change covers ").partition(":")[0] for _, text in told(findings(old, new))
    ]


def test_each_step_has_a_list_of_its_own() -> None:
    found = findings(a(x=STRING, y=STRING), PLAIN, {"A": obj("x", x=STRING)})

    assert ["1 to 2", "2 to 3"] == [each.message.partition(":")[0] for each in found]


# What applies nowhere


def covered(found: Any) -> list[tuple[str, str]]:
    return [(code, text) for code, text in told(found)]


def test_a_pattern_that_is_no_difference_of_the_step_is_reported() -> None:
    pattern = change(("key-added A.y", "key-added A.nothing"), name="c", down=Drop())

    assert [
        ("MG502", "the change 'c' covers 'key-added A.nothing', which matches no difference of this step")
    ] == covered(findings(PLAIN, a(x=STRING, y=STRING), changes=[pattern]))


def test_a_pattern_that_another_change_has_taken_is_reported() -> None:
    twice = [change("key-added A.*", name="first", down=Drop()), change("key-added A.y", name="second")]

    assert [
        ("MG502", "the change 'second' covers 'key-added A.y', which matches no difference of this step")
    ] == covered(findings(PLAIN, a(x=STRING, y=STRING), changes=twice))


def test_a_star_stands_for_any_characters_and_brackets_for_themselves() -> None:
    assert [] == findings(
        *NEEDS["arm-added U[boolean]"][:2], changes=[change("*-added *[bool*]", name="c", down=Refuse())]
    )
    assert [] != findings(
        *NEEDS["arm-added U[boolean]"][:2], changes=[change("arm-added U[a-z]*", name="c", down=Refuse())]
    )


@pytest.mark.parametrize("action", [Drop(), Keep(), Default(value=1), Convert(F.fix), Rename("z"), Refuse()])
def test_an_action_in_a_direction_that_has_no_use_for_it_is_reported(action: Action) -> None:
    # The key is admitted going up, and nothing else is done about it.
    useless = change("key-added A.y", name="c", up=action, down=Drop())

    assert [("MG502", f"the change 'c' declares {type(action).__name__} going up, which is never used")] == covered(
        findings(PLAIN, a(x=STRING, y=STRING), changes=[useless], source=SOURCE)
    )


def test_an_action_at_a_place_that_is_not_there_is_reported() -> None:
    assert [("MG502", "the change 'c' declares Drop going up, which is never used")] == covered(
        findings(PLAIN, PLAIN, changes=[change(at="A.nothing", name="c", up=Drop())])
    )


def test_a_change_about_nothing_is_reported() -> None:
    assert [("MG502", "the change 'c' has neither `covers` nor `at`")] == covered(
        findings(PLAIN, PLAIN, changes=[change(name="c")])
    )


def test_while_something_is_missing_nothing_is_called_needless() -> None:
    found = findings(a(x=STRING, y=STRING), PLAIN, changes=[change("key-added A.nothing", name="c", up=Drop())])

    assert {"MG501"} == {each.code for each in found}


def test_what_is_refused_about_an_envelope_is_needed() -> None:
    # No message holds it, so an engine has to see to it.
    new = PLAIN | {"Envelope": obj("e", e=STRING)}

    assert [] == findings(PLAIN, new, changes=[change("definition-added Envelope", down=Refuse("batching"))])


# Actions where they make no sense

ALL: dict[str, Action] = {
    "Drop": Drop(),
    "Keep": Keep(),
    "Default": Default(value="d"),
    "Convert": Convert(F.fix),
    "Read": Read("A"),
    "Rename": Rename("z"),
    "Recode": Recode(-32603),
    "Refuse": Refuse(),
}

GONE = a(x=STRING, y=STRING), PLAIN
CAME = PLAIN, a(x=STRING, y=STRING)
SAME = PLAIN, PLAIN
MUST = NEEDS["key-added A.y"][:2]
ARM = NEEDS["arm-removed U[boolean]"][:2]

# By place: the revisions, what the change covers and where it is, its direction, and the actions that make sense.
PLACES: dict[str, tuple[Sequence[Definitions], str, str, str, str]] = {
    "a key that went": (GONE, "key-removed A.y", "", "up", "Drop Keep Convert Refuse"),
    "a key that came, going down": (CAME, "key-added A.y", "", "down", "Drop Keep Convert Refuse"),
    "a key that became narrower": (
        (PLAIN, a(x=SHORT)),
        "bounds-changed A.x",
        "",
        "up",
        "Drop Keep Convert Refuse",
    ),
    "a key that did not change": (SAME, "", "A.x", "up", "Drop Keep Convert Refuse"),
    "a demanded key": (MUST, "key-added A.y", "", "up", "Default Refuse"),
    "a key that must be there now": (
        NEEDS["requiredness-changed A.x"][:2],
        "requiredness-changed A.x",
        "",
        "up",
        "Default Refuse",
    ),
    "a key that need not be there any more": (
        tuple(reversed(NEEDS["requiredness-changed A.x"][:2])),
        "requiredness-changed A.x",
        "",
        "up",
        "Drop Keep Convert Refuse",
    ),
    "an arm that went": (ARM, "arm-removed U[boolean]", "", "up", "Convert Refuse"),
    "an arm that stayed": (SAME_UNION := (ARM[0], ARM[0]), "", "U[integer]", "up", "Convert Refuse"),
    "a union": (SAME_UNION, "", "U", "up", "Convert"),
    "a definition": (SAME, "", "A", "up", "Convert Refuse"),
    "a message": (
        NEEDS["request-removed server ask"][:2],
        "request-removed server ask",
        "",
        "up",
        "Refuse",
    ),
    "a notification": (
        NEEDS["notification-removed server note"][:2],
        "notification-removed server note",
        "",
        "up",
        "Refuse",
    ),
    "a carrier": (NEEDS["carrier-changed server ask"][:2], "carrier-changed server ask", "", "up", "Refuse"),
    "the items of a list": (
        (a(x=array(STRING)), a(x=array(SHORT))),
        "bounds-changed A.x[]",
        "",
        "up",
        "Keep Convert Refuse",
    ),
}
# What is declared in the other direction, where that needs something as well.
OTHERWISE: dict[tuple[str, str], Action] = {
    ("a key that went", "Keep"): Keep(),
    **{("a key that need not be there any more", name): Default(value="d") for name in ALL},
}


def placed() -> list[Any]:
    return [pytest.param(place, name, id=f"{name} at {place}") for place in PLACES for name in ALL]


@pytest.mark.parametrize(("place", "name"), placed())
@pytest.mark.slow
def test_an_action_is_accepted_where_it_makes_sense_and_reported_elsewhere(place: str, name: str) -> None:
    revisions, covers, at, way, sensible = PLACES[place]
    other = {"down" if way == "up" else "up": OTHERWISE.get((place, name))}
    made = change(covers or (), at or (), name="c", **{way: ALL[name]}, **other)
    found = findings(*revisions, changes=[made], source=SOURCE)

    if name in sensible.split():
        assert [] == found
    else:
        assert found
        assert {"MG501", "MG502"} >= {each.code for each in found}


def test_an_action_that_makes_no_sense_is_named_with_its_change_and_place() -> None:
    (finding,) = findings(*MUST, changes=[change("key-added A.y", name="c", up=Recode(1))])

    assert (
        "MG501",
        "1 to 2: `A.y` cannot be adapted: going up, the action Recode of the change 'c' does not apply there",
        "Use another action in codegen/changes/v1_to_v2.py.",
    ) == (finding.code, finding.message, finding.hint)


@pytest.mark.parametrize("name", [name for name in ALL if name not in {"Keep", "Recode", "Refuse"}])
def test_an_error_is_kept_recoded_or_refused_and_nothing_else(name: str) -> None:
    made = change("error-removed 7", name="c", up=ALL[name])

    assert ["MG501"] == [
        each.code for each in findings(PLAIN, PLAIN, errors=[codes(7), codes()], changes=[made], source=SOURCE)
    ]


def test_an_arm_is_not_read_as_a_definition_that_it_does_not_fit() -> None:
    found = findings(*ARM, changes=[change("arm-removed U[boolean]", name="c", up=Read("A"))])

    assert ["MG501"] == [each.code for each in found]


@pytest.mark.slow
def test_a_key_is_not_renamed_to_one_that_is_not_there() -> None:
    renamed = change(("key-removed A.name", "key-added A.title"), name="c", up=Rename("nothing"), down=Rename("name"))

    assert ["MG501"] == [each.code for each in findings(a(name=STRING), a(title=STRING), changes=[renamed])]


def test_the_type_of_a_renamed_key_still_has_to_fit() -> None:
    renamed = change(("key-removed A.name", "key-added A.title"), name="c", up=Rename("title"), down=Rename("name"))
    found = findings(a(name=STRING), a(title=INTEGER), changes=[renamed])

    assert ["`type-changed A.name`", "`type-changed A.title`"] == [
        text.removeprefix("no declared change covers ").partition(":")[0] for _, text in told(found)
    ]


# What cannot be used at all


def unusable(source: str) -> list[tuple[str, str]]:
    """Return why nothing can be declared with *source* as the text of the module."""
    with pytest.raises(Refused) as refused:
        declare([], source=source)
    return [(each.code, each.message) for each in refused.value.diagnostics]


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import msgspec", "msgspec"),
        ("import json, jsonschema.exceptions", "jsonschema.exceptions"),
        ("from black.mode import Mode", "black.mode"),
        ("from . import other", "."),
        ("from .other import helper", "other"),
    ],
)
def test_functions_may_use_nothing_but_the_standard_library(text: str, module: str) -> None:
    message = f"v1_to_v2.py imports {module}, which is not in the standard library"

    assert [("MG503", message)] == unusable(text)


def test_functions_may_use_nothing_of_mcpgen_but_the_vocabulary() -> None:
    assert "MG503" == unusable("from mcpgen.codegen.names import snake")[0][0]


def test_functions_and_constants_are_copied_as_they_stand_and_the_step_is_not() -> None:
    source = '''"""Words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mcpgen.codegen.changes.vocabulary import At, Losses, Step

__all__ = ["STEP"]

LIMIT: int = 3  # a bound
NAMES = {"a"}


@staticmethod
def one(value: Any) -> Any:
    # what it does
    return json.dumps(value)


class Two:
    """Two."""


STEP = Step(old="1", new="2")
'''
    (found,) = declare([], source=source)

    assert [
        "from collections.abc import Mapping",
        "from typing import Any, Final, cast",
        "import json",
    ] == found.imports.splitlines()
    assert [
        "LIMIT: int = 3",
        'NAMES = {"a"}',
        "@staticmethod\ndef one(value: Any) -> Any:\n    # what it does\n    return json.dumps(value)",
        'class Two:\n    """Two."""',
    ] == found.source.split("\n\n\n")


@pytest.mark.parametrize("renames", [{"Gone": "A"}, {"A": "Gone"}])
def test_a_rename_of_nothing_or_to_nothing_is_refused(renames: dict[str, str]) -> None:
    (finding,) = findings(PLAIN, PLAIN, renames=renames)
    ((old, new),) = renames.items()

    assert ("MG503", f"1 to 2: `renames` has {old} to {new}, but one of these definitions does not exist") == (
        finding.code,
        finding.message,
    )
    assert "Correct the renames in codegen/changes/v1_to_v2.py." == finding.hint


def test_two_renames_to_one_name_are_refused() -> None:
    (finding,) = findings(PLAIN | {"B": STRING}, PLAIN, renames={"A": "A", "B": "A"})

    assert ("MG503", "1 to 2: `renames` gives the same new name twice") == (finding.code, finding.message)


# Modules of changes

MODULE = """
from mcpgen.codegen.changes.vocabulary import *

STEP = Step(old={old!r}, new="2", changes=({changes}))
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package that stands in for ``codegen/changes/``."""
    name = f"changes_for_{tmp_path.name}".replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(declared_module, "_CHANGES", name)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    return folder


def write(room: Path, *changes: str, old: str = "1") -> None:
    text = MODULE.format(old=old, changes="".join(f"{each}, " for each in changes))
    (room / "v1_to_v2.py").write_text(text, encoding="utf-8")


def problems() -> list[str]:
    with pytest.raises(Refused) as refused:
        declared_steps(["1", "2"])
    assert {"MG503"} == {each.code for each in refused.value.diagnostics}
    return [each.message.partition(": ")[2] or each.message for each in refused.value.diagnostics]


def test_a_step_without_a_module_declares_nothing(room: Path) -> None:
    assert room.is_dir()
    assert [("1", "2", ()), ("2", "3", ())] == [
        (each.step.old, each.step.new, each.step.changes) for each in declared_steps(["1", "2", "3"])
    ]


def test_a_step_is_read_from_the_module_that_is_named_after_its_revisions(room: Path) -> None:
    write(room, 'Change(name="a", says="It is so.", spec="2, place")')

    assert [["a"], []] == [[each.name for each in found.step.changes] for found in declared_steps(["1", "2", "3"])]


def test_a_module_about_other_revisions_is_refused(room: Path) -> None:
    write(room, old="0")

    assert [f"`STEP` in {room.name}.v1_to_v2 is from 0 to 2, not from 1 to 2"] == problems()


@pytest.mark.parametrize("name", ["", "Capital", "under_score", "1st", "two words", "-a", "a--b"])
def test_a_change_without_a_proper_name_is_refused(room: Path, name: str) -> None:
    write(room, f'Change(name={name!r}, says="It is so.", spec="2, place")')

    assert [f"the name {name!r} of a change is not kebab-case, or occurs twice"] == problems()


def test_two_changes_with_one_name_are_refused(room: Path) -> None:
    write(room, *['Change(name="a", says="It is so.", spec="2, place")'] * 2)

    assert ["the name 'a' of a change is not kebab-case, or occurs twice"] == problems()


@pytest.mark.parametrize(
    ("fields", "blank"),
    [
        ('says="...", spec="2, place"', "says"),
        ('says="", spec="..."', "says, spec"),
        ('says="It is so.", spec="2, place", up=Default(value=...)', "up"),
        ('says="It is so.", spec="2, place", up=Drop(), down=Convert(...)', "down"),
        ('says="...", spec="...", up=Default(make=...), down=Rename(...)', "says, spec, up, down"),
    ],
)
def test_a_stub_that_nobody_filled_in_is_refused(room: Path, fields: str, blank: str) -> None:
    write(room, f'Change(name="a", {fields})')

    fields_left = ", ".join(f"`{each}`" for each in blank.split(", "))
    assert [f"the change 'a' is incomplete: {fields_left}"] == problems()
    with pytest.raises(Refused) as refused:
        declared_steps(["1", "2"])
    (finding,) = refused.value.diagnostics
    module = finding.message.partition(":")[0]
    assert f"Replace each `...` and each empty text in {module}, then build again." == finding.hint


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"raise SystemExit(2)", "changes.py: SystemExit: 2"),
        (b"\xff", "changes.py is not UTF-8, at byte 0"),
    ],
)
def test_a_file_of_changes_that_cannot_be_used_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "changes.py"
    file.write_bytes(content)

    with pytest.raises(Refused) as refused:
        declared_in_file(file, "1", "2")

    (finding,) = refused.value.diagnostics
    assert ("MG503", f"{tmp_path}/{told}") == (finding.code, finding.message)


def test_a_function_is_copied_whole_where_form_feeds_divide_the_file() -> None:
    source = "\x0c\n\n\ndef one() -> int:\n    return 1\n\n\x0c\ndef two() -> int:\n    return 2\n"

    copied = read_declared(Step(old="1", new="2"), source, "changes.py").source

    assert "def one() -> int:\n    return 1\n\n\ndef two() -> int:\n    return 2" == copied


def test_changes_that_cannot_be_read_need_another_file_and_no_correction(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        declared_in_file(tmp_path, "1", "2")

    (problem,) = refused.value.diagnostics
    assert ("MG503", "Give `--changes` a Python file that you may read.") == (problem.code, problem.hint)
