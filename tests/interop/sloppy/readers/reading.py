"""What the readers in Python have in common: they go through a plan, and print a line of JSON for each reading.

A plan is a file with a list: the kind, the revision, where the server is, and what to do there; see `Reading`.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

__all__ = ["DEADLINE_SECONDS", "MAX_PAGES", "Reading", "Seen", "Verbs", "outcome", "read_all", "reporter"]

Wire = dict[str, Any]

# An answer takes milliseconds, or seconds on a busy machine. A reader that still waits has not understood it.
DEADLINE_SECONDS = 10
MAX_PAGES = 20


class Reading(TypedDict, total=False):
    """One reading: `target` is a command or a URL, `waits` tells whether notifications are looked at in the end.

    `strict` is for mcpgen alone.
    """

    strict: bool
    kind: str
    revision: str
    target: Any
    do: list[str]
    waits: bool


class Seen(TypedDict):
    """What the server sent without being asked."""

    logs: list[Wire]
    progress: list[Wire]


Verbs = dict[str, "Callable[[], Awaitable[Any]]"]


class Connection(Protocol):
    """How a reader connects; the block is the connection, and `connect` is one of the verbs."""

    def __call__(self, reading: Reading, seen: Seen) -> AbstractAsyncContextManager[Verbs]: ...


def reporter(seen: Seen) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    """Return a callback that keeps reports of progress."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen["progress"].append({"progress": progress, "total": total, "message": message})

    return report


async def outcome(reading: Reading, connection: Connection, wire: Callable[[Any], Any]) -> Wire:
    """Return what a reader makes of one server: what it found, and why it stopped before the end."""
    seen: Seen = {"logs": [], "progress": []}
    found: Wire = {"seen": seen}
    failure = "not connected"
    try:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with connection(reading, seen) as verbs:
                for verb in reading["do"]:
                    failure = f"{verb} has not ended"
                    found[verb] = wire(await verbs[verb]())
                if reading["waits"]:
                    await anyio.sleep(0.2)
                failure = ""
    except TimeoutError:
        failure = f"hangs: {failure}" if failure else ""
    except Exception as error:  # noqa: BLE001 - every way to refuse is one
        if failure:
            cause = _first(error)
            refused = getattr(cause, "error", cause)
            if isinstance(getattr(refused, "code", None), int):
                found["error"] = {"code": refused.code, "message": getattr(refused, "message", None)}
            failure = f"{type(cause).__name__}: {cause}"
    return {"kind": reading["kind"], "revision": reading["revision"], "found": found, "failure": failure[:400]}


def _first(error: BaseException) -> BaseException:
    """Return the first error that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def read_all(connection: Connection, wire: Callable[[Any], Any]) -> None:
    """Go through the plan that the first argument names."""
    logging.disable()
    plan: list[Reading] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))

    async def go_through() -> None:
        for reading in plan:
            print(json.dumps(await outcome(reading, connection, wire)), flush=True)  # noqa: T201

    anyio.run(go_through)
