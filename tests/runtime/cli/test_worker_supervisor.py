"""``mcpgen serve --workers``: processes that serve one address, and that end and are replaced as they must."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from click.testing import CliRunner

from mcpgen.runtime.cli.serve_command import serve
from tests.harness.redis_servers import needs_redis, redis_server
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.harness.redis_servers import RedisServer

_FILE = """
import os
import sys

import anyio
from mcpgen import Limits, Server

server = Server("demo", version="1", limits=Limits(grace_seconds=40))


@server.tool
def pid() -> str:
    return str(os.getpid())


@server.tool
async def slow() -> str:
    print("slow has begun", file=sys.stderr, flush=True)
    await anyio.sleep(4)
    return "done"


@server.tool
async def endless() -> None:
    print("endless has begun", file=sys.stderr, flush=True)
    await anyio.sleep_forever()
"""

_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Connection": "close",
}


class Site:
    """A supervisor and its workers."""

    def __init__(self, file: Path, redis: str, workers: int) -> None:
        command = [sys.executable, "-m", "mcpgen", "serve", str(file), "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, "--workers", str(workers), "--redis", redis], stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.until(lambda: sum("serving" in each for each in self.lines) == workers)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", self.lines[0])
        assert found
        self.port, self.url = int(found[1]), found[0]

    def _read(self) -> None:
        assert self.process.stderr
        with suppress(ValueError):
            for line in self.process.stderr:
                self.lines.append(line)

    def until(self, is_so: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < until, self.lines
            time.sleep(0.02)

    def call(self, tool: str = "pid") -> str:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": {}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        said = httpx.post(self.url, headers={**_HEADERS, "Mcp-Name": tool}, json=body, timeout=PATIENCE_SECONDS)
        found: Any = said.json()["result"]["content"][0]["text"]
        return str(found)

    def seen(self, workers: int) -> set[int]:
        """Return the ids of the processes that answer, when there are so many."""
        found: set[int] = set()

        def is_so() -> bool:
            with suppress(httpx.TransportError):
                found.add(int(self.call()))
            return len(found) == workers

        self.until(is_so)
        return found

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        if self.process.stderr:
            self.process.stderr.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def site(tmp_path: Path, redis: RedisServer) -> Generator[Site]:
    (tmp_path / "server.py").write_text(_FILE, encoding="utf-8")
    found = Site(tmp_path / "server.py", redis.url, 2)
    yield found
    found.stop()


@needs_redis
@pytest.mark.slow
def test_workers_serve_one_address_and_end_with_the_signal(site: Site) -> None:
    workers = site.seen(2)
    assert site.process.pid not in workers
    site.process.terminate()

    assert 0 == site.process.wait(PATIENCE_SECONDS)
    assert [False, False] == [is_alive(each) for each in workers]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", site.port))


@needs_redis
@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(site: Site) -> None:
    killed, other = site.seen(2)
    os.kill(killed, signal.SIGKILL)
    site.until(lambda: sum("serving" in each for each in site.lines) == 3)

    assert other in site.seen(2)
    assert [True] == ["status -9" in each for each in site.lines if "another one replaces it" in each]


@needs_redis
@pytest.mark.slow
def test_workers_end_with_a_supervisor_that_is_killed(site: Site) -> None:
    workers = site.seen(2)
    site.process.kill()

    site.until(lambda: not any(map(is_alive, workers)))


@needs_redis
@pytest.mark.slow
def test_a_running_call_is_answered_within_the_grace_period(site: Site) -> None:
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(site.call("slow")))
    caller.start()
    site.until(lambda: any("slow has begun" in each for each in site.lines))
    site.process.terminate()
    caller.join(PATIENCE_SECONDS)

    assert ["done"] == answers
    assert 0 == site.process.wait(PATIENCE_SECONDS)


@needs_redis
@pytest.mark.slow
def test_a_second_signal_kills_the_workers_that_are_left(site: Site) -> None:
    workers = site.seen(2)

    def call() -> None:
        with suppress(httpx.TransportError):
            site.call("endless")

    caller = threading.Thread(target=call)
    caller.start()
    site.until(lambda: any("endless has begun" in each for each in site.lines))
    site.process.terminate()
    site.until(lambda: not all(map(is_alive, workers)))
    assert any(map(is_alive, workers))
    site.process.terminate()

    assert 0 == site.process.wait(10 + BUSY_SECONDS)  # the grace period is twice as long
    assert [False, False] == [is_alive(each) for each in workers]
    assert not any("Traceback" in each for each in site.lines)
    caller.join(PATIENCE_SECONDS)


@needs_redis
@pytest.mark.slow
def test_a_file_that_is_wrong_ends_the_supervisor(tmp_path: Path, redis: RedisServer) -> None:
    (tmp_path / "server.py").write_text("raise RuntimeError('no')", encoding="utf-8")
    options = ["--http", "127.0.0.1:0", "--workers", "2", "--redis", redis.url]
    command = [sys.executable, "-m", "mcpgen", "serve", str(tmp_path / "server.py"), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    assert 2 == done.returncode
    assert "it raised RuntimeError" in done.stderr
    assert "replaces it" not in done.stderr


_REDIS = ["--redis", "redis://127.0.0.1:6379"]
_HTTP = ["--http", "127.0.0.1:0"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([*_HTTP, "--workers", "2"], "`--workers 2` needs `--redis URL`: without it, a worker refuses the requests of"),
        ([*_REDIS, "--workers", "2"], "`--workers` and `--redis` are for HTTP: add `--http HOST:PORT`."),
        (_REDIS, "`--workers` and `--redis` are for HTTP: add `--http HOST:PORT`."),
        ([*_HTTP, "--redis", "http://x"], "`--redis` is not valid"),
        ([*_HTTP, *_REDIS, "--workers", "2", "--reload"], "`--reload` is for one worker: leave `--workers` out."),
        ([*_HTTP, *_REDIS, "--workers", "0"], "Invalid value for '--workers'"),
    ],
)
def test_options_that_contradict_each_other_are_explained(options: list[str], reason: str) -> None:
    done = CliRunner().invoke(serve, ["server.py", *options])

    assert 2 == done.exit_code
    assert reason in done.output
