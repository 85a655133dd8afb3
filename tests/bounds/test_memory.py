"""Messages that make a server hold much more than it should: each is refused or bounded, and says by which limit."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.attacked_processes import MIB, names_a_limit
from tests.bounds.hostile_messages import DEEP, ELICITATION, LARGE, TEXT, batch, call, initialize
from tests.bounds.raw_sessions import joined, post_all, stateless, streamed, whole
from tests.faults.http_raw_client import message, posted
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims
    from tests.faults.http_raw_client import Line, Reply

pytestmark = pytest.mark.slow

PARKED = {
    "a member beside params": {"beside": f',"x":"{TEXT}"'},
    "an id": {"identity": f'"{TEXT}"'},
    "a member of params": {"params": f',"x":"{TEXT}"'},
    "a member of _meta": {"meta": f'{ELICITATION},"x":"{TEXT}"'},
}


def refusals(replies: list[Reply]) -> list[str]:
    """Return the errors among *replies*."""
    return [json.dumps(each.json["error"]) for each in replies if each.body and "error" in each.json]


INITIALIZE = {
    "deep capabilities": {"capabilities": f'{{"experimental":{{"x":{{"y":{DEEP}}}}}}}'},
    "long capabilities": {"capabilities": f'{{"experimental":{{"x":{{"y":"{TEXT}"}}}}}}'},
    "deep clientInfo": {"name": f'"c","x":{DEEP}'},
    "a long name": {"name": f'"{TEXT}"'},
    "a deep member beside": {"beside": f',"x":{DEEP}'},
    "a deep _meta": {"beside": f',"_meta":{{"x":{DEEP}}}'},
}


@pytest.mark.parametrize("what", INITIALIZE)
def test_a_session_keeps_nothing_large_of_initialize(victims: Victims, what: str) -> None:
    http = victims.http()
    with victims.watch(http) as seen:
        replies = [http.ask(posted(initialize("2025-11-25", **INITIALIZE[what]))) for _ in range(10)]

    assert 10 == len([each for each in refusals(replies) if names_a_limit(each)])
    assert seen.grown < 128 * MIB
    assert seen.kept < 32 * MIB
    assert [] == seen.losses


def test_the_server_does_not_remember_large_capabilities_of_stateless_requests(victims: Victims) -> None:
    meta = f'"io.modelcontextprotocol/clientCapabilities":{{"experimental":{{"x":{{"y":{DEEP}}}}}}}'
    http = victims.http()
    with victims.watch(http) as seen:
        replies = [http.ask(stateless(call("echo", meta=meta))) for _ in range(10)]

    assert 10 == len([each for each in refusals(replies) if names_a_limit(each)])
    assert seen.grown < 128 * MIB
    assert seen.kept < 32 * MIB


@pytest.mark.parametrize("where", PARKED)
def test_calls_that_are_parked_over_http_keep_16_mib_at_most(victims: Victims, where: str) -> None:
    http = victims.http()
    request = {"meta": ELICITATION, **PARKED[where]}
    with victims.watch(http) as seen:
        replies = [http.ask(stateless(call("ask", **request))) for _ in range(100)]

    parked = [each for each in replies if b"input_required" in each.body]
    refused = [each for each in replies if each not in parked]
    assert len(parked) * (LARGE if where != "a member beside params" else 0) <= 16 * MIB
    assert all(names_a_limit(each.body) for each in refused)
    assert seen.grown < 128 * MIB
    assert seen.kept < 64 * MIB
    assert [] == seen.losses


@pytest.mark.parametrize("where", PARKED)
@pytest.mark.parametrize("tool", ["ask", "wait"])
def test_pending_calls_on_stdio_keep_256_mib_at_most(victims: Victims, tool: str, where: str) -> None:
    stdio = victims.stdio()
    given: dict[str, Any] = {"meta": ELICITATION, **PARKED[where]}
    with victims.watch(stdio) as seen:
        for number in range(100):
            identity = f'"{number}{TEXT}"' if where == "an id" else f"{number}"
            stdio.write(call(tool, **{**given, "identity": identity}) + b"\n")
        stdio.call(1000, "echo", text="there")
        while (reply := stdio.receive())["id"] != 1000:
            assert "result" in reply or names_a_limit(reply["error"]), reply["error"]

    assert seen.peak_bytes < 256 * MIB


def test_what_functions_leave_in_cycles_on_stdio_is_collected_by_its_bytes(victims: Victims) -> None:
    stdio = victims.stdio()
    with victims.watch(stdio) as seen:
        for number in range(100):
            stdio.call(number, "keep_failure", text=TEXT)
            assert "result" in stdio.receive()

    assert seen.grown < 64 * MIB


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_functions_leave_in_cycles_over_http_is_collected_by_its_bytes(victims: Victims, revision: str) -> None:
    http = victims.http()
    line, own, _ = joined(http)
    body = call("keep_failure", f'{{"text":"{TEXT}"}}', revision=revision)
    request = posted(body, *own) if revision == "2025-11-25" else stateless(body, name="keep_failure")
    with victims.watch(http) as seen:
        for _ in range(100):
            line.send(request)
            assert 200 == line.reply().status

    assert seen.grown < 128 * MIB


def joined_in_time(http: Http) -> tuple[Line, tuple[str, ...], str]:
    """Start a session; try again while the bodies that are being read fill the share of the client."""
    line, deadline = http.line(), time.monotonic() + PATIENCE_SECONDS
    while True:
        line.send(posted(initialize("2025-11-25")))
        found = line.reply()
        if found.status == 200:
            return line, (f"Mcp-Session-Id: {found.headers['mcp-session-id']}",), "/mcp"
        assert found.status == 503
        assert time.monotonic() < deadline, "the server refuses the client for good"


@pytest.mark.parametrize("transport", ["/mcp", "/sse"])
def test_large_calls_in_sessions_whose_clients_hung_up_stay_counted(victims: Victims, transport: str) -> None:
    http = victims.http()
    body = call("wait", f'{{"text":"{TEXT}"}}', revision="2025-11-25")
    with victims.watch(http) as seen:
        lines, replies = [], []
        for _ in range(16):
            line, own, target = joined_in_time(http) if transport == "/mcp" else streamed(http)
            lines.append(line)
            if transport == "/sse":
                replies += post_all(http, [posted(body, *own, target=target)] * 16)
                continue
            for number in range(16):
                http.abandon(posted(body.replace(b'"id":1', b'"id":%d' % number), *own, target=target))
        alive = http.alive()

    assert alive * LARGE <= 256 * MIB
    assert all(names_a_limit(each) for each in refusals(replies))
    assert seen.peak_bytes < 1024 * MIB
    assert [] == seen.losses


@pytest.mark.parametrize("transport", ["/mcp", "/sse"])
def test_small_calls_in_sessions_whose_clients_hung_up_stay_counted(victims: Victims, transport: str) -> None:
    http = victims.http()
    calls = batch(1000, "tools/call", '{"name":"wait","arguments":{}}')
    with victims.watch(http) as seen:
        lines = []
        for _ in range(15):
            line, own, target = joined(http, "2025-03-26") if transport == "/mcp" else streamed(http)
            lines.append(line)
            if transport == "/sse":
                singles = [posted(message("tools/call", n, name="wait"), *own, target=target) for n in range(4096)]
                post_all(http, singles)
                continue
            for number in range(4):
                http.abandon(posted(re.sub(rb'"id":', b'"id":%d' % (number + 1), calls), *own, target=target))
        alive = http.alive()
        victims.note(alive=alive)

    assert alive <= 10_000
    assert seen.peak_bytes < 1024 * MIB
    assert [] == seen.losses


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_response_to_a_batch_of_large_results_is_bounded(victims: Victims, transport: str) -> None:
    reads = batch(1000, "resources/read", f'{{"uri":"big://{MIB // 4}"}}')
    if transport == "http":
        http = victims.http()
        line, own, _ = joined(http, "2025-03-26")
        with victims.watch(http) as seen:
            said = whole(line, posted(reads, *own, "Connection: close"))
    else:
        stdio = victims.stdio("2025-03-26")
        with victims.watch(stdio) as seen:
            stdio.write(reads + b"\n")
            said = stdio.line()

    errors = re.findall(rb'"error":\{[^}]*\}', said)
    assert errors, "nothing was refused"
    assert all(names_a_limit(each.decode()) for each in errors)
    assert seen.grown < 128 * MIB


def test_a_session_subscribes_to_no_large_uris(victims: Victims) -> None:
    http = victims.http()
    line, own, _ = joined(http)
    with victims.watch(http) as seen:
        replies = []
        for number in range(60):
            line.send(posted(message("resources/subscribe", number, uri=f"note://{number}{TEXT}"), *own))
            replies.append(line.reply())

    assert 60 == len([each for each in refusals(replies) if names_a_limit(each)])
    assert seen.kept < 32 * MIB


def test_a_subscription_stream_names_no_large_uris(victims: Victims) -> None:
    http = victims.http()
    params = f',"notifications":{{"resourceSubscriptions":["note://{TEXT}"]}}'
    body = call("x", params=params).replace(b"tools/call", b"subscriptions/listen")
    with victims.watch(http) as seen:
        replies = []
        for _ in range(60):
            line = http.line()
            line.send(stateless(body, "subscriptions/listen", None))
            replies.append(line.head())

    assert all("event-stream" not in each.headers.get("content-type", "") for each in replies), "no stream is opened"
    assert seen.kept < 64 * MIB


def test_messages_for_sessions_without_a_stream_are_bounded_in_bytes(victims: Victims) -> None:
    # Without a stream, up to 100 messages are kept for each session, and the client chooses the length of a URI.
    uri = "note://" + "u" * 8000
    http = victims.http()
    sessions = [joined(http) for _ in range(100)]
    for line, own, _ in sessions:
        line.send(posted(message("resources/subscribe", 1, uri=uri), *own))
        line.reply()
    with victims.watch(http) as seen:
        http.call("change", count=1000, uri=uri)

    assert seen.kept < 64 * MIB


def test_one_session_without_a_stream_keeps_little(victims: Victims) -> None:
    http = victims.http()
    line, own, _ = joined(http)
    uri = f"note://{TEXT[: LARGE // 2]}"
    line.send(posted(message("resources/subscribe", 1, uri=uri), *own))
    subscribed = line.reply().json
    with victims.watch(http) as seen:
        for number in range(100):
            line.send(posted(message("tools/call", number, name="change", arguments={"count": 1, "uri": uri}), *own))
            line.reply()

    assert "error" in subscribed or seen.kept < 16 * MIB
    assert seen.grown < 64 * MIB
