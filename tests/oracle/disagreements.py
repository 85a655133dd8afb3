"""The rules of ``tests/disagreements.toml``: where bindings and schema may differ, why, and how often.

A rule names a predicate of this module. It is no licence: it covers exactly the number of mutants it states for each
revision, so that a rule that grew, shrank or has nothing left to cover is looked at again.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tests.oracle.oracle import SHOWN, encoded, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.oracle.oracle import Disagreement
    from tests.oracle.shapes import Json

FILE = Path(__file__).parent.parent / "disagreements.toml"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reviewed kind of disagreement."""

    name: str
    predicate: str
    reason: str
    count: dict[str, int]  # mutants covered, by revision; a revision that is not listed has none
    parameters: dict[str, Any] = {}

    def covers(self, disagreement: Disagreement) -> bool:
        """Whether this rule explains *disagreement*."""
        return PREDICATES[self.predicate](disagreement, **self.parameters)


def load(text: str) -> list[Rule]:
    """Read rules from TOML."""
    return msgspec.convert(tomllib.loads(text).get("rule", []), list[Rule])


def problems(disagreements: Iterable[Disagreement], rules: list[Rule], *, revision: str) -> list[str]:
    """Return what is wrong: disagreements that no rule covers, and rules whose count for *revision* is off."""
    counts: Counter[str] = Counter()
    counted: set[tuple[str, str, bytes]] = set()
    uncovered = []
    for each in disagreements:
        rule = None if each.is_crash else next((rule for rule in rules if rule.covers(each)), None)
        if rule is None:
            uncovered.append(str(each))
        elif (rule.name, *each.case) not in counted:
            counted.add((rule.name, *each.case))
            counts[rule.name] += 1
    found = uncovered[:SHOWN]
    if len(uncovered) > SHOWN:
        found.append(f"… and {len(uncovered) - SHOWN} more")
    for rule in rules:
        expected = rule.count.get(revision, 0)
        if counts[rule.name] != expected:
            found.append(f"rule {rule.name!r} covers {counts[rule.name]} mutants of {revision}, not {expected}")
    return found


def integral_float(disagreement: Disagreement) -> bool:
    """Only numbers written as 1.0 stand between the decoder and the schema's yes."""
    if not disagreement.accepted_by_schema:
        return False
    value = _integers_for_floats(disagreement.mutant.value)
    return verdict(disagreement.decode, encoded(value)) is None


def _integers_for_floats(value: Json) -> Json:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _integers_for_floats(inner) for key, inner in value.items()}
        case list():
            return [_integers_for_floats(inner) for inner in value]
    return value


PREDICATES: dict[str, Callable[..., bool]] = {"integral_float": integral_float}
