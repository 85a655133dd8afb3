"""All workers are replaced, one after the other, with SIGTERM and while clients work."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.harness.redis_servers import RedisServer, needs_redis
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_redis, pytest.mark.slow]

_FILE = """
import anyio, os
from mcpgen import Context, Limits, Server

server = Server("restarted", version="1", limits=Limits(grace_seconds=20))


@server.tool
def pid() -> str:
    return str(os.getpid())


@server.tool
async def slow() -> str:
    await anyio.sleep(3)
    return "done"


@server.tool
async def touch(ctx: Context) -> str:
    await ctx.resource_updated("note://a")
    return "touched"


@server.resource("note://a")
def note() -> str:
    return "text"
"""

_HEADERS = {"Accept": "application/json, text/event-stream", "Connection": "close"}


class Worker:
    """One process of ``mcpgen serve``."""

    def __init__(self, file: Path, redis: str) -> None:
        command = [sys.executable, "-m", "mcpgen", "serve", str(file), "--http", "127.0.0.1:0", "--redis", redis]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", self.process.stderr.readline())
        assert found
        self.url = found[0]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


class Session:
    """A client that uses any worker."""

    def __init__(self, url: str) -> None:
        self.headers = dict(_HEADERS)
        info = {"name": "client", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        begun = self.post(url, {"id": 0, "method": "initialize", "params": params})
        self.headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        assert 202 == self.post(url, {"method": "notifications/initialized"}).status_code
        assert (
            200 == self.post(url, {"id": 1, "method": "resources/subscribe", "params": {"uri": "note://a"}}).status_code
        )

    def post(self, url: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.post(url, headers=self.headers, json={"jsonrpc": "2.0", **body}, timeout=PATIENCE_SECONDS)

    def call(self, url: str, tool: str) -> str:
        said = self.post(url, {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
        assert 200 == said.status_code, said.text
        *_, last = said.text.strip().split("data: ")  # a long call is answered on a stream
        found: str = json.loads(last)["result"]["content"][0]["text"]
        return found

    def listen(self, url: str, lines: list[str], begun: threading.Event) -> None:
        """Read the stream of the session until it ends."""
        with httpx.stream("GET", url, headers=self.headers, timeout=PATIENCE_SECONDS) as response:
            assert 200 == response.status_code
            begun.set()
            lines.extend(response.iter_lines())


def test_all_workers_are_replaced_and_the_session_and_its_stream_go_on(redis: RedisServer, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(_FILE, encoding="utf-8")
    redis.command("FLUSHALL")
    with ExitStack() as stack:

        def start() -> Worker:
            made = Worker(tmp_path / "server.py", redis.url)
            stack.callback(made.stop)
            return made

        workers = [start(), start()]
        session = Session(workers[0].url)
        for _ in range(2):  # the first worker has the stream, and is replaced
            old, other = workers
            lines: list[str] = []
            begun, answers = threading.Event(), []
            reader = threading.Thread(target=session.listen, args=(old.url, lines, begun))
            caller = threading.Thread(
                target=lambda url=old.url, answers=answers: answers.append(session.call(url, "slow"))
            )
            for each in (reader, caller):
                each.start()
            assert begun.wait(PATIENCE_SECONDS)
            session.call(other.url, "touch")
            time.sleep(0.5)
            old.process.send_signal(signal.SIGTERM)
            reader.join(PATIENCE_SECONDS)
            assert old.process.poll() is None  # it waits for its call
            with pytest.raises(httpx.ConnectError):
                session.call(old.url, "pid")
            assert str(other.process.pid) == session.call(other.url, "pid")
            caller.join(PATIENCE_SECONDS)

            assert ["done"] == answers
            assert 0 == old.process.wait(PATIENCE_SECONDS)
            assert "retry: 1000" in lines
            told = [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: {")]
            assert "note://a" in [each.get("params", {}).get("uri") for each in told]
            workers = [other, start()]

        lines, begun = [], threading.Event()
        reader = threading.Thread(target=session.listen, args=(workers[1].url, lines, begun))
        reader.start()
        assert begun.wait(PATIENCE_SECONDS)
        session.call(workers[0].url, "touch")
        assert 204 == httpx.delete(workers[0].url, headers=session.headers).status_code
        reader.join(PATIENCE_SECONDS)

        assert "note://a" in "".join(lines)
