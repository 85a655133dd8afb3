"""The sloppy servers over Streamable HTTP, each at a path of its own: ``/KIND/REVISION/mcp``."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.interop.sloppy.kinds import server_kinds
from tests.interop.sloppy.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["serving"]


class Handler(BaseHTTPRequestHandler):
    """Answers as the path's kind says; a connection serves requests of one or more."""

    protocol_version = "HTTP/1.1"
    close_connection: bool

    def _options(self) -> tuple[str, str, dict[str, Any]]:
        _, name, revision, *_ = self.path.split("/")
        return name, revision, server_kinds()[name].http or {}

    def _send(self, status: int, body: str = "", **headers: str) -> None:
        data = body.encode()
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        status = self._options()[2].get("get", 405)
        self._send(status, "<p>Hello</p>" if status == 200 else "", Content_Type="text/html")

    def do_DELETE(self) -> None:
        self._send(self._options()[2].get("delete", 405))

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        name, revision, options = self._options()
        if "redirect" in options and self.path.endswith("/mcp"):
            port = self.server.server_address[1]
            away = f"http://localhost:{port}" if options["to"] == "other" else ""
            self._send(options["redirect"], Location=f"{away}{self.path}/")
            return
        answer = ScriptedServer(server_kinds()[name], revision).receive(text).strip()
        if not answer:
            self._send(options.get("notified", 202), options.get("notified_body", ""), Content_Type="application/json")
            return
        kind = "text/event-stream" if "stream" in options else "application/json"
        headers = {"Content_Type": options.get("type", kind)} if options.get("type", kind) else {}
        if "session" in options:
            headers["Mcp_Session_Id"] = json.loads(options["session"])[json.loads(text)["method"] != "initialize"]
        status = options.get("failed", 200) if '"error": {"code": -32602' in answer else 200
        body = options["stream"].replace("{}", answer) if "stream" in options else answer
        self._send(status, body, **headers)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Serves in threads, and is silent about clients that go away."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Print nothing: what a reader makes of it is judged elsewhere."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve within the block; gives the address."""
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
