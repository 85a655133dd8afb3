"""Clients that come and go as they like: nothing is lost that can be had again, and nothing comes twice."""

from __future__ import annotations

from random import Random

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.http_site import site
from tests.specification.http_server.random_clients import Walk
from tests.specification.http_server.revision_sets import on_both_loops, spec
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@spec("2025-11-25", "basic/utilities/tasks#getting-tasks", "80dc43b8")
@spec("2025-11-25", "basic/utilities/tasks#retrieving-task-results", "ee7c2d53")
@spec("2025-11-25", "basic/utilities/tasks#input-required-status", "b2c7832d")
@spec("2025-03-26", "basic/transports#resumability-and-redelivery")
@spec("2025-06-18", "basic/transports#multiple-connections")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@on_both_loops
@pytest.mark.parametrize("seed", range(20))
async def test_whatever_clients_do_each_request_is_answered_once_and_each_change_told_once(seed: int) -> None:
    own, random = behaviour(), Random(seed)  # noqa: S311 (no secret)
    async with site(demo(own), limits=HttpLimits(stream_after_seconds=0.001)) as web:
        web.overseer.may_cross = True
        walk = Walk(web, random)
        await walk.begin(3)
        for index in range(60):
            if index == 40:
                own.gate.set()
            await walk.step()
        await walk.finish()

        assert [] == [each.exchange for each in walk.lines if each.is_open]
        assert {0, 1} >= {each.answers for each in walk.lines}
        whole = [each for each in walk.own if not each.has_hole]
        assert [walk.changes] * len(whole) == [walk.told[each.peer.session or ""] for each in whole]
