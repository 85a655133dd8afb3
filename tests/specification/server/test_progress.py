"""Progress of requests that ask for it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen.runtime.errors import UsageError
from tests.specification.citation import LABELS, everywhere, from_every_home, since, spec
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio


def told(said: list[Any]) -> list[Any]:
    return [each["params"] for each in said if each.get("method") == "notifications/progress"]


@spec("2025-03-26", "basic/utilities/progress#progress-flow")
@spec("2025-06-18", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow", "afb34230")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "bcd2ad89")
@pytest.mark.parametrize("revision", since("2025-03-26"))
@from_every_home
async def test_progress_is_told_under_the_token_and_only_as_long_as_it_grows(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.call("progress", meta='"progressToken":"abc123"')

    assert [
        {"progressToken": "abc123", "progress": 1, "total": 4, "message": "one"},
        {"progressToken": "abc123", "progress": 2.5},
    ] == told(said)


@spec("2024-11-05", "basic/utilities/progress#progress-flow", "afb34230")
@from_every_home
async def test_progress_has_no_message_in_the_first_revision(native_revision: str) -> None:
    async with client(server(native_revision), "2024-11-05") as peer:
        said = await peer.call("progress", meta='"progressToken":"abc123"')

    assert [
        {"progressToken": "abc123", "progress": 1, "total": 4},
        {"progressToken": "abc123", "progress": 2.5},
    ] == told(said)


@spec("2025-11-25", "basic/utilities/progress#behavior-requirements", "785cc2fe")
@spec("2024-11-05", "basic/utilities/progress#progress-flow", "ab68d903")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "d4a86662")
@everywhere
@pytest.mark.parametrize("token", ["0", "7", '""', '"7"', "-1"])
async def test_a_token_is_any_string_or_integer_and_comes_back_as_it_is(token: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        said = await peer.call("progress", meta=f'"progressToken":{token}')

    assert [f'"progressToken":{token}'.encode() in each for each in peer.wire.raw[-3:]] == [True, True, False]
    assert 2 == len(told(said))


@spec("2024-11-05", "basic/utilities/progress#behavior-requirements", "785cc2fe")
@spec("2026-07-28", "basic/patterns/progress#behavior-requirements", "e011da16")
@everywhere
async def test_a_request_without_a_token_is_told_of_no_progress(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.call("progress")

    assert "result" in said


@spec("2025-11-25", "basic/utilities/progress#behavior-requirements", "2b83acb9")
@spec("2026-07-28", "basic/patterns/progress#behavior-requirements", "782e355e")
@spec("2024-11-05", "basic/utilities/progress#implementation-notes")
@spec("2025-11-25", "basic/utilities/progress#implementation-notes", "c2bfdec0", "0c0b41d9")
@spec("2026-07-28", "basic/patterns/progress#implementation-notes", "6e5519e1", "1343b7ff")
@everywhere
async def test_progress_stops_with_the_answer(revision: str) -> None:
    kept: list[Any] = []

    async def keep(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        kept.append(context)
        return own.text("done")

    async with client(server(LABELS[-1], tools={"keep": keep}), revision) as peer:
        (said,) = await peer.call("keep", meta='"progressToken":1')
        await kept[0].progress(1)

        assert "result" in said
        assert [] == await peer.wire.rest()


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@everywhere
async def test_each_request_has_its_own_progress(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        said = await peer.wire.say(
            peer.request(1, "tools/call", '"name":"progress"', '"progressToken":"a"'),
            peer.request(2, "tools/call", '"name":"progress"', '"progressToken":"b"'),
        )

    for token in ("a", "b"):
        assert [1, 2.5] == [each["progress"] for each in told(said) if each["progressToken"] == token]


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@everywhere
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_what_is_no_number_in_json_is_no_progress(number: float, revision: str) -> None:
    refused: list[Exception] = []

    async def odd(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        try:
            await context.progress(number)
        except UsageError as error:
            refused.append(error)
        return own.text("done")

    async with client(server(LABELS[-1], tools={"odd": odd}), revision) as peer:
        (said,) = await peer.call("odd", meta='"progressToken":1')

    assert "result" in said
    assert 1 == len(refused)


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list", "resources/templates/list"])
@everywhere
async def test_any_request_may_give_a_token_and_nobody_has_to_use_it(method: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.ask(method, meta='"progressToken":1')

    assert "result" in said


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@everywhere
async def test_the_handler_sees_the_arguments_and_not_the_token(revision: str) -> None:
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision) as peer:
        await peer.call("echo", '{"text":"hi"}', meta='"progressToken":1')

    assert {"text": "hi"} == own.seen["tools/call"].arguments


@spec("2025-11-25", "basic/utilities/progress#progress-flow", "1a3be013")
async def test_two_open_requests_of_a_handler_have_two_tokens() -> None:
    from mcpgen.generated.v2025_11_25 import RequestParams, ServerMethods

    async def ask(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        found: list[str] = []

        async def once() -> None:
            try:
                await ServerMethods(context).list_roots(RequestParams(meta={"progressToken": "mine"}))
                found.append("answered")
            except UsageError as refused:
                found.append(str(refused))

        async with anyio.create_task_group() as group:
            group.start_soon(once)
            group.start_soon(once)
        await once()
        return own.text("; ".join(found))

    async with client(server("2025-11-25", tools={"ask": ask}), "2025-11-25", '{"roots":{}}') as peer:
        (first,) = await peer.call("ask")
        (second,) = await peer.answer(first, '{"roots":[]}')
        (said,) = await peer.answer(second, '{"roots":[]}')

    refused = "`_meta` has the progressToken 'mine', which another open request has; choose another"
    assert f"{refused}; answered; answered" == said["result"]["content"][0]["text"]
