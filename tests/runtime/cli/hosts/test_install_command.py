"""``mcpgen install``: what it writes, what it shows before, and what it refuses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from click.testing import CliRunner, Result

from mcpgen import connect, read_config
from mcpgen.runtime.cli.hosts import install_command
from mcpgen.runtime.cli.hosts.host_files import HOSTS
from mcpgen.runtime.cli.hosts.install_command import install
from mcpgen.runtime.cli.hosts.server_check import check_server
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.cli.terminals import Terminal

SECRET = "hunter2"  # noqa: S105 (planted)
SERVER = "from mcpgen import Server\nserver = Server('x')\n@server.tool\ndef one() -> int:\n    return 1\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, beside a project with a server; the project is the current folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("shop.py").write_text(SERVER, encoding="utf-8")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for name in ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def run(*words: str) -> Result:
    return CliRunner().invoke(install, ["shop.py", *words], prog_name="mcpgen install")


def entry(*, has_type: bool = True, **env: str) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "stdio"} if has_type else {}
    made |= {"command": sys.executable, "args": ["-P", "-m", "mcpgen", "serve", str(Path("shop.py").absolute())]}
    return {**made, "env": env} if env else made


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_each_host_gets_the_entry_in_its_own_form(host: str, home: Path) -> None:
    file = HOSTS[host].user_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    done = run("--host", host, "--yes", "--env", f"TOKEN={SECRET}")

    assert 0 == done.exit_code, done.output
    expected = entry(has_type=host != "claude-desktop", TOKEN=SECRET)
    key = "servers" if host == "vscode" else "mcpServers"
    assert {key: {"shop": expected}} == json.loads(file.read_text(encoding="utf-8"))
    assert file.is_relative_to(home)
    assert f"Wrote {file}." in done.output
    assert SECRET not in done.output


@pytest.mark.parametrize(
    ("host", "name"),
    [("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")],
)
def test_a_project_has_a_file_of_its_own(host: str, name: str, home: Path) -> None:
    assert 0 == run("--host", host, "--project", "--yes", "--name", "läden").exit_code

    assert ["läden"] == list(read_config(name)[HOSTS[host].section])
    assert [] == list(home.iterdir())


@pytest.mark.slow
def test_the_server_starts_from_the_file_that_was_written(home: Path) -> None:
    run("--host", "cursor", "--project", "--yes")

    async def ask() -> int:
        async with connect(read_config(".cursor/mcp.json")) as group:
            return await group.call_tool("shop_one", returns=int)

    assert 1 == anyio.run(ask)


@pytest.mark.slow
def test_the_rest_of_the_file_stays_byte_for_byte(home: Path) -> None:
    before = b'\xef\xbb\xbf{\r\n\t// mine\r\n\t"theme":  "dark",\r\n\t"mcpServers": {\r\n\t\t"a": {} // x\r\n\t}\r\n}'
    file = home / ".claude.json"
    file.write_bytes(before)
    done = run("--host", "claude-code", "--yes")

    after = file.read_bytes()
    head, tail = b'"a": {}', b" // x\r\n"
    start = before.index(head) + len(head)
    assert after.startswith(before[:start] + b"," + tail + b'\t\t"shop": {\r\n\t\t\t"type": "stdio",\r\n')
    assert after.endswith(b"\r\n\t\t}\r\n\t}\r\n}")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert before == (home / ".claude.json.bak").read_bytes()
    assert "The old content is in .claude.json.bak." in done.output


@pytest.mark.slow
def test_the_difference_is_shown_first_and_without_secrets_or_other_parts_of_the_file(home: Path) -> None:
    old = {"type": "stdio", "command": "old", "args": [], "env": {"KEY": SECRET}, "headers": SECRET}
    other = {"command": SECRET, "env": {"A": SECRET}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"a": other, "shop": old}}), encoding="utf-8")
    done = run("--host", "claude-code", "--yes", "--env", f"KEY={SECRET}2")

    assert SECRET not in done.output
    assert f"This will change shop in `mcpServers` of {home / '.claude.json'}:" in done.output
    assert '-    "command": "old",' in done.output
    assert f'+    "command": {json.dumps(sys.executable)},' in done.output
    assert '     "env": {\n       "KEY": "…"\n' in done.output


@pytest.mark.slow
def test_a_change_of_a_variable_alone_is_said(home: Path) -> None:
    run("--host", "claude-code", "--yes", "--env", "KEY=1")
    done = run("--host", "claude-code", "--yes", "--env", f"KEY={SECRET}")

    assert "(values of environment variables change)" in done.output
    assert SECRET in (home / ".claude.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_is_there_already_is_left_alone(home: Path) -> None:
    run("--host", "claude-code", "--yes")
    before = (home / ".claude.json").read_bytes()
    done = run("--host", "claude-code")

    assert (0, before) == (done.exit_code, (home / ".claude.json").read_bytes())
    assert "has this entry already; nothing to change." in done.output
    assert [".claude.json"] == [each.name for each in home.iterdir()]


@pytest.mark.slow
def test_printing_changes_nothing(home: Path) -> None:
    done = run("--host", "vscode", "--print", "--env", "A=b", "--name", "x")

    assert {"servers": {"x": entry(A="b")}} == json.loads(done.stdout)
    assert f"Add this to {HOSTS['vscode'].user_file()}:\n" == done.stderr
    assert [] == list(home.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_what_is_printed_is_json_in_an_encoding_that_lacks_a_character() -> None:
    words = ["shop.py", "--host", "cursor", "--print", "--name", "\xe9\U0001f600"]
    done = CliRunner(charset="cp1252").invoke(install, words)

    assert {"\xe9\U0001f600"} == json.loads(done.stdout)["mcpServers"].keys()


@pytest.mark.slow
def test_the_last_line_names_the_server(home: Path) -> None:
    done = run("--host", "cursor", "--file", str(home / "mcp.json"), "--name", "{tea}", "--yes")

    assert done.stdout.endswith("Enable {tea} in the settings of Cursor.\n")


UNLOADABLE: dict[str, tuple[str, str]] = {
    "two servers": (
        "from mcpgen import Server\na = Server('a')\nb = Server('b')\n",
        "Error: There are several servers in shop.py. Choose one: shop.py:a or shop.py:b\n",
    ),
    "no server": ("x = 1\n", "Error: There is no server in shop.py."),
    "a syntax error": ("x = = 1\n", "Error: shop.py cannot be loaded: it raised SyntaxError."),
    "a missing package": ("import no_such_package\n", "No module named 'no_such_package'"),
    "a call of run()": (f"{SERVER}server.run()\n", "call run() only under: if __name__"),
    "an end": ("import os\nos._exit(2)\n", "shop.py ended its process with status 2 when it was loaded, so nothing"),
}


@pytest.mark.parametrize("what", UNLOADABLE)
@pytest.mark.parametrize("option", ["--yes", "--print"])
@pytest.mark.slow
def test_a_file_without_a_server_is_not_installed(what: str, option: str, home: Path) -> None:
    source, reason = UNLOADABLE[what]
    Path("shop.py").write_text(source, encoding="utf-8")
    done = run("--host", "claude-code", option)

    assert (1, "") == (done.exit_code, done.stdout)
    assert reason in done.stderr
    assert [] == list(home.iterdir())


@pytest.mark.slow
def test_the_file_is_loaded_with_the_variables_of_the_entry(home: Path) -> None:
    Path("shop.py").write_text(f"import os\nos.environ['TOKEN']\nprint('on stdout')\n{SERVER}", encoding="utf-8")

    assert 1 == run("--host", "claude-code", "--yes").exit_code
    done = run("--host", "claude-code", "--yes", "--env", "TOKEN=1")
    assert 0 == done.exit_code
    assert "on stdout" not in done.output
    assert (home / ".claude.json").exists()


def test_a_file_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"slow\.py was not loaded within 0\.2 seconds, so nothing was changed"):
        check_server(str(tmp_path / "slow.py"), {}, seconds=0.2)


@pytest.mark.slow
def test_an_object_of_the_file_can_be_named(home: Path) -> None:
    done = CliRunner().invoke(install, ["shop.py:server", "--host", "cursor", "--print"])

    assert json.loads(done.stdout)["mcpServers"]["shop"]["args"][-1].endswith("shop.py:server")


@pytest.mark.slow
def test_another_file_of_the_host_can_be_named(home: Path) -> None:
    assert 0 == run("--host", "vscode", "--file", "~/profile.json", "--yes").exit_code

    assert ["shop"] == list(read_config(home / "profile.json")["servers"])


@pytest.mark.skipif(os.name != "posix", reason="there are pseudo terminals on POSIX only")
@pytest.mark.slow
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_the_user_is_asked(answer: str, status: int, home: Path, at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("install", "shop.py", "--host", "claude-code", is_output_too=True)
    shown = terminal.sees("Write this into the configuration of Claude Code? [y/N]: ")
    terminal.types(f"{answer}\n")
    end = terminal.end()

    assert '+  "shop": {' in shown
    assert status == end[0]
    assert (status == 0) == (home / ".claude.json").exists()
    assert status == 0 or "Error: nothing was changed." in end[2]


@pytest.mark.skipif(os.name != "posix", reason="there are pseudo terminals on POSIX only")
@pytest.mark.slow
def test_an_interrupt_at_the_question_changes_nothing(home: Path, at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("install", "shop.py", "--host", "claude-code", is_output_too=True)
    terminal.sees("Write this into the configuration of Claude Code? [y/N]: ")
    terminal.interrupt()
    end = terminal.end()

    assert 130 == end[0]
    assert "Nothing was changed." in end[2]
    assert "Aborted" not in end[2]
    assert not (home / ".claude.json").exists()


@pytest.mark.slow
def test_without_a_terminal_there_is_no_question(home: Path) -> None:
    done = run("--host", "claude-code")

    assert 1 == done.exit_code
    assert "there is no terminal to ask at, so nothing was changed; add `--yes` to agree." in done.stderr
    assert not (home / ".claude.json").exists()


@pytest.mark.slow
def test_a_folder_of_a_project_is_made_only_with_the_file(home: Path) -> None:
    assert 1 == run("--host", "vscode", "--project").exit_code

    assert not Path(".vscode").exists()


BROKEN: dict[str, tuple[bytes, str]] = {
    "broken JSON": (
        f'{{"mcpServers": {{"a": "{SECRET}" "b"}}}}'.encode(),
        "cannot be changed: it cannot be read as JSON: line 1, column 32: a comma or a closing brace is missing.",
    ),
    "a list": (b"[]", "cannot be changed: it is not a JSON object."),
    "servers as a list": (
        b'{"mcpServers": []}',
        'cannot be changed: its `mcpServers` is not an object; write {"mcpServers": {}}, and try again.',
    ),
    "UTF-16": ("{}".encode("utf-16"), "is not UTF-8; save it as UTF-8."),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_cannot_be_changed_stays_as_it_is(what: str, home: Path) -> None:
    data, reason = BROKEN[what]
    file = home / ".claude.json"
    file.write_bytes(data)
    done = run("--host", "claude-code", "--yes")

    assert 1 == done.exit_code
    assert f"Error: {file} {reason}\n" == done.stderr
    assert (data, [".claude.json"]) == (file.read_bytes(), [each.name for each in home.iterdir()])
    assert SECRET not in done.output


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
def test_a_read_only_file_stays_as_it_is(home: Path) -> None:
    file = home / ".claude.json"
    file.write_bytes(b"{}")
    file.chmod(0o444)
    done = run("--host", "claude-code", "--yes")

    assert (1, b"{}") == (done.exit_code, file.read_bytes())
    assert "is read-only; change its permissions, or edit it by hand." in done.stderr


@pytest.mark.slow
def test_a_file_that_changes_while_the_user_is_asked_stays_as_it_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".claude.json"
    file.write_bytes(b"{}")

    def answer(question: str) -> bool:
        file.write_bytes(b'{"written": "by the host"}')
        return True

    monkeypatch.setattr(install_command, "_is_confirmed", answer)
    done = run("--host", "claude-code")

    assert (1, b'{"written": "by the host"}') == (done.exit_code, file.read_bytes())
    assert "has changed meanwhile, so nothing was written; try again." in done.stderr


def test_a_link_to_the_file_stays(home: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_bytes(b"{}")
    (home / ".claude.json").symlink_to(tmp_path / "dotfiles.json")
    done = run("--host", "claude-code", "--yes")

    assert 0 == done.exit_code
    assert (home / ".claude.json").is_symlink()
    assert ["shop"] == list(read_config(tmp_path / "dotfiles.json")["mcpServers"])
    assert f"Wrote {tmp_path / 'dotfiles.json'}." in done.output


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no host": (("shop.py",), "Missing option '--host'"),
    "an unknown host": (("shop.py", "--host", "zed"), "'zed' is not one of 'claude-desktop'"),
    "no file": (("none.py", "--host", "cursor"), "There is no file none.py."),
    "no Python": (("shop", "--host", "cursor"), "shop is not a Python file; write FILE.py or FILE.py:OBJECT."),
    "no folder": (
        ("shop.py", "--host", "cursor"),
        ".cursor. Start Cursor once, or name its file with `--file`.",
    ),
    "no projects": (
        ("shop.py", "--host", "claude-desktop", "--project"),
        "Claude Desktop has no file for projects; leave out `--project`.",
    ),
    "no projects to print": (
        ("shop.py", "--host", "claude-desktop", "--project", "--print"),
        "Claude Desktop has no file for projects; leave out `--project`.",
    ),
    "two files": (
        ("shop.py", "--host", "cursor", "--project", "--file", "x"),
        "Give either `--project` or `--file`, not both.",
    ),
    "a file of nobody": (
        ("shop.py", "--host", "cursor", "--file", "~mcpgen-nobody/x"),
        "~mcpgen-nobody/x: there is no such user.",
    ),
    "no name": (("shop.py", "--host", "cursor", "--name", " "), "`--name` is empty."),
    "no variable": (("shop.py", "--host", "cursor", "--env", f"={SECRET}"), "`--env` must be KEY=VALUE."),
    "no text": (
        ("shop.py", "--host", "cursor", "--env", f"{SECRET}=\udcff"),
        "The path of the file, `--name` or `--env` is not valid UTF-8.",
    ),
}


@pytest.mark.parametrize("words", [(), ("--file", "~/servers.json")])
@pytest.mark.parametrize("host", HOSTS)
def test_a_user_without_a_home_names_the_file(
    host: str, words: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expanduser(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", expanduser)
    monkeypatch.setattr(Path, "home", lambda: expanduser(home))
    done = run("--host", host, *words, "--print")

    assert 2 == done.exit_code
    assert "his user has no home folder" in done.stderr
    assert "HOME" in done.stderr


@pytest.mark.parametrize("what", WRONG)
def test_wrong_usage_is_status_2(what: str, home: Path) -> None:
    words, reason = WRONG[what]
    done = CliRunner().invoke(install, list(words), prog_name="mcpgen install")

    assert 2 == done.exit_code
    assert reason in done.stderr
    assert SECRET not in done.output
