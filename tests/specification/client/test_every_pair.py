"""Our client and our server, each of some revisions: what they agree on."""

from __future__ import annotations

from itertools import combinations

import anyio
import pytest

from mcpgen import NoCommonRevision, Server, connect
from mcpgen.runtime.transports.memory import Memory
from tests.specification.citation import LABELS, everywhere, spec
from tests.specification.client.recorded_client import heard
from tests.specification.client.scripted_server import PATIENCE_SECONDS, on_both_loops

pytestmark = pytest.mark.anyio

SETS = [list(each) for size in range(1, len(LABELS) + 1) for each in combinations(LABELS, size)]


def made(revisions: list[str]) -> Server:
    server = Server("pairs", version="1", revisions=revisions)

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


@spec("2024-11-05", "basic/index", "11427718")
@spec("2025-11-25", "basic/index", "462d48df")
@spec("2026-07-28", "basic/index", "a34cdfdb")
@spec("2024-11-05", "basic/index#protocol-layers", "a10616eb")
@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@everywhere
@pytest.mark.parametrize("revisions", SETS, ids=" ".join)
@pytest.mark.slow
async def test_a_client_speaks_the_one_revision_of_a_server_if_it_can(revisions: list[str], revision: str) -> None:
    async with heard(Memory(made([revision])), revisions) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            if revision not in revisions:
                with pytest.raises(NoCommonRevision) as failure:
                    await connect(server, revisions=revisions)

                assert tuple(revisions) == failure.value.offered
                return
            async with connect(server, revisions=revisions) as client:
                assert revision == client.revision
                assert "hi" == (await client.call_tool("echo", {"text": "hi"})).content[0].text


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@pytest.mark.parametrize("revisions", SETS, ids=" ".join)
@on_both_loops
async def test_a_client_of_everything_speaks_the_newest_revision_of_any_server(revisions: list[str]) -> None:
    async with heard(Memory(made(revisions))) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server) as client:
                assert revisions[-1] == client.revision
                assert "hi" == (await client.call_tool("echo", {"text": "hi"})).content[0].text


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@pytest.mark.parametrize("revisions", SETS, ids=" ".join)
async def test_any_client_speaks_the_newest_revision_that_it_has_of_a_server_of_everything(
    revisions: list[str],
) -> None:
    async with heard(Memory(made(LABELS)), revisions) as server:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(server, revisions=revisions) as client:
                assert revisions[-1] == client.revision
