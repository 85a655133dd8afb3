"""What counts as conforming: how many checks succeeded, and that nothing else was said but what may be."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.conformance.suite import Result, Run

__all__ = ["ALLOWED", "Expected", "Verdict", "complaints", "expected", "judge"]

HERE: Final = Path(__file__).parent

# What the client prints when it has come to its end. The suite does not look at how a client ends.
DONE: Final = "The scenario was gone through."

# That messages are valid is looked at in each scenario, even in one where nothing else happens.
ACCOMPANYING: Final = "wire-schema-valid"

# The suite's names for what is not the protocol itself: authorization, and extensions.
ALLOWED: Final = ("auth/", "tasks-", "sep-2640-")


class Verdict(msgspec.Struct, frozen=True):
    """What to think of a scenario.

    Attributes:
        successes: How many checks succeeded.
        faults: What is wrong; nothing, if it conforms.
    """

    successes: int
    faults: tuple[str, ...] = ()


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scenarios that may fail, and then have to.

    Attributes:
        side: Who may fail.
        reason: Why, in a sentence.
        scenarios: Their names.
    """

    side: str
    reason: str
    scenarios: list[str]


def expected() -> list[Expected]:
    """Return what ``expected.toml`` lists, for a server of one process and of several workers."""
    table = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    return msgspec.convert(table["expected"], list[Expected])


def judge(result: Result, *, is_client: bool) -> Verdict:
    """Judge what came of a scenario."""
    if result.checks is None:
        return Verdict(0, ("nothing was written down",))
    succeeded = [each for each in result.checks if each["status"] == "SUCCESS"]
    return Verdict(len(succeeded), tuple(_faults(result, is_client=is_client)))


def _faults(result: Result, *, is_client: bool) -> Iterator[str]:
    checks = result.checks or []
    for each in checks:
        if each["status"] not in {"SUCCESS", "SKIPPED", "INFO"}:
            yield f"{each['status']} {each['id']}: {each.get('errorMessage') or each['description']}"
    if not any(each["status"] == "SUCCESS" and each["id"] != ACCOMPANYING for each in checks):
        yield "no check succeeded"
    if is_client and DONE not in result.output.splitlines():
        said = result.noise.strip().splitlines()
        yield f"the client did not come to its end: {said[-1] if said else 'it said nothing'}"


def complaints(run: Run, verdicts: Mapping[str, Verdict], listed: Iterable[Expected]) -> Iterator[str]:
    """Say what is not as it must be in a run: what fails, and what was expected to fail and does not."""
    may_fail = {scenario for each in listed if each.side == run.side for scenario in each.scenarios}
    where = f"{run.side}, {run.title}"
    if not verdicts:
        yield f"{where}: no scenario was run"
    for scenario, verdict in verdicts.items():
        if scenario in may_fail and not verdict.faults:
            yield f"{where}, {scenario}: it is expected to fail, but does not"
        if scenario not in may_fail:
            yield from (f"{where}, {scenario}: {fault}" for fault in verdict.faults)
