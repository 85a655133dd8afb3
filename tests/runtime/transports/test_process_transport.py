"""A server as a child process: how it is started, what it is told, what is learnt of its end, and that it does end."""

from __future__ import annotations

import logging
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports import process_transport
from mcpgen.runtime.transports.errors import ServerExited
from mcpgen.runtime.transports.interfaces import Transport
from mcpgen.runtime.transports.process_transport import Process, _is_readable
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
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux which processes there are"),
]

ENVIRONMENT = "say(dict(os.environ))\nsys.stdin.read()"
PIDS = "say(os.getpid())\nsys.stdin.read()"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Generator[None]:
    yield
    left = child_programs.clear()

    assert [] == left
    assert [] == child_programs.own_zombies()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.touch()
    return path


# --- commands


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["cat"], ("cat",)),
        ([Path("/bin/cat"), "-u"], ("/bin/cat", "-u")),
        ("python server.py", ("python", "server.py")),
        ("  python   'my server.py' --name=\"a b\" c\\ d ''", ("python", "my server.py", "--name=a b", "c d", "")),
        ("echo $HOME *", ("echo", "$HOME", "*")),
    ],
)
def test_a_command_is_a_sequence_or_is_split_as_a_shell_would(command: Any, words: tuple[str, ...]) -> None:
    assert shlex.join(words) == Process(command).description


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "names no program"),
        ("   ", "names no program"),
        ([], "names no program"),
        (["", "x"], "names no program"),
        ("cat 'x", "No closing quotation"),
        ("cat \\", "No escaped character"),
        ("cat x\0y", "contains a NUL"),
        (["cat", "x\0y"], "contains a NUL"),
        (["cat", 1], "must be a string, or a list of strings"),
        ([b"cat"], "must be a string, or a list of strings"),
        (b"cat", "must be a string, or a list of strings"),
        (None, "must be a string, or a list of strings"),
    ],
)
def test_a_command_that_is_none_is_refused_with_a_reason(command: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Process(command)


@pytest.mark.parametrize("variable", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "secret\0"}, {"A": 1}, {1: "x"}])
def test_a_variable_that_cannot_be_set_is_refused_without_showing_its_value(variable: Any) -> None:
    with pytest.raises(UsageError, match="environment variable") as caught:
        Process("cat", environment=variable)

    assert "secret" not in str(caught.value)


def test_a_process_is_a_transport_and_the_same_as_another_that_starts_the_same() -> None:
    made = Process("cat -u", environment={"A": "1"}, directory="/")

    assert isinstance(made, Transport)
    assert Process(["cat", "-u"], environment={"A": "1"}, directory=Path("/")).identity == made.identity
    assert 1 == len({made.identity, made.identity})
    for other in (
        Process("cat", environment={"A": "1"}, directory="/"),
        Process("cat -u", environment={"A": "2"}, directory="/"),
        Process("cat -u", environment={"A": "1"}),
        Process("cat -u", environment={"A": "1"}, directory="/", inherit_environment=True),
    ):
        assert other.identity != made.identity


def test_what_is_shown_of_a_process_holds_none_of_its_environment() -> None:
    assert "Process('cat -u')" == repr(Process("cat -u", environment={"TOKEN": "secret"}))


async def test_a_directory_that_cannot_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may enter every directory
    with pytest.raises(UsageError, match=r"'cat' cannot be started: .* not a directory that this user may open$"):
        async with Process("cat", directory=tmp_path).open(LIMITS):
            pass


async def test_what_cannot_be_started_is_named_with_the_reason_and_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/python\n", encoding="utf-8")
    plain = tmp_path / "plain"
    plain.touch()
    empty = tmp_path / "empty"
    empty.touch()
    empty.chmod(0o755)
    script.chmod(0o755)
    before = child_programs.own_descriptors()
    for made, message in (
        (
            Process("no-such-program-anywhere x"),
            "'no-such-program-anywhere' cannot be started: the program is not on PATH",
        ),
        (Process(["/nowhere/cat"]), "'/nowhere/cat' cannot be started: the program"),
        (Process([script]), "or the interpreter in its first line, does not exist"),
        (Process([plain]), "it is not executable by this user"),
        (Process([empty]), "Exec format error"),
        (
            Process("cat", directory="/nowhere"),
            "'cat' cannot be started: `directory` is '/nowhere', which is not a directory that this user may open",
        ),
        (Process("cat", directory=plain), "which is not a directory"),
        (Process(["cat", "\ud800"]), "'cat' cannot be started"),
        (Process(["cat", "x" * 10_000_000]), "Argument list too long"),
    ):
        with pytest.raises(UsageError, match=message):
            async with made.open(LIMITS):
                pass

    assert before == child_programs.own_descriptors()


async def test_a_process_runs_in_its_directory_and_is_found_on_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "its-own-program"
    program.write_text('#!/bin/sh\necho "\\"$PWD\\""\ncat >&2\n', encoding="utf-8")
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    said, _ = await tell(process("its-own-program", environment=path, directory=tmp_path))

    assert str(tmp_path) == said


# --- its environment


async def test_a_server_gets_what_any_program_needs_and_what_it_is_given_but_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = {"HOME": "/h", "LOGNAME": "l", "SHELL": "/bin/s", "TERM": "t", "USER": "u", "LANG": "C.UTF-8"}
    needed |= {"LC_TIME": "C", "TMPDIR": "/t", "TZ": "UTC", "XDG_CACHE_HOME": "/c", "PATH": os.environ["PATH"]}
    for name, value in {**needed, "AWS_SECRET_ACCESS_KEY": "s", "LC_FUNCTION": "() { :; }", "PYTHONPATH": "/p"}.items():
        monkeypatch.setenv(name, value)
    said, _ = await tell(process(server(ENVIRONMENT), environment={"TOKEN": "x", "TZ": "Europe/Paris"}))

    for name, value in needed.items():
        assert (name, {**needed, "TZ": "Europe/Paris"}[name]) == (name, said[name]), value
    assert "x" == said["TOKEN"]
    assert not {"AWS_SECRET_ACCESS_KEY", "LC_FUNCTION", "PYTHONPATH"} & set(said)


async def test_a_server_gets_all_of_our_environment_if_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("FUNCTION", "() { :; }")
    made = process(server(ENVIRONMENT), inherit_environment=True, environment={"HOME": "/mine"})
    said, _ = await tell(made)

    assert ("s", "() { :; }", "/mine") == (said["AWS_SECRET_ACCESS_KEY"], said["FUNCTION"], said["HOME"])


async def test_a_server_has_three_descriptors_and_leads_a_session_and_group_of_its_own() -> None:
    kept_read, kept_write = os.pipe()
    os.set_inheritable(kept_write, True)  # noqa: FBT003 (the function's own signature)
    try:
        said, _ = await tell(
            process(
                server(
                    """
                    fds = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
                    waits = [os.get_blocking(fd) for fd in fds]
                    say([fds, waits, os.getpid(), os.getpgid(0), os.getsid(0)])
                    sys.stdin.read()
                    """
                )
            )
        )
    finally:
        os.close(kept_read)
        os.close(kept_write)
    fds, waits, pid, group, session = said

    assert [0, 1, 2] == fds
    assert [True, True, True] == waits
    assert pid == group == session


async def test_our_ends_are_inherited_by_nobody_and_are_no_standard_streams() -> None:
    before = descriptors()
    closed = os.dup(0)
    inheritable = os.get_inheritable(0)
    os.close(0)  # its number is the next to be given
    try:
        async with talking(process(server(PIDS))) as talk:
            await talk.hear()
            ours = descriptors() - (before - {0}) - {closed}
            kept = [fd for fd in ours if is_open(fd)]

            assert len(kept) >= 4  # three pipes and the process
            assert 0 not in kept
            assert not any(os.get_inheritable(fd) for fd in kept)
    finally:
        os.dup2(closed, 0, inheritable=inheritable)
        os.close(closed)


def descriptors() -> set[int]:
    return {int(each.name) for each in Path("/proc/self/fd").iterdir()}


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


# --- conversations


async def test_lines_go_to_the_server_and_come_back() -> None:
    async with talking(process("cat")) as talk:
        for number in range(100):
            talk.channel.write(msgspec.json.encode({"number": number, "text": "é" * 2000}))
            await talk.channel.drain()

        assert list(range(100)) == [each["number"] for each in await talk.listener.messages(100)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> ClientLimits:
    """Limits for a server on a busy machine: it needs seconds to start, to read what was written last, and to end."""
    monkeypatch.setattr(process_transport, "_FLUSH_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(process_transport, "_GROUP_SECONDS", PATIENCE_SECONDS)
    seconds = PATIENCE_SECONDS
    return ClientLimits(max_buffered_bytes=1 << 24, stdin_seconds=seconds, term_seconds=seconds)


async def test_what_is_written_last_is_still_read_by_the_server(notes: Path, patient: ClientLimits) -> None:
    code = "say(1)\ntime.sleep(0.1)\nnote(str(sum(map(len, sys.stdin.buffer))))"
    async with talking(process(server(code), notes), patient) as talk:
        await talk.hear()
        for _ in range(50):
            talk.channel.write(b"x" * 9_999)  # more than a pipe holds

    assert "500000\n" == read(notes)


async def test_what_is_written_last_before_a_cancellation_is_still_read_by_the_server(
    notes: Path, patient: ClientLimits
) -> None:
    code = "say(1)\ntime.sleep(0.1)\nnote(str(sum(map(len, sys.stdin.buffer))))"
    with anyio.CancelScope() as scope:
        async with talking(process(server(code), notes), patient) as talk:
            await talk.hear()
            for _ in range(50):
                talk.channel.write(b"x" * 9_999)
            scope.cancel()
            await anyio.sleep_forever()

    assert "500000\n" == read(notes)


async def test_a_server_that_must_write_before_it_reads_what_is_written_last_can(
    notes: Path, patient: ClientLimits
) -> None:
    code = "say(1)\nos.write(1, b'y' * 500_000)\nnote(str(sum(map(len, sys.stdin.buffer))))"
    async with process(server(code), notes).open(patient) as channel:
        channel.write(b"x" * 499_999)

    assert "500000\n" == read(notes)


# --- its end


@pytest.mark.parametrize(("code", "status"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("", 0)])
async def test_a_server_that_exits_is_reported_with_its_status_and_last_words(code: str, status: int) -> None:
    made = process(server(f"os.write(2, b'so long')\nsay('bye')\nos.write(1, b'[1]')\n{code}"))
    async with talking(made) as talk:
        await talk.over.wait()
        ended = await talk.channel.close_reason()

        assert isinstance(ended, ServerExited)
        assert (made.description, status, "so long") == (ended.command, ended.status, ended.stderr)
        assert ["bye", [1]] == await talk.listener.messages(2)  # although the last line has no end
        begin = time.monotonic()
    again = await talk.channel.close_reason()

    assert time.monotonic() - begin < BUSY_SECONDS
    assert isinstance(again, ServerExited)
    assert (status, "so long") == (again.status, again.stderr)


@pytest.mark.slow
async def test_a_server_that_only_closes_its_output_has_no_status(notes: Path, patient: ClientLimits) -> None:
    code = "say(os.getpid())\nos.close(1)\nsys.stdin.read()\nnote('end of input')"
    async with talking(process(server(code), notes), patient) as talk:
        await talk.over.wait()
        ended = await talk.channel.close_reason()

        assert isinstance(ended, ServerExited)
        assert ended.status is None
        assert "has closed its output" in str(ended)

    assert "end of input\n" == read(notes)


async def test_an_end_is_noticed_although_a_child_holds_the_output_open_and_all_is_heard_before() -> None:
    code = "pid = start('forever()')\nfor _ in range(500): say([pid] * 20)\nos._exit(4)"
    async with talking(process(server(code))) as talk:
        begin = time.monotonic()
        await talk.over.wait()
        took = time.monotonic() - begin
        ended = await talk.channel.close_reason()
        heard = await talk.listener.messages(500)

        assert took < BUSY_SECONDS
        assert isinstance(ended, ServerExited)
        assert 4 == ended.status
        assert is_alive(heard[0][0])

    assert not is_alive(heard[0][0])


async def test_an_end_is_noticed_although_a_child_goes_on_printing() -> None:
    code = "start('while True: say(1)')\nos._exit(0)"
    async with talking(process(server(code))) as talk:
        begin = time.monotonic()
        await talk.over.wait()

        assert time.monotonic() - begin < 0.5 + BUSY_SECONDS


@pytest.mark.slow
async def test_what_a_server_has_said_before_it_exited_is_heard_even_if_nobody_listened_yet() -> None:
    code = "import fcntl\nfcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)\nstart('forever()')\n"
    code += "for _ in range(20_000): say(123_456_789)\nos._exit(0)"
    async with process(server(code)).open(LIMITS) as channel:
        listener = child_programs.Listener()
        await until(shell_of(channel)._is_over.is_set)
        with anyio.fail_after(PATIENCE_SECONDS):
            await channel.run(listener)

        assert 20_000 == len(listener.heard)


@pytest.mark.slow
async def test_what_a_server_has_said_is_heard_although_a_write_to_it_has_failed() -> None:
    code = "os.close(0)\nsay('last')\nforever()"
    async with process(server(code)).open(LIMITS) as channel:
        listener, shell = child_programs.Listener(), shell_of(channel)
        await until(lambda: _is_readable(shell._child.stdout))
        channel.write(b"x")
        await until(lambda: not shell._pump._size)
        with anyio.fail_after(PATIENCE_SECONDS):
            await channel.run(listener)

            assert ["last"] == await listener.messages(1)
            begin = time.monotonic()
            channel.write(b"x" * 2_000_000)
            await channel.drain()  # nobody reads, but nobody waits either
            ended = await channel.close_reason()

    assert time.monotonic() - begin < 2 * BUSY_SECONDS
    assert isinstance(ended, ServerExited)
    assert ended.status is None


def shell_of(channel: Any) -> Any:
    """Return *channel* as something to look behind."""
    return channel


# --- its shutdown


@pytest.mark.spec("2024-11-05", "basic/lifecycle#stdio", "e5415e40")
@pytest.mark.spec("2025-03-26", "basic/lifecycle#stdio", "e5415e40")
@pytest.mark.spec("2025-06-18", "basic/lifecycle#stdio", "e5415e40")
@pytest.mark.spec("2025-11-25", "basic/lifecycle#stdio", "e5415e40")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio#shutdown", "2346a4ca", "5b1a36dd")
async def test_a_server_that_exits_at_the_end_of_its_input_is_told_nothing_else(notes: Path) -> None:
    code = "on_term(lambda: note('TERM'))\nsay(os.getpid())\nsys.stdin.read()\nnote('end of input')"
    pid, took = await tell(process(server(code), notes), ClientLimits())

    assert "end of input\n" == read(notes)
    assert took < BUSY_SECONDS
    assert not is_there(pid)


@pytest.mark.spec("2024-11-05", "basic/lifecycle#stdio", "b5ab0b88")
@pytest.mark.spec("2025-03-26", "basic/lifecycle#stdio", "b5ab0b88")
@pytest.mark.spec("2025-06-18", "basic/lifecycle#stdio", "b5ab0b88")
@pytest.mark.spec("2025-11-25", "basic/lifecycle#stdio", "b5ab0b88")
async def test_a_server_that_ignores_the_end_of_its_input_is_told_to_terminate(notes: Path) -> None:
    code = "on_term(lambda: (note('TERM'), os._exit(0)))\nsay(os.getpid())\nforever()"
    limits = ClientLimits(stdin_seconds=0.2, term_seconds=PATIENCE_SECONDS)
    pid, took = await tell(process(server(code), notes), limits)

    assert "TERM\n" == read(notes)
    assert limits.stdin_seconds <= took < limits.stdin_seconds + BUSY_SECONDS
    assert not is_there(pid)


@pytest.mark.spec("2024-11-05", "basic/lifecycle#stdio", "1c6a6120")
@pytest.mark.spec("2025-03-26", "basic/lifecycle#stdio", "1c6a6120")
@pytest.mark.spec("2025-06-18", "basic/lifecycle#stdio", "1c6a6120")
@pytest.mark.spec("2025-11-25", "basic/lifecycle#stdio", "1c6a6120")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio#shutdown", "ab56c0ef")
@pytest.mark.slow
async def test_a_server_that_ignores_all_is_killed(notes: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = "on_term(lambda: note('TERM'))\nsay(os.getpid())\nforever()"
    limits = ClientLimits(stdin_seconds=0.2, term_seconds=2)
    async with talking(process(server(code), notes), limits) as talk:
        pid = await talk.hear()
        begin = time.monotonic()
    took = time.monotonic() - begin
    ended = await talk.channel.close_reason()

    assert "TERM\n" == read(notes)
    assert limits.stdin_seconds + limits.term_seconds <= took < limits.term_seconds + BUSY_SECONDS
    assert not is_there(pid)
    assert isinstance(ended, ServerExited)
    assert -9 == ended.status
    assert ["mcpgen.client"] == [each.name for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.slow
async def test_a_server_that_was_stopped_is_killed() -> None:
    pid, _ = await tell(process(server("say(os.getpid())\nos.kill(os.getpid(), signal.SIGSTOP)")))

    assert not is_there(pid)


async def test_the_status_is_known_although_the_client_did_not_run_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_transport, "_STATUS_SECONDS", 0)
    async with talking(process(server("say(os.getpid())\nsys.exit(4)"))) as talk:
        pid = await talk.hear()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 (no task of the client runs, as on a busy machine)
        ended = await talk.channel.close_reason()

    assert isinstance(ended, ServerExited)
    assert 4 == ended.status


FAMILY = """
end = "on_term(lambda: (note('{0} TERM'), os._exit(0)))\\nopen(os.environ['NOTES'] + '{0}', 'x')\\n"
start(end.format("child") + "start(" + repr(end.format("grandchild") + "forever()") + ")\\nforever()")
while not os.path.exists(os.environ["NOTES"] + "grandchild"): time.sleep(0.01)
say(os.getpid())
"""


async def test_children_and_grandchildren_of_a_server_that_has_ended_are_told_to_terminate(
    notes: Path, patient: ClientLimits
) -> None:
    pid, took = await tell(process(server(FAMILY + "sys.stdin.read()"), notes), patient)

    assert {"child TERM", "grandchild TERM"} == set(read(notes).split("\n")[:-1])
    assert [] == child_programs.marked()
    assert took < BUSY_SECONDS
    assert not is_there(pid)


async def test_children_that_a_server_has_left_behind_when_it_crashed_are_told_to_terminate(
    notes: Path, patient: ClientLimits
) -> None:
    await tell(process(server(FAMILY + "os._exit(1)"), notes), patient)

    assert {"child TERM", "grandchild TERM"} == set(read(notes).split("\n")[:-1])
    assert [] == child_programs.marked()


@pytest.mark.slow
async def test_children_are_told_together_with_a_server_that_ignores_the_end_of_its_input(notes: Path) -> None:
    limits = ClientLimits(stdin_seconds=0.1, term_seconds=PATIENCE_SECONDS)
    slow = "on_term(lambda: (time.sleep(0.7), note('child TERM'), os._exit(0)))\nsay(2)\nforever()"
    code = f"start({slow!r})\nforever()"  # the server itself ends at once
    _, took = await tell(process(server(code), notes), limits)

    assert "child TERM\n" == read(notes)
    assert [] == child_programs.marked()
    assert took < 0.8 + BUSY_SECONDS


@pytest.mark.parametrize("ends", ["sys.stdin.read()", "os._exit(0)", "on_term(int)\nforever()"])
@pytest.mark.slow
async def test_children_that_ignore_all_are_killed(ends: str) -> None:
    stubborn = "on_term(int)\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nsay(os.getpid())\nforever()"
    code = f"start({stubborn!r})\nstart({stubborn!r})\nwhile not sys.stdin.readline(): pass\n{ends}"
    async with talking(process(server(code))) as talk:
        pids = await talk.listener.messages(2)
        talk.channel.write(b"1")
        begin = time.monotonic()

    assert time.monotonic() - begin < 1 + BUSY_SECONDS
    await until(lambda: not any(map(is_alive, pids)))  # a process goes on for a moment after SIGKILL
    assert [] == child_programs.marked()


@pytest.mark.slow
async def test_a_daemon_that_has_left_the_group_stays() -> None:
    code = "say(start('forever()', start_new_session=True))\nsys.stdin.read()"
    pid, _ = await tell(process(server(code)))

    assert is_alive(pid)
    await child_programs.until(child_programs.marked)  # a process that is only just starting has no environment yet
    assert [pid] == child_programs.clear(0)
    await until(lambda: not is_alive(pid))


async def test_a_server_can_print_while_it_is_waited_for(notes: Path) -> None:
    code = """
    say(1)
    sys.stdin.read()
    for fd in (1, 2):
        for _ in range(50): os.write(fd, b"x" * 9999 + b"\\n")
    note("printed")
    """
    await tell(process(server(code), notes), ClientLimits())

    assert "printed\n" == read(notes)


@pytest.mark.slow
async def test_a_server_that_does_not_read_makes_nobody_hang() -> None:
    code = "on_term(lambda: os._exit(0))\nsay(1)\nforever()"
    async with talking(process(server(code)), ClientLimits(max_buffered_bytes=1000, stdin_seconds=0.2)) as talk:
        await talk.hear()
        while not talk.channel.is_full:
            talk.channel.write(b"x" * 100_000)
        with anyio.move_on_after(0.1) as waited:
            await talk.channel.drain()

        assert waited.cancelled_caught
        begin = time.monotonic()
    await talk.channel.drain()
    talk.channel.write(b"x")

    assert time.monotonic() - begin < 0.7 + BUSY_SECONDS
    assert not talk.channel.is_full


async def test_who_waits_for_room_goes_on_when_the_server_has_ended() -> None:
    code = "say(1)\nstart('forever()')\ntime.sleep(0.2)\nos._exit(1)"  # the child holds the input open, too
    async with talking(process(server(code)), ClientLimits(max_buffered_bytes=1000, stdin_seconds=0.2)) as talk:
        await talk.hear()
        talk.channel.write(b"x" * 1_000_000)
        await talk.channel.drain()


async def test_what_cannot_be_written_any_more_is_not_waited_for() -> None:
    async with process(server("start('forever()')\nos._exit(1)")).open(ClientLimits()) as channel:
        await until(shell_of(channel)._is_over.is_set)
        channel.write(b"x" * 1_000_000)  # the child holds the input open
        begin = time.monotonic()

    assert time.monotonic() - begin < BUSY_SECONDS


async def test_an_error_in_the_block_comes_out_as_it_is_and_the_server_is_ended() -> None:
    pids: list[int] = []

    async def fail() -> None:
        async with process(server(PIDS)).open(LIMITS) as channel:
            listener = child_programs.Listener()
            async with anyio.create_task_group() as group:
                group.start_soon(channel.run, listener)
                pids.extend(await listener.messages(1))
                group.cancel_scope.cancel()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()

    assert not is_there(pids[0])


# --- what it prints as errors


async def test_each_line_is_told_and_logged_and_the_last_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    caplog.set_level(logging.DEBUG, "mcpgen.server")
    code = "os.write(2, 'one\\r\\n\\ntwo \\u00e9 '.encode() + b'\\xff\\nthree')"
    async with talking(process(server(code), on_stderr=told.append)) as talk:
        await talk.over.wait()
        await talk.channel.close_reason()

        assert "one\r\n\ntwo é �\nthree" == talk.channel.stderr

    assert ["one", "", "two é �", "three"] == told
    assert told == [each.getMessage() for each in caplog.records if each.name == "mcpgen.server"]


@pytest.mark.slow
async def test_the_last_that_was_printed_is_known_as_soon_as_the_end_is() -> None:
    code = "say(1)\ntime.sleep(0.1)\nos.write(2, b'x' * 60_000 + b'last')\nos._exit(0)"
    async with talking(process(server(code))) as talk:
        await talk.hear()
        time.sleep(0.3)  # noqa: ASYNC251 (we are busy, and learn all of it at once)
        await talk.over.wait()
        ended = await talk.channel.close_reason()

        assert isinstance(ended, ServerExited)
        assert ended.stderr.endswith("xlast")


async def test_a_function_that_fails_costs_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def fail(line: str) -> None:
        told.append(line)
        raise RuntimeError("as told")

    async with talking(process(server("os.write(2, b'a\\nb\\n')\nsay(1)"), on_stderr=fail)) as talk:
        await talk.over.wait()

        assert [1] == await talk.listener.messages(1)
    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]

    assert ["a", "b"] == told
    assert record.exc_info is not None


async def test_a_flood_of_errors_keeps_its_last_and_leaves_time_for_others() -> None:
    lines = 0

    def count(_: str) -> None:
        nonlocal lines
        lines += 1

    code = """
    say(1)
    for number in range(20_000): os.write(2, b"%d\\n" % number * 10)
    say(2)
    sys.stdin.read()
    """
    made = process(server(code), on_stderr=count)
    async with talking(made, ClientLimits(max_stderr_bytes=1000)) as talk:
        slowest, begin = 0.0, time.monotonic()
        while len(talk.listener.heard) < 2:
            await anyio.lowlevel.checkpoint()
            slowest, begin = max(slowest, time.monotonic() - begin), time.monotonic()
        await until(lambda: lines == 200_000)

        assert 1000 == len(talk.channel.stderr)
        assert talk.channel.stderr.endswith("\n19998\n" + "19999\n" * 10)
        assert slowest < BUSY_SECONDS


async def test_a_line_without_an_end_comes_in_pieces_and_takes_bounded_memory() -> None:
    longest = total = 0

    def measure(line: str) -> None:
        nonlocal longest, total
        longest, total = max(longest, len(line)), total + len(line)

    code = "for _ in range(500): os.write(2, b'x' * 10_000)\nsay(1)\nsys.stdin.read()"
    async with talking(process(server(code), on_stderr=measure), ClientLimits(max_stderr_bytes=3000)) as talk:
        await talk.hear()
        stderr: Any = talk.channel
        stderr = stderr._stderr

        assert len(stderr._kept) <= 2 * 3000 + 4096
        assert len(stderr._partial_line) <= 16 * 1024 + 4096

    assert 5_000_000 == total
    assert longest <= 16 * 1024


@pytest.mark.parametrize("size", [4, 5, 6, 7])
async def test_the_last_of_what_was_printed_begins_with_a_whole_character(size: int) -> None:
    code = "os.write(2, '\\u20ac\\u20ac\\u20ac\\u20ac'.encode())"
    async with talking(process(server(code)), ClientLimits(max_stderr_bytes=size)) as talk:
        await talk.over.wait()
        await talk.channel.close_reason()

        assert "€" * (size // 3) == talk.channel.stderr


# --- what is left


@pytest.mark.slow
async def test_two_hundred_conversations_leave_nothing() -> None:
    import asyncio

    async def one() -> None:
        async with Process("cat").open(LIMITS) as channel:
            channel.write(b"x")

    await one()
    before = child_programs.own_descriptors()
    tasks = len(asyncio.all_tasks()) if is_asyncio() else 0
    for _ in range(200):
        await one()

    assert before == child_programs.own_descriptors()
    assert [] == child_programs.own_zombies()
    if is_asyncio():
        assert tasks == len(asyncio.all_tasks())


@pytest.mark.slow
async def test_many_conversations_at_once_leave_nothing() -> None:
    before = child_programs.own_descriptors()
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(tell, process(server(PIDS)))

    assert before == child_programs.own_descriptors()


def is_asyncio() -> bool:
    from mcpgen.runtime.transports import spawner

    return spawner.is_asyncio()
