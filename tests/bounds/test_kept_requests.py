"""The commands remember requests of a server that sends them without end, with long ids and long methods."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.runtime.cli.client.recording_transport import RecordingTransport
from mcpgen.runtime.protocol.trace.tracer import Tracer
from mcpgen.runtime.transports.process_transport import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KIB = 1024


def kept_bytes(take: Callable[[bytes], object], frames: Iterator[bytes]) -> int:
    """Return the memory that is kept of *frames* after *take* has taken each of them.

    The first one is not counted: it imports modules.
    """
    take(next(frames))
    tracemalloc.start()
    for frame in frames:
        take(frame)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


def requests(count: int, *, id_chars: int = 8, method_chars: int = 4, extensions: int = 0) -> Iterator[bytes]:
    for number in range(count):
        name = str(number)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": name.zfill(id_chars), "method": name.zfill(method_chars)}
        if extensions:
            declared: dict[str, Any] = {
                "extensions": {f"com.example/{number}-{each}": {} for each in range(extensions)}
            }
            key = "io.modelcontextprotocol/"
            meta = {f"{key}protocolVersion": "2026-07-28", f"{key}clientCapabilities": declared}
            message["params"] = {"_meta": meta}
        yield json.dumps(message).encode()


@pytest.mark.slow
@pytest.mark.parametrize(("count", "id_chars"), [(200, 20_000), (20_000, 8)])
def test_a_command_keeps_little_of_requests_that_the_client_does_not_answer(count: int, id_chars: int) -> None:
    recorder = RecordingTransport(Process("server"))

    used = kept_bytes(lambda frame: recorder.note_received([frame]), requests(count, id_chars=id_chars))

    assert used < 200 * KIB


def test_a_command_knows_that_the_server_waits_for_an_answer() -> None:
    recorder = RecordingTransport(Process("server"))
    recorder.note_sent(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}')
    for request in requests(2):
        recorder.note_received([request])

    recorder.note_sent(b'{"jsonrpc":"2.0","id":"00000000","result":{}}')
    assert recorder.awaited is None
    recorder.note_sent(b'{"jsonrpc":"2.0","id":"00000001","result":{}}')
    assert recorder.awaited == "tools/call"


@pytest.mark.parametrize(("method_chars", "extensions"), [(20_000, 0), (4, 500)])
@pytest.mark.slow
def test_trace_keeps_little_of_requests_without_a_response(method_chars: int, extensions: int) -> None:
    tracer = Tracer()

    def take(frame: bytes) -> None:
        tracer.annotate("to client", frame, 0.0)

    used = kept_bytes(take, requests(200, method_chars=method_chars, extensions=extensions))

    assert used < 300 * KIB
