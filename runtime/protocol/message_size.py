"""The size of a message beside its bytes: how many values it has, and what it costs in memory.

Theory of operation. The time and the memory to decode JSON depend on its values more than on its bytes: 4 MiB can hold
one text, or a million arrays. So values are counted before anything is decoded. Every value but the first follows a
``{``, a ``[`` or a comma outside of strings. The strings are removed first, by functions of `bytes` that take a few
milliseconds for 4 MiB. Those with many escapes take up to 15 ms, so they are removed only if there are too many values
with them. Small frames are not looked at.

Most numbers take 0.04 µs to decode, but one with an exponent of three digits up to 9 µs, and one of 4,300 digits 70 µs.
So these count as several values.
"""

from __future__ import annotations

import sys
from typing import Final

from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.limits import MAX_VALUES
from mcpgen.runtime.protocol.json_costs import PLAIN_COSTS, JsonCosts

__all__ = ["SMALL_FRAME_BYTES", "decoded_bytes", "detached", "memory_bytes", "too_many_values"]

# A value takes about 0.3 µs in each of at most four passes.
_VALUES_OF_LONG_EXPONENT: Final = 20
_VALUES_OF_25_DIGITS: Final = 4

# No byte counts as more values than this: "1e300," is the shortest slow number.
_MAX_VALUES_OF_BYTE: Final = 4

_25_DIGITS: Final = b"1" * 25
_LONG_EXPONENT: Final = b"e111"
_DIGITS_AS_ONES: Final = bytes.maketrans(b"023456789E", b"111111111e")
_SIGNS: Final = b"+-."

# A frame of this size is kept for its parts, and its memory is estimated with the commas inside of strings.
SMALL_FRAME_BYTES: Final = 4096

# A string with more backslashes, of all its bytes, is removed slowly.
_MANY_ESCAPES: Final = 0.02

# Brackets and commas in strings that are removed slowly count as values if all values cost less than this part of the
# texts. In a message of 4 MiB, 50,000 values cost no more, so that its strings need not be removed.
_MAX_EXCESS: Final = 0.9

# As many as the members of a usual request have.
_FEW_STRINGS: Final = 32
_BACKSLASH: Final = ord("\\")

# A view of at least this part of its frame is not copied, because a copy would save little.
_MIN_PART: Final = 0.5


def too_many_values(frame: bytes, max_values: int) -> bool:
    """Return whether the JSON in *frame* has more than *max_values* values; a slow number counts as several."""
    if _MAX_VALUES_OF_BYTE * len(frame) <= max_values:
        return False
    if _has_many_escapes(frame) and _values(frame, max_values) <= max_values:
        return False
    outside = _outside_strings(frame, 4 * max_values)
    return outside is None or _values(outside, max_values) > max_values


def _values(text: bytes, max_values: int) -> int:
    """Return how many values *text* has; those in its strings count, too."""
    if _MAX_VALUES_OF_BYTE * len(text) <= max_values:
        return 0
    count = text.count(b",") + text.count(b"{") + text.count(b"[")
    if count > max_values:
        return count
    numbers = text.translate(_DIGITS_AS_ONES, _SIGNS)
    slow = _VALUES_OF_LONG_EXPONENT * numbers.count(_LONG_EXPONENT) + _VALUES_OF_25_DIGITS * numbers.count(_25_DIGITS)
    return count + slow


def memory_bytes(frame: bytes, costs: JsonCosts = PLAIN_COSTS) -> int:
    """Return about how many bytes of memory a message takes while *frame* is kept and its params are decoded.

    It is exact within a factor of two for most messages, and more than that only for short values, such as small
    integers, which Python shares.
    """
    size = len(frame) + _text_bytes(frame)
    if costs.has_texts:
        return size + _values_bytes(frame, costs) + _escaped_bytes(frame, costs)
    if len(frame) <= SMALL_FRAME_BYTES:
        return size + _values_bytes(frame, costs)
    if _has_many_escapes(frame) and (values := _values_bytes(frame, costs)) <= size * _MAX_EXCESS:
        return size + values
    outside = _outside_strings(frame, 4 * MAX_VALUES)
    return size + _values_bytes(frame if outside is None else outside, costs)


def decoded_bytes(part: Raw) -> int:
    """Return about how many bytes of memory the values of *part* take; never less than its own bytes."""
    size = len(memoryview(part))
    return size if size <= SMALL_FRAME_BYTES else max(size, memory_bytes(bytes(part)) - size)


def _has_many_escapes(frame: bytes) -> bool:
    """Return whether it takes long to remove the strings of *frame*."""
    return frame.count(_BACKSLASH) > len(frame) * _MANY_ESCAPES


def _values_bytes(text: bytes, costs: JsonCosts) -> int:
    arrays_bytes = costs.array_bytes * text.count(b"[")
    return costs.object_bytes * text.count(b"{") + arrays_bytes + costs.member_bytes * text.count(b",")


def _escaped_bytes(text: bytes, costs: JsonCosts) -> int:
    """Return what the values take that are written with escapes in texts of JSON."""
    if b"\\u00" not in text:
        return 0
    lower = text.lower()
    arrays_bytes = costs.array_bytes * lower.count(b"\\u005b")
    return costs.object_bytes * lower.count(b"\\u007b") + arrays_bytes + costs.member_bytes * lower.count(b"\\u002c")


def detached(part: Raw | UnsetType, frame_bytes: int) -> Raw | UnsetType:
    """Return *part* of a frame; as a copy, if the view would keep a frame in memory that is much larger than itself."""
    if part is UNSET or frame_bytes <= SMALL_FRAME_BYTES or len(memoryview(part)) >= frame_bytes * _MIN_PART:
        return part
    return part.copy()


def _outside_strings(frame: bytes, max_quotes: int) -> bytes | None:
    """Return *frame* without its strings; None if it has more than *max_quotes* quotes that are not escaped.

    Only a JSON text has as many strings as its other values allow: two for each comma and each opening bracket. So a
    limit of quotes bounds the time for a text of empty strings.
    """
    outside: list[bytes] = []
    begin = 0
    for _ in range(_FEW_STRINGS):  # of most messages, one string is most of it, and need not be copied
        opening = frame.find(b'"', begin)
        closing = frame.find(b'"', opening + 1)
        if opening < 0 or closing < 0 or frame[closing - 1] == _BACKSLASH:
            break
        outside.append(frame[begin:opening])
        begin = closing + 1
    rest = frame[begin:]
    if b"\\" in rest:
        rest = rest.replace(b"\\\\", b"").replace(b'\\"', b"")
    pieces = rest.split(b'"', max_quotes + 3)
    return None if len(pieces) > max_quotes + 3 else b"".join([*outside, *pieces[::2]])


def _text_bytes(frame: bytes) -> int:
    """Return the memory that the strings of *frame* take at most: all characters of one are as wide as its widest."""
    try:
        size = len(frame) if frame.isascii() else sys.getsizeof(frame.decode())
    except UnicodeDecodeError:  # it will be refused
        size = len(frame)
    if b"\\u" not in frame:
        return size
    # An escape has six bytes, and is one character.
    chars = len(frame) - 5 * frame.replace(b"\\\\", b"").count(b"\\u")
    return max(size, (4 if b"\\ud" in frame or b"\\uD" in frame else 2) * chars)
