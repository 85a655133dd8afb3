"""Protected servers of others, to which our client logs in, in each revision that has authorization."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from mcpgen import MemoryTokenStore, OAuth, connect
from tests.interop.logins.runs import visit
from tests.interop.protected.processes import HERE, authorization_server, command, free_port, running
from tests.interop.protected.their_clients import ALL, HANDSHAKES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SERVERS", "Server", "failures"]

SECONDS: Final = 60
AT_ONCE: Final = 3

UVICORN: Final = "Uvicorn running on"  # FastMCP names its address before it listens


class Server(msgspec.Struct, frozen=True):
    """A protected server.

    Attributes:
        name: What failures call it.
        package: The requirement, for pip or npm.
        script: The file in ``servers/`` that serves with it.
        revisions: The ones that it speaks.
        is_issuer: Whether it is its own authorization server, which knows no names of users.
        marker: What is in the line with which it says that it listens.
    """

    name: str
    package: str
    script: str
    revisions: tuple[str, ...]
    is_issuer: bool = False
    marker: str = "http://"


SERVERS: Final = (
    Server("Python SDK 1.30", "mcp==1.30.0", "python_v1.py", HANDSHAKES),
    Server("Python SDK 2.3", "mcp==2.3.0", "python_v2.py", ALL),
    Server("FastMCP 4.1", "fastmcp==4.1.2", "fastmcp_v4.py", ALL, marker=UVICORN),
    Server(
        "FastMCP 4.1, which is its own issuer", "fastmcp==4.1.2", "fastmcp_v4.py", ALL, is_issuer=True, marker=UVICORN
    ),
    Server("TypeScript SDK 1.32", "@modelcontextprotocol/sdk@1.32.2", "typescript_v1.mjs", HANDSHAKES),
    Server("TypeScript SDK 2.4", "@modelcontextprotocol/server@2.4.0", "typescript_v2.mjs", ALL),
)


def failures() -> Iterator[str]:
    """Log in to all servers, and say what came back that must not."""
    commands = [command(each.package, HERE / "servers" / each.script) for each in SERVERS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(_failures_with, SERVERS, commands):
            yield from found


def _failures_with(server: Server, start: list[str]) -> list[str]:
    found: list[str] = []
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    issued = nullcontext("itself") if server.is_issuer else authorization_server(free_port(), url, "opaque")
    with issued as issuer, running([*start, str(port), issuer], "stderr", server.marker):
        for revision in server.revisions:
            try:
                anyio.run(_log_in, server, url, revision)
            except Exception as error:  # noqa: BLE001 (reported)
                found.append(f"our client at {server.name} in {revision}: {type(error).__name__}: {error}")
    return found


async def _log_in(server: Server, url: str, revision: str) -> None:
    """Log in, call a tool, and connect again, which needs no login."""
    user = "None" if server.is_issuer else "ann"
    pages: list[str] = []

    async def visited(page: str) -> str:
        pages.append(page)
        return await visit(page)

    oauth = OAuth(visit=visited, store=MemoryTokenStore())
    with anyio.fail_after(SECONDS):
        for _ in range(2):
            async with connect(url, auth=oauth, revisions=[revision]) as client:
                result: Any = await client.call_tool("whose")
            assert result.content[0].text == f"{user}: files:read", result
    # As an issuer, FastMCP allows only the scopes of the registration, so the client has to register again with them.
    assert len(pages) == 1 + server.is_issuer, pages
