"""``--config FILE [--server NAME]`` in place of TARGET."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from mcpgen.cli import main

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"  # noqa: S105 (planted)
SERVER = """
import os
from mcpgen import Server

server = Server("shop", version="1")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

@server.tool
def where() -> list[str]:
    return [os.environ["PLACE"], os.path.basename(os.getcwd())]

@server.resource("shop:one")
def one() -> str:
    return "one"

@server.prompt
def ask(topic: str) -> str:
    return f"about {topic}"
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration with one server that works, and one that does not."""
    (tmp_path / "shop.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    arguments = ["-P", "-m", "mcpgen", "serve", str(tmp_path / "shop.py")]
    servers = {
        "shop": {
            "command": sys.executable,
            "args": arguments,
            "env": {"PLACE": "here"},
            "cwd": str(tmp_path / "folder"),
        },
        "broken": {"command": "no-such-program", "args": [SECRET], "timeout": 3},
    }
    text = json.dumps({"mcpServers": servers}, indent=2)
    (tmp_path / "mcp.json").write_text(f"// mine\n{text}", encoding="utf-8")
    return str(tmp_path / "mcp.json")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="mcpgen")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("call", "--config", "FILE", "--server", "shop", "add", "a=1", "b=2"), '{"result":3}\n'),
        (("call", "add", "a=1", "b=2", "--server=shop", "--config=FILE"), '{"result":3}\n'),
        (("call", "--config=FILE", "--server=shop", "where"), '{"result":["here","folder"]}\n'),
        (("read", "--config", "FILE", "--server", "shop", "shop:one"), "one"),
        (("prompt", "--config", "FILE", "--server", "shop", "ask", "topic=tea"), "about tea"),
    ],
)
def test_a_server_of_the_configuration_is_used(words: tuple[str, ...], printed: str, config: str) -> None:
    done = run(*(each.replace("FILE", config) for each in words))

    assert 0 == done.exit_code, done.output
    assert printed in done.stdout


@pytest.mark.slow
def test_without_a_name_inspect_shows_all_and_one_that_fails_does_not_stop_it(config: str) -> None:
    done = run("inspect", "--config", config)

    assert 1 == done.exit_code
    assert done.stdout.startswith("=== shop ===\nshop 1\n")
    assert done.stdout.endswith("\n=== broken ===\n")
    assert "Error: 'no-such-program' cannot be started" in done.stderr
    assert "Note: the server 'broken' has keys that are not used: timeout" in done.stderr
    assert SECRET not in done.output


@pytest.mark.slow
def test_a_sole_server_needs_no_name(config: str, tmp_path: Path) -> None:
    whole = json.loads((tmp_path / "mcp.json").read_text(encoding="utf-8").partition("\n")[2])
    del whole["mcpServers"]["broken"]
    (tmp_path / "mcp.json").write_text(json.dumps(whole), encoding="utf-8")

    assert "3" in run("call", "--config", config, "add", "a=1", "b=2").stdout
    listed = json.loads(run("inspect", "--json", "--config", config, "--server", "shop").stdout)["tools"]
    assert ["add", "where"] == [each["name"] for each in listed]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("call", "--config", "FILE", "add"), "several servers. Choose one with `--server`: shop, broken"),
        (("call", "--config", "FILE", "--server", "shap", "add"), "has no server 'shap'. Did you mean shop?"),
        (("call", "--config", "FILE", "--server", "zzz", "add"), "has no server 'zzz'. Its servers: shop, broken"),
        (("call", "--server", "shop", "target", "add"), "`--server` needs `--config`, which names the file."),
        (("inspect", "--server", "shop"), "`--server` needs `--config`, which names the file."),
        (("call", "--config", "FILE", "--env", f"A={SECRET}", "add"), "Give either `--env` or `--config`"),
        (("call", "--config", "FILE", "--cwd", "/", "add"), "Give either `--cwd` or `--config`"),
        (("call", "--config", "FILE", "--header", f"A: {SECRET}", "add"), "Give either `--header` or `--config`"),
        (("call", "--config", "FILE", "--bearer-env", "A", "add"), "Give either `--bearer-env` or `--config`"),
        (("call", "--config", "FILE", "--server", "shop"), "Missing argument 'TOOL'"),
        (("call", "--config", "none.json", "add"), "none.json cannot be read: No such file or directory."),
        (("inspect", "--config", "none.json"), "none.json cannot be read: No such file or directory."),
        (("inspect", "--config", "FILE", "shop.py"), "`--config` replaces TARGET; leave out shop.py."),
        (("inspect", "--config", "FILE", f"http://u:{SECRET}@a"), "`--config` replaces TARGET; leave out TARGET."),
        (("inspect", "--config", "FILE", "--", "a", SECRET), "`--config` replaces TARGET; leave out TARGET."),
        (("call", "--config", "FILE", "shop.py:server", "add", "a=1"), "TARGET; leave out shop.py:server."),
        (("prompt", "--config", "FILE", f"python {SECRET}", "ask"), "TARGET; leave out TARGET."),
        (("read", "--config", "FILE", "shop.py", "shop:one"), "`--config` replaces TARGET; leave out shop.py."),
        (("read", "--config", "FILE", "shop:one", "shop:two"), "Got unexpected extra argument (shop:two)"),
        (
            ("call", "--config", "FILE", "--server", "shop", "add", "1"),
            "Arguments are KEY=VALUE or KEY:=JSON, not '1'.",
        ),
        (("call", "add"), "Missing argument 'TOOL'"),
        (("inspect",), "Missing argument 'TARGET"),
    ],
)
def test_wrong_usage_is_status_2(words: tuple[str, ...], reason: str, config: str) -> None:
    done = run(*(each.replace("FILE", config) for each in words))

    assert 2 == done.exit_code
    assert reason in done.stderr
    assert SECRET not in done.output


@pytest.mark.slow
def test_json_of_all_servers_is_one_object(config: str) -> None:
    done = run("inspect", "--json", "--config", config)

    assert 1 == done.exit_code
    servers = json.loads(done.stdout)
    assert ["shop", "broken"] == list(servers)
    assert ["add", "where"] == [each["name"] for each in servers["shop"]["tools"]]
    assert servers["broken"] is None
    assert "Error: 'no-such-program' cannot be started" in done.stderr


def test_json_of_all_servers_has_null_for_each_wrong_entry(tmp_path: Path) -> None:
    servers = {"number": {"command": 5}, "half \ud800": {"url": "ftp://x"}, "off \ud800": {"disabled": True}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    done = run("inspect", "--json", "--config", str(tmp_path / "mcp.json"))
    shown = {"number": None, "half \\ud800": None, "off \\ud800": {"disabled": True}}
    assert (2, shown) == (done.exit_code, json.loads(done.stdout or "{}"))


@pytest.mark.slow
def test_json_has_escapes_for_a_name_without_utf_8(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SERVER, encoding="utf-8")
    server = {"command": sys.executable, "args": ["-P", "-m", "mcpgen", "serve", str(tmp_path / "shop.py")]}
    (tmp_path / "half.json").write_text(json.dumps({"mcpServers": {"half \ud800": server}}), encoding="utf-8")
    done = run("inspect", "--json", "--config", str(tmp_path / "half.json"))
    assert "half \\ud800" == json.loads(done.stdout)["half \\ud800"]["server"]


@pytest.mark.slow
def test_the_name_of_a_server_is_not_shown_as_its_command(config: str) -> None:
    assert "\n  server         shop\n" in run("inspect", "--config", config).stdout
    assert "shop" == json.loads(run("inspect", "--json", "--config", config).stdout)["shop"]["server"]


def test_a_disabled_server_is_not_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"open({str(started)!r}, 'w')"
    off = {"command": sys.executable, "args": ["-c", program], "disabled": True}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"off": off}}), encoding="utf-8")
    config = ("--config", str(file))

    shown, listed = run("inspect", *config), run("inspect", "--json", *config)
    assert (0, "=== off ===\ndisabled in the configuration\n") == (shown.exit_code, shown.stdout)
    assert (0, {"off": {"disabled": True}}) == (listed.exit_code, json.loads(listed.stdout))
    for words in (("call", *config, "x"), ("inspect", *config, "--server", "off")):
        done = run(*words)
        assert 2 == done.exit_code
        assert "The server 'off' is disabled in the configuration; remove its key `disabled`." in done.stderr
    assert not started.exists()


def test_an_entry_that_is_wrong_is_explained(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "args": "hunter2"}}}', encoding="utf-8")
    done = run("call", "--config", str(tmp_path / "mcp.json"), "add")

    assert 2 == done.exit_code
    assert "the server 'a' of the configuration is wrong: `args` must be a list of strings" in done.stderr
    assert SECRET not in done.output


def test_words_after_two_dashes_are_no_options(config: str) -> None:
    assert "There is no" in run("inspect", "--", "none.py").stderr
    assert "no-such-program" in run("inspect", "--", "no-such-program", "--config", config).stderr
