"""The limits of a server (docs/guide/limits.md), each made small, against a process on its streams."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.attacked_processes import MIB, SERVER, command
from tests.bounds.hostile_messages import ELICITATION, NONE, batch, call, cancelled, initialize
from tests.bounds.raw_sessions import joined
from tests.faults.http_raw_client import message, posted
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Stdio
    from tests.bounds.conftest import Victims

LISTEN = call("x", params=',"notifications":{"toolsListChanged":true}').replace(b"tools/call", b"subscriptions/listen")


def numbered(body: bytes, number: int) -> bytes:
    return body.replace(b'"id":1', b'"id":%d' % number, 1)


COMPLETION = message(
    "completion/complete",
    1,
    ref={"type": "ref/resource", "uri": "note://{+name}"},
    argument={"name": "name", "value": "x"},
    context={"arguments": {"name": "x" * 300}},
)
CAPABILITIES = '"io.modelcontextprotocol/clientCapabilities":'
LONG = '"com.example/long":{"x":"' + "x" * 500 + '"}'
MANY = ",".join(f'"com.example/{each}":{{}}' for each in range(20))

# What is sent five times with a limit: the first are served, or wait; the others are refused.
REFUSED: dict[str, tuple[float, str, bytes, int]] = {
    "max_frame_bytes": (1000, "2026-07-28", call("echo", f'{{"text":"{"x" * 1000}"}}'), 5),
    "max_in_flight": (3, "2026-07-28", call("wait"), 2),
    "max_in_flight_bytes": (3500, "2026-07-28", call("wait", f'{{"text":"{"x" * 1000}"}}'), 1),
    "max_subscriptions": (3, "2025-11-25", message("resources/subscribe", 1, uri="note://a"), 2),
    "max_waiting": (3, "2026-07-28", call("ask", meta=ELICITATION), 2),
    "max_waiting_bytes": (3700, "2026-07-28", call("ask", f"{{{' ' * 1000}}}", meta=ELICITATION), 2),
    "max_values": (30, "2026-07-28", call("echo", f'{{"text":[{"0," * 40}0]}}'), 5),
    "max_declaration_bytes": (500, "2026-07-28", call("echo", meta=f'{CAPABILITIES}{{"extensions":{{{LONG}}}}}'), 5),
    "max_declaration_values": (20, "2026-07-28", call("echo", meta=f'{CAPABILITIES}{{"extensions":{{{MANY}}}}}'), 5),
    "max_meta_bytes": (1000, "2026-07-28", call("echo", meta=f'{NONE},"x":"{"x" * 1000}"'), 5),
    "max_id_chars": (100, "2026-07-28", call("echo", meta=f'{NONE},"progressToken":"{"x" * 101}"'), 5),
    "max_uri_chars": (100, "2025-11-25", message("resources/subscribe", 1, uri="note://a" + "u" * 100), 5),
    "max_completion_bytes": (300, "2025-11-25", COMPLETION, 5),
    "max_session_bytes": (4000, "2025-11-25", message("resources/subscribe", 1, uri="note://a" + "u" * 1000), 3),
}


def write_five(stdio: Stdio, body: bytes) -> None:
    for number in range(1, 6):
        each = body.replace(b"note://a", b"note://%d" % number).replace(b'"id": 1', b'"id":1')
        stdio.write(numbered(each, number) + b"\n")


@pytest.mark.parametrize("limit", REFUSED)
@pytest.mark.slow
def test_below_the_default_limit_the_same_requests_are_not_refused(victims: Victims, limit: str) -> None:
    stdio = victims.stdio(REFUSED[limit][1])
    write_five(stdio, REFUSED[limit][2])
    stdio.call(50, "echo", text="x")
    while (said := stdio.receive())["id"] != 50:
        assert "error" not in said


@pytest.mark.parametrize("limit", REFUSED)
@pytest.mark.slow
def test_above_a_limit_requests_are_refused_by_its_name(victims: Victims, limit: str) -> None:
    value, revision, body, count = REFUSED[limit]
    stdio = victims.stdio(revision, limits={limit: value})
    write_five(stdio, body)
    refused: list[str] = []
    while len(refused) < count:
        said = stdio.receive()
        refused += [said["error"]["message"]] if "error" in said else []
    assert [each for each in refused if limit in each] == refused
    stdio.write(cancelled(1) + b"\n")
    for number in itertools.count(50):  # the cancelled handler counts until it has ended
        stdio.call(number, "echo", text="x")
        while (found := stdio.receive()).get("id") != number:
            assert "result" in found or limit in found["error"]["message"]
        if "result" in found:
            break
        assert limit in found["error"]["message"]


@pytest.mark.slow
def test_a_longer_batch_is_refused_by_the_name_of_its_limit(victims: Victims) -> None:
    http = victims.http(limits={"max_batch_length": 3})
    _, own, _ = joined(http, "2025-03-26")
    refused = http.ask(posted(batch(4, "ping", "{}"), *own))

    assert 400 == refused.status
    assert "max_batch_length" in refused.json["error"]["message"]
    assert 3 == len(http.ask(posted(batch(3, "ping", "{}"), *own)).json)


@pytest.mark.slow
def test_responses_to_a_batch_beyond_the_limit_are_errors_with_its_name(victims: Victims) -> None:
    stdio = victims.stdio("2025-03-26", limits={"max_batch_bytes": 10_000})
    stdio.write(batch(5, "resources/read", '{"uri":"big://4000"}') + b"\n")
    said = stdio.receive()
    errors = [each["error"]["message"] for each in said if "error" in each]

    assert (5, 3) == (len(said), len(errors))
    assert all("max_batch_bytes" in each for each in errors)


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["max_declaration_bytes", "max_declaration_values"])
def test_a_declaration_beyond_a_limit_begins_no_session(victims: Victims, limit: str) -> None:
    stdio = victims.stdio("2025-11-25", is_open=False, limits={limit: 20})
    capabilities = f'{{"experimental":{{{MANY}}}}}'
    stdio.write(initialize("2025-11-25", capabilities=capabilities) + b"\n")

    assert limit in stdio.receive()["error"]["message"]


@pytest.mark.slow
def test_an_id_beyond_the_limit_is_refused_by_its_name(victims: Victims) -> None:
    stdio = victims.stdio(limits={"max_id_chars": 100})
    for size in (101, 100):
        stdio.write(call("echo", identity=f'"{"x" * size}"') + b"\n")

    assert "max_id_chars" in stdio.receive()["error"]["message"]
    assert "x" * 100 == stdio.receive()["id"]


@pytest.mark.slow
def test_streams_of_subscriptions_are_limited(victims: Victims) -> None:
    stdio = victims.stdio(limits={"max_subscriptions": 3})
    for number in range(1, 6):
        stdio.write(numbered(LISTEN, number) + b"\n")
    said = stdio.answers(5)

    assert 2 == len([each for each in said if "max_subscriptions" in str(each.get("error"))])


def demanded(stdio: Stdio, demand: Any, tool: str, arguments: str = "{}") -> Any:
    """Answer a demand, and return what comes of it."""
    answers = {each: {"action": "accept", "content": {"name": "Ann"}} for each in demand["inputRequests"]}
    params = f',"requestState":"{demand["requestState"]}","inputResponses":{json.dumps(answers)}'
    stdio.write(call(tool, arguments, meta=ELICITATION, params=params) + b"\n")
    return stdio.receive()


@pytest.mark.slow
def test_a_call_that_waited_for_input_for_too_long_is_gone(victims: Victims) -> None:
    stdio = victims.stdio(limits={"waiting_seconds": 0.2})
    stdio.write(call("ask", meta=ELICITATION) + b"\n")
    demand = stdio.receive()["result"]
    time.sleep(0.5)

    assert "expired" in demanded(stdio, demand, "ask")["error"]["message"]


@pytest.mark.slow
def test_a_client_that_does_not_answer_fails_the_handler_that_asks(victims: Victims) -> None:
    stdio = victims.stdio("2025-11-25", is_open=False, limits={"answer_seconds": 0.2})
    stdio.write(initialize("2025-11-25", capabilities='{"elicitation":{}}') + b"\n")
    assert "result" in stdio.receive()
    stdio.write(message("notifications/initialized") + b"\n" + message("tools/call", 1, name="ask") + b"\n")
    said = stdio.answers(3)

    assert ["elicitation/create", "notifications/cancelled", None] == [each.get("method") for each in said]
    assert said[2].get("error") or said[2]["result"]["isError"]


@pytest.mark.slow
def test_a_handler_asks_no_more_often_than_it_may(victims: Victims) -> None:
    stdio = victims.stdio(limits={"max_rounds": 2})
    stdio.write(call("ask_often", '{"times":5}', meta=ELICITATION) + b"\n")
    said = stdio.receive()
    rounds = 0
    while said.get("result", {}).get("resultType") == "input_required":
        rounds += 1
        said = demanded(stdio, said["result"], "ask_often", '{"times":5}')

    assert 2 == rounds
    assert "error" in said or said["result"]["isError"]


@pytest.mark.slow
def test_a_client_that_does_not_read_has_little_buffered_for_it(victims: Victims) -> None:
    stdio = victims.stdio("2025-11-25", is_read=False)
    with victims.watch(stdio) as seen:
        for number in range(1, 201):
            stdio.write(message("tools/call", number, name="big", arguments={"size": MIB}) + b"\n")
        time.sleep(2)
        found = {json.loads(line)["id"] for line in (stdio.line() for _ in range(200))}

    assert {*range(1, 201)} == found
    assert seen.grown < 64 * MIB


@pytest.mark.slow
def test_functions_that_do_not_end_are_cancelled_after_the_grace_period(victims: Victims) -> None:
    stdio = victims.stdio(limits={"grace_seconds": 0.2})
    stdio.call(1, "wait")
    stdio.close_input()

    assert 0 == stdio.popen.wait(PATIENCE_SECONDS)


# --- fixed ones


@pytest.mark.slow
def test_a_completion_has_a_hundred_values(victims: Victims) -> None:
    stdio = victims.stdio("2025-11-25")
    reference = {"type": "ref/resource", "uri": "note://{+name}"}
    argument = {"name": "name", "value": "a"}
    stdio.write(message("completion/complete", 1, ref=reference, argument=argument) + b"\n")

    assert 100 == len(stdio.receive()["result"]["completion"]["values"])


@pytest.mark.slow
@pytest.mark.parametrize(("size", "is_read"), [(8192, True), (8193, False)])
def test_a_template_reads_uris_of_8192_characters(victims: Victims, size: int, *, is_read: bool) -> None:
    stdio = victims.stdio("2025-11-25")
    stdio.write(message("resources/read", 1, uri="note://" + "a" * (size - 7)) + b"\n")

    assert is_read == ("result" in stdio.receive())


@pytest.mark.slow
def test_a_page_has_a_hundred_items(victims: Victims) -> None:
    stdio = victims.stdio("2025-11-25", resources=250)
    found, cursor = [], {}
    for number in (1, 2, 3):
        stdio.write(message("resources/list", number, **cursor) + b"\n")
        page = stdio.receive()["result"]
        found.append(len(page["resources"]))
        cursor = {"cursor": page.get("nextCursor")}

    assert [100, 100, 50] == found


@pytest.mark.slow
def test_forty_synchronous_functions_run_at_once(victims: Victims) -> None:
    stdio = victims.stdio()
    with victims.watch(stdio) as seen:
        for number in range(1, 121):
            stdio.call(number, "drowse", seconds=0.5)
        found = {each["id"] for each in stdio.answers(120)}

    assert {*range(1, 121)} == found
    assert seen.threads <= 56


@pytest.mark.slow
def test_a_request_state_carries_answers_of_a_mebibyte_at_most(victims: Victims) -> None:
    stdio = victims.stdio(keys=["k" * 32])
    stdio.write(call("ask_again", meta=ELICITATION, params=f',"requestState":"{"A" * 2 * MIB}"') + b"\n")

    assert -32602 == stdio.receive()["error"]["code"]


def test_a_key_of_less_than_32_bytes_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, *command({"keys": ["k" * 31]}, SERVER)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
    )

    assert 1 == done.returncode
    assert "32 bytes" in done.stderr
