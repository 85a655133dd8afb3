"""``mcpgen trace --config FILE [--server NAME]``: the server of a configuration in place of a command or a URL."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from mcpgen.cli import main
from tests.runtime.cli.traced import Traced

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"  # noqa: S105 (planted)
SERVER = """
import os
from mcpgen import Server

server = Server("shop", version="1")

@server.tool
def where() -> list[str]:
    return [os.environ["PLACE"], os.path.basename(os.getcwd()), os.environ.get("PLANTED", "")]
"""
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "where", "arguments": {}, "_meta": META}}


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "shop.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    shop = {
        "command": sys.executable,
        "args": ["-P", "-m", "mcpgen", "serve", str(tmp_path / "shop.py")],
        "env": {"PLACE": "here"},
        "cwd": str(tmp_path / "folder"),
        "timeout": 3,
    }
    servers = {
        "shop": shop,
        "broken": {"command": "no-such-program", "args": [SECRET]},
        "off": {**shop, "disabled": True},
        "far": {"url": "http://127.0.0.1:9/mcp"},
        "circle": {"command": "mcpgen", "args": ["trace", "--config", "mcp.json", "--server", "circle"]},
        "other": {"command": "no-such-program", "args": ["trace", "--config=other.toml"]},
        "wrong": {"args": [SECRET]},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return str(tmp_path / "mcp.json")


def trace(*words: str) -> tuple[int, str, str]:
    """Send one call through the command, and return its status, the answer and its errors."""
    with closing(Traced(*words, env={**os.environ, "PLANTED": SECRET})) as traced:
        traced.write(json.dumps(CALL).encode() + b"\n")
        answer = traced.line()  # before the input ends: a server that has not started would get SIGTERM after 2 s
        status, rest, errors = traced.end()
    assert not rest
    return status, answer.decode(), errors


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["trace", *words], prog_name="mcpgen")


def result_of(answer: str) -> Any:
    return json.loads(answer)["result"]["structuredContent"]["result"]


@pytest.mark.slow
def test_a_server_of_the_configuration_is_traced_in_its_environment(config: str) -> None:
    status, answer, errors = trace("--config", config, "--server", "shop")

    assert ["here", "folder", ""] == result_of(answer)
    assert "mcpgen trace: 2 messages, no violations; the server has exited with status 0" in errors
    assert "Note: the server 'shop' has keys that are not used: timeout" in errors
    assert 0 == status


@pytest.mark.slow
def test_a_server_at_a_url_is_asked_over_http(config: str) -> None:
    _, answer, _ = trace(f"--config={config}", "--server=far", "--strict")

    assert "127.0.0.1:9" in json.loads(answer)["error"]["message"]


@pytest.mark.slow
def test_the_options_of_the_servers_command_are_its_own() -> None:
    printing = "import sys; print(sys.argv[1:])"
    status, answer, _ = trace(sys.executable, "-c", printing, "--config", "none.json")

    assert (0, "['--config', 'none.json']\n") == (status, answer)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--config", "FILE"), "Choose one with `--server`: shop, broken, off, far, circle, other, wrong"),
        (("--config", "FILE", "--server", "shap"), "has no server 'shap'. Did you mean shop?"),
        (("--config", "FILE", "--server", "off"), "'off' is disabled in the configuration; remove its key `disabled`."),
        (("--config", "FILE", "--server", "wrong"), "'wrong' of the configuration is wrong: it has neither `command`"),
        (("--config", "FILE", "--server", "circle"), "'circle' is itself `mcpgen trace --config`; name an entry that"),
        (("--config", "FILE", "--server", "other"), "'no-such-program' cannot be started"),
        (("--config", "FILE", "--server", "broken"), "'no-such-program' cannot be started"),
        (
            ("--config", "FILE", "--server", "shop", "--", "x", SECRET),
            "replaces the command or the URL; leave that out",
        ),
        (("--config", "FILE", "--server", "far", "--header", f"A: {SECRET}"), "Give either `--header` or `--config`"),
        (("--server", "shop", "--", "python"), "`--server` needs `--config`, which names the file."),
        (("--config", "none.json"), "none.json cannot be read: No such file or directory."),
        (("--config",), "Option '--config' requires an argument."),
        ((), "Missing argument '-- COMMAND...|URL'"),
    ],
)
def test_wrong_usage_is_status_2(words: tuple[str, ...], reason: str, config: str) -> None:
    done = run(*(each.replace("FILE", config) for each in words))

    assert 2 == done.exit_code
    assert reason in done.stderr
    assert SECRET not in done.output
