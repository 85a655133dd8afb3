"""A request whose client is gone when its turn comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from mcpgen import Server
from mcpgen.runtime.http.server.responses import ABORT
from tests.specification.citation import spec
from tests.specification.http_server.http_clients import joined
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from tests.specification.http_server.http_clients import Caller

pytestmark = pytest.mark.anyio

decoded: list[int] = []


class Note(pydantic.BaseModel):
    """Counts how often it is decoded."""

    text: str

    @pydantic.field_validator("text")
    @classmethod
    def count(cls, text: str) -> str:
        decoded.append(len(text))
        return text


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def post_and_leave(client: Caller, body: bytes) -> None:
    """Post *body*, as our HTTP server tells the application when the connection has closed meanwhile."""
    headers = [(name.lower().encode(), value.encode()) for name, value in client.lines(body)]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "headers": []}
    scope |= {"headers": [(b"host", b"localhost"), *headers], "client": ("127.0.0.1", 50000), "scheme": "http"}
    scope |= {"extensions": {ABORT: {"abort": lambda: None, "is_closing": lambda: True}}}

    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_: Any) -> None: ...

    await client.web.app(scope, receive, send)


@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@pytest.mark.parametrize(("revision", "times"), [("2026-07-28", 0), ("2025-11-25", 1)])
@pytest.mark.parametrize("length", [50, 5000])
async def test_a_closed_connection_cancels_a_stateless_request_before_it_is_decoded(
    revision: str, times: int, length: int
) -> None:
    decoded.clear()
    server = Server("demo")

    async def write(note: Note) -> None:
        del note

    server.tool(write)
    arguments = json.dumps({"note": {"text": "x" * length}})
    async with site(server) as web:
        client = await joined(web, revision)
        await post_and_leave(client, client.request(1, "tools/call", f'"name":"write","arguments":{arguments}'))
        await web.quiet()

    assert [length] * times == decoded
