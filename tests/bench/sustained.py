"""``nox -s bench -- --sustained``: a million calls leave nothing behind, and a thousand can wait at once.

Of a server first, and then of a client, which has one connection for all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import calling, traffic
from tests.bench.load import ServerGone, Started
from tests.bench.ordered import ClientGone, Ordered
from tests.bench.serving import WIDE, script
from tests.bench.traffic import REVISIONS, Batch, Traffic, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

CALLS: Final = 1_000_000
BATCH: Final = 10_000
HELD: Final = 1000
# A reference in a list, the least that can be left behind by each call, takes twice as much.
MOST_BYTES_A_CALL: Final = 4

OURS: Final = calling.contenders()[0]
COMMAND: Final = (script(), "serve", str(Path(__file__).parent / "servers" / "watched.py"))


class Sample(msgspec.Struct, frozen=True):
    """What a server, or a client, looked like after some calls.

    Attributes:
        calls: How many it had answered, or made.
        memory: MiB that were resident.
        tasks: How many tasks it had, with the one that counted them.
        descriptors: How many descriptors it had open.
    """

    calls: int
    memory: float
    tasks: int
    descriptors: int


def run(command: Sequence[str] = COMMAND, *, calls: int = CALLS, batch: int = BATCH, held: int = HELD) -> list[str]:
    """Put a server to the test for each revision, print what is found, and return what is wrong with it."""
    wrong: list[str] = []
    for revision in REVISIONS:
        try:
            with Started(command, Traffic(revision)) as server:
                samples = _samples(server, calls=calls, batch=batch)
                print(told(revision, samples))  # noqa: T201 (this is a command)
                wrong += [f"{revision}: {each}" for each in grown(samples)]
                print(f"{revision}: {held:,} calls waited at once: {_held(server, held)}")  # noqa: T201
        except (ServerGone, WrongAnswer) as error:
            wrong.append(f"{revision}: {type(error).__name__}: {error}")
    return wrong


def run_client(
    contender: calling.Contender = OURS, *, calls: int = CALLS, batch: int = BATCH, held: int = HELD
) -> list[str]:
    """Put one client to the test for each revision, print what is found, and return what is wrong with it."""
    wrong: list[str] = []
    for revision in calling.REVISIONS:
        named = f"client, {revision}"
        try:
            with Ordered(contender.command(revision, calling.still().command)) as client:
                samples = _client_samples(client, calls=calls, batch=batch)
            print(told(named, samples))  # noqa: T201 (this is a command)
            wrong += [f"{named}: {each}" for each in grown(samples)]
            with Ordered(contender.command(revision, COMMAND)) as client:
                answered = client.hold(held)
            print(f"{named}: {held:,} calls waited at once: {answered:,} answered")  # noqa: T201
            if answered != held:
                wrong.append(f"{named}: {held - answered:,} of {held:,} calls were not answered rightly")
        except ClientGone as error:
            wrong.append(f"{named}: {error}")
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
    for what in ("tasks", "descriptors"):
        before, after = (median(getattr(each, what) for each in some) for some in (early, late))
        found += [f"there are {after - before:g} more {what} at the end"] * (after > before)
    return found


def told(named: str, samples: Sequence[Sample]) -> str:
    """Return *samples*, or ten of them, as lines for people to read."""
    shown = [*samples[:: max(1, len(samples) // 10)], samples[-1]]
    lines = [
        f"{each.calls:>11,} calls: {each.memory:6.2f} MiB resident, {each.tasks} tasks, {each.descriptors} descriptors"
        for each in shown
    ]
    return "\n".join([f"{named}:", *lines])


def _samples(server: Started, *, calls: int, batch: int) -> list[Sample]:
    samples = []
    for number in range(1, calls // batch + 1):
        server.pipelined(server.traffic.calls(batch), window=WIDE)
        count = server.traffic.call("tasks")
        tasks = int(traffic.text_of(server.ask(count)))
        samples.append(Sample(number * batch, server.resident(), tasks, server.descriptors()))
    return samples


def _client_samples(client: Ordered, *, calls: int, batch: int) -> list[Sample]:
    samples = []
    for number in range(1, calls // batch + 1):
        client.together(batch, window=WIDE)
        samples.append(Sample(number * batch, client.resident(), client.tasks(), client.descriptors()))
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
