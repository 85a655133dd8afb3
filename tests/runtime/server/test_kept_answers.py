"""The answers of a client are charged while a handler may keep them, and bounded by a limit that the error names."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest

from mcpgen import Context, HttpLimits, Limits, RequestError, RequestRefused, Server, TaskLimits
from mcpgen.generated import v2025_11_25 as bindings
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES
from mcpgen.runtime.transports import memory
from tests.harness.server_wire import connected
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

KIB = 1024
CALLS = 20
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}}
ANSWER = {"action": "accept", "content": {"name": "x" * 100 * KIB}}
META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asking(**options: Any) -> tuple[Server[Any], list[int]]:
    """Return a server with a function that asks twice, and how often its first question was answered."""
    server: Server[Any] = Server("asking", version="1", **options)
    kept: list[int] = []

    async def ask(ctx: Context) -> str:
        first = await ctx.elicit("Who?", FORM)
        kept.append(1)
        await ctx.elicit("And then?", FORM)
        return first.action

    server.tool(ask)
    if "task_limits" in options:
        server.tool(task=True, name="bake")(ask)
    return server, kept


def request(identity: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def handshake() -> dict[str, Any]:
    info = {"name": "c", "version": "1"}
    return request(0, "initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}}, clientInfo=info)


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def test_answers_in_a_session_are_charged_and_bounded() -> None:
    server, kept = asking(limits=Limits(max_in_flight_bytes=1000 * KIB))
    async with connected(server) as wire:
        await wire.say(json.dumps(handshake()).encode())
        await wire.say(json.dumps(INITIALIZED).encode())
        refused = []
        for number in range(1, CALLS + 1):
            call = request(number, "tools/call", name="ask", arguments={})
            (question,) = await wire.say(json.dumps(call).encode())
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": ANSWER}
            said = await wire.say(json.dumps(answer).encode())
            refused += [str(each) for each in said if "method" not in each]

        assert 4 <= len(kept) <= 10
        assert len(refused) == CALLS - len(kept)
        assert all("max_in_flight_bytes" in each for each in refused)

        wire.connection.close()
        await wire.rest()
    assert server._engine.ledger.kept_bytes == 0


async def answered_once(wire: memory.Wire, number: int, answer: object, meta: dict[str, object]) -> list[str]:
    """Answer the first question of a call with *answer*; return the response if the call does not ask again."""
    call = request(number, "tools/call", name="ask", arguments={}, _meta=META)
    await wire.send(call)
    demand = (await wire.receive())["result"]
    (key,) = demand["inputRequests"]
    call["params"] |= {"requestState": demand["requestState"], "inputResponses": {key: answer}, "_meta": meta}
    await wire.send(call)
    said = await wire.receive()
    return [str(said)] if "inputRequests" not in said.get("result", {}) else []


async def test_what_a_client_has_answered_is_charged_while_the_call_waits_for_more() -> None:
    server, kept = asking(limits=Limits(max_waiting_bytes=1000 * KIB))
    refused = []
    async with memory.wire(server) as wire:
        for number in range(CALLS):
            refused += await answered_once(wire, number, ANSWER, META)

    assert len(kept) == CALLS
    assert 10 <= len(refused) <= CALLS - 4
    assert all("max_waiting_bytes" in each for each in refused)


async def test_what_a_retry_declares_is_charged_while_the_call_waits_for_more() -> None:
    server, kept = asking(limits=Limits(max_waiting_bytes=1000 * KIB))
    capabilities = {"elicitation": {}, "experimental": {"x": {"text": "x" * 50 * KIB}}}
    large = META | {"io.modelcontextprotocol/clientCapabilities": capabilities}
    refused = []
    async with memory.wire(server) as wire:
        for number in range(CALLS):
            refused += await answered_once(wire, number, {"action": "decline"}, large)

    assert len(kept) == CALLS
    assert 8 <= len(refused) <= CALLS - 4
    assert all("max_waiting_bytes" in each for each in refused)


async def test_answers_to_tasks_are_charged_and_bounded() -> None:
    server, kept = asking(task_limits=TaskLimits(max_running_bytes_per_principal=1000 * KIB))
    refused = []
    async with memory.wire(server) as wire:
        for number in range(CALLS):
            await wire.send(request(f"{number}", "tools/call", name="bake", arguments={}, _meta=META))
            task: dict[str, Any] = (await wire.receive())["result"]
            with anyio.fail_after(PATIENCE_SECONDS):
                while "inputRequests" not in task:
                    await wire.send(request(f"{number} get", "tasks/get", taskId=task["taskId"], _meta=META))
                    task = (await wire.receive())["result"]
            (key,) = task["inputRequests"]
            answers = {key: ANSWER}
            await wire.send(
                request(f"{number} put", "tasks/update", taskId=task["taskId"], inputResponses=answers, _meta=META)
            )
            said = await wire.receive()
            refused += [said["error"]["message"]] if "error" in said else []
        await anyio.wait_all_tasks_blocked()

        assert 4 <= len(kept) <= 10
        assert len(refused) == CALLS - len(kept)
        assert all("max_running_bytes_per_principal" in each for each in refused)


async def test_answers_over_http_count_with_the_open_requests_of_all_sessions() -> None:
    server, kept = asking()
    app = server.asgi(limits=HttpLimits(max_open_bytes=CALLS * OPEN_REQUEST_BYTES * 2 + 1000 * KIB))
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    said: list[str] = []
    async with app.running(), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:

        async def call(session: dict[str, str]) -> None:
            call = request(1, "tools/call", name="ask", arguments={})
            said.append((await client.post("/mcp", json=call, headers=session)).text)

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(CALLS):
                    begun = await client.post("/mcp", json=handshake(), headers=headers)
                    session = {**headers, "Mcp-Session-Id": begun.headers["mcp-session-id"]}
                    await client.post("/mcp", json=INITIALIZED, headers=session)
                    group.start_soon(call, session)
                    await anyio.wait_all_tasks_blocked()
                    await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "result": ANSWER}, headers=session)
                    await anyio.wait_all_tasks_blocked()
                refused = [each for each in said if "max_open_bytes" in each]
                group.cancel_scope.cancel()

    assert 8 <= len(kept) <= 16
    assert len(refused) == CALLS - len(kept)


async def test_answers_to_handlers_of_notifications_and_refusals_are_charged_and_bounded() -> None:
    kept: list[str] = []
    failures: list[RequestError] = []

    class Asking(bindings.ServerHandlers[Context]):
        async def roots_list_changed(self, _params: Any, context: Context, /) -> None:
            try:
                kept.append((await context.elicit("Who?", FORM)).action)
            except RequestRefused as refusal:
                kept.append(refusal.message)
            except RequestError as error:
                failures.append(error)
                return
            await context.elicit("And then?", FORM)

    limits = Limits(max_in_flight_bytes=1000 * KIB)
    server: Server[Any] = Server("asking", version="1", handlers=Asking(), limits=limits)
    refused = {"error": {"code": 1, "message": "no", "data": "x" * 100 * KIB}}
    async with connected(server) as wire:
        await wire.say(json.dumps(handshake()).encode())
        await wire.say(json.dumps(INITIALIZED).encode())
        for number in range(CALLS):
            (question,) = await wire.say(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
            answer = {"jsonrpc": "2.0", "id": question["id"], **(refused if number % 2 else {"result": ANSWER})}
            await wire.say(json.dumps(answer).encode())

        assert 4 <= len(kept) <= 10
        assert {"accept", "no"} == set(kept)
        assert len(failures) == CALLS - len(kept)
        assert all("max_in_flight_bytes" in each.message for each in failures)

        wire.connection.close()
        await wire.rest()
    assert server._engine.ledger.kept_bytes == 0


async def test_a_session_keeps_no_answer_that_its_handler_has_got() -> None:
    server: Server[Any] = Server("asking", version="1", limits=Limits(max_rounds=3))
    open_questions: list[int] = []

    @server.tool
    async def ask(ctx: Context) -> str:
        try:
            for _ in range(5):
                await ctx.elicit("And then?", FORM)
                exchange: Any = ctx._exchange
                open_questions.append(len(exchange.server_requests))
        except RequestError as error:
            return error.message
        return "no limit"

    async with memory.wire(server) as wire:
        await wire.send(handshake())
        await wire.receive()
        await wire.send(INITIALIZED)
        await wire.send(request(1, "tools/call", name="ask", arguments={}))
        while "method" in (said := await wire.receive()):
            await wire.send({"jsonrpc": "2.0", "id": said["id"], "result": {"action": "decline"}})

    assert open_questions == [0, 0, 0]
    assert "max_rounds" in said["result"]["content"][0]["text"]
