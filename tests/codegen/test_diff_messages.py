"""What a diff reports about messages, error codes, the era and deprecations."""

from __future__ import annotations

from typing import Any

import msgspec

from mcpgen.codegen.diff import Edition, compare, mirrored
from mcpgen.codegen.overlay import ErrorCode
from tests.codegen.editions import STRING, any_of, brief, changes, obj, read, ref, request

SHAPES: dict[str, Any] = {
    "GoRequest": request("go", params=ref("GoParams")),
    "GoParams": obj(a=STRING),
    "GoResult": obj(r=STRING),
    "PingRequest": request("ping"),
    "PingResult": obj(p=STRING),
    "DoneNotification": request("done"),
}


def message_changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what changed about messages, with ``SHAPES`` on both sides."""
    diff = compare(read(**SHAPES | old), read(**SHAPES | new))
    assert mirrored(diff) == compare(read(**SHAPES | new), read(**SHAPES | old))

    return [brief(each) for each in diff.changes if (each.new or each.old).sender]  # type: ignore[union-attr]  # a change has one side at least


def test_messages_come_and_go_with_their_sender() -> None:
    assert [
        ("request-removed", "client ping", "object -> PingResult", None, None),
        ("request-added", "server go", None, "GoParams -> GoResult", None),
        ("notification-added", "server done", None, "object", None),
    ] == message_changes(
        {"ClientRequest": any_of(ref("GoRequest"), ref("PingRequest"))},
        {
            "ClientRequest": ref("GoRequest"),
            "ServerRequest": ref("GoRequest"),
            "ServerNotification": ref("DoneNotification"),
        },
    )


def test_a_message_that_the_other_side_sends_now_turned_round() -> None:
    old, new = {"ClientRequest": ref("GoRequest")}, {"ServerRequest": ref("GoRequest")}
    shape = "GoParams -> GoResult"

    assert [("direction-changed", "server go", shape, shape, None)] == message_changes(old, new)


def test_a_request_that_is_asked_inside_a_result_changed_its_carrier() -> None:
    old, new = {"ServerRequest": ref("GoRequest")}, {"InputRequest": ref("GoRequest")}

    assert [("carrier-changed", "server go", "request", "input", None)] == message_changes(old, new)


def test_other_params_are_a_change_of_the_message() -> None:
    old = {"ClientRequest": ref("GoRequest"), "More": obj(a=STRING, b=STRING)}

    assert [("params-changed", "client go", "GoParams", "More", "widened")] == message_changes(
        old, {**old, "GoRequest": request("go", params=ref("More"))}
    )


def test_a_change_inside_params_is_one_of_their_definition_and_names_the_message() -> None:
    old = {"ClientRequest": ref("GoRequest")}
    (change,) = compare(read(**SHAPES | old), read(**SHAPES | old | {"GoParams": obj(a=STRING, b=STRING)})).changes

    assert ("key-added", "GoParams.b", ("go params",)) == (change.kind, change.id, change.affects)


def test_params_that_must_be_there_are_a_change_of_the_message() -> None:
    loose = request("go", params=ref("GoParams")) | {"required": ["method"]}
    old, new = {"ClientRequest": ref("GoRequest"), "GoRequest": loose}, {"ClientRequest": ref("GoRequest")}

    assert [("params-requiredness-changed", "client go", "", "", "narrowed")] == message_changes(old, new)


def test_another_result_is_a_change_of_the_message() -> None:
    response = obj("result", result=any_of(ref("GoResult"), ref("PingResult")))
    old, new = {"ClientRequest": ref("GoRequest")}, {"ClientRequest": ref("GoRequest"), "GoResultResponse": response}

    assert [("result-changed", "client go", "GoResult", "GoResult | PingResult", "widened")] == message_changes(
        old, new
    )


PLAIN = read(A=STRING)


def known(**facts: Any) -> Edition:
    return msgspec.structs.replace(PLAIN, **{"era": "early", "errors": (), "deprecated": frozenset()} | facts)


def code(number: int, name: str, text: str = "") -> ErrorCode:
    return ErrorCode(code=number, name=name, text=text)


def test_what_no_overlay_says_is_not_compared_and_that_is_said() -> None:
    assert ("era", "errors", "deprecations") == compare(known(), PLAIN).uncompared
    assert () == compare(known(), known()).uncompared


def test_another_era_is_a_change() -> None:
    assert [("era-changed", "era", "early", "late", None)] == changes(known(), known(era="late"))


def test_error_codes_come_go_move_and_get_other_names() -> None:
    old = known(errors=(code(1, "GONE"), code(2, "MOVED"), code(3, "BEFORE"), code(4, "SAME", "one text")))
    new = known(errors=(code(5, "COME"), code(6, "MOVED"), code(3, "AFTER"), code(4, "SAME", "another text")))

    assert [
        ("error-removed", "1", "GONE", None, None),
        ("error-name-changed", "3", "BEFORE", "AFTER", None),
        ("error-added", "5", None, "COME", None),
        ("error-code-changed", "6", "MOVED", "MOVED", None),
    ] == changes(old, new)


def test_deprecation_is_a_change() -> None:
    assert [("definition-deprecated", "A", None, "", None)] == changes(known(), known(deprecated=frozenset({"A"})))


def test_a_renamed_definition_stays_deprecated() -> None:
    renamed = msgspec.structs.replace(read(AndB=STRING), era="early", errors=(), deprecated=frozenset({"AndB"}))
    found = compare(known(deprecated=frozenset({"A"})), renamed, renames={"A": "AndB"}).changes

    assert ["definition-renamed"] == [each.kind for each in found]


def test_a_key_of_a_renamed_definition_stays_deprecated() -> None:
    renamed = msgspec.structs.replace(read(AndB=STRING), era="early", errors=(), deprecated=frozenset({"AndB.key"}))
    found = compare(known(deprecated=frozenset({"A.key"})), renamed, renames={"A": "AndB"}).changes

    assert ["definition-renamed"] == [each.kind for each in found]
