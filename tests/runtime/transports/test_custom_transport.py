"""A transport that is written outside of the package, with its public names alone, connects a client and a server."""

from __future__ import annotations

import anyio
import pytest

from mcpgen import ClientContext, Context, Server, Transport, TransportClosed, connect
from mcpgen.generated.v2026_07_28.models import Root
from tests.patience import PATIENCE_SECONDS
from tests.typing.consumer_transport import QueueTransport

pytestmark = pytest.mark.anyio

server = Server("queued")
REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


@server.tool
async def greet(name: str, context: Context) -> str:
    await context.progress(1, 2)
    return f"Hello, {name}"


@server.tool
async def count_roots(context: Context) -> str:
    return f"{len(await context.roots())} roots"


@server.tool
async def block() -> str:
    await anyio.sleep_forever()
    return "never"


def list_roots(context: ClientContext) -> list[Root]:
    del context
    return [Root(uri="file:///one"), Root(uri="file:///two")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # the transport is written for it


@pytest.fixture
def transport() -> QueueTransport:
    return QueueTransport(server)


def test_it_is_a_transport(transport: QueueTransport) -> None:
    assert isinstance(transport, Transport)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_and_its_progress_go_over_it(transport: QueueTransport, revision: str) -> None:
    progress: list[tuple[float, float | None]] = []

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(transport, revisions=[revision]) as client:
            result = await client.call_tool(
                "greet", {"name": "Ada"}, on_progress=lambda done, total, _: progress.append((done, total))
            )

    assert revision == client.revision
    assert ["Hello, Ada"] == [block.text for block in result.content if block.type == "text"]
    assert [(1, 2)] == progress


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_request_of_the_server_goes_over_it(transport: QueueTransport, revision: str) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(transport, revisions=[revision], roots=list_roots) as client:
            result = await client.call_tool("count_roots")

    assert ["2 roots"] == [block.text for block in result.content if block.type == "text"]


async def test_the_newest_common_revision_is_negotiated_over_it(transport: QueueTransport) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(transport) as client:
            assert "2026-07-28" == client.revision


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_pending_call_gets_its_reason_when_it_ends(transport: QueueTransport, revision: str) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(transport, revisions=[revision]) as client, anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(TransportClosed, match="the queue has ended"):
                    await client.call_tool("block")

            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            transport.answers.frames.put_nowait(None)
