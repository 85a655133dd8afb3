"""``docs/interop.md``: who has got what they have to get, clients from our server, and our client from servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tests.interop.client_expectations import FEATURES, LABELS, Verdict
from tests.interop.packages import page as packages_page
from tests.interop.sloppy import page as sloppy_page
from tests.interop.sloppy.readings import stored
from tests.interop.tasks import page as tasks_page
from tests.interop.transports import ALL, HTTP, SESSIONLESS, SSE, STDIO, Cell

if TYPE_CHECKING:
    from tests.interop.peer_packages import Peer, Server

__all__ = ["Agreements", "Results", "agreed", "text"]

# The verdicts on each feature.
Results = Mapping[Cell, Mapping[str, Verdict]]

# What our client and our server agree on, by what the one offers and the other serves: a revision, or all.
Agreements = Mapping[tuple[str, str], str]

HEAD = """\
# Interoperability

Written by `nox -s interop`; do not edit.

Others from PyPI and npm, and we, talk to each other over stdio and over HTTP:
[their clients with our server](#their-clients), and [our client with their servers](#their-servers). Each pair speaks
each revision that both have, in a session of its own. What must come back is written down, value by value; any other
value fails the session. Over HTTP everything goes through a relay, which writes it down: our side of it is held
against the specification, statuses, headers, streams and messages. Some [packages](#packages-as-they-come) run as they
come. In the end, all SDKs meet peers that [deviate from the specification](#what-each-takes).

**yes**: exactly that came back. A number points to a reason below: the client, the server, or the revision has no such
feature. What is empty was not looked at.

## Their clients

They start `mcpgen serve tests/interop/server.py`, or find it at a URL, with `--http 127.0.0.1:0`; and they are made to
offer one revision. `tests/interop/client_expectations.py` says what must come back.

HTTP+SSE is what 2024-11-05 says of HTTP; it is spoken at `/sse`, and all else at `/mcp`.
"""

SERVERS = """\

## Their servers

Our client starts them, or is told their URL, and offers one revision; under **all** it offers what it has, and must end
up with the newest that the server speaks. Those of the SDKs are in `tests/interop/servers`, and do what our server
does; two come as they are. Our client hands out the types of the newest revision, whatever is spoken.
`tests/interop/server_expectations.py` and `tests/interop/reference_servers.py` say what must come back.

Over HTTP the servers keep sessions, as far as the revision has such. **Without sessions** they serve each request by
itself, and cannot ask or tell a client anything; only what is left is looked at. **HTTP+SSE** has a URL of its own;
what it is, our client finds out.
"""

AGREEMENTS = """\

## Every offer

Our client and our server, each with one revision only, or all: what is spoken then, or `NoCommonRevision`, which is
raised. Over HTTP, the same comes of it as over stdio.

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
    "parameter headers": "arguments that headers repeat; one has a letter that headers do not have",
    "tool error": "a result with `isError`",
    "crash": "a result with `isError` that does not tell why",
    "unknown tool": "an error, -32602",
    "wrong arguments": "a result with `isError` from 2025-11-25 on, before an error, -32602",
    "stray output": "what a handler prints does not reach the client",
    "large": "half a million letters, there and back",
    "at once": "fifty calls, none of which waits for another",
    "progress": "three reports, while the tool works",
    "log": "entries from the level on that the client set",
    "cancel": "the handler is cancelled",
    "reconnect": "the server closes the connection of a call, and the client comes back for the result",
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
    "end": "the server ends with status 0 when the client closes; over HTTP, when it is told to",
    "wire": "recorded: each message of the server's is valid in its revision, and keeps its rules, and those of HTTP",
}


# What is looked at differently where our client is the one who looks.
MEANING_FOR_US = {
    "peer": "the server's handler is told our client's revision, era, name and version",
    "crash": "a result with `isError`",
    "unknown tool": "an error, -32602, or a result with `isError`",
    "wrong arguments": "a result with `isError`, or an error, -32602",
    "stray output": "what a server prints among its messages is passed over, and the call is answered",
    "log": "entries from the level on that our client set",
    "cancel": "the server's handler is cancelled, and our client goes on",
    "elicit": "a form, accepted and declined, by a function of ours; by `input_required` in 2026-07-28",
    "elicit url": "a page to go to, by a function of ours; by `input_required` in 2026-07-28",
    "sample": "a function of ours answers; by `input_required` in 2026-07-28",
    "roots": "our roots; by `input_required` in 2026-07-28",
    "unknown resource": "an error: -32602, as the newest revision has it",
    "input required": "two rounds answered by hand",
    "end": "the server, one process, ends by itself, with status 0, when our client closes its input",
    "wire": "recorded: each message of our client's is valid in its revision, and keeps its rules, and those of HTTP",
}


def agreed(offered: str, served: str) -> str:
    """Return what must be spoken when one side has *offered*, the other *served*: a revision, or all."""
    if ALL in (offered, served):
        newest = offered if served == ALL else served
        return LABELS[-1] if newest == ALL else newest
    return offered if offered == served else "NoCommonRevision"


def text(peers: list[Peer], servers: list[Server], results: Results, agreements: Agreements) -> str:
    """Return the page."""
    return "".join(_lines(peers, servers, results, agreements))


def _lines(peers: list[Peer], servers: list[Server], results: Results, agreements: Agreements) -> Iterator[str]:
    reasons = sorted(
        {each.detail for found in results.values() for each in found.values() if each.outcome == "unsupported"}
    )
    yield HEAD
    for peer in peers:
        yield f"\n### {peer.name}\n\n`{peer.package}` offers {peer.offers}.\n"
        yield f"\n{peer.quirks}\n" if peer.quirks else ""
        yield from _tables(peer.name, results, reasons)
    yield SERVERS
    for server in servers:
        package = f"`{server.package}`" if server.package else "This"
        yield f"\n### {server.name}\n\n{package} {server.serves}.\n"
        yield f"\n{server.quirks}\n" if server.quirks else ""
        yield from _tables(server.name, results, reasons)
    yield AGREEMENTS
    choices = [*LABELS, ALL]
    yield f"| offered | {' | '.join(f'serves {each}' for each in choices)} |\n|---|{'---|' * len(choices)}\n"
    for offered in choices:
        yield f"| {offered} | {' | '.join(agreements[offered, served] for served in choices)} |\n"
    yield "\n## Reasons\n\n"
    yield from (f"{number}. {reason[0].upper()}{reason[1:]}.\n" for number, reason in enumerate(reasons, 1))
    yield "\n## Features\n\n| feature | what is looked at | with their servers, if something else |\n|---|---|---|\n"
    yield from (f"| {feature} | {MEANING[feature]} | {MEANING_FOR_US.get(feature, '')} |\n" for feature in FEATURES)
    yield from packages_page.lines()
    yield from tasks_page.lines()
    yield from sloppy_page.lines(stored())


# What stands above a column, beside the revision.
ABOVE = {STDIO: "", HTTP: "", SSE: "HTTP+SSE, ", SESSIONLESS: "without sessions, "}


def _tables(name: str, results: Results, reasons: list[str]) -> Iterator[str]:
    """Yield what became of one client or server: a table over stdio, and another over HTTP, if it has that."""
    for title, transports in (("stdio", [STDIO]), ("HTTP", [HTTP, SSE, SESSIONLESS])):
        cells = [Cell(name, transport, label) for transport in transports for label in [*LABELS, ALL]]
        columns = {f"{ABOVE[cell.transport]}{cell.revision}": results[cell] for cell in cells if cell in results}
        if columns:
            yield f"\nOver {title}:\n\n"
            yield from _table(columns, reasons)


def _table(columns: Mapping[str, Mapping[str, Verdict]], reasons: list[str]) -> Iterator[str]:
    yield f"| feature | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    for feature in FEATURES:
        if any(feature in found for found in columns.values()):
            cells = [_cell(found.get(feature), reasons) for found in columns.values()]
            yield f"| {feature} | {' | '.join(cells)} |\n"


def _cell(verdict: Verdict | None, reasons: list[str]) -> str:
    if verdict is None:
        return ""
    match verdict.outcome:
        case "passed":
            return "yes"
        case "unsupported":
            return f"[{reasons.index(verdict.detail) + 1}](#reasons)"
        case _:
            return "**failed**"
