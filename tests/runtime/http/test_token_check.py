"""What the log says about tokens that cannot be verified, and for what the claims of others count."""

from __future__ import annotations

import json

import pytest

from mcpgen import Access, Protect, Server
from mcpgen.runtime.http.server.auth import token_check
from tests.specification.http_server.protected_site import ask, protect, protected

pytestmark = pytest.mark.anyio

CLIENT = {"name": "x", "version": "1"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_issuer_that_is_down_is_logged_once_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: str) -> Access | None:
        raise TimeoutError

    def logged() -> int:
        return [each.name for each in caplog.records].count("mcpgen.http.auth")

    async with protected(auth=protect(verify=fails)) as web:
        web.overseer.expects_failure = True
        answers = [await ask(web, f"token-{number}", "tools/list") for number in range(5)]
        assert ([503] * 5, 1) == ([each.status for each in answers], logged())
        monkeypatch.setattr(token_check, "_LOG_SECONDS", 0)
        await ask(web, "token", "tools/list")

    assert 2 == logged()


async def test_the_claims_of_a_token_count_for_its_session_and_for_its_open_requests() -> None:
    """An issuer may write 64 KiB of them, and each of 10,000 sessions keeps those of the last token."""

    async def verify(token: str) -> Access:
        return Access(subject="ann", claims={"text": "x" * int(token)})

    resource = "https://mcp.example.com/mcp"
    app = Server("x", version="1").asgi(
        auth=Protect(resource=resource, issuers=["https://login.example.com"], verify=verify)
    )
    state, sessions = app._state, app._state.sessions

    async def post(size: int, method: str, **params: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"host": "x", "content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers["authorization"] = f"Bearer {size}"
        for each in sessions:
            headers["mcp-session-id"] = each.id

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body}

        async def send(_: object) -> None:
            """Read nothing."""

        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": lines}
        await app(scope, receive, send)

    async with app.running():
        await post(1000, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=CLIENT)
        before = sessions.quota.bytes
        await post(50_000, "ping")
        assert 49_000 == sessions.quota.bytes - before
        client = app._tokens.known_client({"authorization": "Bearer 50000"}) if app._tokens else None
        assert client
        state.open_ticket(client, {})

    assert state.open_quota.bytes > 50_000
