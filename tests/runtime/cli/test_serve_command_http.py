"""The command ``serve --http``: what makes no sense is explained in the words of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from typing import TYPE_CHECKING

import httpx
import pytest
from click.testing import CliRunner

from mcpgen.runtime.cli.serve_command import serve
from tests.runtime.http.issuer import running_issuer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--http", "8000"], "'8000' is not HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000"),
        (["--http", ":8000"], "':8000' is not HOST:PORT, such as"),
        (["--http", "::1:8000"], "'::1:8000' is not HOST:PORT, such as"),
        (["--http", "127.0.0.1:70000"], "'127.0.0.1:70000' has the port 70000, which is not between 0 and 65535"),
        (["--http", "http://127.0.0.1:8000/mcp"], "'http://127.0.0.1:8000/mcp' is not HOST:PORT, such as"),
        (["--http", "192.0.2.1:0"], "cannot listen on 192.0.2.1:0"),
        (["--http", "127.0.0.1:0", "--workers", "x"], "'x' is not a whole number."),
        (["--http", "127.0.0.1:0", "--path", "mcp"], "`--path` is 'mcp'; it must begin with /"),
        (
            ["--http", "127.0.0.1:0", "--path", "/sse"],
            "`--path` and the path of HTTP+SSE must be different paths, but both are '/sse'.",
        ),
        (
            ["--http", "127.0.0.1:0", "--health", "/messages"],
            "the path of the messages of HTTP+SSE and `--health` must be different paths, but both are '/messages'.",
        ),
        (
            ["--http", "127.0.0.1:0", "--allow-origin", "a b"],
            "`--allow-origin` has the invalid entry 'a b'; examples are",
        ),
        (["--http", "127.0.0.1:0", "--allow-host", "a/b"], "`--allow-host` has the invalid entry 'a/b'; examples are"),
        (
            ["--path", "/other"],
            "`--path`, `--health`, `--allow-origin`, `--allow-host` and `--trusted-proxy` are for HTTP: add `--http",
        ),
        (["--allow-host", "example.com"], "are for HTTP: add `--http HOST:PORT`."),
    ],
)
def test_what_makes_no_sense_is_explained(options: list[str], reason: str, tmp_path: Path) -> None:
    program = tmp_path / "demo.py"
    program.write_text('from mcpgen import Server\n\nserver = Server("demo")\n', encoding="utf-8")
    done = CliRunner().invoke(serve, [str(program), *options])

    assert 2 == done.exit_code
    assert reason in done.output


def test_a_lifespan_that_raises_shows_its_own_traceback(tmp_path: Path) -> None:
    program = tmp_path / "demo.py"
    program.write_text(
        "from contextlib import asynccontextmanager\nfrom mcpgen import Server\n\n\n"
        "@asynccontextmanager\nasync def life(_):\n    yield 1 / 0\n\n\nserver = Server('demo', lifespan=life)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mcpgen", "serve", "demo.py", "--http", "127.0.0.1:0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert 1 == done.returncode
    head, frame, *_ = done.stderr.splitlines()
    assert "Traceback (most recent call last):" == head
    assert "demo.py" in frame
    assert done.stderr.endswith(
        "ZeroDivisionError: division by zero\n"
        "Error: demo.py: the server has stopped, because its code raised ZeroDivisionError.\n"
    )


def test_redis_without_its_extra_is_told_as_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    done = CliRunner().invoke(serve, ["demo.py", "--http", "127.0.0.1:0", "--redis", "redis://127.0.0.1"])

    assert 2 == done.exit_code
    assert "Error: `--redis` needs redis, which is not installed:" in done.output


@pytest.mark.parametrize(
    ("options", "address"),
    [
        (["--port", "9000"], "127.0.0.1:9000"),
        (["--host", "0.0.0.0"], "0.0.0.0:8000"),  # noqa: S104 (only in a text)
        (["--host", "::1"], "[::1]:8000"),
        (["--port", "any"], "127.0.0.1:8000"),
        (["--transport", "http"], "127.0.0.1:8000"),
        (["--port=9000", "--http", "127.0.0.1:0"], "127.0.0.1:9000"),
    ],
)
def test_options_of_other_frameworks_are_answered_with_ours(options: list[str], address: str) -> None:
    done = CliRunner().invoke(serve, ["server.py", *options])

    name = options[0].partition("=")[0]
    assert 2 == done.exit_code
    assert f"There is no option `{name}`. To serve over HTTP, use `--http {address}`." in done.output


# PYTHONSAFEPATH may leave the working directory out.
_IMPORT = "import sys; sys.path.insert(0, ''); import demo"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "is_open"),
    [
        (["-m", "mcpgen", "serve", "demo.py", "--http", "0.0.0.0:0"], True),
        (["-m", "mcpgen", "serve", "demo.py", "--http", "127.0.0.1:0"], False),
        (["-m", "mcpgen", "serve", "demo.py", "--http", "localhost:0"], False),
        (["-c", f"{_IMPORT}; demo.server.run(http='0.0.0.0:0')"], True),
        (["-c", f"{_IMPORT}; demo.server.run(http='0.0.0.0:0', user=lambda scope: 'Ann')"], False),
    ],
)
def test_a_server_that_is_open_to_other_machines_says_so(
    arguments: list[str], tmp_path: Path, *, is_open: bool
) -> None:
    (tmp_path / "demo.py").write_text('from mcpgen import Server\n\nserver = Server("demo")\n', encoding="utf-8")
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, encoding="utf-8") as process:
        assert process.stderr
        first = process.stderr.readline()
        process.terminate()
        rest = process.stderr.read()

    line = "mcpgen: the server is open to all machines that can reach this one, without authentication\n"
    assert first.startswith("mcpgen: serving demo at http://")
    assert (line if is_open else "") == rest


def test_help_does_not_show_options_of_other_frameworks() -> None:
    shown = CliRunner().invoke(serve, ["--help"]).output

    assert [] == [each for each in ("--port", "--host ", "--transport") if each in shown]


_FILES = """
from mcpgen import Context, Server

server = Server("demo")


@server.tool(scopes=["files:write"])
def write(ctx: Context) -> str:
    return ctx.access.subject
"""


@pytest.mark.slow
def test_a_server_can_demand_access_tokens(tmp_path: Path) -> None:
    (tmp_path / "demo.py").write_text(_FILES, encoding="utf-8")
    resource = "https://mcp.example.com/mcp"
    with running_issuer() as issuer:
        options = [
            "--resource",
            resource,
            "--auth-issuer",
            issuer.url,
            "--auth-scope",
            "mcp",
            "--auth-audience",
            "demo",
        ]
        command = [sys.executable, "-m", "mcpgen", "serve", "demo.py", "--http", "127.0.0.1:0", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, encoding="utf-8") as process:
            try:
                assert process.stderr
                url = process.stderr.readline().split()[-1]
                called = [
                    subprocess.run(
                        [sys.executable, "-m", "mcpgen", "call", "--bearer-env", "TOKEN", url, "write"],
                        env={**os.environ, "TOKEN": token},
                        capture_output=True,
                        check=False,
                        encoding="utf-8",
                    )
                    for token in (
                        issuer.token(scope="mcp files:write"),
                        issuer.token(scope="mcp files:write", aud="demo"),
                        issuer.token(scope="mcp files:write", aud="other"),
                        issuer.token(scope="mcp"),
                    )
                ]
                with httpx.Client() as client:
                    origin = url.removesuffix("/mcp")
                    metadata = client.get(f"{origin}/.well-known/oauth-protected-resource/mcp").json()
            finally:
                process.terminate()

    assert ["ann\n", "ann\n", "", ""] == [each.stdout for each in called]
    assert "401" in called[2].stderr
    assert "files:write" in called[3].stderr
    assert (resource, [issuer.url], ["mcp"]) == (
        metadata["resource"],
        metadata["authorization_servers"],
        metadata["scopes_supported"],
    )


@pytest.mark.slow
def test_a_server_can_ask_about_opaque_tokens(tmp_path: Path) -> None:
    (tmp_path / "demo.py").write_text(_FILES, encoding="utf-8")
    resource = "https://mcp.example.com/mcp"
    with running_issuer() as issuer:
        answer = {"active": True, **issuer.claims(scope="mcp files:write")}
        issuer.documents["/introspect"] = lambda form: answer if "token=1234&" in form else {"active": False}
        options = ["--resource", resource, "--auth-issuer", issuer.url, "--auth-introspection", "AN_ID", "A_SECRET"]
        command = [sys.executable, "-m", "mcpgen", "serve", "demo.py", "--http", "127.0.0.1:0", *options]
        environment = {**os.environ, "AN_ID": "files", "A_SECRET": "s3cret"}
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, cwd=tmp_path, encoding="utf-8", env=environment
        ) as process:
            try:
                assert process.stderr
                url = process.stderr.readline().split()[-1]
                called = [
                    subprocess.run(
                        [sys.executable, "-m", "mcpgen", "call", "--bearer-env", "TOKEN", url, "write"],
                        env={**os.environ, "TOKEN": token},
                        capture_output=True,
                        check=False,
                        encoding="utf-8",
                    )
                    for token in ("1234", "4321")
                ]
            finally:
                process.terminate()

    assert ["ann\n", ""] == [each.stdout for each in called]
    assert {f"Basic {b64encode(b'files:s3cret').decode()}"} == {credentials for _, credentials in issuer.forms}


_ENOUGH = ["--http", "127.0.0.1:0", "--resource", "https://a.example/mcp", "--auth-issuer", "https://a.example"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--auth-issuer", "https://a.example"], "Access tokens need all of"),
        (["--http", "127.0.0.1:0", "--resource", "https://a.example/mcp"], "Access tokens need all of"),
        (["--http", "127.0.0.1:0", "--auth-scope", "a"], "Access tokens need all of"),
        (
            ["--http", "127.0.0.1:0", "--resource", "http://a.example/mcp", "--auth-issuer", "https://a.example"],
            "`--resource` has 'http://a.example/mcp'; use https",
        ),
        (
            ["--http", "127.0.0.1:0", "--resource", "https://a.example/mcp", "--auth-issuer", "a.example"],
            "`--auth-issuer` has 'a.example'; it must be a URL",
        ),
        ([*_ENOUGH, "--auth-audience", ""], "`--auth-audience` has an empty name"),
        (["--auth-introspection", "HOME", "PATH"], "Access tokens need all of"),
        (
            [*_ENOUGH, "--auth-introspection", "HOME", "NOT_\x1bSET"],
            "The environment variable NOT_\\x1bSET (`--auth-introspection`) is not set",
        ),
        (
            [*_ENOUGH, "--auth-issuer", "https://b.example", "--auth-introspection", "HOME", "PATH"],
            "needs a single `--auth-issuer`",
        ),
    ],
)
def test_options_about_tokens_that_make_no_sense_are_refused(options: list[str], said: str) -> None:
    done = CliRunner().invoke(serve, ["server.py", *options])

    assert 2 == done.exit_code
    assert said in " ".join(done.output.replace("\u2502", " ").split())
