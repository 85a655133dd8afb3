"""What each client has to get from ``server.py`` in each revision, and whether what it got is that.

Clients fill in what they like to have (``isError: false``, a ``mode``), and some of what they get differs from call to
call; ``normal`` takes both away. Everything that is left must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgen.generated.registry import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "FEATURES",
    "LABELS",
    "STATELESS",
    "TOOLS",
    "Absent",
    "Expectation",
    "Verdict",
    "always",
    "difference",
    "expected",
    "judge",
    "normal",
    "since",
    "text",
    "verdict",
]

Expectation = Callable[[str], Any]  # what must come back in a revision, or Absent

LABELS = [each.label for each in REVISIONS]
STATELESS = {each.label for each in REVISIONS if each.era == "stateless"}

TOOLS = [
    *("add", "forecast", "gallery", "fail", "crash", "whoami", "noisy", "mirror", "count", "go_on", "chatter", "hang"),
    *("was_cancelled", "ask", "ask_url", "sample", "roots", "bump", "grow", "let_go", "route"),
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
UNDECIDED = "differs from call to call"


class Verdict(NamedTuple):
    """What became of a feature: ``passed``, ``failed`` or ``unsupported``; and why, unless it passed."""

    outcome: str
    detail: str


class Absent(NamedTuple):
    """The revision has no such thing: the reason, and what a client sees of that."""

    reason: str
    seen: Any


def since(revision: str, first: str) -> bool:
    """Whether *revision* is *first* or a newer one."""
    return LABELS.index(revision) >= LABELS.index(first)


def text(*texts: str) -> list[dict[str, str]]:
    """Return blocks of text."""
    return [{"type": "text", "text": each} for each in texts]


def connect(revision: str) -> Any:
    """Names came with the first revision, titles with 2025-06-18, the completions capability with 2025-03-26."""
    title = {"title": "Interoperability"} if since(revision, "2025-06-18") else {}
    completions: dict[str, Any] = {"completions": {}} if since(revision, "2025-03-26") else {}
    return {
        "revision": revision,
        "server": {"name": "interop", "version": "4.2", **title},
        "capabilities": {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "logging": {},
            **completions,
        },
        "instructions": "Ask for one thing of everything.",
        **({"supported": LABELS[::-1]} if revision in STATELESS else {}),
    }


def peer(revision: str) -> Any:
    era = "stateless" if revision in STATELESS else "handshake"
    return {"revision": revision, "era": era, "name": "interop-client", "version": "7.1"}


def list_tools(revision: str) -> Any:
    """Output schemas and titles came with 2025-06-18."""
    numbers = {"a": {"type": "integer", "description": "The first one."}}
    numbers["b"] = {"type": "integer", "description": "The one that is added to it."}
    taken = {"type": "object", "properties": numbers, "required": ["a", "b"]}
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    add: dict[str, Any] = {"name": "add", "description": "Add two numbers.", "inputSchema": taken}
    forecast: dict[str, Any] = {"name": "forecast", "description": "Say what the weather will be.", "inputSchema": city}
    if since(revision, "2025-06-18"):
        result = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
        weather = {"city": {"type": "string"}, "celsius": {"type": "number"}, "sunny": {"type": "boolean"}}
        add["outputSchema"] = result
        forecast["title"] = "Weather forecast"
        forecast["outputSchema"] = {"type": "object", "properties": weather, "required": ["celsius", "city", "sunny"]}
    return {"pages": [4, 4, 4, 4, 4, 1], "name": TOOLS, "add": add, "forecast": forecast}


def list_prompts(_: str) -> Any:
    code = {"name": "code", "description": "What to look at.", "required": True}
    style = {"name": "style", "description": "How to say it.", "required": False}
    return {
        "pages": [4, 1],
        "name": ["review", "first", "second", "third", "dialogue"],
        "review": {"name": "review", "description": "Review some code.", "arguments": [code, style]},
    }


def call(revision: str) -> Any:
    structured = {"structuredContent": {"result": 42}} if since(revision, "2025-06-18") else {}
    return {"content": text('{"result":42}'), **structured}


def structured(revision: str) -> Any:
    """Structured content came with 2025-06-18; its JSON is sent as a text beside it, which older clients read."""
    weather = {"city": "Zürich", "celsius": 21.5, "sunny": True}
    return {"content": [weather], **({"structuredContent": weather} if since(revision, "2025-06-18") else {})}


def content(revision: str) -> Any:
    """Audio came with 2025-03-26, links with 2025-06-18: before, they are shown as something that there was."""
    note = {"uri": "interop://note", "text": "enclosed", "mimeType": "text/plain"}
    sound: dict[str, Any] = {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}
    link: dict[str, Any] = {"type": "resource_link", "name": "greeting", "uri": "interop://greeting"}
    if not since(revision, "2025-03-26"):
        sound = {"type": "resource", "resource": {"uri": UNDECIDED, "blob": SILENCE, "mimeType": "audio/wav"}}
    if not since(revision, "2025-06-18"):
        link = {"type": "text", "text": "greeting: interop://greeting"}
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    return [*text("plain"), image, sound, link, {"type": "resource", "resource": note}]


def wrong_arguments(revision: str) -> Any:
    """2025-11-25, changelog: "input validation errors should be returned as Tool Execution Errors"."""
    return {"isError": True} if since(revision, "2025-11-25") else {"code": -32602}


def progress(revision: str) -> Any:
    """Messages came with 2025-03-26."""
    said = since(revision, "2025-03-26")
    steps = [{"progress": n, "total": 3, "message": f"{n} of 3" if said else None} for n in (1, 2, 3)]
    return {"progress": steps, "text": "counted to 3"}


def log(_: str) -> Any:
    news = {"level": "info", "data": {"event": "news", "n": 1}, "logger": "interop"}
    return [news, {"level": "error", "data": "trouble"}]


def elicit(revision: str) -> Any:
    if not since(revision, "2025-06-18"):
        return Absent("the revision has no elicitation: the call is refused", {"asked": [], "isError": True})
    person = {"name": {"type": "string"}, "age": {"type": "integer"}}
    who = {"type": "object", "properties": person, "required": ["age", "name"]}
    sure = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": []}
    return {
        "asked": [
            {"method": "elicitation/create", "message": "Who are you?", "requestedSchema": who},
            {"method": "elicitation/create", "message": "Really?", "requestedSchema": sure},
        ],
        "text": '{"first": "accept", "name": "Ada", "second": "decline"}',
    }


def elicit_url(revision: str) -> Any:
    if not since(revision, "2025-11-25"):
        return Absent("the revision cannot send users to a page: the call is refused", {"asked": [], "isError": True})
    page = {"message": "Please sign in.", "url": "https://example.com/sign-in"}
    named = {} if revision in STATELESS else {"elicitationId": UNDECIDED}
    return {
        "asked": [{"method": "elicitation/create", "mode": "url", **page, **named}],
        "text": "user said accept",
    }


def sample(_: str) -> Any:
    question = {"role": "user", "content": {"type": "text", "text": "Six times seven?"}}
    asked = {"method": "sampling/createMessage", "messages": [question], "maxTokens": 32}
    return {"asked": [asked], "text": "stub-1 says 42"}


def roots(_: str) -> Any:
    return {"asked": [{"method": "roots/list"}], "text": '[["file:///srv/project", "project"]]'}


def read(_: str) -> Any:
    return [
        [{"uri": "interop://greeting", "text": "Good morning, Vera.", "mimeType": "text/plain"}],
        [{"uri": "interop://pixel", "blob": "iVBORw0KGgo=", "mimeType": "image/png"}],
        [{"uri": "interop://echo/hello", "text": "echo of hello", "mimeType": "text/plain"}],
        [{"uri": "interop://files/a/b.txt", "text": "file a/b.txt"}],
    ]


def prompt(_: str) -> Any:
    kind = {"role": "user", "content": text("In a kind way, review: x = 1")[0]}
    strict = {"role": "user", "content": text("In a strict way, review: x = 1")[0]}
    knock = {"role": "user", "content": text("Knock knock.")[0]}
    who = {"role": "assistant", "content": text("Who is there?")[0]}
    return [[kind], [strict], [knock, who]]


def subscribe(revision: str) -> Any:
    agreed = {"resourceSubscriptions": ["interop://counter"]} if revision in STATELESS else {}
    return {
        "agreed": agreed,
        "heard": [{"method": "notifications/resources/updated", "uri": "interop://counter"}],
        "text": "1",
    }


def list_changed(_: str) -> Any:
    lists = ("prompts", "resources", "tools")
    heard = [f"notifications/{name}/list_changed" for name in lists]
    return {"heard": heard, "last": ["sprout", "seed", "interop://leaf"], "text": "sprouted"}


def input_required(_: str) -> Any:
    return {
        "types": ["input_required", "input_required", "complete"],
        "question": {"method": "elicitation/create", "message": "Who are you?"},
        "forged": {"code": -32602},
        "other call": {"code": -32602},
        "again is the same": True,
        "text": '{"first": "accept", "name": "Ada", "second": "cancel"}',
    }


def always(value: Any) -> Expectation:
    """What does not depend on the revision."""
    return lambda _: value


FEATURES: Mapping[str, Expectation] = {
    "connect": connect,
    "peer": peer,
    "list tools": list_tools,
    "list resources": always(
        {"pages": [4, 1], "uri": [f"interop://{name}" for name in ("greeting", "pixel", "counter", "one", "two")]}
    ),
    "list templates": always(
        {
            "pages": [4, 1],
            "uriTemplate": [
                *("interop://echo/{word}", "interop://files/{+path}", "interop://grid/{row}/{column}"),
                *("interop://search{?query}", "interop://last/{page}"),
            ],
        }
    ),
    "list prompts": list_prompts,
    "call": call,
    "structured result": structured,
    "content": content,
    "parameter headers": always(text("7 to Zürich")),
    "tool error": always({"content": text("It failed: no luck."), "isError": True}),
    "crash": always({"isError": True, "leaks": False, "blocks": 1}),
    "unknown tool": always({"code": -32602}),
    "wrong arguments": wrong_arguments,
    "stray output": always(text("QUIET")),
    "large": always({"length": 500_000, "is mirrored": True}),
    "at once": always([str(n) for n in range(0, 100, 2)]),
    "progress": progress,
    "log": log,
    "cancel": always(text("first was cancelled")),
    "reconnect": always(text("here again")),
    "elicit": elicit,
    "elicit url": elicit_url,
    "sample": sample,
    "roots": roots,
    "read": read,
    # 2026-07-28, changelog: "Resource not found" is -32602 now.
    "unknown resource": lambda revision: {"code": -32602 if revision in STATELESS else -32002},
    "prompt": prompt,
    "complete": always([["kind", "kinetic"], ["alpha", "alphabet"]]),
    "complete context": always(["strict!!"]),
    "ping": always({}),
    "subscribe": subscribe,
    "input required": input_required,
    "list changed": list_changed,
    "counter-offer": lambda revision: {"revision": revision, "content": text('{"result":42}')},
    # Watched from outside: that each server ended by itself, with status 0, when its client closed its input, or it was
    # told to.
    "end": always([0, 0]),
    # Listened to from outside, in a conversation of its own: what is against the revision's document, or its rules.
    "wire": always([]),
}


def expected(feature: str, revision: str) -> Any:
    """Return what *feature* gives in *revision*, or ``Absent``."""
    return FEATURES[feature](revision)


def judge(feature: str, revision: str, outcome: str, detail: Any) -> Verdict:
    """Say what became of a feature, given what a driver observed."""
    return verdict(expected(feature, revision), outcome, detail)


def verdict(wanted: Any, outcome: str, detail: Any) -> Verdict:
    """Say what became of a feature that gives *wanted*, given what a driver observed."""
    if outcome != "observed":
        return Verdict(outcome if outcome == "unsupported" else "failed", str(detail))
    seen = wanted.seen if isinstance(wanted, Absent) else wanted
    wrong = difference(normal(seen), normal(detail))
    if wrong:
        return Verdict("failed", wrong)
    return Verdict("unsupported", wanted.reason) if isinstance(wanted, Absent) else Verdict("passed", "")


# What a client may add to what it was sent, and what says the same as nothing.
FILLED_IN: Sequence[tuple[str, Any]] = [("isError", False), ("mode", "form"), ("resultType", "complete")]


def normal(value: Any) -> Any:
    """Return *value* without metadata, without what clients fill in, and without what cannot be known."""
    if isinstance(value, list):
        return [normal(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: normal(each) for key, each in value.items() if key != "_meta" and (key, each) not in FILLED_IN}
    if isinstance(kept.get("elicitationId"), str):
        kept["elicitationId"] = UNDECIDED
    if "blob" in kept and kept.get("mimeType") == "audio/wav" and kept.get("uri"):
        kept["uri"] = UNDECIDED
    if isinstance(kept.get("properties"), dict):  # a schema: what it is, not how it is explained
        kept = {key: kept[key] for key in ("type", "properties") if key in kept}
        kept["required"] = sorted(value.get("required", []))
        kept["properties"] = {
            name: {key: each[key] for key in ("type", "description") if key in each}
            for name, each in value["properties"].items()
        }
    return kept


def difference(wanted: Any, found: Any, where: str = "") -> str:
    """Say where two values differ first; nothing, if they do not."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = [key for key in {**wanted, **found} if wanted.get(key, UNDECIDED) != found.get(key, UNDECIDED)]
        if keys and keys[0] in wanted and keys[0] in found:
            return difference(wanted[keys[0]], found[keys[0]], f"{where}/{keys[0]}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            if one != other:
                return difference(one, other, f"{where}/{index}")
    return "" if wanted == found else f"at {where or '/'}: {wanted} must be there, and {found} is"
