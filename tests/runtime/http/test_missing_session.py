"""The advice in the answer to a message over HTTP without a session."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mcpgen import Server

pytestmark = pytest.mark.anyio

HEADERS = {"Accept": "application/json, text/event-stream"}
START = "the request has no Mcp-Session-Id header; start a session with initialize"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ANSWER: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}


def client(server: Server) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(server.asgi())
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers=HEADERS)


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            f"{START}, or name 2026-07-28 in _meta and in the MCP-Protocol-Version header",
        ),
        (PING, START),
        ([PING], START),
        ([PING, PING | {"method": "initialize"}], "initialize must not be part of a batch; send it alone"),
        (ANSWER, START),
    ],
    ids=["request", "older request", "batch", "batch with initialize", "response"],
)
async def test_the_stateless_revision_is_named_only_for_what_it_has(message: object, advice: str) -> None:
    async with client(Server("sessions")) as http:
        answer = await http.post("/mcp", json=message)

    assert (400, advice) == (answer.status_code, answer.json()["error"]["message"])


async def test_a_refusal_does_not_repeat_an_id_of_any_length() -> None:
    async with client(Server("sessions")) as http:
        longest = await http.post("/mcp", json=PING | {"id": "x" * 1024})
        longer = await http.post("/mcp", json=PING | {"id": "x" * 1025})

    assert "x" * 1024 == longest.json()["id"]
    assert (400, None) == (longer.status_code, longer.json().get("id"))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_stream_or_an_end_without_a_session_needs_its_id(method: str) -> None:
    async with client(Server("sessions")) as http:
        answer = await http.request(method, "/mcp")
        stateless = await http.request(method, "/mcp", headers={"mcp-protocol-version": "2026-07-28"})

    assert "send the id from the response to initialize" in answer.json()["error"]["message"]
    assert "2026-07-28 has neither sessions nor GET and DELETE; send a POST" == stateless.json()["error"]["message"]


async def test_a_response_without_a_session_is_refused_in_each_stateless_revision() -> None:
    async with client(Server("stateless", revisions=["2026-07-28"])) as http:
        answer = await http.post("/mcp", json=ANSWER)

    assert "stateless revisions, such as 2026-07-28, do not allow" in answer.json()["error"]["message"]
