"""What an error tells a client, and what a client can write into a log: nothing internal, and no line of its own."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.faults.event_loop_turns import unjudged
from tests.faults.faulty_handlers import Guest

pytestmark = pytest.mark.anyio

FORGED = "a\n2026-01-01 ERROR root: forged\r\n\x1b[31m\u2028\x85"
TEXT = json.dumps(FORGED)
INTERNAL = ("Traceback", "/site-packages/", "mcpgen.runtime", ".py", "object at 0x", "<class", "msgspec", "lambda")

# What reaches the server, with what would be a line of its own wherever somebody may write it.
PLACES: dict[str, tuple[str, str]] = {
    "a tool": ("tools/call", f'"name":{TEXT}'),
    "an argument": ("tools/call", f'"name":"echo","arguments":{{{TEXT}:1}}'),
    "the value of an argument": ("tools/call", f'"name":"big","arguments":{{"size":{TEXT}}}'),
    "a nested key": ("tools/call", f'"name":"echo","arguments":{{"text":{{{TEXT}:{{}}}}}}'),
    "arguments": ("tools/call", f'"name":"echo","arguments":[{TEXT}]'),
    "a prompt": ("prompts/get", f'"name":{TEXT}'),
    "an argument of a prompt": ("prompts/get", f'"name":"review","arguments":{{{TEXT}:{{}}}}'),
    "a resource": ("resources/read", f'"uri":{TEXT}'),
    "what a resource raises for": ("resources/read", f'"uri":{json.dumps("fail://" + FORGED)}'),
    "a cursor": ("tools/list", f'"cursor":{TEXT}'),
    "a level": ("logging/setLevel", f'"level":{TEXT}'),
    "a method": (TEXT[1:-1], ""),
    "a reference": (
        "completion/complete",
        f'"ref":{{"type":{TEXT},"name":{TEXT}}},"argument":{{"name":"a","value":""}}',
    ),
    "a filter": ("subscriptions/listen", f'"notifications":{{{TEXT}:1,"resourceSubscriptions":[{{{TEXT}:1}}]}}'),
    "a state": ("tools/call", f'"name":"ask","requestState":{TEXT}'),
    "answers": ("tools/call", f'"name":"ask","requestState":"x","inputResponses":{{{TEXT}:{TEXT}}}'),
}
META: dict[str, str] = {
    "a progress token": f'"progressToken":[{TEXT}]',
    "a key": f"{TEXT}:1",
    "a stash": f'"io.github.mcpgen/stash":{{{TEXT}:{{{TEXT}:1}}}}',
    "a log level": f'"io.modelcontextprotocol/logLevel":{TEXT}',
    "a client": f'"io.modelcontextprotocol/clientInfo":{{"name":{TEXT},{TEXT}:1}}',
    "a client of the wrong type": f'"io.modelcontextprotocol/clientInfo":{{"name":{{{TEXT}:1}}}}',
    "a revision": f'"io.modelcontextprotocol/protocolVersion":{TEXT}',
}
NOTIFICATIONS: dict[str, str] = {
    "a cancellation": f'"method":"notifications/cancelled","params":{{"requestId":{TEXT},"reason":{TEXT}}}',
    "a cancellation of the wrong type": f'"method":"notifications/cancelled","params":{{"requestId":{{{TEXT}:1}}}}',
    "a method": f'"method":{TEXT}',
    "a change": f'"method":"notifications/roots/list_changed","params":{{"_meta":{{{TEXT}:{TEXT}}},{TEXT}:1}}',
    "metadata of the wrong type": f'"method":"notifications/roots/list_changed","params":{{"_meta":[{TEXT}]}}',
    "an answer": f'"id":{TEXT},"result":{{}}',
    "an error": f'"id":{TEXT},"error":{{"code":1,"message":{TEXT}}}',
    "a member": f"{TEXT}:{TEXT}",
}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages that were logged with a line break that came from outside."""
    breaks = ("\n", "\r", "\x1b", "\u2028", "\x85")
    return [each for each in caplog.messages if "forged" in each and any(one in each for one in breaks)]


def internals(said: list[Any]) -> list[str]:
    text = json.dumps(said)
    return [each for each in INTERNAL if each in text]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.slow
async def test_a_request_writes_no_line_of_its_own_and_is_told_nothing_internal(
    place: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    method, params = PLACES[place]
    async with unjudged(Guest().server, revision) as peer:
        said = await peer.ask(method, params)
        while not said:
            said = await peer.wire.rest()

        assert [] == lines(caplog)
        assert [] == internals(said)
        assert max(map(len, peer.wire.raw)) < 4000


@pytest.mark.parametrize("place", META)
async def test_metadata_writes_no_line_of_its_own(place: str, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with unjudged(Guest().server, revision) as peer:
        said = await peer.ask("tools/call", '"name":"echo"', META[place])

        assert [] == lines(caplog)
        assert [] == internals(said)


@pytest.mark.parametrize("place", NOTIFICATIONS)
@pytest.mark.slow
async def test_a_notification_writes_no_line_of_its_own(
    place: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with unjudged(Guest().server, revision) as peer:
        await peer.wire.say(f'{{"jsonrpc":"2.0",{NOTIFICATIONS[place]}}}'.encode())
        await peer.wire.say(
            peer.request(FORGED.replace("\n", "\\n"), "tools/call", '"name":"echo"').replace(b"\r", b"")
        )

        assert [] == lines(caplog)


@pytest.mark.parametrize("place", sorted(set(PLACES) - {"a method"}))
@pytest.mark.slow
async def test_an_error_is_not_as_long_as_what_caused_it(place: str, revision: str) -> None:
    method, params = PLACES[place]
    long = TEXT[:-1] + "x" * 100_000 + '"'
    async with unjudged(Guest().server, revision) as peer:
        await peer.ask(method, params.replace(TEXT, long))

        assert max(map(len, peer.wire.raw), default=0) < 10_000


async def test_a_request_that_is_cancelled_under_a_forged_id_writes_no_line(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    guest = Guest()
    async with unjudged(guest.server, revision) as peer:
        request = peer.request("ID", "tools/call", '"name":"wait"').replace(b'"ID"', TEXT.encode())
        cancelled = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{TEXT}}}}}'
        await peer.wire.say(request, cancelled.encode())

        assert [] == lines(caplog)
        assert [] == list(peer.wire.connection.session.exchanges)
