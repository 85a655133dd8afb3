"""Refuse numbers that a peer has chosen so that Python's hashes of them are equal.

The hash of an integer is its remainder modulo 2**61 - 1, and that of a decimal number or a UUID is the hash of an
integer. So a peer can choose thousands of them with one hash. To make a set of 40,000 such numbers takes seconds. (The
hashes of texts and bytes are different in each process.)
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import ValidationError, inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_hashes", "hashes_numbers"]

# 1,000 members with one hash take 4 ms to insert.
_MAX_EQUAL_HASHES: Final = 1000

# Shorter numbers cannot be chosen so.
_64_BITS: Final = 1 << 63
_LONG_DIGITS: Final = 19

# Python does not convert longer texts to integers; see `sys.set_int_max_str_digits`.
_MAX_DIGITS: Final = 4300

_EXACT_FLOATS: Final = 1 << 53
_UUID_DIGITS: Final = 32


def hashes_numbers(kind: type) -> bool:
    """Return whether a value of *kind* can have a set of numbers, or a dict with numbers as keys, at any depth.

    UUIDs are numbers here. What a class of another library does with its value, such as a model of pydantic, is not
    known; it counts.
    """
    return _Search().finds(inspect.type_info(kind), is_hashed=False)


class _Search:
    """A search through a type, which may refer to itself."""

    def __init__(self) -> None:
        self._seen: set[tuple[type, bool]] = set()

    def finds(self, kind: inspect.Type, *, is_hashed: bool) -> bool:
        match kind:
            case inspect.CustomType():
                return True
            case inspect.IntType() | inspect.DecimalType() | inspect.UUIDType() | inspect.AnyType():
                return is_hashed
            case inspect.SetType() | inspect.FrozenSetType():
                return self.finds(kind.item_type, is_hashed=True)
            case inspect.DictType():
                return self.finds(kind.key_type, is_hashed=True) or self.finds(kind.value_type, is_hashed=is_hashed)
            case _:
                return any(self.finds(each, is_hashed=is_hashed) for each in self._inner(kind, is_hashed=is_hashed))

    def _inner(self, kind: inspect.Type, *, is_hashed: bool) -> list[inspect.Type]:
        """Return the types of the members of a value of *kind*; none if they have been looked at."""
        match kind:
            case inspect.ListType() | inspect.VarTupleType():
                return [kind.item_type]
            case inspect.TupleType():
                return [*kind.item_types]
            case inspect.UnionType():
                return [*kind.types]
            case inspect.Metadata():
                return [kind.type]
            case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() | inspect.NamedTupleType():
                is_new = (kind.cls, is_hashed) not in self._seen
                self._seen.add((kind.cls, is_hashed))
                return [each.type for each in kind.fields] if is_new else []
            case _:
                return []


def check_hashes(value: object) -> None:
    """Refuse JSON with more than 1,000 numbers that have the same hash; texts that are numbers count, and keys.

    Raises:
        ValidationError: It has more.
    """
    hashes: Counter[int] = Counter()
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, list):
            rest.extend(cast("list[object]", each))
        elif isinstance(each, dict):
            members = cast("dict[str, Any]", each)
            rest.extend(members)
            rest.extend(members.values())
        elif isinstance(each, str):
            if _LONG_DIGITS <= len(each) <= _MAX_DIGITS:
                hashes.update(_hashes(each))
        elif isinstance(each, int):
            if not -_64_BITS <= each < _64_BITS:
                hashes[hash(each)] += 1
        elif isinstance(each, float) and abs(each) > _EXACT_FLOATS:  # perhaps a decimal number whose digits are lost
            hashes[0] += 1
    if hashes and max(hashes.values()) > _MAX_EQUAL_HASHES:
        raise ValidationError(f"Expected at most {_MAX_EQUAL_HASHES} numbers with the same hash")


def _hashes(text: str) -> Iterator[int]:
    """Yield the hashes of the UUID and of the number that *text* is; neither, if it is something else."""
    digits = text.replace("-", "")
    if len(digits) == _UUID_DIGITS:
        with suppress(ValueError):
            yield hash(int(digits, 16))
    with suppress(InvalidOperation, TypeError):  # TypeError: a signaling NaN has no hash
        yield hash(Decimal(text))
