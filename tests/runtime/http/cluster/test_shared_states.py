"""Handlers that wait for stateless clients, whose retries arrive at other workers."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, Context, MemoryCluster, Server, UsageError
from mcpgen.runtime.http.server.cluster.state_keys import StateKeys
from mcpgen.runtime.server.cluster.worker import ClusterWorker
from mcpgen.runtime.server.request_state import RequestStateSealer, StateRefused
from tests.runtime.http.cluster.workers import running
from tests.specification.http_server.http_clients import STATELESS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

FORM = '{"elicitation":{"form":{}}}'


class Played:
    """What the functions of a server have done."""

    runs = 0
    cancelled = 0


def demo(played: Played) -> Server:
    """Return a server whose functions ask."""
    server = Server("demo", version="1")

    async def asked(ctx: Context, *, slowly: bool = False) -> str:
        played.runs += 1
        form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
        await ctx.progress(1)
        if slowly:
            try:
                await anyio.sleep(60)
            except BaseException:
                played.cancelled += 1
                raise
        return f"{form.action} {played.runs}"

    @server.tool
    async def ask(ctx: Context) -> str:
        return await asked(ctx)

    @server.tool(replay=True)
    async def ask_again(ctx: Context) -> str:
        return await asked(ctx)

    @server.tool
    async def ask_slowly(ctx: Context) -> str:
        return await asked(ctx, slowly=True)

    return server


async def question(client: Any, tool: str) -> tuple[str, str]:
    """Call *tool*, and return the key of its question and the state."""
    said = await client.result("tools/call", f'"name":"{tool}","arguments":{{}}')
    assert "input_required" == said["resultType"]
    (key,) = said["inputRequests"]
    return key, said["requestState"]


def retry(client: Any, tool: str, asked: tuple[str, str], meta: str = "") -> Any:
    key, state = asked
    answers = json.dumps({key: {"action": "decline"}})
    params = f'"name":"{tool}","arguments":{{}},"inputResponses":{answers},"requestState":"{state}"'
    return client.send("tools/call", params, meta)


async def text(exchange: Any) -> Any:
    said = (await exchange.messages())[-1]
    return said["result"]["content"][0]["text"] if "result" in said else said["error"]["data"]["reason"]


async def test_a_retry_at_any_worker_is_answered_by_the_handler_that_waits(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        for asking, answering in ((0, 1), (1, 2), (2, 0), (1, 1)):
            client = workers.client(asking, STATELESS, FORM)
            asked = await question(client, "ask")

            assert f"decline {played.runs}" == await text(retry(workers.at(answering, client), "ask", asked))
    assert 4 == played.runs


async def test_a_state_is_used_once_in_all_workers(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = await question(client, "ask")
        said = [await text(retry(workers.at(each, client), "ask", asked)) for each in (1, 2, 0, 2)]

    assert (["decline 1"] * 4, 1) == (said, played.runs)


async def test_a_relayed_retry_is_told_of_progress(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(Played()), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = await question(client, "ask")
        told, said = await retry(workers.at(1, client), "ask", asked, '"progressToken":"p"').messages()

    assert (1, "complete") == (told["params"]["progress"], said["result"]["resultType"])


async def test_a_client_that_hangs_up_cancels_a_relayed_retry(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = await question(client, "ask_slowly")
        exchange = retry(workers.at(1, client), "ask_slowly", asked, '"progressToken":"p"')
        await exchange.message()
        exchange.leave()
        await exchange.returned()
        while not played.cancelled:  # noqa: ASYNC110 (in another worker)
            await anyio.sleep(0.01)

    assert 1 == played.cancelled


async def test_the_state_of_a_worker_that_has_ended_is_refused_with_the_reason(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = await question(client, "ask")
        await workers.front.apps[0]._state.close()

        assert "elsewhere" == await text(retry(workers.at(1, client), "ask", asked))
    assert 1 == played.runs


async def test_a_function_that_may_run_again_does_so_at_another_worker(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = await question(client, "ask_again")
        await workers.front.apps[0]._state.close()

        assert "decline 2" == await text(retry(workers.at(1, client), "ask_again", asked))


async def test_a_forged_state_is_refused_at_any_worker(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(Played()), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        key, state = await question(client, "ask")
        forged = state[:-5] + ("AAAAA" if state[-5:] != "AAAAA" else "BBBBB")
        said = [await text(retry(workers.at(each, client), "ask", (key, forged))) for each in range(3)]

    assert ["invalid"] * 3 == said


async def test_keys_are_shared_and_replaced_by_newer_ones() -> None:
    now = 1_000_000.0
    cluster = MemoryCluster(clock=lambda: now)
    sealers = [RequestStateSealer(None, clock=lambda: now, lifetime_seconds=600) for _ in range(2)]
    keys = [StateKeys(ClusterWorker(cluster, "demo"), each, clock=lambda: now) for each in sealers]
    bound: dict[str, Any] = {"principal": "", "method": "m", "digest": b""}
    with pytest.raises(StateRefused):
        sealers[1].open(sealers[0].seal(b"before", **bound), **bound)
    own = sealers[0].seal(b"before", **bound)
    seen = set()
    for _ in range(200):  # half an hour each: four days
        now += 1800
        for each in keys:
            await each.refresh()
        assert b"x" == sealers[1].open(sealers[0].seal(b"x", **bound), **bound)
        seen.add(sealers[0]._keys[0])
        assert 2 <= len(sealers[0]._keys) <= 5

    now = 1_000_000.0
    assert b"before" == sealers[0].open(own, **bound)
    assert 3 <= len(seen) <= 5


@pytest.mark.parametrize("refreshes_first", ["a worker that knows the keys", "a new worker"])
async def test_a_flush_does_not_make_states_invalid(cluster: Callable[[], Cluster], refreshes_first: str) -> None:
    async with running(demo(Played()), cluster) as workers:
        client = workers.client(0, STATELESS, FORM)
        asked = [await question(client, "ask") for _ in range(3)]
        shared = workers.cluster(0)._worker
        key = shared.key("keys")
        before = await shared.cluster.read(key)
        await shared.cluster.remove(key)
        if refreshes_first == "a new worker":
            await shared.cluster.create(key, {str(int(time.time() * 1000)): b"x" * 32}, 60)
        for each in range(3):
            await workers.cluster(each)._refresh_keys()
        said = [await text(retry(workers.at(each, client), "ask", asked[each])) for each in range(3)]
        after = await shared.cluster.read(key)

    assert ["decline 3"] * 3 == said
    assert before.items() <= after.items()


async def test_keys_that_are_flushed_again_and_again_end_no_worker() -> None:
    class Forgetful(MemoryCluster):
        async def read(self, key: str) -> dict[str, bytes]:
            await super().read(key)
            return {}

    sealer = RequestStateSealer(None, clock=time.time)
    sealed = sealer.seal(b"x", principal="", method="m", digest=b"")
    await StateKeys(ClusterWorker(Forgetful(), "demo"), sealer).refresh()

    assert b"x" == sealer.open(sealed, principal="", method="m", digest=b"")


async def test_notifications_of_extensions_are_refused() -> None:
    server = Server("demo")
    server.asgi(cluster=MemoryCluster())
    notification: Any = None
    with pytest.raises(UsageError, match=r"other workers; serve without `cluster` \(--redis\)"):
        await server._engine.notify_extension(notification)
