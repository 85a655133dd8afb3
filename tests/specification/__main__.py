"""``python -m tests.specification``: write ``docs/rules.md``, or compare the rules with a text of the specification."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.specification import rules_page
from tests.specification.citation import LABELS, TASKS, TEXTS
from tests.specification.rules import HEADINGS, read
from tests.specification.sentences import sentences
from tests.specification.text_changes import changes, headings_text, pages, report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.specification.sentences import Sentence

PAGE: Final = Path(__file__).parents[2] / "docs" / "rules.md"

_ROOT: Final = "docs/specification"
_TASKS: Final = "specification/draft"


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command says."""
    parser = argparse.ArgumentParser(prog="python -m tests.specification", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page", help="write docs/rules.md")
    compare = commands.add_parser("compare", help="report which rules came, went or moved in a text")
    compare.add_argument(
        "--revision", help="only this revision, `ext-tasks`, or `draft`, which is compared with the newest one"
    )
    compare.add_argument("--commit", default="HEAD", help="the commit to read")
    shown = commands.add_parser("rules", help="print the rules of a text: digest, level, place, verdict and sentence")
    shown.add_argument("--revision", required=True, help="the revision, or `ext-tasks`")
    listing = commands.add_parser("headings", help="write the headings that citations may name")
    for each in (compare, shown, listing):
        each.add_argument(
            "repository", type=Path, help="a clone of the specification, or of ext-tasks, or its git directory"
        )
    listing.add_argument("tasks", type=Path, help="the same of the extension for tasks, ext-tasks")
    options = parser.parse_args(arguments)
    match options.command:
        case "page":
            PAGE.write_text(rules_page.text(read()), encoding="utf-8")
        case "rules":
            _show(options.repository, options.revision)
        case "headings":
            found = {label: pages(options.repository, f"{_ROOT}/{label}") for label in LABELS}
            found[TASKS] = _pages_of_tasks(options.tasks, "HEAD")
            HEADINGS.write_text(headings_text(found), encoding="utf-8")
        case _:
            _compare(options.repository, [options.revision] if options.revision else LABELS, options.commit)


def _show(repository: Path, revision: str) -> None:
    verdicts = {each.digest: each.verdict for each in read() if revision in each.revisions}
    for each in _sentences(repository, revision, "HEAD").values():
        verdict = verdicts.get(each.digest, "unknown")
        sys.stdout.write(f"{each.digest} {each.level} {each.section} ({verdict}): {each.text}\n")


def _sentences(repository: Path, revision: str, commit: str) -> dict[str, Sentence]:
    if revision == TASKS:
        return sentences(_pages_of_tasks(repository, commit))
    return sentences(pages(repository, f"{_ROOT}/{revision}", commit=commit))


def _pages_of_tasks(repository: Path, commit: str) -> dict[str, str]:
    return {f"{_TASKS}/{name}": text for name, text in pages(repository, _TASKS, commit=commit).items()}


def _compare(repository: Path, revisions: Sequence[str], commit: str) -> None:
    for revision in revisions:
        against = revision if revision in TEXTS else LABELS[-1]
        known = [each for each in read() if against in each.revisions]
        found = _sentences(repository, revision, commit)
        sys.stdout.writelines(f"{line}\n" for line in report(revision, changes(known, found)))


if __name__ == "__main__":
    main()
