"""Tests of servers and clients: a client of each revision, scripted answers, a recorder, and transcripts.

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_add(revision: str) -> None:
        with connect_as(server, revision) as client:
            assert client.call_tool("add", {"a": 2, "b": 3}).is_error is not True

It needs no test framework. The guide's chapter "Testing" explains it.
"""

from __future__ import annotations

from mcpgen.runtime.api.testing.answers import Answer, Answers
from mcpgen.runtime.api.testing.recorder import Recorder
from mcpgen.runtime.api.testing.revision_client import REVISIONS, RecordedConnection, connect_as

__all__ = ["REVISIONS", "Answer", "Answers", "RecordedConnection", "Recorder", "connect_as"]
