"""Ids that look alike, that come twice, that are long, that are taken again."""

from __future__ import annotations

import json

import pytest

from mcpgen.runtime.limits import MAX_ID_CHARS
from tests.faults.event_loop_turns import unjudged
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import client

pytestmark = pytest.mark.anyio


def cancelled(identity: str) -> bytes:
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{identity}}}}}'.encode()


async def test_a_number_and_a_text_are_two_ids(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        await peer.wire.say(*(peer.request(each, "tools/call", '"name":"wait"') for each in (1, "1", "1.0", "true")))

        assert 4 == guest.waiting
        assert [] == await peer.wire.say(cancelled('"1"'))
        assert (3, 1) == (guest.waiting, guest.given_up)
        guest.gate.set()
        assert [1, "1.0", "true"] == [each["id"] for each in await peer.wire.rest()]


@pytest.mark.parametrize("other", ["1.0", "1e0", "10E-1"])
async def test_one_number_is_one_id_however_it_is_written(other: str, revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        await peer.call("wait")
        again = peer.request(1, "tools/call", '"name":"wait"').replace(b'"id":1,', f'"id":{other},'.encode())
        said = await peer.wire.say(again)

        assert [(1, -32600)] == [(each["id"], each["error"]["code"]) for each in said]
        assert 1 == guest.waiting
        guest.gate.set()
        assert [1] == [each["id"] for each in await peer.wire.rest()]


@pytest.mark.parametrize("identity", ["true", "null", "1.5", "1e400", "[1]", '{"a":1}', '"\\ud800"', "1" * 5000])
async def test_what_is_no_id_cancels_nothing(identity: str, revision: str) -> None:
    guest = Guest()
    async with unjudged(guest.server, revision) as peer:
        await peer.call("wait")
        await peer.wire.say(cancelled(identity))

        assert (1, 0) == (guest.waiting, guest.given_up)


@pytest.mark.parametrize("identity", [2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400])
async def test_a_large_number_comes_back_digit_by_digit(identity: int, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.wire.say(peer.request(identity, "tools/call", '"name":"echo"'))

        assert [identity] == [each["id"] for each in said]
        assert f'"id":{identity},'.encode() in peer.wire.raw[-1]


@pytest.mark.parametrize("identity", ["", " ", "a\\nb", "\\u0000", "\\u2028", "💥", "x" * MAX_ID_CHARS])
async def test_any_text_is_an_id(identity: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.wire.say(peer.request(identity, "tools/call", '"name":"echo"'))

        assert [json.loads(f'"{identity}"')] == [each["id"] for each in said]
        assert "result" in said[0]


async def test_an_id_is_free_when_its_request_is_cancelled_and_the_old_handler_says_nothing_under_it(
    revision: str,
) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        waiting = peer.request(1, "tools/call", '"name":"stubborn"')
        echo = peer.request(1, "tools/call", '"name":"echo","arguments":{"text":"new"}')
        said = await peer.wire.say(waiting, cancelled("1"), echo)

        assert ["new"] == [each["result"]["content"][0]["text"] for each in said]
        guest.gate.set()
        assert [] == await peer.wire.rest()


async def test_an_id_that_is_taken_again_is_cancelled_for_its_new_request(revision: str) -> None:
    guest = Guest()
    async with client(guest.server, revision) as peer:
        stubborn, wait = (peer.request(1, "tools/call", f'"name":"{each}"') for each in ("stubborn", "wait"))
        await peer.wire.say(stubborn, cancelled("1"), wait, cancelled("1"), wait)

        assert (2, 2) == (guest.waiting, guest.given_up)
        guest.gate.set()
        assert [1] == [each["id"] for each in await peer.wire.rest()]


@pytest.mark.parametrize(("strict", "right"), [(False, "%d.0"), (False, '"%d"'), (True, "%d.0")])
async def test_an_answer_to_a_question_is_for_its_number_only(right: str, *, strict: bool) -> None:
    guest = Guest(strict=strict)
    async with client(guest.server, "2025-11-25", '{"elicitation":{}}') as peer:
        question = (await peer.call("ask"))[-1]
        number = question["id"]
        result = '{"action":"accept","content":{"name":"%s"}}'
        texts = [f'"{number}"'] if strict else [f'"{number}.0"', f'" {number}"', f'"0{number}"', '"٣"']
        for wrong in (*texts, "true", "null", str(number + 1), "[1]"):
            frame = f'{{"jsonrpc":"2.0","id":{wrong},"result":{result % "Eve"}}}'.encode()
            peer.wire.connection.receive([frame])  # the recorder does not read some of them
            assert [] == await peer.wire.rest()
        peer.wire.connection.receive([f'{{"jsonrpc":"2.0","id":{right % number},"result":{result % "Ada"}}}'.encode()])
        said = await peer.wire.rest()

        assert "accept {'name': 'Ada'}" == said[-1]["result"]["content"][0]["text"]


async def test_the_second_answer_to_a_question_is_one_to_nothing() -> None:
    async with client(Guest().server, "2025-11-25", '{"elicitation":{}}') as peer:
        question = (await peer.call("ask"))[-1]
        first = f'{{"jsonrpc":"2.0","id":{question["id"]},"result":{{"action":"decline"}}}}'.encode()
        second = first.replace(b"decline", b"cancel")
        said = await peer.wire.say(first, second, first)

        assert [1] == [each["id"] for each in said]
        assert said[0]["result"]["content"][0]["text"].startswith("decline")


async def test_one_client_cannot_answer_or_cancel_for_another() -> None:
    guest = Guest()
    async with (
        client(guest.server, "2025-11-25", '{"elicitation":{}}') as ada,
        client(guest.server, "2025-11-25", '{"elicitation":{}}') as eve,
    ):
        question = (await ada.call("ask"))[-1]
        await ada.call("wait")
        assert [] == await eve.answer(question, '{"action":"accept","content":{"name":"Eve"}}')
        assert [] == await eve.wire.say(cancelled("1"), cancelled("2"))

        assert 1 == guest.waiting
        said = await ada.answer(question, '{"action":"accept","content":{"name":"Ada"}}')
        assert "Ada" in said[-1]["result"]["content"][0]["text"]
