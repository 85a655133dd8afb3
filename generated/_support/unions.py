"""Unions of objects that msgspec cannot decode by itself.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.

msgspec tells the arms of a union apart by tags alone. `tagged` makes such tags of a constant in which the arms differ.
For any other union, `AnyOf` finds the arm by the keys of the value.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec
from msgspec import Struct, StructMeta, ValidationError, field
from msgspec.structs import force_setattr

from .structs import ConstantsMeta
from .validation import Checked, Settle, Settler, settler, shortened, unwrap

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AnyOf", "tagged"]


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
        if isinstance(value, Struct):  # given by a caller on construction
            if any(candidate.is_made_of(value) for candidate in self._arms):
                return value
            raise ValidationError(self._expected())
        settled: list[Any] = []
        errors: list[tuple[_Candidate, str]] = []
        for candidate in self._arms:
            if candidate.may_be(value):
                try:
                    settled.append(candidate.settle(value))
                except ValidationError as error:
                    errors.append((candidate, f"{candidate.name}: {shortened(error)}"))
        if settled:
            best = settled[0] if len(settled) == 1 else max(settled, key=_rank)
            if errors:
                self._refuse_if_lossy(value, best, errors)
            return best
        raise ValidationError(self._reason([text for _, text in errors]))

    def _reason(self, messages: list[str]) -> str:
        """Return the message for a value that no arm accepts, from the *messages* of the arms that tried."""
        if not messages:
            return self._expected()
        # In brackets, several must not look as if the path of the last one were that of all.
        return messages[0] if len(messages) == 1 else f"No arm of the union fits ({'; '.join(messages)})"

    def _refuse_if_lossy(self, value: Any, best: Any, errors: list[tuple[_Candidate, str]]) -> None:
        """Refuse *value* if an arm that keeps more keys rejects it only because an integer is written as 1.0.

        The schema of that arm accepts 1.0 as an integer. Another arm would drop keys silently.
        """
        written, is_changed = _with_integers(value)
        if not is_changed:
            return
        for candidate, message in errors:
            try:
                other = candidate.settle(written)
            except ValidationError:
                continue
            if _count_keys(other) > _count_keys(best):
                raise ValidationError(message)

    def _expected(self) -> str:
        return f"Expected {' or '.join(each.name for each in self._arms)}"


def _rank(value: Any) -> tuple[int, bool]:
    """Return how much of its JSON *value* keeps; a class says more of the same than a dict."""
    return _count_keys(value), isinstance(value, Struct)


_CONTAINERS = (dict, list)


def _with_integers(value: Any) -> tuple[Any, bool]:
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
                if id(each) not in copies:
                    copies[id(each)] = each.copy()
                    pending.append(copies[id(each)])
                held[key] = copies[id(each)]
    return made[0], is_changed


def _count_keys(value: Any) -> int:
    """Return the number of keys in the JSON of *value*, at all depths."""
    pending: list[Any] = [msgspec.to_builtins(value)]
    count = 0
    while pending:
        found = pending.pop()
        if isinstance(found, list):
            pending.extend(found)  # pyright: ignore[reportUnknownArgumentType]  # of builtins
        elif isinstance(found, dict):
            members = typing.cast("dict[str, Any]", found)
            count += len(members)
            pending.extend(members.values())
    return count


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
