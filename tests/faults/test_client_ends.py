"""Servers that end when they should not, or do not when they should; that are deaf, stopped or killed."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from mcpgen import ClientLimits, McpgenError, connect
from mcpgen.runtime.errors import MalformedFrame, RequestTimedOut, TransportClosed
from mcpgen.runtime.transports.errors import ServerExited
from tests.faults.hostile_server_clients import (
    BUSY_SECONDS,
    LIMITS,
    NEW,
    OLD,
    PATIENCE_SECONDS,
    PATIENT,
    Stopwatch,
    attacked,
    pids,
    villain,
    words,
)
from tests.harness import child_programs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

# --- between request and answer


WHILE_CALLED = {
    "exits": ("os._exit(7)", 7),
    "exits with 0": ("os._exit(0)", 0),
    "exits in the middle of the answer": ('put(b\'{"jsonrpc":"2.0","id":2,"resu\')\nos._exit(7)', 7),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "closes its output": ("os.close(1)\nignore_all()", None),
    "closes its output and does not read": ("os.close(1)\nforever()", None),
    "becomes another program": ("os.execv('/bin/sh', ['sh', '-c', 'exit 9'])", 9),
    "forks, and the parent ends": ("if os.fork():\n    os._exit(7)\nos.close(1)\nignore_all()", 7),
    "forks, and the child holds all": ("if os.fork():\n    os._exit(7)\nforever()", 7),
}


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("how", WHILE_CALLED)
@pytest.mark.slow
async def test_whoever_waits_is_told_how_the_server_has_ended(how: str, revision: str) -> None:
    code, status = WHILE_CALLED[how]
    with Stopwatch() as watch:
        async with attacked(f"greet()\nasked()\nos.write(2, b'so long')\n{code}", revision, limits=PATIENT) as client:
            with pytest.raises((ServerExited, MalformedFrame)) as caught:
                await client.call_tool("x")
            with pytest.raises(ServerExited) as again:
                await client.call_tool("x")

    assert caught.value is not again.value
    assert (status, "so long") == (again.value.status, again.value.stderr)
    assert watch.seconds < 0.5 + 0.5 + 0.4 + BUSY_SECONDS


async def test_an_answer_without_a_newline_before_the_end_is_still_an_answer() -> None:
    code = "greet()\nput(json.dumps(result(TEXT)(asked())).encode())\nos._exit(0)"
    async with attacked(code) as client:
        assert "ok" == words(await client.call_tool("x"))


async def test_what_was_answered_before_the_end_is_not_lost() -> None:
    code = """
    greet()
    calls = [asked() for _ in range(50)]
    for each in calls:
        text(each, "x" * 100_000)
    os._exit(1)
    """
    async with attacked(code) as client, anyio.create_task_group() as group:

        async def call() -> None:
            assert 100_000 == len(words(await client.call_tool("x")))

        for _ in range(50):
            group.start_soon(call)


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.slow
async def test_a_thousand_calls_each_get_an_error_of_their_own_when_the_server_is_killed(revision: str) -> None:
    code = "greet()\nfor _ in range(1000):\n    asked()\nos.write(2, b'bang')\nos.kill(os.getpid(), signal.SIGKILL)"
    failures: list[ServerExited] = []
    async with attacked(code, revision) as client:

        async def call() -> None:
            try:
                await client.call_tool("x")
            except ServerExited as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            for _ in range(1000):
                group.start_soon(call)

    assert 1000 == len({id(each) for each in failures})
    assert {(-9, "bang")} == {(each.status, each.stderr) for each in failures}
    assert all(each.__context__ is None or each.__suppress_context__ for each in failures)


async def test_after_the_end_everything_says_so_anew_and_closing_is_quick() -> None:
    async with attacked("greet()\nasked()\nos._exit(7)") as client:
        with pytest.raises(ServerExited):
            await client.call_tool("x")
        found = []
        for use in (client.ping, client.list_tools, client.roots_changed, lambda: client.set_log_level("info"),
                    lambda: client.request_json("x")):  # fmt: skip
            try:
                await use()
            except (ServerExited, McpgenError) as error:
                found.append(error)
        with pytest.raises(ServerExited):
            async with client.listen(tools=True):
                pass
        with Stopwatch() as watch:
            await client.close()

    assert 5 == len(set(map(id, found)))
    assert watch.seconds < BUSY_SECONDS


async def test_who_listens_is_told_that_the_server_has_ended() -> None:
    async with attacked("greet()\nasked('ping')\nos._exit(7)") as client, client.listen(tools=True) as changes:

        async def ping() -> None:
            with pytest.raises(ServerExited):
                await client.ping()

        async with anyio.create_task_group() as group:
            group.start_soon(ping)
            with pytest.raises(ServerExited):
                await anext(changes)


# --- at the end


STUBBORN = {
    "ignores the end of its input": ("forever()", 0.2),
    "ignores SIGTERM": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nforever()", 0.4),
    "ignores SIGTERM and is busy": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", 0.4),
    "ignores all signals": (
        (
            "for each in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:\n"
            "    try: signal.signal(each, signal.SIG_IGN)\n    except OSError: pass\nforever()"
        ),
        0.4,
    ),
    "is stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", 0.4),
    "goes on printing": ("while True: put(b'noise\\n' * 1000)", 0.2),
    "goes on printing and ignores SIGTERM": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: put(b'noise\\n' * 1000)",
        0.4,
    ),
    "goes on printing errors": ("while True: os.write(2, b'noise\\n' * 1000)", 0.2),
    "prints when told to end": ("on_term(lambda: put(b'x' * 1_000_000))\nforever()", 0.4),
    "becomes another program": ("os.execv('/bin/sleep', ['sleep', '1000'])", 0.2),
}


@pytest.mark.parametrize("how", STUBBORN)
@pytest.mark.slow
async def test_a_server_that_does_not_end_is_ended(how: str) -> None:
    code, seconds = STUBBORN[how]
    async with attacked(f"greet()\ntext(asked(), os.getpid())\n{code}", limits=PATIENT) as client:
        pid = int(words(await client.call_tool("x")))
        with Stopwatch() as watch:
            await client.close()

    assert not child_programs.is_there(pid)
    assert watch.seconds < seconds + BUSY_SECONDS


CHILDREN = {
    "that sleeps": "start('forever()')",
    "that ignores SIGTERM": "start('signal.signal(signal.SIGTERM, signal.SIG_IGN)\\nforever()')",
    "with a child": "start('start(\"forever()\")\\nforever()')",
    "with its streams closed": "start('forever()', stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)",
    "that prints for ever": "start('while True: put(b\"noise\\\\n\")')",
    "that reads our input": "start('ignore_all()')",
    "and nineteen more": "for _ in range(20): start('forever()')",
}


@pytest.mark.parametrize("ends", ["os._exit(0)", "ignore_all()", "forever()"])
@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.slow
async def test_what_a_server_has_started_ends_with_it(child: str, ends: str) -> None:
    code = f"greet()\n{CHILDREN[child]}\ntext(asked(), 'ok')\nasked('ping')\n{ends}"
    async with attacked(code, limits=PATIENT) as client:
        assert "ok" == words(await client.call_tool("x"))
        async with anyio.create_task_group() as group:

            async def ping() -> None:
                with pytest.raises(TransportClosed):
                    await client.ping()

            group.start_soon(ping)
            await anyio.sleep(0.05)
            with Stopwatch() as watch:
                await client.close()

    assert watch.seconds < 0.2 + 2 * 0.5 + BUSY_SECONDS


async def test_a_server_that_wants_to_write_before_it_ends_can(tmp_path: Path) -> None:
    # It ends by itself only if its output is read to the end.
    code = """
    greet()
    text(asked(), "ok")
    sys.stdin.read()
    put(b"x" * 3_000_000)
    with open(os.environ["NOTES"], "w") as notes:
        notes.write("done")
    """
    notes = tmp_path / "notes"
    with anyio.fail_after(PATIENCE_SECONDS):
        target = villain(code, environment={"NOTES": str(notes)})
        async with connect(target, revisions=[OLD], limits=ClientLimits(stdin_seconds=10)) as client:
            await client.call_tool("x")

    assert "done" == child_programs.read(notes)


# --- servers that do not read


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("stops", ["forever()", "os.kill(os.getpid(), signal.SIGSTOP)"])
@pytest.mark.slow
async def test_calls_of_a_server_that_does_not_read_time_out_and_closing_works(stops: str, revision: str) -> None:
    timed_out = []
    async with attacked(f"greet()\n{stops}", revision, limits=PATIENT) as client:

        async def call(number: int) -> None:
            try:
                await client.call_tool("x", {"text": "x" * 100_000}, timeout_seconds=0.3)
            except RequestTimedOut:
                timed_out.append(number)

        with Stopwatch() as calling:
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(call, number)
            with pytest.raises(RequestTimedOut):
                await client.call_tool("x", timeout_seconds=0.1)
        with Stopwatch() as closing:
            await client.close()

    assert 50 == len(timed_out)
    assert calling.seconds < 0.4 + BUSY_SECONDS
    assert closing.seconds < 0.5 + 0.4 + BUSY_SECONDS


async def test_who_waits_for_room_is_told_when_the_server_is_killed() -> None:
    failures = []
    async with attacked("greet()\nos.write(2, str(os.getpid()).encode())\nforever()", limits=PATIENT) as client:

        async def call() -> None:
            try:
                await client.call_tool("x", {"text": "x" * 200_000})
            except ServerExited as error:
                failures.append(error.status)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(call)
            await child_programs.until(lambda: client.stderr)
            await anyio.sleep(0.1)
            os.kill(next(pids(client.stderr)), signal.SIGKILL)

    assert [-signal.SIGKILL] * 20 == failures


@pytest.mark.slow
async def test_a_server_that_stops_for_a_while_loses_nothing() -> None:
    async with attacked("greet()\nos.write(2, str(os.getpid()).encode())\nserve()") as client:
        await client.call_tool("x")
        await child_programs.until(lambda: client.stderr)
        pid = next(pids(client.stderr))
        os.kill(pid, signal.SIGSTOP)
        async with anyio.create_task_group() as group:

            async def call() -> None:
                assert "ok" == words(await client.call_tool("x", {"text": "x" * 100_000}))

            for _ in range(30):
                group.start_soon(call)
            await anyio.sleep(0.2)
            os.kill(pid, signal.SIGCONT)


async def test_a_program_that_is_no_server_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "server.sh"
    program.write_text("#!/bin/sh\necho usage: server --stdio >&2\nexit 64\n", encoding="utf-8")
    program.chmod(0o755)
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(ServerExited) as caught:
        await connect([str(program)], limits=LIMITS)

    assert 64 == caught.value.status
    assert "usage: server --stdio" in str(caught.value)


async def test_cat_is_no_server() -> None:
    limits = ClientLimits(probe_seconds=0.2, connect_seconds=1)
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(McpgenError):
        await connect(["cat"], limits=limits)
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(ServerExited):
        await connect([sys.executable, "-c", "pass"])
