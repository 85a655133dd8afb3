"""Servers that say too much: a client stays of use, and neither its memory nor its log fills."""

from __future__ import annotations

import logging
import os
import signal
import tracemalloc
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from msgspec import structs

from mcpgen import ClientLimits, RequestTimedOut, TransportClosed
from mcpgen.runtime.protocol.newest import models
from tests.faults.hostile_server_clients import LIMITS, NEW, OLD, Stopwatch, attacked, pids, words
from tests.harness import child_programs
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

MEGABYTE = 1 << 20


@pytest.fixture
def few_lines(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """See that the log is not flooded."""
    caplog.set_level(logging.INFO)
    yield

    assert len(caplog.get_records("call")) <= 30
    assert all(len(each.getMessage()) < 2000 for each in caplog.get_records("call"))
    assert [] == [each for each in caplog.get_records("call") if each.exc_info]


def notice(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


META = {"io.modelcontextprotocol/subscriptionId": 4711}
NOTICES: dict[str, Any] = {
    "a log entry": notice("notifications/message", level="info", data="x"),
    "a log entry of no level": notice("notifications/message", level="loud", data="x"),
    "progress of nothing": notice("notifications/progress", progressToken=99, progress=1),
    "progress without a token": notice("notifications/progress", progress=1),
    "progress under a fraction": notice("notifications/progress", progressToken=1.5, progress=1),
    "progress under a list": notice("notifications/progress", progressToken=[1], progress=1),
    "other tools": notice("notifications/tools/list_changed"),
    "other prompts": notice("notifications/prompts/list_changed"),
    "other resources": notice("notifications/resources/list_changed"),
    "another resource": notice("notifications/resources/updated", uri="mem://x"),
    "another resource without a name": notice("notifications/resources/updated"),
    "a change on a stream of nobody": notice("notifications/tools/list_changed", _meta=META),
    "a stream of nobody": notice("notifications/subscriptions/acknowledged", notifications={}, _meta=META),
    "a stream of nobody again": notice("notifications/subscriptions/acknowledged"),
    "a cancellation of nothing": notice("notifications/cancelled", requestId=4711),
    "a cancellation of text": notice("notifications/cancelled", requestId="x", reason="y"),
    "a cancellation without an id": notice("notifications/cancelled"),
    "a cancellation of a list": notice("notifications/cancelled", requestId=[]),
    "a page that was visited": notice("notifications/elicitation/complete", elicitationId="x"),
    "a task": notice("notifications/tasks/status", taskId="x", status="working"),
    "what is unknown": notice("notifications/unheard/of", x=1),
    "what has no name": notice("", x=1),
    "what only a client says": notice("notifications/initialized"),
    "a name of 10 KB": notice("x" * 10_000),
    "terminal codes": notice("\x1b[2J\x07"),
    "a request that is a notification": notice("tools/call", name="x"),
    "an answer to nothing": {"jsonrpc": "2.0", "id": 4711, "result": {}},
    "an error about nothing": {"jsonrpc": "2.0", "id": 4711, "error": {"code": 1, "message": "x"}},
    "an error about nobody knows what": {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
}


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("kind", NOTICES)
@pytest.mark.slow
async def test_a_flood_of_notifications_delays_an_answer_and_no_more(kind: str, revision: str) -> None:
    count = 300 if kind == "a name of 10 KB" else 5000
    code = f"""
    greet()
    flood = json.dumps({NOTICES[kind]!r}).encode() + b"\\n"
    put(flood * {count})
    call = asked()
    put(flood * {count})
    text(call, "ok")
    put(flood * {count})
    serve()
    """
    limits = structs.replace(LIMITS, call_seconds=PATIENCE_SECONDS)
    async with attacked(code, revision, log=print_nothing, roots=[], limits=limits) as client:
        assert "ok" == words(await client.call_tool("x"))
        assert "ok" == words(await client.call_tool("x"))


def print_nothing(params: object, context: object) -> None:
    del params, context


@pytest.mark.usefixtures("few_lines")
async def test_log_entries_are_handled_one_after_the_other_however_many_there_are() -> None:
    running, most, gate = 0, 0, anyio.Event()

    async def log(params: object, context: object) -> None:
        nonlocal running, most
        del params, context
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    code = "greet()\nfor _ in range(5000):\n    tell('notifications/message', level='info', data=1)\nserve()"
    async with attacked(code, log=log) as client:
        await client.call_tool("x")
        gate.set()

    assert 1 == most


@pytest.mark.slow
@pytest.mark.usefixtures("few_lines")
async def test_progress_that_nobody_takes_up_leaves_the_newest() -> None:
    code = """
    greet()
    call = asked()
    token = call["params"]["_meta"]["progressToken"]
    flood = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}}
             for n in range(10_000)]
    say(*flood)
    text(call, "ok")
    ignore_all()
    """
    told = []
    async with attacked(code) as client:

        async def slow(progress: float, *_: object) -> None:
            told.append(progress)
            await anyio.sleep(0.001)

        await client.call_tool("x", on_progress=slow)

    assert 9999 == told[-1]
    assert sorted(told) == told
    assert len(told) <= 1000


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.slow
async def test_changes_that_nobody_takes_up_do_not_pile_up(revision: str) -> None:
    code = """
    revision = greet()
    while True:
        first = asked()
        meta = {"io.modelcontextprotocol/subscriptionId": first["id"]}
        if first["method"] == "subscriptions/listen":
            honoured = {"resourceSubscriptions": ["mem://x"]}
            tell("notifications/subscriptions/acknowledged", notifications=honoured, _meta=meta)
        else:
            answer(first, {})
        if first["method"] != "tools/call":
            break
    for n in range(20_000):
        tell("notifications/resources/updated", uri=f"mem://x/{n}", _meta=meta)
    serve()
    """
    async with attacked(code, revision) as client, client.listen(uris=["mem://x"]) as changes:
        await client.call_tool("x")
        for number in range(1000):
            assert f"mem://x/{number}" == (await anext(changes)).uri
        with anyio.move_on_after(0.1) as scope:
            await anext(changes)

        assert scope.cancelled_caught  # there are no more than the limit says


async def test_equal_changes_that_wait_are_one() -> None:
    code = """
    greet()
    for _ in range(1000):
        tell("notifications/tools/list_changed")
    serve()
    """
    async with attacked(code) as client, client.listen(tools=True) as changes:
        await client.call_tool("x")
        assert "tools" == (await anext(changes)).kind
        with anyio.move_on_after(0.1) as scope:
            await anext(changes)

        assert scope.cancelled_caught


# --- requests


@pytest.mark.usefixtures("few_lines")
async def test_requests_above_the_limit_are_refused_and_those_below_answered() -> None:
    gate, running, most = anyio.Event(), 0, 0

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        nonlocal running, most
        del params, context
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return models.CreateMessageResult(role="assistant", content=models.TextContent(text="x"), model="m")

    code = """
    greet()
    call = asked()
    for n in range(150):
        ask(n, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    refused = [hear() for _ in range(50)]
    text(call, all("error" in each and each["id"] >= 100 for each in refused))
    call = asked()
    met = [hear() for _ in range(100)]
    text(call, all("result" in each and each["id"] < 100 for each in met))
    serve()
    """
    async with attacked(code, sample=sample) as client:
        assert "True" == words(await client.call_tool("x"))
        gate.set()
        assert "True" == words(await client.call_tool("x"))
        assert "ok" == words(await client.call_tool("x"))

    assert 100 == most


FLOODS = {
    "pings": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    "unknown requests": {"jsonrpc": "2.0", "id": 1, "method": "what/ever"},
    "requests that were not declared": {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}},
    "requests with a long id": {"jsonrpc": "2.0", "id": "x" * 100_000, "method": "ping"},
    "what is asked of servers": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}},
}


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("revision", ["2025-03-26", OLD, NEW])
@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.slow
async def test_a_server_that_asks_and_does_not_read_the_answers_does_not_fill_our_memory(
    kind: str, revision: str
) -> None:
    code = f"""
    greet()
    flood = json.dumps({FLOODS[kind]!r}).encode() + b"\\n"
    put(flood * ({2 * MEGABYTE} // len(flood)))
    os.write(2, str(os.getpid()).encode())
    forever()
    """
    most = MEGABYTE // 4
    limits = ClientLimits(max_buffered_bytes=most)
    async with attacked(code, revision, limits=limits) as client:
        pump = client._engine.connection.channel._pump  # type: ignore[attr-defined]  # knows how much waits to be written
        await child_programs.until(lambda: client.stderr)
        if revision != NEW:  # where nothing is asked, and so nothing answered
            await child_programs.until(lambda: pump._size >= most)

        assert pump._size < 3 * most
        os.kill(next(pids(client.stderr)), signal.SIGKILL)  # closing would wait for it to read


@pytest.mark.usefixtures("few_lines")
async def test_a_batch_of_requests_is_bounded_too() -> None:
    code = """
    greet()
    batch = [{"jsonrpc": "2.0", "id": n, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
             for n in range(1000)]
    call = asked()
    say(batch)
    found = hear()
    text(call, sorted({("error" if "error" in each else "result") for each in found}) + [len(found)])
    ignore_all()
    """

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        del params, context
        await anyio.sleep(0.01)
        return models.CreateMessageResult(role="assistant", content=models.TextContent(text="x"), model="m")

    async with attacked(code, "2025-03-26", sample=sample) as client:
        assert "['error', 'result', 1000]" == words(await client.call_tool("x"))


# --- before anything is agreed


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.slow
async def test_a_server_that_talks_before_it_answers_does_not_fill_our_memory(revision: str | None) -> None:
    code = """
    flood = json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": "info", "data": "x" * 1_000_000}}).encode() + b"\\n"
    for _ in range(120):
        put(flood)
    greet()
    serve()
    """
    tracemalloc.start()
    try:
        async with attacked(code, revision) as client:
            assert "ok" == words(await client.call_tool("x"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 64 * MEGABYTE


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("kind", ["pings", "unknown requests"])
async def test_requests_before_anything_is_agreed_are_answered_and_wait_for_nobody(kind: str) -> None:
    code = f"""
    flood = json.dumps({FLOODS[kind]!r}).encode() + b"\\n"
    put(flood * 1000)
    greet()
    serve()
    """
    async with attacked(code) as client:
        assert "ok" == words(await client.call_tool("x"))


# --- standard error


async def test_a_flood_of_errors_is_read_and_only_the_last_is_kept() -> None:
    lines = []
    code = """
    greet()
    call = asked()
    for n in range(20_000):
        os.write(2, b"line %d " % n + b"x" * 100 + b"\\n")
    text(call, "ok")
    os.write(2, b"last")
    serve()
    """
    async with attacked(code) as client:
        assert "ok" == words(await client.call_tool("x"))
        await child_programs.until(lambda: client.stderr.endswith("last"))
        lines = client.stderr.splitlines()

        assert LIMITS.max_stderr_bytes - 4 <= len(client.stderr) <= LIMITS.max_stderr_bytes
        assert lines[-2].startswith("line 19999")


async def test_one_endless_line_of_errors_is_told_in_pieces() -> None:
    told: list[str] = []
    code = "greet()\nos.write(2, b'')\nfor _ in range(100):\n    os.write(2, b'x' * 10_000)\nserve()"
    from mcpgen import connect
    from tests.faults.hostile_server_clients import villain

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(villain(code, on_stderr=told.append), revisions=[OLD], limits=LIMITS) as client:
            await client.call_tool("x")
            await child_programs.until(lambda: sum(map(len, told)) >= 900_000)

    assert 1_000_000 == sum(map(len, told))
    assert max(map(len, told)) <= 16 * 1024


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, anyio.EndOfStream])
async def test_a_function_for_errors_that_fails_costs_nothing(kind: type[BaseException]) -> None:
    if kind in (SystemExit, KeyboardInterrupt):
        pytest.skip("these are for the whole process, wherever they come up")
    from mcpgen import connect
    from tests.faults.hostile_server_clients import villain

    def fail(line: str) -> None:
        raise kind(line)

    code = "greet()\nos.write(2, b'x\\n' * 100)\nserve()"
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(villain(code, on_stderr=fail), revisions=[OLD], limits=LIMITS) as client:
            assert "ok" == words(await client.call_tool("x"))


@pytest.mark.slow
async def test_a_server_that_floods_both_outputs_and_reads_nothing_is_closed_in_time() -> None:
    code = """
    greet()
    if os.fork():
        while True:
            put(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n' * 100)
    while True:
        os.write(2, b"noise\\n" * 100)
    """
    limits = ClientLimits(stdin_seconds=0.2, term_seconds=0.2)
    async with attacked(code, limits=limits) as client:
        with pytest.raises((RequestTimedOut, TransportClosed)):
            await client.call_tool("x", timeout_seconds=0.3)
        with Stopwatch() as watch:
            await client.close()

    assert watch.seconds < BUSY_SECONDS
