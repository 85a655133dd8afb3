"""The example of nginx in the guide: two workers, one of which is stopped or killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from mcpgen import connect
from tests.harness.redis_servers import needs_redis
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.harness.redis_servers import RedisServer

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "many-workers.md"

pytestmark = [
    needs_redis,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is a program of the system, and not here"),
]

_FILE = """
import os
from mcpgen import Context, Server

server = Server("proxied", version="1")


@server.tool
def pid() -> str:
    return str(os.getpid())


@server.tool
async def ask(ctx: Context) -> str:
    return (await ctx.elicit("Who?", {"properties": {}})).action


@server.tool
async def touch(ctx: Context) -> str:
    await ctx.resource_updated("note://a")
    return "touched"


@server.resource("note://a")
def note() -> str:
    return "text"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Site:
    """nginx, and two workers behind it."""

    def __init__(self, folder: Path, redis: str) -> None:
        self.folder = folder
        self.redis = redis
        (folder / "server.py").write_text(_FILE, encoding="utf-8")
        ports = {8000: free_port(), 8001: free_port(), 8002: free_port()}
        self.workers = [self.worker(ports[each]) for each in (8001, 8002)]
        found = re.search(r"```nginx\n(.+?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
        assert found
        example = re.sub(r"127\.0\.0\.1:(800\d)", lambda match: f"127.0.0.1:{ports[int(match[1])]}", found[1])
        paths = "".join(f"{each}_temp_path {folder};" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {paths} {example} }}",
            encoding="utf-8",
        )
        nginx = shutil.which("nginx") or ""
        self.nginx = subprocess.Popen([nginx, "-p", str(folder), "-c", "nginx.conf"], stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{ports[8000]}/mcp"
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(self.url).status_code == 400:  # there is no session
                    return
            assert time.monotonic() < until
            time.sleep(0.05)

    def worker(self, port: int) -> subprocess.Popen[bytes]:
        options = ["--http", f"127.0.0.1:{port}", "--redis", self.redis, "--trusted-proxy", "127.0.0.1"]
        options += ["--health", "/health"]
        command = [sys.executable, "-m", "mcpgen", "serve", str(self.folder / "server.py"), *options]
        made = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200:
                    return made
            assert time.monotonic() < until
            time.sleep(0.05)

    def stop(self) -> None:
        for each in (self.nginx, *self.workers):
            each.terminate()
        for each in (self.nginx, *self.workers):
            each.wait(PATIENCE_SECONDS)


@pytest.fixture
def site(tmp_path: Path, redis: RedisServer) -> Generator[Site]:
    found = Site(tmp_path, redis.url)
    yield found
    found.stop()


async def decline(*_: Any) -> Any:
    from mcpgen.generated.v2026_07_28 import ElicitResult

    return ElicitResult(action="decline")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_clients_of_both_eras_work_through_nginx(site: Site, revision: str) -> None:
    async def main() -> set[str]:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(site.url, revisions=[revision], elicit=decline) as client:
                found = {(await client.call_tool("pid")).text or "" for _ in range(20)}
                assert ["decline"] * 10 == [(await client.call_tool("ask")).text for _ in range(10)]
                async with client.listen(uris=["note://a"]) as changes:
                    await client.call_tool("touch")
                    assert "note://a" == (await anext(changes)).uri
                return found

    assert {str(each.pid) for each in site.workers} == anyio.run(main)
    assert 403 == httpx.get(site.url.replace("/mcp", "/health")).status_code


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_ends_costs_no_later_request(site: Site, sent: signal.Signals) -> None:
    async def main() -> set[str]:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(site.url, revisions=["2025-11-25"]) as client:
                for _ in range(20):
                    await client.call_tool("pid")
                os.kill(site.workers[0].pid, sent)
                if sent == signal.SIGKILL:
                    site.workers[0].wait()
                else:
                    await anyio.sleep(0.2)  # it closes its sockets and connections at once, and then ends
                return {(await client.call_tool("pid")).text or "" for _ in range(50)}

    assert {str(site.workers[1].pid)} == anyio.run(main)
