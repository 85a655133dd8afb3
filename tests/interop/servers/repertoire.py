"""What the servers of the Python SDKs do: ``tests/interop/server.py`` once more, in terms of no SDK.

``offered.json`` says what they offer, in the words of the wire, as it does for the TypeScript servers. A server hands a
tool call on to ``Repertoire.call``, together with a ``Caller``: the few motions that a tool needs, made with that SDK.
Results, too, are in the words of the wire.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio

__all__ = ["COUNTER", "LEVELS", "OFFERED", "PAGE_SIZE", "Caller", "Refusal", "Repertoire", "Wire", "page"]

Wire = dict[str, Any]

OFFERED: Wire = json.loads(Path(__file__).with_name("offered.json").read_text(encoding="utf-8"))
COUNTER = "interop://counter"
PAGE_SIZE = 4
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# A cancellation is noticed long before this; without a limit, one that is lost would hang the call for ever.
LONGEST_WAIT_SECONDS = 10


class Refusal(Exception):  # noqa: N818 - what must come back
    """A request that is refused, with an error of this code."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class Caller(ABC):
    """Whoever called a tool, as the SDK lets the tool reach it."""

    @abstractmethod
    def introduction(self) -> Wire:
        """Return the caller's revision, era, name and version."""

    @abstractmethod
    async def progress(self, step: float, total: float, message: str | None) -> None:
        """Report progress."""

    @abstractmethod
    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log entry, if the caller wants such."""

    @abstractmethod
    async def ask(self, key: str) -> Wire:
        """Put one of the questions of ``offered.json`` to the caller."""

    @abstractmethod
    async def let_go(self) -> None:
        """Close the connection that the caller waits on, if it can come back."""

    @abstractmethod
    async def updated(self, uri: str) -> None:
        """Tell who subscribed."""

    @abstractmethod
    async def changed(self) -> None:
        """Tell who listens that the three lists changed."""


def page(items: list[Wire], cursor: str | None) -> tuple[list[Wire], str | None]:
    """Return one page, and the cursor of the next."""
    start = int(cursor or 0)
    return items[start : start + PAGE_SIZE], str(start + PAGE_SIZE) if start + PAGE_SIZE < len(items) else None


def text(said: str) -> Wire:
    return {"content": [{"type": "text", "text": said}]}


def structured(value: Wire) -> Wire:
    said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {**text(said), "structuredContent": value}


class Repertoire:
    """What this process can do, and what it remembers between calls."""

    def __init__(self) -> None:
        self.lists = {kind: list(OFFERED[kind]) for kind in ("tools", "resources", "resourceTemplates", "prompts")}
        self.watched: set[str] = set()
        self._count = 0
        self._may_go_on = anyio.Event()
        self._cancelled: dict[str, anyio.Event] = {}

    async def call(self, name: str, arguments: Wire, caller: Caller) -> Wire:
        """Call a tool; an exception is its failure."""
        match name:
            case "add":
                return structured({"result": arguments["a"] + arguments["b"]})
            case "forecast":
                return structured({"city": arguments["city"], "celsius": 21.5, "sunny": True})
            case "gallery":
                return {"content": OFFERED["gallery"]}
            case "fail":
                return {**text(f"It failed: {arguments['reason']}."), "isError": True}
            case "crash":
                raise RuntimeError("hunter2")
            case "whoami":
                return text(json.dumps(caller.introduction()))
            case "noisy":
                sys.stdout.write(
                    f"just so\n{json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': arguments['text']})}" + "\n"
                )
                sys.stdout.flush()
                return text(arguments["text"].upper())
            case "mirror":
                return text(arguments["text"][::-1])
            case "sprout" if any(tool["name"] == name for tool in self.lists["tools"]):
                return text("sprouted")
            case _:
                return text(await self._slow(name, arguments, caller))

    async def _slow(self, name: str, arguments: Wire, caller: Caller) -> str:
        match name:
            case "count":
                return await self._counted(arguments["to"], caller)
            case "go_on":
                self._may_go_on.set()
                return "gone on"
            case "chatter":
                await caller.log("debug", "a detail", "interop")
                await caller.log("info", {"event": "news", "n": 1}, "interop")
                await caller.log("error", "trouble", None)
                return "said"
            case "hang":
                return await self._hang(arguments["label"], caller)
            case "was_cancelled":
                with anyio.fail_after(LONGEST_WAIT_SECONDS):
                    await self._cancelled[arguments["label"]].wait()
                return f"{arguments['label']} was cancelled"
            case "bump":
                self._count += 1
                await caller.updated(COUNTER)
                return f"now {self._count}"
            case "grow":
                for kind, what in OFFERED["grown"].items():
                    self.lists[kind].append(what)
                await caller.changed()
                return "grown"
            case _:
                return await self._of_http(name, arguments, caller)

    async def _of_http(self, name: str, arguments: Wire, caller: Caller) -> str:
        match name:
            case "route":
                return f"{arguments['count']} to {arguments['region']}"
            case "let_go":
                await caller.let_go()
                return "here again"
            case _:
                return await self._interview(name, caller)

    async def _interview(self, name: str, caller: Caller) -> str:
        match name:
            case "ask":
                who = await caller.ask("who")
                sure = await caller.ask("sure")
                called = (who.get("content") or {}).get("name")
                return json.dumps({"first": who["action"], "name": called, "second": sure["action"]})
            case "ask_url":
                return f"user said {(await caller.ask('page'))['action']}"
            case "sample":
                answer = await caller.ask("model")
                return f"{answer['model']} says {answer['content']['text']}"
            case "roots":
                return json.dumps([[root["uri"], root["name"]] for root in (await caller.ask("roots"))["roots"]])
            case _:
                raise Refusal(-32602, f"Unknown tool: {name}")

    async def _counted(self, to: int, caller: Caller) -> str:
        for step in range(1, to + 1):
            self._may_go_on = anyio.Event()
            await caller.progress(step, to, f"{step} of {to}")
            with anyio.fail_after(LONGEST_WAIT_SECONDS):
                await self._may_go_on.wait()
        return f"counted to {to}"

    async def _hang(self, label: str, caller: Caller) -> str:
        self._cancelled[label] = anyio.Event()
        try:
            await caller.progress(1, 2, None)
            await anyio.sleep(LONGEST_WAIT_SECONDS)
        except anyio.get_cancelled_exc_class():
            self._cancelled[label].set()
            raise
        return "nobody cancelled"

    def read(self, uri: str) -> list[Wire] | None:
        """Return a resource's contents; nothing, if there is no such resource."""
        name = uri.removeprefix("interop://")
        simple = {"greeting": "Good morning, Vera.", "counter": str(self._count), "one": "1", "two": "2"}
        mime = {"mimeType": "text/plain"} if name == "greeting" or name.startswith("echo/") else {}
        if name == "pixel":
            return [
                {"uri": uri, "blob": b64encode(bytes.fromhex("89504e470d0a1a0a")).decode(), "mimeType": "image/png"}
            ]
        if name in simple:
            return [{"uri": uri, "text": simple[name], **mime}]
        if name.startswith("echo/"):
            return [{"uri": uri, "text": f"echo of {name.removeprefix('echo/')}", **mime}]
        if name.startswith("files/"):
            return [{"uri": uri, "text": f"file {name.removeprefix('files/')}"}]
        return None

    def prompt(self, name: str, arguments: dict[str, str]) -> list[Wire]:
        """Return a prompt's messages."""
        if name == "dialogue":
            said = [("user", "Knock knock."), ("assistant", "Who is there?")]
        else:
            said = [("user", f"In a {arguments.get('style', 'kind')} way, review: {arguments.get('code')}")]
        return [{"role": role, "content": {"type": "text", "text": each}} for role, each in said]

    def complete(self, subject: str, value: str, known: dict[str, str]) -> list[str]:
        """Complete an argument of a prompt or a template."""
        if subject == "review":
            styles = ["kind", "kinetic", "strict"]
            return [style + "!" * len(known.get("code", "")) for style in styles if style.startswith(value)]
        return [word for word in ("alpha", "alphabet", "beta") if word.startswith(value)]
