"""What a hostile client cannot do to a cluster, to its workers, or to other clients."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio.lowlevel
import pytest

from mcpgen import Cluster, HttpLimits, MemoryCluster, Redis
from mcpgen.runtime.http.server.cluster.shared_session import SharedHttpSession
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.fair_gate import requester
from mcpgen.runtime.server.cluster.message_pieces import MessagePieces
from mcpgen.runtime.server.cluster.worker_messages import Piece, PieceTaken, SessionChanged, decode_message
from tests.harness.redis_servers import needs_redis, redis_server
from tests.patience import BUSY_SECONDS
from tests.runtime.http.cluster.test_shared_sessions import called, demo, status
from tests.runtime.http.cluster.workers import Workers, eventually, running
from tests.specification.http_server.http_clients import BOTH, JSON, initialize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

# Redis closes the connection of a listener that has so much to read; by default 32 MiB.
SMALL_BUFFERS = "client-output-buffer-limit", "pubsub 3mb 2mb 60"


@pytest.mark.parametrize("kind", ["cancellation", "answer", "batch of answers"])
@needs_redis
@pytest.mark.slow
async def test_large_messages_of_one_client_do_not_end_the_streams_of_others(kind: str, tmp_path: Path) -> None:
    with redis_server(tmp_path, f"--{SMALL_BUFFERS[0]}", SMALL_BUFFERS[1]) as redis:
        async with running(demo(), lambda: Redis(redis.url, timeout_seconds=BUSY_SECONDS), workers=2) as workers:
            revision = "2025-03-26" if "batch" in kind else "2025-11-25"
            client, other = [await workers.client(each, revision).shake_hands() for each in (0, 1)]
            await other.result("resources/subscribe", '"uri":"note://a"')
            stream = await workers.at(0, other).listen().begun()  # relayed, since its home is worker 1
            generations = [workers.cluster(each)._worker.generation for each in (0, 1)]
            body = large(kind, workers.cluster(1)._worker.number)
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(post, client, body)
            await called(other, "touch")

            assert "notifications/resources/updated" == (await stream.message())["method"]
            assert generations == [workers.cluster(each)._worker.generation for each in (0, 1)]


def large(kind: str, worker: int) -> bytes:
    """Return a message of 3.5 MB."""
    text = "x" * 3_500_000
    answer = {"jsonrpc": "2.0", "id": (worker << 32) + 1, "result": {"text": text}}
    if kind == "answer":
        return json.dumps(answer).encode()
    if kind == "batch of answers":
        return json.dumps(
            [answer, *({**answer, "id": (worker + each << 32), "result": {}} for each in range(9))]
        ).encode()
    params = {"requestId": 7, "reason": text}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode()


async def post(client: Any, body: bytes) -> None:
    assert 202 == (await client.post(body).complete()).status


async def test_a_long_message_counts_while_the_cluster_is_asked_for_an_invented_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = MemoryCluster()
    counted: list[int] = []
    async with running(demo(), lambda: shared, workers=2) as workers:
        cluster = workers.cluster(0)

        async def read(_session_id: str) -> None:
            counted.append(cluster._state.open_quota.bytes)

        monkeypatch.setattr(cluster._copies, "read", read)
        client = workers.client(0)
        client.session = "invented"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "x" * 100_000}}).encode()
        reply = await client.post(body).complete()

        assert 404 == reply.status
        assert counted[0] > len(body)
        assert 0 == cluster._state.open_quota.bytes


async def test_an_idle_session_keeps_no_ids_of_a_batch() -> None:
    shared = MemoryCluster()
    async with running(demo(), lambda: shared, workers=1) as workers:
        client = await workers.client(0, "2025-03-26").shake_hands()
        batch = [{"jsonrpc": "2.0", "id": f"{each}" + "x" * 1000, "method": "ping"} for each in range(100)]
        reply = await client.post(json.dumps(batch).encode()).complete()
        session = workers.cluster(0)._state.sessions.peek(client.session)

        assert 100 == len(reply.json)
        assert isinstance(session, SharedHttpSession)
        assert [] == [*session._request_ids]


async def test_a_refused_initialize_in_a_session_changes_nothing_at_any_worker() -> None:
    """Else the record has what the other workers refuse, and its 4 MB are read with each request there."""
    shared = MemoryCluster()
    async with running(demo(), lambda: shared, workers=2) as workers:
        client = await workers.client(0, "2025-11-25").shake_hands()
        session = workers.cluster(0)._state.sessions.peek(client.session)
        assert isinstance(session, SharedHttpSession)
        before = session.fields()
        large = json.dumps({"experimental": {"large": {"text": "x" * 100_000}}})
        params = f'"protocolVersion":"2025-11-25","capabilities":{large},"clientInfo":{{"name":"c","version":"1"}}'
        refused = await client.ask("initialize", params)

        assert "max_declaration_bytes" in refused["error"]["message"]
        assert before == session.fields()
        assert {} == await workers.at(1, client).result("ping")


async def test_a_session_that_a_client_changes_often_is_read_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a worker reads it once for each change that other workers announce, and nothing for itself meanwhile."""
    shared = MemoryCluster()
    read, gate = shared.read, anyio.Event()
    reading: list[str] = []
    async with running(demo(), lambda: shared, workers=1) as workers:
        client = await workers.client(0).shake_hands()
        copies = workers.cluster(0)._copies

        async def slow_read(key: str) -> dict[str, bytes]:
            if key.endswith(client.session):
                reading.append(requester.get())
                await gate.wait()
            return await read(key)

        async def is_current() -> bool:
            return copies._state.sessions.peek(client.session).generation != -1

        monkeypatch.setattr(shared, "read", slow_read)
        for _ in range(100):
            copies._changed(SessionChanged(client.session))
            await anyio.lowlevel.checkpoint()
        assert reading == [copies._state.sessions.peek(client.session).client.owner]
        gate.set()
        await eventually(is_current)


@pytest.mark.parametrize("number", ["1" * 5000, "99999999", "\u0661", "-1", "0", ""])
async def test_a_worker_that_a_client_has_invented_is_none(number: str) -> None:
    """Python refuses to read more than 4,300 digits as a number."""
    shared = MemoryCluster()
    async with running(demo(), lambda: shared, workers=1) as workers:
        client = workers.client(0, "2026-07-28")
        content = json.dumps({"token": "t", "process": f"{number}.x"}).encode()
        state = urlsafe_b64encode(b"\x01" + b"\x00\x00\xff" + bytes(5) + content + bytes(32)).decode().rstrip("=")
        arguments = f'"name":"add","arguments":{{"a":1,"b":1}},"requestState":"{state}"'
        retried = await client.send("tools/call", arguments).complete()
        target = f"/messages?session={quote(number)}.x"
        told = await workers.webs[0].ask("POST", target, [JSON], b'{"jsonrpc":"2.0","method":"ping"}')

    assert "invalid" == retried.json["error"]["data"]["reason"]
    assert 404 == told.status


@pytest.mark.parametrize("session_id", ["*", "{demo}:keys", "../keys", "a" * 10_000, "\xe9", "x:y\tz"])
async def test_an_id_with_characters_that_redis_knows_is_an_unknown_one(
    cluster: Callable[[], Cluster], session_id: str
) -> None:
    async with running(demo(), cluster, workers=1) as workers:
        client = await workers.client(0).shake_hands()
        invented = workers.at(0, client)
        invented.session = session_id

        assert 404 == await status(invented)
        assert 200 == await status(client)


async def test_sessions_that_make_room_leave_the_cluster() -> None:
    """Else one client could fill it until no client can start a session."""
    shared = MemoryCluster()
    limits = HttpLimits(max_sessions=5)
    async with running(demo(), lambda: shared, workers=2, limits=limits) as workers:
        for _ in range(20):
            begun = await workers.webs[0].ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
            assert 200 == begun.status

        await eventually(lambda: _is_count(shared, 5))
        assert 200 == await status_of(workers, begun.header("mcp-session-id"))


async def _is_count(shared: MemoryCluster, count: int) -> bool:
    return count == sum(":session:" in key for key in shared._records)


async def status_of(workers: Workers, session_id: str | None) -> int:
    client = workers.client(1)
    client.session = session_id
    return await status(client)


# --- large messages


@pytest.mark.parametrize("kind", ["answer", "message of HTTP+SSE"])
async def test_what_waits_for_another_worker_is_counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = anyio.Event()

    async def send(*_: object) -> bool:
        waits.set()
        await anyio.sleep(0.1)
        return False

    async with running(demo(), MemoryCluster, workers=2) as workers:
        client = await workers.client(0).shake_hands()
        worker = workers.cluster(0)._worker
        monkeypatch.setattr(worker, "send", send)
        number = workers.cluster(1)._worker.number
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"text":"%b"}}' % ((number << 32) + 1, b"x" * 100_000)
        path = "/mcp" if kind == "answer" else f"/messages?session={number}.x"
        quota = workers.front.apps[0]._state.open_quota
        exchange = client.web.open("POST", path, client.lines(body), body)
        await waits.wait()
        kept = quota.kept_bytes
        exchange.leave()

    assert 100_000 < kept


async def test_the_next_piece_is_sent_when_the_one_before_was_taken() -> None:
    sent: list[Piece] = []

    async def publish(worker: int, data: bytes) -> bool:
        message = decode_message(data)
        assert isinstance(message, Piece)
        sent.append(message)
        return worker == 7

    ours, theirs = MessagePieces(lambda: 5, publish), MessagePieces(lambda: 7, publish)
    data = bytes(range(256)) * 8000
    outcomes: list[bool] = []

    async def send() -> None:
        outcomes.append(await ours.send(7, data))

    found: list[bytes] = []
    async with anyio.create_task_group() as group:
        group.start_soon(send)
        group.start_soon(send)
        while len(found) < 2:
            await anyio.wait_all_tasks_blocked()
            (piece,) = sent  # one at a time
            sent.clear()
            whole = theirs.arrived(piece)
            found += [] if whole is None else [whole]
            ours.taken(PieceTaken(piece.message))

    assert [data, data] == found
    assert [True, True] == outcomes
    assert not await ours.send(8, data)


async def test_small_messages_wait_if_the_receiver_has_not_taken_those_before() -> None:
    untaken: list[bytes] = []

    async def publish(worker: int, data: bytes) -> bool:
        untaken.append(data)
        return worker == 7

    ours, outcomes = MessagePieces(lambda: 5, publish), list[bool]()

    async def send() -> None:
        outcomes.append(await ours.send(7, bytes(16_000)))

    most = 0
    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(send)
        while len(outcomes) < 200:
            await anyio.wait_all_tasks_blocked()
            most = max(most, sum(map(len, untaken)))
            pieces = [each for each in map(decode_message, untaken) if isinstance(each, Piece)]
            untaken.clear()
            for each in pieces:
                ours.taken(PieceTaken(each.message))

    assert 600_000 > most, "of the 3,200,000 bytes of all"
    assert [True] * 200 == outcomes


async def test_a_worker_that_takes_no_piece_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def publish(worker: int, data: bytes) -> bool:
        return True

    monkeypatch.setattr("mcpgen.runtime.server.cluster.message_pieces._TAKEN_SECONDS", 0.05)
    with pytest.raises(ClusterUnavailable, match="has not confirmed in time"):
        await MessagePieces(lambda: 5, publish).send(7, bytes(20_000))


async def test_pieces_of_a_message_that_is_not_complete_are_dropped() -> None:
    pieces = MessagePieces(lambda: 7, lambda *_: pytest.fail("nothing is sent"))

    assert pieces.arrived(Piece(5, 1, b"a", 0, more=True)) is None
    assert pieces.arrived(Piece(5, 2, b"b", 0, more=True)) is None  # the first one was not sent to its end
    assert pieces.arrived(Piece(5, 1, b"c", 1, more=False)) is None
    assert pieces.arrived(Piece(5, 2, b"d", 1, more=False)) is None  # it began after a gap
    assert pieces.arrived(Piece(5, 3, b"e", 0, more=True)) is None
    pieces.forget()
    assert pieces.arrived(Piece(5, 3, b"f", 1, more=False)) is None
    assert b"g" == pieces.arrived(Piece(5, 4, b"g", 0, more=False))


class Asked(MemoryCluster):
    """A cluster that notes for whom records of sessions are read, changed and removed."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[tuple[str, str]] = []

    async def create(self, key: str, *arguments: Any, **more: Any) -> bool:
        self._note("create", key)
        return await super().create(key, *arguments, **more)

    async def read(self, key: str) -> dict[str, bytes]:
        self._note("read", key)
        return await super().read(key)

    async def change(self, key: str, *arguments: Any, **more: Any) -> bool:
        self._note("change", key)
        return await super().change(key, *arguments, **more)

    async def remove(self, key: str, **more: Any) -> bool:
        self._note("remove", key)
        return await super().remove(key, **more)

    def _note(self, operation: str, key: str) -> None:
        if ":session:" in key:
            self.owners.append((operation, requester.get()))


async def test_the_cluster_is_asked_for_the_client_that_sends_the_request() -> None:
    """Clients alternate in the connections to Redis; see FairGate."""
    shared = Asked()
    async with running(demo(), lambda: shared, workers=2, user=lambda scope: "ann") as workers:
        client = await workers.client(0).shake_hands()
        other = workers.at(1, client)
        await other.result("logging/setLevel", '"level":"error"')
        await workers.at(1, client).listen().begun()
        await other.delete()

    assert {"create", "read", "change", "remove"} == {operation for operation, _ in shared.owners}
    assert {"user ann"} == {owner for _, owner in shared.owners}
