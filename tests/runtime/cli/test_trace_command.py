"""``mcpgen trace`` as a host runs it: what passes, what is told, and how it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.runtime.cli.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.runtime.cli.terminals import Terminal

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"), pytest.mark.slow]

SERVER = '''
from mcpgen import Server

server = Server("demo", version="1.0")


@server.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


server.run()
'''

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"c","version":"1"}}}\n'
)
CALL = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}\r\n'
)

# Says what happens to it, on standard error.
STUBBORN = """
import signal, sys, time
def heard(number, frame): print("heard", number, file=sys.stderr, flush=True)
signal.signal(signal.SIGTERM, heard)
print("ready", file=sys.stderr, flush=True)
while True: time.sleep(60)
"""

LAST_WORDS = """
import sys
print("ready", file=sys.stderr, flush=True)
sys.stdin.read()
print("bye", file=sys.stderr, flush=True)
sys.exit(5)
"""


@pytest.fixture
def start() -> Generator[Callable[..., Traced]]:
    started: list[Traced] = []

    def begin(*arguments: str, **options: Any) -> Traced:
        started.append(Traced(*arguments, **options))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@pytest.fixture
def server(tmp_path: Path) -> str:
    path = tmp_path / "a server.py"
    path.write_text(SERVER, encoding="utf-8")
    return str(path)


def test_a_server_is_spoken_to_through_it(start: Callable[..., Traced], server: str) -> None:
    traced = start("--", sys.executable, server)
    traced.write(INITIALIZE)
    first = json.loads(traced.line())
    status, out, err = traced.end(CALL)

    assert "2025-06-18" == first["result"]["protocolVersion"]
    assert "hi" == json.loads(out)["result"]["content"][0]["text"]
    assert 0 == status
    assert ["InitializeRequestParams", "InitializeResult", "CallToolRequestParams", "CallToolResult"] == [
        line.partition("2025-06-18 ")[2].split()[0] for line in err.splitlines()[:-1]
    ]
    assert err.endswith("mcpgen trace: 4 messages, no violations; the server has exited with status 0\n")


def test_a_command_may_be_one_word(start: Callable[..., Traced], server: str) -> None:
    traced = start(f'{sys.executable} "{server}"')
    traced.write(INITIALIZE)

    assert b'"2025-06-18"' in traced.line()
    assert 0 == traced.end()[0]


def test_options_behind_the_command_are_the_commands(start: Callable[..., Traced]) -> None:
    traced = start(sys.executable, "-c", "import sys; print(sys.argv)", "--json", "--help")

    assert b"['-c', '--json', '--help']\n" == traced.line()
    assert (0, b"") == traced.end()[:2]


def test_every_byte_passes_as_it_came(start: Callable[..., Traced]) -> None:
    chosen = random.Random(7)  # noqa: S311 (noise that is the same each time)
    noise = b"".join(
        chosen.choice(
            [b"\n", b"\r\n", b"\n\n", b'{"a":1}', b"\0\xff\xc3\x1b[2J", chosen.randbytes(300), INITIALIZE, b" "]
        )
        for _ in range(3000)
    )
    status, out, _ = start("--", "cat").end(noise)

    assert (0, noise) == (status, out)


def test_what_is_longer_than_the_limit_passes_too(start: Callable[..., Traced]) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 5 * 1024 * 1024 + b'"}\n'
    status, out, err = start("--", "cat").end(line)

    assert (0, line) == (status, out)
    assert f"the message is too long to check: {len(line) - 1:,} bytes" in err


def test_an_unfinished_line_passes_and_is_told(start: Callable[..., Traced]) -> None:
    status, out, err = start("--", "cat").end(b"half a li")

    assert (0, b"half a li") == (status, out)
    assert 2 == err.count("malformed")


@pytest.mark.parametrize(("how", "expected"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137), ("pass", 0)])
def test_the_exit_status_is_the_servers(start: Callable[..., Traced], how: str, expected: int) -> None:
    traced = start("--", sys.executable, "-c", f"import os, sys; {how}")

    assert expected == traced.process.wait(PATIENCE_SECONDS)  # though our end of its input is open


@pytest.mark.parametrize(("data", "expected"), [(INITIALIZE, 1), (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', 0)])
def test_with_strict_the_exit_status_tells_of_violations(
    start: Callable[..., Traced], data: bytes, expected: int
) -> None:
    # "cat" would send back what only a client may send.
    answer = 'import sys; sys.stdin.readline(); print(\'{"jsonrpc":"2.0","id":1,"result":{}}\')'

    traced = start("--strict", "--", sys.executable, "-c", answer)
    traced.write(data)
    traced.line()

    assert expected == traced.end()[0]


def test_a_banner_passes_and_is_a_violation(start: Callable[..., Traced]) -> None:
    status, out, err = start("--", "echo", "Server\x1b[2J ready").end()

    assert (0, b"Server\x1b[2J ready\n") == (status, out)
    assert "✗ the message is not JSON" in err
    assert "Server\\x1b[2J ready" in err


def test_what_a_server_prints_comes_out_on_our_errors(start: Callable[..., Traced]) -> None:
    program = "import sys; sys.stderr.buffer.write(b'one\\ntwo \\xff'); sys.stderr.flush(); print('{}')"
    traced = start("--", sys.executable, "-c", program)
    traced.line()
    _, err = traced.process.communicate(timeout=PATIENCE_SECONDS)

    assert b"one\n" in err
    assert b"two \xff" in err


def test_each_line_of_json_is_an_object(start: Callable[..., Traced], server: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"before":1}\n', encoding="utf-8")
    traced = start("--json", "--output", str(log), "--", sys.executable, server)
    traced.write(INITIALIZE)
    traced.line()  # a server that is still starting would get SIGTERM two seconds after the end of its input
    status, _, err = traced.end(CALL + b"nonsense\n")
    before, *lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    assert (0, {"before": 1}) == (status, before)
    assert json.loads(INITIALIZE) == lines[0]["message"]
    assert {"request", "response", "malformed"} == {each["kind"] for each in lines}
    assert "mcpgen trace" not in err


def test_what_is_told_is_in_the_file_at_once(start: Callable[..., Traced], server: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    traced = start("--output", str(log), "--", sys.executable, server)
    traced.write(INITIALIZE)
    traced.line()
    traced.write(CALL)
    traced.line()

    assert "CallToolRequestParams" in log.read_text(encoding="utf-8")
    assert 0 == traced.end()[0]


def test_a_slow_reader_of_the_trace_holds_up_nothing(start: Callable[..., Traced]) -> None:
    traced = start("--body", "--", "cat")
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"%s"}}}\n' % (b"x" * 10_000)
    for _ in range(100):
        traced.write(ping)
        assert ping == traced.line()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_then_us(start: Callable[..., Traced], number: signal.Signals) -> None:
    traced = start("--", sys.executable, "-c", LAST_WORDS)
    traced.says("ready")
    traced.process.send_signal(number)

    assert 5 == traced.process.wait(PATIENCE_SECONDS)
    assert "bye" in traced.says("status 5")


def test_a_server_that_does_not_want_to_end_is_killed(start: Callable[..., Traced]) -> None:
    traced = start("--", sys.executable, "-c", STUBBORN)
    traced.says("ready")
    begin = time.monotonic()
    traced.process.send_signal(signal.SIGINT)
    traced.says("heard 15")

    assert 128 + signal.SIGKILL == traced.process.wait(PATIENCE_SECONDS)
    assert time.monotonic() - begin < 2 + BUSY_SECONDS


def test_closing_our_input_closes_the_servers(start: Callable[..., Traced]) -> None:
    traced = start("--", sys.executable, "-c", LAST_WORDS)
    traced.says("ready")
    status, _, err = traced.end()

    assert 5 == status
    assert "bye\n" in err


def test_it_ends_when_its_output_has_no_reader(start: Callable[..., Traced]) -> None:
    traced = start("--", "cat")
    traced.write(b"x\n")
    assert b"x\n" == traced.line()
    assert traced.process.stdout is not None
    traced.process.stdout.close()
    traced.write(b"y\n")

    assert 0 == traced.process.wait(PATIENCE_SECONDS)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that Linux has")
def test_a_file_that_cannot_be_written_is_reported_and_the_messages_pass(start: Callable[..., Traced]) -> None:
    status, out, err = start("--output", "/dev/full", "--", "cat").end(b"x\n")

    assert (1, b"x\n") == (status, out)
    assert "Error: the trace is incomplete (`--output`): No space left on device.\n" == err


def test_what_a_server_leaves_behind_is_ended(start: Callable[..., Traced]) -> None:
    program = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, file=sys.stderr, flush=True)"
    traced = start("--", sys.executable, "-c", program)
    left = int(traced.says("\n").split()[0])
    traced.end()

    until = time.monotonic() + PATIENCE_SECONDS
    while Path(f"/proc/{left}").exists() and b") Z" not in Path(f"/proc/{left}/stat").read_bytes():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Missing argument"),
        (["no-such-program"], "'no-such-program' cannot be started"),
        (["'unbalanced"], "cannot be split"),
        ([" "], "empty"),
        (["--json", "--body", "--", "cat"], "not both"),
        (["--output", "/no/such/folder/x", "--", "cat"], "Cannot write /no/such/folder/x"),
        (
            ["--extension", "no_such", "--", "cat"],
            "there is no module no_such. Install it, or run the command in the folder",
        ),
        (
            ["--extension", "json", "--", "cat"],
            "`--extension json` cannot be used: the package json is not that of an extension; name one that `mcpgen",
        ),
    ],
)
def test_wrong_usage_is_explained(start: Callable[..., Traced], arguments: list[str], complaint: str) -> None:
    status, out, err = start(*arguments).end()

    assert (2, b"") == (status, out)
    assert complaint in err


def test_at_a_terminal_it_says_what_it_waits_for(at_terminal: Callable[..., Terminal]) -> None:
    opened = at_terminal("trace", "--", sys.executable, "-c", "import sys; sys.stdin.read()", width=200)
    opened.sees("mcpgen trace: waits for messages of a host on standard input. Put this command into the configuration")
    opened.sees("Ctrl-C stops it.\n")
    opened.types("\x03")
    _, out, seen = opened.end()

    assert "" == out
    assert 1 == seen.count("waits for messages")


@pytest.mark.parametrize(
    ("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_they_are_not_wanted(
    start: Callable[..., Traced], environment: dict[str, str], *, is_coloured: bool
) -> None:
    host, terminal = os.openpty()
    program = "import sys; sys.stderr.write('\\x1b[2J\\rprinted\\n'); print('hello')"
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env |= {"TERM": "xterm", **environment}
    traced = start("--", sys.executable, "-c", program, stderr=terminal, env=env)
    os.close(terminal)
    out = traced.line()
    status = traced.process.wait(PATIENCE_SECONDS)
    text = os.read(host, 1 << 16).decode()
    os.close(host)

    assert (b"hello\n", 0) == (out, status)
    assert is_coloured == ("\x1b[31m" in text)
    assert "\x1b[2J" not in text
    assert "\\x1b[2J\r\nprinted\r\n" in text
