"""Bodies that are refused: for how many of them the server reads on at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.http.server import refused_bodies
from mcpgen.runtime.http.server.refused_bodies import RefusedBodies
from mcpgen.runtime.http.server.request_body import BodyRefused

if TYPE_CHECKING:
    from collections.abc import MutableMapping

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("status", "read_on"), [(413, 64), (503, 0)])
async def test_the_server_reads_on_after_a_limited_number_of_long_bodies(
    monkeypatch: pytest.MonkeyPatch, status: int, read_on: int
) -> None:
    monkeypatch.setattr(refused_bodies, "_PART_SECONDS", 3600)
    monkeypatch.setattr(refused_bodies, "_SECONDS", 3600)
    bodies, ended = RefusedBodies(), []

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            ended.append(message)

    async with anyio.create_task_group() as tasks:
        for _ in range(70):
            tasks.start_soon(bodies.refuse, anyio.sleep_forever, send, BodyRefused(status, "too much"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert 70 - read_on == len(ended)
