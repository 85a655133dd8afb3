"""Cancelled requests, from either side."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from tests.specification.citation import LABELS, everywhere, from_every_home, spec, with_handshakes, without_handshakes
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "schema#cancellednotification", "856bc778")
@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-03-26", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-06-18", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "5db5c3ee", "656f0d9e", "adc15f31")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "6746ee5d", "84a4c8e1", "8700bdc4")
@spec("2025-11-25", "basic/utilities/cancellation#implementation-notes", "907183e6")
@spec("2026-07-28", "basic/patterns/cancellation#implementation-notes", "9b6ea984")
@everywhere
@from_every_home
async def test_a_cancelled_request_is_stopped_and_not_answered(
    native_revision: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    own = handlers(native_revision)
    async with client(server(native_revision, own=own), revision) as peer:
        assert [] == await peer.wire.say(peer.request("123", "tools/call", '"name":"wait"'))
        assert own.waiting.is_set()

        said = await peer.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
            b'"params":{"requestId":"123","reason":"User requested cancellation"}}'
        )
        assert 1 == own.given_up

        own.gate.set()

        assert [] == said + await peer.wire.rest()

    assert "the client has cancelled the request '123': User requested cancellation" in caplog.messages


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@spec("2026-07-28", "basic/transports/stdio#cancellation", "49064d3a")
@everywhere
async def test_nothing_more_is_said_about_a_cancelled_request_even_by_a_handler_that_goes_on(revision: str) -> None:
    gate = anyio.Event()

    async def stubborn(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        with anyio.CancelScope(shield=True):
            await gate.wait()
        await context.progress(1)
        await context.log("emergency", "still here")
        return own.text("late")

    async with client(server(LABELS[-1], tools={"stubborn": stubborn}), revision) as peer:
        level = ',"io.modelcontextprotocol/logLevel":"debug"' if peer.is_stateless else ""
        await peer.wire.say(peer.request(5, "tools/call", '"name":"stubborn"', f'"progressToken":1{level}'))
        cancelled = await peer.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
        )
        gate.set()

        assert [] == cancelled + await peer.wire.rest()


@spec("2024-11-05", "basic/utilities/cancellation#error-handling")
@spec("2025-11-25", "basic/utilities/cancellation#error-handling", "2aff49c1", "68dcdecf")
@spec("2026-07-28", "basic/patterns/cancellation#error-handling", "08b80046", "20c99163")
@everywhere
@pytest.mark.parametrize(
    "params",
    [
        b'{"requestId":"unknown"}',
        b'{"requestId":99}',
        b'{"requestId":"5"}',
        b'{"requestId":null}',
        b'{"requestId":[5]}',
        b'{"requestId":{"id":5}}',
        b'{"reason":"nothing said which"}',
        b'{"requestId":5.5}',
        b'{"requestId":true}',
        b"{}",
    ],
)
async def test_a_cancellation_of_nothing_that_is_open_is_ignored(params: bytes, revision: str) -> None:
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision) as peer:
        await peer.wire.say(peer.request(5, "tools/call", '"name":"wait"'))
        ignored = await peer.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}' % params,
            b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        )
        own.gate.set()
        (said,) = await peer.wire.rest()

    assert [] == ignored
    assert 5 == said["id"]


@spec("2026-07-28", "basic/patterns/cancellation#error-handling", "6eb61b38")
@spec("2025-11-25", "basic/utilities/cancellation#error-handling", "06c3186b")
@spec("2026-07-28", "basic/patterns/cancellation#timing-considerations", "27c83eaf")
@spec("2025-11-25", "basic/utilities/cancellation#timing-considerations", "6738a282")
@everywhere
async def test_a_cancellation_that_comes_too_late_is_ignored(revision: str) -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(peer.request(5, "tools/call", '"name":"echo"'))

        assert 5 == said["id"]
        assert [] == await peer.wire.say(cancel)


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@everywhere
async def test_a_request_is_not_answered_if_its_cancellation_is_read_with_it(revision: str) -> None:
    """Also where handlers start eagerly (Python 3.12) and could answer before the next message is taken."""
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
    async with client(server(LABELS[-1]), revision) as peer:
        said = await peer.wire.say(peer.request(5, "tools/call", '"name":"echo"'), cancel)
        (again,) = await peer.wire.say(peer.request(6, "tools/call", '"name":"echo"'))

    assert [] == said
    assert 6 == again["id"]


@spec("2026-07-28", "schema#requestid")
@spec("2025-11-25", "schema#requestid")
@everywhere
async def test_a_cancellation_may_write_the_id_with_a_fraction_of_zero(revision: str) -> None:
    """In JSON Schema, 5.0 is the integer 5."""
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5.0}}'
    async with client(server(LABELS[-1]), revision) as peer:
        said = await peer.wire.say(peer.request(5, "tools/call", '"name":"wait"'), cancel)

        assert [] == said + await peer.wire.rest()


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@everywhere
async def test_the_id_of_a_cancelled_request_can_be_cancelled_and_taken_again(revision: str) -> None:
    own = handlers(LABELS[-1])
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
    async with client(server(LABELS[-1], own=own), revision) as peer:
        for _ in range(2):
            await peer.wire.say(peer.request(5, "tools/call", '"name":"wait"'))
            assert [] == await peer.wire.say(cancel)
        (said,) = await peer.wire.say(peer.request(5, "tools/call", '"name":"echo"'))

    assert 2 == own.given_up
    assert 5 == said["id"]


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
async def test_a_handler_whose_question_is_no_longer_needed_takes_it_back(revision: str) -> None:
    async def impatient(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        async with anyio.create_task_group() as group:
            group.start_soon(context.roots)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        return own.text("never mind")

    async with client(server(LABELS[-1], tools={"impatient": impatient}), revision, '{"roots":{}}') as peer:
        asked, cancelled, said = await peer.call("impatient")
        late = await peer.answer(asked, '{"roots":[]}')

    assert "notifications/cancelled" == cancelled["method"]
    assert asked["id"] == cancelled["params"]["requestId"]
    assert "result" in said
    assert [] == late


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "46be44ab")
@with_handshakes
async def test_a_cancelled_request_takes_back_what_its_handler_asked(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"roots":{}}') as peer:
        (asked,) = await peer.wire.say(peer.request(5, "tools/call", '"name":"roots"'))
        (cancelled,) = await peer.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
        )

    assert {"requestId": asked["id"]} == {"requestId": cancelled["params"]["requestId"]}


@spec("2026-07-28", "schema#cancellednotification", "fcb702b8")
@spec("2026-07-28", "basic/patterns/cancellation", "2d7aa3f1")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "34240352")
@without_handshakes
async def test_a_server_cancels_nothing_but_its_own_streams(revision: str) -> None:
    """A question that is not needed any more is not in an open request of the server's: there is nothing to cancel."""

    async def impatient(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        async with anyio.create_task_group() as group:
            group.start_soon(context.roots)
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        return own.text("never mind")

    async with client(server(LABELS[-1], tools={"impatient": impatient}), revision, '{"roots":{}}') as peer:
        said = await peer.call("impatient")

    assert ["result"] == [key for each in said for key in ("result", "method", "error") if key in each]


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
async def test_initialize_cannot_be_cancelled(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"handshake"}}'

        assert [] == await peer.wire.say(cancel)
        assert "tools" in await peer.result("tools/list")
