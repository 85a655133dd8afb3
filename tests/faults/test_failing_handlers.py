"""Handlers that raise, hang, do not let themselves be cancelled, or return what cannot be sent."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from mcpgen import Limits, Server
from tests.faults.event_loop_turns import answers, until
from tests.faults.faulty_handlers import FAILURES, SECRET, VALUES, Guest
from tests.specification.server.revision_client import client

pytestmark = pytest.mark.anyio

# In this process a KeyboardInterrupt is whoever runs the tests.
RAISED = sorted(set(FAILURES) - {"KeyboardInterrupt"})


def told(messages: list[Any]) -> str:
    return json.dumps(messages)


@pytest.mark.parametrize("when", ["at once", "later", "in a group"])
@pytest.mark.parametrize("what", RAISED)
@pytest.mark.slow
async def test_whatever_a_tool_raises_is_answered_and_tells_nothing(what: str, when: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.call("throw", json.dumps({"what": what, "when": when}))

        assert [1] == [each["id"] for each in said]
        assert "error" in said[0] or said[0]["result"]["isError"]
        assert not any(each in told(said) for each in (SECRET, "hunter2", "/srv", "Traceback", "faulty_handlers.py"))
        assert [2] == [each["id"] for each in await peer.call("echo")]


@pytest.mark.parametrize("what", RAISED)
async def test_whatever_a_tool_in_a_thread_raises_is_answered(what: str) -> None:
    async with client(Guest().server, "2025-11-25") as peer:
        peer.wire.send(peer.request(1, "tools/call", f'"name":"throw_in_thread","arguments":{{"what":"{what}"}}'))
        said = await answers(peer.wire, 1)

        assert [1] == [each["id"] for each in said]
        assert "hunter2" not in told(said)


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.slow
async def test_whatever_a_resource_or_a_prompt_raises_is_answered_and_tells_nothing(what: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.ask("resources/read", f'"uri":"fail://{what}"')
        said += await peer.ask("prompts/get", f'"name":"review","arguments":{{"code":"{what}"}}')

        assert [1, 2] == [each["id"] for each in said]
        assert {-32603} == {each["error"]["code"] for each in said}
        assert "hunter2" not in told(said)


@pytest.mark.parametrize("tool", ["value", "structured"])
@pytest.mark.parametrize("what", VALUES)
@pytest.mark.slow
async def test_what_cannot_be_sent_is_an_error_and_no_broken_message(what: str, tool: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.call(tool, json.dumps({"what": what}))

        assert [1] == [each["id"] for each in said]  # that it is valid JSON, and valid, the recorder knows
        assert [2] == [each["id"] for each in await peer.call("echo")]


@pytest.mark.slow
async def test_a_result_may_be_larger_than_any_message_that_is_read(revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        result = await peer.result("tools/call", '"name":"big","arguments":{"size":10000000}')

        assert 10_000_000 == len(result["content"][0]["text"])


async def test_a_name_with_control_characters_is_told_as_json_and_never_logged_as_it_is(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with client(Guest().server, revision) as peer:
        name = "a\nERROR root: forged\r\x1b[31m\x00\x7f\u2028"
        text = json.dumps(name)
        said = await peer.ask("tools/call", f'"name":{text}')
        said += await peer.ask("prompts/get", f'"name":{text}')
        said += await peer.ask("resources/read", f'"uri":{text}')

        assert [1, 2, 3] == [each["id"] for each in said]
        assert not [each for each in caplog.messages if "forged" in each and "\n" in each]


async def test_a_handler_that_hangs_stops_nobody_else(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        assert [] == await peer.call("wait")
        assert [] == await peer.call("stubborn")
        assert [3] == [each["id"] for each in await peer.call("echo")]
        guest.gate.set()

        assert [1, 2] == [each["id"] for each in await peer.wire.rest()]


async def test_a_handler_that_ignores_its_cancellation_is_not_heard_of_again(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        assert [] == await peer.call("stubborn")
        cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        assert [] == await peer.wire.say(cancelled)
        assert [2] == [each["id"] for each in await peer.call("echo")]
        guest.gate.set()

        assert [] == await peer.wire.rest()
        await until(lambda: not guest.waiting)


async def test_a_middleware_that_raises_is_answered(revision: str) -> None:
    guest = Guest()

    @guest.server.middleware
    async def break_all(params: Any, context: Any, call_next: Any) -> Any:
        del params, context, call_next
        raise ValueError(SECRET)

    async with client(guest.server, revision) as peer:
        said = await peer.call("echo")

        assert -32603 == said[0]["error"]["code"]
        assert "hunter2" not in told(said)


async def test_a_capability_that_cannot_be_told_fails_one_request(revision: str) -> None:
    """What an author's object says about itself is asked within a request."""
    guest = Guest()
    async with client(guest.server, revision) as peer:
        guest.server._engine.handlers.refresh()
        guest.server._engine.handlers._handlers.capabilities = _broken
        said = await peer.ask("tools/list")

        assert -32603 == said[0]["error"]["code"]
        assert "hunter2" not in told(said)
        del guest.server._engine.handlers._handlers.capabilities
        assert "tools" in await peer.result("tools/list")


def _broken() -> Any:
    raise ValueError(SECRET)


async def test_no_more_requests_are_served_at_once_than_may(revision: str) -> None:
    guest = Guest(limits=Limits(max_in_flight=3))
    async with client(guest.server, revision) as peer:
        said = [each for _ in range(5) for each in await peer.call("wait")]

        assert [(4, -32603), (5, -32603)] == [(each["id"], each["error"]["code"]) for each in said]
        guest.gate.set()
        assert [1, 2, 3] == [each["id"] for each in await peer.wire.rest()]


async def test_a_server_without_anything_answers_what_it_has_not(revision: str) -> None:
    async with client(Server("empty", version="1"), revision) as peer:
        assert -32601 == (await peer.error("tools/call", '"name":"x"'))["code"]
