"""Refuse numbers that a peer has chosen so that Python's hashes of them collide.

The hash of an integer is its remainder modulo 2**61 - 1, and that of a decimal number or a UUID is the hash of an
integer. So a peer can choose thousands of them with one hash. To make a set of 40,000 such numbers takes seconds. (The
hashes of texts and bytes are different in each process.)

Different hashes collide, too: a table of Python tries a slot after the other, and a peer can choose integers, and all
that is hashed like them, so that each finds thousands of slots occupied. No property of the numbers shows that cheaply.
So their number is limited.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from msgspec import ValidationError, inspect

from mcpgen.runtime.limits import MAX_REQUEST_VALUES
from mcpgen.runtime.protocol.core_schemas import direct_schemas, inner_schemas
from mcpgen.runtime.protocol.json_levels import arrays_of, levels, objects_of
from mcpgen.runtime.protocol.json_texts import has_json_texts, json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["hash_check"]

Container: TypeAlias = "list[object] | dict[str, object]"

# 1,000 members with one hash take 4 ms to insert.
_MAX_EQUAL_HASHES: Final = 1000

# With one hash, the numbers of all sets that are so small in a message take 30 ms; to compute the hashes takes 0.3 s.
_MAX_SMALL: Final = 16

# To insert 5,000 chosen numbers takes 40 ms, 43,000 take 2.5 s.
_MAX_MEMBERS: Final = 5000

# The numbers in tuples and objects can be chosen so that all of them have one hash: 5,000 take 0.5 s, 1,000 take 20 ms.
_MAX_WITH_COMPOSITES: Final = 1000

# Python compares two models in 2 µs: 300 with one hash take 0.1 s, 1,000 take 1 s. The hash of a set follows from those
# of its items without regard to their order, so two numbers suffice to choose it. To compare two sets, or two tuples of
# any length, takes as long: they may have hundreds of numbers in common.
_MAX_WITH_SLOW_ITEMS: Final = 300

# The time grows with the square of the number. A message can have sixteen sets of 1,000 tuples, which take 0.3 s, and
# arguments that are not valid are converted three times. So there may not be as many tuples as in five of these sets.
_MAX_LARGE: Final = 5

# pydantic copies the keys that lead to an error, for each error: 24 errors below a key of 4 MB took 500 MB.
_MAX_KEY_CHARS: Final = 1024

# Shorter numbers cannot be chosen so.
_64_BITS: Final = 1 << 63
_LONG_DIGITS: Final = 19

# Python does not convert longer texts to integers; see `sys.set_int_max_str_digits`.
_MAX_DIGITS: Final = 4300

# Converting digits takes a time that grows with the square of their number: 250 texts of 4,300 digits take 50 ms, those
# of a message of 4 MiB 150 ms.
_MAX_SQUARES: Final = 250 * _MAX_DIGITS * _MAX_DIGITS

# Shorter texts of digits cannot exceed `_MAX_SQUARES` in a message of 4 MiB.
_SHORT: Final = 1000

_COMPOSITES: Final = (
    inspect.TupleType,
    inspect.VarTupleType,
    inspect.NamedTupleType,
    inspect.StructType,
    inspect.DataclassType,
)

# To hash a number with a fraction takes 3 µs, and arguments that are not valid are checked twice.
_MAX_FRACTIONS: Final = 10_000

# In the schemas of pydantic. A class that occurs twice is a reference.
_SETS_OF_PYDANTIC: Final = frozenset({"frozenset", "set"})
_MODELS: Final = frozenset({"dataclass", "definition-ref", "model"})
_SLOW_ITEMS_OF_PYDANTIC: Final = _MODELS | _SETS_OF_PYDANTIC
_COMPLEX: Final = "complex"  # two numbers
_COMPOSITES_OF_PYDANTIC: Final = _SLOW_ITEMS_OF_PYDANTIC | {"call", "tuple", _COMPLEX}
_ANY_LENGTH: Final = "variadic_item_index"  # of a tuple

_EXACT_FLOATS: Final = 1 << 53
_UUID_DIGITS: Final = 32

# Texts that are hashed as numbers: UUIDs, and what `Decimal` reads, except infinity and NaN. All others, such as times,
# are skipped: to try to convert them took 0.1 s for a message of them, and a signaling NaN has no hash.
_FRACTION: Final = r"\s*+_*+[-+]?[\d_]*+(?:\.[\d_]*+)?(?:[eE]_*+[-+]?[\d_]++)?\s*+"
_UUID: Final = r"(?:(?i:urn:uuid:))?+[{}]*+[\da-fA-F-]{32,}+[{}]*+"
_NUMBER: Final = re.compile(f"({_FRACTION})|{_UUID}")

# Texts that a class of another library may read as a number, a time, a UUID or an IP network. pydantic allows spaces.
_MAYBE_NUMBER: Final = re.compile(r"\s*(?:[-+.\d{]|urn:|P[\dT]|[\da-f]*[-:]|[\da-f]{32})", re.IGNORECASE)


def hash_check(kind: type, max_text_values: int = MAX_REQUEST_VALUES) -> Callable[[object], None] | None:
    """Return a check for values of *kind*, which are JSON; None if they cannot have a set of numbers at any depth.

    Keys of a dict are such a set. UUIDs count as numbers, and times that are written as numbers. What a class of
    another library does with its value, such as a model of pydantic, is not known; it counts. The check raises
    `ValidationError` if an array or an object has more than 5,000 members (1,000 if a set has tuples or objects as its
    items, 300 if it has sets, tuples of any length or models, and then at most four are so large; of a class of another
    library: 5,000 whole numbers), if more than 1,000 numbers have the same hash, if more than 250 have 4,300 digits, or
    if more than 10,000 texts are numbers with a fraction; texts that are whole numbers count, too. Numbers in arrays
    and objects of at most 16 members are not hashed, unless a set has items with several numbers. If *kind* is a
    Struct, only the fields that can have such a set are checked. A text of JSON for pydantic may have *max_text_values*
    values.
    """
    info = inspect.type_info(kind)
    if not isinstance(info, inspect.StructType) or info.array_like:
        return _check_of(info, max_text_values)
    found: dict[str, Callable[[object], None]] = {}
    for field in info.fields:
        check = _check_of(field.type, max_text_values)
        if check is not None:
            found[field.encode_name] = check
    return partial(_check_fields, found) if found else None


def _check_of(info: inspect.Type, max_text_values: int) -> Callable[[object], None] | None:
    search = _Search()
    if not search.finds(info, is_hashed=False):
        return None
    return partial(
        _check_hashes,
        has_decimals=search.has_decimals,
        has_fractions=search.has_fractions or search.has_custom,
        is_type_known=not search.has_custom,
        counts_all=not search.has_custom or search.has_composites,
        max_members=search.max_members,
        max_text_values=max_text_values if search.has_texts else 0,
    )


def _check_fields(checks: dict[str, Callable[[object], None]], value: object) -> None:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        for name, check in checks.items():
            if name in members:
                check(members[name])


class _Search:
    """A search through a type, which may refer to itself.

    Attributes:
        has_decimals: Whether it has found a `Decimal`. Only that keeps all digits of a number with a fraction.
        has_fractions: Whether it has found numbers with a fraction: a `Decimal` or a float.
        has_custom: Whether it has found a class of another library.
        has_composites: Whether it has found items of a set that are tuples or objects.
        has_slow_items: Whether it has found items of a set that are sets, tuples of any length, or models of pydantic.
        has_texts: Whether it has found texts of JSON that pydantic decodes.
    """

    def __init__(self) -> None:
        self.has_decimals: bool = False
        self.has_fractions: bool = False
        self.has_custom: bool = False
        self.has_composites: bool = False
        self.has_slow_items: bool = False
        self.has_texts: bool = False
        self._seen: set[tuple[type, bool]] = set()

    @property
    def max_members(self) -> int:
        """The most members of an array or object."""
        if self.has_slow_items:
            return _MAX_WITH_SLOW_ITEMS
        return _MAX_WITH_COMPOSITES if self.has_composites else _MAX_MEMBERS

    def finds(self, kind: inspect.Type, *, is_hashed: bool) -> bool:
        match kind:
            case inspect.CustomType():
                self.has_custom = True
                adapter: Any = getattr(kind.cls, "adapter", None)  # of pydantic
                schema: object = getattr(adapter, "core_schema", None)
                self.has_texts = self.has_texts or has_json_texts(schema)
                for item in _items_of_sets(schema):
                    of_any_length = _ANY_LENGTH in item
                    kind_of_item = item.get("type")
                    self.has_slow_items |= of_any_length or kind_of_item in _SLOW_ITEMS_OF_PYDANTIC
                    self.has_composites |= kind_of_item in _COMPOSITES_OF_PYDANTIC
                return True
            case inspect.DecimalType():
                self.has_decimals = self.has_decimals or is_hashed
                self.has_fractions = self.has_fractions or is_hashed
                return is_hashed
            case inspect.FloatType():
                self.has_fractions = self.has_fractions or is_hashed
                return is_hashed
            case inspect.IntType() | inspect.UUIDType() | inspect.AnyType():
                return is_hashed
            case inspect.DateTimeType() | inspect.TimeType() | inspect.TimeDeltaType():  # hashed as tuples of integers
                return is_hashed
            case inspect.SetType() | inspect.FrozenSetType():
                found = self.finds(kind.item_type, is_hashed=True)
                self.has_slow_items |= found and is_hashed
                return found
            case inspect.DictType():
                found = self.finds(kind.value_type, is_hashed=is_hashed)
                return self.finds(kind.key_type, is_hashed=True) or found
            case _:
                found = False
                for each in self._inner(kind, is_hashed=is_hashed):  # all of them, for `has_decimals`
                    found = self.finds(each, is_hashed=is_hashed) or found
                self.has_composites |= found and is_hashed and isinstance(kind, _COMPOSITES)
                self.has_slow_items |= found and is_hashed and isinstance(kind, inspect.VarTupleType)
                return found

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


def _items_of_sets(core_schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas in the items of each set of a type of pydantic, and those of keys that are complex numbers."""
    for each in inner_schemas(core_schema):
        if each.get("type") in _SETS_OF_PYDANTIC:
            yield from inner_schemas(list(direct_schemas(each)))
        yield from (key for key in inner_schemas(each.get("keys_schema")) if key.get("type") == _COMPLEX)


def _check_hashes(  # noqa: PLR0913 (what a search has found)
    value: object,
    *,
    has_decimals: bool,
    has_fractions: bool,
    max_text_values: int,
    is_type_known: bool,
    counts_all: bool,
    max_members: int,
) -> None:
    hashes: Counter[int] = Counter()
    texts: list[str] = []
    roots = [value, *json_values(value, max_text_values)] if max_text_values else [value]
    hashed = _hashed_values(roots, max_members, is_type_known=is_type_known, counts_all=counts_all)
    for each in hashed:
        if isinstance(each, str):
            text = each if is_type_known else each.strip()
            if _LONG_DIGITS <= len(text) <= _MAX_DIGITS:
                texts.append(text)
        elif isinstance(each, int):
            if not -_64_BITS <= each < _64_BITS:
                hashes[hash(each)] += 1
        elif has_decimals and isinstance(each, float) and abs(each) > _EXACT_FLOATS:
            hashes[0] += 1  # the digits that decide are lost
    hashes.update(_hashes_of_all(texts, has_fractions=has_fractions))
    if hashes and max(hashes.values()) > _MAX_EQUAL_HASHES:
        raise ValidationError(f"Expected at most {_MAX_EQUAL_HASHES} numbers with the same hash")


def _hashed_values(roots: list[object], max_members: int, *, is_type_known: bool, counts_all: bool) -> list[object]:
    """Return the values in *roots* that may have to be hashed, after their arrays and objects have been counted."""
    found = [*roots]
    squares = 0  # of the lengths of all arrays and objects
    most_unhashed = 0 if max_members < _MAX_MEMBERS else _MAX_SMALL
    for level in levels(roots):
        objects = objects_of(level)
        if not is_type_known:
            _check_keys(objects)
        containers: list[Container] = [*arrays_of(level), *objects]
        for each in containers:
            if len(each) > max_members:
                _check_members(each, max_members, counts_all=counts_all)
        squares += sum(len(each) ** 2 for each in containers)
        found += _members(each for each in containers if len(each) > most_unhashed)
        small = _members(each for each in containers if len(each) <= most_unhashed)
        found += [each for each in small if isinstance(each, str) and len(each) > _SHORT]
    _check_sizes(squares, max_members)
    return found


def _check_keys(objects: list[dict[str, object]]) -> None:
    if max(map(len, chain.from_iterable(objects)), default=0) > _MAX_KEY_CHARS:
        raise ValidationError(f"Expected keys of at most {_MAX_KEY_CHARS} characters")


def _check_members(container: Container, max_members: int, *, counts_all: bool) -> None:
    if counts_all:
        reason = "because the value is read as a type with sets, or with dicts whose keys are not strings"
        raise ValidationError(f"Expected at most {max_members} members in an array or object, {reason}")
    if sum(map(_is_number, container)) > max_members:
        what = "numbers (or texts that look like numbers) in an array or object"
        reason = "because these may become items of a set or keys of a dict"
        raise ValidationError(f"Expected at most {max_members} {what}, {reason}")


def _members(containers: Iterable[Container]) -> list[object]:
    """Return the items of arrays, and the keys and values of objects."""
    found: list[object] = []
    for each in containers:
        found += each
        if isinstance(each, dict):
            found += each.values()
    return found


def _check_sizes(squares: int, max_members: int) -> None:
    if max_members < _MAX_MEMBERS and squares > _MAX_LARGE * max_members**2:
        reason = "because these may become sets whose items Python compares with each other"
        raise ValidationError(f"Expected fewer or smaller arrays and objects, {reason}")


def _is_number(value: object) -> bool:
    """Return whether a class of another library may hash *value* as a number that a peer has chosen.

    Fractions do not count: they are common in long lists, such as those of an embedding, and rare in sets.
    """
    if isinstance(value, str):
        return _MAYBE_NUMBER.match(value) is not None
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _hashes_of_all(texts: list[str], *, has_fractions: bool) -> Iterator[int]:
    """Yield the hashes of the numbers and the UUIDs among *texts*; of numbers with a fraction only if asked for."""
    numbers = [found for found in map(_NUMBER.fullmatch, texts) if found]
    if sum(len(each[0]) ** 2 for each in numbers if _is_whole(each[0])) > _MAX_SQUARES:
        raise ValidationError("Expected fewer numbers with many digits")
    fractions = 0
    for found in numbers:
        whole = _hashes(found[0])
        yield from whole
        if has_fractions and not whole and found[1] is not None:
            fractions += 1
            with suppress(InvalidOperation):
                yield hash(Decimal(found[0]))
        if fractions > _MAX_FRACTIONS:
            what = f"texts of {_LONG_DIGITS} or more characters that are numbers with a fraction"
            raise ValidationError(f"Expected at most {_MAX_FRACTIONS} {what}")


def _is_whole(text: str) -> bool:
    """Return whether *text* is a whole number, as msgspec reads a key."""
    return text.removeprefix("-").isdecimal()


def _hashes(text: str) -> list[int]:
    """Return the hashes of the whole number and of the UUID that *text* is; none if it is something else."""
    hashes = [hash(int(text))] if _is_whole(text) else []
    digits = text.replace("-", "") if "-" in text else text
    if len(digits) > _UUID_DIGITS and not hashes:
        digits = digits.lower().removeprefix("urn:uuid:").strip("{}")
    if len(digits) == _UUID_DIGITS:
        with suppress(ValueError):
            hashes.append(hash(int(digits, 16)))
    return hashes
