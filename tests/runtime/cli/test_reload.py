"""``mcpgen serve --reload``: a changed file takes effect, on stdio within the connection of the host."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, Self, cast

import anyio
import anyio.lowlevel
import pytest
from click.testing import CliRunner

from mcpgen import RequestRefused, connect
from mcpgen.runtime.cli.serve_command import serve
from mcpgen.runtime.cli.server import reloader
from mcpgen.runtime.cli.server.source_changes import SourceChanges
from mcpgen.runtime.transports.process_transport import Process
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")]

WHO: Final[dict[str, object]] = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
MCPGEN: Final = (sys.executable, "-m", "mcpgen", "serve", "--reload")
SOURCE: Final = """
import anyio

from mcpgen import Server

server = Server("changing")


@server.tool
def say() -> str:
    return "SAID"


@server.tool
async def hang() -> str:
    await anyio.sleep_forever()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "changing.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


class Lines:
    """The lines of a standard error, which a test waits for."""

    def __init__(self) -> None:
        self._queue = queue.SimpleQueue[str]()
        self.add = self._queue.put

    def read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self.add(line)

    def until(self, text: str) -> str:
        """Return the next line that contains *text*."""
        return self.all_until(text)[-1]

    def all_until(self, text: str) -> list[str]:
        """Return the lines to the next one that contains *text*."""
        seen = []
        while True:
            try:
                seen.append(self._queue.get(timeout=PATIENCE_SECONDS))
            except queue.Empty:
                raise AssertionError(seen) from None
            if text in seen[-1]:
                return seen

    async def wait_for(self, text: str) -> str:
        return await anyio.to_thread.run_sync(self.until, text)


class RawHost:
    """A host of 2026-07-28 on stdio, which shows each message that it gets."""

    def __init__(self, file: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*MCPGEN, "-v", str(file)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.messages, self.log = Lines(), Lines()
        self._readers = [
            threading.Thread(target=lines.read, args=[stream], daemon=True)
            for stream, lines in ((self.process.stdout, self.messages), (self.process.stderr, self.log))
        ]
        for each in self._readers:
            each.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(PATIENCE_SECONDS)
        for each in self._readers:
            each.join(PATIENCE_SECONDS)

    def say(self, method: str, request_id: int | None = None, **params: object) -> None:
        assert self.process.stdin
        meta = {f"io.modelcontextprotocol/{key}": value for key, value in WHO.items()}
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}}
        if request_id is not None:
            message["id"] = request_id
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answers(self, request_id: int) -> list[dict[str, Any]]:
        """Call a tool, and return what came before its result, which comes last."""
        self.say("tools/call", request_id, name="say", arguments={})
        *before, last = map(json.loads, self.messages.all_until(f'"id":{request_id},'))
        assert "error" not in last
        return before

    def restart(self, file: Path) -> None:
        change(file, "other")
        self.log.until("changed;")


def change(file: Path, said: str) -> None:
    file.write_text(SOURCE.replace("SAID", said), encoding="utf-8")


def break_(file: Path) -> None:
    file.write_text("def", encoding="utf-8")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_a_host_on_stdio_keeps_its_connection_while_the_server_changes(revision: str, file: Path) -> None:
    lines = Lines()
    host = Process([*MCPGEN, "--verbose", str(file)], on_stderr=lines.add)

    async def main() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(host, revisions=[revision]) as client:
                assert "SAID" == (await client.call_tool("say")).data
                change(file, "other")
                assert "mcpgen: changing.py changed; restarting the server" == await lines.wait_for("changed;")
                assert "other" == (await client.call_tool("say")).data

    anyio.run(main)


def test_a_host_is_told_that_the_lists_may_have_changed(file: Path) -> None:
    async def main() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with (
                connect(Process([*MCPGEN, str(file)]), revisions=["2025-11-25"]) as client,
                client.listen(tools=True) as changes,
            ):
                await client.call_tool("say")
                change(file, "other")
                assert "tools" == (await anext(changes)).kind

    anyio.run(main)


def test_an_open_request_gets_an_error_when_the_server_restarts(file: Path) -> None:
    lines = Lines()
    host = Process([*MCPGEN, "-v", str(file)], on_stderr=lines.add)

    async def main() -> str:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(host, revisions=["2025-11-25"]) as client, anyio.create_task_group() as group:

                async def touch() -> None:
                    await lines.wait_for("→ tools/call hang")
                    change(file, "other")

                group.start_soon(touch)
                with pytest.raises(RequestRefused) as caught:
                    await client.call_tool("hang")
                return caught.value.message

    assert "the server was restarted because a file changed; send the request again" == anyio.run(main)


@spec("2026-07-28", "basic/transports/stdio#cancellation", "49064d3a")
def test_a_cancelled_request_gets_no_error_when_the_server_restarts(file: Path) -> None:
    with RawHost(file) as host:
        host.say("tools/call", 1, name="hang", arguments={})
        host.log.until("→ tools/call hang")
        host.say("notifications/cancelled", requestId=1)
        host.restart(file)

        assert [] == host.answers(2)


@spec("2026-07-28", "basic/patterns/cancellation", "6f10bbf7")
@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "8a3e54e0")
def test_a_stream_of_changes_ends_in_order_when_the_server_restarts(file: Path) -> None:
    with RawHost(file) as host:
        host.say("subscriptions/listen", 1, notifications={"toolsListChanged": True})
        host.messages.until("acknowledged")
        host.restart(file)
        cancelled, result = host.answers(2)

    assert ("notifications/cancelled", 1) == (cancelled["method"], cancelled["params"]["requestId"])
    assert (1, "complete") == (result["id"], result["result"]["resultType"])


def test_while_the_file_is_broken_each_request_gets_an_error(file: Path) -> None:
    lines = Lines()
    host = Process([*MCPGEN, str(file)], on_stderr=lines.add)

    async def main() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(host, revisions=["2025-11-25"]) as client:
                await client.call_tool("say")
                break_(file)
                await lines.wait_for("SyntaxError: invalid syntax")
                await lines.wait_for("mcpgen: the server has exited; it starts again when a file changes")
                with pytest.raises(RequestRefused, match="the server has exited, and starts again when a file changes"):
                    await client.call_tool("say")
                change(file, "mended")
                await lines.wait_for("changed;")
                assert "mended" == (await client.call_tool("say")).data

    anyio.run(main)


def test_clients_learn_which_exception_a_handler_raised(file: Path) -> None:
    file.write_text(SOURCE.replace('return "SAID"', 'raise ValueError("the reason")'), encoding="utf-8")

    async def main() -> str:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(Process([*MCPGEN, str(file)])) as client:
                return (await client.call_tool("say")).text

    assert "ValueError: the reason" in anyio.run(main)


def test_the_end_of_the_input_ends_the_server_too(file: Path) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    done = subprocess.run([*MCPGEN, str(file)], input=ping, capture_output=True, check=False, timeout=PATIENCE_SECONDS)

    assert (0, b'{"jsonrpc":"2.0","id":1,"result":{}}\n', b"") == (done.returncode, done.stdout, done.stderr)


# Over HTTP


@pytest.fixture
def run(file: Path) -> Generator[Callable[..., tuple[subprocess.Popen[str], Lines]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> tuple[subprocess.Popen[str], Lines]:
        process = subprocess.Popen(
            [*MCPGEN, str(file), "--http", "127.0.0.1:0", *options], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        lines = Lines()
        threading.Thread(target=lines.read, args=[process.stderr], daemon=True).start()
        return process, lines

    yield begin
    for each in started:
        each.terminate()  # it ends its child
        each.wait(PATIENCE_SECONDS)
        assert each.stderr
        each.stderr.close()


async def said_at(url: str) -> Any:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(url) as client:
            return (await client.call_tool("say")).data


def test_a_server_over_http_restarts_at_the_same_address(
    file: Path, run: Callable[..., tuple[subprocess.Popen[str], Lines]]
) -> None:
    _, lines = run("--path", "/x")
    url = lines.until("http://").split()[-1]
    assert url.endswith("/x")
    assert "SAID" == anyio.run(said_at, url)
    change(file, "other")
    lines.until("mcpgen: changing.py changed; restarting the server")

    assert url == lines.until("http://").split()[-1]
    assert "other" == anyio.run(said_at, url)


def test_a_server_over_http_that_is_broken_starts_again_at_the_next_change(
    file: Path, run: Callable[..., tuple[subprocess.Popen[str], Lines]]
) -> None:
    _, lines = run()
    url = lines.until("http://").split()[-1]
    break_(file)
    lines.until("mcpgen: the server has exited with status 2; it starts again when a file changes")
    change(file, "mended")
    lines.until("http://")

    assert "mended" == anyio.run(said_at, url)


def test_a_signal_ends_the_server_over_http(run: Callable[..., tuple[subprocess.Popen[str], Lines]]) -> None:
    process, lines = run()
    port = int(lines.until("http://").split(":")[-1].partition("/")[0])
    process.send_signal(signal.SIGTERM)

    assert 0 == process.wait(PATIENCE_SECONDS)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it is closed before it has accepted the connection
        return False
    return True


@pytest.mark.parametrize("is_changed", [False, True], ids=["running", "after a restart"])
def test_a_server_over_http_ends_when_its_parent_is_killed(
    file: Path, run: Callable[..., tuple[subprocess.Popen[str], Lines]], *, is_changed: bool
) -> None:
    process, lines = run()
    url = lines.until("http://").split()[-1]
    if is_changed:
        change(file, "other")
        lines.until("http://")
    process.kill()
    process.wait(PATIENCE_SECONDS)
    port, deadline = int(url.split(":")[-1].partition("/")[0]), time.monotonic() + PATIENCE_SECONDS
    while is_open(port):
        assert time.monotonic() < deadline, "the server did not end with its parent"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("missing.py", [], "There is no file missing.py."),
        ("a b", [], "There is no file or module 'a b'."),
        ("FILE", ["--http", "8000"], "'8000' is not HOST:PORT, such as"),
        ("FILE", ["--http", "192.0.2.1:0"], "cannot listen on 192.0.2.1:0"),
        ("FILE", ["--path", "/x"], "are for HTTP: add `--http HOST:PORT`."),
    ],
)
def test_what_cannot_be_reloaded_is_explained(target: str, options: list[str], reason: str, file: Path) -> None:
    done = CliRunner().invoke(serve, ["--reload", str(file) if target == "FILE" else target, *options])

    assert 2 == done.exit_code
    assert reason in done.output


def test_without_the_extra_the_command_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = CliRunner().invoke(serve, ["--reload", str(file)])

    expected = "Error: `--reload` needs the module 'watchfiles', which is not installed.\n"
    assert (2, f'{expected}Install it with: pip install "mcpgen[reload]"\n') == (done.exit_code, done.output)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_whose_name_is_not_utf_8_does_not_end_the_watch(tmp_path: Path) -> None:
    changes = SourceChanges(tmp_path)

    async def first_change() -> str:
        async for names in changes:
            if names:
                changes.stop()
                return names
        return "none"

    async def write() -> None:
        for name in (b"\xff.txt", b"seen.py") * 1000:
            (tmp_path / os.fsdecode(name)).touch()
            await anyio.sleep(0.1)

    async def watch() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            with anyio.fail_after(PATIENCE_SECONDS):
                names = await first_change()
            group.cancel_scope.cancel()
            return names

    assert "seen.py" == anyio.run(watch)


def test_a_change_right_after_the_announcement_is_noticed(file: Path) -> None:
    changes = SourceChanges(file.parent)

    async def main() -> list[str]:
        seen = []
        with anyio.fail_after(PATIENCE_SECONDS):
            async for names in changes:
                seen.append(names)
                if names:
                    changes.stop()
                else:
                    change(file, "other")
        return seen

    assert ["", "changing.py"] == anyio.run(main)[:2]


def test_bytecode_of_the_same_size_and_second_is_not_used(file: Path) -> None:
    folder, changes = file.parent, SourceChanges(file.parent)
    script = (sys.executable, "-c", "import changing, sys; sys.stdout.write(changing.SAID)")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(folder)}

    def write(said: str) -> None:
        file.write_text(f"SAID = {said!r}", encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))

    def said() -> str:
        return subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout

    write("one")
    assert "one" == said()
    assert list(folder.rglob("*.pyc"))

    async def main() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async for names in changes:
                if names:
                    changes.stop()
                else:
                    write("two")

    anyio.run(main)

    assert "two" == said()


def test_files_are_watched_before_the_server_over_http_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    is_watched = anyio.Event()

    class Changes:
        async def __aiter__(self) -> AsyncIterator[str]:
            await anyio.lowlevel.checkpoint()
            is_watched.set()
            yield ""

    async def start(_: object) -> NoReturn:
        raise RuntimeError("watched" if is_watched.is_set() else "a change that comes now is not noticed")

    monkeypatch.setattr(reloader, "_start", start)

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="watched")):
        anyio.run(reloader._restart, [], cast("SourceChanges", Changes()))
