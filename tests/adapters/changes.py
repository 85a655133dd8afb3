"""What an adapter did to a value: each key that went, came or holds something else, and whether that was reported.

Keys that no revision defines are the peer's own business. They may only go with what they stand in, and the order of
the keys that stay is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from tests.adapters.closed import codes
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.oracle.shapes import Json


class Loss(Protocol):
    """What adapters report."""

    @property
    def pointer(self) -> str:
        """Where in the message."""
        ...

    @property
    def severity(self) -> str:
        """How bad: dropped, degraded, defaulted or refused."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what went in and what came out.

    Attributes:
        before: The value that went or changed; for a key that came, the object that it came to.
        after: The value that came or that it is now; for a key that went, the object that it went from, as it is now.
    """

    kind: Literal["vanished", "appeared", "changed", "reordered"]
    pointer: str
    before: Json
    after: Json

    @property
    def key(self) -> str:
        """The key or index that it is about."""
        return self.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def changes(before: Json, after: Json, pointer: str = "") -> Iterator[Change]:
    """Yield the differences between *before* and *after*, the outermost of each."""
    match before, after:
        case dict(), dict():
            yield from _changed_keys(before, after, pointer)
        case list(), list() if len(after) - len(before) in {0, 1} and not any(map(_is_split, before)):
            for index, (one, other) in enumerate(zip(before, after, strict=False)):
                yield from changes(one, other, inside(pointer, index))
            for index in range(len(before), len(after)):
                yield Change("appeared", inside(pointer, index), before, after[index])
        case [only], dict():  # a list of one says what it holds
            yield from changes(only, after, inside(pointer, 0))
        case _ if type(before) is not type(after) or before != after:
            yield Change("changed", pointer, before, after)


def _is_split(item: Json) -> bool:
    """Whether *item* is a sampling message of any number of blocks but one, each of which may go its own way."""
    return (
        isinstance(item, dict)
        and "role" in item
        and isinstance(blocks := item.get("content"), list)
        and len(blocks) != 1
    )


def _changed_keys(before: dict[str, Json], after: dict[str, Json], pointer: str) -> Iterator[Change]:
    if [key for key in before if key in after] != [key for key in after if key in before]:
        yield Change("reordered", pointer, before, after)
    for key, value in before.items():
        if key in after:
            yield from changes(value, after[key], inside(pointer, key))
        else:
            yield Change("vanished", inside(pointer, key), value, after)
    for key, value in after.items():
        if key not in before:
            yield Change("appeared", inside(pointer, key), before, value)


def inside(pointer: str, key: str | int) -> str:
    """Return the pointer to what is at *key* of what is at *pointer*."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def reported(change: Change, losses: Sequence[Loss]) -> bool:
    """Whether one of *losses* is about *change*: about its place, or about something that it stands in."""
    # Of a list of one, what it holds is where the list was.
    pointers = {change.pointer, change.pointer.replace("/content/0", "/content")}
    for loss in losses:
        if loss.pointer in pointers:
            return True
        # That the whole message says less explains what became of it, nothing else about the whole message does.
        if (loss.pointer or loss.severity == "degraded") and any(
            each.startswith(f"{loss.pointer}/") for each in pointers
        ):
            return True
        # A list or a value of another type may be reported by what is in it.
        if change.kind == "changed" and loss.pointer.startswith(f"{change.pointer}/"):
            return True
    return False


def unreported(before: Json, after: Json, losses: Sequence[Loss]) -> Iterator[str]:
    """Yield what no loss mentions and nothing else explains."""
    for change in changes(before, after):
        if change.kind == "reordered":
            # A key that went, and came back with another value, comes last.
            gone = {key for key in change.before if inside(change.pointer, key) in {loss.pointer for loss in losses}}
            one, other = ([key for key in keys if key not in gone] for keys in (change.before, change.after))
            if [key for key in one if key in other] != [key for key in other if key in one]:
                yield f"{change.pointer or '/'} has its keys in another order\n{one} -> {other}"
        elif not is_explained(change, losses):
            yield f"{change.pointer or '/'} {change.kind} without a loss\n{change.before!r} -> {change.after!r}"


def untrue(before: Json, after: Json, losses: Sequence[Loss]) -> Iterator[str]:
    """Yield what is wrong with *losses* themselves, if they are those of one step."""
    changed = {change.pointer for change in changes(before, after)}
    for loss in losses:
        if loss.severity not in SEVERITIES:
            yield f"{loss.severity!r} is no severity of a loss that did not stop the message"
        elif not any(_overlap(loss.pointer, pointer) for pointer in changed):
            yield f"{loss.pointer or '/'} is reported as {loss.severity} and did not change"


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def is_explained(change: Change, losses: Sequence[Loss]) -> bool:
    """Whether *change* is reported, or is none to those who know both revisions."""
    if reported(change, losses) or any(explains(change, losses) for explains in REWRITINGS):
        return True
    if change.kind == "appeared" and isinstance(change.after, dict) and change.key == "_meta":
        inner = [Change("appeared", inside(change.pointer, key), {}, value) for key, value in change.after.items()]
        return all(is_explained(each, losses) for each in inner)
    return False


SEVERITIES = frozenset({"dropped", "degraded", "defaulted"})
IMPLIED: Mapping[str, Json] = {
    "cacheScope": "private",
    "form": {},
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "mode": "form",
    "resultType": "complete",
    "ttlMs": 0,
}
CODES = frozenset().union(*(codes(revision) for revision in REVISIONS))


def _implied(change: Change, _losses: Sequence[Loss]) -> bool:
    """An absent key means the same as this value."""
    value = change.before if change.kind == "vanished" else change.after
    return change.kind in {"vanished", "appeared"} and change.key in IMPLIED and IMPLIED[change.key] == value


def _recoded(change: Change, _losses: Sequence[Loss]) -> bool:
    """An error is called by the code that the target has for it."""
    return change.kind == "changed" and change.pointer == "/code" and {change.before, change.after} <= CODES


def _titled(change: Change, _losses: Sequence[Loss]) -> bool:
    """The options of a choice, in two lists instead of one."""
    one, other = change.before, change.after
    match change.kind, change.key:
        case "vanished", "oneOf":
            names = zip(other.get("enum", ()), other.get("enumNames", ()), strict=False)
            return bool(one == [{"const": value, "title": title} for value, title in names])
        case "appeared", "enum":
            return bool(other == [option["const"] for option in one.get("oneOf", ())])
        case "appeared", "enumNames":
            return bool(other == [option["title"] for option in one.get("oneOf", ())])
    return False


def _said_in_text(change: Change, losses: Sequence[Loss]) -> bool:
    """What was structured is said in one more block of text."""
    is_last = change.kind == "appeared" and change.pointer == f"/content/{len(change.before)}"
    return is_last and any(loss.pointer == "/structuredContent" for loss in losses)


def _boolean_schema(change: Change, _losses: Sequence[Loss]) -> bool:
    """What a boolean means as a schema, as an object."""
    return (change.before is True and change.after == {}) or (change.before is False and change.after == {"not": {}})


def _has_more(change: Change, losses: Sequence[Loss]) -> bool:
    """A list of completions that lost some says that there are more."""
    return change.pointer == "/completion/hasMore" and any(loss.pointer == "/completion/values" for loss in losses)


REWRITINGS = (_implied, _recoded, _titled, _said_in_text, _boolean_schema, _has_more)
"""What is as good after as it was before, or follows from a loss that is reported."""
