"""Access tokens at several workers: to whom sessions belong, and what a relayed request may do."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Access, Cluster, Context, MemoryCluster, Server
from mcpgen.runtime.server.cluster.worker_messages import decode_access, encode_access
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster.workers import running
from tests.specification.http_server.http_clients import Caller
from tests.specification.http_server.protected_site import ISSUER, TOKENS, protect, token

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

STATELESS = "2026-07-28"
SESSION = "2025-11-25"


class User(Caller):
    """A client with an access token."""

    token = ""

    @property
    def own_lines(self) -> Any:
        return [*super().own_lines, *token(self.token)]


def user(workers: Any, worker: int, name: str, revision: str = SESSION, capabilities: str = "{}") -> User:
    found = User(workers.webs[worker], revision, capabilities)
    found.token = name
    return found


async def handshake(client: User) -> User:
    begin = client.request(
        0,
        "initialize",
        f'"protocolVersion":"{client.revision}","capabilities":{client.capabilities}'
        ',"clientInfo":{"name":"client","version":"1"}',
    )
    answer = await client.post(begin).complete()
    client.session = answer.header("mcp-session-id")
    await client.tell(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return client


def demo() -> Server:
    server = Server("demo", version="1")

    @server.tool
    async def who(context: Context) -> str:
        assert context.access
        return f"{context.access.subject} {context.access.client_id} {sorted(context.access.scopes)}"

    @server.tool
    async def ask(context: Context) -> str:
        form = await context.elicit("Who?", {"properties": {"name": {"type": "string"}}})
        assert context.access
        return f"{form.action} {context.access.subject} {context.access.claims.get('email')}"

    @server.tool(scopes=["files:write"])
    def write() -> str:
        return "written"

    return server


async def called(client: User, tool: str) -> str:
    found = await client.result("tools/call", f'"name":"{tool}","arguments":{{}}')
    return str(found["content"][0]["text"])


@pytest.mark.parametrize("other", ["bob", "ann-app2", "ann-elsewhere"])
async def test_a_session_belongs_to_issuer_client_and_subject_at_every_worker(
    cluster: Callable[[], Cluster], other: str
) -> None:
    async with running(demo(), cluster, 2, auth=protect()) as workers:
        ann, foreign = await handshake(user(workers, 0, "ann")), await handshake(user(workers, 1, other))
        for each in range(2):
            thief = user(workers, each, other)
            thief.session = ann.session

            assert "ann app ['mcp']" == await called(workers.at(each, ann), "who")
            assert 404 == (await thief.send("ping").complete()).status
            assert 404 == (await thief.listen().complete()).status
            assert 404 == (await thief.delete()).status
            subject, client_id = TOKENS[other].subject, TOKENS[other].client_id
            assert f"{subject} {client_id} ['mcp']" == await called(workers.at(each, foreign), "who")
        assert 401 == (await workers.webs[1].ask("POST", "/mcp", [("Content-Type", "application/json")])).status


async def test_each_request_at_another_worker_has_the_scopes_of_its_own_token(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster, 2, auth=protect()) as workers:
        ann = workers.at(1, await handshake(user(workers, 0, "ann")))
        refused = await ann.call("write").complete()
        ann.token = "ann-writes"  # noqa: S105 (of a test)

        assert 403 == refused.status
        assert "written" == await called(ann, "write")


async def test_a_session_from_another_worker_hides_what_its_token_does_not_allow(
    cluster: Callable[[], Cluster],
) -> None:
    async with running(demo(), cluster, 2, auth=protect(hide=True)) as workers:
        ann = workers.at(1, await handshake(user(workers, 0, "ann")))
        names = [each["name"] for each in (await ann.result("tools/list"))["tools"]]
        ann.token = "ann-writes"  # noqa: S105 (of a test)

        assert ["who", "ask"] == names
        assert "write" in [each["name"] for each in (await ann.result("tools/list"))["tools"]]


async def test_a_relayed_retry_has_the_access_of_its_token(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster, 2, auth=protect()) as workers:
        ann = user(workers, 0, "ann", STATELESS, '{"elicitation":{"form":{}}}')
        asked = (await ann.call("ask").messages())[-1]["result"]
        (key,) = asked["inputRequests"]
        answers = f'"inputResponses":{{"{key}":{{"action":"decline"}}}},"requestState":"{asked["requestState"]}"'
        params = f'"name":"ask","arguments":{{}},{answers}'
        bob = user(workers, 1, "bob", STATELESS, ann.capabilities)
        refused = (await bob.send("tools/call", params).messages())[-1]
        said = (await workers.at(1, ann).send("tools/call", params).messages())[-1]

    assert "error" in refused
    assert "decline ann a@example.com" == said["result"]["content"][0]["text"]


@pytest.mark.slow
async def test_a_relayed_stream_ends_with_its_token(cluster: Callable[[], Cluster]) -> None:
    async def verify(value: str) -> Access | None:
        if value != "short":
            return TOKENS.get(value)
        end = time.time() + 1
        return Access(subject="ann", client_id="app", issuer=ISSUER, scopes=frozenset({"mcp"}), expires_at=end)

    async with running(demo(), cluster, 2, auth=protect(verify=verify)) as workers:
        ann = workers.at(1, await handshake(user(workers, 0, "ann")))
        ann.token = "short"  # noqa: S105 (of a test)
        stream = await ann.listen().begun()

        assert 200 == stream.status
        with anyio.fail_after(PATIENCE_SECONDS):
            await stream.complete()


async def test_no_token_gets_to_redis() -> None:
    class Watched(MemoryCluster):
        seen = b""

        async def send(self, channel: str, message: bytes) -> int:
            Watched.seen += message
            return await super().send(channel, message)

    secret = "b25seS1vbmNl"  # noqa: S105 (of a test)

    async def verify(value: str) -> Access | None:
        return TOKENS["ann"] if value == secret else None

    shared = Watched()
    async with running(demo(), lambda: shared, 2, auth=protect(verify=verify)) as workers:
        ann = workers.at(1, await handshake(user(workers, 0, secret)))
        await copy.copy(ann).listen().begun()

    assert b"a@example.com" in Watched.seen  # the GET was relayed
    assert secret.encode() not in Watched.seen


def test_claims_of_any_type_can_be_passed_on() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    found = decode_access(encode_access(Access(subject="ann", claims={"a": Odd(), "n": {"x": [1]}})))

    assert {"a": "odd", "n": {"x": [1]}} == found.claims
