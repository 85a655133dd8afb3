"""``docs/conformance.md``: how many checks of the official suite succeed, scenario by scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from tests.conformance.judging import Expected, Verdict
from tests.conformance.suite import PACKAGE, RUNS, Run, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HEAD", "TITLES", "Verdicts", "reasons", "text"]

# By run, and name of the scenario.
Verdicts = Mapping[Run, Mapping[str, Verdict]]

HEAD: Final = f"""\
# Conformance

Written by `nox -s conformance -- --write`; do not edit.

The official conformance suite, `{PACKAGE}`, judges our server and our client over
HTTP: a server with one thing of everything, `tests/conformance/everything_server.py`, and a client that does whatever a
scenario wants to see, `tests/conformance/everything_client.py`. Both use the public API alone, and are examples of it.

```console
pip install nox && nox -s conformance
```

The columns are runs of the suite. The numbers are checks that succeeded.

* **required** is the set of scenarios that was frozen for a revision (`--requirements`). There the suite also runs some
  that it does not score; here they are held to the same.
* **all** is whatever the suite has for a revision today (`--suite all --spec-version`).
* **found** is the same once more, but our client is not told which revision that is, and has to find out.

`nox -s conformance` fails

* if any check fails or warns, or if none succeeds but that all messages are valid, which is looked at everywhere;
* if our client does not come to its end, or our server prints anything or does not end when it is told to;
* if what is [expected to fail](#expected-failures) does not;
* if the numbers are others than these, so that nothing passes by not being looked at.

An empty cell: the suite has no such scenario there. A letter: it is expected to fail, for
[that reason](#expected-failures).

What the suite does not look at, which is 2024-11-05, HTTP+SSE, batches, the wires of 2025-03-26 and 2025-06-18, and
standard input and output, has tests of ours, and [other SDKs](interop.md) look at it.
"""

TITLES: Final[dict[Side, str]] = {"server": "Our server", "client": "Our client"}


def text(verdicts: Verdicts, listed: Sequence[Expected]) -> str:
    """Return the page."""
    return "".join(_lines(verdicts, listed))


def reasons(listed: Sequence[Expected]) -> Iterator[str]:
    """Return the last section: why what is expected to fail does."""
    yield "\n## Expected failures\n\n"
    for letter, each in zip(ascii_lowercase, listed, strict=False):
        yield f"* **{letter}**, {each.side}: {each.reason}\n"


def _lines(verdicts: Verdicts, listed: Sequence[Expected]) -> Iterator[str]:
    yield HEAD
    for side, title in TITLES.items():
        runs = [run for run in RUNS if run.side == side]
        letters = {
            name: letter
            for letter, each in zip(ascii_lowercase, listed, strict=False)
            if each.side == side
            for name in each.scenarios
        }
        yield f"\n## {title}\n\n| scenario | {' | '.join(run.title for run in runs)} |\n|---|{'--:|' * len(runs)}\n"
        for scenario in sorted({name for run in runs for name in verdicts[run]}):
            cells = [_cell(verdicts[run].get(scenario), letters.get(scenario)) for run in runs]
            yield f"| {scenario} | {' | '.join(cells)} |\n"
        totals = [sum(each.successes for each in verdicts[run].values() if not each.faults) for run in runs]
        yield f"| **checks** | {' | '.join(f'**{total}**' for total in totals)} |\n"
    yield from reasons(listed)


def _cell(verdict: Verdict | None, letter: str | None) -> str:
    if verdict is None:
        return ""
    return str(verdict.successes) if not verdict.faults else letter or "**failed**"
