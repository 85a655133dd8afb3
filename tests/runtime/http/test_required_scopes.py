"""The scopes that a message needs, which are found without keeping other clients waiting."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server.auth.required_scopes import refuse_scopes, required_scopes
from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Request
from mcpgen.runtime.server.fair_turns import FairTurns
from tests.turns import counted_turns

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import Batch, Malformed, Message

pytestmark = pytest.mark.anyio

LARGE = "1e400"  # as a number, a decoder of any JSON refuses it; types skip it in a member that they do not know


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def decoded(message: Any) -> Message | Batch | Malformed:
    return envelope.decode(json.dumps(message).replace(f'"{LARGE}"', LARGE).encode())


async def asked(message: Any, max_uris: int = 1000) -> list[str]:
    """Return the names whose scopes are asked for."""
    found: list[str] = []

    def scopes(_method: str, name: str) -> tuple[str, ...]:
        found.append(name)
        return ("admin",)

    needed = await required_scopes(scopes, decoded(message), max_uris=max_uris)
    assert needed == ({"admin"} if found else set())
    return found


async def test_the_uris_of_a_subscription_that_is_refused_anyway_are_not_matched() -> None:
    uris = [f"note://{number}" for number in range(4)]
    filters = {"resourceSubscriptions": [*uris, uris[0]]}

    assert uris == await asked(request("subscriptions/listen", notifications=filters), max_uris=4)
    assert [""] == await asked(request("subscriptions/listen", notifications=filters), max_uris=3)
    # A read has no such filter: its own URI counts, and the others cost nothing.
    assert ["adm://one"] == await asked(request("resources/read", uri="adm://one", notifications=filters))


@pytest.mark.parametrize(
    "message",
    [
        request("subscriptions/listen", notifications={"resourceSubscriptions": [f"note://{n}" for n in range(800)]}),
        [request("resources/read", uri=f"note://{number}") for number in range(800)],
    ],
    ids=["subscription", "batch"],
)
async def test_many_uris_are_matched_in_several_turns(message: Any) -> None:
    async with counted_turns() as turns:
        assert 800 == len(await asked(message))

    assert turns.count >= 40


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # elsewhere, clients do not share turns
async def test_many_messages_with_many_uris_share_the_turns_of_the_event_loop() -> None:
    uris = [f"adm://{number}" for number in range(40)]
    message = decoded(request("subscriptions/listen", notifications={"resourceSubscriptions": uris}))
    now, calls, most = 0.0, 0, 0

    def find(_method: str, _name: str) -> tuple[str, ...]:
        nonlocal now, calls
        now, calls = now + 0.01, calls + 1
        return ()

    async def watch() -> None:
        nonlocal calls, most
        while True:
            await anyio.lowlevel.checkpoint()
            most, calls = max(most, calls), 0

    send: Any = None
    state: Any = SimpleNamespace(
        engine=SimpleNamespace(
            handlers=SimpleNamespace(scopes=find),
            limits=Limits(),
            tasks=None,
            turns=FairTurns(lambda: now),
        ),
        tokens=None,
    )
    async with anyio.create_task_group() as watcher:
        watcher.start_soon(watch)
        async with anyio.create_task_group() as group:
            for number in range(16):
                client: Any = SimpleNamespace(owner=f"address {number}", access=None)
                group.start_soon(refuse_scopes, state, client, send, message)
        watcher.cancel_scope.cancel()

    # Each message begins with three URIs. After that, a turn takes four of one message, and of others for 20 ms.
    assert most <= 3 * 16


@pytest.mark.parametrize("member", ["name", "uri", "ref", "taskId", "notifications"])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "adm://one"}),
        ("completion/complete", {"ref": {"uri": "adm://one"}}),
        ("tasks/get", {"taskId": "adm://one"}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["adm://one"]}}),
    ],
)
async def test_a_member_that_cannot_be_read_hides_no_name(method: str, params: dict[str, Any], member: str) -> None:
    assert ["adm://one"] == await asked(request(method, **({member: LARGE} | params)))
    inner = {key: {**value, "name": LARGE} if isinstance(value, dict) else value for key, value in params.items()}
    assert ["adm://one"] == await asked(request(method, **inner))


async def test_items_that_cannot_be_read_hide_no_uri() -> None:
    filters = {"resourceSubscriptions": [LARGE, "adm://one", None]}
    assert ["adm://one"] == await asked(request("subscriptions/listen", notifications=filters))


async def test_a_request_is_refused_if_its_params_are_nested_too_deeply_to_find_its_scopes() -> None:
    def nested(depth: int) -> Message | Batch | Malformed:
        deep = json.dumps(request("resources/read", uri="adm://one", more="?"))
        return envelope.decode(deep.replace('"?"', "[" * depth + "]" * depth).encode())

    async def needed(message: Any, frames: int) -> frozenset[str]:
        if frames:
            return await needed(message, frames - 1)
        return await required_scopes(lambda _method, name: [name], message, max_uris=1)

    # How deep a decoder gets depends on the stack around it. So the deepest that is a message may be too deep later.
    accepted, too_deep = 1, 1_000_000
    while too_deep - accepted > 1:
        depth = (accepted + too_deep) // 2
        if isinstance(nested(depth), Request):
            accepted = depth
        else:
            too_deep = depth
    refused = 0
    for depth in range(accepted - 20, accepted + 1):
        try:
            assert {"adm://one"} == await needed(nested(depth), frames=10)
        except RequestError:
            refused += 1
    assert 0 < refused < 20
