"""The authorization server is restarted with new keys, while a protected server of ours runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import anyio

from mcpgen import MemoryTokenStore, OAuth, connect
from tests.interop.logins.runs import visit
from tests.interop.protected.processes import HERE, authorization_server, free_port, running

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["failures"]

SECONDS: Final = 60


def failures() -> Iterator[str]:
    """Say what a client cannot do after the restart: new tokens must be accepted, and old ones while they are known."""
    port, own_port = free_port(), free_port()
    resource = f"http://127.0.0.1:{own_port}/mcp"
    old, new = (OAuth(visit=visit, store=MemoryTokenStore()) for _ in range(2))
    with ExitStack() as stack:
        with authorization_server(port, resource) as issuer:
            serve = [sys.executable, str(HERE / "protected_server.py"), str(own_port), issuer, "jwt"]
            stack.enter_context(running(serve, "stderr"))
            yield from _failures_of("a client before the restart", resource, old)
        yield from _failures_of("a client while there is no authorization server", resource, old)
        with authorization_server(port, resource):
            yield from _failures_of("a client that logs in after the restart", resource, new)
            yield from _failures_of("a client with a token of the old keys", resource, old)


def _failures_of(name: str, resource: str, oauth: OAuth) -> Iterator[str]:
    async def call() -> None:
        with anyio.fail_after(SECONDS):
            async with connect(resource, auth=oauth) as client:
                result: Any = await client.call_tool("whose")
                assert result.content[0].text.startswith("ann: files:read"), result

    try:
        anyio.run(call)
    except Exception as error:  # noqa: BLE001 (reported)
        yield f"{name}: {type(error).__name__}: {error}"
