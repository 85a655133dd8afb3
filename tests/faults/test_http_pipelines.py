"""Requests that do not wait for the answer to the one before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.http_raw_client import SAID, Closed, called, head, mirrored, posted, request
from tests.faults.http_server_process import MEGABYTE, House

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds"),
]


@pytest.mark.slow
def test_requests_that_do_not_wait_for_answers_are_answered_in_their_order(house: House) -> None:
    line = house.line()
    line.send(b"".join(called("echo", each, text=f"number {each}") for each in range(50)))

    assert list(range(50)) == [line.reply().json["id"] for _ in range(50)]


def test_requests_that_come_faster_than_answers_take_bounded_memory(house: House) -> None:
    """With each answer, more is read of what waits."""
    before = house.held("VmHWM")
    line = house.line()
    answered = 0
    while answered < 200 and line.flood(head("GET", "/x") * 500, 1):
        try:
            is_answered = line.reply().status == 404
        except Closed:
            break
        if not is_answered:
            break
        answered += 1

    assert answered < 200
    assert house.held("VmHWM") - before < 16 * MEGABYTE


def test_a_head_that_begins_in_the_packet_of_a_long_body_is_served(house: House) -> None:
    line = house.line()
    body = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 300_000}})
    whole = posted(body, *mirrored("tools/call", "echo")) + called("echo", text="hi")
    line.send(whole[:-350])
    assert b"x" * 300_000 in line.reply().body
    line.send(whole[-350:])

    assert SAID in line.reply().body


@pytest.mark.parametrize("garbage", [b"\0\0\0\0", b"GET /mcp HT", b"GET /mcp HTTP/1.1\r\nX: " + b"a" * 70_000])
def test_nothing_is_said_in_the_middle_of_an_answer_about_what_comes_behind_its_request(
    house: House, garbage: bytes
) -> None:
    line = house.line()
    line.send(called("step", meta={"progressToken": 1}))
    assert 200 == line.head().status
    assert "progress" in str(line.events())
    line.flood(garbage, 1)
    found = line.rest()

    assert b"HTTP/1.1" not in found
    assert b"40" not in found


def test_an_answer_that_is_interrupted_is_not_taken_for_a_whole_one(house: House) -> None:
    line = house.line()
    line.send(called("step", meta={"progressToken": 1}))
    line.head()
    line.events()
    line.send(b"\0\0\0\0")

    with pytest.raises(Closed):
        line.messages()
