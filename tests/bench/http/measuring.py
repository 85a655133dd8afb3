"""All that is measured over HTTP, in one run."""

from __future__ import annotations

import sys

import msgspec

from tests.bench.http import calling, crowds, serving
from tests.bench.http.calling import CallingRow
from tests.bench.http.crowds import SessionsRow, StreamsRow
from tests.bench.http.serving import ServingRow


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run found about HTTP."""

    serving: list[ServingRow]
    sessions: list[SessionsRow]
    streams: list[StreamsRow]
    calling: list[CallingRow]


def measure(rounds: int) -> Measurements:
    """Measure everything.

    Args:
        rounds: A twentieth as many batches are measured of each server and client.
    """
    few = max(1, rounds // 20)
    _say("serving over HTTP")
    served = list(serving.rows(serving.contenders(), rounds=few))
    _say("idle sessions")
    held = list(crowds.sessions(crowds.holders()))
    _say("open streams")
    told = list(crowds.streams(crowds.tellers(), changes=4 * few))
    _say("calling over HTTP")
    called = list(calling.rows(calling.contenders(), calling.answering(), rounds=few))
    return Measurements(serving=served, sessions=held, streams=told, calling=called)


def _say(what: str) -> None:
    sys.stderr.write(f"measuring: {what}\n")
