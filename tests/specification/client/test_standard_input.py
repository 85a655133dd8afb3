"""What a client writes to the standard input of a server that it starts."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from mcpgen import connect
from tests.specification.citation import LABELS, everywhere, spec
from tests.specification.client.scripted_server import complete, discovered, initialized

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

# It keeps all that it reads in a file, and answers each request with a result that is given to it by method.
SERVER = """
import json, sys
results = json.loads(sys.argv[2])
with open(sys.argv[1], "wb") as log:
    for line in sys.stdin.buffer:
        log.write(line)
        log.flush()
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}), flush=True)
"""


@spec("2025-11-25", "basic/transports", "abf2b690")
@spec("2025-11-25", "basic/transports#stdio", "cc0d327c")
@spec("2026-07-28", "basic/transports/stdio", "345ed729")
@everywhere
async def test_a_client_writes_messages_and_nothing_else(revision: str, tmp_path: Path) -> None:
    log = tmp_path / "stdin"
    results = {
        "initialize": initialized(revision),
        "server/discover": discovered(),
        "tools/call": complete(revision, content=[]),
    }
    command = [sys.executable, "-c", SERVER, str(log), json.dumps(results)]
    async with connect(command, revisions=[revision]) as client:
        await client.call_tool("x", {"text": "two\nlines"})

    written = log.read_bytes()
    greeting = ["server/discover"] if revision == LABELS[-1] else ["initialize", "notifications/initialized"]
    messages = [json.loads(each) for each in written.splitlines()]

    assert written.endswith(b"\n")
    assert [*greeting, "tools/call"] == [each["method"] for each in messages]
    assert {"2.0"} == {each["jsonrpc"] for each in messages}
