"""Finding rules in a text, and comparing them with those that are known."""

from __future__ import annotations

import subprocess
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.specification.rules import Rule
from tests.specification.sentences import Sentence, headings, sentences, slug
from tests.specification.text_changes import changes, headings_text, pages, report

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
---
title: Doors
---

<Note>The key words "MUST" and "SHOULD" are to be interpreted as described in BCP 14.</Note>

# Doors

A door **MUST** have a [handle](/handles). It may be red, e.g. MUSTARD. Doors SHOULD close.

```text
A door MUST NOT be read here.
```

## Opening & `closing`

Guests **MUST**:

1. Knock
   * loudly, and they MUST wait
2. Enter
   1. Guests who are late SHOULD:
      - be quiet

| Door | Demand            |
|------|-------------------|
| back | It MUST be locked |
| side | It MUST be locked |

[handle]: https://example.com/MUST
"""
SCHEMA = """\
### `Door`

<p>A door. It MUST have a <code>handle</code>.</p>
```ts
// it MUST not be read
```

### `Gate`

<li>It MUST have a <code>handle</code>.</li>
"""


def found(text: str, page: str = "doors") -> list[tuple[str, str, str]]:
    return [(each.section, each.level, each.text) for each in sentences({page: text}).values()]


def test_sentences_items_and_rows_with_keywords_are_rules() -> None:
    assert [
        ("doors#doors", "MUST", "A door MUST have a handle."),
        ("doors#doors", "SHOULD", "Doors SHOULD close."),
        ("doors#opening-closing", "MUST", "Guests MUST: ▸ Knock"),
        ("doors#opening-closing", "MUST", "loudly, and they MUST wait"),
        ("doors#opening-closing", "MUST", "Guests MUST: ▸ Enter"),
        ("doors#opening-closing", "SHOULD", "Guests who are late SHOULD: ▸ be quiet"),
        ("doors#opening-closing", "MUST", "It MUST be locked"),
        ("doors#opening-closing", "MUST", "It MUST be locked"),
    ] == found(PAGE)


def test_a_sentence_of_the_schema_counts_once() -> None:
    assert [("schema#door", "MUST", "It MUST have a handle .")] == found(SCHEMA, "schema")


def test_headings_are_spelled_as_citations_name_them() -> None:
    assert ["doors", "opening-closing"] == headings(PAGE)
    assert ["http-sse-transport-2024-11-05", "meta", "a-b", "tools-list"] == [
        slug(each) for each in ("HTTP+SSE Transport (2024-11-05)", "`_meta`", "[A](/x) & *B*", "`tools/list`")
    ]


def test_a_digest_depends_on_page_heading_and_words() -> None:
    (first,) = sentences({"a": "# Same\n\nIt MUST be so."}).values()
    (same,) = sentences({"a": "# Same\n\nIt **MUST** be so.\n"}).values()
    others = [
        *sentences({"b": "# Same\n\nIt MUST be so."}).values(),
        *sentences({"a": "# Other\n\nIt MUST be so."}).values(),
        *sentences({"a": "# Same\n\nIt MUST not be so."}).values(),
    ]

    assert first == same
    assert 4 == len({first.digest, *(each.digest for each in others)})
    assert [True, True, False] == [each.fingerprint == first.fingerprint for each in others]


def known(sentence: Sentence) -> Rule:
    return Rule(
        digest=sentence.digest,
        fingerprint=sentence.fingerprint,
        section=sentence.section,
        revisions=("2026-07-28",),
        level="MUST",
        actor="both",
        verdict="tested",
    )


def test_rules_come_go_and_move() -> None:
    before = sentences({"a": "# One\n\nIt MUST stay. It MUST go. It MUST move."})
    after = sentences({"a": "# One\n\nIt MUST stay. It MUST come.\n\n# Two\n\nIt MUST move."})
    compared = changes(map(known, before.values()), after)

    assert ["It MUST come."] == [each.text for each in compared.came]
    assert [before[each.digest].text for each in compared.went] == ["It MUST go."]
    assert [("a#one", "a#two")] == [(rule.section, place.section) for rule, place in compared.moved]
    assert "draft: 1 came, 1 went, 1 moved" == next(report("draft", compared))


@pytest.mark.slow
def test_pages_are_read_from_a_commit_of_a_repository(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        options = ("-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")
        subprocess.run([which("git") or "git", *options, *arguments], check=True, cwd=tmp_path, capture_output=True)

    page = tmp_path / "docs" / "specification" / "draft" / "basic" / "index.mdx"
    page.parent.mkdir(parents=True)
    git("init", "--quiet")
    last = "# Two\n\nIt MUST be. It MAY be.\n"
    for text in ("# One\n", last):
        page.write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "--quiet", "--message", text)

    assert {"basic/index": last} == pages(tmp_path, "docs/specification/draft")
    assert {"basic/index": "# One\n"} == pages(tmp_path / ".git", "docs/specification/draft", commit="HEAD~1")
    assert '{\n"draft": {\n  "basic/index": {"": 0, "two": 1}\n}\n}\n' == headings_text(
        {"draft": {"basic/index": last}}
    )
    with pytest.raises(LookupError, match="no pages in docs/specification/2026-07-28"):
        pages(tmp_path, "docs/specification/2026-07-28")
