"""Private results that a client keeps: with each authorization, and after it changes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mcpgen import Http, connect
from mcpgen.runtime.http.client.bearer_auth import bearer
from tests.specification.citation import spec
from tests.specification.client.scripted_server import discovered, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, Played, closed, played

pytestmark = pytest.mark.anyio


def page(name: str, scope: str) -> dict[str, object]:
    tools = [{"name": name, "inputSchema": {"type": "object"}}]
    return {"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": scope}


class Other(httpx.Auth):
    """Credentials that are the last of *tokens*."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self.tokens[-1]}"
        yield request


def target(kind: str, server: Played, tokens: list[str], client: httpx.AsyncClient) -> Http:
    """Return a transport with credentials of a kind; the last of *tokens* is the current one."""
    if kind == "text":
        return Http(server.url, auth=bearer(tokens[-1]))
    if kind == "function":
        return Http(server.url, auth=bearer(lambda: tokens[-1]))
    if kind == "auth":
        return Http(server.url, auth=Other(tokens))
    return Http(server.url, client=client)


@spec("2026-07-28", "server/utilities/caching#cache-scope-field", "ae5ddf4e")
@spec("2026-07-28", "schema#listpromptsresult", "16d987b1")
@on_both_loops
@pytest.mark.parametrize("scope", ["private", "public"])
@pytest.mark.parametrize("kind", ["text", "function", "auth", "client"])
async def test_a_private_result_is_not_kept_where_the_credentials_can_change(kind: str, scope: str) -> None:
    tokens = ["ann"]
    async with played() as server, httpx.AsyncClient(auth=Other(tokens)) as own:
        transport = target(kind, server, tokens, own)

        async def run() -> Any:
            return await connect(transport, revisions=[NEWEST], cache_results=True)

        connecting = server.start(run())
        await (await server.hear(method="server/discover")).result(discovered({"tools": {}}))
        client = await connecting.outcome()
        listing = server.start(client.list_tools())
        await (await server.hear(method="tools/list")).result(page("of-ann", scope))
        assert "of-ann" == (await listing.outcome()).tools[0].name

        tokens.append("bob")
        listing = server.start(client.list_tools())
        if kind == "text" or scope == "public":
            assert "of-ann" == (await listing.outcome()).tools[0].name
        else:
            asked = await server.hear(method="tools/list")
            assert "Bearer bob" == asked.headers["authorization"]
            await asked.result(page("of-bob", scope))
            assert "of-bob" == (await listing.outcome()).tools[0].name
        await closed(client, server)
