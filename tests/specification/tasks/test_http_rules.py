"""The routing header of requests about tasks: a client sends it, and a server refuses a wrong one."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcpgen import Server
from tests.specification.client.scripted_server import ALL
from tests.specification.http_client.scripted_http_server import opened, text
from tests.specification.http_server.http_clients import STATELESS, Caller
from tests.specification.http_server.http_site import site

spec = pytest.mark.spec
pytestmark = pytest.mark.anyio

METHODS = pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
NOW = "2026-01-01T00:00:00Z"
DECLARED = '{"extensions":{"io.modelcontextprotocol/tasks":{}}}'


def bakery(*, strict: bool = False) -> Server[Any]:
    server = Server("bakery", version="1", strict=strict)

    @server.tool(task=True)
    async def bake() -> str:
        return "bread"

    return server


def about(peer: Caller, method: str, task: str) -> bytes:
    """Return a request of *method* about *task*."""
    return peer.request("r", method, f'"taskId":"{task}","inputResponses":{{}}')


@spec("ext-tasks", "specification/draft/tasks#streamable-http-routing-headers")
@METHODS
async def test_the_name_header_of_another_task_is_a_mismatch(method: str) -> None:
    async with site(bakery()) as web:
        peer = Caller(web, STATELESS, DECLARED)
        body = about(peer, method, "one")
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Name", "other")]).complete()

    assert (400, -32020) == (answer.status, answer.json["error"]["code"])


@spec("ext-tasks", "specification/draft/tasks#streamable-http-routing-headers")
@METHODS
async def test_only_a_strict_server_needs_the_name_header_of_a_task(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = {}
    for strict in (False, True):
        async with site(bakery(strict=strict)) as web:
            peer = Caller(web, STATELESS, DECLARED)
            body = about(peer, method, "unknown")
            with caplog.at_level(logging.WARNING, "mcpgen.reading"):
                answer = await peer.post(body).complete()  # without Mcp-Name
            found[strict] = answer.json["error"]["code"]

    assert {False: -32602, True: -32020} == found
    said = f"a {method} request of a client is not valid, but is accepted: the Mcp-Name header is missing"
    assert [said] == [each.getMessage() for each in caplog.records if each.name == "mcpgen.reading"]


@spec("ext-tasks", "specification/draft/tasks#streamable-http-routing-headers", "be54b41d")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_client_repeats_the_id_of_the_task_in_the_name_header() -> None:
    can = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    headers: dict[str, tuple[str, str]] = {}
    async with opened(STATELESS, can=can, tasks=True) as (client, server):
        server.verify = lambda: None  # type: ignore[method-assign]  # its judge knows the base alone
        for method, params in {"tasks/get": {}, "tasks/update": {"inputResponses": {}}, "tasks/cancel": {}}.items():
            asking = server.start(client.request_json(method, {"taskId": "täsk", **params}))
            asked = await server.hear(method=method)
            headers[method] = asked.headers["mcp-method"], asked.headers["mcp-name"]
            await asked.result({"resultType": "complete"})
            await asking.outcome()

    encoded = "=?base64?dMOkc2s=?="
    assert {each: (each, encoded) for each in ("tasks/get", "tasks/update", "tasks/cancel")} == headers


@spec("ext-tasks", "specification/draft/tasks#task-polling", "b4f496f4")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("status", [404, 502, None], ids=["not found", "bad gateway", "cut"])
async def test_a_task_is_polled_until_it_ends_where_no_stream_of_its_changes_opens(status: int | None) -> None:
    can = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    since = {"createdAt": "2026-11-22T12:00:00Z", "lastUpdatedAt": "2026-11-22T12:00:00Z", "ttlMs": None}
    task = {"taskId": "t", "pollIntervalMs": 1, **since}
    async with opened(STATELESS, can=can, tasks=True) as (client, server):
        server.verify = lambda: None  # type: ignore[method-assign]  # its judge knows the base alone
        call = server.start(client.call_tool("x"))
        await (await server.hear(method="tools/call")).result({"resultType": "task", "status": "working", **task})
        listening = await server.hear(method="subscriptions/listen")
        await (listening.cut() if status is None else listening.answer(status))
        for state in ({"status": "working"}, {"status": "completed", "result": text("done")}):
            await (await server.hear(method="tasks/get")).result({"resultType": "complete", **task, **state})

        assert "done" == (await call.outcome()).text


@spec("ext-tasks", "specification/draft/tasks#task-polling")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_client_polls_at_once_if_the_stream_that_reports_changes_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcpgen.runtime.client.tool_tasks._BACKSTOP_SECONDS", 3600)
    can = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    state = {"taskId": "t", "createdAt": NOW, "lastUpdatedAt": NOW, "ttlMs": None, "pollIntervalMs": 20}
    async with opened(STATELESS, can=can, tasks=True) as (client, server):
        server.verify = lambda: None  # type: ignore[method-assign]  # its judge knows the base alone
        calling = server.start(client.call_tool("bake"))
        await (await server.hear(method="tools/call")).result({**state, "resultType": "task", "status": "working"})
        listening = await server.hear(method="subscriptions/listen")
        await listening.begin()
        params = {
            "_meta": {"io.modelcontextprotocol/subscriptionId": listening.message["id"]},
            "notifications": listening.message["params"]["notifications"],
        }
        note = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
        await listening.event(note)
        first = await server.hear(method="tasks/get")
        await first.result({**state, "resultType": "complete", "status": "working"})
        await listening.cut()
        second = await server.hear(method="tasks/get")
        ended = {"status": "completed", "result": {"resultType": "complete", "content": []}}
        await second.result({**state, "resultType": "complete", **ended})

        assert (await calling.outcome()).content == []
