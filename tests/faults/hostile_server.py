"""A server that does what a test wants of it: it runs the code that is its argument, with the functions below.

It needs nothing but the standard library, so that it starts quickly, and `-I -S` can be said to the interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

PROTOCOL = "io.modelcontextprotocol/protocolVersion"
ALL = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
TEXT = {"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}
INFO = {"name": "villain", "version": "1"}
STATELESS = "2026-07-28"


def put(data: bytes) -> None:
    """Write all of *data*."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def say(*messages: object) -> None:
    """Send *messages*, with one write."""
    put(b"".join(json.dumps(each).encode() + b"\n" for each in messages))


def hear() -> Any:
    """Return the next message; exit when there will be none."""
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def ignore_all() -> None:
    """Read, and do nothing else, until the input ends."""
    while sys.stdin.buffer.read1(1 << 16):
        pass
    os._exit(0)


def asked(method: str = "") -> Any:
    """Return the next request, or the next of *method*; what comes before it is ignored."""
    while True:
        found = hear()
        if "id" in found and "method" in found and (not method or method == found["method"]):
            return found


def heard(method: str) -> Any:
    """Return the next notification of *method*."""
    while (found := hear()).get("method") != method:
        pass
    return found


def answered(identity: object) -> Any:
    """Return the client's answer to a request of ours."""
    while "method" in (found := hear()) or found.get("id") != identity:
        pass
    return found


def result(value: object) -> Any:
    """Return what makes an answer of *value*: ``say(result({})(request))``."""
    return lambda request: {"jsonrpc": "2.0", "id": request["id"], "result": value}


def answer(request: Any, value: object) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "result": value})


def text(request: Any, words: object) -> None:
    """Answer a call with *words*."""
    answer(request, {"content": [{"type": "text", "text": str(words)}], "resultType": "complete"})


def refuse(request: Any, code: int = -32601, message: str = "no", **more: object) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message, **more}})


def tell(method: str, **params: object) -> None:
    say({"jsonrpc": "2.0", "method": method, "params": params})


def ask(identity: object, method: str, params: object = None) -> None:
    more = {} if params is None else {"params": params}
    say({"jsonrpc": "2.0", "id": identity, "method": method, **more})


def initialized(revision: str, **more: object) -> dict[str, object]:
    return {"protocolVersion": revision, "capabilities": ALL, "serverInfo": INFO, **more}


def discovered(**more: object) -> dict[str, object]:
    return {
        "resultType": "complete",
        "supportedVersions": [STATELESS],
        "capabilities": ALL,
        "ttlMs": 0,
        "cacheScope": "private",
        **more,
    }


def greet() -> str:
    """Begin as a good server does, in the era that the client begins with; return the revision."""
    first = asked()
    if first["method"] == "server/discover" and first["params"]["_meta"][PROTOCOL] == STATELESS and not IS_OLD:
        answer(first, discovered())
        return STATELESS
    while first["method"] != "initialize":
        refuse(first)
        first = asked()
    revision = first["params"]["protocolVersion"]
    answer(first, initialized(revision))
    heard("notifications/initialized")
    return str(revision)


def serve() -> None:
    """Be a good server until the input ends."""
    while True:
        request = asked()
        if request["method"] == "tools/call":
            text(request, "ok")
        elif request["method"] == "ping":
            answer(request, {})
        elif request["method"] == "server/discover":
            answer(request, discovered())
        else:
            refuse(request)


def start(code: str, **options: Any) -> int:
    """Start a child that runs *code*, with these functions; return its number."""
    return subprocess.Popen([sys.executable, "-I", "-S", __file__, code], **options).pid


def on_term(action: Any) -> None:
    signal.signal(signal.SIGTERM, lambda *_: action())


def forever() -> None:
    while True:
        time.sleep(60)


IS_OLD = False  # whether it does not know of server/discover

if __name__ == "__main__":
    exec(sys.argv[1])  # noqa: S102 (the point)
