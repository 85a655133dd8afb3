"""What the judge of adapters has to know of the revision that does not exist: a plugin of pytest.

Whoever adds a revision tells the judge what it cannot read from the documents: which names belong together, and which
values and keys mean the same. ``tests/adapters`` has tables for that; these are the lines that would be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.adapters import changes, correspondence, laws, subjects
from tests.adapters.sixth import NEW
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.adapters.changes import Change, Loss
    from tests.adapters.subjects import Subject

_NAMES = {"Annotations": "Hints", "Root": "Folder"}
_LABEL = "io.modelcontextprotocol/protocolVersion"


def _labelled(change: Change, _losses: Sequence[Loss]) -> bool:
    """Every request names its revision."""
    return change.kind == "appeared" and change.key == _LABEL and change.after == NEW


def _noted(change: Change, losses: Sequence[Loss]) -> bool:
    """What progress says has another key, and a step that drops it calls it by the key that it has there."""
    others = {"/message": "note", "/note": "message"}
    match change.kind:
        case "vanished":
            if change.pointer == "/note" and any(loss.pointer == "/message" for loss in losses):
                return True
            return change.pointer in others and _same(change.after, others[change.pointer], change.before)
        case "appeared":
            return change.pointer in others and _same(change.before, others[change.pointer], change.after)
    return False


def _same(holder: Any, key: str, value: Any) -> bool:
    return key in holder and bool(holder[key] == value)


def _without_input_errors(self: laws.Judge, subject: Subject) -> bool:
    """Whether both revisions have *subject* as the same kind of message; no error answers what is asked in a result.

    The released revisions have no pair of two that ask there.
    """
    kinds = {each.kinds.get((subject.name, subject.sender)) for each in (self.sent, self.received)}
    return len(kinds) == 1 and (subject.part != "error" or kinds != {"input"})


def pytest_configure() -> None:
    """Add to the tables."""
    tables: Any = (correspondence, changes, subjects, laws.Judge)
    names, said, judged, judge = tables
    judge._is_one_kind = _without_input_errors
    names.RENAMES = {each: {**correspondence.RENAMES.get(each, {}), **_NAMES} for each in REVISIONS[:-1]}
    said.IMPLIED = {**changes.IMPLIED, "secret": False}
    said.REWRITINGS = (*changes.REWRITINGS, _labelled, _noted)
    judged.DEFINITIONS = (*(_NAMES.get(each, each) for each in subjects.DEFINITIONS), "VideoContent")
