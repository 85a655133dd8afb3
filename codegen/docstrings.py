"""Text for docstrings. Some of it comes from documents, which can contain anything."""

from __future__ import annotations

import re
import textwrap

__all__ = ["LINE_LENGTH", "prose", "wrapped"]

LINE_LENGTH = 120

# Characters that are invisible or could control a terminal or an editor: blanks, control and format characters, private
# use and noncharacters. The list is fixed, because `str.isprintable` accepts more characters with each release of
# Python, and the output must have the same bytes on all of them.
_INVISIBLE = re.compile(
    "[\x00-\x20\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\ud800-\uf8ff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U0010ffff]+"
)


def prose(text: str) -> str:
    """Return *text* for a docstring: one paragraph of visible characters, without quotes that could end it."""
    flat = _INVISIBLE.sub(" ", text).strip(" ").replace("\\", "\\\\").replace('"""', "'''")
    return flat.removesuffix('"') + '\\"' if flat.endswith('"') else flat


def wrapped(*paragraphs: str, indent: str) -> str:
    """Return the text of a docstring at *indent*; if it has several lines, the closing quotes get their own line."""
    width = LINE_LENGTH - len(indent)
    # The first line also holds the opening quotes. A single line also holds the closing quotes.
    first = textwrap.wrap(paragraphs[0], width - len('""""""'), break_long_words=False, break_on_hyphens=False)
    if len(first) > 1:
        first = textwrap.wrap(f"___{paragraphs[0]}", width, break_long_words=False, break_on_hyphens=False)
        first[0] = first[0].removeprefix("___")
    lines = list(first)
    for paragraph in paragraphs[1:]:
        wraps = not paragraph.startswith("Spec: ")  # a URL stays beside its heading, however long
        wrapping = textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False)
        lines += ["", *(wrapping if wraps else [paragraph])]
    return "\n".join(
        [lines[0], *(indent + line if line else "" for line in lines[1:]), *([indent] if lines[1:] else [])]
    )
