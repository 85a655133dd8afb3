"""Clients of a `villain`, and the certainty that nothing is left of them."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from msgspec.structs import replace

from mcpgen import ClientLimits, Process, connect
from mcpgen.runtime.transports.spawner import is_asyncio
from tests.faults import hostile_server as villain_module
from tests.harness import child_programs
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.specification.client.recorded_client import heard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from mcpgen import Client

OLD: Final = "2025-06-18"
NEW: Final = "2026-07-28"
LIMITS: Final = ClientLimits(
    probe_seconds=0.5,
    connect_seconds=PATIENCE_SECONDS,
    call_seconds=PATIENCE_SECONDS,
    stdin_seconds=0.5,
    term_seconds=0.5,
)
# For servers that do not answer the probe.
QUICK: Final = replace(LIMITS, probe_seconds=0.2, stdin_seconds=0.2, term_seconds=0.2)
# For servers that answer after the time of the probe, but within that of `initialize`, which is five times as long.
LATE: Final = replace(QUICK, probe_seconds=2)
# For servers that answer, also on a machine that starts them slowly.
PATIENT: Final = replace(QUICK, probe_seconds=PATIENCE_SECONDS)

GOOD: Final = "greet()\nserve()"
# A server that answers a call when it is asked a second time, and hears of changes.
SLOW: Final = """
revision = greet()
while True:
    call = asked()
    if call["method"] == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": call["id"]}
        tell("notifications/subscriptions/acknowledged", notifications=call["params"]["notifications"], _meta=meta)
    elif call["method"] == "tools/call" and call["params"]["name"] == "hang":
        pass
    elif call["method"] == "tools/call":
        text(call, "ok")
    else:
        answer(call, {})
"""

_numbers = count()


def command(code: str) -> list[str]:
    """Return the command of a villain."""
    return [sys.executable, "-I", "-S", str(Path(villain_module.__file__)), textwrap.dedent(code)]


def villain(code: str, **options: Any) -> Process:
    """Return a server that runs *code*, of which no client has learnt anything yet."""
    environment = {child_programs.MARK: "1", "NUMBER": str(next(_numbers)), **options.pop("environment", {})}
    return Process(command(code), environment=environment, **options)


@asynccontextmanager
async def attacked(code: str, revision: str | None = OLD, **options: Any) -> AsyncGenerator[Client]:
    """Connect a client to a villain, within a time that is enough for all that happens here.

    Args:
        code: What the villain does.
        revision: The one that the client offers; all if None.
        options: For `connect`.
    """
    options = {"limits": LIMITS, "revisions": None if revision is None else [revision], **options}
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(villain(code), **options) as client:
            yield client


@asynccontextmanager
async def judged(code: str, revision: str = OLD, **options: Any) -> AsyncGenerator[Client]:
    """Do as `attacked` does, and judge all that the client says."""
    options = {"limits": LIMITS, "revisions": [revision], **options}
    with anyio.fail_after(PATIENCE_SECONDS):
        async with heard(villain(code), [revision]) as transport, connect(transport, **options) as client:
            yield client


def words(found: Any) -> str:
    """Return what a tool has said."""
    return str(found.content[0].text)


def tasks() -> int:
    """Return how many tasks there are in this event loop."""
    if is_asyncio():
        return len(asyncio.all_tasks())
    import trio

    return trio.lowlevel.current_statistics().tasks_living


async def settled(before: tuple[int, int]) -> tuple[int, int]:
    """Return how many tasks and descriptors there are, once it is no more than *before*, or after a while."""
    with anyio.move_on_after(BUSY_SECONDS):
        await child_programs.until(lambda: all(now <= then for now, then in zip(standing(), before, strict=True)))
    return standing()


def standing() -> tuple[int, int]:
    """Return how many tasks and descriptors there are."""
    return tasks(), child_programs.own_descriptors()


class Stopwatch:
    """Measures how long a block takes."""

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self.seconds = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begin


def pids(stderr: str) -> Iterator[int]:
    """Return the numbers that a villain has printed as errors."""
    return (int(each) for each in stderr.split() if each.isdecimal())
