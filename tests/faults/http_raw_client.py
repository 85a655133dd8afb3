"""A client that writes bytes to a socket and reads what comes back, strictly; and the bytes of requests."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any, Final, NamedTuple

from tests.patience import PATIENCE_SECONDS

OLD: Final = "2025-11-25"
NEW: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
BOTH: Final = "application/json, text/event-stream"


class Reply(NamedTuple):
    """A response.

    Attributes:
        headers: Names in lower case.
        body: Empty if it has not been read.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body.removeprefix(b"data: "))  # a response that takes long becomes a stream


class Closed(Exception):  # noqa: N818 (no error, where it is expected)
    """The server has closed the connection."""


class Line:
    """A connection."""

    def __init__(self, port: int, receive_bytes: int | None = None, source: str | None = None) -> None:
        self.socket = socket.socket()
        if source is not None:  # the address that the server sees
            self.socket.bind((source, 0))
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(PATIENCE_SECONDS)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.own_port: int = self.socket.getsockname()[1]
        self._data = b""
        self._is_chunked = False

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def flood(self, data: bytes, times: int) -> int:
        """Send *data* often, until the server hangs up; return how often it went out."""
        sent = 0
        try:
            for sent in range(times):  # noqa: B007 (what is returned)
                self.socket.sendall(data)
        except OSError:
            return sent
        return times

    def trickle(self, data: bytes) -> Reply:
        """Send *data* again and again, a thousand times in a second, until a response comes; return the response."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not select.select([self.socket], [], [], 0.001)[0]:
            assert time.monotonic() < deadline, "no response comes"
            self.send(data)
        return self.reply()

    def reply(self) -> Reply:
        """Return the next response, whole."""
        found = self.head()
        if self._is_chunked:
            parts = []
            while part := self.chunk():
                parts.append(part)
            return found._replace(body=b"".join(parts))
        if found.status in (204, 304):
            return found
        return found._replace(body=self._exactly(int(found.headers.get("content-length", "0"))))

    def head(self) -> Reply:
        """Return the next response, of which the body is still to come."""
        while True:
            first, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, status, _ = first.split(" ", 2)
            assert version == "HTTP/1.1", first
            headers: dict[str, str] = {}
            for line in lines:
                name, colon, value = line.partition(":")
                assert colon, line
                assert name.lower() not in headers, f"{name} twice"
                headers[name.lower()] = value.strip()
            if status != "100":
                self._is_chunked = headers.get("transfer-encoding") == "chunked"
                return Reply(int(status), headers, b"")

    def chunk(self) -> bytes:
        """Return the next chunk of a body; empty behind the last."""
        size = int(self._until(b"\r\n"), 16)
        data = self._exactly(size + 2)
        assert data.endswith(b"\r\n"), data
        return data[:-2]

    def events(self) -> list[dict[str, str]]:
        """Return the next events; none at the end of the stream. Comments are passed over."""
        text = ""
        while not text or not text.endswith("\n\n"):
            part = self.chunk()
            if not part:
                assert not text, text
                return []
            text += part.decode()
            if text.startswith(":") and text.endswith("\n\n") and text.count("\n") == 2:
                text = ""
        blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
        found = [dict(line.partition(": ")[::2] for line in block.split("\n")) for block in blocks]
        return found or self.events()

    def messages(self) -> list[Any]:
        """Return all messages that come until the stream ends."""
        found: list[Any] = []
        while events := self.events():
            found += [json.loads(each["data"]) for each in events if each.get("data")]
        return found

    def rest(self) -> bytes:
        """Return all that comes until the server hangs up."""
        data, self._data = self._data, b""
        try:
            while part := self.socket.recv(65536):
                data += part
        except ConnectionError:
            pass
        return data

    def is_closed(self) -> bool:
        """Return whether the server hangs up, with nothing more to say; it has to do the one or the other."""
        try:
            return not self._data and not self.socket.recv(1)
        except ConnectionError:
            return True

    def _until(self, end: bytes) -> bytes:
        while end not in self._data:
            self._more()
        found, _, self._data = self._data.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            self._more()
        found, self._data = self._data[:size], self._data[size:]
        return found

    def _more(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionError as error:
            raise Closed from error
        if not data:
            raise Closed(self._data)
        self._data += data

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close the connection as a crashed client does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()


def head(method: str, target: str = "/mcp", *lines: str, host: str | None = "127.0.0.1") -> bytes:
    """Return the head of a request."""
    own = [] if host is None else [f"Host: {host}"]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *own, *lines, "", ""]).encode("latin-1")


def posted(body: bytes, *lines: str, target: str = "/mcp", host: str | None = "127.0.0.1") -> bytes:
    """Return a whole POST."""
    own = ("Content-Type: application/json", f"Accept: {BOTH}", f"Content-Length: {len(body)}")
    return head("POST", target, *own, *lines, host=host) + body


def request(identity: int | str, method: str, params: dict[str, Any], meta: dict[str, Any] | None = None) -> bytes:
    """Return a request of a stateless client."""
    own = {
        f"{META}protocolVersion": NEW,
        f"{META}clientInfo": {"name": "c", "version": "1"},
        f"{META}clientCapabilities": {},
        **(meta or {}),
    }
    message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": {**params, "_meta": own}}
    return json.dumps(message).encode()


def mirrored(method: str, name: str | None = None) -> tuple[str, ...]:
    """Return the headers that repeat a stateless request."""
    own = (f"MCP-Protocol-Version: {NEW}", f"Mcp-Method: {method}")
    return own if name is None else (*own, f"Mcp-Name: {name}")


ECHO: Final = request(1, "tools/call", {"name": "echo", "arguments": {"text": "hi"}})
SAID: Final = b'"text":"hi"'  # what its answer holds


def called(tool: str, identity: int | str = 1, meta: dict[str, Any] | None = None, **arguments: Any) -> bytes:
    """Return the POST of a stateless client that calls a tool."""
    body = request(identity, "tools/call", {"name": tool, "arguments": arguments}, meta)
    return posted(body, *mirrored("tools/call", tool))


def listened(identity: int | str = 1) -> bytes:
    """Return the POST of a stateless client that wants to hear of changes."""
    body = request(identity, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    return posted(body, *mirrored("subscriptions/listen"))


def initialize(revision: str = OLD, capabilities: dict[str, Any] | None = None) -> bytes:
    """Return the message that begins a session."""
    info = {"name": "c", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}
    return json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()


def message(method: str, identity: int | str | None = None, **params: Any) -> bytes:
    """Return a message within a session."""
    own = {} if identity is None else {"id": identity}
    return json.dumps({"jsonrpc": "2.0", **own, "method": method, "params": params}).encode()


def calling(tool: str, identity: int | str = 1, token: str | None = None, **arguments: Any) -> bytes:
    """Return a call within a session."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return message("tools/call", identity, name=tool, arguments=arguments, **meta)


def joined(line: Line, revision: str = OLD) -> tuple[str, ...]:
    """Shake hands; return the headers that go with each request from now on."""
    line.send(posted(initialize(revision)))
    found = line.reply()
    assert found.status == 200, found
    own = (f"Mcp-Session-Id: {found.headers['mcp-session-id']}", f"MCP-Protocol-Version: {revision}")
    line.send(posted(message("notifications/initialized"), *own))
    assert line.reply().status == 202
    return own


def wait(seconds: float) -> None:
    """Let time go by."""
    time.sleep(seconds)
