"""What a server asks its client within a session, and where the answers go."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.server.context import Context  # noqa: TC001 (the server looks at it)
from tests.specification.citation import since
from tests.specification.http_server.http_clients import STATELESS, caller, cancellation, joined
from tests.specification.http_server.http_site import WORKERS
from tests.specification.http_server.revision_sets import on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

ABLE = '{"elicitation":{},"roots":{},"sampling":{}}'
with_forms = pytest.mark.parametrize("revision", since("2025-06-18", "2026-07-28"))


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@on_both_loops
@pytest.mark.parametrize(
    ("tool", "method", "result", "text"),
    [
        ("roots", "roots/list", '{"roots":[{"uri":"file:///a"}]}', "file:///a"),
        (
            "sample",
            "sampling/createMessage",
            '{"role":"assistant","content":{"type":"text","text":"Because."},"model":"m"}',
            "m: Because.",
        ),
    ],
)
async def test_a_question_comes_on_the_stream_of_its_request_and_is_answered_by_a_post(
    tool: str, method: str, result: str, text: str, revision: str
) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        session = await peer.listen().begun()
        stream = peer.call(tool, identity=5)
        question = await stream.message()
        accepted = await peer.answer(question, result)
        (said,) = await stream.messages()

    assert method == question["method"]
    assert (202, b"") == (accepted.status, accepted.body)
    assert (5, text) == (said["id"], said["result"]["content"][0]["text"])
    assert [] == [each for each in session.pending if each.data]


@spec("2025-06-18", "client/elicitation#protocol-messages")
@spec("2025-11-25", "client/elicitation#protocol-messages")
@with_forms
async def test_a_form_is_asked_for_on_the_stream_of_its_request(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        stream = peer.call("ask", identity=5)
        question = await stream.message()
        await peer.answer(question, '{"action":"accept","content":{"name":"octocat"}}')
        (said,) = await stream.messages()

    assert "elicitation/create" == question["method"]
    assert "octocat" in said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
async def test_a_request_may_ask_several_times_and_tell_between(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        stream = peer.call("ask_twice", meta='"progressToken":"p"', identity=5)
        first = await stream.message()
        await peer.answer(first, '{"roots":[]}')
        told, second = await stream.message(), await stream.message()
        await peer.answer(second, '{"roots":[{"uri":"file:///a"}]}')
        (said,) = await stream.messages()

    assert first["id"] != second["id"]
    assert "notifications/progress" == told["method"]
    assert "0 1" == said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
async def test_an_error_answers_a_question_too(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        stream = peer.call("roots", identity=5)
        question = await stream.message()
        body = f'{{"jsonrpc":"2.0","id":{question["id"]!r},"error":{{"code":-1,"message":"no"}}}}'.replace("'", '"')
        accepted = await peer.post(body.encode()).complete()
        (said,) = await stream.messages()

    assert 202 == accepted.status
    assert 5 == said["id"]


@spec("2025-11-25", "client/elicitation#statefulness", "17c77e5f")
@spec("2025-11-25", "client/elicitation#security-considerations", "e6c87f74")
@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_another_session_cannot_answer_a_question(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        other = await joined(peer.web, revision, ABLE)
        stream = peer.call("roots", identity=5)
        question = await stream.message()
        await other.answer(question, '{"roots":[{"uri":"file:///forged"}]}')
        await peer.web.quiet()
        assert not stream.is_ended

        await peer.answer(question, '{"roots":[{"uri":"file:///true"}]}')
        (said,) = await stream.messages()

    assert "file:///true" == said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_a_question_that_was_lost_is_asked_again_under_its_id_when_the_client_comes_back(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        stream = peer.call("ask_twice", meta='"progressToken":"p"', identity=5)
        question = await stream.seen()
        first = json.loads(question.data)
        stream.leave()
        await stream.returned()
        await peer.answer(first, '{"roots":[]}')
        await peer.web.quiet()
        again = peer.listen(question.event_id)
        told, second = await again.message(), await again.message()
        await peer.answer(second, '{"roots":[]}')
        (said,) = await again.messages()

    assert ("notifications/progress", "roots/list", 5) == (told["method"], second["method"], said["id"])


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@on_both_loops
async def test_who_left_before_anything_was_said_is_asked_on_the_session_s_own_stream(revision: str) -> None:
    own = Server("demo", version="1")
    gate = anyio.Event()

    @own.tool
    async def later(ctx: Context) -> str:
        await gate.wait()
        return str(len(await ctx.roots()))

    async with caller(own, revision, ABLE) as peer:
        session = await peer.listen().begun()
        lost = peer.call("later", identity=5)
        await peer.web.quiet()
        lost.leave()
        await lost.returned()
        gate.set()

        assert "roots/list" == (await session.message())["method"]


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
async def test_a_question_is_taken_back_when_its_request_is_cancelled(revision: str) -> None:
    async with caller(demo(), revision, ABLE) as peer:
        session = await peer.listen().begun()
        stream = peer.call("roots", identity=5)
        question = await stream.message()
        await peer.tell(cancellation(5))
        await stream.complete()
        await peer.web.quiet()
        told = [json.loads(each.data) for each in (*stream.pending, *session.pending) if each.data]

    assert [question["id"]] == [each["params"]["requestId"] for each in told]


@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
async def test_what_is_asked_outside_of_any_request_comes_on_the_session_s_own_stream(revision: str) -> None:
    """A client whose roots have changed is asked for them: no request of its is open."""
    found: list[Any] = []

    async def roots_changed(own: Any, params: Any, context: Any) -> None:
        found.append(await context.roots())

    own = behaviour("2025-11-25", overrides={"roots_list_changed": roots_changed})
    async with caller(demo(own, native_revision="2025-11-25"), revision, '{"roots":{"listChanged":true}}') as peer:
        stream = await peer.listen().begun()
        await peer.tell(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')
        question = await stream.message()
        await peer.answer(question, '{"roots":[{"uri":"file:///b"}]}')
        await peer.web.quiet()

    assert "roots/list" == question["method"]
    assert [["file:///b"]] == [[each.uri for each in one] for one in found]


@spec("2025-11-25", "basic/utilities/tasks#input-required-status", "b2c7832d")
@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server", "0c79357f")
@pytest.mark.skipif(WORKERS > 1, reason="workers refuse tasks in memory, and share no store here")
@pytest.mark.parametrize("asked_first", [True, False])
async def test_a_task_asks_on_the_stream_of_its_result(*, asked_first: bool) -> None:
    """A client that opens no GET stream opens this one, before or after the status is ``input_required``."""
    server, gate = Server("bakery", version="1"), anyio.Event()

    @server.tool(task=True)
    async def bake(ctx: Context) -> str:
        await gate.wait()
        return (await ctx.elicit("Which bread?", {"properties": {"name": {"type": "string"}}})).action

    async with caller(server, "2025-11-25", ABLE) as peer:
        session = None if asked_first else await peer.listen().begun()
        task = (await peer.result("tools/call", '"name":"bake","arguments":{},"task":{}'))["task"]["taskId"]
        if asked_first:
            gate.set()
            await peer.web.quiet()
        stream = peer.send("tasks/result", f'"taskId":"{task}"')
        await peer.web.quiet()
        gate.set()
        question = await stream.message()
        await peer.answer(question, '{"action":"decline"}')
        (said,) = await stream.messages()
        told = [] if session is None else [json.loads(each.data)["method"] for each in session.pending if each.data]

    assert "elicitation/create" == question["method"]
    assert "decline" == said["result"]["content"][0]["text"]
    assert {"notifications/tasks/status"} >= set(told)


@spec("2025-11-25", "basic/utilities/tasks#input-required-status", "b2c7832d")
@spec("2025-11-25", "basic/transports#resumability-and-redelivery", "ab8b5b45")
@pytest.mark.skipif(WORKERS > 1, reason="workers refuse tasks in memory, and share no store here")
async def test_a_task_asks_on_the_stream_of_its_result_once_a_get_stream_has_broken() -> None:
    """A client need not open its GET stream again after a proxy has ended it. If it does, it is asked once."""
    server = Server("bakery", version="1")

    @server.tool(task=True)
    async def bake(ctx: Context) -> str:
        return (await ctx.elicit("Which bread?", {"properties": {"name": {"type": "string"}}})).action

    async with caller(server, "2025-11-25", ABLE) as peer:
        broken = await peer.listen().begun()
        last = (await broken.event()).event_id
        await peer.web.leave(broken)
        task = (await peer.result("tools/call", '"name":"bake","arguments":{},"task":{}'))["task"]["taskId"]
        await peer.web.quiet()
        stream = peer.send("tasks/result", f'"taskId":"{task}"')
        question = await stream.message()
        again = await peer.listen(last).begun()
        await peer.answer(question, '{"action":"decline"}')
        (said,) = await stream.messages()
        await peer.web.quiet()

    assert "elicitation/create" == question["method"]
    assert "decline" == said["result"]["content"][0]["text"]
    assert b"elicitation/create" not in again.body


@spec("2026-07-28", "basic/patterns/index", "ebc4a5b1")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages", "98daaae5")
async def test_a_stateless_stream_bears_no_questions() -> None:
    async with caller(demo(), STATELESS, ABLE) as peer:
        stream = peer.call("ask_twice", meta='"progressToken":"p"', identity=5)
        *told, said = await stream.messages()

    assert [] == [each for each in told if "id" in each]
    assert "input_required" == said["result"]["resultType"]


@spec("2025-11-25", "basic/lifecycle#operation")
@with_sessions
async def test_a_client_is_not_asked_what_it_has_not_declared(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        (said,) = await peer.call("roots", identity=5).messages()

    assert 5 == said["id"]
    assert "error" in said or said["result"]["isError"]
