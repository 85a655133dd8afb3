"""Messages that cost a server more than their bytes."""

from __future__ import annotations

import json
from typing import Final

from tests.faults.http_raw_client import META, NEW

# Just below the 4 MiB of a message.
LARGE: Final = 4_100_000

_NEST: Final = "[" * 400 + "]" * 400
# Two bytes for each list: the decoded value takes fifty times as much memory as its text.
DEEP: Final = f"[{','.join([_NEST] * (LARGE // 801))}]"
TEXT: Final = "x" * LARGE

ELICITATION: Final = f'"{META}clientCapabilities":{{"elicitation":{{}}}}'
NONE: Final = f'"{META}clientCapabilities":{{}}'


def call(  # noqa: PLR0913 (each member that a message may have)
    tool: str,
    arguments: str = "{}",
    *,
    identity: str = "1",
    meta: str | None = None,
    params: str = "",
    beside: str = "",
    revision: str = NEW,
) -> bytes:
    """Return a call as raw JSON; *params* and *beside* are more members, each with its comma in front."""
    own = f',"_meta":{{"{META}protocolVersion":"{NEW}",{meta or NONE}}}' if revision == NEW else ""
    inner = f'{{"name":"{tool}","arguments":{arguments}{own}{params}}}'
    return f'{{"jsonrpc":"2.0","id":{identity},"method":"tools/call","params":{inner}{beside}}}'.encode()


def initialize(revision: str, *, capabilities: str = "{}", name: str = '"c"', beside: str = "") -> bytes:
    """Return a request for a session as raw JSON."""
    info = f'{{"name":{name},"version":"1"}}'
    members = f'"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{info}{beside}'
    return f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{members}}}}}'.encode()


def batch(count: int, method: str, params: str) -> bytes:
    """Return a batch of equal requests (2025-03-26)."""
    each = '{{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}}'
    return f"[{','.join(each.format(number, method, params) for number in range(count))}]".encode()


def cancelled(identity: object) -> bytes:
    text = json.dumps(identity)
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{text}}}}}'.encode()
