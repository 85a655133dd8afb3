"""A server that deviates as one kind says: ``scripted_server.py KIND REVISION`` serves it over stdio.

It answers by the table below and no rule, so that it depends on no SDK. `ScriptedServer` moves no bytes:
``scripted_http.py`` serves it over HTTP, and tests in memory.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":  # it is started alone, by interpreters that do not know the checkout
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.interop.sloppy.kinds import STATELESS, put, server_kinds

if TYPE_CHECKING:
    from tests.interop.sloppy.kinds import Kind

__all__ = ["ScriptedServer"]

Wire = dict[str, Any]

CAPABILITIES: Wire = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ANSWERS: dict[str, Wire] = {
    "initialize": {"capabilities": CAPABILITIES, "serverInfo": {"name": "sloppy", "version": "1.0"}},
    "server/discover": {"capabilities": CAPABILITIES, "supportedVersions": [STATELESS]},
    "ping": {},
    "logging/setLevel": {},
    "tools/list": {
        "tools": [
            {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
            {"name": "sum", "inputSchema": {"type": "object", "properties": {}}, "outputSchema": SUM},
        ]
    },
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "resources/list": {"resources": [{"uri": "test://a", "name": "a"}, {"uri": "test://b", "name": "b"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "test://{x}", "name": "t"}]},
    "resources/read": {"contents": [{"uri": "test://a", "text": "alpha"}]},
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "who"}]}, {"name": "q"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]},
    "completion/complete": {"completion": {"values": ["one", "two"]}},
}
CACHED = ("server/discover", "resources/read")  # and all lists

# Which requests a kind of each table deviates in, if it is not the one that the table is named after.
EXCHANGES = {
    "hello": ("initialize", "server/discover"),
    "envelope": ("tools/call",),
    "question": (),
    "http": ("tools/list", "tools/call"),
}


class ScriptedServer:
    """One connection to the server.

    Args:
        kind: How it deviates.
        revision: What it speaks; it offers no other.
    """

    def __init__(self, kind: Kind, revision: str) -> None:
        self._kind = kind
        self._revision = revision
        self._exchanges = EXCHANGES.get(kind.exchange, (kind.exchange,))
        self._page = 0
        self._asked: Any = None  # the id of the call that waits for the client's answer

    def receive(self, text: str) -> str:
        """Return what is written for a message, lines with their ends; it may be nothing."""
        message = json.loads(text)
        if "method" in message:
            return self._answer(message) if "id" in message else ""
        if message.get("id") != "question":
            return ""
        outcome = "answered" if "result" in message else f"refused: {message.get('error')}"
        return self._write({"id": self._asked, "result": self._result("tools/call", outcome)})

    def _answer(self, request: Wire) -> str:
        method, params = request["method"], request.get("params") or {}
        if method == "tools/call" and self._kind.exchange == "question":
            self._asked = request["id"]
            return self._write({"id": "question", **json.loads(self._kind.ask)})
        if method not in ANSWERS or method == ("initialize" if self._revision == STATELESS else "server/discover"):
            return self._write(_error(request["id"], -32601, "Method not found"))
        if method == "tools/call" and params.get("name") == "error":
            return self._write(_error(request["id"], -32602, "no such tool"))
        answer: Wire = {"jsonrpc": "2.0", "id": request["id"], "result": self._result(method)}
        if method == "tools/list" and self._kind.pages != "[]":
            self._turn(answer["result"], params)
        if method not in self._exchanges:
            return self._write(answer)
        self._fill(answer["result"])
        put(answer, self._kind.put, "result/")
        token = (params.get("_meta") or {}).get("progressToken")
        before, after = (
            "".join(map(self._write, json.loads(notes.replace('"$token"', json.dumps(token)))))
            for notes in (self._kind.before, self._kind.after)
        )
        return before + self._kind.line.replace("{}", json.dumps(answer)) + "\n" + after

    def _result(self, method: str, text: str = "") -> Wire:
        result = copy.deepcopy(ANSWERS[method])
        if method == "initialize":
            result["protocolVersion"] = self._revision
        if self._revision < "2025-03-26":
            result.get("capabilities", {}).pop("completions", None)
        if self._revision == STATELESS:
            result["resultType"] = "complete"
            if method.endswith("/list") or method in CACHED:
                result |= {"ttlMs": 0, "cacheScope": "private"}
        if method == "tools/list" and self._revision < "2025-06-18":
            del result["tools"][1]["outputSchema"]
        if text:
            result["content"][0]["text"] = text
        return result

    def _turn(self, result: Wire, params: Wire) -> None:
        """Make the result one page of the kind's."""
        cursors = json.loads(self._kind.pages)
        self._page = self._page + 1 if "cursor" in params else 0
        result["tools"] = [{**result["tools"][0], "name": f"page-{self._page}"}]
        if self._page < len(cursors):
            result["nextCursor"] = cursors[self._page]

    def _fill(self, result: Wire) -> None:
        if self._kind.exchange == "tools/list":
            tools = result["tools"]
            tools += [{**tools[0], "name": f"tool-{number}"} for number in range(2, self._kind.fill)]
        elif self._kind.fill:
            result["completion"]["values"] = [str(number) for number in range(self._kind.fill)]

    def _write(self, message: Wire) -> str:
        return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def _error(request_id: Any, code: int, message: str) -> Wire:
    return {"id": request_id, "error": {"code": code, "message": message}}


def main(kind: str, revision: str) -> None:
    """Serve over stdio until the input ends."""
    server = ScriptedServer(server_kinds()[kind], revision)
    for line in sys.stdin:
        for number, written in enumerate(server.receive(line).splitlines(keepends=True)):
            if number:  # some readers lose what comes in one chunk with an answer, however exact it is
                time.sleep(0.02)
            sys.stdout.buffer.write(written.encode())
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
