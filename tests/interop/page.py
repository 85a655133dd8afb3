"""``docs/interop.md``: which client has got what it has to get from our server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tests.interop.expectations import FEATURES, LABELS, Verdict

if TYPE_CHECKING:
    from tests.interop.installing import Peer

__all__ = ["Results", "text"]

# The verdicts on each feature, by client and revision.
Results = Mapping[tuple[str, str], Mapping[str, Verdict]]

HEAD = """\
# Interoperability

Written by `nox -s interop`; do not edit.

Real clients, from PyPI and npm, start `mcpgen serve tests/interop/server.py` and talk to it over stdio. Each of them is
made to offer each revision that it has, in a session of its own. `tests/interop/expectations.py` says what must come
back, value by value; any other value fails the session.

**yes**: exactly that came back. A number points to a reason below: the client, or the revision, has no such feature.
"""

MEANING = {
    "connect": "`initialize` or `server/discover`: revision, name, capabilities, instructions",
    "peer": "the handler is told the client's revision, era, name and version",
    "list tools": "all pages, in order; schemas from signatures",
    "list resources": "all pages, in order",
    "list templates": "all pages, in order",
    "list prompts": "all pages, in order; arguments from signatures",
    "call": "a tool's result",
    "structured result": "structured content beside its JSON as text; that text alone before 2025-06-18",
    "content": "blocks of every kind, as far as the revision has it",
    "tool error": "a result with `isError`",
    "crash": "a result with `isError` that does not tell why",
    "unknown tool": "an error, -32602",
    "wrong arguments": "a result with `isError` from 2025-11-25 on, before an error, -32602",
    "stray output": "what a handler prints does not reach the client",
    "large": "a million letters, there and back",
    "at once": "fifty calls, none of which waits for another",
    "progress": "three reports, while the tool works",
    "log": "entries from the level on that the client set",
    "cancel": "the handler is cancelled",
    "elicit": "a form, accepted and declined; by `input_required` in 2026-07-28",
    "elicit url": "a page to go to; by `input_required` in 2026-07-28",
    "sample": "the client's model answers; by `input_required` in 2026-07-28",
    "roots": "the client's roots; by `input_required` in 2026-07-28",
    "read": "text, bytes, and two templates",
    "unknown resource": "an error: -32602 in 2026-07-28, before -32002",
    "prompt": "two arguments, one with a default; a dialogue",
    "complete": "an argument of a prompt, and one of a template",
    "complete context": "what the other arguments are, from 2025-06-18 on",
    "ping": "an answer",
    "subscribe": "an update while listening, none after; `subscriptions/listen` in 2026-07-28",
    "input required": "two rounds answered by hand; an answer sent twice; a forged state; one of another call",
    "list changed": "notices for three lists, and what is new in them",
    "counter-offer": "a client that is left alone agrees with a server of this revision only",
    "end of input": "the server ends by itself, with status 0, when the client closes",
    "wire": "once more, recorded: each message of the server's is valid in its revision, and keeps its rules",
}


def text(peers: list[Peer], results: Results) -> str:
    """Return the page."""
    return "".join(_lines(peers, results))


def _lines(peers: list[Peer], results: Results) -> Iterator[str]:
    reasons = sorted(
        {each.detail for found in results.values() for each in found.values() if each.outcome == "unsupported"}
    )
    yield HEAD
    for peer in peers:
        revisions = [label for label in LABELS if (peer.name, label) in results]
        yield f"\n## {peer.name}\n\n`{peer.package}` offers {peer.offers}.\n\n"
        yield f"{peer.quirks}\n\n" if peer.quirks else ""
        yield f"| feature | {' | '.join(revisions)} |\n|---|{'---|' * len(revisions)}\n"
        for feature in FEATURES:
            cells = [_cell(results[peer.name, revision][feature], reasons) for revision in revisions]
            yield f"| {feature} | {' | '.join(cells)} |\n"
    yield "\n## Reasons\n\n"
    yield from (f"{number}. {reason[0].upper()}{reason[1:]}.\n" for number, reason in enumerate(reasons, 1))
    yield "\n## Features\n\n| feature | what is looked at |\n|---|---|\n"
    yield from (f"| {feature} | {MEANING[feature]} |\n" for feature in FEATURES)


def _cell(verdict: Verdict, reasons: list[str]) -> str:
    match verdict.outcome:
        case "passed":
            return "yes"
        case "unsupported":
            return f"[{reasons.index(verdict.detail) + 1}](#reasons)"
        case _:
            return "**failed**"
