"""`Server.run` and `Server.run_async`, and `connect` with the path of a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from mcpgen import Server, UsageError, connect
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

on_posix = pytest.mark.skipif(os.name != "posix", reason="terminals and signals are POSIX's")

SOURCE: Final = """
from mcpgen import Server

server = Server("adder")


@server.tool
def add(a: int, b: int) -> int:
    return a + b
"""
RUNS: Final = SOURCE + 'if __name__ == "__main__":\n    '


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "adder.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


@pytest.fixture
def start(tmp_path: Path) -> Generator[Callable[..., subprocess.Popen[str]]]:
    started: list[tuple[subprocess.Popen[str], threading.Timer]] = []

    def begin(last_line: str, **options: Any) -> subprocess.Popen[str]:
        program = tmp_path / "program.py"
        program.write_text(RUNS + last_line, encoding="utf-8")
        made = subprocess.Popen(
            [sys.executable, program.name], stderr=subprocess.PIPE, text=True, cwd=tmp_path, **options
        )
        # Its end is the end of what a test reads, too.
        timer = threading.Timer(PATIENCE_SECONDS, made.kill)
        timer.start()
        started.append((made, timer))
        return made

    yield begin
    for process, timer in started:
        timer.cancel()
        process.kill()
        process.communicate()


async def add(target: Any) -> Any:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(target) as client:
            return (await client.call_tool("add", {"a": 2, "b": 3})).data


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    line = process.stderr.readline()
    assert line.startswith("mcpgen: serving adder at http://127.0.0.1:"), line
    return line.split()[-1]


@on_posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("last_line", "path"),
    [
        ('server.run(http="127.0.0.1:0")', "/mcp"),
        ('server.run(http="127.0.0.1:0", path="/other")', "/other"),
        ('import asyncio; asyncio.run(server.run_async(http="127.0.0.1:0"))', "/mcp"),
    ],
)
def test_a_server_runs_over_http_in_one_line(
    last_line: str, path: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start(last_line)
    url = url_of(process)

    assert url.endswith(path)
    assert {"result": 5} == anyio.run(add, url)


@on_posix
@pytest.mark.slow
def test_run_over_http_returns_after_a_signal(start: Callable[..., subprocess.Popen[str]]) -> None:
    # On a busy machine, the end of the event loop may take seconds.
    patient = (
        f"from mcpgen.runtime.http.server import uvicorn_server; uvicorn_server._SHUTDOWN_SECONDS = {PATIENCE_SECONDS}"
    )
    process = start(f'{patient}; server.run(http="127.0.0.1:0"); print("returned", file=__import__("sys").stderr)')
    url_of(process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)

    assert (0, "returned\n") == (process.returncode, err)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_server_runs_on_stdio_in_a_running_loop(loop: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RUNS + f"import anyio; anyio.run(server.run_async, backend={loop!r})", encoding="utf-8")

    assert {"result": 5} == anyio.run(add, [sys.executable, str(program)])


CANCELLED: Final = '''
import io
import sys

import anyio

from mcpgen import connect

sys.path.insert(0, "")  # PYTHONSAFEPATH may leave it out
from adder import server


class Lines(io.StringIO):
    """Standard error, which tells when the server is ready."""

    def write(self, text):
        if "http://" in text:
            self.url = text.split()[-1]
            ready.set()
        return sys.__stderr__.write(text)


async def main():
    global ready
    ready = anyio.Event()
    sys.stderr = Lines()
    async with anyio.create_task_group() as serving:
        serving.start_soon(lambda: server.run_async(http="127.0.0.1:0"))
        await ready.wait()
        async with connect(sys.stderr.url, revisions=["2025-11-25"]) as client:
            print((await client.call_tool("add", {"a": 2, "b": 3})).data)
        host, port = sys.stderr.url.split("/")[2].split(":")
        idle = await anyio.connect_tcp(host, int(port))
        await idle.send(f"GET /other HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
        assert (await idle.receive()).startswith(b"HTTP/1.1 404")
        serving.cancel_scope.cancel()
    async with idle:
        try:
            with anyio.fail_after(60):
                print(await idle.receive())
        except anyio.EndOfStream:
            print("closed")


anyio.run(main)
print("over")
'''


@pytest.mark.slow
def test_a_cancelled_server_closes_its_connections_and_its_socket(file: Path) -> None:
    program = file.with_name("cancelled.py")
    program.write_text(CANCELLED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        check=False,
        capture_output=True,
        text=True,
        cwd=file.parent,
        timeout=PATIENCE_SECONDS,
    )

    assert "{'result': 5}\nclosed\nover\n" == done.stdout, done.stderr
    assert 1 == len(done.stderr.splitlines()), done.stderr  # the address, and no traceback


@pytest.mark.parametrize("name", ["run", "run_async"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"http": "8000"}, "'8000' is not HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000"),
        ({"http": 8000}, "8000 is not HOST:PORT, such as"),
        ({"http": "::1:8000"}, "'::1:8000' is not HOST:PORT"),
        ({"http": "192.0.2.1:0"}, "cannot listen on 192.0.2.1:0"),
        ({"http": "127.0.0.1:0", "path": "mcp"}, "`path` is 'mcp'; it must begin with /"),
        ({"http": "127.0.0.1:0", "pth": "/mcp"}, "{name}() has no option `pth`; the options are http, path, "),
        ({"htp": "127.0.0.1:8000"}, "{name}() has no option `htp`; the options are http, path, "),
        ({"path": "/mcp"}, 'the option `path` of {name}() is for HTTP; add the address: http="127.0.0.1:8000"'),
        ({"port": 8000}, "{name}() has no option `port`; to serve over HTTP, give the address: {name}(http="),
        ({"host": "::1", "http": "[::1]:1"}, "{name}() has no option `host`; to serve over HTTP"),
        (
            {"transport": "http"},
            "{name}() has no option `transport`; to serve on stdio, leave it out; to serve over HTTP",
        ),
    ],
)
def test_wrong_options_are_explained(name: str, options: dict[str, Any], reason: str) -> None:
    server = Server("adder")
    run = server.run if name == "run" else lambda **given: anyio.run(lambda: server.run_async(**given))

    with pytest.raises(UsageError) as caught:
        run(**options)

    assert reason.replace("{name}", name) in str(caught.value)


@asynccontextmanager
async def failing_lifespan(_: Server[Any]) -> AsyncGenerator[None]:
    async def fail() -> None:
        raise ConnectionError("the database is gone")

    async with anyio.create_task_group() as group:
        group.start_soon(fail)
        yield


def test_a_lifespan_that_fails_while_the_server_serves_ends_it() -> None:
    scopes: list[anyio.CancelScope] = []

    async def run() -> None:
        with anyio.move_on_after(PATIENCE_SECONDS) as scope:
            scopes.append(scope)
            await Server("adder", lifespan=failing_lifespan).run_async(http="127.0.0.1:0")

    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(run)

    assert caught.group_contains(ConnectionError, match="the database is gone")
    assert [False] == [each.cancel_called for each in scopes]


@pytest.mark.anyio
async def test_after_a_lifespan_has_failed_each_request_raises_its_error() -> None:
    """uvicorn goes on after the lifespan of an application has failed."""
    app = Server("adder", lifespan=failing_lifespan).asgi(health="/health")
    await app._state.open()
    await anyio.wait_all_tasks_blocked()
    for _ in range(2):
        with pytest.raises(ExceptionGroup):
            await app({"type": "http", "path": "/health/live"}, None, None)  # type: ignore[arg-type] # not used


def test_http_in_a_loop_of_trio_is_refused() -> None:
    with pytest.raises(UsageError, match=r"serving over HTTP needs asyncio, because uvicorn does; run this with"):
        anyio.run(lambda: Server("adder").run_async(http="127.0.0.1:0"), backend="trio")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mcpgen.runtime.http.server.uvicorn_server", raising=False)
    monkeypatch.delattr("mcpgen.runtime.http.server.uvicorn_server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    with pytest.raises(UsageError, match=r"HTTP needs the module 'uvicorn', .*: pip install \"mcpgen\[http\]\""):
        Server("adder").run(http="127.0.0.1:0")


HINT: Final = """\
mcpgen: adder is running, and waits for MCP messages on standard input. A host starts it in the same way.
  To see what it offers:   mcpgen inspect program.py
  To serve it over HTTP:   mcpgen serve program.py --http 127.0.0.1:8000
  To stop it:              Ctrl-C
"""


@on_posix
@pytest.mark.slow
@pytest.mark.parametrize(
    "last_line", ["server.run()", "import anyio; anyio.run(server.run_async)"], ids=["run", "run_async"]
)
def test_a_server_at_a_terminal_says_what_it_is(last_line: str, start: Callable[..., subprocess.Popen[str]]) -> None:
    master, slave = os.openpty()
    try:
        process = start(last_line, stdin=slave, stdout=subprocess.DEVNULL)
        assert process.stderr
        said = "".join(process.stderr.readline() for _ in HINT.splitlines())

        assert HINT == said
    finally:
        os.close(slave)
        os.close(master)


@pytest.mark.slow
def test_a_server_that_a_host_starts_says_nothing(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("server.run()", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)

    assert (0, "") == (process.returncode, err)


# The path of a file as the target of `connect`


@pytest.mark.slow
def test_a_client_connects_to_the_path_of_a_file(file: Path) -> None:
    assert {"result": 5} == anyio.run(add, file)


@pytest.mark.slow
def test_a_file_finds_the_modules_that_its_client_finds(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "numbers_of_ours.py").write_text("FIVE = 5\n", encoding="utf-8")
    file.write_text(f"import numbers_of_ours\n{SOURCE}", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))

    assert {"result": 5} == anyio.run(add, file)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.py", "which does not exist"),
        (".", "which is a folder; name a Python file in it"),
        ("server.sh", "which is not a Python file (.py); for a program, pass a command, such as ['"),
    ],
)
def test_a_path_that_is_no_python_file_is_explained(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        connect(tmp_path / name)

    assert f"`target` is the path {str(tmp_path / name)!r}, {reason}" in str(caught.value)
