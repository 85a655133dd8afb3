"""Request states that are forged, cut, stretched, brought elsewhere, or brought again and again.

Spec: 2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)".
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcpgen import Limits
from mcpgen.runtime.protocol.newest import NEWEST
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import Client, client

pytestmark = pytest.mark.anyio

CAN = '{"elicitation":{}}'
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


async def demanded(peer: Client, tool: str = "ask", arguments: str = "{}") -> tuple[str, str]:
    """Return the state and the key of a demand."""
    result = (await peer.call(tool, arguments))[-1]["result"]
    assert result["resultType"] == "input_required"
    return result["requestState"], next(iter(result["inputRequests"]))


async def retried(peer: Client, state: object, key: str, tool: str = "ask", arguments: str = "{}") -> list[Any]:
    answers = json.dumps({key: ACCEPTED})
    params = f'"name":"{tool}","arguments":{arguments},"requestState":{json.dumps(state)},"inputResponses":{answers}'
    return await peer.ask("tools/call", params)


async def is_refused(peer: Client, state: object, key: str, **more: Any) -> bool:
    said = await retried(peer, state, key, **more)
    assert len(said) == 1, said
    return "error" in said[0] and said[0]["error"]["code"] == -32602


@pytest.mark.slow
async def test_a_state_with_any_character_changed_is_refused() -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        state, key = await demanded(peer)
        for index, letter in enumerate(state):
            forged = state[:index] + ("A" if letter != "A" else "B") + state[index + 1 :]
            assert await is_refused(peer, forged, key), index

        assert "accept" in json.dumps(await retried(peer, state, key))


@pytest.mark.slow
async def test_a_state_that_is_cut_or_stretched_is_refused() -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        state, key = await demanded(peer)
        changed = [state[:length] for length in range(len(state))]
        changed += [state[length:] for length in range(1, len(state))]
        changed += [state + each for each in ("A", "=", "==", "\n", " ", "\x00", "é", state, "." + state)]
        changed += ["\n" + state, state.replace("-", "+").replace("_", "/") + "=", state.swapcase(), state[::-1]]
        changed += ["", "💥" * 1000, "A" * 100_000, "A" * 3_000_000]
        for each in changed:
            assert await is_refused(peer, each, key), each[:100]

        assert "accept" in json.dumps(await retried(peer, state, key))


async def test_what_was_sealed_cannot_be_sealed_anew_without_the_key() -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        state, key = await demanded(peer)
        raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
        for content in (b'{"own":"x"}', b'{"token":"x"}', b'{"answers":{}}', b"", b"\x00" * 8):
            forged = base64.urlsafe_b64encode(raw[:9] + content + raw[-32:]).rstrip(b"=").decode()
            assert await is_refused(peer, forged, key)
        later = base64.urlsafe_b64encode(raw[:1] + b"\xff" * 8 + raw[9:]).rstrip(b"=").decode()

        assert await is_refused(peer, later, key)


@pytest.mark.parametrize("state", [1, True, [], {}, {"a": 1}, ["x"]])
async def test_what_is_no_text_is_no_state(state: object) -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        _, key = await demanded(peer)

        assert await is_refused(peer, state, key)


async def test_null_is_no_state_and_no_answer() -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        _, key = await demanded(peer)
        (without_state,) = await retried(peer, None, key)
        state = without_state["result"]["requestState"]
        params = f'"name":"ask","arguments":{{}},"requestState":"{state}","inputResponses":'
        (without_answers,) = await peer.ask("tools/call", params + "null")
        state = without_answers["result"]["requestState"]
        (without_answer,) = await peer.ask("tools/call", params + f'{{"{key}":null}}')

    assert ["input_required"] * 3 == [
        each["result"]["resultType"] for each in (without_state, without_answers, without_answer)
    ]


async def test_a_strict_server_refuses_null_as_a_state_and_as_an_answer() -> None:
    async with client(Guest(strict=True).server, NEWEST, CAN) as peer:
        state, key = await demanded(peer)
        assert await is_refused(peer, None, key)
        for answers in ("null", f'{{"{key}":null}}'):
            said = await peer.ask(
                "tools/call", f'"name":"ask","arguments":{{}},"requestState":"{state}","inputResponses":{answers}'
            )
            assert -32602 == said[0]["error"]["code"], answers

        assert "accept" in json.dumps(await retried(peer, state, key))


async def test_a_state_is_worth_nothing_for_another_request() -> None:
    guest = Guest()
    async with client(guest.server, NEWEST, CAN) as peer:
        state, key = await demanded(peer, "ask_often", '{"times":1}')

        assert await is_refused(peer, state, key, tool="ask")
        assert await is_refused(peer, state, key, tool="ask_often", arguments='{"times":2}')
        assert await is_refused(peer, state, key, tool="ask_often", arguments='{"times":1.0}')
        assert await is_refused(peer, state, key, tool="ask_often", arguments='{"times":1,"times":1}')
        for method in ("prompts/get", "resources/read"):
            said = await peer.ask(method, f'"name":"ask_often","uri":"fail://x","requestState":"{state}"')
            assert -32602 == said[0]["error"]["code"]
        again = await retried(peer, state, key, tool="ask_often", arguments=' { "times" : 1 } ')
        assert "enough" in json.dumps(again)


async def test_a_state_of_another_server_is_worth_nothing() -> None:
    async with (
        client(Guest().server, NEWEST, CAN) as one,
        client(Guest().server, NEWEST, CAN) as other,
    ):
        state, key = await demanded(one)

        assert await is_refused(other, state, key)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_in_a_session_a_state_means_nothing(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, NEWEST, CAN) as modern, client(guest.server, revision) as older:
        state, _ = await demanded(modern)
        said = await older.ask("tools/call", f'"name":"echo","requestState":"{state}","arguments":{{"text":"x"}}')

        assert "x" == said[0]["result"]["content"][0]["text"]
        assert 1 == len(guest.server._engine.parked)


async def test_a_state_that_is_brought_a_hundred_times_runs_its_handler_once() -> None:
    guest = Guest()
    async with client(guest.server, NEWEST, CAN) as peer:
        state, key = await demanded(peer, "slow")
        for _ in range(100):
            assert [] == await retried(peer, state, key, tool="slow")
        assert 1 == guest.waiting
        guest.gate.set()
        said = await peer.wire.rest()

        assert list(range(2, 102)) == [each["id"] for each in said]
        assert {"waited"} == {each["result"]["content"][0]["text"] for each in said}


async def test_no_more_retries_wait_for_one_handler_than_requests_may_be_open() -> None:
    guest = Guest(limits=Limits(max_in_flight=5))
    async with client(guest.server, NEWEST, CAN) as peer:
        state, key = await demanded(peer, "slow")
        said = [each for _ in range(9) for each in await retried(peer, state, key, tool="slow")]

        assert [-32603] * 4 == [each["error"]["code"] for each in said]


async def test_answers_of_any_shape_are_no_harm() -> None:
    async with client(Guest().server, NEWEST, CAN) as peer:
        state, key = await demanded(peer)
        for answers in (
            "[]",
            "1",
            '"x"',
            f'{{"{key}":[]}}',
            f'{{"{key}":{{}}}}',
            f'{{"{key}":{{"action":"x"}}}}',
            f'{{"{key}":{{"action":"accept","content":[]}}}}',
            f'{{"{key}":{{"action":"accept","content":{{"name":{{}}}}}}}}',
            f'{{"{key}":{{"roots":[]}}}}',
        ):
            said = await peer.ask(
                "tools/call", f'"name":"ask","arguments":{{}},"requestState":"{state}","inputResponses":{answers}'
            )
            assert -32602 == said[0]["error"]["code"], answers

        assert "accept" in json.dumps(await retried(peer, state, key))
