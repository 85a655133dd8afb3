"""mcpgen as a client, with a server of another SDK: ``mcpgen_client.py REPERTOIRE REVISION COMMAND…``, or a URL.

REVISION is the only one that it offers, or ``all``: then it offers what it has, and must end up with the newest that
the server speaks. REPERTOIRE says what there is to ask for: ``interop`` for the servers in ``servers/``, which can all
do the same, and ``alone`` what they can without sessions; ``reference_servers.py`` has those that come as they are.
``INTEROP_BACKEND=trio`` has it run on trio.
"""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from client_driver import ACCEPTED, CLIENT, ROOT, STATELESS, ClientDriver, Invalid, Missing, Refused, Seen, Wire
from conversation import FEATURES, Feature, go_through
from reference_servers import EVERYTHING, TIME

from mcpgen import Client, ClientLimits, connect
from mcpgen.runtime.errors import InvalidPayload, RequestRefused, UnsupportedByPeer
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LISTS = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
}


def wire(model: Any) -> Any:
    """Return a model as the wire has it."""
    return msgspec.json.decode(msgspec.json.encode(model))


@asynccontextmanager
async def refusals() -> AsyncIterator[None]:
    try:
        yield
    except RequestRefused as error:
        raise Refused(error.code) from error
    except UnsupportedByPeer as error:
        raise Missing("the server has not declared it, and is not asked") from error
    except InvalidPayload as error:
        raise Invalid(error.pointer) from error


class Ours(ClientDriver):
    def __init__(self, seen: Seen, client: Client) -> None:
        super().__init__(seen)
        self._client = client

    def greeting(self) -> Wire:
        client = self._client
        return {
            "revision": client.revision,
            "server": wire(client.server),
            "capabilities": wire(client.capabilities),
            "instructions": client.instructions,
        }

    async def page(self, kind: str, cursor: str | None) -> Wire:
        lists: dict[str, Any] = {
            "tools": self._client.list_tools,
            "resources": self._client.list_resources,
            "resourceTemplates": self._client.list_resource_templates,
            "prompts": self._client.list_prompts,
        }
        async with refusals():
            return wire(await lists[kind](cursor=cursor))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False, meta: Wire | None = None) -> Wire:
        report = self.seen.report if with_progress else None
        async with refusals():
            return wire(await self._client.call_tool(name, arguments, on_progress=report, meta=meta))

    async def cancel(self, name: str, arguments: Wire) -> None:
        self.seen.progress.clear()
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await self.call(name, arguments, with_progress=True)

            tasks.start_soon(wait)
            await self.seen.until(lambda: bool(self.seen.progress))
            tasks.cancel_scope.cancel()  # the client tells the server

    async def read(self, uri: str) -> Wire:
        async with refusals():
            return wire(await self._client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        async with refusals():
            return wire(await self._client.get_prompt(name, arguments))

    async def complete(self, ref: Wire, argument: dict[str, str], known: dict[str, str] | None) -> Wire:
        kind = models.PromptReference if ref["type"] == "ref/prompt" else models.ResourceTemplateReference
        about: Any = msgspec.convert(ref, kind)
        async with refusals():
            return {
                "completion": wire(
                    await self._client.complete(about, argument["name"], argument["value"], context=known)
                )
            }

    async def ping(self) -> Wire:
        async with refusals():
            await self._client.ping()
        return {}

    async def set_level(self, level: Any) -> None:
        async with refusals():
            await self._client.set_log_level(level)

    @asynccontextmanager
    async def listen(self, uris: list[str]) -> AsyncIterator[Wire]:
        wanted: Any = {"uris": uris} if uris else dict.fromkeys(LISTS, True)
        async with AsyncExitStack() as stack:
            try:
                async with refusals():
                    changes = await stack.enter_async_context(self._client.listen(**wanted))
            except Refused as refused:
                raise Missing("the server refuses it") from refused
            tasks = await stack.enter_async_context(anyio.create_task_group())

            async def hear() -> None:
                async for change in changes:
                    method = LISTS.get(change.kind, "notifications/resources/updated")
                    about = {"uri": change.uri} if change.uri else {}
                    self.seen.add(self.seen.notices, {"method": method, **about})

            tasks.start_soon(hear)
            yield wire(changes.acknowledged)
            tasks.cancel_scope.cancel()

    async def demand(self, name: str, arguments: Wire, answers: Wire | None, state: str | None) -> Wire:
        if self._client.revision != STATELESS:
            raise Missing("the revision asks with requests of its own")
        params = {"name": name, "arguments": arguments, "inputResponses": answers, "requestState": state}
        given = {key: value for key, value in params.items() if value is not None}
        async with refusals():
            return await self._client.request_json("tools/call", given)


@asynccontextmanager
async def connection(revision: str, command: list[str]) -> AsyncIterator[Ours]:
    seen = Seen()

    def elicit(params: Any, _: Any) -> Any:
        return msgspec.convert(seen.answer("elicitation/create", wire(params)), models.ElicitResult)

    def sample(params: Any, _: Any) -> Any:
        return msgspec.convert(seen.answer("sampling/createMessage", wire(params)), models.CreateMessageResult)

    def roots(_: Any) -> Any:
        seen.answer("roots/list", None)
        return [msgspec.convert(ROOT, models.Root)]

    def log(params: Any, _: Any) -> None:
        seen.add(seen.logs, wire(params))

    async with connect(
        command[0] if command[0].startswith("http:") else command,
        **CLIENT,
        # Another SDK's server can take longer than the usual 2 seconds to exit by itself while all processors are busy.
        limits=ClientLimits(stdin_seconds=30),
        revisions=None if revision == "all" else [revision],
        elicit=elicit,
        elicit_url=elicit,
        sample=sample,
        roots=roots,
        log=log,
    ) as client:
        yield Ours(seen, client)


async def input_required(driver: ClientDriver) -> Any:
    """Answer demands for input by hand, as each server can expect: this is recorded, and judged."""
    first = await driver.demand("ask", {}, None, None)
    [(key, question)] = first["inputRequests"].items()
    answers = {key: {"action": "accept", "content": ACCEPTED}}
    second = await driver.demand("ask", {}, answers, first["requestState"])
    [last] = second["inputRequests"]
    done = await driver.demand("ask", {}, {last: {"action": "cancel"}}, second["requestState"])
    return {
        "types": [first["resultType"], second["resultType"], done["resultType"]],
        "question": {"method": question["method"], "message": question["params"]["message"]},
        "text": done["content"][0]["text"],
    }


# Where each request is served by itself, nobody is asked, nobody is told, and nothing is remembered.
ALONE = [
    *("connect", "list tools", "list resources", "list templates", "list prompts", "call", "structured result"),
    *("content", "tool error", "crash", "unknown tool", "wrong arguments", "large", "at once"),
    *("progress", "read", "unknown resource", "prompt", "complete", "complete context", "ping"),
]

REPERTOIRES: dict[str, dict[str, Feature]] = {
    "interop": {**FEATURES, "input required": input_required},
    "alone": {feature: FEATURES[feature] for feature in ALONE},
    "everything": EVERYTHING,
    "time": TIME,
}


async def main(repertoire: str, revision: str, *command: str) -> None:
    await go_through(REPERTOIRES[repertoire], connection(revision, list(command)))


anyio.run(main, *sys.argv[1:], backend=os.environ.get("INTEROP_BACKEND", "asyncio"))
