"""Whatever clients say, and in whatever order, the server keeps to the protocol and answers what has to be answered.

The recorder judges every message. What may stay open is what waits: for the test, for the client, or for changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.specification.citation import HANDSHAKES, HOMES, LABELS, STATELESS, spec
from tests.specification.server.revision_client import Client, client
from tests.specification.server.revision_server import TOOLS, handlers, server

if TYPE_CHECKING:
    from mcpgen.runtime.api.server import Server

REQUESTS = [
    ("ping", ""),
    ("initialize", '"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}'),
    ("server/discover", ""),
    ("tools/list", ""),
    ("tools/list", '"cursor":"second"'),
    ("tools/list", '"cursor":7'),
    ("resources/list", ""),
    ("resources/templates/list", ""),
    ("prompts/list", ""),
    ("prompts/get", '"name":"review","arguments":{"code":"x"}'),
    ("prompts/get", '"name":"ask"'),
    ("prompts/get", '"name":"nobody"'),
    ("resources/read", '"uri":"note://a"'),
    ("resources/read", '"uri":"note://ask"'),
    ("resources/read", '"uri":"note://nowhere"'),
    ("resources/subscribe", '"uri":"note://a"'),
    ("resources/unsubscribe", '"uri":"note://a"'),
    ("logging/setLevel", '"level":"error"'),
    ("logging/setLevel", '"level":"loud"'),
    ("completion/complete", '"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"code","value":"p"}'),
    ("subscriptions/listen", '"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://a"]}'),
    ("subscriptions/listen", '"notifications":{}'),
    ("tasks/list", ""),
    ("no/such", ""),
    *(("tools/call", f'"name":"{each}","arguments":{{}}') for each in TOOLS),
]
METAS = [
    "",
    '"progressToken":1',
    '"progressToken":"t"',
    '"progressToken":[]',
    '"io.modelcontextprotocol/logLevel":"info"',
    '"progressToken":2,"io.modelcontextprotocol/logLevel":"debug"',
]
ABILITIES = [
    "{}",
    '{"roots":{},"sampling":{},"elicitation":{}}',
    '{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}',
    '{"elicitation":{"url":{}}}',
]
ANSWERS = [
    '"result":{"action":"accept","content":{"name":"octocat"}}',
    '"result":{"action":"decline"}',
    '"result":{"roots":[{"uri":"file:///a"}]}',
    '"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}',
    '"result":{}',
    '"result":[]',
    '"error":{"code":-1,"message":"no"}',
]
GARBAGE = [
    b"nonsense",
    b"[]",
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"a","method":"tools/list"},1]',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
]
IDS: list[int | str] = [1, 2, "1", "a"]

request = st.tuples(
    st.just("request"),
    st.booleans(),
    st.sampled_from(IDS),
    st.sampled_from(REQUESTS),
    st.sampled_from(METAS),
    st.sampled_from(ABILITIES),
)
step = st.one_of(
    request,
    request,
    st.tuples(st.just("cancel"), st.sampled_from(IDS)),
    st.tuples(st.just("answer"), st.sampled_from(ANSWERS)),
    st.tuples(st.just("retry"), st.sampled_from(IDS), st.sampled_from(ANSWERS), st.sampled_from(METAS)),
    st.tuples(st.just("change")),
    st.tuples(st.just("garbage"), st.sampled_from(GARBAGE)),
)
# What waits for the client, for the test, or for changes; the rest has to be answered.
MAY_WAIT = {"tools/call", "prompts/get", "resources/read", "subscriptions/listen"}


class Conversation:
    """One client of a session that also sends stateless requests, and remembers what it can answer."""

    def __init__(self, made: Server, session: Client) -> None:
        self.made = made
        self.session = session
        self.wire = session.wire
        self.sent: dict[tuple[str, str], tuple[str, str, str]] = {}

    async def take(self, each: tuple[Any, ...]) -> None:
        """Do one step, all the way or only until it is sent."""
        kind, *rest = each
        await getattr(self, kind)(*rest)

    async def request(self, stateless: Any, identity: Any, what: Any, meta: Any, abilities: Any) -> None:
        method, params = what
        peer = Client(self.wire, STATELESS[-1], abilities) if stateless else self.session
        if peer.is_stateless:
            self.sent[type(identity).__name__, str(identity)] = (method, params, abilities)
        self.wire.send(peer.request(identity, method, params, meta))

    async def cancel(self, identity: Any) -> None:
        params = json.dumps({"requestId": identity})
        self.wire.send(f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'.encode())

    async def answer(self, body: str) -> None:
        await self.wire.rest()
        for message in map(json.loads, self.wire.raw):
            if isinstance(message, dict) and "method" in message and "id" in message:
                self.wire.send(f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{body}}}'.encode())

    async def retry(self, identity: Any, body: str, meta: Any) -> None:
        await self.wire.rest()
        for message in map(json.loads, reversed(self.wire.raw)):
            result = message.get("result") if isinstance(message, dict) else None
            if not isinstance(result, dict) or "requestState" not in result:
                continue
            method, params, abilities = self.sent[type(message["id"]).__name__, str(message["id"])]
            response = body.partition(":")[2]
            responses = ",".join(f'"{key}":{response}' for key in result.get("inputRequests", {}))
            state = f'"requestState":"{result["requestState"]}","inputResponses":{{{responses}}}'
            again = f"{params},{state}" if params else state
            peer = Client(self.wire, STATELESS[-1], abilities)
            self.sent[type(identity).__name__, str(identity)] = (method, params, abilities)
            self.wire.send(peer.request(identity, method, again, meta))
            return

    async def change(self) -> None:
        await self.made.tools_changed()
        await self.made.resource_updated("note://a")

    async def garbage(self, frame: bytes) -> None:
        self.wire.send(frame)


@spec("2024-11-05", "basic/index", "11427718")
@spec("2025-11-25", "basic/index", "462d48df")
@spec("2026-07-28", "basic/index", "a34cdfdb")
@spec("2024-11-05", "basic/index#protocol-layers", "a10616eb")
@spec("2024-11-05", "basic/messages", "c537e6ed")
@spec("2024-11-05", "basic/messages#requests", "68440bbc")
@spec("2026-07-28", "basic/index#messages", "e8662ee2")
@spec("2025-11-25", "basic/index#requests", "727cb8ce")
@spec("2025-06-18", "basic/index#responses", "dcd34d18", "f10035f4")
@spec("2026-07-28", "basic/index#result-responses", "0684c188")
@spec("2026-07-28", "basic/transports/index#messages", "d251136a")
@spec("2026-07-28", "schema#result", "ca3cf2ea")
@pytest.mark.slow
@spec("2024-11-05", "basic/messages#responses", "51f9a177", "b5e6ac88")
@spec("2025-03-26", "basic/index#batching")
@spec("2025-11-25", "basic/index#responses")
@spec("2026-07-28", "basic/index#responses")
@pytest.mark.parametrize("native_revision", HOMES)
@pytest.mark.parametrize("revision", LABELS)
@settings(deadline=None, max_examples=25)
@given(steps=st.lists(step, max_size=14), abilities=st.sampled_from(ABILITIES), rests=st.booleans())
def test_whatever_a_client_does_the_server_keeps_to_the_protocol(
    native_revision: str, revision: str, steps: list[Any], abilities: str, *, rests: bool
) -> None:
    async def converse() -> None:
        own = handlers(native_revision)
        made = server(native_revision, own=own)
        async with client(made, revision, abilities) as session:
            conversation = Conversation(made, session)
            for each in steps:
                await conversation.take(each)
                if rests:
                    await session.wire.rest()
            own.gate.set()
            await session.wire.rest()
            left = {each.method for each in session.wire.recorder.unanswered}

            assert left <= MAY_WAIT

    anyio.run(converse)


@spec("2025-11-25", "basic/lifecycle#initialization")
@pytest.mark.parametrize("served", [[each] for each in HANDSHAKES] + [[STATELESS[-1]]], ids=str)
def test_whatever_is_served_nothing_else_is_spoken(served: list[str]) -> None:
    """Every request of every revision, to a server of one, before any handshake."""

    async def converse() -> None:
        made = server(LABELS[-1], revisions=served)
        from tests.harness.server_wire import connected

        async with connected(made) as wire:
            for each in [*LABELS, "1999-01-01"]:
                speaker = Client(wire, each, "{}") if each in LABELS else Client(wire, LABELS[0], "{}")
                for number, (method, params) in enumerate(REQUESTS):
                    if method != "initialize":
                        wire.send(speaker.request(f"{each} {number}", method, params))
            await wire.rest()

    anyio.run(converse)
