"""The notifications that wait for their handlers when the process of a server is started again."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import connect
from tests.faults.hostile_server_clients import LIMITS, NEW, villain
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

# Every process logs three entries, and exits if a tool is called.
CODE = """
greet()
for number in range(3):
    tell("notifications/message", level="info", data=number)
answer(asked("tools/list"), {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
asked("tools/call")
"""


async def test_none_but_the_one_that_is_handled_is_lost() -> None:
    begun: list[object] = []
    ended: list[object] = []
    told, is_over = anyio.Event(), anyio.Event()

    async def log(entry: Any, _context: object) -> None:
        begun.append(entry.data)
        told.set()
        if len(begun) == 1:
            await anyio.sleep_forever()
        await checkpoint()
        ended.append(entry.data)
        if entry.data == 2:
            is_over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(villain(CODE), revisions=[NEW], limits=LIMITS, log=log, max_restarts=1) as client:
            _ = [each async for each in client.tools()]
            await told.wait()
            with pytest.raises(Exception, match="started again"):
                await client.call_tool("x")
            await is_over.wait()

    assert [1, 2] == ended
