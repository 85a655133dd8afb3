"""What a server said, as ``watch.py --record`` wrote it down, before the judge that the engine's own tests have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop.expectations import LABELS, connect
from tests.runtime.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["violations"]


def violations(folder: Path) -> Iterator[str]:
    """Yield each rule that a server has broken, with the message that breaks it."""
    records = sorted(folder.glob("*.record"))
    if not records:
        yield "nothing was recorded"
    for record in records:
        served, *lines = record.read_bytes().splitlines()
        judge = Recorder(served.decode().split(",") if served else LABELS, lambda label: connect(label)["capabilities"])
        judge.may_cross = True
        for line in lines:
            (judge.heard if line.startswith(b"< ") else judge.said)(line[2:])
        yield from map(str, judge.violations)
        if len(lines) > 1 and all(line.startswith(b"< ") for line in lines):
            yield "a server was asked and said nothing"
