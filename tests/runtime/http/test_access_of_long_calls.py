"""``Context.access`` where a function outlives the HTTP request: in tasks, and in calls that wait for input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from msgspec import Struct

from mcpgen import Access, Context, Http, Protect, Server, bearer, connect
from mcpgen.generated.v2026_07_28 import ElicitResult
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen import Application

pytestmark = pytest.mark.anyio

TOKENS = {
    "ann": Access(subject="ann", client_id="app", scopes=frozenset({"mcp"})),
    "ann-writes": Access(subject="ann", client_id="app", scopes=frozenset({"mcp", "write"})),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
async def patience() -> AsyncGenerator[None]:
    with anyio.fail_after(PATIENCE_SECONDS):
        yield


class Order(Struct):
    value: int


class Bakery:
    """A protected server.

    Attributes:
        answered: Set when the client has the answer to its request.
    """

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.server = Server("bakery")

        @self.server.tool(task=True)
        async def bake(ctx: Context) -> str:
            before = said(ctx)
            await self.answered.wait()
            return f"{before} / {said(ctx)}"

        @self.server.tool(task=True)
        async def order(ctx: Context) -> str:
            before = said(ctx)
            await ctx.elicit("How many?", Order)
            return f"{before} / {said(ctx)}"

    def app(self, origin: str) -> Application:
        async def verify(token: str) -> Access | None:
            return TOKENS.get(token)

        auth = Protect(resource=f"{origin}/mcp", issuers=["https://login.example.com"], scopes=["mcp"], verify=verify)
        return self.server.asgi(auth=auth, bound_to="127.0.0.1")


def said(ctx: Context) -> str:
    assert ctx.access is not None
    return f"{ctx.access.subject}: {' '.join(sorted(ctx.access.scopes))}"


def url_of(app: Application) -> str:
    return app.metadata.url.replace("/.well-known/oauth-protected-resource", "")


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_task_has_the_access_of_the_request_that_began_it(revision: str) -> None:
    bakery = Bakery()
    async with served(bakery.app) as app:
        target = Http(url_of(app), auth=bearer("ann"))
        async with connect(target, tasks=True, revisions=[revision]) as client:
            handle = await client.start_tool("bake", {})
            bakery.answered.set()

            assert "ann: mcp / ann: mcp" == (await handle.result()).text


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [True, False])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_function_that_waited_for_input_still_has_it(revision: str, *, tasks: bool) -> None:
    async def four(*_: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"value": 4})

    async with served(Bakery().app) as app:
        target = Http(url_of(app), auth=bearer("ann"))
        async with connect(target, tasks=tasks, revisions=[revision], elicit=four) as client:
            assert "ann: mcp / ann: mcp" == (await client.call_tool("order")).text


@pytest.mark.slow
async def test_a_call_that_comes_back_with_input_has_the_access_of_its_last_request() -> None:
    """In 2026-07-28, a client repeats the request, which may carry a newer token of the same user."""
    tokens = ["ann"]

    async def four(*_: object) -> ElicitResult:
        tokens[0] = "ann-writes"
        return ElicitResult(action="accept", content={"value": 4})

    async with served(Bakery().app) as app:
        target = Http(url_of(app), auth=bearer(lambda: tokens[0]))
        async with connect(target, elicit=four) as client:
            text = (await client.call_tool("order")).text

    assert "ann: mcp / ann: mcp write" == text
