"""A server asks a client without tasks for a task, or asks it something in a task of its own."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import spec
from tests.specification.client.scripted_server import opened

pytestmark = pytest.mark.anyio

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 10}


def fill_in(*_: Any) -> models.ElicitResult:
    return models.ElicitResult(action="accept", content={})


def sample(*_: Any) -> models.CreateMessageResult:
    return models.CreateMessageResult(role="assistant", content=models.TextContent(text="So."), model="m")


@spec("2025-11-25", "basic/utilities/tasks#task-support-and-handling", "a5b3131d")
@pytest.mark.parametrize(("method", "params"), [("elicitation/create", FORM), ("sampling/createMessage", SAMPLE)])
async def test_a_request_that_wants_a_task_is_answered_as_any_other(method: str, params: dict[str, Any]) -> None:
    async with opened("2025-11-25", elicit=fill_in, sample=sample) as own:
        plain = await own.wire.ask(1, method, params)
        with_task = await own.wire.ask(2, method, {**params, "task": {"ttl": 60000}})

    assert plain["result"] == with_task["result"]
    assert "task" not in with_task["result"]


# --- requests that belong to a task of the server

RELATED = "io.modelcontextprotocol/related-task"
NAMED = b'"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}'
ANSWERS = [
    ("ping", {}, b""),
    ("roots/list", {}, b'"roots":[{"uri":"file:///a"}]'),
    ("elicitation/create", FORM, b'"action":"accept","content":{}'),
    ("sampling/createMessage", SAMPLE, b'"content":{"type":"text","text":"So."},"model":"m","role":"assistant"'),
]


async def answer_of(revision: str, method: str, params: dict[str, Any], meta: object) -> bytes:
    roots = [models.Root(uri="file:///a")]
    async with opened(revision, elicit=fill_in, sample=sample, roots=roots) as own:
        await own.wire.ask(1, method, {**params, "_meta": meta})
        return own.wire.raw[-1]


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
@pytest.mark.parametrize(("method", "params", "body"), ANSWERS)
async def test_the_answer_to_a_request_of_a_task_names_the_task(
    method: str, params: dict[str, Any], body: bytes
) -> None:
    answer = await answer_of("2025-11-25", method, params, {"progressToken": 1, RELATED: {"taskId": "t1"}})

    whole = body + b"," + NAMED if body else NAMED
    assert b'{"jsonrpc":"2.0","id":1,"result":{' + whole + b"}}" == answer


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages")
@pytest.mark.parametrize(("method", "params", "body"), ANSWERS)
@pytest.mark.parametrize(
    ("revision", "meta"),
    [
        ("2025-06-18", {RELATED: {"taskId": "t1"}}),
        ("2025-11-25", {RELATED: {"taskId": 1}}),
        ("2025-11-25", {RELATED: "t1"}),
        ("2025-11-25", {}),
    ],
)
async def test_other_answers_name_no_task(
    method: str, params: dict[str, Any], body: bytes, revision: str, meta: object
) -> None:
    answer = await answer_of(revision, method, params, meta)

    assert b'{"jsonrpc":"2.0","id":1,"result":{' + body + b"}}" == answer
