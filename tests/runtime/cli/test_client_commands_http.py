"""``mcpgen inspect``, ``call``, ``read``, ``prompt`` and ``trace`` with a server at a URL."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.cli.terminals import run
from tests.specification.client.scripted_server import discovered, initialized

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

TOOL = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TOKEN = {"TOKEN": "secret"}
META = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": discovered(),
    "initialize": initialized("2025-11-25"),
    "tools/list": {"tools": [TOOL], **META},
    "resources/list": {"resources": [], **META},
    "resources/templates/list": {"resourceTemplates": [], **META},
    "prompts/list": {"prompts": [{"name": "greet"}], **META},
    "tools/call": {"content": [{"type": "text", "text": "three"}], "resultType": "complete"},
    "resources/read": {"contents": [{"uri": "test://x", "text": "the text"}], **META},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}], **META},
}


class Server(ThreadingHTTPServer):
    """Answers what it is asked, and notes the headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.said: list[dict[str, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.said.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.status != 200:
            self._answer(self.server.status, b"<html>Sign in!</html>")
        elif "id" not in message:
            self._answer(202, b"")
        elif self.path.startswith("/?"):
            refused = {"code": -32600, "message": "nothing is served at this path; the endpoint is /mcp"}
            self._answer(404, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": refused}).encode())
        else:
            result = {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS.get(message["method"], {})}
            self._answer(200, json.dumps(result).encode())

    def do_GET(self) -> None:
        self._answer(405, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json" if status == 200 else "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *parts: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_server_at_a_url_is_inspected(server: Server) -> None:
    status, out, err = run("inspect", f"{server.url}?key=secret", "--json")
    found = json.loads(out)

    assert (0, "") == (status, err)
    assert f"{server.url}?…" == found["url"]
    assert "command" not in found
    assert ["add"] == [each["name"] for each in found["tools"]]

    status, out, _ = run("inspect", server.url)

    assert 0 == status
    assert f"URL            {server.url}\n" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("call", "add", "a=1"), "three\n"),
        (("read", "test://x"), "the text"),
        (("prompt", "greet"), "hello"),
    ],
)
def test_a_server_at_a_url_is_used(server: Server, words: tuple[str, ...], expected: str) -> None:
    command, *rest = words
    status, out, err = run(command, server.url, *rest)

    assert (0, "") == (status, err)
    assert expected in out


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user whom the system does not know, as in many containers."""
    text = "import pwd\ndef unknown(uid):\n    raise KeyError(uid)\npwd.getpwuid = unknown\n"
    (tmp_path / "sitecustomize.py").write_text(text, encoding="utf-8")
    monkeypatch.delenv("HOME", raising=False)
    return {"PYTHONPATH": str(tmp_path), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""}


def test_a_server_without_a_login_needs_no_home(server: Server, homeless: dict[str, str]) -> None:
    assert (0, "three\n", "") == run("call", server.url, "add", "a=1", **homeless)


@pytest.mark.parametrize("command", ["login", "logout"])
def test_without_a_home_the_error_names_the_variables(command: str, server: Server, homeless: dict[str, str]) -> None:
    status, out, err = run(command, server.url, **homeless)
    told = "this user has no home folder, so there is no folder for tokens; set the environment variable HOME or XDG_S"

    assert (2, "", True) == (status, out, f"Error: {told}" in err), err
    assert [] == server.said


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_headers_and_a_token_go_with_every_request(server: Server, revision: str) -> None:
    words = ("--header", "X-Key: one", "--header", "X-Other:two", "--bearer-env", "TOKEN", "--revision", revision)
    status, out, err = run("call", server.url, "add", *words, **TOKEN)

    assert (0, "three\n", "") == (status, out, err)
    assert {("one", "two", "Bearer secret")} == {
        (each["x-key"], each["x-other"], each["authorization"]) for each in server.said
    }


@pytest.mark.parametrize("status", [401, 403, 500])
def test_what_the_server_refuses_is_said_and_secrets_are_not(server: Server, status: int) -> None:
    server.status = status
    words = ("--header", "X-Key: secret", "--bearer-env", "TOKEN")
    code, out, err = run("inspect", f"{server.url}?key=secret", *words, **TOKEN)

    assert (1, "") == (code, out)
    assert err.startswith(f"Error: {server.url}?… answered {status} ")
    assert "Sign in!" in err
    assert (status == 401) == ("pass --bearer-env, or --header;" in err)
    assert "secret" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inspect", "URL", "--env", "A=secret"), "`--env` and `--cwd` need a server command; TARGET is a URL."),
        (("inspect", "URL", "--cwd", "."), "`--env` and `--cwd` need a server command; TARGET is a URL."),
        (("inspect", "true", "--header", "X: secret"), "`--header` and `--bearer-env` need a URL; "),
        (("call", "true", "tool", "--bearer-env", "TOKEN"), "`--header` and `--bearer-env` need a URL; "),
        (("trace", "--header", "X: secret", "--", "true"), "`--header` and `--bearer-env` need a URL; "),
        (("inspect", "URL", "--header", "secret"), '`--header` must be "NAME: VALUE".'),
        (("inspect", "URL", "--header", "X Y: secret"), "invalid name before its colon; a name contains no space"),
        (("trace", "--header", "X/: secret", "--", "URL"), "invalid name before its colon; a name contains only "),
        (("inspect", "URL", "--header", "Mcp-Session-Id: secret"), "`--header` must not have Mcp-Session-Id"),
        (("inspect", "URL", "--header", "X: s\u00e9cret"), "`--header` has an invalid value for X"),
        (("inspect", "URL", "--header", "Authorization: secret", "--bearer-env", "PATH"), "`--bearer-env` sets, too"),
        (("inspect", "URL", "--bearer-env", "NOTHING"), "NOTHING (`--bearer-env`) is not set, or empty."),
        (("trace", "--bearer-env", "NOTHING", "--", "URL"), "NOTHING (`--bearer-env`) is not set, or empty."),
        (("inspect", "URL", "--bearer-env", "TOKEN"), "a bearer token must be visible ASCII without spaces"),
        (("inspect", "ftp://user:secret@example.com"), "'ftp://…' is not a URL of http or https"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_and_not_repeated(words: tuple[str, ...], said: str) -> None:
    status, out, err = run(*("http://127.0.0.1:1/" if each == "URL" else each for each in words), TOKEN="se" + " cret")

    assert (2, "") == (status, out)
    assert said in " ".join(err.split())
    assert "secret" not in err
    assert "se cret" not in err


def test_a_server_that_is_not_there_is_named() -> None:
    status, out, err = run("inspect", "http://127.0.0.1:1/mcp")

    assert (1, "") == (status, out)
    assert "Error: cannot connect to http://127.0.0.1:1/mcp: Connection refused\n" == err


def test_the_url_of_the_endpoint_is_named_at_another_path(server: Server) -> None:
    status, _, err = run("inspect", f"{server.url.removesuffix('/mcp')}?key=secret")

    assert 1 == status
    assert err.endswith(f"nothing is served at this path; the endpoint is /mcp\nUse {server.url}\n")


# --- trace

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "i",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {}}}


def lines(*messages: object) -> bytes:
    return b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in messages)


def test_a_host_is_traced_on_its_way_to_a_server_at_a_url(server: Server) -> None:
    told = lines(INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, CALL)
    words = ("--header", "X-Key: one", "--bearer-env", "TOKEN", "--json", "--", server.url)
    status, out, err = run("trace", *words, given=told, **TOKEN)
    answers = [json.loads(each) for each in out.splitlines()]
    events = [json.loads(each) for each in err.splitlines()]

    assert 0 == status
    assert ["i", 2] == [each["id"] for each in answers]
    assert RESULTS["tools/call"]["content"] == answers[1]["result"]["content"]
    assert {("one", "Bearer secret")} == {(each["x-key"], each["authorization"]) for each in server.said}
    assert ["initialize", "notifications/initialized", "tools/call"] == [
        each["method"] for each in events if each["direction"] == "to server"
    ]
    assert "secret" not in err


def test_a_host_gets_an_error_where_http_has_no_answer() -> None:
    status, out, err = run("trace", "http://127.0.0.1:1/mcp", given=lines(INITIALIZE))
    (answer,) = [json.loads(each) for each in out.splitlines()]

    assert 0 == status
    assert ("i", -32603) == (answer["id"], answer["error"]["code"])
    assert "cannot connect to http://127.0.0.1:1/mcp: Connection refused" == answer["error"]["message"]
    assert "2 messages, no violations; the host has disconnected" in err


PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize(
    "told",
    [
        (PING,),
        (PING, INITIALIZE, INITIALIZED, CALL),
        (INITIALIZE, PING),
        (INITIALIZE, CALL),
        (INITIALIZE, {**PING, "method": "notifications/initialized"}),
    ],
    ids=["alone", "before", "between", "never initialized", "initialized as a request"],
)
@pytest.mark.parametrize("failing", [200, 401])
def test_a_host_that_shakes_hands_in_another_order_is_answered(
    server: Server, told: tuple[Any, ...], failing: int
) -> None:
    server.status = failing
    status, out, err = run("trace", server.url, given=lines(*told))
    answers = [json.loads(each) for each in out.splitlines()]

    assert 0 == status
    assert sorted(str(each["id"]) for each in told if "id" in each) == sorted(str(each["id"]) for each in answers)
    assert "Traceback" not in err


def test_what_a_host_writes_that_is_no_message_harms_nothing(server: Server) -> None:
    status, out, err = run("trace", server.url, given=lines(b"nonsense\n", b"x" * 5_000_000 + b"\n", INITIALIZE))

    assert 0 == status
    assert ["i"] == [json.loads(each)["id"] for each in out.splitlines()]
    assert "Traceback" not in err
