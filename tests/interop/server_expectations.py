"""What our client has to get from each server of ``peers.toml``, in each revision, and whether it did.

The servers in ``servers/`` do what ``server.py`` does, so that what must come back from them is what
``client_expectations.py`` says, but for what their SDKs do otherwise: this file lists that. Our client hands out the
types of the newest revision, whatever was spoken; so what a server sends that its revision does not have is there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.interop import client_expectations
from tests.interop.client_expectations import FEATURES, LABELS, STATELESS, Absent, Verdict, always, since
from tests.interop.reference_servers import STRANGERS
from tests.interop.transports import ALL, SESSIONLESS, SSE, STDIO, looked_at

if TYPE_CHECKING:
    from tests.interop.client_expectations import Expectation
    from tests.interop.peer_packages import Server
    from tests.interop.transports import Cell

__all__ = ["asked_of", "expected", "judge", "spoken"]

NEWEST = LABELS[-1]

# What is looked at with our server, and those in `servers/`. No client is left alone: one column is for that.
CONVERSATION = [feature for feature in FEATURES if feature != "counter-offer"]


# Where each request is served by itself, nobody is asked, nobody is told, and nothing is remembered.
ALONE = [
    *("connect", "list tools", "list resources", "list templates", "list prompts", "call", "structured result"),
    *("content", "tool error", "crash", "unknown tool", "wrong arguments", "large", "at once"),
    *("progress", "read", "unknown resource", "prompt", "complete", "complete context", "ping", "wire"),
]


def spoken(server: Server, cell: Cell) -> str:
    """Return what must be agreed on: of all that our client has, the newest that the server speaks over that."""
    if cell.revision != ALL:
        return cell.revision
    has_handshake = cell.transport == SSE
    return [each for each in server.revisions if not (has_handshake and each in STATELESS)][-1]


def asked_of(server: Server, cell: Cell) -> list[str]:
    """Return the features that are looked at."""
    if cell.transport == SESSIONLESS:
        return ALONE
    own = STRANGERS.get(server.repertoire)
    asked = looked_at(CONVERSATION if own is None else [*own, "end", "wire"], cell.transport, spoken(server, cell))
    # How others end that listen at an address is theirs.
    return asked if cell.transport == STDIO or not server.package else [each for each in asked if each != "end"]


def expected(server: Server, feature: str, cell: Cell) -> Any:
    """Return what *feature* gives, or ``Absent``."""
    revision = spoken(server, cell)
    if feature == "end":
        return ["0"]  # one process, whatever it was asked first
    if feature == "wire":
        return []
    own = STRANGERS.get(server.repertoire)
    if own is not None:
        return own[feature](revision)
    change = (WEB.get(server.name, {}) if cell.transport != STDIO else {}).get(feature)
    change = change or CHANGES.get(server.name, {}).get(feature)
    return change(revision) if change else ours(feature, revision)


def judge(server: Server, feature: str, cell: Cell, outcome: str, detail: Any) -> Verdict:
    """Say what became of a feature, given what the driver observed."""
    return client_expectations.verdict(expected(server, feature, cell), outcome, detail)


def ours(feature: str, revision: str) -> Any:
    """Return what our server gives to our client, which tells it in the words of the newest revision."""
    wanted = FEATURES[feature](revision)
    match feature:
        case "connect":
            return {key: each for key, each in wanted.items() if key != "supported"}
        case "elicit url" if not isinstance(wanted, Absent):
            asked = [{key: each for key, each in wanted["asked"][0].items() if key != "elicitationId"}]
            return {**wanted, "asked": asked}
        case "unknown resource":
            return {"code": -32602}  # as the newest revision has it
        case "input required":
            return {key: wanted[key] for key in ("types", "question", "text")}
        case "subscribe":
            return {**wanted, "agreed": {"resourceSubscriptions": ["interop://counter"]}}
        case _:
            return wanted


def changed(feature: str, **parts: Any) -> Expectation:
    """What our server gives, with other parts."""
    return lambda revision: {**ours(feature, revision), **parts}


def sent_anyway(feature: str) -> Expectation:
    """What is sent as in the newest revision, even where the one that is spoken does not have it.

    What 2024-11-05 does not have, and 2025-03-26 has not either, is left out on the way to our types.
    """
    return lambda revision: ours(feature, NEWEST if since(revision, "2025-03-26") else revision)


def foreign_content(revision: str) -> Any:
    """Blocks of a kind that the revision does not have are read as those of the revision that has them."""
    del revision
    return ours("content", NEWEST)


def unasked(feature: str, reason: str, **codes: int) -> Expectation:
    """What cannot be asked: the client says so, and the tool fails, or its server repeats the client's error.

    *codes* are those of such errors ``before`` 2025-06-18, the first revision with elicitation, and ``since``.
    """

    def wanted(revision: str) -> Any:
        usual = ours(feature, revision)
        if not isinstance(usual, Absent):
            return usual
        code = codes.get("since" if since(revision, "2025-06-18") else "before")
        end = {"isError": True} if code is None else {"code": code}
        return Absent(reason, {"asked": [], **end})

    return wanted


def greeted(title: str | None, **capabilities: Any) -> Expectation:
    """What the handshake gives: a title from the revision on that has it or (as a foreign one) the one before it."""

    def wanted(revision: str) -> Any:
        usual = ours("connect", NEWEST)
        named = {"title": title} if title and since(revision, "2025-03-26") else {}
        return {
            **usual,
            "revision": revision,
            "server": {"name": "interop", "version": "4.2", **named},
            "capabilities": {**usual["capabilities"], **capabilities},
        }

    return wanted


def one_page(feature: str) -> Expectation:
    """A list that comes at once."""

    def wanted(revision: str) -> Any:
        usual = sent_anyway(feature)(revision)
        return {**usual, "pages": [sum(usual["pages"])]}

    return wanted


def entitled(revision: str) -> Any:
    """FastMCP makes a title of each name."""
    usual = sent_anyway("list tools")(revision)
    return {**usual, "add": {**usual["add"], "title": "Add"}} if since(revision, "2025-03-26") else usual


def explained(revision: str) -> Any:
    """FastMCP tells models how to write arguments of prompts."""
    usual = ours("list prompts", revision)
    review = {**usual["review"], "arguments": [_explained(each) for each in usual["review"]["arguments"]]}
    return {**usual, "review": review}


def _explained(argument: dict[str, Any]) -> dict[str, Any]:
    said = argument["description"]
    schema = f'{{"description":"{said}","type":"string"}}'
    advice = f"Provide a value matching the following JSON schema: {schema}. Encode non-string values as JSON."
    return {**argument, "description": f"{said}\n\n{advice}"}


def fastmcp_greeting(revision: str) -> Any:
    """FastMCP declares what it cannot do to clients of each era."""
    if revision not in STATELESS:
        return greeted(None, resources={"listChanged": True, "subscribe": False})(revision)
    no = {"listChanged": False}
    lists = {"tools": no, "prompts": no, "resources": {**no, "subscribe": False}}
    return greeted(None, extensions={"io.modelcontextprotocol/ui": {}}, **lists)(revision)


def replaced(value: Any, old: str, new: str) -> Any:
    """Return *value* with *old* replaced in all its texts."""
    return json.loads(json.dumps(value).replace(old, new))


TITLE = "Interoperability"
ELICIT = "the revision has no elicitation: the tool fails"
ELICIT_URL = "the revision cannot send users to a page: the tool fails"

# What the official SDKs do alike.
ALIKE: dict[str, Expectation] = {
    **{feature: sent_anyway(feature) for feature in ("list tools", "call", "structured result")},
    "content": foreign_content,
    "wrong arguments": always({"isError": True}),
    "progress": lambda _: ours("progress", NEWEST),
    "elicit": unasked("elicit", ELICIT),
    "elicit url": unasked("elicit url", ELICIT_URL),
}

CHANGES: dict[str, dict[str, Expectation]] = {
    "Python SDK 1.30 server": {
        **ALIKE,
        "connect": greeted(None, experimental={}),
        "crash": changed("crash", leaks=True),
        "unknown tool": always({"isError": True, "text": "Unknown tool: no_such_tool"}),
    },
    "Python SDK 2.3 server": {
        **ALIKE,
        "connect": greeted(TITLE),
        "elicit": unasked("elicit", ELICIT, before=-32601),
        "elicit url": unasked("elicit url", ELICIT_URL, before=-32601, since=-32602),
    },
    "FastMCP 4.1 server": {
        **ALIKE,
        "connect": fastmcp_greeting,
        "list tools": entitled,
        "list templates": lambda revision: replaced(ours("list templates", revision), "{+path}", "{path*}"),
        "list prompts": explained,
        "unknown tool": always({"isError": True, "text": "Unknown tool: 'no_such_tool'"}),
        "log": always(
            [
                {"level": "info", "data": {"msg": "news", "extra": {"n": 1}}, "logger": "interop"},
                {"level": "error", "data": {"msg": "trouble", "extra": None}},
            ]
        ),
        "read": lambda revision: [[{"mimeType": "text/plain", **each}] for [each] in ours("read", revision)],
    },
    "TypeScript SDK 1.32 server": {
        **ALIKE,
        "connect": greeted(TITLE),
        "peer": always({"era": "handshake", "name": "interop-client", "version": "7.1"}),
    },
    "TypeScript SDK 2.4 server": {
        **ALIKE,
        **{f"list {kind}": one_page(f"list {kind}") for kind in ("tools", "resources", "templates", "prompts")},
        "connect": greeted(TITLE),
        "crash": changed("crash", leaks=True),
    },
}

# What is different over HTTP.
WEB: dict[str, dict[str, Expectation]] = {}
