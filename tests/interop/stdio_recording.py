"""What one side said, as ``watch.py --record`` wrote it down, before the judges that the engine's own tests have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.client_recorder import ClientRecorder
from tests.harness.server_recorder import Recorder
from tests.interop.client_expectations import LABELS, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["breaches", "violations"]


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


def breaches(folder: Path, offered: list[str]) -> Iterator[str]:
    """Yield each rule that a client, which offers these revisions, has broken, with the message that breaks it."""
    records = sorted(folder.glob("*.record"))
    if not records:
        yield "nothing was recorded"
    for record in records:
        _, *lines = record.read_bytes().splitlines()
        judge = ClientRecorder(offered)
        judge.may_cross = True
        for line in lines:
            (judge.said if line.startswith(b"< ") else judge.heard)(line[2:])
        yield from map(str, judge.violations)
        if not lines:
            yield "a server was started and asked nothing"
