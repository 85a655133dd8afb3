"""Four worker processes behind a proxy that gives each connection, and so each request, to another one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event, Semaphore
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx
import pytest

from mcpgen import Client, Http, connect
from mcpgen.generated.extensions import tasks
from tests.harness.connection_proxy import connection_proxy
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.runtime.http.cluster import worker_program

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator

pytestmark = [needs_redis, pytest.mark.slow]

_HEADERS: Final = {"Accept": "application/json, text/event-stream", "Connection": "close"}


class Process:
    """One worker."""

    def __init__(self, redis: str, ledger: str = "") -> None:
        folder = Path(worker_program.__file__).parent
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "worker_program:app", "--port", "0", "--app-dir", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "WORKERS_REDIS": redis, "WORKERS_LEDGER": ledger},
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
def running(redis: str, workers: int = 4, ledger: str = "") -> Generator[Site]:
    with ExitStack() as stack:
        found = []
        for _ in range(workers):
            found.append(Process(redis, ledger))
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


def runs(ledger: Path) -> dict[str, list[int]]:
    """Return the processes in which each call has run."""
    found: dict[str, list[int]] = {}
    for line in ledger.read_text(encoding="utf-8").splitlines():
        name, _, process = line.partition(" ")
        found.setdefault(name, []).append(int(process))
    return found


def test_no_call_runs_twice_and_each_answer_is_of_one_that_ran(redis: RedisServer, tmp_path: Path) -> None:
    answered: list[str] = []
    broken: list[str] = []
    killed = Event()

    def call_until_the_end(thread: int, session: str) -> None:
        for number in range(1000):
            name = f"{thread}-{number}"
            try:
                said = site.call(session, "work", name=name)
            except httpx.TransportError:
                broken.append(name)
                continue
            assert 200 == said.status_code, said.text
            answered.append(text(said))
            assert name == answered[-1]
            if killed.is_set() and len(answered) > enough:
                return

    with running(redis.url, 4, str(tmp_path / "ledger")) as site, ThreadPoolExecutor(8) as threads:
        sessions = [site.session() for _ in range(8)]  # which takes longer than the calls have if the machine is busy
        calls = [threads.submit(call_until_the_end, *each) for each in enumerate(sessions)]
        time.sleep(2)
        for each in site.workers[:2]:
            each.popen.kill()
            time.sleep(1)
        enough = len(answered) + 50
        killed.set()
        for each in calls:
            each.result(PATIENCE_SECONDS)
    found = runs(tmp_path / "ledger")

    assert {1} == {len(each) for each in found.values()}
    assert set(answered) <= set(found) <= {*answered, *broken}
    assert broken  # at least those that the proxy gave to a worker that was gone


def test_tasks_of_a_killed_worker_fail_or_run_again_and_those_of_others_go_on(tmp_path: Path) -> None:
    async def main() -> dict[str, dict[str, Any]]:
        async with declared(site.url) as through_proxy, declared(direct) as of_another:
            begun = {
                f"{tool} {number}": await create(through_proxy, tool, name=f"{tool}-{number}")
                for tool in ("once", "again")
                for number in range(8)
            }
            while len(runs(ledger)) < len(begun):  # noqa: ASYNC110 (a file)
                await anyio.sleep(0.1)
            site.workers[0].popen.kill()
            ledger.with_suffix(".go").touch()
            return {name: await ended(of_another, task) for name, task in begun.items()}

    ledger = tmp_path / "ledger"
    # Not the Redis of other tests, whose workers would take over tasks.
    with redis_server(tmp_path) as own, running(own.url, 4, str(ledger)) as site:
        direct = f"http://127.0.0.1:{site.workers[1].port}/mcp"
        killed = site.workers[0].popen.pid
        found = anyio.run(main)
    ran = {name.replace("-", " "): processes for name, processes in runs(ledger).items()}

    assert set(found) == set(ran)
    lost = {name for name, processes in ran.items() if processes[0] == killed}
    assert 16 > len(lost) >= 2
    assert {each.partition(" ")[0] for each in lost} == {"once", "again"}
    for name, processes in ran.items():
        runs_again = name in lost and name.startswith("again")
        assert (2 if runs_again else 1) == len(processes), found[name]
        is_lost = name in lost and not runs_again
        assert ("failed" if is_lost else "completed") == found[name]["status"]


@asynccontextmanager
async def declared(url: str) -> AsyncGenerator[Client]:
    """Connect a client that declares the extension, and opens a connection for each request."""
    async with (
        httpx.AsyncClient(headers={"Connection": "close"}) as library,
        connect(Http(url, client=library), extensions=[tasks.EXTENSION], revisions=["2026-07-28"]) as client,
    ):
        yield client


async def create(client: Client, tool: str, **arguments: Any) -> str:
    made = await client.request_json("tools/call", {"name": tool, "arguments": arguments})
    return str(made["taskId"])


async def ended(client: Client, task: str) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            found: dict[str, Any] = await client.request_json("tasks/get", {"taskId": task})
            if found["status"] not in ("working", "input_required"):
                return found
            await anyio.sleep(0.1)


def stateless(port: int, tool: str, **more: Any) -> httpx.Response:
    """Call a tool at one worker, as a client of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    params = {"name": tool, "arguments": {}, "_meta": meta, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    url = f"http://127.0.0.1:{port}/mcp"
    return httpx.post(url, headers={**_HEADERS, **headers}, json=body, timeout=PATIENCE_SECONDS)


def test_a_function_with_replay_runs_again_when_its_worker_was_killed(redis: RedisServer, tmp_path: Path) -> None:
    with running(redis.url, 2, str(tmp_path / "ledger")) as site:
        asked = stateless(site.workers[0].port, "ask_again").json()["result"]
        (key,) = asked["inputRequests"]
        answers = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
        site.workers[0].popen.kill()
        killed = time.monotonic()
        while (said := stateless(site.workers[1].port, "ask_again", **answers)).status_code == 503:
            assert said.headers["retry-after"]
            time.sleep(0.2)
        processes = [each.popen.pid for each in site.workers]

    assert f"decline {processes[1]}" == text(said)
    assert {"ask_again": processes} == runs(tmp_path / "ledger")
    assert time.monotonic() - killed < 5 + BUSY_SECONDS


def test_a_retry_whose_worker_is_killed_gets_the_true_reason_and_runs_nothing_again(redis: RedisServer) -> None:
    with running(redis.url, 2) as site:
        asked = stateless(site.workers[0].port, "ask_slowly").json()["result"]
        (key,) = asked["inputRequests"]
        answers = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
        with ThreadPoolExecutor(1) as threads:
            retry = threads.submit(stateless, site.workers[1].port, "ask_slowly", **answers)
            time.sleep(1)
            assert not retry.done()
            site.workers[0].popen.kill()
            started = time.monotonic()
            said = retry.result(PATIENCE_SECONDS).json()

        assert "elsewhere" == said["error"]["data"]["reason"]
        assert time.monotonic() - started < BUSY_SECONDS


def _events(port: int, session: str, **request: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and the message of each event, until the stream ends or breaks."""
    url, headers = (
        f"http://127.0.0.1:{port}/mcp",
        {**_HEADERS, "Mcp-Session-Id": session, **request.pop("more", {})},
    )
    last = ""
    with httpx.stream(url=url, headers=headers, timeout=PATIENCE_SECONDS, **request) as response:
        if response.status_code == 400:
            yield "", json.loads(response.read())
            return
        assert 200 == response.status_code, response.read()
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            last = value if name == "id" else last
            if name == "data" and value:
                yield last, json.loads(value)


def test_each_stream_of_a_killed_worker_goes_on_at_another_one_or_ends_with_an_error(redis: RedisServer) -> None:
    streams = 20

    def run(session: str, killed: Event) -> tuple[list[int], dict[str, Any]]:
        """Return the steps that a call reported before and after its worker was killed, and the error that ended it."""
        params = {"name": "count", "arguments": {}, "_meta": {"progressToken": 1}}
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        steps, last = [], ""
        try:
            for last, message in _events(site.workers[0].port, session, method="POST", json=body):  # noqa: B007 (below)
                steps.append(message["params"]["progress"])
                if len(steps) == 2:
                    begun.release()
        except httpx.TransportError:
            pass
        assert killed.wait(PATIENCE_SECONDS)
        for _, message in _events(site.workers[1].port, session, method="GET", more={"Last-Event-ID": last}):
            if "error" in message:
                return steps, message["error"]
            steps.append(message["params"]["progress"])
        raise AssertionError("a resumed stream has ended without an answer")

    with running(redis.url, 2) as site:
        sessions = [site.session() for _ in range(streams)]
        killed, begun = Event(), Semaphore(0)
        with ThreadPoolExecutor(streams) as threads:
            calls = [threads.submit(run, each, killed) for each in sessions]
            for _ in calls:
                assert begun.acquire(timeout=PATIENCE_SECONDS)
            site.workers[0].popen.kill()
            site.workers[0].popen.wait()
            time.sleep(6)  # until the others know
            killed.set()
            found = [each.result(PATIENCE_SECONDS) for each in calls]

    ended = [error for _, error in found if error.get("data") != {"reason": "lost"}]
    # Until an event is copied to Redis, it is lost if its worker is killed (docs/adr/0034). Its client learns that.
    assert all("cannot be resumed" in error["message"] for error in ended)
    assert len(ended) < streams / 2
    assert all(steps == list(range(1, len(steps) + 1)) and len(steps) > 1 for steps, _ in found)


def test_a_worker_that_is_told_to_stop_leaves_at_once(redis: RedisServer) -> None:
    with running(redis.url, 2) as site:
        session = site.session()
        started = time.monotonic()
        site.workers[0].popen.terminate()
        site.workers[0].popen.wait(PATIENCE_SECONDS)

        assert time.monotonic() - started < BUSY_SECONDS
        direct = f"http://127.0.0.1:{site.workers[1].port}/mcp"
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert 200 == httpx.post(direct, headers={**_HEADERS, "Mcp-Session-Id": session}, json=body).status_code
