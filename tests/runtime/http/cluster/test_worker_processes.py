"""Four worker processes behind a proxy that gives each connection, and so each request, to another one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx
import pytest

from mcpgen import Http, connect
from tests.harness.connection_proxy import connection_proxy
from tests.harness.redis_servers import RedisServer, needs_redis
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster import worker_program

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [needs_redis, pytest.mark.slow]

_HEADERS: Final = {"Accept": "application/json, text/event-stream", "Connection": "close"}


class Process:
    """One worker."""

    def __init__(self, redis: str) -> None:
        folder = Path(worker_program.__file__).parent
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "worker_program:app", "--port", "0", "--app-dir", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "WORKERS_REDIS": redis},
            encoding="utf-8",
        )
        self.lines: list[str] = []
        assert self.popen.stderr
        for line in self.popen.stderr:
            self.lines.append(line)
            found = re.search(r"running on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise AssertionError("".join(self.lines))

    def stop(self) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        self.popen.wait()
        if self.popen.stderr:
            self.popen.stderr.close()


class Site:
    """The workers, and the proxy in front of them."""

    def __init__(self, workers: list[Process], port: int) -> None:
        self.workers = workers
        self.url = f"http://127.0.0.1:{port}/mcp"

    def post(self, body: dict[str, Any], session: str | None = None) -> httpx.Response:
        named = {} if session is None else {"Mcp-Session-Id": session}
        body = {"jsonrpc": "2.0", **body}
        return httpx.post(self.url, headers={**_HEADERS, **named}, json=body, timeout=PATIENCE_SECONDS)

    def session(self) -> str:
        info = {"name": "client", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        begun = self.post({"id": 0, "method": "initialize", "params": params})
        assert 200 == begun.status_code, begun.text
        session = begun.headers["mcp-session-id"]
        assert 202 == self.post({"method": "notifications/initialized"}, session).status_code
        return session

    def call(self, session: str, tool: str, **arguments: Any) -> httpx.Response:
        return self.post({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}, session)


def text(response: httpx.Response) -> str:
    found: str = response.json()["result"]["content"][0]["text"]
    return found


@contextmanager
def running(redis: str, workers: int = 4) -> Generator[Site]:
    with ExitStack() as stack:
        found = []
        for _ in range(workers):
            found.append(Process(redis))
            stack.callback(found[-1].stop)
        port = stack.enter_context(connection_proxy([each.port for each in found]))
        yield Site(found, port)


@pytest.fixture(scope="module")
def site(redis: RedisServer) -> Generator[Site]:
    with running(redis.url) as found:
        yield found


def test_all_of_a_hundred_requests_of_sessions_succeed(site: Site) -> None:
    sessions = [site.session() for _ in range(10)]
    said = [site.call(each, "add", a=number, b=1) for number in range(10) for each in sessions]

    assert [200] * 100 == [each.status_code for each in said]
    assert [str(number + 1) for number in range(10) for _ in sessions] == [text(each) for each in said]


def test_four_processes_serve_one_session(site: Site) -> None:
    session = site.session()
    seen = {text(site.call(session, "process")) for _ in range(12)}

    assert {str(each.popen.pid) for each in site.workers} == seen


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", "2026-07-28"])
def test_clients_of_every_era_get_answers_and_changes(site: Site, revision: str) -> None:
    async def refuse(*_: Any) -> Any:
        from mcpgen.generated.v2026_07_28 import ElicitResult

        return ElicitResult(action="decline")

    async def main() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with (
                httpx.AsyncClient(headers={"Connection": "close"}) as library,
                connect(Http(site.url, client=library), revisions=[revision], elicit=refuse) as client,
            ):
                for number in range(20):
                    assert (await client.call_tool("add", {"a": number, "b": 1})).text == str(number + 1)
                if revision != "2025-03-26":
                    asked = [(await client.call_tool("ask")).text for _ in range(10)]
                    assert all(each is not None and each.startswith("decline ") for each in asked)
                async with client.listen(uris=["note://a"]) as changes:
                    await client.call_tool("touch")
                    assert "note://a" == (await anext(changes)).uri

    anyio.run(main)


def test_a_killed_worker_takes_only_what_ran_in_it(redis: RedisServer) -> None:
    with running(redis.url, 3) as site:
        session = site.session()
        seen = {text(site.call(session, "process")) for _ in range(6)}
        assert 3 == len(seen)
        killed = site.workers[0]
        killed.popen.send_signal(signal.SIGKILL)
        killed.popen.wait()
        until = time.monotonic() + 2
        said, lost = [], 0
        while time.monotonic() < until:
            try:
                said.append(site.call(session, "process"))
            except httpx.TransportError:  # the proxy still gives every third connection to the one that is gone
                lost += 1

        assert {200} == {each.status_code for each in said}
        assert seen - {str(killed.popen.pid)} == {text(each) for each in said}
        assert lost <= len(said) / 2 + 1


def test_a_retry_whose_worker_is_killed_gets_the_true_reason_and_runs_nothing_again(redis: RedisServer) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask_slowly"}

    def call(port: int, **more: Any) -> httpx.Response:
        params = {"name": "ask_slowly", "arguments": {}, "_meta": meta, **more}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        url = f"http://127.0.0.1:{port}/mcp"
        return httpx.post(url, headers={**_HEADERS, **headers}, json=body, timeout=PATIENCE_SECONDS)

    with running(redis.url, 2) as site:
        asked = call(site.workers[0].port).json()["result"]
        (key,) = asked["inputRequests"]
        answers = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
        with ThreadPoolExecutor(1) as threads:
            retry = threads.submit(call, site.workers[1].port, **answers)
            time.sleep(1)
            assert not retry.done()
            site.workers[0].popen.kill()
            started = time.monotonic()
            said = retry.result(PATIENCE_SECONDS).json()

        assert "elsewhere" == said["error"]["data"]["reason"]
        assert time.monotonic() - started < 15


def test_a_worker_that_is_told_to_stop_leaves_at_once(redis: RedisServer) -> None:
    with running(redis.url, 2) as site:
        session = site.session()
        started = time.monotonic()
        site.workers[0].popen.terminate()
        site.workers[0].popen.wait(PATIENCE_SECONDS)

        assert time.monotonic() - started < 5
        direct = f"http://127.0.0.1:{site.workers[1].port}/mcp"
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert 200 == httpx.post(direct, headers={**_HEADERS, "Mcp-Session-Id": session}, json=body).status_code
