r"""Decode values in a URI, and refuse those that would escape from the place in the template (path traversal).

Authors put values into file paths. A value is refused, so that its URI matches nothing, if:

* it is not UTF-8, has a malformed escape, or holds a control character (NUL ends a path in system calls);
* it holds a separator (``/``, or ``\``, which is one on Windows) where the template has a single segment;
* one of its segments is ``.`` or ``..``, also with trailing dots and spaces, which Windows ignores;
* it starts with a separator or a drive (``C:``), because joining such a path replaces the folder;
* any of this is true after decoding it again (``%252e``) or normalising it (fullwidth dots and slashes), because a
  handler may do so;
* it has more than 30 combining marks in a row: to normalise them takes a time that grows with the square of their
  number. No language needs as many (Unicode Standard Annex #15, "Stream-Safe Text Format").

Spec: 2026-07-28, server/resources#security-considerations; RFC 3986, sections 2.1 and 6.2.2.3.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_to_bytes

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.uri_template import Variable

__all__ = ["decode", "encode"]

MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SEPARATORS = re.compile(r"[/\\]")
DRIVE = re.compile(r"[A-Za-z]:")
ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")

# Some clients encode twice. More rounds are limited, because each may shorten the text by two characters only, so that
# a long text would cost quadratic time.
MAX_ENCODINGS = 3

MAX_MARKS = 30

# RFC 3986, sections 2.2 and 2.3. Letters and digits, which `quote` always keeps, are missing.
UNRESERVED = "-._~"
RESERVED = ":/?#[]@!$&'()*+,;="


def decode(raw: str, variable: Variable) -> str | None:
    """Return the decoded value of a variable; None if it is refused."""
    if not variable.spans and any(each in raw for each in "/?#"):
        return None
    if MALFORMED.search(raw):
        return None
    try:
        value = unquote_to_bytes(raw).decode()
    except UnicodeError:
        return None
    if _has_many_marks(value):
        return None
    if not all(map(_is_below, _forms(value))):
        return None
    if not variable.spans and any(map(SEPARATORS.search, _forms(value))):
        return None
    return value if _stays_below(value) else None


def _has_many_marks(value: str) -> bool:
    """Whether a value has more than `MAX_MARKS` combining marks in a row."""
    if value.isascii():
        return False
    marks = {each: _count_marks(each) for each in set(value)}
    count = 0
    for each in value:
        count = count + marks[each] if marks[each] else 0
        if count > MAX_MARKS:
            return True
    return False


def _count_marks(character: str) -> int:
    """Return how many characters a combining mark stands for; 0 if it is none."""
    parts = unicodedata.normalize("NFKD", character)
    return len(parts) if unicodedata.combining(parts[0]) else 0


def _stays_below(value: str) -> bool:
    """Whether a value is safe even if a handler normalises and decodes it again, as leniently as Python does."""
    for _ in range(MAX_ENCODINGS):
        again = unquote(unicodedata.normalize("NFKC", value))
        if again == value:
            return True
        if not all(map(_is_below, _forms(again))):
            return False
        value = again
    return unquote(value) == value


def encode(value: str, *, reserved: bool) -> str:
    """Return a value encoded for a URI (RFC 6570, section 3.2.1); *reserved* keeps reserved characters as they are."""
    if not reserved:
        return quote(value, safe=UNRESERVED)
    # RFC 6570, section 3.2.3: percent-encoded triplets stay as they are.
    pieces = ESCAPE.split(value)
    return "".join(
        piece if index % 2 else quote(piece, safe=UNRESERVED + RESERVED) for index, piece in enumerate(pieces)
    )


def _forms(value: str) -> tuple[str, ...]:
    """Return a value and, if it differs, its compatibility form."""
    return (value,) if value.isascii() else (value, unicodedata.normalize("NFKC", value))


def _is_below(form: str) -> bool:
    """Whether a text, joined to a folder, names something below it."""
    if CONTROLS.search(form) or DRIVE.match(form) or SEPARATORS.match(form):
        return False
    return not any("." in segment and not segment.strip(". ") for segment in SEPARATORS.split(form))
