"""What a server does not import until it needs it. Together, these modules took a tenth of the time of a start."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVER = """
import sys
before = set(sys.modules)
from mcpgen import Server

async def echo(text: str) -> str:
    return text

server = Server("start", version="1")
server.tool(echo)
"""


@pytest.mark.parametrize(
    "unwanted",
    [
        "asyncio",
        "ctypes",
        "difflib",
        "hashlib",
        "hmac",
        "json",
        "mcpgen.runtime.server.functions.uri_matching",
        "mcpgen.runtime.server.functions.uri_template",
        "mcpgen.runtime.server.params_digest",
        "pathlib",
        "random",
        "secrets",
        "urllib.parse",
    ],
)
def test_a_server_with_one_tool_does_not_import(unwanted: str) -> None:
    check = f"assert {unwanted!r} not in set(sys.modules) - before"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{SERVER}\n{check}"], check=False, capture_output=True, encoding="utf-8"
    )

    assert 0 == done.returncode, done.stderr
