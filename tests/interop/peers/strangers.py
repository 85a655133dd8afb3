"""What our client asks of servers that come as they are, and are not written for this.

Features have the names that they have in ``conversation.py``; what must come back is in ``theirs.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conversation import Feature, names, outcome, ping
from hands import Missing

if TYPE_CHECKING:
    from hands import Hands

__all__ = ["EVERYTHING", "TIME"]

DOCUMENT = "demo://resource/static/document/features.md"
DYNAMIC = "demo://resource/dynamic/text/7"


async def connect(hands: Hands) -> Any:
    """Say what was agreed on; of the instructions, the first line."""
    greeting = hands.greeting()
    return {**greeting, "instructions": greeting["instructions"] and greeting["instructions"].splitlines()[0]}


async def list_tools(hands: Hands) -> Any:
    return await names(hands, "tools", "name")


async def list_prompts(hands: Hands) -> Any:
    return await names(hands, "prompts", "name")


async def list_resources(hands: Hands) -> Any:
    return await names(hands, "resources", "uri")


async def list_templates(hands: Hands) -> Any:
    return await names(hands, "resourceTemplates", "uriTemplate")


async def unknown_tool(hands: Hands) -> Any:
    came = await outcome(hands.call("no_such_tool", {}))
    return {key: came[key] for key in ("code", "isError") if key in came}


# --- @modelcontextprotocol/server-everything


async def everything_tools(hands: Hands) -> Any:
    """List the tools when there are those that depend on what the client declared."""
    return sorted((await list_tools(hands))["name"])


async def add(hands: Hands) -> Any:
    return await hands.call("get-sum", {"a": 20, "b": 22})


async def weather(hands: Hands) -> Any:
    return await hands.call("get-structured-content", {"location": "Chicago"})


async def gallery(hands: Hands) -> Any:
    blocks = (await hands.call("get-tiny-image", {}))["content"]
    blocks += (await hands.call("get-resource-links", {"count": 2}))["content"]
    blocks += (await hands.call("get-annotated-message", {"messageType": "error"}))["content"]
    return [{key: value for key, value in block.items() if key != "data"} for block in blocks]


async def wrong_sum(hands: Hands) -> Any:
    came = await outcome(hands.call("get-sum", {"a": "one", "b": 2}))
    return {key: came[key] for key in ("code", "isError") if key in came}


async def progress(hands: Hands) -> Any:
    hands.seen.progress.clear()
    result = await hands.call("trigger-long-running-operation", {"duration": 0.3, "steps": 3}, with_progress=True)
    return {"progress": list(hands.seen.progress), "text": result["content"][0]["text"]}


async def _asking(hands: Hands, method: str, tool: str, arguments: Any) -> Any:
    """Call a tool that asks; return what it asked, and the first line of what it says to the answer.

    The server asks for roots, too, soon after the start, whatever it is called for.
    """
    hands.seen.asked.clear()
    text = (await hands.call(tool, arguments))["content"][0]["text"]
    asked = [each for each in hands.seen.asked if each["method"] == method]
    return {
        "asked": asked,
        "first line": text.splitlines()[0].partition(" at /")[0],
        "has the answer": '"stub-1"' in text,
    }


async def elicit(hands: Hands) -> Any:
    found = await _asking(hands, "elicitation/create", "trigger-elicitation-request", {})
    found["asked"] = [[each["message"], sorted(each["requestedSchema"]["properties"])] for each in found["asked"]]
    return found


async def elicit_url(hands: Hands) -> Any:
    page = {"url": "https://example.com/sign-in", "message": "Please sign in."}
    return await _asking(hands, "elicitation/create", "trigger-url-elicitation", page)


async def sample(hands: Hands) -> Any:
    question = {"prompt": "Six times seven?", "maxTokens": 32}
    return await _asking(hands, "sampling/createMessage", "trigger-sampling-request", question)


async def roots(hands: Hands) -> Any:
    text = (await hands.call("get-roots-list", {}))["content"][0]["text"]
    return [word for word in ("project", "file:///srv/project", "(1 total)") if word in text]


async def read(hands: Hands) -> Any:
    [document] = (await hands.read(DOCUMENT))["contents"]
    [dynamic] = (await hands.read(DYNAMIC))["contents"]
    facts = {key: document[key] for key in ("uri", "mimeType")}
    return [facts | {"begins": document["text"][:2]}, {"uri": dynamic["uri"], "begins": dynamic["text"][:10]}]


async def unknown_resource(hands: Hands) -> Any:
    return await outcome(hands.read("demo://nowhere"))


async def prompt(hands: Hands) -> Any:
    given = {"city": "Zürich", "state": "ZH"}
    return [
        (await hands.prompt("simple-prompt", {}))["messages"],
        (await hands.prompt("args-prompt", given))["messages"],
    ]


async def complete(hands: Hands) -> Any:
    department = {"type": "ref/prompt", "name": "completable-prompt"}
    return (await hands.complete(department, {"name": "department", "value": "S"}, None))["completion"]["values"]


async def complete_context(hands: Hands) -> Any:
    if hands.greeting()["revision"] in {"2024-11-05", "2025-03-26"}:
        raise Missing("the revision has no context in completions")
    team = {"type": "ref/prompt", "name": "completable-prompt"}
    return (await hands.complete(team, {"name": "name", "value": "B"}, {"department": "Engineering"}))["completion"][
        "values"
    ]


async def subscribe(hands: Hands) -> Any:
    hands.seen.notices.clear()
    async with hands.listen([DOCUMENT]):
        await hands.call("toggle-subscriber-updates", {})
        await hands.seen.until(lambda: bool(hands.seen.notices))
        await hands.call("toggle-subscriber-updates", {})
    return list(hands.seen.notices)


EVERYTHING: dict[str, Feature] = {
    "connect": connect,
    "list tools": everything_tools,
    "list resources": list_resources,
    "list templates": list_templates,
    "list prompts": list_prompts,
    "call": add,
    "structured result": weather,
    "content": gallery,
    "unknown tool": unknown_tool,
    "wrong arguments": wrong_sum,
    "progress": progress,
    "elicit": elicit,
    "elicit url": elicit_url,
    "sample": sample,
    "roots": roots,
    "read": read,
    "unknown resource": unknown_resource,
    "prompt": prompt,
    "complete": complete,
    "complete context": complete_context,
    "ping": ping,
    "subscribe": subscribe,
}


# --- mcp-server-time


async def convert(hands: Hands) -> Any:
    given = {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}
    return _without_dates(json.loads((await hands.call("convert_time", given))["content"][0]["text"]))


async def now(hands: Hands) -> Any:
    return _without_dates((await hands.call("get_current_time", {"timezone": "UTC"})).get("structuredContent"))


def _without_dates(value: Any) -> Any:
    """Return the facts that are the same every day."""
    if not isinstance(value, dict):
        return value
    return {key: _without_dates(each) for key, each in value.items() if key not in {"day_of_week", "datetime"}}


async def bad_zone(hands: Hands) -> Any:
    came = await outcome(hands.call("get_current_time", {"timezone": "Nowhere/Land"}))
    return {"isError": came["isError"], "says": "Nowhere/Land" in came["text"]}


async def wrong_time(hands: Hands) -> Any:
    came = await outcome(hands.call("get_current_time", {}))
    return {key: came[key] for key in ("code", "isError") if key in came}


TIME: dict[str, Feature] = {
    "connect": connect,
    "list tools": list_tools,
    "list prompts": list_prompts,
    "call": convert,
    "structured result": now,
    "tool error": bad_zone,
    "unknown tool": unknown_tool,
    "wrong arguments": wrong_time,
    "ping": ping,
}
