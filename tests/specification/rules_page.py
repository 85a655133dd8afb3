"""``docs/rules.md``: how many rules of each revision are tested, and why the others are not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.specification.citation import TASKS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.specification.rules import Rule, Verdict

__all__ = ["text"]

HEAD: Final = """\
# Rules of the specification

Written by `python -m tests.specification page`; do not edit.

Each sentence of the specification with MUST or SHOULD is a rule. `tests/rules.jsonl` has a line for each rule of the
five revisions, and of the extension for tasks (`ext-tasks`). The line has the place of the sentence, and the verdict on
mcpgen; it does not repeat the sentence. A test names the rules that it checks by their digests
([tests/README.md](../tests/README.md#cite-a-rule)). For each rule that counts as tested here, a test runs in each
revision that has the rule; otherwise `tests/specification/test_rules.py` fails.

A rule that is the same in several revisions counts in each of them. In the tables, *rule* is the digest of the
sentence, and *for* is the side that has to follow the rule.

In the first version of this page, without the rules about authorization, 5, 6, 10, 18 and 24 MUSTs of the five
revisions were missing, and 0, 1, 1, 6 and 1 were contradicted.
"""

MEANINGS: Final[dict[Verdict, str]] = {
    "tested": "tests check the rule in each of its revisions",
    "missing": "mcpgen does not follow the rule, or not in all cases",
    "contradicted": "mcpgen does something else",
    "not applicable": "the rule is for the host, the author of a server, or an intermediary, not for a library",
    "done": "mcpgen follows the rule; found by reading the code, not by a test",
    "not done": "mcpgen does not follow the rule, or not in all cases",
}
LEVELS: Final[dict[str, tuple[Verdict, ...]]] = {
    "MUST": ("tested", "missing", "contradicted", "not applicable"),
    "SHOULD": ("tested", "done", "not done", "not applicable"),
}
LISTED: Final[dict[Verdict, str]] = {
    "contradicted": "Contradicted",
    "missing": "Missing",
    "not done": "SHOULD, not done",
    "not applicable": "Not applicable",
}

_SITE: Final = "https://modelcontextprotocol.io/specification"
_TASKS_SITE: Final = "https://github.com/modelcontextprotocol/ext-tasks/blob/main"


def text(rules: Sequence[Rule]) -> str:
    """Return the page."""
    return "".join(f"{line}\n" for line in _lines(rules))


def _lines(rules: Sequence[Rule]) -> Iterator[str]:
    yield HEAD
    yield from (f"* **{verdict}**: {meaning}." for verdict, meaning in MEANINGS.items())
    for level, verdicts in LEVELS.items():
        yield from ("", f"## {level}", "")
        yield f"| revision | {' | '.join(verdicts)} | all |"
        yield "|---" * (len(verdicts) + 2) + "|"
        counts = Counter(
            (revision, each.verdict) for each in rules if each.level == level for revision in each.revisions
        )
        for revision in TEXTS:
            numbers = [counts[revision, each] for each in verdicts]
            yield f"| {revision} | {' | '.join(map(str, [*numbers, sum(numbers)]))} |"
    for verdict, title in LISTED.items():
        found = [each for each in rules if each.verdict == verdict]
        yield from ("", f"## {title}", "")
        yield from _table(found) if found else ["None."]


def _table(rules: Iterable[Rule]) -> Iterator[str]:
    yield "| rule | where | revisions | for | reason |"
    yield "|---|---|---|---|---|"
    for each in rules:
        revisions = ", ".join(each.revisions)
        where = f"[{each.section}]({_address(each)})"
        yield f"| `{each.digest}` | {where} | {revisions} | {each.actor} | {each.reason} |"


def _address(rule: Rule) -> str:
    if TASKS in rule.revisions:
        page, _, heading = rule.section.partition("#")
        return f"{_TASKS_SITE}/{page}.md#{heading}"
    return f"{_SITE}/{rule.revisions[-1]}/{rule.section}".replace("/index", "")
