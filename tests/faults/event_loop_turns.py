"""Waiting for what takes a few turns of the event loop, or a thread; and clients that nobody judges."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.lowlevel import checkpoint

from tests.patience import PATIENCE_SECONDS
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcpgen import Server
    from tests.harness.server_recorder import Recorder
    from tests.harness.server_wire import Wire
    from tests.specification.server.revision_client import Client


async def until(condition: Callable[[], object]) -> None:
    """Return when *condition* holds."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not condition():
            await checkpoint()


async def answers(wire: Wire, count: int) -> list[Any]:
    """Return the next messages of the server, *count* of them at least."""
    found = await wire.rest()
    with anyio.fail_after(PATIENCE_SECONDS):
        while len(found) < count:
            await checkpoint()
            found += await wire.rest()
    return found


class _Deaf:
    """Takes the place of a `Recorder`, which keeps and reads all that it hears."""

    def heard(self, message: bytes) -> None:
        pass

    def said(self, message: bytes) -> None:
        pass

    def verify(self) -> None:
        pass


@asynccontextmanager
async def unjudged(server: Server, revision: str, capabilities: str = "{}") -> AsyncGenerator[Client]:
    """Connect a client whose conversation the recorder could not follow, or that is too long to be kept."""
    async with client(server, revision, capabilities) as peer:
        peer.wire.recorder = cast("Recorder", _Deaf())
        yield peer
