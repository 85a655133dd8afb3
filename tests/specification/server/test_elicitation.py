"""Asking the user: forms, and pages to visit."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    everywhere,
    from_every_home,
    since,
    spec,
    without_handshakes,
)
from tests.specification.server.revision_client import client, lack
from tests.specification.server.revision_server import FORM, server

pytestmark = pytest.mark.anyio

BY_REQUEST = [each for each in since("2025-06-18") if each in HANDSHAKES]
by_request = pytest.mark.parametrize("revision", BY_REQUEST)
by_request_with_urls = pytest.mark.parametrize("revision", BY_REQUEST[1:])
ACCEPTED = '{"action":"accept","content":{"name":"octocat"}}'


@spec("2025-11-25", "client/elicitation#elicitation-requests", "e5725708")
@spec("2025-06-18", "client/elicitation#creating-elicitation-requests")
@spec("2025-11-25", "client/elicitation#form-mode-elicitation-requests", "a038acf6")
@by_request
@from_every_home
async def test_a_session_is_sent_a_form_by_a_request(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"elicitation":{}}') as peer:
        (asked,) = await peer.call("ask")
        (said,) = await peer.answer(asked, ACCEPTED)

    expected = {"message": "Who are you?", "requestedSchema": FORM}
    assert "elicitation/create" == asked["method"]
    assert expected == {key: each for key, each in asked["params"].items() if key != "mode"}
    assert "form" == asked["params"].get("mode", "form")
    assert [{"type": "text", "text": "accept {'name': 'octocat'}"}] == said["result"]["content"]


@spec("2026-07-28", "client/elicitation#elicitation-requests", "e5725708")
@spec("2026-07-28", "basic/patterns/mrtr", "852d87a7")
@spec("2026-07-28", "client/elicitation#form-mode-elicitation-requests", "a038acf6")
@without_handshakes
@from_every_home
@pytest.mark.parametrize("declared", ["{}", '{"form":{}}', '{"form":{},"url":{}}'])
async def test_a_stateless_client_is_sent_a_form_by_a_demand(
    declared: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision, f'{{"elicitation":{declared}}}') as peer:
        (demand,) = await peer.call("ask")
        ((key, asked),) = demand["result"]["inputRequests"].items()
        state = demand["result"]["requestState"]
        (said,) = await peer.ask(
            "tools/call",
            f'"name":"ask","arguments":{{}},"requestState":"{state}","inputResponses":{{"{key}":{ACCEPTED}}}',
        )

    assert ("elicitation/create", FORM) == (asked["method"], asked["params"]["requestedSchema"])
    assert [{"type": "text", "text": "accept {'name': 'octocat'}"}] == said["result"]["content"]


@spec("2025-06-18", "client/elicitation#response-actions")
@spec("2025-11-25", "client/elicitation#response-actions")
@by_request
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_decline_or_cancel(action: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"elicitation":{}}') as peer:
        (asked,) = await peer.call("ask")
        (said,) = await peer.answer(asked, f'{{"action":"{action}"}}')

    assert said["result"]["content"][0]["text"].startswith(action)


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "83cee9a4")
@spec("2025-06-18", "client/elicitation#capabilities")
@spec("2025-11-25", "client/elicitation#capabilities")
@spec("2026-07-28", "client/elicitation#capabilities")
@everywhere
@from_every_home
async def test_a_client_that_has_declared_no_elicitation_is_not_asked(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"roots":{}}') as peer:
        (form,) = await peer.call("ask")
        (url,) = await peer.call("ask_url")

    assert [-32021 if peer.is_stateless else True] * 2 == [lack(form), lack(url)]


@spec("2024-11-05", "basic/lifecycle#operation")
@pytest.mark.parametrize("revision", since("2024-11-05", "2025-06-18"))
@from_every_home
async def test_a_revision_without_elicitation_is_never_asked_whatever_a_client_declares(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision, '{"elicitation":{"form":{},"url":{}}}') as peer:
        (form,) = await peer.call("ask")
        (url,) = await peer.call("ask_url")

    assert [True, True] == [lack(form), lack(url)]


@spec("2025-11-25", "client/elicitation#capabilities")
@spec("2026-07-28", "client/elicitation#capabilities", "f912928b")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@from_every_home
async def test_a_mode_that_the_client_has_not_declared_is_not_used(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"elicitation":{"url":{}}}') as peer:
        (form,) = await peer.call("ask")
    async with client(server(native_revision), revision, '{"elicitation":{"form":{}}}') as peer:
        (url,) = await peer.call("ask_url")
    async with client(server(native_revision), revision, '{"elicitation":{}}') as peer:
        (also,) = await peer.call("ask_url")

    assert [-32021 if peer.is_stateless else True] * 3 == [lack(each) for each in (form, url, also)]


@spec("2025-11-25", "client/elicitation#url-mode-elicitation-requests", "cee39397")
@by_request_with_urls
@from_every_home
async def test_a_session_is_sent_to_a_page_by_a_request(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"elicitation":{"url":{}}}') as peer:
        (first,) = await peer.call("ask_url")
        (said,) = await peer.answer(first, '{"action":"accept"}')

    assert {"mode": "url", "message": "Please sign in.", "url": "https://example.com/in"} == {
        key: each for key, each in first["params"].items() if key != "elicitationId"
    }
    assert first["params"]["elicitationId"]
    assert [{"type": "text", "text": "accept"}] == said["result"]["content"]


@spec("2026-07-28", "client/elicitation#url-mode-elicitation-requests", "cee39397")
@without_handshakes
@from_every_home
async def test_a_stateless_client_is_sent_to_a_page_by_a_demand(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"elicitation":{"url":{}}}') as peer:
        (demand,) = await peer.call("ask_url")
        ((key, asked),) = demand["result"]["inputRequests"].items()
        state = demand["result"]["requestState"]
        (said,) = await peer.ask(
            "tools/call",
            f'"name":"ask_url","arguments":{{}},"requestState":"{state}","inputResponses":{{"{key}":{{"action":"accept"}}}}',
        )

    assert {"mode": "url", "message": "Please sign in.", "url": "https://example.com/in"} == asked["params"]
    assert [{"type": "text", "text": "accept"}] == said["result"]["content"]


@spec("2025-06-18", "client/elicitation#request-schema")
@spec("2025-11-25", "client/elicitation#requested-schema")
@by_request
async def test_a_form_may_have_fields_of_every_kind(revision: str) -> None:
    """The recorder holds what is sent against the revision: multiple choices and defaults came with 2025-11-25."""
    form = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "format": "email", "default": "a@b.c"},
            "number": {"type": "number", "minimum": 0.5, "default": 1},
            "integer": {"type": "integer", "maximum": 9, "default": 1},
            "flag": {"type": "boolean", "default": True},
            "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"},
            "one": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "several": {"type": "array", "minItems": 1, "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        },
    }

    async def ask(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        answer = await context.elicit("Fill in.", form)
        return own.text(str(answer.content))

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, '{"elicitation":{}}') as peer:
        (asked,) = await peer.call("ask")
        await peer.answer(asked, '{"action":"decline"}')

    assert set(form["properties"]) == set(asked["params"]["requestedSchema"]["properties"])


class Name(Struct):
    name: str


@spec("2025-06-18", "client/elicitation#security-considerations", "ba98ca37")
@spec("2025-11-25", "client/elicitation#form-mode-security", "47b543ea")
@by_request
@pytest.mark.parametrize(
    "result", ['{"action":"accept","content":{"name":7}}', '{"action":"accept","content":{}}', '{"action":"accept"}']
)
async def test_what_does_not_fit_the_type_that_a_handler_asked_for_does_not_reach_it(
    result: str, revision: str
) -> None:
    async def ask(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        return own.text(str((await context.elicit("Who are you?", Name)).content.name))

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, '{"elicitation":{}}') as peer:
        (asked,) = await peer.call("ask")
        (said,) = await peer.answer(asked, result)

    assert "error" in said


@spec("2025-11-25", "client/elicitation#error-handling", "c2f8e7ce")
@spec("2026-07-28", "basic/index#error-codes", "de25d4a3")
@spec("2025-11-25", "client/elicitation#url-elicitation-required-error")
@pytest.mark.parametrize("revision", since("2024-11-05"))
async def test_an_error_that_asks_for_a_page_is_sent_in_its_own_revision_alone(revision: str) -> None:
    from mcpgen.runtime.errors import RequestError

    page = {"mode": "url", "elicitationId": "1", "url": "https://example.com/in", "message": "Sign in."}

    async def locked(_own: Any, _arguments: dict[str, Any], _context: Any) -> Any:
        raise RequestError(-32042, "Sign in first.", {"elicitations": [page]})

    declared = '{"elicitation":{"form":{},"url":{}}}'
    async with client(server("2025-11-25", tools={"locked": locked}), revision, declared) as peer:
        (said,) = await peer.call("locked")

    code = said.get("error", {}).get("code")
    assert (-32042 == code) == (revision == "2025-11-25")
    if revision < "2025-11-25":
        assert "Sign in first." == said["error"]["message"]


@spec("2026-07-28", "client/elicitation#error-handling", "c4dfef4d")
@without_handshakes
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_of_a_stateless_client_may_decline_or_cancel(action: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"elicitation":{}}') as peer:
        (demand,) = await peer.call("ask")
        (key,) = demand["result"]["inputRequests"]
        state = demand["result"]["requestState"]
        answers = f'"inputResponses":{{"{key}":{{"action":"{action}"}}}},"requestState":"{state}"'
        (said,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{answers}')

    assert said["result"]["content"][0]["text"].startswith(action)


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f42a5e87")
async def test_the_end_of_an_elicitation_is_told_to_the_client_that_was_asked_alone() -> None:
    from mcpgen.generated.v2025_11_25 import ElicitationCompleteNotificationParams, ServerMethods

    async def finish(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await ServerMethods(context).elicitation_complete(ElicitationCompleteNotificationParams(elicitation_id="e1"))
        return own.text("done")

    made, able = server("2025-11-25", tools={"finish": finish}), '{"elicitation":{"url":{}}}'
    async with client(made, "2025-11-25", able) as asked, client(made, "2025-11-25", able) as other:
        told, _ = await asked.call("finish")

        assert ("notifications/elicitation/complete", {"elicitationId": "e1"}) == (told["method"], told["params"])
        assert [] == await other.wire.rest()


@spec("2026-07-28", "client/elicitation#form-mode-security", "47b543ea")
@without_handshakes
async def test_what_does_not_fit_a_type_does_not_reach_a_handler_of_a_stateless_client(revision: str) -> None:
    async def ask(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        return own.text(str((await context.elicit("Who are you?", Name)).content.name))

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, '{"elicitation":{}}') as peer:
        (demand,) = await peer.call("ask")
        (key,) = demand["result"]["inputRequests"]
        state = demand["result"]["requestState"]
        answers = f'"inputResponses":{{"{key}":{{"action":"accept","content":{{"name":7}}}}}},"requestState":"{state}"'
        (said,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{answers}')

    assert "error" in said


class Amount(Struct):
    count: int
    price: float


@spec("2025-11-25", "basic/index#implementation-requirements", "54c1f6e0")
@spec("2026-07-28", "basic/index#implementation-requirements", "54c1f6e0")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_a_whole_number_with_a_fraction_of_zero_is_an_integer_of_a_form(revision: str) -> None:
    async def ask(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        return own.text(repr((await context.elicit("How many?", Amount)).content))

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, '{"elicitation":{}}') as peer:
        said = await filled_in(peer, '{"action":"accept","content":{"count":2.0,"price":3}}')

    assert [{"type": "text", "text": "Amount(count=2, price=3.0)"}] == said["result"]["content"]


async def filled_in(peer: Any, answer: str) -> Any:
    """Call the tool `ask`, answer its form, and return what the server says then."""
    (asked,) = await peer.call("ask")
    if "method" in asked:
        (said,) = await peer.answer(asked, answer)
        return said
    (key,) = asked["result"]["inputRequests"]
    state = asked["result"]["requestState"]
    answers = f'"inputResponses":{{"{key}":{answer}}},"requestState":"{state}"'
    (said,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{answers}')
    return said
