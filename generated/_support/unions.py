"""Unions of objects that msgspec cannot decode by itself.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.

msgspec tells the arms of a union apart by tags alone. `tagged` makes such tags of a constant in which the arms differ.
For any other union, `AnyOf` finds the arm by the keys of the value.
"""

from __future__ import annotations

import sys
import threading
import typing
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec
from msgspec import UNSET, Struct, StructMeta, ValidationError, field
from msgspec.structs import force_setattr

from .structs import ConstantsMeta
from .validation import Checked, Settle, Settler, settler, shortened, unwrap

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AnyOf", "decode_within", "tagged"]


def tagged(tag: str, *classes: type[Struct]) -> Any:
    """Return a type that msgspec decodes, for a union whose arms differ in the constant of their key *tag*.

    A tag of msgspec is not a field, and outside a union msgspec accepts a tagged class without its tag. So each arm
    gets a tagged subclass. An instance of it becomes an instance of the arm when it is complete, where the constant is
    a required field.
    """
    return Union[tuple(_arm(each, tag) for each in classes)]  # noqa: UP007 (a tuple made at run time)


class _ArmMeta(ConstantsMeta):
    """Makes ``isinstance`` and ``issubclass`` treat the subclass of an arm as the arm."""

    def __instancecheck__(cls, instance: object) -> bool:  # noqa: N805 (of a metaclass)
        """Whether *instance* is one of the arm."""
        return isinstance(instance, cls.__bases__[0])

    def __subclasscheck__(cls, subclass: type) -> bool:  # noqa: N805 (of a metaclass)
        """Whether *subclass* is one of the arm."""
        return issubclass(subclass, cls.__bases__[0])


_arms: dict[tuple[type, str], type[Struct]] = {}


def _arm(cls: Any, tag: str) -> type[Struct]:
    """Return the subclass of *cls* that msgspec picks by *tag*."""
    if (cls, tag) in _arms:
        return _arms[cls, tag]
    attribute = cls.__struct_fields__[cls.__struct_encode_fields__.index(tag)]
    value = cls.__constants__[attribute]
    checked = issubclass(cls, Checked)

    def become(self: Any) -> None:
        force_setattr(self, attribute, value)
        force_setattr(self, "__class__", cls)
        if checked:
            cls.__post_init__(self)

    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": {attribute: Any},
        # msgspec reads the tag from the key, so the field needs another name, which no key of the class has. `become`
        # replaces whatever value a peer sends under that name.
        attribute: field(default=None, name="\x7f" * (max(map(len, cls.__struct_encode_fields__)) + 1)),
        "__post_init__": become,
    }
    options = {"frozen": True, "kw_only": True, "tag_field": tag, "tag": value}
    made: Any = _ArmMeta(cls.__name__, (cls,), namespace, **options)
    return _arms.setdefault((cls, tag), made)


class AnyOf(Settler):
    """A union whose arm is found by the keys of the value.

    Among the arms that accept a value, the one that keeps most of its keys is chosen. Among equal ones, a class comes
    before a dict, and then the first one.

    Args:
        arms: Returns the types. It is a function because they may be defined later, or include the union itself.
    """

    def __init__(self, arms: Callable[[], tuple[Any, ...]]) -> None:
        self.declare = arms
        self._arms: tuple[_Candidate, ...] = ()
        self._markers: tuple[tuple[str, Settle], ...] = ()

    def settle(self, value: Any) -> Any:
        """Return *value*, which msgspec decoded without a type, as one of the arms.

        Raises:
            msgspec.ValidationError: No arm accepts it.
        """
        if type(value) is dict:
            # The fast path of nearly every message: the value has the required key of one arm only.
            only: Settle | None = None
            for marker, settle in self._markers:
                if marker in value:
                    if only is not None:
                        break
                    only = settle
            else:
                if only is not None:
                    return only(value)
        return self._search(value)

    def _search(self, value: Any) -> Any:
        """Return *value* as the best of all arms that accept it."""
        if not self._arms:
            self._arms = tuple(_Candidate(arm) for arm in self.declare())
            self._markers = _markers(self._arms)
            return self.settle(value)
        if isinstance(value, Struct):
            return self._given(value)
        memory = _thread.memory
        is_outermost = memory is None
        if memory is None:
            memory = _thread.memory = _Memory()
        try:
            known = memory.settled.get((id(self), id(value)))
            if known is None:
                settled: list[Any] = []
                errors: list[tuple[_Candidate, str]] = []
                candidates = [each for each in self._arms if each.may_be(value)]
                _thread.tries -= len(candidates)
                if _thread.tries < 0:
                    raise _TooManyTriesError
                for candidate in candidates:
                    try:
                        settled.append(candidate.settle(value))
                    except ValidationError as error:
                        errors.append((candidate, f"{candidate.name}: {shortened(error)}"))
                known = memory.settled[id(self), id(value)] = (value, *self._best(value, settled, errors, memory))
        finally:
            if is_outermost:
                _thread.memory = None
        _, best, reason = known
        if reason:
            raise ValidationError(reason)
        return best

    def _given(self, value: Struct) -> Any:
        """Return *value*, which a caller has given on construction."""
        if any(candidate.is_made_of(value) for candidate in self._arms):
            return value
        raise ValidationError(self._expected())

    def _best(
        self, value: Any, settled: list[Any], errors: list[tuple[_Candidate, str]], memory: _Memory
    ) -> tuple[Any, str]:
        """Return the best of *settled*, and why *value* is refused; empty if it is not."""
        if not settled:
            return None, self._reason([text for _, text in errors])
        best = settled[0] if len(settled) == 1 else max(settled, key=memory.rank)
        return best, self._loss(value, best, errors, memory) if errors else ""

    def _reason(self, messages: list[str]) -> str:
        """Return the message for a value that no arm accepts, from the *messages* of the arms that tried."""
        if not messages:
            return self._expected()
        # In brackets, several must not look as if the path of the last one were that of all.
        return messages[0] if len(messages) == 1 else f"No arm of the union fits ({'; '.join(messages)})"

    def _loss(self, value: Any, best: Any, errors: list[tuple[_Candidate, str]], memory: _Memory) -> str:
        """Return the error of an arm that keeps more keys, and rejects *value* only because 1.0 stands for an integer.

        The schema of that arm accepts 1.0 as an integer. Another arm would drop keys silently. Empty if there is none.
        """
        written, is_changed = memory.with_integers(value)
        if not is_changed:
            return ""
        for candidate, message in errors:
            _thread.tries -= 1  # the next search ends if there are too many
            try:
                other = candidate.settle(written)
            except ValidationError:
                continue
            if memory.count_keys(other) > memory.count_keys(best):
                return message
        return ""

    def _expected(self) -> str:
        return f"Expected {' or '.join(each.name for each in self._arms)}"


_CONTAINERS = (dict, list)
_SCALARS = frozenset({str, int, float, bool, type(None)})  # a form can have 48,000 choices, each counted for five arms


class _Memory:
    """What the searches inside an outermost one have found, until that one ends.

    Several arms may have the same key, and each settles its value. Without a memory, a value that fits two arms at each
    depth would be searched twice, four times, eight times and so on. What an entry is about is in it, so that its id
    stays its own.

    Attributes:
        settled: By union and value: the value, its best arm, and why it is refused.
    """

    def __init__(self) -> None:
        self.settled: dict[tuple[int, int], tuple[Any, Any, str]] = {}
        self._counts: dict[int, tuple[Any, int]] = {}
        self._copies: dict[int, tuple[Any, Any, bool]] = {}

    def rank(self, value: Any) -> tuple[int, bool]:
        """Return how much of its JSON *value* keeps; a class says more of the same than a dict."""
        return self.count_keys(value), isinstance(value, Struct)

    def count_keys(self, value: Any) -> int:
        """Return the number of keys in the JSON of *value*, at all depths."""
        pending: list[Any] = [value]
        count = 0
        seen: set[int] = set()  # on construction, a value may hold itself
        while pending:
            found = pending.pop()
            at = id(found)
            if at in self._counts:
                count += self._counts[at][1]
                continue
            members: list[Any] = []
            if isinstance(found, Struct):
                members = [each for name in found.__struct_fields__ if (each := getattr(found, name)) is not UNSET]
                count += len(members)
            elif isinstance(found, dict):
                members = [*typing.cast("dict[str, Any]", found).values()]
                count += len(members)
            elif isinstance(found, (list, tuple)):
                members = [*typing.cast("list[Any]", found)]
            if members and at not in seen:
                seen.add(at)
                pending += [each for each in members if type(each) not in _SCALARS]
        self._counts[id(value)] = value, count
        return count

    def with_integers(self, value: Any) -> tuple[Any, bool]:
        """Return a copy of *value* in which 1.0 is the integer 1, and whether it has such a number."""
        made: list[Any] = [value]
        pending: list[Any] = [made]
        copies: dict[int, Any] = {}  # on construction, a value may hold itself
        is_changed = False
        while pending:
            held = pending.pop()
            for key, each in held.items() if hasattr(held, "items") else enumerate(held):
                if type(each) is float:
                    if each.is_integer():
                        held[key], is_changed = int(each), True
                elif type(each) in _CONTAINERS:
                    if id(each) in self._copies:
                        _, held[key], has_changed = self._copies[id(each)]
                        is_changed = is_changed or has_changed
                        continue
                    if id(each) not in copies:
                        copies[id(each)] = each.copy()
                        pending.append(copies[id(each)])
                    held[key] = copies[id(each)]
        self._copies[id(value)] = value, made[0], is_changed
        return made[0], is_changed


class _Thread(threading.local):
    """What belongs to one thread.

    Attributes:
        memory: That of the outermost search that the thread is in; None if it is in none.
        tries: How many arms may still be tried in the value that is decoded.
    """

    memory: _Memory | None = None
    tries: int = sys.maxsize


_thread = _Thread()


class _TooManyTriesError(Exception):
    """More arms were tried than the caller allows. msgspec does not turn it into a ValidationError."""


def decode_within(max_tries: int, decode: Callable[[bytes | str], Any], data: bytes | str) -> Any:
    """Return what *decode* makes of *data*.

    Raises:
        msgspec.ValidationError: It is not valid, or more than *max_tries* arms of unions would be tried.
    """
    outer, _thread.tries = _thread.tries, max_tries
    try:
        return decode(data)
    except _TooManyTriesError:
        reason = f"more than {max_tries:,} arms of unions would be tried"
        raise ValidationError(f"Expected fewer objects in unions without a tag: {reason}") from None
    finally:
        _thread.tries = outer


def _markers(arms: tuple[_Candidate, ...]) -> tuple[tuple[str, Settle], ...]:
    """Return for each arm a key that it alone requires; nothing if an arm has no such key."""
    found: list[tuple[str, Settle]] = []
    for arm in arms:
        own = arm.required.difference(*(each.required for each in arms if each is not arm))
        if not own:
            return ()
        found.append((min(own), arm.settle))
    return tuple(found)


class _Candidate:
    """One arm of an `AnyOf`."""

    def __init__(self, annotation: Any) -> None:
        base, view = unwrap(annotation)
        struct: Any = view or base
        is_struct = isinstance(struct, StructMeta)
        self._struct: Any = struct if is_struct else None
        fields = msgspec.structs.fields(typing.cast("type[Struct]", struct)) if is_struct else ()
        self.name = f"`{_called(struct)}`"
        self._type = base
        self._settle = settler(annotation)
        self._container = dict if is_struct else typing.get_origin(base)
        self.required = frozenset(each.encode_name for each in fields if each.required)

    def may_be(self, value: Any) -> bool:
        """Whether *value* has the JSON type of this arm, and all required keys."""
        if self._container is dict:
            return isinstance(value, dict) and self.required <= typing.cast("dict[str, object]", value).keys()
        return self._container is not list or isinstance(value, list)

    def is_made_of(self, value: Struct) -> bool:
        """Whether *value* is an instance of this arm already."""
        return self._struct is not None and isinstance(value, self._struct)

    def settle(self, value: Any) -> Any:
        """Return *value* as this arm."""
        converted = msgspec.convert(value, self._type)
        return converted if self._settle is None else self._settle(converted)


def _called(annotation: Any) -> str:
    """Return the name of *annotation* in msgspec's messages."""
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    origin = typing.get_origin(annotation)
    if origin is list or origin is dict:
        return "array" if origin is list else "object"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).removeprefix("typing.")
