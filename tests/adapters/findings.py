"""What breaks a law: collected, counted by kind, and shown by the smallest instance of each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.adapters.subjects import Subject
    from tests.oracle.shapes import Json

# A report that shows more is not read.
SHOWN = 12
LONGEST = 600


@dataclass(frozen=True, slots=True)
class Finding:
    """One instance for which one law does not hold.

    Attributes:
        route: The revisions that the value went through.
        says: What is wrong, the general first, up to a newline.
    """

    law: str
    route: tuple[str, ...]
    subject: Subject
    instance: Json
    says: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """What it has in common with findings of one cause."""
        says = self.says.partition("\n")[0]
        return self.law, str(self.subject), re.sub(r"/\d+|(?<=/properties)/[^/ ]*", "/[]", says)

    def __str__(self) -> str:
        """Show everything needed to repeat the case."""
        instance = json.dumps(self.instance, ensure_ascii=False)
        return (
            f"{self.law}: {' -> '.join(self.route)} {self.subject}\n"
            f"    instance: {shortened(instance)}\n    {shortened(self.says)}"
        )


def shortened(text: str) -> str:
    """Return as much of *text* as is read."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


@dataclass(slots=True)
class Findings:
    """Findings by kind: how many, and the one with the smallest instance."""

    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    smallest: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Count *finding*."""
        kind = finding.kind
        self.counts[kind] = self.counts.get(kind, 0) + 1
        known = self.smallest.get(kind)
        if known is None or len(json.dumps(finding.instance)) < len(json.dumps(known.instance)):
            self.smallest[kind] = finding

    @property
    def laws(self) -> frozenset[str]:
        """The laws that were broken."""
        return frozenset(law for law, *_ in self.counts)

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __str__(self) -> str:
        """Show the most frequent kinds."""
        kinds = sorted(self.counts, key=lambda kind: (-self.counts[kind], kind))
        shown = [f"{self.counts[kind]} x {self.smallest[kind]}" for kind in kinds[:SHOWN]]
        return "\n".join([f"{len(self)} findings of {len(kinds)} kinds", *shown])
