"""A plain function that waits for its client gives way if another user needs its thread."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Context, Limits, RequestError, Server, SqliteTaskStore
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller, WorkerThreads
from mcpgen.runtime.server.request_results import wait_for_client
from tests.patience import PATIENCE_SECONDS
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS
from tests.specification.http_server.http_clients import Caller as Peer
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.specification.http_server.asgi_exchange import Exchange, Lines
    from tests.specification.http_server.http_site import Site

pytestmark = pytest.mark.anyio

HANDSHAKE = "2025-11-25"
ASKING = '{"elicitation":{}}'
TASKS = f'{ASKING[:-1]},"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}'
ANSWER = '{"action":"accept","content":{"value":true}}'
GAVE_WAY = "the function waited for its client while all threads of the server were in use (max_threads)"


class User(Peer):
    """A client of one user."""

    def __init__(self, web: Site, revision: str, name: str, capabilities: str = ASKING) -> None:
        super().__init__(web, revision, capabilities)
        self.name = name

    @property
    def own_lines(self) -> Lines:
        return [*super().own_lines, ("X-User", self.name)]

    async def shake_hands(self) -> User:
        lines = [JSON, BOTH, ("X-User", self.name)]
        begun = await self.web.ask("POST", self.path, lines, self.request(0, "initialize", self._declared()))
        self.session = begun.header("mcp-session-id")
        await self.tell(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self

    def _declared(self) -> str:
        info = '{"name":"client","version":"1"}'
        return f'"protocolVersion":"{self.revision}","capabilities":{self.capabilities},"clientInfo":{info}'


async def joined(web: Site, revision: str, name: str, capabilities: str = ASKING) -> User:
    made = User(web, revision, name, capabilities)
    return made if made.is_stateless else await made.shake_hands()


def user(scope: Any) -> str:
    return dict(scope["headers"])[b"x-user"].decode()


def serving(**limits: int) -> Server:
    """Return a server with two threads."""
    server = Server("threads", version="1.0", limits=Limits(max_threads=2, **limits))

    @server.tool
    def ask(ctx: Context) -> str:
        return ctx.sync.elicit("Sure?", bool).action

    @server.tool(task=True)
    def ask_in_task(ctx: Context) -> str:
        return ctx.sync.elicit("Sure?", bool).action

    @server.tool
    def report(ctx: Context) -> str:
        for number in range(1, 100):
            ctx.sync.progress(number, message="x" * 1000)
        return "reported"

    @server.tool
    def add() -> str:
        return "added"

    return server


def text(message: Any) -> str:
    """Return the text of the result of a tool, or of an error."""
    found: str = message["error"]["message"] if "error" in message else message["result"]["content"][0]["text"]
    return found


async def added(peer: Peer) -> str:
    return text((await peer.call("add").messages())[-1])


def retry(demand: Any) -> str:
    """Return the params of the retry that answers *demand*."""
    result = demand["result"]
    answers = {each: json.loads(ANSWER) for each in result["inputRequests"]}
    more = {"requestState": result["requestState"], "inputResponses": answers}
    return f'"name":"ask","arguments":{{}},{json.dumps(more)[1:-1]}'


async def test_a_function_that_waits_for_a_stateless_client_gives_way_to_another_user() -> None:
    server = serving()
    async with site(server, user=user) as web:
        ann, bob = User(web, STATELESS, "ann"), User(web, STATELESS, "bob")
        demands = [(await ann.call("ask").messages())[-1] for _ in range(2)]

        assert "added" == await added(bob)

        displaced, still = [await ann.ask("tools/call", retry(each)) for each in demands]

    assert {"reason": "displaced"} == displaced["error"]["data"]
    assert "(max_waiting, max_waiting_bytes, max_threads)" in displaced["error"]["message"]
    assert "accept" == text(still)
    server._engine.parked._clock = lambda: float("inf")  # what was answered is kept for repeated retries
    server._engine.parked.expire()

    assert 0 == server._engine.parked.quota.count


async def asked(peer: Peer, count: int, tool: str = "ask") -> list[tuple[Exchange, Any]]:
    """Call *tool*, and return the response to each call, of which the question has come, and the question."""
    found = []
    for _ in range(count):
        exchange = peer.call(tool)
        found.append((exchange, await exchange.message()))
    return found


async def test_a_question_to_a_client_of_a_handshake_is_withdrawn_for_another_user() -> None:
    async with site(serving(), user=user) as web:
        ann, bob = [await joined(web, HANDSHAKE, each) for each in ("ann", "bob")]
        (first, question), (second, other) = await asked(ann, 2)

        assert "added" == await added(bob)

        withdrawn, result = await first.messages()
        await ann.answer(other, ANSWER)
        (still,) = await second.messages()

    assert ("notifications/cancelled", question["id"]) == (withdrawn["method"], withdrawn["params"]["requestId"])
    assert -32603 == result["error"]["code"]
    assert GAVE_WAY in text(result)
    assert "accept" == text(still)


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
async def test_a_function_of_a_task_gives_way_too(revision: str) -> None:
    async with site(serving(), user=user) as web:
        if revision == STATELESS:
            web.overseer.verify = lambda: None  # type: ignore[method-assign] # it does not know this kind of tasks
        ann = await joined(web, revision, "ann", TASKS)
        bob = await joined(web, revision, "bob")
        stream = ann.listen() if revision == HANDSHAKE else None  # on which the questions come
        task = '"name":"ask_in_task","arguments":{},"task":{}' if stream else '"name":"ask_in_task","arguments":{}'
        tasks = []
        for _ in range(2):
            result = await ann.result("tools/call", task)
            tasks.append(f'"taskId":"{result.get("task", result)["taskId"]}"')
            while (await ann.result("tasks/get", tasks[-1]))["status"] != "input_required":
                await anyio.lowlevel.checkpoint()

        assert "added" == await added(bob)

        with anyio.fail_after(PATIENCE_SECONDS):
            while (await ann.result("tasks/get", tasks[0]))["status"] == "working":  # its thread sees the error later
                await anyio.lowlevel.checkpoint()
        statuses = [(await ann.result("tasks/get", each))["status"] for each in tasks]
        if stream is not None:
            stream.leave()

    assert ["failed", "input_required"] == statuses


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
async def test_a_function_whose_client_does_not_read_gives_way_to_another_user(revision: str) -> None:
    async with site(serving(max_buffered_bytes=2000), user=user) as web:
        ann, bob = [await joined(web, revision, each) for each in ("ann", "bob")]
        held = []
        for number in range(2):
            held.append(ann.call("report", meta=f'"progressToken":{number}'))
            held[-1].is_held = True
            await held[-1].begun()

        assert "added" == await added(bob)

        for each in held:
            each.is_held = False
            each._tell()
        first, second = sorted([text((await each.messages())[-1]) for each in held])

    assert "reported" == first
    assert GAVE_WAY in second


async def test_a_task_that_another_process_runs_again_keeps_its_owner(tmp_path: Path) -> None:
    owners: list[str | None] = []

    async def whose() -> str:
        caller = CALLER.get()
        owners.append(None if caller is None else caller.owner)
        if len(owners) == 1:
            await anyio.sleep_forever()
        return "done"

    def keeping() -> Server:
        server = Server("keeping", version="1.0", tasks=SqliteTaskStore(tmp_path / "tasks.db"))
        server.tool(task=True, replay=True)(whose)
        return server

    async with site(keeping(), user=user) as web:
        web.overseer.verify = lambda: None  # type: ignore[method-assign] # it does not know this kind of tasks
        await User(web, STATELESS, "ann", TASKS).call("whose").complete()
        while not owners:  # noqa: ASYNC110 (the worker of the server calls it)
            await anyio.sleep(0.001)
    async with site(keeping(), user=user):
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(owners) < 2:  # noqa: ASYNC110 (likewise)
                await anyio.sleep(0.001)

    assert [owners[0]] * 2 == owners
    assert owners[0] is not None


async def test_a_user_does_not_displace_own_functions() -> None:
    async with site(serving(), user=user) as web:
        ann = await joined(web, HANDSHAKE, "ann")
        (first, question), (second, other) = await asked(ann, 2)
        third = ann.call("add")
        await web.quiet()
        assert not third.has_returned

        await ann.answer(question, ANSWER)
        await ann.answer(other, ANSWER)
        results = [text((await each.messages())[-1]) for each in (first, second, third)]

    assert ["accept", "accept", "added"] == results


# --- which one gives way


class Threads:
    """Worker threads, and functions that wait for their client.

    Attributes:
        pool: The threads.
        began: The names of the functions that have begun to wait, in order.
        gave_way: The names of those that gave way.
        may_ask: Without it, the functions compute before they wait.
        go_on: Ends all waits.
    """

    def __init__(self, max_threads: int) -> None:
        self.pool = WorkerThreads(max_threads)
        self.began: list[str] = []
        self.gave_way: list[str] = []
        self.may_ask = threading.Event()
        self.may_ask.set()
        self.go_on = anyio.Event()
        self._turns = FairTurns()

    async def ask(self, name: str, times: int = 1) -> None:
        """Run a function of the owner that is the first letter of *name*; it asks *times* if it has to give way."""
        CALLER.set(Caller(name[0], self._turns))
        await self.pool.run(self._ask, (name, times))

    async def call(self, owner: str) -> None:
        """Run a function that waits for nothing."""
        CALLER.set(Caller(owner, self._turns))
        await self.pool.run(self.began.append, owner)

    def _ask(self, given: tuple[str, int]) -> None:
        name, times = given
        for _ in range(times):
            self.may_ask.wait(PATIENCE_SECONDS)
            try:
                anyio.from_thread.run(self._wait, name)
            except RequestError:
                self.gave_way.append(name)
            else:
                return

    async def _wait(self, name: str) -> None:
        self.began.append(name)
        await wait_for_client(self.go_on.wait)

    async def until(self, name: str) -> None:
        """Wait until the function of this name waits."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while name not in self.began:  # noqa: ASYNC110 (threads change it)
                await anyio.sleep(0.001)
            await anyio.wait_all_tasks_blocked()


async def test_the_owner_with_the_most_waits_gives_way_until_the_shares_are_equal() -> None:
    threads = Threads(4)
    async with anyio.create_task_group() as group:
        for name in ("c1", "a1", "a2", "a3"):
            group.start_soon(threads.ask, name)
            await threads.until(name)
        group.start_soon(threads.ask, "b1")
        await threads.until("b1")
        assert ["a1"] == threads.gave_way

        group.start_soon(threads.ask, "b2")
        await threads.until("b2")
        assert ["a1", "a2"] == threads.gave_way

        group.start_soon(threads.ask, "b3")
        await anyio.wait_all_tasks_blocked()
        threads.go_on.set()

    assert ["a1", "a2"] == threads.gave_way
    assert 0 == threads.pool.running


async def test_a_function_that_begins_to_wait_while_another_owner_needs_a_thread_gives_way() -> None:
    threads = Threads(2)
    threads.may_ask.clear()
    async with anyio.create_task_group() as group:
        for name in ("a1", "a2"):
            group.start_soon(threads.ask, name)
        while threads.pool.running < 2:
            await anyio.lowlevel.checkpoint()
        group.start_soon(threads.call, "b")
        await anyio.wait_all_tasks_blocked()
        assert [] == threads.began
        threads.may_ask.set()
        await threads.until("b")
        await threads.until("a1")
        await threads.until("a2")
        threads.go_on.set()

    assert 1 == len(threads.gave_way)


async def test_a_slot_goes_to_the_owner_that_needed_it_not_to_the_next_one() -> None:
    threads = Threads(1)
    async with anyio.create_task_group() as group:
        group.start_soon(threads.ask, "a1")
        await threads.until("a1")
        group.start_soon(threads.ask, "a2")
        await anyio.wait_all_tasks_blocked()
        await threads.call("b")

        assert ["a1", "b"] == threads.began[:2]
        threads.go_on.set()

    assert ["a1"] == threads.gave_way


async def test_a_function_that_asks_again_gives_way_again_before_others_do() -> None:
    threads = Threads(2)
    async with anyio.create_task_group() as group:
        group.start_soon(threads.ask, "a1", 3)
        await threads.until("a1")
        group.start_soon(threads.ask, "a2", 3)
        await threads.until("a2")
        await threads.call("b")
        threads.go_on.set()

    assert ["a1", "a1", "a1"] == threads.gave_way


async def test_a_function_that_gave_way_to_a_cancelled_call_may_wait_again() -> None:
    threads = Threads(1)
    async with anyio.create_task_group() as group:
        group.start_soon(threads.ask, "a1", 2)
        await threads.until("a1")
        threads.may_ask.clear()
        async with anyio.create_task_group() as other:
            other.start_soon(threads.call, "b")
            while not threads.gave_way:  # noqa: ASYNC110 (a thread changes it)
                await anyio.sleep(0.001)
            other.cancel_scope.cancel()
        threads.may_ask.set()
        threads.go_on.set()

    assert (["a1"], ["a1", "a1"], 0) == (threads.gave_way, threads.began, threads.pool.running)
