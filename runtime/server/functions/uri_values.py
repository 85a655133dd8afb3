r"""What a value in a URI may be: where URIs of strangers are kept from reaching what no template means.

Authors put values into paths. So a value is refused, and its URI names nothing, if it could lead somewhere else than
below the place that the template names:

* it is no UTF-8, has a malformed escape, or holds a control character (to a system, NUL ends a path);
* it holds a separator (``/``, or ``\``, which Windows reads as one) where the template has one segment only;
* one of its segments is ``.`` or ``..``, also with the dots and blanks at the end that Windows drops;
* it starts with a separator or a drive (``C:``), since such a path replaces what it is joined to;
* any of that is true once it is decoded again (``%252e``), or of its compatibility form (fullwidth dots and slashes),
  in case that somebody later decodes or normalises it.

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

# Encoding twice happens; three times has no honest reason. A limit, because each round may shorten a text by two
# characters only, which would make the rounds over a long one cost quadratic time.
MAX_ENCODINGS = 3

# RFC 3986, sections 2.2 and 2.3. Letters and digits, which `quote` always keeps, are missing.
UNRESERVED = "-._~"
RESERVED = ":/?#[]@!$&'()*+,;="


def decode(raw: str, variable: Variable) -> str | None:
    """Return the value of a variable that stands in a URI as *raw*; None if it may not be one."""
    if not variable.spans and any(each in raw for each in "/?#"):
        return None
    value = _decoded(raw)
    if value is None or not all(map(_is_below, _forms(value))):
        return None
    if not variable.spans and any(map(SEPARATORS.search, _forms(value))):
        return None
    return value if _stays_below(value) else None


def _stays_below(value: str) -> bool:
    """Whether a value is harmless even to somebody who normalises and decodes it again, as leniently as Python does."""
    for _ in range(MAX_ENCODINGS):
        again = unquote(unicodedata.normalize("NFKC", value))
        if again == value:
            return True
        if not all(map(_is_below, _forms(again))):
            return False
        value = again
    return unquote(value) == value


def encode(value: str, *, reserved: bool) -> str:
    """Return a value as it stands in a URI (RFC 6570, section 3.2.1), reserved characters as they are if so asked."""
    if not reserved:
        return quote(value, safe=UNRESERVED)
    # RFC 6570, section 3.2.3: what is an escape already stays one.
    pieces = ESCAPE.split(value)
    return "".join(
        piece if index % 2 else quote(piece, safe=UNRESERVED + RESERVED) for index, piece in enumerate(pieces)
    )


def _decoded(text: str) -> str | None:
    if MALFORMED.search(text):
        return None
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        return None


def _forms(value: str) -> tuple[str, ...]:
    """Return a value, and what normalising makes of it if that is something else."""
    return (value,) if value.isascii() else (value, unicodedata.normalize("NFKC", value))


def _is_below(form: str) -> bool:
    """Whether a text, joined to a folder, names something below it."""
    if CONTROLS.search(form) or DRIVE.match(form) or SEPARATORS.match(form):
        return False
    return not any(map(_is_dots, SEPARATORS.split(form)))


def _is_dots(segment: str) -> bool:
    return "." in segment and not segment.strip(". ")
