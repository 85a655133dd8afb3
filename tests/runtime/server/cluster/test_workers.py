"""One worker of a cluster: when its copies can be trusted, and whom its messages reach."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from mcpgen import ClusterUnavailable, MemoryCluster
from mcpgen.runtime.server.cluster.worker import ClusterWorker, worker_of_id
from mcpgen.runtime.server.cluster.worker_messages import ChangeMade, decode_message
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

pytestmark = pytest.mark.anyio


class Fragile(MemoryCluster):
    """A cluster whose operations can fail, and whose messages can get lost."""

    def __init__(self) -> None:
        super().__init__()
        self.is_gone = False
        self.is_deaf = False
        self.sent = 0
        self.subscriptions = 0

    async def read(self, key: str) -> dict[str, bytes]:
        if self.is_gone:
            raise ClusterUnavailable("it is gone")
        return await super().read(key)

    async def send(self, channel: str, message: bytes) -> int:
        self.sent += 1
        return 1 if self.is_deaf else await super().send(channel, message)

    async def listen(
        self, channels: Sequence[str], *, subscribed: Callable[[], None], received: Callable[[bytes], None]
    ) -> None:
        self.subscriptions += 1
        await super().listen(channels, subscribed=subscribed, received=received)


@asynccontextmanager
async def joined(*workers: ClusterWorker) -> AsyncGenerator[None]:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for each in workers:
                tasks.start_soon(each.run)
            for each in workers:
                await each.wait_joined()
            yield
            for each in workers:
                await each.leave()


async def until_trusted(worker: ClusterWorker, *, trusted: bool = True) -> None:
    while worker.is_trusted is not trusted:  # noqa: ASYNC110 (which nothing announces)
        await anyio.sleep(0.01)


async def test_copies_are_trusted_for_a_second_after_the_last_beat_that_arrives() -> None:
    now = 0.0
    cluster = Fragile()
    worker = ClusterWorker(cluster, "demo", clock=lambda: now)
    async with joined(worker):
        await until_trusted(worker)
        generation = worker.generation
        cluster.is_deaf = True
        now = 0.99
        assert worker.is_trusted
        now = 1.0
        assert not worker.is_trusted
        cluster.is_deaf = False
        await until_trusted(worker)

        assert generation == worker.generation


@pytest.mark.slow
async def test_a_connection_for_messages_is_replaced_after_ten_beats_without_an_answer() -> None:
    now = 0.0
    cluster = Fragile()
    worker = ClusterWorker(cluster, "demo", clock=lambda: now)
    async with joined(worker):
        await until_trusted(worker)
        cluster.is_deaf = True
        now = 3600.0  # as if the process had not been run for an hour
        sent = cluster.sent
        while cluster.subscriptions == 1:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)

        assert 10 <= cluster.sent - sent <= 15


@pytest.mark.slow
async def test_copies_are_not_trusted_while_the_cluster_cannot_be_reached() -> None:
    cluster = Fragile()
    worker = ClusterWorker(cluster, "demo")
    async with joined(worker):
        await until_trusted(worker)
        cluster.is_gone = True
        await until_trusted(worker, trusted=False)
        cluster.is_gone = False
        await until_trusted(worker)


@pytest.mark.slow
async def test_a_flush_begins_a_generation() -> None:
    cluster = MemoryCluster()
    worker = ClusterWorker(cluster, "demo")
    async with joined(worker):
        await until_trusted(worker)
        generation = worker.generation
        cluster._records.clear()
        while worker.generation == generation:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        await until_trusted(worker)


@pytest.mark.slow
async def test_after_a_flush_it_is_unknown_for_a_moment_which_workers_have_ended() -> None:
    cluster, now = MemoryCluster(), 0.0
    one, ended = ClusterWorker(cluster, "demo", clock=lambda: now), ClusterWorker(cluster, "demo")
    async with joined(one):
        await until_trusted(one)
        assert not await one.is_alive(ended.number)
        cluster._records.clear()
        now += 0.5
        with pytest.raises(ClusterUnavailable, match="joined"):  # before this worker has noted the flush
            await one.is_alive(ended.number + 1)
        generation = one.generation
        while one.generation == generation:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        with pytest.raises(ClusterUnavailable, match="joined"):
            await one.is_alive(ended.number)
        now += 5
        assert not await one.is_alive(ended.number)


async def test_two_workers_never_have_one_number() -> None:
    cluster = MemoryCluster()
    one, two = ClusterWorker(cluster, "demo"), ClusterWorker(cluster, "demo")
    async with joined(one):
        two.number = one.number
        async with joined(two):
            assert one.number != two.number
            assert await one.is_alive(two.number)
            assert await one.send(two.number, ChangeMade("x", None, 0))


async def test_a_message_reaches_its_worker_and_one_to_all_reaches_each() -> None:
    cluster = MemoryCluster()
    one, two, stranger = (ClusterWorker(cluster, name) for name in ("demo", "demo", "other"))
    got: list[tuple[str, str]] = []
    for name, each in (("one", one), ("two", two), ("stranger", stranger)):
        each.on(ChangeMade, lambda change, name=name: got.append((name, change.method)))
    async with joined(one, two, stranger):
        for each in (one, two, stranger):
            await until_trusted(each)
        assert await one.send(two.number, ChangeMade("a", None, 0))
        assert not await one.send(stranger.number, ChangeMade("b", None, 0))
        await one.send_to_all(ChangeMade("c", None, 0))
        one.send_later(two.number, ChangeMade("d", None, 0))
        one.send_later(None, ChangeMade("e", None, 0))
        while ("two", "e") not in got:  # noqa: ASYNC110 (the last of many)
            await anyio.sleep(0.01)

    assert {("two", "a"), ("one", "c"), ("two", "c"), ("two", "d"), ("one", "e"), ("two", "e")} == set(got)


async def test_a_worker_that_has_left_is_not_alive() -> None:
    cluster = MemoryCluster()
    one, two = ClusterWorker(cluster, "demo"), ClusterWorker(cluster, "demo")
    async with joined(one):
        async with joined(two):
            pass

        assert not await one.is_alive(two.number)
        assert not await one.send(two.number, ChangeMade("x", None, 0))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\x81\xa4type\xa6future"])
def test_a_message_of_another_version_is_no_message(data: bytes) -> None:
    assert decode_message(data) is None


@pytest.mark.parametrize(
    ("request_id", "worker"),
    [
        ((7 << 32) + 3, 7),
        (str((7 << 32) + 3), 7),
        (3, None),
        ("x", None),
        (None, None),
        (-(7 << 32), None),
        ("٣", None),
    ],
)
def test_the_id_of_a_request_names_its_worker(request_id: object, worker: int | None) -> None:
    assert worker == worker_of_id(request_id)


async def test_ids_of_requests_are_exact_in_every_parser() -> None:
    worker = ClusterWorker(MemoryCluster(), "demo")
    found = [worker.new_id_base() for _ in range(1000)]

    assert len(set(found)) == 1000
    assert {worker.number} == {worker_of_id(each + 100) for each in found}
    assert max(found) < 2**53


async def test_a_client_whose_messages_wait_leaves_room_for_those_of_others(caplog: pytest.LogCaptureFixture) -> None:
    cluster = MemoryCluster()
    one, two = ClusterWorker(cluster, "demo"), ClusterWorker(cluster, "demo")
    heard: list[ChangeMade] = []
    two.on(ChangeMade, heard.append)
    async with joined(one, two):
        for count in range(20_000):
            one.send_later(two.number, ChangeMade("flood", str(count), 0), owner="flooding")
        one.send_later(two.number, ChangeMade("large", "x" * 2_000_000, 0), owner="honest")
        one.send_later(None, ChangeMade("last", None, 0))
        while len(heard) < 2002:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)

    methods = [each.method for each in heard]
    assert max(methods.index("large"), methods.index("last")) <= 5  # the owners alternate
    assert [str(count) for count in range(2000)] == [each.uri for each in heard if each.method == "flood"]
    assert ["messages to another worker are dropped: too many wait to be sent"] == caplog.messages
