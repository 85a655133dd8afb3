"""A command shows the result that the client has read, not another one that the server has sent as well."""

from __future__ import annotations

import pytest

from mcpgen.runtime.cli.client.recording_transport import RecordingTransport
from mcpgen.runtime.transports.process_transport import Process


def recorder_of(revision: str) -> RecordingTransport:
    """Return a recorder that waits for the result of a tool, of a server that has agreed on *revision*."""
    recorder = RecordingTransport(Process("server"))
    recorder.note_sent(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    recorder.note_received([b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"%s"}}' % revision.encode()])
    recorder.note_sent(b'{"jsonrpc":"2.0","id":2,"method":"tools/call"}')
    return recorder


@pytest.mark.parametrize(
    "ignored",
    [
        b'[{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]',
        b'{"jsonrpc":"2.0","id":"2","result":5}',
        b'{"id":"2","result":{"content":5}}',
        b'{"jsonrpc":"2.0","id":2,"method":null,"result":5}',
    ],
)
def test_a_response_that_the_client_ignores_is_not_the_result(ignored: bytes) -> None:
    recorder = recorder_of("2025-11-25")

    recorder.note_received([ignored])
    assert recorder.awaited == "tools/call"
    recorder.note_received([b'{"jsonrpc":"2.0","id":2,"result":{"content":[{}]}}'])

    assert recorder.result("tools/call") == {"content": [{}]}
    assert recorder.awaited is None


def test_a_batch_has_results_in_the_revision_with_batches() -> None:
    recorder = recorder_of("2025-03-26")

    recorder.note_received([b'[{"id":"2","result":5},{"jsonrpc":"2.0","id":"2","result":{"content":[{}]}}]'])

    assert recorder.result("tools/call") == {"content": [{}]}


def test_a_malformed_response_ends_the_wait_without_a_result() -> None:
    recorder = recorder_of("2025-11-25")

    recorder.note_received([b'{"jsonrpc":"2.0","id":2,"result":5}'])

    assert recorder.awaited is None
    assert recorder.result("tools/call") is None
