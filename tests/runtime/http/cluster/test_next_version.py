"""Workers of this version and of the next one, which stores and sends more than this one knows."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest

from mcpgen import Context, MemoryCluster, Server
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster.workers import eventually, running
from tests.specification.http_server.http_clients import STATELESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcpgen import Event

pytestmark = pytest.mark.anyio

FORM = '{"elicitation":{"form":{}}}'


class Counted(MemoryCluster):
    """What both share; it counts what is asked about sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def read(self, key: str) -> dict[str, bytes]:
        self.count += "session:" in key
        return await super().read(key)

    async def change(self, key: str, fields: Mapping[str, bytes | None], **named: Any) -> bool:
        self.count += "session:" in key
        return await super().change(key, fields, **named)

    def sessions(self) -> list[dict[str, bytes]]:
        """Return the fields of all sessions."""
        return [each.fields for key, each in self._records.items() if "session:" in key]


class NextVersion:
    """The cluster of a worker of the next version: its sessions and messages have a field more, and it has other ones.

    Args:
        shared: What both share.
    """

    def __init__(self, shared: MemoryCluster) -> None:
        self._shared = shared

    async def open(self) -> None:
        await self._shared.open()

    async def close(self) -> None:
        await self._shared.close()

    async def listen(
        self, channels: Sequence[str], *, subscribed: Callable[[], None], received: Callable[[bytes], None]
    ) -> None:
        await self._shared.listen(channels, subscribed=subscribed, received=received)

    async def send(self, channel: str, message: bytes) -> int:
        await self._shared.send(channel, msgspec.msgpack.encode({"type": "of the next version", "field": 1}))
        return await self._shared.send(channel, _with_more(message))

    async def create(self, key: str, fields: Mapping[str, bytes], seconds: float) -> bool:
        more = {"next": b"1"} if "session:" in key or "alive:" in key else {}
        return await self._shared.create(key, {**fields, **more}, seconds)

    async def read(self, key: str) -> dict[str, bytes]:
        return {name: value for name, value in (await self._shared.read(key)).items() if name != "next"}

    async def change(
        self,
        key: str,
        fields: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, bytes] | None = None,
        seconds: float | None = None,
        announced: tuple[str, bytes] | None = None,
    ) -> bool:
        announced = announced and (announced[0], _with_more(announced[1]))
        return await self._shared.change(key, fields, expected=expected, seconds=seconds, announced=announced)

    async def remove(self, key: str, *, announced: tuple[str, bytes] | None = None) -> bool:
        return await self._shared.remove(key, announced=announced and (announced[0], _with_more(announced[1])))

    async def keep(self, keys: Iterable[str], seconds: float) -> None:
        await self._shared.keep(keys, seconds)

    async def add_events(self, key: str, events: Sequence[Event]) -> None:
        await self._shared.add_events(key, events)

    async def events_after(self, key: str, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        return await self._shared.events_after(key, stream, number)

    async def remove_events(self, key: str, streams: Sequence[str]) -> None:
        await self._shared.remove_events(key, streams)

    async def raise_levels(self, key: str, amounts: Mapping[str, float]) -> dict[str, float]:
        return await self._shared.raise_levels(key, amounts)


def _with_more(message: bytes) -> bytes:
    return msgspec.msgpack.encode({**msgspec.msgpack.decode(message), "next": [1]})


def demo() -> Server:
    server = Server("versions", version="1")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})).action

    @server.tool
    async def touch(ctx: Context) -> str:
        await ctx.resource_updated("note://a")
        return "touched"

    @server.resource("note://a")
    def note() -> str:
        return "text"

    return server


async def sum_up(client: Any) -> str:
    said = await client.result("tools/call", '"name":"add","arguments":{"a":1,"b":2}')
    return str(said["content"][0]["text"])


@pytest.mark.parametrize("first", ["this", "next"])
async def test_workers_one_version_apart_serve_the_same_sessions(first: str) -> None:
    shared = Counted()
    clusters = [shared, NextVersion(shared)] if first == "this" else [NextVersion(shared), shared]
    async with running(demo(), partial(clusters.pop, 0), 2) as workers:
        client = await workers.client(0, capabilities=FORM).shake_hands()
        other = workers.at(1, client)
        await other.result("resources/subscribe", '"uri":"note://a"')
        await client.result("logging/setLevel", '"level":"error"')
        stream = await other.listen().begun()
        assert ["3"] * 2 == [await sum_up(each) for each in (client, other)]
        await eventually(lambda: _is_subscribed(workers.front.apps[0], client.session))
        await client.call("touch").messages()
        assert "notifications/resources/updated" == (await stream.message())["method"]
        for asking, answering in ((client, other), (other, client)):
            call = asking.call("ask", identity=f"{asking.web is client.web}")
            await answering.answer(await call.message(), '{"action":"decline"}')
            assert "decline" == (await call.messages())[-1]["result"]["content"][0]["text"]
        assert ["3"] * 2 == [await sum_up(each) for each in (client, other)]
        before = shared.count
        assert ["3"] * 20 == [await sum_up(each) for each in (client, other) for _ in range(10)]
        assert before == shared.count
        (fields,) = shared.sessions()
        assert (b"1" if first == "next" else None) == fields.get("next")
        assert b"error" == fields["level"]
        await other.delete()

        async def is_gone() -> bool:
            return (await client.send("ping").complete()).status == 404

        await eventually(is_gone)


async def _is_subscribed(app: Any, session: str) -> bool:
    copy = app._state.sessions.peek(session)
    return copy is not None and bool(copy.session.subscriptions.uris)


@pytest.mark.parametrize("first", [0, 1])
async def test_workers_one_version_apart_answer_the_retries_of_each_other(first: int) -> None:
    shared = Counted()
    clusters = [shared, NextVersion(shared)]
    async with running(demo(), partial(clusters.pop, 0), 2) as workers:
        asking, answering = (workers.client(each, STATELESS, FORM) for each in (first, 1 - first))
        with anyio.fail_after(PATIENCE_SECONDS):
            said = await asking.result("tools/call", '"name":"ask","arguments":{}')
            (key,) = said["inputRequests"]
            state = json.dumps(said["requestState"])
            answers = f'"inputResponses":{{"{key}":{{"action":"cancel"}}}},"requestState":{state}'
            (answer,) = await answering.send("tools/call", f'"name":"ask","arguments":{{}},{answers}').messages()

    assert "cancel" == answer["result"]["content"][0]["text"]
