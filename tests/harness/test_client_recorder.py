"""That the judge of clients bites: conversations that break one rule each, and some that break none."""

from __future__ import annotations

import pytest

from tests.harness.client_conversations import CROSSING, FINE
from tests.harness.client_handshake_violations import OPENINGS
from tests.harness.client_recorder import ClientRecorder
from tests.harness.client_request_violations import ASKING
from tests.harness.client_response_violations import ANSWERING
from tests.harness.script_lines import CALL, CANCEL, LIST, offer, opened, stated

BROKEN = {**OPENINGS, **ASKING, **ANSWERING}


def told(recorder: ClientRecorder, script: str) -> None:
    """Let *recorder* hear *script*."""
    for line in script.splitlines():
        data = line[2:].encode().replace(b"\\0", b"\n").replace(b"\\xff", b"\xff")
        (recorder.said if line.startswith("> ") else recorder.heard)(data)


def judged(script: str) -> list[tuple[str, str]]:
    """Let a recorder hear *script*, and return pointers and reasons."""
    recorder = ClientRecorder()
    told(recorder, script)
    return [(each.pointer, each.reason) for each in recorder.violations]


def test_a_conversation_within_the_rules_passes() -> None:
    assert {} == {name: found for name, script in FINE.items() if (found := judged(script))}


def test_a_broken_rule_is_reported_with_its_pointer_and_nothing_else_is() -> None:
    wrong: dict[str, list[tuple[str, str]]] = {}
    for name, (script, pointer, reason) in BROKEN.items():
        found = judged(script)
        if {pointer} != {where for where, _ in found} or not any(reason in why for _, why in found):
            wrong[name] = found

    assert {} == wrong


def test_what_comes_before_the_broken_rule_is_within_the_rules() -> None:
    before = {name: "".join(script.splitlines(keepends=True)[:-1]) for name, (script, _, _) in BROKEN.items()}

    assert {} == {name: found for name, script in before.items() if (found := judged(script))}


def test_what_crosses_is_no_breach_where_messages_may_cross() -> None:
    for script in CROSSING.values():
        recorder = ClientRecorder()
        recorder.may_cross = True
        told(recorder, script)
        recorder.verify()

    assert [] == [name for name, script in CROSSING.items() if not judged(script)]


def test_what_has_nothing_to_do_with_a_crossing_is_a_breach_all_the_same() -> None:
    recorder = ClientRecorder()
    recorder.may_cross = True
    told(recorder, opened() + CANCEL)

    assert ["/params/requestId"] == [each.pointer for each in recorder.violations]


def test_a_handshake_in_a_batch_is_blamed_for_it() -> None:
    found = judged(f"> [{offer('2025-03-26')[2:-1]}]")

    assert [("", "no batches"), ("/0", "never part of a batch")] == [
        (where, next(each for each in ("no batches", "never part of a batch") if each in why)) for where, why in found
    ]


# --- a client that speaks some of the revisions only


def test_a_client_does_not_offer_what_it_does_not_speak() -> None:
    recorder = ClientRecorder(["2025-06-18"])
    told(recorder, offer("2025-11-25"))

    assert ["/params/protocolVersion"] == [each.pointer for each in recorder.violations]


def test_a_client_does_not_state_what_it_does_not_speak() -> None:
    recorder = ClientRecorder(["2025-06-18"])
    told(recorder, stated("tools/list"))

    assert ["/params/_meta"] == [each.pointer for each in recorder.violations]


def test_a_client_parts_from_a_server_that_agrees_to_what_it_does_not_speak() -> None:
    recorder = ClientRecorder(["2025-06-18"])
    told(
        recorder,
        opened("2025-06-18").replace(
            '"result":{"protocolVersion":"2025-06-18"', '"result":{"protocolVersion":"2024-11-05"'
        ),
    )

    assert "disconnects" in recorder.violations[0].reason


# --- servers that say anything


NOISE = [
    "",
    "[]",
    "[1]",
    "5",
    '"\\ud800"',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":[],"method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":[]}',
    '{"jsonrpc":"2.0","id":{},"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":5}',
    '{"jsonrpc":"2.0","id":1,"error":5}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":[]}}',
    '{"jsonrpc":"2.0","id":"l","result":{"tools":[5,{"name":[]},{"name":"x","execution":5}]}}',
    '{"jsonrpc":"2.0","id":1,"result":{"task":5,"tools":[5,{"name":"x","execution":5}],"resultType":[]}}',
    '{"jsonrpc":"2.0","id":"h","result":{"protocolVersion":[],"capabilities":5}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":[],"status":[]}}',
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":5,"requestState":[]}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"","data":{"supported":5}}}',
    '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":5,"capabilities":5}}',
]


def test_whatever_a_server_says_is_not_the_fault_of_its_client() -> None:
    begun = [opened() + CALL + LIST, offer(), stated("tools/call", '"name":"x"'), stated("server/discover")]
    scripts = [f"{before}< {frame}\n" for before in begun for frame in NOISE]

    assert {} == {script: found for script in scripts if (found := judged(script))}


def test_a_form_without_a_schema_is_not_the_fault_of_its_client() -> None:
    recorder = ClientRecorder()
    told(recorder, opened())
    for schema in (b"5", b'{"type":5}', b'{"$schema":"x:y"}', b"null"):
        recorder.heard(
            b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"","requestedSchema":'
            + schema
            + b"}}"
        )
        recorder.said(b'{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"a":1}}}')

    recorder.verify()


def test_the_report_holds_the_bytes_and_the_pointer() -> None:
    recorder = ClientRecorder()
    recorder.said(b'{"jsonrpc":"2.0","id":7,"result":{}}')

    with pytest.raises(AssertionError) as failure:
        recorder.verify()

    assert "the client broke the protocol" in str(failure.value)
    assert '{"jsonrpc":"2.0","id":7,"result":{}}' in str(failure.value)
