"""``nox -s bench -- --sustained``, over HTTP: clients come, call, hang up and come back, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.http import serving
from tests.bench.http.connections import clients
from tests.bench.http.crowds import listening
from tests.bench.http.listening import Listening
from tests.bench.http.serving import FEW, REVISIONS
from tests.bench.load import ServerGone
from tests.bench.sustained import Sample, grown, told
from tests.bench.traffic import WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

# Sessions and connections come and go here, for which it takes longer until memory has found its size.
CALLS: Final = 400_000
BATCH: Final = 1_000
# Of each batch; what is left of one that was not closed in order would be found as quickly.
DESERTERS: Final = 3

COMMAND: Final = serving.ours("http_watched")


def run(command: Sequence[str] = COMMAND, *, calls: int = CALLS, batch: int = BATCH) -> list[str]:
    """Put a server to the test for each revision, print what is found, and return what is wrong with it."""
    wrong: list[str] = []
    for revision in REVISIONS:
        named = f"HTTP, {revision}"
        try:
            with Listening(command) as server:
                samples = _samples(server, revision, calls=calls, batch=batch)
            print(told(named, samples))  # noqa: T201 (this is a command)
            wrong += [f"{named}: {each}" for each in grown(samples)]
        except (ServerGone, WrongAnswer) as error:
            wrong.append(f"{named}: {type(error).__name__}: {error}")
    return wrong


def _samples(server: Listening, revision: str, *, calls: int, batch: int) -> list[Sample]:
    samples = []
    with clients(server, revision, 1) as watcher:
        for number in range(1, calls // batch + 1):
            with clients(server, revision, FEW) as callers:
                callers.call(batch)
                # Some listen, and hang up without a word while they are told something.
                with listening(server, revision, DESERTERS):
                    callers.call(1, tool="change")
                callers.end_sessions()
            watcher.send("tasks")
            tasks = int(watcher.receive())
            samples.append(Sample(number * batch, server.resident(), tasks, server.descriptors()))
    return samples
