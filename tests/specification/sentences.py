"""The normative sentences of the specification: which there are in a text, and the digest that names each.

Theory of operation. A page is Markdown with some HTML. Its text is split into blocks: paragraphs, items of lists and
rows of tables. A sentence with a keyword of RFC 2119 is a rule. An item without a keyword belongs to the paragraph or
item above it that has one and ends in a colon: "Clients MUST:" and "Validate all roots" are one rule. The page of the
schema is generated HTML, in which a sentence counts once, however many definitions repeat it.

A digest depends on the page, the heading and the words, but not on the revision. So a rule that stays the same keeps
its digest in the next revision. A rule that moves to another page or heading gets another digest, and keeps its
fingerprint, which depends on the words alone.
"""

from __future__ import annotations

import html
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Sentence", "headings", "sentences", "slug"]

_MUST: Final = re.compile(r"\b(MUST|SHALL|REQUIRED)\b")
_ANY: Final = re.compile(r"\b(MUST|SHALL|REQUIRED|SHOULD|RECOMMENDED)\b")
# The paragraph that says what these words mean is no rule.
_MEANING: Final = re.compile(r"key words.*BCP 14|are to be interpreted as described")

_SENTENCE_END: Final = re.compile(r"[.!?](?:[)\"'*_`]*)\s+(?=[A-Z`\"(\[*_<{0-9])")
_ABBREVIATION: Final = re.compile(r"(?:\be\.g|\bi\.e|\betc|\bvs|\bcf|\bRFC|\bSec)\.$|^\s*\d+\.$")

_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)$")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_ITEM: Final = re.compile(r"(\s*)([-*]|\d+\.)\s+(.*)$")
_LINK_TARGET: Final = re.compile(r"\[[^\]]+\]:\s")
_RULER: Final = re.compile(r"\|[\s:|-]+\|$")
_TAG: Final = re.compile(r"</?(Note|Warning|Info|Tip|Card|CardGroup|Tabs|Tab|Steps?|Accordion)\b[^>]*>$")

_SCHEMA_PAGE: Final = "schema"


class Sentence(NamedTuple):
    """A rule as a text has it.

    Attributes:
        digest: Names the rule.
        fingerprint: Depends on the words alone.
        section: The page, and the heading if there is one.
        level: MUST or SHOULD.
        text: The sentence.
    """

    digest: str
    fingerprint: str
    section: str
    level: str
    text: str


class _Block(NamedTuple):
    headings: tuple[tuple[int, str], ...]
    kind: str  # par, item, row or code
    indent: int
    text: str


class _Found(NamedTuple):
    heading: str
    text: str
    probe: str  # the part that has the keyword
    place: str = ""  # what else names the rule: the first cell of its row


def slug(heading: str) -> str:
    """Return a heading as citations and links name it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = text.replace("`", "").replace("*", "").lower().strip().replace("\\_", "_")
    text = re.sub(r"[^\w\s./&+-]", "", text)
    return re.sub(r"[\s./&+_-]+", "-", text).strip("-")


def headings(text: str) -> list[str]:
    """Return the slugs of the headings of a page, in order."""
    return list(dict.fromkeys(slug(each) for each in _Reader(text).headings))


def sentences(pages: Mapping[str, str]) -> dict[str, Sentence]:
    """Return the rules of one revision, by digest.

    Args:
        pages: The text of each page, by name, such as ``basic/index``.
    """
    found: dict[str, Sentence] = {}
    for page, text in pages.items():
        in_schema = page == _SCHEMA_PAGE
        for each in _schema(text) if in_schema else _prose(_Reader(text).blocks):
            if _MEANING.search(each.text):
                continue
            heading = slug(each.heading)
            words = re.sub(r"[^a-z0-9]+", " ", each.text.strip().lower()).strip()
            digest = _hash(page, "" if in_schema else heading, each.place, words)
            level = "MUST" if _MUST.search(each.probe) else "SHOULD"
            section = f"{page}#{heading}" if heading else page
            found.setdefault(digest, Sentence(digest, _hash(words), section, level, each.text.strip()))
    return found


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:8]


# Blocks


class _Reader:
    """Split a page into blocks.

    Attributes:
        blocks: The blocks.
        headings: The headings.
    """

    def __init__(self, text: str) -> None:
        self.blocks: list[_Block] = []
        self.headings: list[str] = []
        self._path: tuple[tuple[int, str], ...] = ()
        self._fence = ""
        self._open: _Block | None = None
        lines = text.split("\n")
        for line in lines[lines.index("---", 1) + 1 :] if lines[0] == "---" else lines:
            self._read(line)
        self._finish()

    def _read(self, line: str) -> None:
        stripped = line.strip()
        mark = _FENCE.match(stripped)
        if self._fence:
            if mark and stripped.startswith(self._fence) and not stripped.strip("`~"):
                self._fence = ""
        elif mark:
            self._add("code", line, "")
            self._finish()
            self._fence = mark.group()
        elif heading := _HEADING.match(line):
            self._finish()
            depth, title = len(heading[1]), heading[2].strip()
            self._path = (*(each for each in self._path if each[0] < depth), (depth, title))
            self.headings.append(title)
        elif not stripped or _TAG.match(stripped):
            self._finish()
        elif not _LINK_TARGET.match(stripped):
            self._read_text(line, stripped)

    def _read_text(self, line: str, stripped: str) -> None:
        if stripped.startswith("|"):
            self._finish()
            if not _RULER.match(stripped):
                self._add("row", line, stripped)
                self._finish()
        elif item := _ITEM.match(line):
            self._add("item", line, item[3])
        elif self._open is None:
            self._add("par", line, stripped)
        else:
            self._open = self._open._replace(text=f"{self._open.text} {stripped}")

    def _add(self, kind: str, line: str, text: str) -> None:
        self._finish()
        self._open = _Block(self._path, kind, len(line) - len(line.lstrip()), text)

    def _finish(self) -> None:
        if self._open is not None:
            self.blocks.append(self._open)
        self._open = None


def _plain(text: str) -> str:
    """Return *text* without its markup."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    for _ in range(2):  # links in the texts of links
        text = re.sub(r"\[([^\[\]]*)\]\([^()]*(?:\([^()]*\))?[^()]*\)", r"\1", text)
        text = re.sub(r"\[([^\[\]]*)\]\[[^\]]*\]", r"\1", text)
    text = text.replace("**", "").replace("\\_", "_")
    return re.sub(r"\s+", " ", text).strip()


def _split(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    found, start = list[str](), 0
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[start : match.start() + 1]):
            found.append(text[start : match.end()].strip())
            start = match.end()
    return [each for each in (*found, text[start:].strip()) if each]


# Prose


def _prose(blocks: Sequence[_Block]) -> Iterator[_Found]:
    for index, block in enumerate(blocks):
        if block.kind == "row":
            cells = [_plain(each) for each in re.split(r"(?<!\\)\|", block.text.strip("|"))]
            for each in (each for cell in cells for each in _split(cell)):
                if _ANY.search(each):
                    yield _Found(_heading(block), each, each, cells[0])
        elif block.kind != "code":
            yield from _text(blocks, index)


def _heading(block: _Block) -> str:
    return block.headings[-1][1] if block.headings else ""


def _text(blocks: Sequence[_Block], index: int) -> Iterator[_Found]:
    """Yield the rules of a paragraph or an item."""
    block = blocks[index]
    whole = _plain(block.text)
    parts = _split(whole)
    if not parts:
        return
    below = blocks[index + 1] if index + 1 < len(blocks) else None
    has_items = (
        below is not None
        and below.kind == "item"
        and below.headings == block.headings
        and (block.kind == "par" or below.indent > block.indent)
    )
    for each in parts:
        is_stem = each is parts[-1] and has_items and each.endswith((":", "MUST", "SHOULD"))
        if _ANY.search(each) and not is_stem:
            yield _Found(_heading(block), each, each)
    if block.kind != "item" or (has_items and _ANY.search(parts[-1]) and parts[-1].endswith(":")):
        return
    stem = _stem(blocks, index)
    if stem and not (_MUST.search(whole) if _MUST.search(stem) else _ANY.search(whole)):
        yield _Found(_heading(block), f"{stem} ▸ {whole}", stem)


def _stem(blocks: Sequence[_Block], index: int) -> str:
    """Return the sentence with a keyword and a colon that an item belongs to, or an empty text."""
    for above in _above(blocks, index):
        if blocks[above].kind == "par" and blocks[above + 1].kind != "item":
            return ""
        last = _split(_plain(blocks[above].text))[-1]
        if not last.endswith(":"):
            return ""
        if _ANY.search(last):
            return last
    return ""


def _above(blocks: Sequence[_Block], index: int) -> Iterator[int]:
    """Yield the items around an item, from the inside out, and then the paragraph above the list."""
    block = blocks[index]
    indent = block.indent
    for above in range(index - 1, -1, -1):
        other = blocks[above]
        if other.headings != block.headings:
            return
        if other.kind == "item" and other.indent < indent:
            yield above
            indent = other.indent
        elif other.kind == "par":
            is_inside = 0 < block.indent <= other.indent
            between = blocks[above + 1 : index]
            if other.indent <= indent and not is_inside and all(each.kind != "par" or each.indent for each in between):
                yield above
            return


# The page of the schema


def _schema(text: str) -> Iterator[_Found]:
    for chunk in re.split(r"(?m)^### ", text)[1:]:
        heading, _, body = chunk.partition("\n")
        name = heading.strip().strip("`")
        for paragraph in re.findall(
            r"<(?:p|li)>(.*?)</(?:p|li)>", re.sub(r"```.*?```", " ", body, flags=re.DOTALL), re.DOTALL
        ):
            for each in _split(_plain(paragraph)):
                if _ANY.search(each):
                    yield _Found(name, each, each)
