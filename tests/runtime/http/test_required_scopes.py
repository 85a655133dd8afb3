"""The scopes that a message needs, which are found without keeping other clients waiting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.http.server.auth.required_scopes import required_scopes
from mcpgen.runtime.protocol import envelope

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import Batch, Malformed, Message

pytestmark = pytest.mark.anyio


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def decoded(message: Any) -> Message | Batch | Malformed:
    return envelope.decode(json.dumps(message).encode())


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
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        assert 800 == len(await asked(message))
        group.cancel_scope.cancel()

    assert turns >= 40
