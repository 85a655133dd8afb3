"""What every Python client does with the server, and how it says what came back.

A driver (``python_v1.py`` and its siblings) makes a ``ClientDriver``: the same few calls, each made with its own API,
each giving back what the client understood, in the words of the wire. ``converse`` goes through the features with them.
For each it prints a line of JSON: ``observed`` with what came back, ``unsupported`` with the reason why this client has
no such thing, or ``failed``. Whether what came back is right is not judged here but in ``client_expectations.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
from client_driver import ACCEPTED, STATELESS, ClientDriver, Connection, Invalid, Missing, Refused, Wire

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

__all__ = ["FEATURES", "Feature", "converse", "go_through", "names", "outcome", "pages", "talk"]

# Long beside the tenths of a second that a feature takes; a client may wait in vain for minutes.
FEATURE_SECONDS = 15
COUNTER = "interop://counter"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"

Feature = Callable[[ClientDriver], Awaitable[Any]]


async def pages(driver: ClientDriver, kind: str) -> list[list[Wire]]:
    found: list[list[Wire]] = []
    cursor = None
    while cursor or not found:
        page = await driver.page(kind, cursor)
        found.append(page[kind])
        cursor = page.get("nextCursor")
    return found


async def names(driver: ClientDriver, kind: str, key: str) -> Wire:
    found = await pages(driver, kind)
    return {"pages": [len(page) for page in found], key: [item[key] for page in found for item in page]}


async def _settle(driver: ClientDriver) -> None:
    """Let whatever the server sent before now arrive, so that what is not there was not sent."""
    await driver.call("add", {"a": 0, "b": 0})
    await anyio.wait_all_tasks_blocked()


async def outcome(made: Awaitable[Wire]) -> Wire:
    """Return the code of the error, or what the tool said, and whether it called that an error."""
    try:
        result = await made
    except Refused as refused:
        return {"code": refused.code}
    said = result["content"][0]["text"] if result.get("content") else None
    return {"isError": result.get("isError", False), "text": said}


async def connect(driver: ClientDriver) -> Any:
    return driver.greeting()


async def peer(driver: ClientDriver) -> Any:
    return json.loads((await driver.call("whoami", {}))["content"][0]["text"])


async def list_tools(driver: ClientDriver) -> Any:
    tools = {tool["name"]: tool for page in await pages(driver, "tools") for tool in page}
    return {**await names(driver, "tools", "name"), "add": tools["add"], "forecast": tools["forecast"]}


async def list_resources(driver: ClientDriver) -> Any:
    return await names(driver, "resources", "uri")


async def list_templates(driver: ClientDriver) -> Any:
    return await names(driver, "resourceTemplates", "uriTemplate")


async def list_prompts(driver: ClientDriver) -> Any:
    prompts = {prompt["name"]: prompt for page in await pages(driver, "prompts") for prompt in page}
    return {**await names(driver, "prompts", "name"), "review": prompts["review"]}


async def call(driver: ClientDriver) -> Any:
    return await driver.call("add", {"a": 20, "b": 22})


async def structured(driver: ClientDriver) -> Any:
    result = await driver.call("forecast", {"city": "Zürich"})
    return {**result, "content": [json.loads(block["text"]) for block in result["content"]]}


async def content(driver: ClientDriver) -> Any:
    return (await driver.call("gallery", {}))["content"]


async def parameter_headers(driver: ClientDriver) -> Any:
    return (await driver.call("route", {"region": "Zürich", "count": 7}))["content"]


async def tool_error(driver: ClientDriver) -> Any:
    return await driver.call("fail", {"reason": "no luck"})


async def crash(driver: ClientDriver) -> Any:
    result = await driver.call("crash", {})
    return {
        "isError": result.get("isError"),
        "leaks": "hunter2" in json.dumps(result),
        "blocks": len(result["content"]),
    }


async def unknown_tool(driver: ClientDriver) -> Any:
    return await outcome(driver.call("no_such_tool", {}))


async def wrong_arguments(driver: ClientDriver) -> Any:
    came = await outcome(driver.call("add", {"a": "one", "b": 2}))
    return {"code": came["code"]} if "code" in came else {"isError": came["isError"]}


async def stray_output(driver: ClientDriver) -> Any:
    return (await driver.call("noisy", {"text": "quiet"}))["content"]


async def large(driver: ClientDriver) -> Any:
    """Send and get more than any pipe holds."""
    text = "".join(chr(ord("À") + n % 50) for n in range(500_000))
    mirrored = (await driver.call("mirror", {"text": text}))["content"][0]["text"]
    return {"length": len(mirrored), "is mirrored": mirrored == text[::-1]}


async def at_once(driver: ClientDriver) -> Any:
    """Call a tool often, without waiting for answers."""
    sums = [""] * 50

    async def add(number: int) -> None:
        result = await driver.call("add", {"a": number, "b": number})
        sums[number] = str(json.loads(result["content"][0]["text"])["result"])

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(add, number)
    return sums


async def progress(driver: ClientDriver) -> Any:
    """Let the tool count on as its reports arrive.

    A client may drop reports that come together with the result (TypeScript's do); those of a tool at work must arrive.
    """
    driver.seen.progress.clear()
    results: list[Wire] = []

    async def count() -> None:
        results.append(await driver.call("count", {"to": 3}, with_progress=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        for step in (1, 2, 3):
            await driver.seen.until(lambda step=step: len(driver.seen.progress) >= step)  # type: ignore[misc]  # at once
            await driver.call("go_on", {})
    return {"progress": list(driver.seen.progress), "text": results[0]["content"][0]["text"]}


async def log(driver: ClientDriver) -> Any:
    driver.seen.logs.clear()
    meta = None
    if driver.greeting()["revision"] == STATELESS:
        meta = {LEVEL_KEY: "info"}
    else:
        await driver.set_level("info")
    await driver.call("chatter", {}, meta=meta)
    await driver.seen.until(lambda: any(entry["level"] == "error" for entry in driver.seen.logs))
    await _settle(driver)
    return list(driver.seen.logs)


async def cancel(driver: ClientDriver) -> Any:
    await driver.cancel("hang", {"label": "first"})
    return (await driver.call("was_cancelled", {"label": "first"}))["content"]


async def reconnect(driver: ClientDriver) -> Any:
    return (await driver.call("let_go", {}))["content"]


async def talk(driver: ClientDriver, tool: str) -> Wire:
    driver.seen.asked.clear()
    came = await outcome(driver.call(tool, {}))
    if not came.get("isError"):
        return {"asked": list(driver.seen.asked), **came}
    return {"asked": list(driver.seen.asked), "isError": True}


async def elicit(driver: ClientDriver) -> Any:
    return await talk(driver, "ask")


async def elicit_url(driver: ClientDriver) -> Any:
    return await talk(driver, "ask_url")


async def sample(driver: ClientDriver) -> Any:
    return await talk(driver, "sample")


async def roots(driver: ClientDriver) -> Any:
    return await talk(driver, "roots")


async def read(driver: ClientDriver) -> Any:
    uris = ["interop://greeting", "interop://pixel", "interop://echo/hello", "interop://files/a/b.txt"]
    return [(await driver.read(uri))["contents"] for uri in uris]


async def unknown_resource(driver: ClientDriver) -> Any:
    return await outcome(driver.read("interop://nowhere"))


async def prompt(driver: ClientDriver) -> Any:
    kept = await driver.prompt("review", {"code": "x = 1"})
    strict = await driver.prompt("review", {"code": "x = 1", "style": "strict"})
    dialogue = await driver.prompt("dialogue", {})
    return [kept["messages"], strict["messages"], dialogue["messages"]]


async def complete(driver: ClientDriver) -> Any:
    style = {"type": "ref/prompt", "name": "review"}
    word = {"type": "ref/resource", "uri": "interop://echo/{word}"}
    return [
        (await driver.complete(style, {"name": "style", "value": "kin"}, None))["completion"]["values"],
        (await driver.complete(word, {"name": "word", "value": "alpha"}, None))["completion"]["values"],
    ]


async def complete_context(driver: ClientDriver) -> Any:
    if driver.greeting()["revision"] in {"2024-11-05", "2025-03-26"}:
        raise Missing("the revision has no context in completions")
    style = {"type": "ref/prompt", "name": "review"}
    result = await driver.complete(style, {"name": "style", "value": "s"}, {"code": "ab"})
    return result["completion"]["values"]


async def ping(driver: ClientDriver) -> Any:
    if driver.greeting()["revision"] == STATELESS:
        raise Missing("the revision has no ping")
    return await driver.ping()


async def subscribe(driver: ClientDriver) -> Any:
    """Hear of a resource while listening to it, and no longer after that."""
    driver.seen.notices.clear()
    updates = [{"method": "notifications/resources/updated", "uri": COUNTER}]
    async with driver.listen([COUNTER]) as agreed:
        await driver.call("bump", {})
        await driver.seen.until(lambda: driver.seen.notices == updates)
        text = (await driver.read(COUNTER))["contents"][0]["text"]
    await driver.call("bump", {})
    await _settle(driver)
    return {"agreed": agreed, "heard": list(driver.seen.notices), "text": text}


async def list_changed(driver: ClientDriver) -> Any:
    """Hear that the three lists changed, and find in them what is new."""
    driver.seen.notices.clear()
    async with driver.listen([]):
        await driver.call("grow", {})
        await driver.seen.until(lambda: len(driver.seen.notices) >= 3)
    await _settle(driver)
    heard = sorted(notice["method"] for notice in driver.seen.notices)
    tools = (await names(driver, "tools", "name"))["name"]
    prompts = (await names(driver, "prompts", "name"))["name"]
    resources = (await names(driver, "resources", "uri"))["uri"]
    text = (await driver.call("sprout", {}))["content"][0]["text"]
    return {"heard": heard, "last": [tools[-1], prompts[-1], resources[-1]], "text": text}


async def input_required(driver: ClientDriver) -> Any:
    """Answer demands for input by hand; then send one answer twice, and a state that the server never made."""
    first = await driver.demand("ask", {}, None, None)
    [(key, question)] = first["inputRequests"].items()
    answers = {key: {"action": "accept", "content": ACCEPTED}}
    forged = await outcome(driver.demand("ask", {}, answers, "A" * len(first["requestState"])))
    other = await outcome(driver.demand("ask_url", {}, answers, first["requestState"]))
    second = await driver.demand("ask", {}, answers, first["requestState"])
    again = await driver.demand("ask", {}, answers, first["requestState"])
    [(last, _)] = second["inputRequests"].items()
    done = await driver.demand("ask", {}, {last: {"action": "cancel"}}, second["requestState"])
    return {
        "types": [first["resultType"], second["resultType"], done["resultType"]],
        "question": {"method": question["method"], "message": question["params"]["message"]},
        "forged": forged,
        "other call": other,
        "again is the same": again == second,
        "text": done["content"][0]["text"],
    }


FEATURES: dict[str, Feature] = {
    "connect": connect,
    "peer": peer,
    "list tools": list_tools,
    "list resources": list_resources,
    "list templates": list_templates,
    "list prompts": list_prompts,
    "call": call,
    "structured result": structured,
    "content": content,
    "parameter headers": parameter_headers,
    "tool error": tool_error,
    "crash": crash,
    "unknown tool": unknown_tool,
    "wrong arguments": wrong_arguments,
    "stray output": stray_output,
    "large": large,
    "at once": at_once,
    "progress": progress,
    "log": log,
    "cancel": cancel,
    "reconnect": reconnect,
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
    "input required": input_required,
    "list changed": list_changed,
}


def say(feature: str, outcome: str, detail: Any) -> None:
    sys.stdout.write(json.dumps({"feature": feature, "outcome": outcome, "detail": detail}) + "\n")
    sys.stdout.flush()


def _sentence(error: BaseException) -> str:
    """Return what happened, found in as many groups as it was put into."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def attempt(feature: str, act: Callable[[], Awaitable[Any]]) -> None:
    try:
        with anyio.fail_after(FEATURE_SECONDS):
            say(feature, "observed", await act())
    except Missing as missing:
        say(feature, "unsupported", str(missing))
    except Invalid as invalid:
        say(feature, "observed", {"invalid": str(invalid)})
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
        say(feature, "failed", _sentence(error))


async def go_through(features: dict[str, Feature], connected: AbstractAsyncContextManager[ClientDriver]) -> None:
    """Connect, and go through *features*."""
    try:
        async with connected as driver:
            for feature, act in features.items():
                await attempt(feature, lambda act=act: act(driver))  # type: ignore[misc]  # called before it changes
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
        say("connect", "failed", _sentence(error))


async def converse(revision: str, connection: Connection) -> None:
    """Go through all features with a client that is made to offer *revision*; let another one choose."""
    await go_through(FEATURES, connection(revision, insists=True))

    async def counter_offer() -> Any:
        async with connection(revision, insists=False) as driver:
            return {"revision": driver.greeting()["revision"], "content": (await call(driver))["content"]}

    await attempt("counter-offer", counter_offer)
