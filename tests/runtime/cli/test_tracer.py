"""A conversation, looked on at: to which revision each message belongs, what that calls it, and what is wrong."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.cli.trace.annotation_text import Style, as_json, as_text
from mcpgen.runtime.errors import printable
from mcpgen.runtime.protocol.trace.annotations import Annotation
from mcpgen.runtime.protocol.trace.tracer import Tracer
from tests.harness.server_conversations import BROKEN, FINE, TOOLS, asked, opened

if TYPE_CHECKING:
    from collections.abc import Callable

HANDSHAKES = [each.label for each in REVISIONS if each.era == "handshake"]
CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}\n'
ECHO = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}
# In these, the client breaks rules, but not the server.
CLIENT_AT_FAULT = (
    "a batch",
    "a batch with a response that waits, and a cancelled request with the same id",
    "a refusal of nonsense",
)


def traced(script: str, *, tracer: Tracer | None = None) -> list[Annotation]:
    """Return what is said of a script, whose lines come a second apart: "> " from the client, "< " from the server."""
    tracer = tracer or Tracer()
    found: list[Annotation] = []
    for second, line in enumerate(script.replace("NAME", "s").removesuffix("\n").split("\n")):
        direction = "to server" if line.startswith("> ") else "to client"
        data = line[2:].replace("\\0", "\n").encode("utf-8", "surrogateescape") + b"\n"
        found += tracer.feed(direction, data, second)
    return found


def after(opening: str, script: str) -> list[Annotation]:
    """Return what is said of *script* behind *opening*."""
    return traced(opening + script)[len(traced(opening)) :]


def reasons(annotation: Annotation) -> list[tuple[str, str]]:
    return [(each.pointer, each.reason) for each in annotation.violations]


def told(annotation: Annotation, width: int = 80, **style: bool) -> str:
    return as_text(annotation, Style(width, **style))


# --- which revision, and what it calls things


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_what_initialize_settles_holds_for_all_that_follows(revision: str) -> None:
    script = (
        opened(revision, client_can="{}", server_can="{}")
        + CALL
        + '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n'
        + '< {"jsonrpc":"2.0","id":9,"method":"ping"}\n'
        + '> {"jsonrpc":"2.0","id":9,"result":{}}\n'
        + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    )
    found = traced(script)

    assert [revision] * 8 == [each.revision for each in found]
    assert [(), ()] * 4 == [each.violations for each in found]
    assert [
        ("request", "initialize", "InitializeRequestParams"),
        ("response", "initialize", "InitializeResult"),
        ("notification", "notifications/initialized", "NotificationParams"),
        ("request", "tools/call", "CallToolRequestParams"),
        ("notification", "notifications/message", "LoggingMessageNotificationParams"),
        ("request", "ping", "RequestParams"),
        ("response", "ping", "EmptyResult"),
        ("response", "tools/call", "CallToolResult"),
    ] == [(each.kind, each.method, each.type) for each in found]


def test_the_server_has_the_last_word_on_the_revision() -> None:
    initialize, result, *_ = traced(
        '> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        '"clientInfo":{"name":"c","version":"1"}}}\n'
        '< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{},'
        '"serverInfo":{"name":"s","version":"1"}}}\n'
    )

    assert ("2025-11-25", "2024-11-05") == (initialize.revision, result.revision)


@pytest.mark.parametrize("offered", ["2099-01-01", "2026-07-28"])
def test_a_revision_without_a_handshake_here_is_noted_where_it_is_offered(offered: str) -> None:
    (initialize,) = traced(
        f'> {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{offered}",'
        '"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
    )

    assert (HANDSHAKES[-1], ()) == (initialize.revision, initialize.violations)
    assert ["/params/protocolVersion"] == [each.pointer for each in initialize.notes]


def test_a_request_before_the_answer_to_initialize_is_told_the_revision_that_it_is_checked_against() -> None:
    beginning = '> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
    (found,) = after(beginning, '> {"jsonrpc":"2.0","id":2,"method":"tools/list"}\n')

    expected = f"`initialize` has not negotiated a revision, so the message is checked against {HANDSHAKES[-1]}"
    assert [expected] == [each.reason for each in found.notes]


@pytest.mark.parametrize(
    ("chosen", "fault"), [("2099-01-01", "is unknown to mcpgen"), ("2026-07-28", "has no `initialize`")]
)
def test_a_revision_without_a_handshake_here_is_noted_where_it_is_chosen(chosen: str, fault: str) -> None:
    answer = f'{{"protocolVersion":"{chosen}","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}'
    _, answered, following = traced(
        '> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
        f'< {{"jsonrpc":"2.0","id":0,"result":{answer}}}\n'
        '> {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    )

    assert [f"the revision {chosen} {fault}"] == [each.reason for each in answered.notes]
    assert ["`initialize` has not negotiated a revision, so the message is checked against 2025-11-25"] == [
        each.reason for each in following.notes
    ]


def test_a_stateless_request_names_its_revision_and_its_response_belongs_to_that() -> None:
    request, response = traced(FINE["a stateless request"])

    assert ["2026-07-28"] * 2 == [request.revision, response.revision]
    assert ["PaginatedRequestParams", "ListToolsResult"] == [request.type, response.type]


def test_a_demand_for_input_is_told_from_a_result() -> None:
    _, demand = traced(FINE["a demand"])

    assert ("InputRequiredResult", "asks for a: roots/list") == (demand.type, demand.summary)


def test_the_answers_to_a_demand_are_told() -> None:
    (retry,) = traced(asked("tools/call", '"name":"x","inputResponses":{"a":{"roots":[]}},"requestState":"s"'))

    assert ((), "answers a, x") == (retry.violations, retry.summary)


def test_both_eras_can_be_mixed_on_one_pipe() -> None:
    script = (
        opened("2025-06-18")
        + asked("tools/list", identity='"new"')
        + '> {"jsonrpc":"2.0","id":"old","method":"tools/list"}\n'
        + '< {"jsonrpc":"2.0","id":"old","result":{"tools":[]}}\n'
        + TOOLS.replace('"id":1', '"id":"new"')
        + '> {"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    )
    found = traced(script)[3:]

    assert ["2026-07-28", "2025-06-18", "2025-06-18", "2026-07-28", "2025-06-18"] == [each.revision for each in found]
    assert [()] * 5 == [each.violations for each in found]


def test_a_notification_belongs_to_the_request_that_it_is_about() -> None:
    opening = opened("2025-06-18") + asked("tools/call", '"name":"x"', meta='"progressToken":"new"')
    progress, other, cancelled = after(
        opening,
        '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"new","progress":1}}\n'
        '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
    )

    assert ["2026-07-28", "2025-06-18", "2026-07-28"] == [each.revision for each in (progress, other, cancelled)]


def test_a_change_belongs_to_the_stream_that_it_comes_on() -> None:
    found = after(opened("2025-06-18"), FINE["a stream"])

    assert {"2026-07-28"} == {each.revision for each in found}


def test_the_latency_is_that_from_the_request_to_its_response() -> None:
    *_, response = traced(
        CALL + CALL.replace('"id":1', '"id":2') + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    )

    assert 2 == response.latency_seconds


def test_the_result_of_a_call_that_became_a_task_is_known() -> None:
    (_, created) = after(
        opened("2025-11-25"),
        '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{}}}\n'
        '< {"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working",'
        '"createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":null}}}\n',
    )

    assert ("CreateTaskResult", (), "task t working") == (created.type, created.violations, created.summary)


# --- what is wrong


@pytest.mark.parametrize("name", [each for each in FINE if each not in CLIENT_AT_FAULT])
def test_nothing_is_wrong_with_a_conversation_within_the_rules(name: str) -> None:
    assert [] == [reasons(each) for each in traced(FINE[name]) if each.violations]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('"method":"tools/call","params":{"name":7}', [("/params/name", "Expected `str`, got `int`")]),
        ('"method":"tools/call"', [("", "`params` is missing; tools/call requires it")]),
        ('"method":"tools/call","params":{}', [("/params", "Object missing required field `name`")]),
        (
            '"method":"roots/list"',
            [("/method", "2025-11-25 allows roots/list only from a server, but a client sent it")],
        ),
        (
            '"method":"server/discover"',
            [("/method", "2025-11-25 has no request server/discover (added in 2026-07-28)")],
        ),
        ('"method":"nonsense"', [("/method", "2025-11-25 has no request nonsense")]),
        (
            '"method":"notifications/initialized"',
            [("/id", "notifications/initialized is a notification, but has an id")],
        ),
        ('"result":{}', [("/id", "there is no request with this id")]),
        ('"error":{"code":1,"message":"m"}', [("/id", "there is no request with this id")]),
        ('"method":7', [("", "method is not a string")]),
    ],
)
def test_what_the_revision_does_not_allow_is_a_violation(message: str, expected: list[tuple[str, str]]) -> None:
    (found,) = after(opened("2025-11-25"), f'> {{"jsonrpc":"2.0","id":1,{message}}}\n')

    assert expected == reasons(found)


def test_a_method_of_a_later_revision_is_that_also_if_an_undeclared_extension_has_one_of_its_name() -> None:
    call = '> {"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"1"}}\n'
    (found,) = after(opened("2025-06-18"), call)

    assert [("/method", "2025-06-18 has no request tasks/get (added in 2025-11-25)")] == reasons(found)


def test_a_request_sent_as_a_notification_is_a_violation() -> None:
    (found,) = after(opened(), '> {"jsonrpc":"2.0","method":"ping"}\n')

    assert [("", "ping is a request, but has no id")] == reasons(found)


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (
            "2024-11-05",
            [
                (
                    "/result/structuredContent",
                    "2024-11-05 has no `structuredContent` in CallToolResult (added in 2025-06-18)",
                )
            ],
        ),
        (
            "2025-03-26",
            [
                (
                    "/result/structuredContent",
                    "2025-03-26 has no `structuredContent` in CallToolResult (added in 2025-06-18)",
                )
            ],
        ),
        ("2025-06-18", []),
        ("2025-11-25", []),
    ],
)
def test_a_key_of_another_revision_is_foreign(revision: str, expected: list[tuple[str, str]]) -> None:
    result = '< {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"own":{"a":1}}}}\n'
    (found,) = after(opened(revision) + CALL, result)

    assert expected == reasons(found)


def test_a_key_that_a_revision_has_dropped_is_foreign_to_it() -> None:
    (found,) = traced(asked("tools/call", '"name":"x","task":{}'))

    assert [
        ("/params/task", "2026-07-28 has no `task` in CallToolRequestParams (removed after 2025-11-25)")
    ] == reasons(found)


def test_a_foreign_key_in_every_member_of_a_list_is_told_once() -> None:
    tools = ",".join(['{"name":"a","title":"A","inputSchema":{"type":"object","title":"Mine"}}'] * 3)
    opening = opened("2024-11-05", client_can="{}") + '> {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    (found,) = after(opening, f'< {{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]}}}}\n')

    assert [("/result/tools/0/title", "2024-11-05 has no `title` in Tool (added in 2025-06-18), 3 times")] == reasons(
        found
    )


def test_a_key_that_no_revision_has_is_merely_noted() -> None:
    (found,) = after(opened(), CALL.replace('"name":"x"', '"name":"x","sessionId":1'))

    assert () == found.violations
    assert ["no revision defines `sessionId` in CallToolRequestParams"] == [each.reason for each in found.notes]


def test_metadata_may_have_any_key() -> None:
    (found,) = after(opened(), CALL.replace('"name":"x"', '"name":"x","_meta":{"com.example/a":{"b":1}}'))

    assert ((), ()) == (found.violations, found.notes)


def test_an_id_is_used_once() -> None:
    *_, twice = traced(opened() + CALL + CALL)
    *_, again = traced(opened() + CALL + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n' + CALL)

    assert [("/id", "another request with this id is pending")] == reasons(twice)
    assert [("/id", "this id was used before")] == reasons(again)


def test_the_answer_to_a_request_with_a_used_id_is_no_violation() -> None:
    answer = '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    *_, found = traced(opened() + CALL + answer + CALL + answer)

    assert ((), "tools/call") == (found.violations, found.method)


def test_each_side_has_ids_of_its_own() -> None:
    *_, found = traced(opened() + CALL + '< {"jsonrpc":"2.0","id":1,"method":"ping"}\n')

    assert () == found.violations


def test_a_request_is_answered_once() -> None:
    answer = '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    *_, found = traced(opened() + CALL + answer + answer)

    assert [("/id", "a request with this id was answered before")] == reasons(found)


def test_an_answer_that_comes_after_the_cancellation_is_noted() -> None:
    cancelled = '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
    *_, found = traced(opened() + CALL + cancelled + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n')

    assert ((), ["the request was cancelled before"]) == (found.violations, [each.reason for each in found.notes])


def test_progress_needs_a_token_that_was_given() -> None:
    progress = '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}\n'
    *_, found = traced(opened() + progress)

    assert [("/params/progressToken", "no request has this progress token")] == reasons(found)


def test_what_a_server_asks_without_a_session_belongs_inside_a_result() -> None:
    *_, found = traced(asked("tools/list") + '< {"jsonrpc":"2.0","id":1,"method":"roots/list"}\n')

    assert [("/method", "in 2026-07-28, roots/list must be inside `inputRequests` of a result")] == reasons(found)


def test_a_request_that_belongs_to_no_revision_cannot_be_judged() -> None:
    (found,) = traced(CALL)

    assert (None, None) == (found.revision, found.type)
    assert ["the request has no revision: `initialize` negotiated none, and `_meta` of the request names none"] == [
        each.reason for each in found.violations
    ]


def test_a_wrong_demand_is_judged_as_a_demand() -> None:
    result = '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":7}}}'
    _, found = traced(asked("tools/call", '"name":"x"') + f'< {{"jsonrpc":"2.0","id":1,"result":{result}}}\n')

    assert "InputRequiredResult" == found.type
    assert ["/result/inputRequests"] == [each.pointer for each in found.violations]


def test_a_wrong_result_is_not_taken_for_a_demand() -> None:
    _, found = traced(asked("tools/call", '"name":"x"') + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n')

    assert "CallToolResult" == found.type
    assert [("/result", "Object missing required field `resultType`")] == reasons(found)


# --- what is no message


def test_a_banner_is_a_violation_and_is_quoted() -> None:
    (found,) = after(opened(), "< Server ready on stdio\n")

    assert ("malformed", "Server ready on stdio", False) == (found.kind, found.summary, found.is_json)
    assert ["the message is not JSON; on stdio, a server may write only messages to standard output"] == [
        each.reason for each in found.violations
    ]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ('{"x":NaN}', "the message is not JSON"),
        ('{"x":"\\ud800"}', "a string in the message has half of a surrogate pair"),
    ],
)
def test_a_message_with_a_mistake_is_not_a_banner(result: str, reason: str) -> None:
    (found,) = after(opened(), f'< {{"jsonrpc":"2.0","id":1,"result":{result}}}\n')

    assert ("malformed", False) == (found.kind, found.is_json)
    assert reason == found.violations[0].reason


def test_a_batch_is_told_and_then_each_of_its_messages() -> None:
    batch = '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},7]'
    tracer = Tracer()
    found = traced(opened("2025-03-26", client_can="{}") + f"> {batch}\n", tracer=tracer)[3:]

    assert [("batch", None), ("request", 0), ("notification", 1), ("malformed", 2)] == [
        (each.kind, each.item) for each in found
    ]
    assert [[], [], [], [("", "the message is not an object")]] == [reasons(each) for each in found]
    assert (6, 1) == (tracer.messages, tracer.violations)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_a_violation_where_there_are_none(revision: str) -> None:
    batch, _ = after(opened(revision), '> [{"jsonrpc":"2.0","id":1,"method":"ping"}]\n')

    assert [("", f"{revision} has no batches")] == reasons(batch)


def test_a_batch_is_a_violation_in_a_stateless_revision() -> None:
    batch, _ = after(asked("tools/list"), '> [{"jsonrpc":"2.0","method":"notifications/cancelled"}]\n')

    assert [("", "2026-07-28 has no batches")] == reasons(batch)


def test_what_is_too_long_is_not_looked_at_but_its_answer_is_expected() -> None:
    tracer = Tracer(max_frame_bytes=1000)
    long, answer = traced(
        f'> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{"x" * 5000}"}}}}\n'
        '< {"jsonrpc":"2.0","id":1,"result":{}}\n',
        tracer=tracer,
    )

    assert [("", "the message is too long to check: 5,067 bytes")] == reasons(long)
    assert (None, 5067, []) == (long.frame, long.size_bytes, reasons(answer))


def test_what_the_end_cuts_off_is_told() -> None:
    tracer = Tracer()
    assert [] == tracer.feed("to client", b'{"jsonrpc":"2.0","id', 0)

    (found,) = tracer.finish("to client", 1)
    assert ("malformed", '{"jsonrpc":"2.0","id') == (found.kind, found.summary)


def test_what_is_said_does_not_depend_on_how_the_bytes_arrive() -> None:
    wire = "".join(line[2:] + "\n" for line in opened().splitlines() if line.startswith("> ")).encode()
    whole, pieces = Tracer(), Tracer()

    assert whole.feed("to server", wire, 0) == [
        each for index in range(len(wire)) for each in pieces.feed("to server", wire[index : index + 1], 0)
    ]


@pytest.mark.parametrize("name", BROKEN)
def test_everything_can_be_told_in_every_form(name: str) -> None:
    for each in traced(BROKEN[name][0]):
        for width in (20, 80, 120, 200):
            for is_whole in (False, True):
                text = as_text(each, Style(width, is_whole=is_whole))
                assert all(line.isprintable() for line in text.splitlines())
        line = json.loads(as_json(each))
        if each.is_json:
            assert json.loads(each.frame or b"") == line["message"]


# --- hostile messages


@pytest.mark.parametrize("form", ["text", "body", "json"])
@pytest.mark.parametrize(
    "line",
    [
        '> {"jsonrpc":"2.0","id":"\\u001b[2J","method":"\\u001b[2J","params":{"\\u001b[2J":"\\u009b2J"}}',
        '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u001b]0;\\u0007","\\u202e":"\x7f\x9b"}}',
        '< {"jsonrpc":"2.0","id":"h","error":{"code":1,"message":"\\u001b[2J\\r\\n\\u0008","data":"\x9b2J"}}',
        "< \x1b[31mReady\x1b[0m\r\x07",
        "< \udcff\udc9b2J\x1b",
        '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","a\\u001b":{"\\u001b[2J":1}}}',
    ],
)
def test_nothing_that_a_peer_writes_can_steer_a_terminal(line: str, form: str) -> None:
    for each in traced(opened() + line):
        text = as_json(each) if form == "json" else told(each, is_whole=form == "body")

        assert text.replace("\n", "").isprintable()


def test_a_method_that_clears_the_screen_is_shown_as_what_it_is() -> None:
    (found,) = after(opened(), '> {"jsonrpc":"2.0","id":1,"method":"\\u001b[2J"}\n')

    assert ["/method: 2025-11-25 has no request \\x1b[2J"] == [
        printable(f"{each.pointer}: {each.reason}") for each in found.violations
    ]
    assert "request      \\x1b[2J #1" in told(found)


@pytest.mark.parametrize("identity", ['"' + "x" * 100_000 + '"', "1" * 4000, "-" + "9" * 30])
def test_a_huge_id_is_shown_in_part_and_kept_whole(identity: str) -> None:
    script = (
        f'> {{"jsonrpc":"2.0","id":{identity},"method":"ping"}}\n< {{"jsonrpc":"2.0","id":{identity},"result":{{}}}}\n'
    )
    for each in after(opened(), script):
        assert max(map(len, told(each).splitlines())) <= 80
        assert identity in as_json(each)


def test_a_huge_id_is_matched_with_its_answer() -> None:
    identity = '"' + "x" * 100_000 + '"'
    script = (
        f'> {{"jsonrpc":"2.0","id":{identity},"method":"ping"}}\n< {{"jsonrpc":"2.0","id":{identity},"result":{{}}}}\n'
    )
    *_, answer = traced(opened() + script)

    assert ("ping", ()) == (answer.method, answer.violations)


def test_deep_nesting_is_survived() -> None:
    deep = "[" * 900 + "]" * 900
    for script in (
        deep,
        f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{deep}}}}}}}',
    ):
        for each in after(opened(), f"> {script}\n> {'[' * 100_000}\n"):
            assert told(each)
            assert told(each, is_whole=True)
            assert isinstance(json.loads(as_json(each)), dict)


def test_a_message_with_too_many_values_is_not_checked_but_its_response_is_expected() -> None:
    many = ",".join("1" for _ in range(60))
    script = (
        f'> {{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{{"a":[{many}]}}}}}}\n'
        '< {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n'
    )
    tracer = Tracer(max_values=50)
    request, response = traced(opened() + script, tracer=tracer)[-2:]

    assert [("", "the message has more than 50 values (max_values)")] == reasons(request)
    assert [] == reasons(response)


def test_what_is_asked_for_without_end_is_forgotten() -> None:
    tracer = Tracer()
    for number in range(30_000):
        tracer.feed("to server", b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number, 0)
    requests = tracer._requests["client"]

    assert 10_000 == len(requests._pending)


# --- how it looks


def test_a_line_says_when_which_way_what_and_how_long_it_took() -> None:
    opening = opened("2025-11-25")
    request, response = after(
        opening,
        f'> {json.dumps(ECHO)}\n< {{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"hi"}}]}}}}\n',
    )

    assert told(request) == (
        "   3.000 → request      tools/call #1        2025-11-25 CallToolRequestParams\n"
        '            echo {"text":"hi"}\n'
    )
    assert told(response) == (
        '   4.000 ← response     tools/call #1 1.00 s  2025-11-25 CallToolResult\n            "hi"\n'
    )


def test_a_wide_line_holds_all() -> None:
    (request,) = after(opened(), f"> {json.dumps(ECHO)}\n")

    assert 1 == told(request, 200).count("\n")
    assert told(request, 200).endswith('echo {"text":"hi"}\n')


@pytest.mark.parametrize("width", [72, 80, 100, 149, 150, 200])
@pytest.mark.parametrize("text", ["plain ", "日本語", "é́", "\x1b[2J", "🦊"])
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    call = {**ECHO, "params": {"name": text * 99, "arguments": {text: text * 99}, "new": 1}}
    odd = {**ECHO, "id": text * 99, "method": text * 99}
    script = f"> {json.dumps(call)}\n> {text * 99}\n> {json.dumps(odd)}\n"
    for each in after(opened(), script + f'< {{"jsonrpc":"2.0","id":{json.dumps(text * 99)},"result":{{}}}}\n'):
        for line in told(each, width).splitlines():
            wide = sum(2 if "⺀" <= c <= "鿿" or c == "🦊" else 0 if c == "\u0301" else 1 for c in line)
            assert wide <= width


def test_colours_are_written_only_where_they_are_wanted() -> None:
    (request,) = after(opened(), CALL)

    assert "\x1b" not in told(request)
    assert "\x1b[36m→\x1b[0m" in told(request, is_coloured=True)


def test_violations_and_notes_are_marked() -> None:
    (found,) = after(opened(), CALL.replace('"name":"x"', '"name":7') + "")
    (noted,) = after(opened(), CALL.replace('"name":"x"', '"name":"x","a":1') + "")

    assert "            ✗ /params/name: Expected `str`, got `int`\n" in told(found)
    assert "            · /params/a: no revision defines `a` in CallToolRequestParams\n" in told(noted)


def test_many_violations_are_counted_rather_than_shown() -> None:
    keys = ",".join(f'"k{number}":1' for number in range(20))
    (found,) = after(opened(), CALL.replace('"name":"x"', f'"name":"x",{keys}'))

    assert "· and 12 more" in told(found)
    assert 20 == len(json.loads(as_json(found))["notes"])


def test_the_body_is_the_message_itself() -> None:
    (found,) = after(opened(), CALL)
    _, *body = told(found, is_whole=True).splitlines()

    assert json.loads(CALL[2:]) == json.loads("".join(body))


def test_a_line_of_json_has_all_facts_and_the_message_as_it_came() -> None:
    line = '{"jsonrpc": "2.0", "id": 1.0, "method": "tools/call", "params": {"name": "\\u00e4ä\x7f", "task": 1e400}}'
    (found,) = after(opened("2025-06-18"), f"> {line}\n")
    text = as_json(found)

    assert text.isascii()
    assert '"message":' + line.replace("ä", "\\u00e4").replace("\x7f", "\\u007f") in text
    made = json.loads(text)
    assert ("request", "tools/call", 1, "2025-06-18") == tuple(
        made[key] for key in ("kind", "method", "id", "revision")
    )


@pytest.mark.parametrize("text", ["ä", "😀", "ä\\n", "\x7f", '\\"ä'])
def test_a_line_of_json_takes_no_step_for_each_character_beyond_ascii(text: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"_meta":{{"a":"{text * 10_000}"}}}}}}'
    (found,) = after(opened(), f"> {line}\n")
    steps: list[str] = []
    sys.setprofile(lambda frame, event, _: steps.append(frame.f_code.co_name))
    try:
        made = as_json(found)
    finally:
        sys.setprofile(None)

    assert len(steps) < 200
    assert made.isascii()
    assert json.loads(line) == json.loads(made)["message"]


def test_the_indents_of_a_deep_body_do_not_fill_the_memory() -> None:
    deep = ",".join(["[" * 900 + "]" * 900] * 50)
    line = f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"_meta":{{"a":[{deep}]}}}}}}'
    (found,) = after(opened(), f"> {line}\n")

    assert len(told(found, is_whole=True)) < len(line) + 1000


@pytest.mark.parametrize(
    ("data", "key", "value"),
    [("< banner ä", "text", "banner ä"), ("< \udcff", "base64", "/w=="), ("< \udcc3", "base64", "ww==")],
)
def test_what_is_no_json_is_kept_as_text_or_bytes(data: str, key: str, value: str) -> None:
    (found,) = after(opened(), data)
    made = json.loads(as_json(found))

    assert value == made[key]
    assert "message" not in made


@pytest.mark.parametrize(
    ("result", "method", "expected"),
    [
        ({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}, "tools/list", "1 tool: a"),
        ({"tools": [], "nextCursor": "x"}, "tools/list", "no tools, more pages"),
        ({"contents": [{"uri": "a:b", "text": "t"}]}, "resources/read", 'a:b "t"'),
        ({"contents": [{"uri": "a:b", "blob": ""}]}, "resources/read", "a:b blob"),
        (
            {"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]},
            "prompts/get",
            '1 message: user "t"',
        ),
        ({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}, "tools/call", "image image/png"),
        ({"content": [], "isError": True}, "tools/call", "FAILED, no content"),
        ({"completion": {"values": ["a", "b"]}}, "completion/complete", "a b"),
        ({"content": 7, "tools": {"a": 1}, "messages": "x"}, "tools/call", '7, {"a":1}, "x"'),
        ({"contents": [7], "completion": None, "isError": "no"}, "tools/call", "[7], null"),
        ({"own": 1}, "tools/call", '{"own":1}'),
        ({}, "ping", ""),
    ],
)
def test_a_summary_tells_most_about_a_message(result: Any, method: str, expected: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "x"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}
    _, found = after(opened(), f"> {json.dumps(request)}\n< {json.dumps(answer)}\n")

    assert expected == found.summary


def test_the_pointers_of_a_long_key_with_many_unknown_keys_in_it_are_short() -> None:
    unknown = {f"k{number}": 0 for number in range(2000)}
    form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}, **unknown}
    asks = {"k" * 100_000: {"method": "elicitation/create", "params": form}}
    result = {"resultType": "input_required", "inputRequests": asks, "requestState": "s"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "_meta": meta}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}

    found = traced(f"> {json.dumps(call)}\n< {json.dumps(answer)}\n")[1]
    findings = [*found.violations, *found.notes]
    assert len(findings) == 2000
    assert sum(len(each.pointer) for each in findings) < 1_000_000


def test_content_may_be_nested_as_deep_as_a_message() -> None:
    nested = "[" * 900 + "]" * 900
    *_, found = after(opened(), CALL + f'< {{"jsonrpc":"2.0","id":1,"result":{{"content":{nested}}}}}\n')

    assert "response" == found.kind
    assert found.violations


def test_many_unknown_keys_of_a_message_are_added_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []

    def counted(name: str) -> Callable[..., None]:
        add = getattr(Annotation, name)

        def added_to(self: Annotation, *what: Any) -> None:
            added.append(1)
            add(self, *what)

        return added_to

    for name in ("add", "note", "violate"):
        monkeypatch.setattr(Annotation, name, counted(name))
    keys = ",".join(f'"k{number}":1' for number in range(2000))
    (found,) = after(opened(), f'< {{"jsonrpc":"2.0","method":"notifications/tools/list_changed",{keys}}}\n')

    assert len(found.notes) == 2000
    assert len(added) < 50  # each copies what was added before
