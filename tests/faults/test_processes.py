"""Faults of the pipe, on the real server as a process: too much, too little, too late, and the end."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpgen.generated.registry import REVISIONS
from tests.faults import faulty_handlers
from tests.faults.server_processes import PATIENCE_SECONDS, Process
from tests.patience import BUSY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds"),
    pytest.mark.slow,
]

MEGABYTE = 1024 * 1024
PROMPTLY = 1 + BUSY_SECONDS  # a second, as promised


# Of each era, and the one revision whose errors need an id; what differs otherwise is tested in memory.
@pytest.fixture(params=[REVISIONS[0].label, *(each.label for each in REVISIONS[-2:])])
def process(request: pytest.FixtureRequest) -> Generator[Process]:
    started = Process(request.param)
    try:
        started.open()
        yield started
    finally:
        started.kill()


def test_a_line_of_100_megabytes_takes_bounded_memory_and_the_session_goes_on(process: Process) -> None:
    before = process.held()
    head, tail = process.request(1, "echo", text="").split(b'""')
    process.write(head + b'"')
    for _ in range(100):
        process.write(b"x" * MEGABYTE)
    process.write(b'"' + tail)
    process.call(2, "echo", text="still here")
    messages = [process.receive(), process.receive()]

    assert [1, 2] == [each["id"] for each in messages]
    assert "still here" == messages[1]["result"]["content"][0]["text"]
    assert "error" in messages[0]
    assert process.held() - before < 16 * MEGABYTE


def test_a_line_of_100_megabytes_that_never_ends_takes_bounded_memory(process: Process) -> None:
    before = process.held()
    for _ in range(100):
        process.write(b"[" * MEGABYTE)
    process.close_input()
    status, out, _, took = process.end()

    assert 0 == status
    assert took < PROMPTLY
    assert out.count(b"\n") <= 1  # that it was too long; only a revision whose errors need no id says so
    assert before > 0


def test_the_longest_lines_that_are_read_are_not_kept(process: Process) -> None:
    text = "x" * (4 * MEGABYTE - 1000)
    for each in range(1, 3):
        process.call(each, "echo", text=text)
        assert len(text) == len(process.receive()["result"]["content"][0]["text"])
    before = process.held("VmRSS")
    for each in range(3, 13):
        process.call(each, "echo", text=text)
        process.line()

    assert process.held("VmRSS") - before < 16 * MEGABYTE


def test_a_peer_that_does_not_read_answers_takes_bounded_memory(process: Process) -> None:
    before = process.held()
    request = process.request(7, "echo", text="x" * 3000)
    request = request[:-1] + b" " * (4095 - len(request)) + b"\n"
    count, is_over = 0, False
    while not is_over and count < 10_000:
        try:
            count += os.write(process.stdin, request) == len(request)
        except BlockingIOError:
            is_over = not select.select([], [process.stdin], [], 0.5)[1]

    assert is_over
    assert process.held() - before < 16 * MEGABYTE
    assert [7] * count == [process.receive()["id"] for _ in range(count)]
    process.call(8, "echo")
    assert 8 == process.receive()["id"]


@pytest.mark.parametrize("tool", ["progress", "log"])
def test_a_peer_that_does_not_read_what_a_handler_tells_takes_bounded_memory(tool: str, process: Process) -> None:
    before = process.held()
    meta = {**process.meta, "progressToken": "t" * 1000, "io.modelcontextprotocol/logLevel": "debug"}
    params = {"name": tool, "arguments": {"count": 50_000}, "_meta": meta}
    process.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    select.select([process.stdout], [], [], 10)
    process.call(2, "echo")  # the other way is free: it is read, and answered when the first ones are
    told = 0
    while (message := process.receive()).get("id") != 1:
        told += "method" in message

    assert 50_000 == told
    assert process.held() - before < 16 * MEGABYTE


def test_a_peer_that_dies_within_a_message_ends_the_server(process: Process) -> None:
    process.write(process.request(1, "echo", text="x" * 1000)[:500])
    process.close_input()
    status, out, err, took = process.end()

    assert 0 == status
    assert took < PROMPTLY
    assert b'"result"' not in out
    assert "Traceback" not in err


def test_a_last_message_without_its_newline_is_answered(process: Process) -> None:
    process.write(process.request(1, "echo", text="x")[:-1])
    process.close_input()
    status, out, _, _ = process.end()

    assert 0 == status
    assert b'"id":1,"result"' in out


def test_a_peer_that_closes_both_streams_ends_the_server(process: Process) -> None:
    process.call(1, "wait")
    assert process.popen.stdout is not None
    assert process.popen.stderr is not None
    process.popen.stdout.close()
    for each in range(2, 5):
        process.call(each, "echo")
    process.close_input()

    assert 0 == process.popen.wait(20)
    assert b"Traceback" not in process.popen.stderr.read()


ENDINGS: dict[str, Callable[[Process], None]] = {
    "SIGINT": lambda process: process.popen.send_signal(signal.SIGINT),
    "SIGTERM": lambda process: process.popen.send_signal(signal.SIGTERM),
    "end of input": Process.close_input,
}


@pytest.mark.parametrize("tool", ["wait", "stubborn", "hanging_thread"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_with_a_hundred_open_requests_ends_within_a_second(ending: str, tool: str, process: Process) -> None:
    for each in range(1, 101):
        process.call(each, tool)
    process.call(200, "echo")
    while process.receive().get("id") != 200:
        pass
    ENDINGS[ending](process)
    status, out, _, took = process.end()

    assert 0 == status
    assert took < PROMPTLY
    assert all(b'"jsonrpc":"2.0"' in each for each in out.splitlines())


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM"])
def test_a_server_that_waits_for_its_peer_to_read_ends_within_a_second(ending: str, process: Process) -> None:
    request = process.request(7, "echo", text="x" * 3000)
    is_over = False
    while not is_over:
        try:
            os.write(process.stdin, request)
        except BlockingIOError:
            is_over = not select.select([], [process.stdin], [], 0.5)[1]
    begin = time.monotonic()
    ENDINGS[ending](process)

    assert 0 == process.popen.wait(20)  # and nobody has read
    assert time.monotonic() - begin < PROMPTLY


@pytest.mark.spec("2026-07-28", "basic/transports/stdio#shutdown", "35d76ff9")
@pytest.mark.spec("2024-11-05", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2025-03-26", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2025-06-18", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2025-11-25", "basic/transports#stdio", "9898eb14")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio", "3058675d")
def test_what_is_printed_is_never_part_of_the_protocol(process: Process) -> None:
    for each in range(1, 51):
        process.call(each, "printing", text='{"jsonrpc":"2.0","id":1,"result":{}}')
    for each in range(1, 51):
        message = process.receive()
        assert (each, "printed") == (message["id"], message["result"]["content"][0]["text"])
    process.close_input()
    status, out, err, _ = process.end()

    assert (0, b"") == (status, out)
    assert [50, 50, 50] == [err.count(f"by {how}\n") for how in ("print", "C", "descriptor")]


def test_ten_thousand_requests_leave_neither_memory_nor_descriptors_nor_threads_behind(process: Process) -> None:
    def flood(count: int) -> None:
        for first in range(0, count, 100):
            process.write(b"".join(process.request(each, "echo", text="x" * 100) for each in range(first, first + 100)))
            assert [*range(first, first + 100)] == [process.receive()["id"] for _ in range(100)]

    flood(2000)
    memory, files, threads = process.held("VmRSS"), process.descriptors(), process.threads()
    flood(10_000)

    assert (files, threads) == (process.descriptors(), process.threads())
    assert process.held("VmRSS") - memory < 2 * MEGABYTE


def test_no_more_requests_run_than_may_and_all_are_answered(process: Process) -> None:
    process.write(b"".join(process.request(each, "wait") for each in range(1, 3001)))
    refused = [process.receive() for _ in range(1000)]

    assert list(range(2001, 3001)) == [each["id"] for each in refused]
    assert {-32603} == {each["error"]["code"] for each in refused}
    cancel = [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}} for n in range(1, 2001)
    ]
    for each in cancel:
        process.send(each)
    process.call(5000, "echo")
    assert 5000 == process.receive()["id"]


@pytest.mark.spec("2025-11-25", "basic/lifecycle#shutdown")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_end_of_the_input_ends_a_server_whose_output_nobody_reads(backend: str) -> None:
    code = (
        f"import sys\nsys.path.insert(0, {str(Path(faulty_handlers.__file__).parent)!r})\n"
        "from faulty_handlers import Guest\nfrom mcpgen.runtime.transports import stdio_server\n"
        f"stdio_server.run(Guest().server, backend={backend!r})"
    )
    process = Process("2025-11-25", ("-c", code))
    try:
        process.open()
        request = process.request(7, "echo", text="x" * 3000)
        stuck = False
        while not stuck:
            try:
                os.write(process.stdin, request)
            except BlockingIOError:
                stuck = not select.select([], [process.stdin], [], 0.5)[1]
        process.close_input()

        assert 0 == process.popen.wait(PATIENCE_SECONDS)
    finally:
        process.kill()
