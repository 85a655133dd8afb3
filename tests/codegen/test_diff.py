"""What a diff reports about definitions and their keys, in documents small enough to see it."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.codegen.diff import compare
from tests.codegen.editions import INTEGER, STRING, any_of, brief, changes, obj, read, ref

# Definitions


def test_a_document_does_not_differ_from_itself() -> None:
    document = read(A=obj(x=STRING), B=any_of(ref("A"), STRING))

    assert [] == changes(document, document)


def test_a_new_definition_is_added_with_its_keys() -> None:
    new = read(A=STRING, B=obj("y", x=STRING, y={"const": "b", "type": "string"}))

    assert [("definition-added", "B", None, '{x?, y: "b"}', None)] == changes(read(A=STRING), new)


def test_a_definition_that_is_gone_is_removed() -> None:
    old, new = read(A=STRING, B={"type": "array", "items": INTEGER}), read(A=STRING)

    assert [("definition-removed", "B", "list[integer]", None, None)] == changes(old, new)


def test_an_open_object_shows_that_it_holds_more() -> None:
    new = read(A=STRING, B={**obj(x=STRING), "additionalProperties": {}})

    assert [("definition-added", "B", None, "{x?, ...}", None)] == changes(read(A=STRING), new)


def test_equal_structure_under_another_name_is_a_rename() -> None:
    old = read(Reference=obj("type", "uri", type={"const": "ref"}, uri=STRING), User=obj(ref=ref("Reference")))
    new = read(Pointer=obj("type", "uri", type={"const": "ref"}, uri=STRING), User=obj(ref=ref("Pointer")))
    shape = '{type: "ref", uri}'

    assert [("definition-renamed", "Pointer", shape, shape, None)] == changes(old, new)


def test_a_rename_is_seen_through_what_else_was_renamed() -> None:
    old = read(One=obj("a", a=ref("Two"), b=STRING), Two=obj("c", c=STRING, d=ref("One")))
    new = read(Eins=obj("a", a=ref("Zwei"), b=STRING), Zwei=obj("c", c=STRING, d=ref("Eins")))

    assert ["definition-renamed", "definition-renamed"] == [kind for kind, *_ in changes(old, new)]


def test_two_candidates_are_no_rename() -> None:
    old, new = read(One=obj(a=STRING, b=STRING)), read(Two=obj(a=STRING, b=STRING), Three=obj(a=STRING, b=STRING))

    assert {"definition-added", "definition-removed"} == {kind for kind, *_ in changes(old, new)}


def test_a_structure_as_simple_as_a_string_is_no_rename() -> None:
    found = changes(read(Cursor=STRING), read(Uri=STRING))

    assert ["definition-removed", "definition-added"] == [kind for kind, *_ in found]


def test_a_structure_as_simple_as_a_string_is_a_rename_if_its_name_was_extended() -> None:
    assert [("definition-renamed", "PageCursor", "string", "string", None)] == changes(
        read(Cursor=STRING), read(PageCursor=STRING)
    )


def test_an_inline_structure_in_another_place_is_no_rename() -> None:
    inline = obj("p", p=STRING, q=STRING)
    found = changes(read(A=obj(x=inline), B=obj(z=STRING)), read(A=obj(w=STRING), B=obj(y=inline, z=STRING)))

    assert not any(kind == "definition-renamed" for kind, *_ in found)


def test_a_name_that_was_extended_may_have_changed_what_is_required() -> None:
    old = read(RPCError=obj("error", "id", error=STRING, id=INTEGER))
    new = read(RPCErrorResponse=obj("error", error=STRING, id=INTEGER))

    assert [
        ("definition-renamed", "RPCErrorResponse", "{error, id}", "{error, id?}", None),
        ("requiredness-changed", "RPCErrorResponse.id", "integer", "integer", "widened"),
    ] == changes(old, new)


@pytest.mark.slow
def test_another_name_may_not_have_changed_what_is_required() -> None:
    old, new = read(Fault=obj("a", a=STRING, b=STRING)), read(Mistake=obj(a=STRING, b=STRING))

    assert ["definition-removed", "definition-added"] == [kind for kind, *_ in changes(old, new)]


def test_a_name_left_to_something_else_is_followed() -> None:
    old = read(Response=obj("id", "result", id=INTEGER, result=STRING), Message=any_of(ref("Response"), STRING))
    new = read(
        ResultResponse=obj("id", "result", id=INTEGER, result=STRING),
        ErrorResponse=obj("id", "error", id=INTEGER, error=STRING),
        Response=any_of(ref("ResultResponse"), ref("ErrorResponse")),
        Message=any_of(ref("ResultResponse"), STRING),
    )

    assert [
        ("definition-added", "ErrorResponse", None, "{error, id}", None),
        ("definition-kind-changed", "Response", "{id, result}", "ResultResponse | ErrorResponse", "widened"),
        ("definition-renamed", "ResultResponse", "{id, result}", "{id, result}", None),
    ] == changes(old, new)


def test_a_declared_rename_is_followed_into_what_changed() -> None:
    old, new = read(One=obj(a=STRING, b=STRING)), read(Other=obj(a=STRING, c=INTEGER))

    assert [
        ("definition-renamed", "Other", "{a?, b?}", "{a?, c?}", None),
        ("key-removed", "One.b", "string", None, "narrowed"),
        ("key-added", "Other.c", None, "integer", "widened"),
    ] == changes(old, new, {"One": "Other"})


def test_a_declared_rename_to_a_name_that_was_taken_ends_the_old_bearer() -> None:
    old, new = read(A=obj(a=STRING), B=obj(b=STRING)), read(B=obj(a=STRING))

    assert [
        ("definition-renamed", "B", "{a?}", "{a?}", None),
        ("definition-removed", "B", "{b?}", None, None),
    ] == sorted(changes(old, new, {"A": "B"}), reverse=True)


@pytest.mark.parametrize("renames", [{"Gone": "A"}, {"A": "Gone"}, {"A": "B", "B": "B"}])
def test_a_declared_rename_that_matches_nothing_is_refused(renames: dict[str, str]) -> None:
    document = read(A=STRING, B=STRING)

    with pytest.raises(ValueError, match="rename"):
        compare(document, document, renames=renames)


def test_an_object_that_became_a_union_changed_its_kind() -> None:
    old = read(Schema=obj("enum", enum=STRING))
    new = read(Schema=any_of(ref("Plain"), ref("Titled")), Plain=obj(enum=STRING), Titled=obj("title", title=STRING))

    assert ("definition-kind-changed", "Schema", "{enum}", "Plain | Titled", "widened") in changes(old, new)


# Keys


@pytest.mark.parametrize(("required", "effect"), [((), "widened"), (("y",), "changed")])
def test_a_new_key_is_added_once_at_its_definition(required: tuple[str, ...], effect: str) -> None:
    users = {"User": obj(a=ref("A")), "Users": {"type": "array", "items": ref("A")}}
    old, new = read(A=obj(x=STRING), **users), read(A=obj(*required, x=STRING, y=INTEGER), **users)
    (change,) = compare(old, new).changes

    assert ("key-added", "A.y", None, "integer", effect) == brief(change)
    assert change.new is not None
    assert ("A", "y", "/$defs/A/properties/y", bool(required)) == (
        change.new.name,
        change.new.key,
        change.new.pointer,
        change.new.required,
    )


def test_a_new_key_of_an_open_object_narrows_it() -> None:
    old = read(A={**obj(x=STRING), "additionalProperties": {}})
    new = read(A={**obj(x=STRING, y=INTEGER, z={}), "additionalProperties": {}})

    assert [
        ("key-added", "A.y", None, "integer", "narrowed"),
        ("key-added", "A.z", None, "any", "same"),
    ] == changes(old, new)


def test_a_key_that_is_gone_is_removed() -> None:
    old, new = read(A=obj(x=STRING, y=INTEGER)), read(A=obj(x=STRING))

    assert [("key-removed", "A.y", "integer", None, "narrowed")] == changes(old, new)


def test_a_key_that_becomes_required_narrows() -> None:
    (change,) = compare(read(A=obj(x=STRING)), read(A=obj("x", x=STRING))).changes

    assert ("requiredness-changed", "A.x", "narrowed") == (change.kind, change.id, change.effect)
    assert change.old is not None
    assert change.new is not None
    assert (False, True) == (change.old.required, change.new.required)


def test_requiredness_and_type_are_two_changes() -> None:
    found = changes(read(A=obj(x=STRING)), read(A=obj("x", x=INTEGER)))

    assert [("requiredness-changed", "A.x"), ("type-changed", "A.x")] == [each[:2] for each in found]


@pytest.mark.parametrize(("extra", "word"), [({}, "kept"), (False, "refused")])
def test_openness_is_told_as_what_becomes_of_unknown_keys(extra: Any, word: str) -> None:
    old, new = read(A=obj(x=STRING)), read(A={**obj(x=STRING), "additionalProperties": extra})
    effect = "widened" if word == "kept" else "narrowed"

    assert [("unknown-keys-changed", "A", "dropped", word, effect)] == changes(old, new)
