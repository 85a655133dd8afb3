"""A judge of retries: what a client of the stateless era sends again because its server demanded input.

A demand ends its request. The retry is another one, which differs from it in nothing but its id, its metadata, and the
two members that answer the demand; it answers the newest demand of its own call, and that one alone.

Spec:
    2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.harness.client_response_rules import of_content, undeclared
from tests.harness.client_state import META, Asked, keyed
from tests.harness.closed_documents import MAY_DEMAND, Problem, document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.closed_documents import Json

_ANSWERS = ("inputResponses", "requestState")


class Own(Asked):
    """A request of the client that has no answer yet.

    Attributes:
        round: What it retries.
    """

    round: Round | None = None

    @property
    def core(self) -> str:
        """What a retry has in common with what it retries."""
        rest = {key: each for key, each in self.params.items() if key not in (*_ANSWERS, "_meta")}
        return self.method + json.dumps(rest, sort_keys=True)


class Round:
    """A demand that waits to be answered."""

    def __init__(self, own: Own, result: Mapping[str, Json]) -> None:
        self.own = own
        self.state = result.get("requestState")
        requests = result.get("inputRequests")
        self.requests: Mapping[str, Json] = requests if isinstance(requests, dict) else {}

    def fits(self, own: Own) -> int:
        """Return how much of *own* looks like an answer to this."""
        given = own.params.get("inputResponses")
        keys = set(given) if isinstance(given, dict) else set()
        return (own.params.get("requestState") == self.state) + (keys == set(self.requests))


class Rounds:
    """The demands that wait to be answered."""

    def __init__(self) -> None:
        self._waiting: list[Round] = []

    def demanded(self, own: Own, result: Mapping[str, Json]) -> None:
        """Remember that *own* was answered by a demand."""
        if own.method in MAY_DEMAND:
            self._waiting.append(Round(own, result))

    def failed(self, own: Own) -> None:
        """Let the demand that *own* has answered be answered again: it came to nothing."""
        if own.round is not None:
            self._waiting.append(own.round)

    def retried(self, own: Own) -> Iterator[Problem]:
        """Yield what is wrong with *own* as an answer to a demand."""
        if not set(_ANSWERS) & set(own.params):
            return
        found = [each for each in self._waiting if each.own.core == own.core]
        if not found:
            yield Problem(
                "/params",
                "nothing was demanded of this method with these params (basic/patterns/mrtr, Client Requirements)",
            )
            return
        answered = max(found, key=lambda each: each.fits(own))
        self._waiting.remove(answered)
        own.round = answered
        if keyed(own.message["id"]) == keyed(answered.own.message["id"]):
            yield Problem("/id", "a retry has an id of its own (basic/patterns/mrtr, Client Requirements 3)")
        yield from _state(own, answered)
        yield from _inputs(own, answered)


def _state(own: Own, answered: Round) -> Iterator[Problem]:
    """Judge the echo (basic/patterns/mrtr, "Client Requirements", 2)."""
    if own.params.get("requestState") != answered.state:
        said = "there was none" if answered.state is None else f"it is {answered.state!r}"
        yield Problem("/params/requestState", f"the state of a demand is echoed as it came: {said}")


def _inputs(own: Own, answered: Round) -> Iterator[Problem]:
    """Judge what was given for what was demanded (basic/patterns/mrtr, "InputResponses")."""
    given = own.params.get("inputResponses", {})
    if not isinstance(given, dict):
        return  # the document has said so
    for key in answered.requests.keys() - given.keys():
        yield Problem("/params/inputResponses", f"{key} was demanded, and is not here (Client Requirements 1)")
    for key in given.keys() - answered.requests.keys():
        yield Problem(f"/params/inputResponses/{key}", "nobody has demanded this (InputResponses)")
    for key in given.keys() & answered.requests.keys():
        demand, where = answered.requests[key], f"/params/inputResponses/{key}"
        if isinstance(demand, dict):
            yield from _input(answered.own, demand, given[key], where)


def _input(own: Own, demand: Mapping[str, Json], value: Json, where: str) -> Iterator[Problem]:
    revision, method = own.revision or "", demand.get("method", "")
    params = demand.get("params")
    params = params if isinstance(params, dict) else {}
    yield from document(revision).of_input(value, demand, where)
    declared = own.meta.get(META + "clientCapabilities")
    lacking = undeclared(declared if isinstance(declared, dict) else {}, revision, method, params)
    if lacking is not None:
        yield Problem(where, f"the client answers this, and has not declared {lacking} (Server Requirements 7)")
    yield from of_content(method, params, value, where)
