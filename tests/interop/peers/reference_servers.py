"""What our client asks of servers that come as they are, and are not written for this.

Features have the names that they have in ``conversation.py``; what must come back is in ``server_expectations.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from client_driver import Missing
from conversation import Feature, names, outcome, ping

if TYPE_CHECKING:
    from client_driver import ClientDriver

__all__ = ["EVERYTHING", "TIME"]

DOCUMENT = "demo://resource/static/document/features.md"
DYNAMIC = "demo://resource/dynamic/text/7"


async def connect(driver: ClientDriver) -> Any:
    """Say what was agreed on; of the instructions, the first line."""
    greeting = driver.greeting()
    return {**greeting, "instructions": greeting["instructions"] and greeting["instructions"].splitlines()[0]}


async def list_tools(driver: ClientDriver) -> Any:
    return await names(driver, "tools", "name")


async def list_prompts(driver: ClientDriver) -> Any:
    return await names(driver, "prompts", "name")


async def list_resources(driver: ClientDriver) -> Any:
    return await names(driver, "resources", "uri")


async def list_templates(driver: ClientDriver) -> Any:
    return await names(driver, "resourceTemplates", "uriTemplate")


async def unknown_tool(driver: ClientDriver) -> Any:
    came = await outcome(driver.call("no_such_tool", {}))
    return {key: came[key] for key in ("code", "isError") if key in came}


# --- @modelcontextprotocol/server-everything


async def everything_tools(driver: ClientDriver) -> Any:
    """List the tools when there are those that depend on what the client declared."""
    return sorted((await list_tools(driver))["name"])


async def add(driver: ClientDriver) -> Any:
    return await driver.call("get-sum", {"a": 20, "b": 22})


async def weather(driver: ClientDriver) -> Any:
    return await driver.call("get-structured-content", {"location": "Chicago"})


async def gallery(driver: ClientDriver) -> Any:
    blocks = (await driver.call("get-tiny-image", {}))["content"]
    blocks += (await driver.call("get-resource-links", {"count": 2}))["content"]
    blocks += (await driver.call("get-annotated-message", {"messageType": "error"}))["content"]
    return [{key: value for key, value in block.items() if key != "data"} for block in blocks]


async def wrong_sum(driver: ClientDriver) -> Any:
    came = await outcome(driver.call("get-sum", {"a": "one", "b": 2}))
    return {key: came[key] for key in ("code", "isError") if key in came}


async def progress(driver: ClientDriver) -> Any:
    driver.seen.progress.clear()
    result = await driver.call("trigger-long-running-operation", {"duration": 0.3, "steps": 3}, with_progress=True)
    return {"progress": list(driver.seen.progress), "text": result["content"][0]["text"]}


async def _asking(driver: ClientDriver, method: str, tool: str, arguments: Any) -> Any:
    """Call a tool that asks; return what it asked, and the first line of what it says to the answer.

    The server asks for roots, too, soon after the start, whatever it is called for.
    """
    driver.seen.asked.clear()
    text = (await driver.call(tool, arguments))["content"][0]["text"]
    asked = [each for each in driver.seen.asked if each["method"] == method]
    return {
        "asked": asked,
        "first line": text.splitlines()[0].partition(" at /")[0],
        "has the answer": '"stub-1"' in text,
    }


async def elicit(driver: ClientDriver) -> Any:
    found = await _asking(driver, "elicitation/create", "trigger-elicitation-request", {})
    found["asked"] = [[each["message"], sorted(each["requestedSchema"]["properties"])] for each in found["asked"]]
    return found


async def elicit_url(driver: ClientDriver) -> Any:
    page = {"url": "https://example.com/sign-in", "message": "Please sign in."}
    return await _asking(driver, "elicitation/create", "trigger-url-elicitation", page)


async def sample(driver: ClientDriver) -> Any:
    question = {"prompt": "Six times seven?", "maxTokens": 32}
    return await _asking(driver, "sampling/createMessage", "trigger-sampling-request", question)


async def roots(driver: ClientDriver) -> Any:
    text = (await driver.call("get-roots-list", {}))["content"][0]["text"]
    return [word for word in ("project", "file:///srv/project", "(1 total)") if word in text]


async def read(driver: ClientDriver) -> Any:
    [document] = (await driver.read(DOCUMENT))["contents"]
    [dynamic] = (await driver.read(DYNAMIC))["contents"]
    facts = {key: document[key] for key in ("uri", "mimeType")}
    return [facts | {"begins": document["text"][:2]}, {"uri": dynamic["uri"], "begins": dynamic["text"][:10]}]


async def unknown_resource(driver: ClientDriver) -> Any:
    return await outcome(driver.read("demo://nowhere"))


async def prompt(driver: ClientDriver) -> Any:
    given = {"city": "Zürich", "state": "ZH"}
    return [
        (await driver.prompt("simple-prompt", {}))["messages"],
        (await driver.prompt("args-prompt", given))["messages"],
    ]


async def complete(driver: ClientDriver) -> Any:
    department = {"type": "ref/prompt", "name": "completable-prompt"}
    return (await driver.complete(department, {"name": "department", "value": "S"}, None))["completion"]["values"]


async def complete_context(driver: ClientDriver) -> Any:
    if driver.greeting()["revision"] in {"2024-11-05", "2025-03-26"}:
        raise Missing("the revision has no context in completions")
    team = {"type": "ref/prompt", "name": "completable-prompt"}
    return (await driver.complete(team, {"name": "name", "value": "B"}, {"department": "Engineering"}))["completion"][
        "values"
    ]


async def subscribe(driver: ClientDriver) -> Any:
    driver.seen.notices.clear()
    async with driver.listen([DOCUMENT]):
        await driver.call("toggle-subscriber-updates", {})
        await driver.seen.until(lambda: bool(driver.seen.notices))
        await driver.call("toggle-subscriber-updates", {})
    return list(driver.seen.notices)


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


async def convert(driver: ClientDriver) -> Any:
    given = {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}
    return _without_dates(json.loads((await driver.call("convert_time", given))["content"][0]["text"]))


async def now(driver: ClientDriver) -> Any:
    return _without_dates((await driver.call("get_current_time", {"timezone": "UTC"})).get("structuredContent"))


def _without_dates(value: Any) -> Any:
    """Return the facts that are the same every day."""
    if not isinstance(value, dict):
        return value
    return {key: _without_dates(each) for key, each in value.items() if key not in {"day_of_week", "datetime"}}


async def bad_zone(driver: ClientDriver) -> Any:
    came = await outcome(driver.call("get_current_time", {"timezone": "Nowhere/Land"}))
    return {"isError": came["isError"], "says": "Nowhere/Land" in came["text"]}


async def wrong_time(driver: ClientDriver) -> Any:
    came = await outcome(driver.call("get_current_time", {}))
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
