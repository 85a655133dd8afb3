"""Prompts: what is listed, what is got, and what each revision makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.citation import LABELS, everywhere, from_every_home, spec, with_handshakes
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "server/prompts#capabilities", "0172db09")
@spec("2024-11-05", "server/prompts#listing-prompts")
@spec("2025-11-25", "server/prompts#listing-prompts")
@spec("2026-07-28", "server/prompts#listing-prompts")
@everywhere
@from_every_home
async def test_prompts_are_listed_with_their_arguments(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result("prompts/list")

    assert [{"name": "review", "arguments": [{"name": "code", "required": True}]}] == result["prompts"]


@spec("2024-11-05", "server/prompts#getting-a-prompt")
@spec("2025-11-25", "server/prompts#getting-a-prompt")
@spec("2026-07-28", "server/prompts#getting-a-prompt")
@everywhere
@from_every_home
async def test_a_prompt_is_filled_in_with_its_arguments(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result("prompts/get", '"name":"review","arguments":{"code":"def f(): pass"}')

    assert [{"role": "user", "content": {"type": "text", "text": "Review def f(): pass"}}] == result["messages"]


@spec("2024-11-05", "server/prompts#error-handling")
@spec("2025-03-26", "server/prompts#error-handling")
@spec("2025-06-18", "server/prompts#error-handling")
@spec("2025-11-25", "server/prompts#error-handling")
@spec("2026-07-28", "server/prompts#error-handling", "b361272e")
@everywhere
@from_every_home
async def test_an_unknown_prompt_has_invalid_params(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        assert -32602 == (await peer.error("prompts/get", '"name":"nobody"'))["code"]


@spec("2025-11-25", "server/prompts#error-handling", "bbd6e55b")
@everywhere
async def test_a_prompt_that_fails_is_an_internal_error(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        error = await peer.error("prompts/get", '"name":"review","arguments":{}')  # the handler raises KeyError

    assert -32603 == error["code"]


@spec("2026-07-28", "server/prompts#embedded-resources", "38511e5e")
@spec("2024-11-05", "server/prompts#promptmessage")
@spec("2025-03-26", "server/prompts#promptmessage")
@spec("2025-11-25", "server/prompts#promptmessage")
@spec("2026-07-28", "server/prompts#promptmessage")
@everywhere
@pytest.mark.parametrize(
    "content",
    [
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "note://a", "name": "a"},
        {"type": "resource", "resource": {"uri": "note://a", "mimeType": "text/plain", "text": "A"}},
        {"type": "resource", "resource": {"uri": "note://a", "mimeType": "application/octet-stream", "blob": "AAEC"}},
    ],
)
async def test_every_kind_of_content_reaches_every_revision_in_its_terms(content: Any, revision: str) -> None:
    """The recorder judges what is sent; nothing may be lost altogether."""

    async def get_prompt(own: Any, params: Any, context: Any) -> Any:
        del params, context
        return own.made("GetPromptResult", {"messages": [{"role": "assistant", "content": content}]})

    async with client(server(LABELS[-1], get_prompt=get_prompt), revision) as peer:
        result = await peer.result("prompts/get", '"name":"any"')

    assert ["assistant"] == [each["role"] for each in result["messages"]]


@spec("2024-11-05", "server/prompts#list-changed-notification")
@spec("2025-11-25", "server/prompts#list-changed-notification", "58ea9576")
@with_handshakes
@from_every_home
async def test_a_session_is_told_that_the_prompts_have_changed(native_revision: str, revision: str) -> None:
    made = server(native_revision)
    async with client(made, revision) as peer:
        await made.prompts_changed()

        assert [{"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}] == await peer.wire.rest()


@spec("2026-07-28", "server/prompts#capabilities", "2a660739")
@everywhere
async def test_the_prompts_are_the_same_for_every_connection_and_after_any_request(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as first, client(made, LABELS[0]) as other:
        before = await first.result("prompts/list")
        await other.result("prompts/get", '"name":"review","arguments":{"code":"x"}')
        await first.call("echo")

        assert before == await first.result("prompts/list")
