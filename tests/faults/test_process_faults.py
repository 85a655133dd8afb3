"""Faults around a child process: others wait for it, its system is old, its client is cancelled or interrupted."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports import child_process as transport_children
from mcpgen.runtime.transports.errors import ServerExited
from tests.harness import child_programs
from tests.harness.child_programs import (
    BUSY_SECONDS,
    LIMITS,
    is_alive,
    is_there,
    process,
    read,
    server,
    talking,
    tell,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux which processes there are"),
    pytest.mark.slow,
]

PIDS = "say(os.getpid())\nsys.stdin.read()"
STUBBORN = "on_term(int)\nsay(os.getpid())\nforever()"
FAMILY = f"start({STUBBORN!r})\n{STUBBORN}"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Generator[None]:
    yield
    left = child_programs.clear()

    assert [] == left
    assert [] == child_programs.own_zombies()


# --- systems


def no_group_signals(pidfd: int, number: int, info: object = None, flags: int = 0) -> None:
    del pidfd, number, info, flags
    raise OSError(errno.EINVAL, "as before Linux 6.9")


def without_group_signals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(signal, "pidfd_send_signal", no_group_signals)


def without_pidfd(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transport_children, "_open_pidfd", lambda _: None)


def without_proc(patch: pytest.MonkeyPatch) -> None:
    without_pidfd(patch)
    patch.setattr(os, "readlink", lambda _: "self")


def without_waitid(patch: pytest.MonkeyPatch) -> None:
    without_pidfd(patch)
    patch.delattr(os, "waitid")


OLDER = [without_group_signals, without_pidfd, without_proc]


@pytest.fixture(params=[*OLDER, without_waitid], ids=lambda each: each.__name__)
def older(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[pytest.MonkeyPatch], None]:
    make: Callable[[pytest.MonkeyPatch], None] = request.param
    make(monkeypatch)
    return make


@pytest.mark.usefixtures("older")
async def test_older_systems_notice_an_end_soon_and_report_it() -> None:
    async with talking(process(server("os.write(2, b'so long')\nsay(1)\nstart('forever()')\nos._exit(3)"))) as talk:
        begin = time.monotonic()
        await talk.over.wait()
        ended = await talk.channel.close_reason()

        assert time.monotonic() - begin < BUSY_SECONDS
        assert isinstance(ended, ServerExited)
        assert (3, "so long") == (ended.status, ended.stderr)


@pytest.mark.usefixtures("older")
async def test_older_systems_end_a_server_that_ends_with_its_input_at_once() -> None:
    pid, took = await tell(process(server(PIDS)), ClientLimits())

    assert not is_there(pid)
    assert took < 0.5 + BUSY_SECONDS


@pytest.mark.usefixtures("older")
async def test_older_systems_kill_a_whole_stubborn_group() -> None:
    async with talking(process(server(FAMILY))) as talk:
        pids = await talk.listener.messages(2)

    await until(lambda: not any(map(is_alive, pids)))  # where nobody can be asked who is left, they may take a moment


@pytest.mark.parametrize("ends", ["sys.stdin.read()", "forever()"])
@pytest.mark.parametrize("make", OLDER, ids=lambda each: each.__name__)
async def test_the_group_gets_signals_only_while_nobody_has_waited_for_its_leader(
    ends: str, make: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(monkeypatch)
    killpg, sent = os.killpg, []

    def note(group: int, number: int) -> None:
        os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises if it is not there any more
        sent.append((group, number))
        killpg(group, number)

    monkeypatch.setattr(os, "killpg", note)
    async with talking(process(server(f"start({STUBBORN!r})\non_term(int)\nsay(os.getpid())\n{ends}"))) as talk:
        pids = await talk.listener.messages(2)
    ((group, *_), *_) = sent

    assert group in pids
    assert {(group, signal.SIGTERM), (group, signal.SIGKILL)} == {each for each in sent if each[1]}
    assert not is_there(group)
    await until(lambda: not child_programs.marked())


# --- others who wait for our child


@pytest.mark.parametrize("make", [None, *OLDER], ids=lambda each: each.__name__ if each else "new")
async def test_the_status_of_a_server_that_somebody_else_waited_for_is_unknown(
    make: Callable[[pytest.MonkeyPatch], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make is not None:
        make(monkeypatch)
    sent: list[int] = []
    async with talking(process(server("say(os.getpid())\nsys.stdin.readline()\nos._exit(3)"))) as talk:
        pid = await talk.hear()
        waiter = threading.Thread(target=os.waitpid, args=(pid, 0))
        waiter.start()
        talk.channel.write(b"1")
        await until(lambda: not waiter.is_alive())
        monkeypatch.setattr(os, "killpg", lambda *_: sent.append(1))
        await talk.over.wait()
        ended = await talk.channel.close_reason()

        assert isinstance(ended, ServerExited)
        assert ended.status in {None, 3}  # 3 if we saw it first
    assert [] == sent


@pytest.mark.parametrize("make", [without_group_signals, without_pidfd], ids=lambda each: each.__name__)
async def test_older_systems_send_nothing_to_a_number_that_somebody_else_gave_back(
    make: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(monkeypatch)
    child = transport_children.ChildProcess(server("os._exit(0)"), {"PREAMBLE": ""}, None)
    os.waitpid(child._popen.pid, 0)  # noqa: ASYNC222 (it takes no time)
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("it may be a stranger's"))
    child.terminate()
    child.kill()

    assert child.release()
    assert child.status is None


async def test_children_of_a_server_that_the_system_itself_waited_for_are_still_ended() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        async with talking(process(server(f"start({STUBBORN!r})\nsys.stdin.readline()\nos._exit(3)"))) as talk:
            pid = await talk.hear()
            talk.channel.write(b"1")
            await talk.over.wait()
            ended = await talk.channel.close_reason()

            assert isinstance(ended, ServerExited)
            assert ended.status is None
            assert is_alive(pid)

        assert not is_alive(pid)
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_our_own_other_children_are_left_to_who_started_them() -> None:
    with other_child() as other:
        await tell(process(server(PIDS)))

    assert 7 == other.returncode


def other_child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-ISc", "raise SystemExit(7)"])


# --- cancellation


async def test_a_cancellation_at_any_step_of_opening_leaves_nothing() -> None:
    before = child_programs.own_descriptors()
    for steps in range(12):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_after, steps, scope)
                async with process("cat").open(LIMITS):
                    await anyio.sleep_forever()

        assert before == child_programs.own_descriptors()
        assert [] == child_programs.marked()


async def cancel_after(steps: int, scope: anyio.CancelScope) -> None:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def test_a_scope_that_is_cancelled_already_leaves_nothing() -> None:
    before = child_programs.own_descriptors()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with process(server(PIDS)).open(LIMITS):
            await anyio.sleep_forever()

    assert before == child_programs.own_descriptors()


async def test_a_cancellation_while_it_runs_ends_a_stubborn_group() -> None:
    before = child_programs.own_descriptors()
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with talking(process(server(FAMILY))) as talk:
            pids = await talk.listener.messages(2)
            scope.cancel()
            await anyio.sleep_forever()

    assert before == child_programs.own_descriptors()
    assert not any(map(is_alive, pids))


async def test_a_cancellation_while_it_is_closed_does_not_cut_the_end_short(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    code = "on_term(lambda: (note('TERM'), os._exit(0)))\nsay(os.getpid())\nforever()"
    pid = 0
    begin = time.monotonic()
    with anyio.CancelScope() as scope:
        # It has time to end after SIGTERM, also on a busy machine.
        limits = ClientLimits(stdin_seconds=LIMITS.stdin_seconds, term_seconds=BUSY_SECONDS)
        async with talking(process(server(code), notes), limits) as talk:
            pid = await talk.hear()
            begin = time.monotonic()
            scope.deadline = anyio.current_time() + 0.05  # comes while its end is waited for

    assert scope.cancel_called
    assert "TERM\n" == read(notes)
    assert LIMITS.stdin_seconds <= time.monotonic() - begin < LIMITS.stdin_seconds + BUSY_SECONDS
    assert not is_there(pid)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_task_that_is_cancelled_again_and_again_still_leaves_nothing() -> None:
    before = child_programs.own_descriptors()
    said: list[Any] = []

    async def talk_for_ever() -> None:
        async with process(server(FAMILY)).open(LIMITS) as channel:
            listener = child_programs.Listener()
            async with anyio.create_task_group() as group:
                group.start_soon(channel.run, listener)
                said.extend(await listener.messages(2))
                await anyio.sleep_forever()

    task = asyncio.create_task(talk_for_ever())
    await until(lambda: said)
    while not task.done():
        task.cancel()
        await anyio.sleep(0.005)

    assert task.cancelled()
    assert not any(map(is_alive, said))
    assert before == child_programs.own_descriptors()


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("times", [1, 2, 20])
async def test_every_task_that_is_cancelled_past_all_shields_still_leaves_nothing(times: int) -> None:
    before = child_programs.own_descriptors()
    others = asyncio.all_tasks()
    said: list[Any] = []

    async def talk_for_ever() -> None:
        async with process(server(FAMILY)).open(LIMITS) as channel:
            listener = child_programs.Listener()
            async with anyio.create_task_group() as group:
                group.start_soon(channel.run, listener)
                said.extend(await listener.messages(2))
                await anyio.sleep_forever()

    task = asyncio.create_task(talk_for_ever())
    await until(lambda: said)
    for _ in range(times):
        for each in asyncio.all_tasks() - others:
            each.cancel()
        await anyio.sleep(0.005)
    await asyncio.wait([task])
    with suppress(BaseException):
        task.result()

    await until(lambda: not any(map(is_alive, said)))
    assert before == child_programs.own_descriptors()


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import anyio
from mcpgen.runtime.limits import ClientLimits
from tests.harness.child_programs import Listener, Process

async def main():
    async with Process([sys.argv[2], sys.argv[3]], inherit_environment=True).open(ClientLimits()) as channel:
        async with anyio.create_task_group() as group:
            listener = Listener()
            group.start_soon(channel.run, listener)
            await listener.messages(1)
            os.write(1, b"ready\\n")
            await anyio.sleep_forever()

try:
    anyio.run(main, backend=sys.argv[1])
except* KeyboardInterrupt:  # in a group, on trio
    os.write(1, b"interrupted\\n")
"""

HEEDLESS = """#!{python} -IS
import os, signal, sys
def note(text):
    with open({notes!r}, "a") as file:
        file.write(text + "\\n")
signal.signal(signal.SIGINT, lambda *_: note("INT"))
os.write(1, b"1\\n")
sys.stdin.read()
note("end of input")
"""


def test_an_interrupt_from_the_keyboard_reaches_the_client_alone_which_ends_the_server(
    anyio_backend: str, tmp_path: Path
) -> None:
    notes, program = tmp_path / "notes", tmp_path / "server.py"
    program.write_text(HEEDLESS.format(python=sys.executable, notes=str(notes)), encoding="utf-8")
    # Of the tests, as they may be run against an installed package.
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, child_programs.MARK: "1", "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    argv = [sys.executable, "-c", INTERRUPTED, anyio_backend, sys.executable, str(program)]
    client = subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, process_group=0)
    with client:
        assert client.stdout is not None
        assert b"ready\n" == client.stdout.readline()
        os.killpg(client.pid, signal.SIGINT)  # as a terminal does

        assert b"interrupted\n" == client.stdout.read()
    assert "end of input\n" == read(notes)


# --- too little of something


async def test_a_client_without_descriptors_says_so_and_keeps_those_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    before = child_programs.own_descriptors()
    pipe, made = os.pipe, list[tuple[int, int]]()

    def scarce() -> tuple[int, int]:
        if len(made) == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        made.append(pipe())
        return made[-1]

    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", scarce)
        with pytest.raises(UsageError, match="'cat' cannot be started: Too many open files"):
            async with process("cat").open(LIMITS):
                pass

    assert before == child_programs.own_descriptors()
