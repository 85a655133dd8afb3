"""A process that serves: what it writes where, what it finds to serve, and how it ends, whatever its handlers do."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
import pytest

from mcpgen.runtime.protocol.framing import LineFramer
from mcpgen.runtime.transports import stdio_server
from tests.harness import echo_server
from tests.harness.child_programs import is_alive
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"), pytest.mark.slow]
on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds")

PROGRAM: Final = str(Path(echo_server.__file__))
PROMPTLY: Final = 1 + BUSY_SECONDS  # a second, as promised


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Served:
    """A process that serves, and the far ends of its streams."""

    def __init__(self, *command: str, **options: Any) -> None:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        # Whoever runs the tests may want output at once; but what is printed before serving is ours only if buffered.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        # A shell that starts tests in the background has them ignore SIGINT, and servers would inherit that.
        options.setdefault("preexec_fn", _heed_interrupts)
        self.process = subprocess.Popen([sys.executable, *command], bufsize=0, env=env, **options)
        self._framer = LineFramer(1 << 30)
        self._frames: list[Any] = []

    @property
    def stdin(self) -> int:
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def stdout(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def ask(self, do: str, given: object = None, *, number: int = 1) -> None:
        os.write(self.stdin, msgspec.json.encode({"id": number, "do": do, "with": given}) + b"\n")

    def answer(self) -> Any:
        """Return the next message; fail if there is none in time, or something else."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._frames:
            ready, _, _ = select.select([self.stdout], [], [], until - time.monotonic())
            assert ready, "no answer in time"
            data = os.read(self.stdout, 1 << 20)
            assert data, "the output has ended"
            self._frames += self._framer.feed(data)
        return msgspec.json.decode(self._frames.pop(0))

    def says(self, text: str) -> str:
        """Read standard error until *text* comes; return what came."""
        assert self.process.stderr is not None
        fd, read, until = self.process.stderr.fileno(), b"", time.monotonic() + PATIENCE_SECONDS
        while text.encode() not in read:
            ready, _, _ = select.select([fd], [], [], until - time.monotonic())
            assert ready, read
            data = os.read(fd, 1 << 16)
            assert data, read
            read += data
        return read.decode()

    def end(self) -> tuple[int, bytes, str, float]:
        """Wait for its end; return the status, what was left on both outputs, and how long it took."""
        begin = time.monotonic()
        status = self.process.wait(PATIENCE_SECONDS)
        took = time.monotonic() - begin
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out = b"" if self.process.stdout.closed else self.process.stdout.read()
        return status, out, self.process.stderr.read().decode(), took

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


@pytest.fixture
def start() -> Generator[Callable[..., Served]]:
    started: list[Served] = []

    def begin(*command: str, **options: Any) -> Served:
        started.append(Served(*command, **options))
        return started[-1]

    yield begin
    for each in started:
        each.process.kill()
        each.process.wait()
        for stream in (each.process.stdin, each.process.stdout, each.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture(params=["asyncio", "trio"])
def served(request: pytest.FixtureRequest, start: Callable[..., Served]) -> Served:
    return start(PROGRAM, request.param)


def test_a_server_answers_and_ends_with_its_input(served: Served) -> None:
    served.ask("echo", "ä")

    assert {"id": 1, "done": "ä"} == served.answer()
    served.close_input()
    status, out, err, took = served.end()
    assert (0, b"", "before serving\nrun returned\n") == (status, out, err)
    assert took < PROMPTLY


def test_what_is_printed_goes_to_standard_error_and_never_into_the_protocol(served: Served) -> None:
    for number in range(3):
        served.ask("print", f"said {number}", number=number)
        assert {"id": number, "done": None} == served.answer()
    served.close_input()
    status, out, err, _ = served.end()

    assert (0, b"") == (status, out)
    for number in range(3):
        for how in ("print", "C", "descriptor"):
            assert f"said {number} by {how}\n" in err


def test_what_python_prints_can_be_read_at_once(served: Served) -> None:
    served.ask("print", "said")

    served.says("said by print\n")


@on_linux
def test_a_child_inherits_neither_stream(served: Served) -> None:
    served.ask("child")

    # Nothing to read; 0, 1 and 2 are open, and what listing them takes.
    assert re.fullmatch(r"'' \[0, 1, 2\]\n", served.answer()["done"])


def test_a_forked_child_does_not_keep_the_streams_open(served: Served) -> None:
    served.ask("fork")
    child = served.answer()["done"]
    try:
        served.process.kill()
        ready, _, _ = select.select([served.stdout], [], [], PATIENCE_SECONDS)

        assert ([served.stdout], b"") == (ready, os.read(served.stdout, 100))
    finally:
        os.kill(child, signal.SIGKILL)


@on_linux
def test_a_signal_to_a_forked_child_ends_the_child_alone(served: Served) -> None:
    served.ask("fork")
    child = served.answer()["done"]
    try:
        os.kill(child, signal.SIGTERM)  # as `multiprocessing.Pool` does at its end

        until = time.monotonic() + PATIENCE_SECONDS
        while is_alive(child):
            assert time.monotonic() < until
            time.sleep(0.01)
        served.ask("echo", number=2)
        assert {"id": 2, "done": None} == served.answer()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_signal_to_a_child_that_was_just_forked_ends_the_child_alone(served: Served) -> None:
    served.ask("terminate", 200)
    assert {"id": 1, "done": [-signal.SIGTERM]} == served.answer()

    served.ask("echo", number=2)
    assert {"id": 2, "done": None} == served.answer()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_idle_server(served: Served, number: signal.Signals) -> None:
    served.ask("echo")
    served.answer()
    served.process.send_signal(number)
    status, out, err, took = served.end()

    assert (0, b"", "before serving\nrun returned\n") == (status, out, err)
    assert took < PROMPTLY


@pytest.mark.spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_streams_of_subscriptions_first(start: Callable[..., Served], number: signal.Signals) -> None:
    served = start("-c", "from mcpgen import Server\nServer('demo', version='1').run()")
    meta = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
    params = b'{"notifications":{},"_meta":{%b}}' % meta
    os.write(served.stdin, b'{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":%b}\n' % params)
    served.answer()
    served.process.send_signal(number)
    status, out, _, took = served.end()

    cancelled, ended = map(msgspec.json.decode, out.splitlines())
    assert ("notifications/cancelled", "s") == (cancelled["method"], cancelled["params"]["requestId"])
    assert ("s", "complete") == (ended["id"], ended["result"]["resultType"])
    assert 0 == status
    assert took < PROMPTLY


ENDINGS: dict[str, Callable[[Served], None]] = {
    "SIGINT": lambda served: served.process.send_signal(signal.SIGINT),
    "SIGTERM": lambda served: served.process.send_signal(signal.SIGTERM),
    "end of input": Served.close_input,
}


@pytest.fixture(params=ENDINGS)
def ending(request: pytest.FixtureRequest) -> Callable[[Served], None]:
    return ENDINGS[request.param]


def test_a_running_handler_is_cancelled_at_the_end(served: Served, ending: Callable[[Served], None]) -> None:
    served.ask("wait")
    served.says("waiting")
    ending(served)
    status, out, err, took = served.end()

    assert (0, b"", "cancelled\nrun returned\n") == (status, out, err)
    assert took < PROMPTLY


@pytest.mark.parametrize("do", ["swallow", "hang"])
def test_a_handler_that_does_not_end_does_not_keep_the_process(
    served: Served, ending: Callable[[Served], None], do: str
) -> None:
    served.ask(do)
    served.says("waiting")
    ending(served)
    status, out, _, took = served.end()

    assert (0, b"") == (status, out)
    assert took < PROMPTLY


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_handler_that_blocks_the_event_loop_does_not_keep_the_process(served: Served, number: signal.Signals) -> None:
    served.ask("block")
    served.says("waiting")
    served.process.send_signal(number)
    status, out, err, took = served.end()

    assert (0, b"") == (status, out)
    assert "ending the process: the server did not end in time" in err
    assert took < PROMPTLY


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noticed_although_the_main_thread_is_not_woken_by_it(
    served: Served, number: signal.Signals
) -> None:
    served.ask("deafen")
    served.answer()
    served.process.send_signal(number)
    status, out, err, took = served.end()

    assert (0, b"", "before serving\nrun returned\n") == (status, out, err)
    assert took < PROMPTLY


def test_a_signal_is_noticed_although_the_main_thread_never_runs_again(served: Served) -> None:
    served.ask("deafen")
    served.answer()
    served.ask("block")
    served.says("waiting")
    served.process.send_signal(signal.SIGTERM)
    status, _, _, took = served.end()

    assert 0 == status
    assert took < PROMPTLY


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_signals_of_others_still_reach_them(start: Callable[..., Served], backend: str) -> None:
    text = f"""
import asyncio, signal
from contextlib import asynccontextmanager
class Listening(EchoServer):
    @asynccontextmanager
    async def running(self):
        if {backend!r} == "asyncio":
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, os.write, 2, b"heard")
        else:
            signal.signal(signal.SIGUSR1, lambda *_: os.write(2, b"heard"))
        yield self
stdio_server.run(Listening(), backend={backend!r})
"""
    served = start(*program(SERVER + text))
    served.ask("echo")
    served.answer()
    served.process.send_signal(signal.SIGUSR1)
    served.says("heard")
    served.ask("echo", number=2)
    assert {"id": 2, "done": None} == served.answer()
    served.close_input()

    assert 0 == served.end()[0]


def test_a_signal_cuts_the_grace_after_the_input_short(served: Served) -> None:
    served.ask("wait")
    served.says("waiting")
    served.close_input()
    served.process.send_signal(signal.SIGTERM)
    status, _, _, took = served.end()

    assert 0 == status
    assert took < PROMPTLY


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_answers_that_come_after_the_end_of_the_input_are_written(start: Callable[..., Served], backend: str) -> None:
    served = start(PROGRAM, backend, f"{PATIENCE_SECONDS}")
    served.ask("length", "abc")
    served.ask("fill", 3_000_000, number=2)
    served.close_input()
    answers = sorted((served.answer(), served.answer()), key=lambda each: int(each["id"]))

    assert [{"id": 1, "done": 3}, {"id": 2, "done": "x" * 3_000_000}] == answers
    assert 0 == served.end()[0]


def test_an_input_that_ends_within_a_message_is_handed_over(served: Served) -> None:
    os.write(served.stdin, b'{"id":1,"do":"echo"}\n{"id":2,"do":')
    served.close_input()
    status, out, _, _ = served.end()

    assert (0, {b'{"id":1,"done":null}', b'{"malformed":13}'}) == (status, set(out.splitlines()))


@pytest.mark.parametrize(("do", "raised"), [("crash", "RuntimeError"), ("leave", "SystemExit")])
def test_a_handler_that_fails_ends_nothing_else(served: Served, do: str, raised: str) -> None:
    served.ask(do)
    served.ask("echo", number=2)

    assert {"id": 2, "done": None} == served.answer()
    served.close_input()
    status, _, err, _ = served.end()
    assert 0 == status
    assert f"a handler raised {raised}" in err


def test_a_server_whose_output_nobody_reads_any_more_ends_quietly(served: Served) -> None:
    served.ask("echo")
    served.answer()
    assert served.process.stdout is not None
    served.process.stdout.close()
    served.ask("echo")
    status, _, err, took = served.end()

    assert (0, "before serving\nrun returned\n") == (status, err)
    assert took < PROMPTLY


def held_bytes(served: Served) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@on_linux
def test_a_line_of_100_megabytes_takes_bounded_memory(served: Served) -> None:
    served.ask("echo")
    served.answer()
    before = held_bytes(served)
    for _ in range(100):
        rest = memoryview(b"x" * 1_000_000)
        while rest:
            rest = rest[os.write(served.stdin, rest) :]
    os.write(served.stdin, b"\n")
    served.ask("echo", number=2)

    assert [{"oversized": 100_000_000}, {"id": 2, "done": None}] == [served.answer(), served.answer()]
    assert held_bytes(served) - before < 12 * 1024 * 1024  # a line of 4 MiB, while it grows


@on_linux
def test_a_peer_that_does_not_read_takes_bounded_memory(served: Served) -> None:
    served.ask("echo")
    served.answer()
    before = held_bytes(served)
    os.set_blocking(served.stdin, False)
    message = msgspec.json.encode({"id": 2, "do": "echo", "with": "x" * 4000})
    message += b" " * (4095 - len(message)) + b"\n"  # a page: pipes take all of it or nothing
    count = 0
    while select.select([], [served.stdin], [], 0.5)[1]:  # long enough for a server that reads to have read
        try:
            count += os.write(served.stdin, message) == len(message)
        except BlockingIOError:
            continue

    assert held_bytes(served) - before < 12 * 1024 * 1024
    assert count * 4096 < 3 * 1024 * 1024
    assert [2] * count == [served.answer()["id"] for _ in range(count)]
    served.ask("echo", number=3)
    assert 3 == served.answer()["id"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_server_reads_a_regular_file(start: Callable[..., Served], tmp_path: Path, backend: str) -> None:
    path = tmp_path / "input"
    path.write_bytes(b'{"id":1,"do":"length","with":"abc"}\n' * 1000)
    with path.open("rb") as file:
        status, out, _, took = start(PROGRAM, backend, stdin=file).end()

    assert (0, b'{"id":1,"done":3}\n' * 1000) == (status, out)
    assert took < PATIENCE_SECONDS


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_server_without_input_ends(start: Callable[..., Served], backend: str) -> None:
    status, out, err, _ = start(PROGRAM, backend, stdin=subprocess.DEVNULL).end()

    assert (0, b"", "before serving\nrun returned\n") == (status, out, err)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_server_with_closed_streams_ends(start: Callable[..., Served], backend: str, closed: str) -> None:
    shell = f'exec "{sys.executable}" "{PROGRAM}" {backend} {closed}'
    program = "import os, sys; os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])"
    served = start("-c", program, shell, stdin=subprocess.PIPE)
    served.close_input()
    status, out, _, _ = served.end()

    assert (0, b"") == (status, out)


def program(text: str) -> tuple[str, str]:
    return "-c", f"import os, sys, time, threading\nfrom mcpgen.runtime.transports import stdio_server\n{text}"


SERVER: Final = f"""
import runpy
EchoServer = runpy.run_path({PROGRAM!r}, run_name="echoes")["EchoServer"]
"""


def test_run_returns_and_gives_the_streams_back(start: Callable[..., Served]) -> None:
    served = start(*program(f"{SERVER}\nstdio_server.run(EchoServer())\nprint('back'); print(repr(sys.stdin.read()))"))
    served.ask("print", "said")
    served.answer()
    served.close_input()
    status, out, err, _ = served.end()

    assert (0, b"back\n''\n") == (status, out)
    assert "said by C\n" in err


PRINTING: Final = """
from mcpgen import Server
server = Server("prints", version="1")

@server.tool
def go_on() -> str:
    print("started", file=sys.stderr, flush=True)
    until = time.monotonic() + 3
    print("no message", flush=True)
    # Not with `print`: CPython aborts if it exits while a daemon thread, such as one of trio, holds its lock.
    while time.monotonic() < until:
        os.write(1, b"not one either\\n")
        time.sleep(0.001)
    return "late"
"""
# On a busy machine, the server may take seconds to end its event loop.
PATIENT: Final = f"""
from mcpgen.runtime.transports.graceful_shutdown import GracefulShutdown
GracefulShutdown.__init__.__defaults__ = ({PATIENCE_SECONDS},)
stdio_server._END_SECONDS = {PATIENCE_SECONDS}
"""
CALL: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"go_on","arguments":{},"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
)


@pytest.mark.spec("2024-11-05", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio", "3058675d")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("is_signal", [True, False])
def test_what_a_function_prints_while_the_process_ends_is_not_written_to_the_protocol(
    start: Callable[..., Served], backend: str, *, is_signal: bool
) -> None:
    served = start(*program(f"{PRINTING}{PATIENT}\nstdio_server.run(server, backend={backend!r})\nprint('after')"))
    os.write(served.stdin, CALL)
    served.says("started")
    if is_signal:
        served.process.terminate()
    else:
        served.close_input()
    status, out, err, _ = served.end()

    assert (0, b"") == (status, out)
    assert "after" in err


@pytest.mark.spec("2024-11-05", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio", "3058675d")
@pytest.mark.parametrize("is_signal", [True, False])
def test_what_a_file_prints_at_the_exit_of_the_command_is_not_written_to_the_protocol(
    start: Callable[..., Served], tmp_path: Path, *, is_signal: bool
) -> None:
    file = tmp_path / "late.py"
    text = "import atexit\natexit.register(lambda: print('at exit', flush=True))"
    file.write_text(f"{text}\nfrom mcpgen import Server\nserver = Server('late')\n", encoding="utf-8")
    served = start("-m", "mcpgen", "serve", str(file))
    os.write(served.stdin, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    served.answer()
    if is_signal:
        served.process.terminate()
    else:
        served.close_input()
    status, out, err, _ = served.end()

    assert (0, b"") == (status, out)
    assert "at exit" in err


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_streams_are_given_back_after_functions_have_ended(start: Callable[..., Served], backend: str) -> None:
    text = PRINTING.replace("+ 3", "+ 0.01")
    served = start(*program(f"{text}\nstdio_server.run(server, backend={backend!r})\nprint('back')"))
    os.write(served.stdin, CALL)
    assert "late" == served.answer()["result"]["content"][0]["text"]
    served.close_input()

    assert (0, b"back\n") == served.end()[:2]


def test_two_servers_on_the_same_streams_are_an_error(start: Callable[..., Served]) -> None:
    text = """
from mcpgen.runtime.transports.standard_streams import StandardStreams
with StandardStreams():
    stdio_server.run(EchoServer())
"""
    served = start(*program(SERVER + text))
    status, out, err, _ = served.end()

    assert (1, b"") == (status, out)
    assert "UsageError: a server cannot be run on stdio here" in err


def test_the_streams_can_be_kept_again(start: Callable[..., Served]) -> None:
    served = start(
        *program(f"{SERVER}\nstdio_server.run(EchoServer())\nstdio_server.run(EchoServer())\nprint('twice')")
    )
    served.close_input()

    assert (0, b"twice\n") == served.end()[:2]


def test_the_handlers_of_signals_are_put_back(start: Callable[..., Served]) -> None:
    text = """
import signal
before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
stdio_server.run(EchoServer())
print(before == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)])
"""
    served = start(*program(SERVER + text))
    served.close_input()

    assert (0, b"True\n") == served.end()[:2]


def test_a_signal_that_was_ignored_stays_ignored(start: Callable[..., Served]) -> None:
    text = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nstdio_server.run(EchoServer())"
    served = start(*program(SERVER + text))
    served.ask("echo")
    served.answer()
    served.process.send_signal(signal.SIGINT)
    served.ask("echo", number=2)

    assert {"id": 2, "done": None} == served.answer()


def test_a_server_can_run_outside_of_the_main_thread(start: Callable[..., Served]) -> None:
    text = (
        "each = threading.Thread(target=stdio_server.run, args=(EchoServer(),))\n"
        "each.start()\neach.join()\nprint('over')"
    )
    served = start(*program(SERVER + text))
    served.ask("echo")
    served.answer()
    served.close_input()

    assert (0, b"over\n") == served.end()[:2]


def test_the_process_waits_for_threads_that_are_not_of_the_server(start: Callable[..., Served]) -> None:
    text = """
go = threading.Event()
def work():
    go.wait()
    time.sleep(1.5)
    os.write(2, b"done\\n")
threading.Thread(target=work).start()
stdio_server._END_SECONDS = 60  # a busy machine does not end the server in the usual 0.4 seconds
stdio_server.run(EchoServer())
go.set()
"""
    served = start(*program(SERVER + text))
    served.ask("hang")
    served.says("waiting")
    served.close_input()

    status, out, err, _ = served.end()

    assert (0, b"") == (status, out)
    assert "done\n" in err


def test_what_the_lifespan_raises_comes_out_of_run(start: Callable[..., Served]) -> None:
    text = """
from contextlib import asynccontextmanager
class Failing(EchoServer):
    @asynccontextmanager
    async def running(self):
        raise KeyError("plain")
        yield self
stdio_server.run(Failing())
"""
    status, out, err, _ = start(*program(SERVER + text)).end()

    assert (1, b"") == (status, out)
    assert err.endswith("KeyError: 'plain'\n")


def test_a_lifespan_that_does_not_end_does_not_keep_the_process(start: Callable[..., Served]) -> None:
    text = """
from contextlib import asynccontextmanager
class Endless(EchoServer):
    @asynccontextmanager
    async def running(self):
        yield self
        time.sleep(60)
stdio_server.run(Endless())
"""
    served = start(*program(SERVER + text))
    served.ask("echo")
    served.answer()
    served.close_input()
    status, _, err, took = served.end()

    assert 0 == status
    assert "ending the process: the server did not end in time" in err
    assert took < PROMPTLY


def test_the_last_words_do_not_keep_the_process(start: Callable[..., Served]) -> None:
    text = """
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 65536)
except BlockingIOError:
    os.set_blocking(2, True)
stdio_server.run(EchoServer())
"""
    served = start(*program(SERVER.replace("import", "import", 1) + text))
    served.ask("echo")
    served.answer()
    served.ask("block")  # which cannot even say that it waits
    served.process.send_signal(signal.SIGTERM)
    begin = time.monotonic()

    assert 0 == served.process.wait(PATIENCE_SECONDS)
    assert time.monotonic() - begin < PROMPTLY


def test_serving_can_be_cancelled(start: Callable[..., Served]) -> None:
    text = """
import anyio
async def main():
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(stdio_server.serve_stdio, EchoServer())
            await anyio.sleep(0.1)
            scope.cancel()
    print("cancelled", flush=True)
for backend in ("asyncio", "trio"):
    anyio.run(main, backend=backend)
"""
    assert (0, b"cancelled\ncancelled\n") == start(*program(SERVER + text)).end()[:2]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(LookupError):
        stdio_server.run(echo_server.EchoServer(), backend="curio")


# The command.

FILE: Final = f"{SERVER}\nprint('while loading')\n"
MCPGEN: Final = ("-c", "import sys; from mcpgen.cli import main; sys.argv[0] = 'mcpgen'; main()", "serve")


@pytest.fixture
def serve(start: Callable[..., Served], tmp_path: Path) -> Callable[..., Served]:
    def begin(text: str, target: str = "demo.py", **options: Any) -> Served:
        (tmp_path / "demo.py").write_text(FILE + text, encoding="utf-8")
        return start(*MCPGEN, target, cwd=tmp_path, **options)

    return begin


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("anything = EchoServer()", "demo.py"),
        ("anything = EchoServer()", "./demo.py"),
        ("anything = EchoServer()", "demo"),
        ("anything = another = EchoServer()", "demo.py"),
        ("app = EchoServer()\nother = 'no server'", "demo.py"),
        ("other = object()\nserver = EchoServer()", "demo.py"),
        ("other = EchoServer(None)\nmine = EchoServer()", "demo.py:mine"),
        ("other = EchoServer(None)\nmine = EchoServer()", "demo:mine"),
        ("class Holder:\n    mine = EchoServer()", "demo.py:Holder.mine"),
        ("server = EchoServer()\nif __name__ == '__main__':\n    stdio_server.run(server)", "demo.py"),
    ],
)
def test_a_server_is_found_and_nothing_but_protocol_is_written(
    serve: Callable[..., Served], text: str, target: str
) -> None:
    served = serve(text, target)
    served.ask("print", "said")

    assert {"id": 1, "done": None} == served.answer()
    served.close_input()
    status, out, err, _ = served.end()
    assert (0, b"") == (status, out)
    assert "while loading\n" in err


@pytest.mark.parametrize("name", ["server", "mcp", "app"])
def test_of_several_servers_the_usual_name_is_meant(serve: Callable[..., Served], name: str) -> None:
    text = """
class Marked(EchoServer):
    def connect(self, writer, spawner):
        writer.write(b'"the one"')
        return super().connect(writer, spawner)
other = EchoServer()
"""
    assert "the one" == serve(f"{text}{name} = Marked()\nlast = EchoServer()").answer()


URL_COMPLAINT = (
    "Error: `serve` runs a Python file, and this is a URL; to look at a running server, use `mcpgen inspect URL`."
)


@pytest.mark.parametrize(
    ("text", "target", "complaint"),
    [
        ("", "missing.py", "Error: There is no file missing.py."),
        ("", "missing.py:server", "Error: There is no file missing.py."),
        ("", "folder/missing", "Error: There is no file folder/missing."),
        ("", "missing", "Error: There is no file or module missing."),
        ("", "missing.part:server", "Error: There is no file or module missing.part."),
        ("", "m:server", "Error: There is no file or module m."),
        ("", "m:server.py", "Error: There is no file m:server.py."),
        ("", ".", "Error: . is a folder; give a Python file, such as server.py."),
        ("", "./", "Error: ./ is a folder; give a Python file, such as server.py."),
        ("", "demo..part", "Error: There is no file or module 'demo..part'."),
        ("", ":server", "Error: There is no file or module ''."),
        ("", "http://127.0.0.1:9/mcp", URL_COMPLAINT),
        ("", "https://example.com/mcp", URL_COMPLAINT),
        (
            "",
            "demo.py",
            'Error: There is no server in demo.py. Define one, such as: server = Server("name", version="1")',
        ),
        (
            "one = EchoServer()\ntwo = EchoServer()",
            "demo.py",
            "Error: There are several servers in demo.py. Choose one: demo.py:one or demo.py:two",
        ),
        ("one = EchoServer()", "demo.py:two", "Error: There is no `two` in demo.py. Its servers: demo.py:one"),
        (
            "one = EchoServer()",
            "demo.py:one.two",
            "Error: There is no `one.two` in demo.py. Its servers: demo.py:one",
        ),
        ("one = 'text'", "demo.py:one", "Error: `one` in demo.py is not a Server; it is of type str."),
        (
            "one = EchoServer()\ntext = 'x'",
            "demo.py:text",
            "Error: `text` in demo.py is not a Server; it is of type str. Its servers: demo.py:one",
        ),
        ("", "demo.py:EchoServer", "Error: `EchoServer` in demo.py is not a Server; it is a class."),
        (
            "def make():\n    return one",
            "demo.py:make",
            (
                "Error: `make` in demo.py is not a Server; it is of type function. If it returns a Server, write "
                "`server = make()` in the file."
            ),
        ),
        (
            "from mcpgen import Server\napp = Server('s').asgi()",
            "demo.py:app",
            "Error: `app` in demo.py is not a Server; it is of type Application. Run it with: uvicorn demo:app",
        ),
        (
            "from mcpgen import Server\napp = Server('s').asgi()",
            "demo:app",
            "Error: `app` in demo is not a Server; it is of type Application. Run it with: uvicorn demo:app",
        ),
    ],
)
def test_what_cannot_be_served_is_explained(
    serve: Callable[..., Served], text: str, target: str, complaint: str
) -> None:
    status, out, err, _ = serve(text, target).end()

    assert (2, b"") == (status, out)
    assert complaint == err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("target", ["demo.py", "demo"])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("undefined", "NameError: name 'undefined' is not defined"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("def", "SyntaxError: invalid syntax"),
    ],
)
def test_a_file_that_raises_shows_its_own_traceback(
    serve: Callable[..., Served], text: str, error: str, target: str
) -> None:
    status, out, err, _ = serve(text, target).end()

    *traceback, complaint = err.splitlines()
    assert (2, b"") == (status, out)
    assert f"Error: {target} cannot be loaded: it raised {error.partition(':')[0]}." == complaint
    assert error == traceback[-1]
    assert "demo.py" in err
    assert "serve_commands" not in err
    assert "importlib" not in err


def test_a_file_with_relative_imports_is_told_to_be_named_as_a_module(serve: Callable[..., Served]) -> None:
    status, _, err, _ = serve("from .shop import server", "demo.py").end()

    assert 2 == status
    assert err.splitlines()[-1].endswith(" Or serve the module: mcpgen serve package.module:OBJECT")


_LIFESPAN = """
from contextlib import asynccontextmanager
from mcpgen import Server

@asynccontextmanager
async def life(_):
    {}

server = Server("demo", lifespan=life)
"""


def test_a_lifespan_that_raises_shows_its_own_traceback(serve: Callable[..., Served]) -> None:
    status, out, err, _ = serve(_LIFESPAN.format("yield 1 / 0"), "demo.py").end()

    assert (1, b"") == (status, out)
    loading, head, frame, *_ = err.splitlines()
    assert ("while loading", "Traceback (most recent call last):") == (loading, head)
    assert "demo.py" in frame
    assert err.endswith(
        "ZeroDivisionError: division by zero\n"
        "Error: demo.py: the server has stopped, because its code raised ZeroDivisionError.\n"
    )


def test_a_lifespan_without_a_yield_is_named(serve: Callable[..., Served]) -> None:
    status, _, err, _ = serve(_LIFESPAN.format("if not _: yield"), "demo.py").end()

    assert 1 == status
    assert "while loading\nError: demo.py: the lifespan life() did not yield; yield one value.\n" == err


@pytest.mark.parametrize("target", ["demo.py", "demo"])
def test_a_file_that_uses_mcpgen_wrongly_shows_its_own_line(serve: Callable[..., Served], target: str) -> None:
    text = "from mcpgen import Server\nserver = Server('s')\n\n\n@server.tool\ndef f(x): return x\n"
    status, out, err, _ = serve(text, target).end()

    number = FILE.count("\n") + 5
    reason = "parameter `x` of demo.f() has no annotation; write its type, such as `x: str`"
    assert (2, b"") == (status, out)
    assert f"Error: demo.py:{number}: {reason}." == err.splitlines()[-1]
    assert "Traceback" not in err


def test_a_file_that_is_not_python_is_named(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("", encoding="utf-8")
    status, out, err, _ = serve("", "shop.txt").end()

    assert (2, b"", "Error: shop.txt is not a Python file.\n") == (status, out, err)


def test_a_file_that_serves_itself_while_it_is_loaded_is_told_how_not_to(serve: Callable[..., Served]) -> None:
    status, out, err, _ = serve(
        "from mcpgen.runtime.transports import stdio_server\nstdio_server.run(EchoServer())"
    ).end()

    assert (2, b"") == (status, out)
    assert 'call run() only under: if __name__ == "__main__"' in err


def test_a_file_can_import_its_neighbours(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("name = 'here'\n", encoding="utf-8")
    served = serve("import neighbour\nserver = EchoServer()")
    served.ask("echo", "found")

    assert "found" == served.answer()["done"]


def test_annotations_of_a_file_can_be_looked_up(serve: Callable[..., Served]) -> None:
    text = """
import typing
class Named:
    pass
def tool(a: 'Named'): ...
assert typing.get_type_hints(tool) == {'a': Named}
import sys
assert sys.modules[__name__].Named is Named
server = EchoServer()
"""
    served = serve(text)
    served.ask("echo", "found")

    assert "found" == served.answer()["done"]


def test_the_command_ends_within_a_second_of_a_signal(serve: Callable[..., Served]) -> None:
    served = serve("server = EchoServer()")
    served.ask("hang")
    served.says("waiting")
    served.process.send_signal(signal.SIGTERM)
    status, _, _, took = served.end()

    assert 0 == status
    assert took < PROMPTLY


def test_anyio_is_new_enough_to_wait_for_descriptors() -> None:
    assert hasattr(anyio, "wait_readable")
