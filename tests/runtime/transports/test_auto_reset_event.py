"""An event that one task waits for, with and without a time limit, on each event loop."""

from __future__ import annotations

import anyio
import pytest

from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.patience import BUSY_SECONDS

# Far longer than the tests take, and shorter than their limit.
_LONG_SECONDS = 60.0


@pytest.mark.anyio
async def test_a_wait_with_a_limit_ends_without_the_event() -> None:
    event = auto_reset_event()
    with anyio.fail_after(BUSY_SECONDS):
        assert await event.wait_at_most(0.01) is False
        assert await event.wait_at_most(0) is False


@pytest.mark.anyio
async def test_an_event_that_is_set_ends_a_wait_with_a_limit_once() -> None:
    event = auto_reset_event()
    event.set()
    event.set()
    with anyio.fail_after(BUSY_SECONDS):
        assert await event.wait_at_most(_LONG_SECONDS) is True
        assert await event.wait_at_most(0.01) is False


@pytest.mark.anyio
async def test_an_event_wakes_the_task_that_waits_with_a_limit() -> None:
    event, found = auto_reset_event(), []

    async def wait() -> None:
        found.append(await event.wait_at_most(_LONG_SECONDS))

    with anyio.fail_after(BUSY_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            event.set()
    assert [True] == found


@pytest.mark.anyio
async def test_an_event_that_is_set_after_a_wait_was_over_or_cancelled_is_not_lost() -> None:
    event = auto_reset_event()
    with anyio.fail_after(BUSY_SECONDS):
        await event.wait_at_most(0.01)
        event.set()
        assert await event.wait_at_most(_LONG_SECONDS) is True

        with anyio.move_on_after(0.01) as scope:
            await event.wait_at_most(_LONG_SECONDS)
        assert scope.cancelled_caught
        event.set()
        await event.wait()
