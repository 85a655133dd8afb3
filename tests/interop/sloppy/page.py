"""The part of ``docs/interop.md`` that says what each SDK takes of sloppy peers."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tests.interop.sloppy.kinds import client_kinds, server_kinds
from tests.interop.sloppy.readings import OTHERS, OURS, Key, Verdict, common, reason_for, reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.interop.sloppy.kinds import Kind

__all__ = ["TITLE", "lines"]

TITLE = "\n## What each takes\n"
HEAD = f"""\
{TITLE}
Real servers and clients deviate from the specification. Each row below is one kind of deviation. A scripted server or
client shows it, in each revision that it applies to, to all SDKs. `tests/interop/sloppy/servers.toml` and
`clients.toml` say what is sent, and what a tolerant reader sees. `readings.json` keeps the messages of each refusal.

**yes**: the SDK reads what a tolerant reader sees. **no**: it refuses, with an error. **hangs**: it does not end within
ten seconds. **wrong**: it reads something else. Revisions are named where they differ.

"""
WORDS = {"takes": "yes", "refuses": "no", "hangs": "hangs", "wrong": "wrong"}
TITLES = {"server": "Sloppy servers, by client", "client": "Sloppy clients, by server"}


def lines(results: Mapping[Key, Verdict]) -> Iterator[str]:
    """Yield the text, a part at a time."""
    yield HEAD
    readings = common(results)
    refused = {key: each for key, each in readings.items() if each.outcome != "takes"}
    unexplained = [key for key in refused if reason_for(key) is None]
    share = 100 * len(refused) / max(1, len(readings))
    yield (
        f"mcpgen does not take {len(refused)} of {len(readings)} readings ({share:.1f} %) of what at least two others"
        f" take; {len(unexplained)} of these have no written reason.\n"
    )
    for side, kinds in (("server", server_kinds()), ("client", client_kinds())):
        yield f"\n### {TITLES[side]}\n"
        for exchange, group in groupby(kinds.values(), lambda kind: kind.exchange):
            yield f"\n`{exchange}`:\n\n| kind | what deviates | {' | '.join((OURS, *OTHERS))} | reason |\n"
            yield f"|---|---|{'---|' * 6}\n"
            yield from (_row(side, kind, results) for kind in group)
    yield "\n### Reasons to refuse\n\n"
    yield from (f"{number}. {each.reason}.\n" for number, each in enumerate(reasons(), 1))


def _row(side: str, kind: Kind, results: Mapping[Key, Verdict]) -> str:
    cells = [
        _cell({each: results.get(Key(side, kind.name, each, name)) for each in kind.revisions})
        for name in (OURS, *OTHERS)
    ]
    numbers = [str(number) for number, each in enumerate(reasons(), 1) if each.side == side and kind.name in each.kinds]
    what = kind.what.replace("|", "\\|")
    return f"| {kind.name} | {what} | {' | '.join(cells)} | {', '.join(numbers)} |\n"


def _cell(verdicts: Mapping[str, Verdict | None]) -> str:
    """Return one word, or a word for each run of revisions that differ."""
    runs: list[tuple[str, list[str]]] = []
    for revision, verdict in verdicts.items():
        if verdict is None:
            continue
        word = WORDS[verdict.outcome]
        if runs and runs[-1][0] == word:
            runs[-1][1].append(revision)
        else:
            runs.append((word, [revision]))
    if len(runs) == 1:
        return runs[0][0]
    return ", ".join(f"{word} {_span(revisions)}" for word, revisions in runs)


def _span(revisions: list[str]) -> str:
    return revisions[0] if len(revisions) == 1 else f"{revisions[0]} to {revisions[-1]}"
