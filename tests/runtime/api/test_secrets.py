"""No error, log, repr or trace shows the headers, the environment, the token or the credentials of a server."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mcpgen import ClientLimits, Http, McpgenError, Process, Server, bearer, connect
from mcpgen.runtime.api.hosts.config import parse_config
from mcpgen.runtime.transports.command_line import hide_userinfo
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

SECRET = "hunter2"  # noqa: S105 (planted)


class Refusing(BaseHTTPRequestHandler):
    """Answers each request with the status and the headers of the server."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.server.status)  # type: ignore[attr-defined]  # set by the fixture
        self.send_header("Content-Length", "0")
        if 300 <= self.server.status < 400:  # type: ignore[attr-defined]  # as above
            self.send_header("Location", f"http://u:{SECRET}@127.0.0.2:1/?token={SECRET}")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 (as the base class calls it)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as the base class calls it)
        pass


@pytest.fixture(params=[401, 307, 404, 500])
def port(request: pytest.FixtureRequest) -> Generator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.status = request.param  # type: ignore[attr-defined]  # read by the handler
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def all_said(failure: BaseException) -> str:
    return "".join(traceback.format_exception(failure)) + repr(failure)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("is_own_client", [False, True])
@pytest.mark.slow
async def test_a_server_that_refuses_shows_nothing(
    port: int, caplog: pytest.LogCaptureFixture, *, is_own_client: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    for auth in (None, bearer(SECRET), httpx.BasicAuth("u", SECRET)):
        async with httpx.AsyncClient() as client:
            transport = Http(
                f"http://user:{SECRET}@127.0.0.1:{port}/mcp?token={SECRET}",
                headers={"X-Key": SECRET},
                auth=auth,
                client=client if is_own_client else None,
            )
            connection = connect(transport, limits=ClientLimits(connect_seconds=5))
            with pytest.raises(McpgenError) as failure:
                await connection
        said += [repr(transport), repr(auth), repr(connection), transport.description, all_said(failure.value)]

    assert f"http://127.0.0.1:{port}/mcp" in caplog.text  # httpx logs it
    # httpcore logs the headers of responses.
    said += [each.getMessage() for each in caplog.records if not each.name.startswith("httpcore")]
    assert SECRET not in "\n".join(said)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_process_that_fails_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    words = [sys.executable, "-c", "pass", f"postgres://user:{SECRET}@host/db", f"--dsn=user:{SECRET}@host"]
    transport = Process(words, environment={"TOKEN": SECRET})
    connection = connect(transport)
    with pytest.raises(McpgenError) as failure:
        await connection

    assert "postgres://…@host/db --dsn=…@host" in str(failure.value)
    assert SECRET not in "\n".join([repr(transport), repr(connection), all_said(failure.value), caplog.text])


def test_credentials_are_found_in_a_long_command_at_one_go() -> None:
    """A search from each `=` or each colon to the end of its word takes hours for a word of this length."""
    for word in ("=a:", "a:", "'a"):
        text = word * 500_000

        assert [text, f"{text} …@host"] == [hide_userinfo(text), hide_userinfo(f"{text} {SECRET}:{SECRET}@host")]


EXPANDED = {
    "a program": {"command": "/bin/${PLANTED}"},
    "a program on PATH": {"command": "${PLANTED}"},
    "a program that is not executable": {"command": "/${PLANTED_PATH}"},
    "a Python file": {"command": "./${PLANTED}.py"},
    "a directory": {"command": sys.executable, "cwd": "/tmp/${PLANTED}"},  # noqa: S108 (is not there)
    "arguments and environment": {
        "command": sys.executable,
        "args": ["-c", "import os; os._exit(3)", "${PLANTED}"],
        "env": {"TOKEN": "${PLANTED}"},
    },
    "a variable that is not set": {"command": "x", "args": ["${PLANTED}", "${NOT_PLANTED}"]},
    "an address": {"url": "http://u:${PLANTED}@127.0.0.1:1/mcp?token=${PLANTED}", "headers": {"X-Key": "${PLANTED}"}},
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("what", EXPANDED)
async def test_the_variables_of_a_configuration_are_not_shown(
    what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    locked = tmp_path / SECRET
    locked.touch(mode=0o600)
    monkeypatch.setenv("PLANTED", SECRET)
    monkeypatch.setenv("PLANTED_PATH", str(locked)[1:])
    with pytest.raises(McpgenError) as failure:
        await connect({"mcpServers": {"a": EXPANDED[what]}})
    (entry,) = parse_config({"mcpServers": {"a": EXPANDED[what]}})
    said = [repr(entry)] if entry.problem else [repr(entry), repr(entry.transport()), entry.transport().description]

    assert "a" in str(failure.value)
    assert SECRET not in "\n".join([*said, all_said(failure.value), caplog.text])


CONFIG = {"mcpServers": {"a": {"url": SECRET}}}

WRONG: dict[str, Callable[[], Any]] = {
    "a configuration": lambda: connect({"url": "http://a", "headers": {"Authorization": SECRET}}),
    "the servers of a configuration": lambda: connect({"mcpServers": [{"env": SECRET}]}),
    "an option for a configuration": lambda: connect(CONFIG, limits=[SECRET]),  # type: ignore[call-overload]
    "options": lambda: connect("http://a", limits={"headers": SECRET}),  # type: ignore[call-overload]
    "a part of a command": lambda: connect(["a", {"env": SECRET}]),  # type: ignore[list-item]
    "quotes": lambda: connect(f"a 'b http://u:{SECRET}@host"),
    "a program that is a URL": lambda: connect(f"ftp://u:{SECRET}@host"),
    "no program": lambda: connect(["", f"http://u:{SECRET}@host"]),
    "NUL": lambda: connect(["a", f"http://u:{SECRET}@host\0"]),
    "no text": lambda: Http({"Authorization": SECRET}),  # type: ignore[arg-type]
    "no scheme": lambda: Http(f"user:{SECRET}@host/mcp?token={SECRET}"),
    "a scheme": lambda: Http(f"ws://user:{SECRET}@host"),
    "a port": lambda: Http(f"http://user:{SECRET}/x@host"),
    "white space": lambda: Http(f"http://user:{SECRET} @host"),
    "a name": lambda: Http("http://a", headers={f"Authorization: {SECRET}": ""}),
    "a value": lambda: Http("http://a", headers={"Authorization": f"{SECRET}\n"}),
    "a reserved name": lambda: Http("http://a", headers={"Accept": SECRET}),
    "no mapping": lambda: Http("http://a", headers=[f"Authorization: {SECRET}"]),  # type: ignore[arg-type]
    "a token": lambda: bearer(f"{SECRET}\n"),
    "a token that is none": lambda: Http("http://a", auth=SECRET),  # type: ignore[arg-type]
    "a variable": lambda: Process("a", environment={"A": f"{SECRET}\0"}),
    "a variable that is none": lambda: Process("a", environment={"A": [SECRET]}),  # type: ignore[dict-item]
    "a state key": lambda: Server("a", state_keys=[SECRET.encode()]),
    "state keys": lambda: Server("a", state_keys=SECRET),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", WRONG)
def test_an_argument_that_is_wrong_is_not_shown(what: str) -> None:
    with pytest.raises(McpgenError) as failure:
        WRONG[what]()

    assert SECRET not in all_said(failure.value)


COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "URL", "--header", f"X-Key: {SECRET}", "--bearer-env", "TOKEN"),
    "json": ("inspect", "--json", "URL", "--header", f"X-Key: {SECRET}"),
    "call": ("call", "URL", "tool", "--bearer-env", "TOKEN"),
    "read": ("read", "URL", "a:b", "--bearer-env", "TOKEN"),
    "trace": ("trace", "--output", "FILE", "--body", "--bearer-env", "TOKEN", "--", "URL"),
    "a header": ("inspect", "URL", "--header", f"Authorization {SECRET}"),
    "a header name": ("inspect", "URL", "--header", f"X {SECRET}: x"),
    "a variable": ("inspect", "--env", f"={SECRET}", "true"),
    "the environment": ("inspect", "--env", f"KEY={SECRET}", "true"),
    "a URL with a port": ("inspect", f"http://u:{SECRET}/x@host"),
    "a URL among words": ("inspect", "--", "URL", "more"),
    "a configuration": ("inspect", "--config", "CONFIG"),
    "a configuration as json": ("inspect", "--json", "--config", "CONFIG", "--server", "url"),
    "a call with a configuration": ("call", "--config", "CONFIG", "--server", "exiting", "tool"),
    "an unknown server": ("read", "--config", "CONFIG", "--server", "none", "a:b"),
    "install": ("install", "SERVER", "--host", "cursor", "--file", "CONFIG", "--name", "exiting", "--yes"),
    "a missing program": ("inspect", "--", f"u:{SECRET}@host"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("port", [401], indirect=True)
def test_commands_write_nothing(what: str, port: int, tmp_path: Path) -> None:
    url = f"http://user:{SECRET}@127.0.0.1:{port}/mcp?token={SECRET}"
    trace = tmp_path / "trace"
    servers = {
        "url": {"url": url, "headers": {"X-Key": SECRET, "Authorization": "Bearer ${TOKEN}"}, "oauth": SECRET},
        "exiting": {"command": sys.executable, "args": ["-c", "", f"--key={SECRET}"], "env": {"KEY": "${TOKEN}"}},
        "missing": {"command": "no-such-program", "args": [SECRET], "env": {"KEY": SECRET}},
        "wrong": {"command": "x", "args": SECRET},
    }
    config = tmp_path / "home" / "mcp.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    placed = {"URL": url, "FILE": str(trace), "CONFIG": str(config), "SERVER": str(tmp_path / "shop.py")}
    (tmp_path / "shop.py").write_text("from mcpgen import Server\nserver = Server('shop')\n", encoding="utf-8")
    words = [placed.get(each, each) for each in COMMANDS[what]]
    command = "from mcpgen.cli import main; import logging; logging.basicConfig(level='DEBUG'); main()"
    said = subprocess.run(
        [sys.executable, "-c", command, *words],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        env={**os.environ, "TOKEN": SECRET, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    written = b"".join(
        each.read_bytes() for each in tmp_path.rglob("*") if each.is_file() and each.parent != config.parent
    )

    assert said.stderr or said.stdout
    assert SECRET.encode() not in said.stdout + said.stderr + written
    if what == "trace":
        assert b"--bearer-env, or --header" in said.stdout
