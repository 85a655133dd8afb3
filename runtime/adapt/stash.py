"""The stash: values that a message lost, carried in the message itself, so that the route back can restore them.

Theory of operation. A route adapts *x* to *y*. The route back adapts *y* to *x0*, and the stash holds the edits that
turn *x0* into *x*: plain edits at pointers, independent of the steps. When *y* comes back, perhaps changed by others,
it is adapted to *x0* again, and each edit is applied if its place has not changed. A digest shows that: of the
innermost list item around the place, because items may move, or of the place itself if it is not in a list.

The stash is stored under one key of the message's ``_meta`` (of an error's ``data``), by the revision of *x*. A peer
controls it. So an edit can only set or delete a value, the number and size of edits are bounded, and
`mcpgen.runtime.adapt` accepts the result only if it is valid and means the same in the peer's revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import ABSENT, index_of, is_array, is_object, look_up, pointer_to, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["KEY", "Edit", "Patch", "Stash", "apply_stash", "difference", "put_stash", "is_same_json", "take_stash"]

KEY: Final = "io.github.mcpgen/stash"
"""The key in ``_meta``, with a reversed domain as prefix, as the specification demands."""

# A stash is for titles and annotations, not for a second copy of a message. 64 KiB hold the titles of 1,000 tools, and
# are a small part of the 4 MiB that servers usually accept as one message.
MAX_STASH_BYTES = 64 * 1024

# An edit takes at least 11 bytes (`{"at":"/a"},`), so this only avoids work on lists of empty brackets.
MAX_EDITS = 6000

# The schemas nest a dozen levels. Deeper values are free content, which steps do not change.
MAX_TOKENS = 64

# Digests of nested list items repeat the work for inner items, a few times in honest messages. A hostile stash points
# into lists of lists of lists. Small messages are free of this bound.
MAX_DIGESTED_PER_BYTE = 16
FREE_DIGESTED_BYTES = 1024 * 1024


class Edit(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One difference between the value that the route back returns and the original.

    Attributes:
        at: The pointer to the place.
        was: A digest of the innermost list item around the place, or of the place. Absent: the place did not exist.
        value: The original value. Absent: there was none.
        index: The position of the key in its object, if the edit adds the key.
    """

    at: str
    was: str | UnsetType = UNSET
    value: Any = UNSET
    index: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class Stash(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The values that were lost between two revisions.

    Attributes:
        edits: The edits that restore them.
        orders: The keys of objects whose order the edits do not restore, by pointer.
        alone: Whether the object that holds the stash was added for it.
    """

    edits: Annotated[list[Edit], Meta(max_length=MAX_EDITS)]
    orders: Annotated[dict[str, list[str]], Meta(max_length=MAX_EDITS)] = {}
    alone: bool = False


class Patch(Struct, frozen=True, kw_only=True):
    """The result of applying a stash.

    Attributes:
        value: The edited value.
        restored: The pointers of the applied edits.
        stale: The number of edits that were not applied, because their place has changed.
    """

    value: Any
    restored: tuple[str, ...]
    stale: int


def is_same_json(one: object, other: object) -> bool:
    """Whether two JSON values are equal, apart from the order of keys; 1, 1.0 and true differ."""
    return one is other or _canonical(one) == _canonical(other)


def take_stash(message: Any, holder: str, revision: str) -> tuple[Any, Stash | None, str | None]:  # noqa: ANN401 (any JSON value)
    """Remove the stash for *revision* from *message*; stashes for other revisions stay.

    Returns:
        The message without it (a copy if it had one), the stash, and the reason if the stash is not valid.
    """
    inside = message.get(holder) if is_object(message) else None
    if not is_object(inside) or KEY not in inside:
        return message, None, None
    by_revision = inside[KEY]
    if is_object(by_revision) and revision not in by_revision:
        return message, None, None
    others = {key: value for key, value in by_revision.items() if key != revision} if is_object(by_revision) else {}
    stash, problem = _read(by_revision[revision] if is_object(by_revision) else by_revision)
    rest = {key: others if key == KEY else value for key, value in inside.items() if key != KEY or others}
    bare = {**message, holder: rest}
    if not rest and stash is not None and stash.alone:
        del bare[holder]
    return bare, stash, problem


def put_stash(message: dict[str, Any], holder: str, revision: str, stash: Stash) -> dict[str, Any] | None:
    """Return a copy of *message* with *stash*; None if the stash is too large, or the message has no place for it."""
    if len(stash.edits) > MAX_EDITS or len(stash.orders) > MAX_EDITS:
        return None
    inside = message.get(holder, {})
    if not is_object(inside):
        return None
    if holder not in message:
        stash = msgspec.structs.replace(stash, alone=True)
    data = msgspec.json.encode(stash)
    if len(data) > MAX_STASH_BYTES:
        return None
    others = inside.get(KEY)
    by_revision = {**(others if is_object(others) else {}), revision: msgspec.json.decode(data)}
    return {**message, holder: {**inside, KEY: by_revision}}


def difference(now: object, wanted: object) -> Stash:
    """Return the edits that turn *now* into *wanted*, including the order of keys."""
    return _Comparison().run(now, wanted)


def apply_stash(stash: Stash, value: object) -> Patch:
    """Apply the edits of *stash* to a copy of *value*, except those whose place has changed."""
    return _Application(value).run(stash)


def _read(raw: object) -> tuple[Stash | None, str | None]:
    """Return the stash that a peer sent, or the reason why it is not valid."""
    try:
        if len(msgspec.json.encode(raw)) > MAX_STASH_BYTES:
            return None, f"the stash of lost values is larger than {MAX_STASH_BYTES} bytes"
        stash = msgspec.convert(raw, Stash)
        if _deepest(stash) > MAX_TOKENS:
            return None, f"the stash of lost values has a pointer of more than {MAX_TOKENS} levels"
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError):
        return None, "the stash of lost values is malformed"
    return stash, None


def _deepest(stash: Stash) -> int:
    """Return the length of the longest pointer.

    Raises:
        ValueError: One is not a pointer.
    """
    pointers = (*(edit.at for edit in stash.edits), *stash.orders)
    return max((len(tokens_of(each)) for each in pointers), default=0)


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _digest(data: bytes) -> str:
    # Eight bytes are enough to detect a change. They do not authenticate the stash, which is not needed.
    from hashlib import blake2b  # noqa: PLC0415 (it loads OpenSSL, and most programs make no stash)

    return blake2b(data, digest_size=8).hexdigest()


class _Comparison:
    """Collects the differences between two values."""

    def __init__(self) -> None:
        self._edits: list[Edit] = []
        self._orders: dict[str, list[str]] = {}
        self._digests: dict[int, str] = {}

    def run(self, now: object, wanted: object) -> Stash:
        self._compare(now, wanted, (), ABSENT)
        return Stash(edits=self._edits, orders=self._orders)

    def _compare(self, now: Any, wanted: Any, at: tuple[str, ...], item: object) -> None:  # noqa: ANN401 (any JSON value)
        """Compare the values *at* a place; *item* is the innermost list item around it."""
        if now is wanted:
            return
        if len(at) == MAX_TOKENS:
            if msgspec.json.encode(now) != msgspec.json.encode(wanted):
                self._edits.append(Edit(at=pointer_to(at), was=self._was(now, item), value=wanted))
        elif is_object(now) and is_object(wanted):
            self._compare_objects(now, wanted, at, item)
        elif is_array(now) and is_array(wanted) and len(now) == len(wanted):
            for index, pair in enumerate(zip(now, wanted, strict=True)):
                self._compare(*pair, (*at, str(index)), pair[0])
        elif type(now) is not type(wanted) or now != wanted:
            self._edits.append(Edit(at=pointer_to(at), was=self._was(now, item), value=wanted))

    def _compare_objects(self, now: dict[str, Any], wanted: dict[str, Any], at: tuple[str, ...], item: object) -> None:
        for key, value in now.items():
            if key not in wanted:
                self._edits.append(Edit(at=pointer_to((*at, key)), was=self._was(value, item)))
        added: list[tuple[int, str]] = []
        for index, (key, value) in enumerate(wanted.items()):
            if key in now:
                self._compare(now[key], value, (*at, key), item)
            else:
                added.append((index, key))
                was = self._was(ABSENT, item)
                self._edits.append(Edit(at=pointer_to((*at, key)), was=was, value=value, index=index))
        if list(_merged((key for key in now if key in wanted), added)) != list(wanted):
            self._orders[pointer_to(at)] = list(wanted)

    def _was(self, value: object, item: object) -> str | UnsetType:
        witness = value if item is ABSENT else item
        if witness is ABSENT:
            return UNSET
        if id(witness) not in self._digests:
            self._digests[id(witness)] = _digest(_canonical(witness))
        return self._digests[id(witness)]


class _Application:
    """Applies edits to a copy of a value."""

    def __init__(self, value: object) -> None:
        data = msgspec.json.encode(value)
        self._original = value
        self._copy: Any = msgspec.json.decode(data)
        self._digests: dict[str, str] = {}
        self._budget = MAX_DIGESTED_PER_BYTE * len(data) + FREE_DIGESTED_BYTES
        self._added: dict[tuple[str, ...], list[tuple[int, str]]] = {}

    def run(self, stash: Stash) -> Patch:
        restored = tuple(edit.at for edit in stash.edits if self._edit(edit, tokens_of(edit.at)))
        for at, added in self._added.items():
            found = look_up(self._copy, at)
            if is_object(found):
                later = {key for _, key in added}
                early = [key for key in found if key not in later]
                _reorder(found, _merged(early, sorted(each for each in added if each[1] in found)))
        for pointer, keys in stash.orders.items():
            found = look_up(self._copy, tokens_of(pointer))
            if is_object(found):
                known = [key for key in keys if key in found]
                _reorder(found, dict.fromkeys([*known, *found]))
        return Patch(value=self._copy, restored=restored, stale=len(stash.edits) - len(restored))

    def _edit(self, edit: Edit, at: tuple[str, ...]) -> bool:
        """Apply one edit if its place has not changed; return whether it was applied."""
        if self._was(at) != edit.was:
            return False
        if not at:
            if edit.value is UNSET:
                return False
            self._copy = edit.value
            return True
        parent = look_up(self._copy, at[:-1])
        if is_array(parent):
            index = index_of(at[-1], len(parent))
            if index is None or edit.value is UNSET:  # items are only replaced, neither added nor removed
                return False
            parent[index] = edit.value
            return True
        return is_object(parent) and self._edit_key(parent, edit, at)

    def _edit_key(self, parent: dict[str, Any], edit: Edit, at: tuple[str, ...]) -> bool:
        key = at[-1]
        if edit.value is UNSET:
            return parent.pop(key, ABSENT) is not ABSENT
        if key not in parent and edit.index is not UNSET:
            self._added.setdefault(at[:-1], []).append((edit.index, key))
        parent[key] = edit.value
        return True

    def _was(self, at: tuple[str, ...]) -> str | UnsetType | None:
        """Return the digest that an edit at *at* must carry; None if there is no such place."""
        found = self._witness(at)
        if found is None:
            return None
        witness, place = found
        if witness is ABSENT:
            return UNSET
        if place not in self._digests:
            data = _canonical(witness)
            self._budget -= len(data)
            if self._budget < 0:
                return None
            self._digests[place] = _digest(data)
        return self._digests[place]

    def _witness(self, at: tuple[str, ...]) -> tuple[Any, str] | None:
        """Return the innermost list item around *at*, or the value there, with its pointer; None for no such place."""
        value: Any = self._original
        item, place = ABSENT, 0
        for depth, token in enumerate(at, start=1):
            if not (is_object(value) or is_array(value)):
                return None
            is_item = is_array(value)
            value = look_up(value, (token,))
            if is_item:
                if value is ABSENT:
                    return None
                item, place = value, depth
        return (value, pointer_to(at)) if item is ABSENT else (item, pointer_to(at[:place]))


def _merged(keys: Iterable[str], added: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yield *keys* with each of *added* at its index, or at the end if there are too few."""
    remaining = iter(keys)
    count = 0
    for index, key in added:
        while count < index and (other := next(remaining, None)) is not None:
            yield other
            count += 1
        yield key
        count += 1
    yield from remaining


def _reorder(value: dict[str, Any], keys: Iterable[str]) -> None:
    members = {key: value[key] for key in keys}
    value.clear()
    value.update(members)
