"""Requests that a server must refuse, or must not: states of others, clocks, heads, encodings and failures."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import McpgenError, connect
from tests.bounds.hostile_messages import ELICITATION, call
from tests.bounds.raw_sessions import joined, stateless
from tests.faults.http_raw_client import called, calling, head, message, mirrored, posted, request
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims

KEYS = ["k" * 32]


def asked(http: Http, tool: str) -> dict[str, Any]:
    """Call a tool that asks, and return its demand."""
    found: dict[str, Any] = http.ask(stateless(call(tool, meta=ELICITATION))).json["result"]
    assert "input_required" == found["resultType"]
    return found


def retried(http: Http, tool: str, demand: dict[str, Any]) -> dict[str, Any]:
    """Answer a demand, and return the response."""
    answers = {each: {"action": "accept", "content": {"name": "Ann"}} for each in demand["inputRequests"]}
    params = f',"requestState":"{demand["requestState"]}","inputResponses":{json.dumps(answers)}'
    found: dict[str, Any] = http.ask(stateless(call(tool, meta=ELICITATION, params=params))).json
    return found


@pytest.mark.slow
def test_a_state_that_another_server_sealed_is_refused_though_they_share_keys(victims: Victims) -> None:
    one, other = victims.http(name="one", keys=KEYS), victims.http(name="other", keys=KEYS)
    demand = asked(one, "ask_again")

    assert -32602 == retried(other, "ask_again", demand)["error"]["code"]
    assert "accept" == retried(one, "ask_again", demand)["result"]["content"][0]["text"]


@pytest.mark.slow
def test_another_worker_of_the_same_server_accepts_the_state(victims: Victims) -> None:
    workers = [victims.http(keys=KEYS) for _ in range(2)]
    demand = asked(workers[0], "ask_again")

    assert "accept" == retried(workers[1], "ask_again", demand)["result"]["content"][0]["text"]


@pytest.mark.slow
def test_the_reason_is_true_if_another_worker_holds_the_handler(victims: Victims) -> None:
    workers = [victims.http(keys=KEYS) for _ in range(2)]
    demand = asked(workers[0], "ask")
    error = retried(workers[1], "ask", demand)["error"]

    assert -32602 == error["code"]
    assert "expired" not in error["message"]
    assert "accept" == retried(workers[0], "ask", demand)["result"]["content"][0]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_live_handler_does_not_expire_by_a_jump_of_the_wall_clock(victims: Victims, seconds: int) -> None:
    http = victims.http()
    demand = asked(http, "ask")
    http.call("jump", seconds=seconds)

    assert "accept" == retried(http, "ask", demand)["result"]["content"][0]["text"]


@pytest.mark.parametrize("kind", ["one header", "many headers", "target"])
@pytest.mark.parametrize("is_at_once", [True, False], ids=["in one read", "in pieces"])
@pytest.mark.slow
def test_a_head_over_64_kib_gets_431(victims: Victims, kind: str, *, is_at_once: bool) -> None:
    http = victims.http()
    body = request(1, "tools/call", {"name": "echo"})
    lines = {
        "one header": ["X: " + "a" * 70_000],
        "many headers": [f"X-{each}: {'a' * 60}" for each in range(1000)],
        "target": [],
    }[kind]
    own = mirrored("tools/call", "echo")
    data = posted(body, *own, *lines, target="/mcp?" + "a" * 70_000 if kind == "target" else "/mcp")
    line = http.line()
    size = len(data) if is_at_once else 1000
    try:
        for begin in range(0, len(data), size):
            line.send(data[begin : begin + size])
            time.sleep(0 if is_at_once else 0.005)  # so that the server reads each on its own
    except ConnectionError:
        assert not is_at_once  # refused before all was sent

    assert line.reply().status in ((431, 414) if kind == "target" else (431,))


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, identity"])
@pytest.mark.slow
def test_a_content_encoding_gets_415(victims: Victims, encoding: str) -> None:
    http = victims.http()
    data = called("echo").replace(b"\r\n\r\n", f"\r\nContent-Encoding: {encoding}\r\n\r\n".encode(), 1)
    plain = called("echo").replace(b"\r\n\r\n", b"\r\nContent-Encoding: identity\r\n\r\n", 1)
    refused = http.ask(data)

    assert 415 == refused.status
    assert "error" in refused.json
    assert 200 == http.ask(plain).status


@pytest.mark.parametrize("when", ["at once", "later", "from a future"])
@pytest.mark.parametrize("era", ["stateless", "session", "stdio"])
@pytest.mark.slow
def test_a_tool_that_raises_generator_exit_gets_an_error_response(victims: Victims, era: str, when: str) -> None:
    if era == "stdio":
        stdio = victims.stdio()
        stdio.call(1, "throw", what="GeneratorExit", when=when)
        said = stdio.receive()
    else:
        http = victims.http()
        own: tuple[str, ...] = joined(http)[1] if era == "session" else ()
        data = (
            posted(calling("throw", what="GeneratorExit", when=when), *own)
            if own
            else called("throw", what="GeneratorExit", when=when)
        )
        reply = http.ask(data)
        assert 200 == reply.status
        said = reply.json

    assert 1 == said["id"]
    assert "error" in said or said["result"]["isError"]
    assert "hunter2" not in json.dumps(said)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_waiting_calls_fail_if_the_server_of_their_session_is_gone_for_good(victims: Victims) -> None:
    http = victims.http()
    failures: list[McpgenError] = []

    async def wait() -> None:
        try:
            await client.call_tool("wait", {})
        except McpgenError as error:
            failures.append(error)

    with anyio.fail_after(2 * PATIENCE_SECONDS):
        async with connect(f"http://127.0.0.1:{http.port}/mcp", revisions=["2025-11-25"]) as client:
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(wait)
                while await anyio.to_thread.run_sync(http.alive) < 3:  # noqa: ASYNC110 (of another process)
                    await anyio.sleep(0.05)
                await anyio.sleep(1.5)  # the answers are streams now, which a client resumes
                begin = time.monotonic()
                http.kill()
            victims.note(**{"seconds until calls fail": round(time.monotonic() - begin, 2)})

    assert 3 == len(failures)


@pytest.mark.slow
def test_a_session_of_the_server_that_is_gone_is_unknown_to_the_next(victims: Victims) -> None:
    first, second = victims.http(), victims.http()
    _, own, _ = joined(first)

    assert 404 == second.ask(posted(message("ping", 1), *own)).status
    assert 404 == second.ask(head("DELETE", "/mcp", *own)).status
