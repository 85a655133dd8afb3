"""``nox -s bench -- --sustained``: a million calls leave nothing behind, and a thousand can wait at once."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import traffic
from tests.bench.load import ServerGone, Started
from tests.bench.serving import WIDE, script
from tests.bench.traffic import REVISIONS, Batch, Traffic, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

CALLS: Final = 1_000_000
BATCH: Final = 10_000
HELD: Final = 1000
# A reference in a list, the least that can be left behind by each call, takes twice as much.
MOST_BYTES_A_CALL: Final = 4

COMMAND: Final = (script(), "serve", str(Path(__file__).parent / "servers" / "watched.py"))


class Sample(msgspec.Struct, frozen=True):
    """What a server looked like after some calls.

    Attributes:
        calls: How many it had answered.
        memory: MiB that were resident.
        tasks: How many tasks it had, with the one that counted them.
    """

    calls: int
    memory: float
    tasks: int


def run(command: Sequence[str] = COMMAND, *, calls: int = CALLS, batch: int = BATCH, held: int = HELD) -> list[str]:
    """Put a server to the test for each revision, print what is found, and return what is wrong with it."""
    wrong: list[str] = []
    for revision in REVISIONS:
        try:
            with Started(command, Traffic(revision)) as server:
                samples = _samples(server, calls=calls, batch=batch)
                print(_told(revision, samples))  # noqa: T201 (this is a command)
                wrong += [f"{revision}: {each}" for each in grown(samples)]
                print(f"{revision}: {held:,} calls waited at once: {_held(server, held)}")  # noqa: T201
        except (ServerGone, WrongAnswer) as error:
            wrong.append(f"{revision}: {type(error).__name__}: {error}")
    return wrong


def grown(samples: Sequence[Sample]) -> list[str]:
    """Return what grew over *samples*: their first tenth, in which caches fill, does not count."""
    tenth = max(1, len(samples) // 10)
    early, late = samples[tenth : 2 * tenth], samples[-tenth:]
    calls = late[0].calls - early[0].calls
    found = []
    growth = (median(each.memory for each in late) - median(each.memory for each in early)) * 2**20 / calls
    if growth > MOST_BYTES_A_CALL:
        found.append(f"memory grew by {growth:.1f} bytes a call")
    if (more := median(each.tasks for each in late) - median(each.tasks for each in early)) > 0:
        found.append(f"there are {more:g} more tasks at the end")
    return found


def _samples(server: Started, *, calls: int, batch: int) -> list[Sample]:
    samples = []
    for number in range(1, calls // batch + 1):
        server.pipelined(server.traffic.calls(batch), window=WIDE)
        count = server.traffic.call("tasks")
        samples.append(Sample(number * batch, server.resident(), int(traffic.text_of(server.ask(count)))))
    return samples


def _held(server: Started, count: int) -> str:
    waiting = server.traffic.calls(count, tool="wait")
    server.tell(waiting.data)
    tasks = traffic.text_of(server.ask(server.traffic.call("tasks")))
    release = server.traffic.call("release")
    server.tell(release)
    everything = Batch({**waiting.texts, json.loads(release)["id"]: "released"}, b"", 1)
    traffic.check(everything, server.collect(count + 1))
    return f"all answered; {tasks} tasks meanwhile"


def _told(revision: str, samples: Sequence[Sample]) -> str:
    shown = samples[:: max(1, len(samples) // 10)]
    lines = [f"{each.calls:>11,} calls: {each.memory:6.2f} MiB resident, {each.tasks} tasks" for each in shown]
    last = samples[-1]
    lines.append(f"{last.calls:>11,} calls: {last.memory:6.2f} MiB resident, {last.tasks} tasks")
    return "\n".join([f"{revision}:", *lines])
