"""What an administrator of Redis may ask for: databases, a node of Redis Cluster, TLS."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
import redis as library
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from redis.crc import key_slot

from mcpgen import ClusterUnavailable, EventLimits, MemoryCluster, Redis, RedisTaskStore
from mcpgen.runtime.server.cluster.worker import ClusterWorker
from mcpgen.runtime.server.tasks.task_store import TaskRecord
from tests.harness.redis_servers import RedisServer, free_port, needs_redis, needs_tls, redis_server, rights
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server(tmp_path: Path) -> Generator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[Redis]:
    cluster = Redis(url, timeout_seconds=PATIENCE_SECONDS, **options)
    await cluster.open()
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            yield cluster
    finally:
        await cluster.close()


@needs_redis
async def test_a_url_that_names_a_database_needs_one_more_right(server: RedisServer) -> None:
    async with opened(f"{server.url}/1") as one:
        with pytest.raises(ClusterUnavailable, match="no permissions to run the 'select' command"):
            await one.read("k")
    server.command("ACL", "SETUSER", "with-select", "on", ">secret", *rights()[0], "+select")
    url = server.admin_url.replace("//", "//with-select:secret@")
    async with opened(f"{url}/1") as one, opened(url) as other:
        assert await one.create("k", {"a": b"1"}, 60)
        assert {} == await other.read("k")


@needs_redis
async def test_redis_returns_the_events_of_one_stream_after_the_other_and_a_part_at_a_time(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[tuple[str, int]] = []
    async with opened(server.url) as one:
        for stream in "ab":
            await one.add_events("{s}:events", [(stream, number, b"x" * 300_000) for number in range(1, 9)])
        script: Any = getattr(one, "_events_after")  # noqa: B009 (a private one)

        async def counted(**given: Any) -> Any:
            found = await script(**given)
            parts.append((given["args"][0], sum(len(fields[1]) for _, fields in found)))
            return found

        monkeypatch.setattr(one, "_events_after", counted)
        found: dict[str, list[tuple[int, bytes]] | None] = {}

        async def read(stream: str) -> None:
            found[stream] = await one.events_after("{s}:events", stream, 1)

        async with anyio.create_task_group() as tasks:
            for each in "ab":
                tasks.start_soon(read, each)

    expected = [(number, b"x" * 300_000) for number in range(2, 9)]
    assert found == {"a": expected, "b": expected}
    assert parts == [(each, size) for each in "ab" for size in (1_200_000, 900_000, 0)]


@pytest.fixture(params=["alone", "node of a Redis Cluster"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[RedisServer]:
    """A server, which refuses a script or transaction with keys of more than one slot if it is one of a cluster."""
    options = () if request.param == "alone" else ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with redis_server(tmp_path, *options) as running:
        if options:
            running.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        yield running


@needs_redis
@pytest.mark.slow
async def test_all_keys_of_a_server_are_in_one_slot_and_expire(node: RedisServer) -> None:
    key = ClusterWorker(MemoryCluster(), "a {server} of ü").key
    streams = [f"{owner}.s.{number}" for owner in "ab" for number in range(3)]
    limits = EventLimits(max_events_per_stream=2, max_bytes=1500, max_streams=4)
    async with opened(node.url, event_limits=limits) as one:
        with anyio.fail_after(PATIENCE_SECONDS):
            while not await _is_up(one):  # noqa: ASYNC110 (which nothing announces)
                await anyio.sleep(0.01)
        assert await one.create(key("session:x"), {"a": b"1"}, 60)
        assert await one.change(key("session:x"), {"b": b"1"}, announced=(key("all"), b"x"))
        await one.create(key("session:y"), {"a": b"1"}, 60)
        assert await one.remove(key("session:y"), announced=(key("all"), b"x"))
        await one.keep([key("session:x"), key("session:y")], 60)
        for number in range(1, 5):
            await one.add_events(key("events"), [(each, number, b"x" * 100) for each in streams])
        await one.events_after(key("events"), streams[-1], 3)
        await one.remove_events(key("events"), streams[-1:])
        assert {"ann", "bob"} == set(await one.raise_levels(key("rate"), {"ann": 60, "bob": 60}))
    store = RedisTaskStore(node.url, name="a {server} of ü", timeout_seconds=PATIENCE_SECONDS)
    store.add(_task())
    store.beat("w")
    store.expire(1)
    store.close()

    with library.Redis.from_url(node.admin_url) as admin:
        keys: Any = admin.keys("*")
        assert {key_slot(each) for each in keys} == {key_slot(keys[0])}
        assert all(admin.ttl(each) > 0 for each in keys)  # type: ignore[operator]
    assert len(keys) > 15


async def _is_up(one: Redis) -> bool:
    try:
        await one.read("{s}:k")
    except ClusterUnavailable as error:
        if "The cluster is down" not in str(error):  # as it is for a moment, after the server got its slots
            raise
        return False
    return True


@needs_tls
async def test_tls_is_used_and_the_certificate_is_checked(tmp_path: Path) -> None:
    certificate, key = _own_certificate(tmp_path)
    tls = ("--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no")
    with redis_server(tmp_path, *tls) as server:
        port = free_port()
        server.command("CONFIG", "SET", "tls-port", str(port))
        url = f"rediss://worker:secret@127.0.0.1:{port}"
        trusting = {"ssl_ca_certs": certificate}
        async with opened(url, options=trusting) as one, opened(url) as other:
            assert await one.create("k", {"a": b"1"}, 60)
            assert {"a": b"1"} == await one.read("k")
            with pytest.raises(ClusterUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                await other.read("k")
        async with opened(url.replace("rediss://", "redis://")) as one:
            with pytest.raises(ClusterUnavailable):
                await one.read("k")
        store = RedisTaskStore(url, name="s", timeout_seconds=PATIENCE_SECONDS, options=trusting)
        store.add(_task())
        assert 1 == store.count
        store.close()


def _task() -> TaskRecord:
    return TaskRecord(task_id="t", principal="ann", status="working", created_ms=0, updated_ms=0, ttl_ms=60_000)


def _own_certificate(folder: Path) -> tuple[str, str]:
    """Write a certificate for 127.0.0.1 that signs itself, and its key; return their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "redis")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(paths[0]), str(paths[1])


@needs_redis
async def test_no_connection_is_opened_after_the_end(server: RedisServer) -> None:
    async with opened(server.url) as cluster:
        assert await cluster.create("a", {"x": b"1"}, 60)
    for late in (cluster.read("a"), cluster.send("b", b""), cluster.keep(["a"], 60)):
        with pytest.raises(ClusterUnavailable, match="left"):
            await late
    with library.Redis(port=server.port) as admin:
        users = [each["user"] for each in admin.client_list()]

    assert ["default"] == users


@needs_redis
async def test_operations_that_run_at_the_end_leave_no_connection(server: RedisServer) -> None:
    """Some are connecting then, and others wait for a connection."""

    async def read(cluster: Redis) -> None:
        with suppress(ClusterUnavailable):
            await cluster.read("a")

    async with anyio.create_task_group() as group, opened(server.url, max_connections=4) as cluster:
        for _ in range(20):
            group.start_soon(read, cluster)
        await anyio.lowlevel.checkpoint()
    with library.Redis(port=server.port) as admin, anyio.fail_after(PATIENCE_SECONDS):
        while ["default"] != [each["user"] for each in admin.client_list()]:  # noqa: ASYNC110 (Redis announces nothing)
            await anyio.sleep(0.01)
