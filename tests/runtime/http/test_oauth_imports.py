"""What a program pays for logins that it does not use: nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        ("from mcpgen import Http, connect; Http('https://example.com/mcp')", "mcpgen.runtime.http.client.auth"),
        ("import mcpgen.runtime.cli.client_commands", "mcpgen.runtime.http.client.auth"),
        ("from mcpgen import OAuth, connect; connect('https://example.com/mcp', auth=OAuth())", "jwt"),
        ("from mcpgen import OAuth, connect; connect('https://example.com/mcp', auth=OAuth())", "cryptography"),
    ],
)
def test_what_is_not_used_is_not_imported(program: str, unwanted: str) -> None:
    check = f"import sys; assert not [each for each in sys.modules if each.startswith({unwanted!r})]"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{check}"], check=False, capture_output=True, encoding="utf-8"
    )

    assert 0 == done.returncode, done.stderr
