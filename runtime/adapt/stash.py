"""What a message lost on its way, carried by the message itself, so that the way back can restore it.

Theory of operation. A route makes *y* of *x*. What the way back makes of *y* is *x0*, and the stash is what has to be
edited in *x0* to get *x*: plain edits at pointers, independent of the rules of any step. When *y*, or what became of it
in the hands of others, comes back, its *x0* is made again, and those edits are applied whose place is as it was. A
digest tells: of the innermost item of a list that the place is in, because items move; of the place itself, if it is in
no list.

The stash lies under one key of the message's ``_meta`` (of an error's ``data``), by the revision that wrote *x*. A peer
can write there what it likes. So edits do nothing but set and delete, their number and size are bounded, and
`mcpgen.runtime.adapt` accepts their result only if it is valid, and if the peer's revision sees no difference.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import ABSENT, index_of, is_array, is_object, look_up, pointer_to, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["KEY", "Edit", "Patch", "Stash", "apply_stash", "difference", "put_stash", "is_same_json", "take_stash"]

KEY: Final = "io.github.mcpgen/stash"
"""A key of ``_meta`` as the specification wants it: with a reversed domain whose second label is not the protocol's."""

# A stash is there for titles and annotations, not to send a message twice. 64 KiB are the titles of a thousand tools,
# and a small part of the 4 MiB that servers usually accept as one message.
MAX_STASH_BYTES = 64 * 1024

# An edit takes at least eleven bytes (`{"at":"/a"},`), so this only spares us the work on lists that are all brackets.
MAX_EDITS = 6000

# The schemas nest a dozen levels. What lies deeper is free content, which steps leave alone.
MAX_TOKENS = 64

# Digests are made of values that hold each other, as often as lists nest, which is a few times at most. A stash that is
# meant to be slow points into a list of lists of lists. Small messages may be as odd as they like.
MAX_DIGESTED_PER_BYTE = 16
FREE_DIGESTED_BYTES = 1024 * 1024


class Edit(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One difference between what the way back makes, and what there was.

    Attributes:
        at: The pointer to the place.
        was: A digest of the innermost item of a list around the place, or of the place. Absent: nothing was there.
        value: What belongs there. Absent: nothing does.
        index: Where the key stands in its object, if the object lacks it.
    """

    at: str
    was: str | UnsetType = UNSET
    value: Any = UNSET
    index: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class Stash(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was lost between two revisions.

    Attributes:
        edits: Those that restore it.
        orders: The keys of objects whose order the edits do not restore, by pointer.
        alone: Whether the stash is the only reason for the object that it lies in.
    """

    edits: Annotated[list[Edit], Meta(max_length=MAX_EDITS)]
    orders: Annotated[dict[str, list[str]], Meta(max_length=MAX_EDITS)] = {}
    alone: bool = False


class Patch(Struct, frozen=True, kw_only=True):
    """What came of applying a stash.

    Attributes:
        value: The edited value.
        restored: The pointers of the edits that were made.
        stale: How many were not, because their place has changed.
    """

    value: Any
    restored: tuple[str, ...]
    stale: int


def is_same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same but for the order of keys; 1, 1.0 and true are three values."""
    return one is other or _canonical(one) == _canonical(other)


def take_stash(message: Any, holder: str, revision: str) -> tuple[Any, Stash | None, str | None]:  # noqa: ANN401 (any JSON value)
    """Take the stash for *revision* out of *message*.

    Returns:
        The message without it, a copy where it had one; the stash; and what is wrong with it, if anything is. Stashes
        for other revisions stay.
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
    """Return a copy of *message* with *stash*; None if that is too large, or there is no room for it."""
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
    """Return what has to be edited in *now* to get *wanted*, the order of keys included."""
    return _Comparison().run(now, wanted)


def apply_stash(stash: Stash, value: object) -> Patch:
    """Apply the edits of *stash* to a copy of *value*, where their places are as they were."""
    return _Application(value).run(stash)


def _read(raw: object) -> tuple[Stash | None, str | None]:
    """Return the stash that a peer sent, or what is wrong with it."""
    try:
        if len(msgspec.json.encode(raw)) > MAX_STASH_BYTES:
            return None, "the stash is larger than any that we make"
        stash = msgspec.convert(raw, Stash)
        if _deepest(stash) > MAX_TOKENS:
            return None, "the stash reaches deeper than any that we make"
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError):
        return None, "the stash is malformed"
    return stash, None


def _deepest(stash: Stash) -> int:
    """Return the length of the longest pointer.

    Raises:
        ValueError: One is no pointer.
    """
    pointers = (*(edit.at for edit in stash.edits), *stash.orders)
    return max((len(tokens_of(each)) for each in pointers), default=0)


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _ordered(value: object) -> bytes:
    return msgspec.json.encode(value)


def _digest(data: bytes) -> str:
    # Eight bytes tell a change from none. They prove nothing about who made the stash, and need not.
    return hashlib.blake2b(data, digest_size=8).hexdigest()


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
        """Compare what stands *at* a place; *item* is the innermost item of a list that it is in."""
        if now is wanted:
            return
        if len(at) == MAX_TOKENS:
            if _ordered(now) != _ordered(wanted):
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
        """Make one edit, if its place is as it was."""
        if self._was(at) != edit.was:
            return False
        if not at:
            if edit.value is UNSET:
                return False
            self._copy = edit.value
            return True
        holder = look_up(self._copy, at[:-1])
        if is_array(holder):
            index = index_of(at[-1], len(holder))
            if index is None or edit.value is UNSET:  # items are only replaced: the length of a list is its own edit
                return False
            holder[index] = edit.value
            return True
        return is_object(holder) and self._edit_key(holder, edit, at)

    def _edit_key(self, holder: dict[str, Any], edit: Edit, at: tuple[str, ...]) -> bool:
        key = at[-1]
        if edit.value is UNSET:
            return holder.pop(key, ABSENT) is not ABSENT
        if key not in holder and edit.index is not UNSET:
            self._added.setdefault(at[:-1], []).append((edit.index, key))
        holder[key] = edit.value
        return True

    def _was(self, at: tuple[str, ...]) -> str | UnsetType | None:
        """Return the digest that an edit at *at* has to know; None if there is no such place."""
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
        """Return the innermost item of a list around *at*, or what stands there, and its pointer; None for no place."""
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
    """Yield *keys* with each of *added* at its index, as far as there are enough of them."""
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
