"""The configuration of a host: which entries are understood, which are refused, and that no message shows a value."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgen import Http, Process, UsageError, read_config
from mcpgen.runtime.api.hosts.config import ServerEntry, parse_config

SECRET = "hunter2"  # noqa: S105 (planted)


def entry(**settings: Any) -> ServerEntry:
    (found,) = parse_config({"mcpServers": {"one": settings}})
    return found


def test_a_program_is_started_with_its_arguments_and_environment(tmp_path: Path) -> None:
    found = entry(type="stdio", command="prog", args=["-x", 1], env={"A": "b", "PORT": 80, "GONE": None}, cwd="~")

    assert isinstance(found.transport(), Process)
    assert {
        "command": "prog",
        "args": ["-x", "1"],
        "env": {"A": "b", "PORT": "80"},
        "cwd": str(Path.home()),
    } == found.settings


@pytest.mark.parametrize("kind", [None, "http", "streamable-http", "streamableHttp", "sse"])
def test_a_url_is_asked_with_its_headers(kind: str | None) -> None:
    found = entry(url="https://host/mcp", headers={"X-Key": SECRET}, **({} if kind is None else {"type": kind}))
    transport = found.transport()

    assert isinstance(transport, Http)
    assert {"url": "https://host/mcp", "headers": {"X-Key": SECRET}} == found.settings
    assert SECRET not in repr(found) + repr(transport) + transport.description


def test_a_program_is_called_by_its_name_because_its_arguments_may_be_secret() -> None:
    transport = entry(command="prog", args=[f"--token={SECRET}"]).transport()

    assert "one" == transport.description
    assert SECRET not in repr(transport)


def test_vscode_has_another_key_for_the_servers() -> None:
    found = parse_config({"inputs": [], "servers": {"a": {"command": "x"}, "b": {"url": "http://a"}}})

    assert ["a", "b"] == [each.name for each in found]


def test_keys_without_a_meaning_are_named() -> None:
    found = entry(command="x", autoApprove=[], timeout=3)

    assert (("autoApprove", "timeout"), "") == (found.ignored, found.problem)


def test_a_disabled_server_is_known_as_such() -> None:
    assert entry(command="x", disabled=True).is_disabled
    assert not entry(command="x", disabled=False).is_disabled


def test_variables_have_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGEN_SET", "value")
    monkeypatch.delenv("MCPGEN_UNSET", raising=False)
    found = entry(
        command="${MCPGEN_SET}",
        args=["${env:MCPGEN_SET}/${MCPGEN_UNSET:-or}", "$MCPGEN_SET", "${userHome}${/}${pathSeparator}"],
        env={"A": "${MCPGEN_UNSET:-}"},
    )

    home = f"{Path.home()}{os.sep}{os.sep}"
    assert {"command": "value", "args": ["value/or", "$MCPGEN_SET", home], "env": {"A": ""}} == found.settings


def test_a_user_without_a_home_has_no_value_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)

    assert "`command` refers to ${userHome}, but this user has no home folder" in entry(command="${userHome}/x").problem


def test_the_value_of_a_variable_is_not_read_for_variables_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGEN_SET", "${MCPGEN_OTHER}")

    assert "${MCPGEN_OTHER}" == entry(command="${MCPGEN_SET}").settings["command"]


HALF = "is not valid Unicode: it contains half of a surrogate pair; correct it"
PROBLEMS: dict[str, tuple[Any, str]] = {
    "no object": (SECRET, "the entry must be a JSON object, not a string"),
    "nothing": ({}, "it has neither `command` nor `url`; add one of them"),
    "a typo": (
        {"comand": SECRET},
        "it has neither `command` nor `url`; did you write `comand` instead of `command`?",
    ),
    "both": ({"command": SECRET, "url": SECRET}, "it has both `command` and `url`; remove one of them, or add `type`"),
    "a type": ({"command": SECRET, "type": "ws"}, "`type` is ws; write stdio, http or sse"),
    "a type that is a number": ({"command": SECRET, "type": 1}, "`type` is a number; write stdio, http or sse"),
    "a type that is a list": ({"command": SECRET, "type": [SECRET]}, "`type` is a list; write stdio, http or sse"),
    "a type without its key": ({"command": SECRET, "type": "http"}, "`url` is missing, which the `type` http requires"),
    "an empty command": ({"command": ""}, "`command` is empty"),
    "a command as a list": ({"command": [SECRET]}, "`command` must be a string, not a list"),
    "arguments as text": (
        {"command": "x", "args": SECRET},
        '`args` must be a list of strings, such as ["server.py"], not a string',
    ),
    "an argument": ({"command": "x", "args": ["a", [SECRET]]}, "`args[1]` must be a string, not a list"),
    "an environment": (
        {"command": "x", "env": [SECRET]},
        '`env` must be an object with strings, such as {"NAME": "value"}, not a list',
    ),
    "a variable": ({"command": "x", "env": {"A": True}}, "`env.A` must be a string, not a boolean"),
    "a header": ({"url": "http://a", "headers": {"A": {}}}, "`headers.A` must be a string, not an object"),
    "an unset variable": (
        {"url": "http://a", "headers": {"A": f"{SECRET}${{MCPGEN_UNSET}}"}},
        "`headers.A` refers to ${MCPGEN_UNSET}, but the environment variable MCPGEN_UNSET is not set",
    ),
    "an input": (
        {"command": "x", "env": {"A": "${input:key}"}},
        "`env.A` refers to ${input:key}, which only the host can replace; write the value itself",
    ),
    "a folder": (
        {"command": "x", "cwd": "${workspaceFolder}/a"},
        (
            "`cwd` refers to ${workspaceFolder}, which is known only for a configuration in a file; "
            "pass read_config(path), or write the value itself"
        ),
    ),
    "a folder of nobody": (
        {"command": "x", "cwd": f"~{SECRET}/a"},
        "`cwd` is not a folder; correct it in the configuration",
    ),
    "half a pair in a command": ({"command": f"{SECRET}\ud800"}, f"`command` {HALF}"),
    "half a pair in an argument": ({"command": "x", "args": ["a", "\udfff"]}, f"`args[1]` {HALF}"),
    "half a pair in a variable": ({"command": "x", "env": {"A": "\ud800"}}, f"`env.A` {HALF}"),
    "half a pair in a name": ({"command": "x", "env": {"A\ud800": SECRET}}, f"a name in `env` {HALF}"),
    "a long folder": (
        {"command": "x", "cwd": "/" + SECRET * 100},
        "`cwd` is not a folder; correct it in the configuration",
    ),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_an_entry_that_is_wrong_says_why_and_shows_no_value(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGEN_UNSET", raising=False)
    settings, problem = PROBLEMS[what]
    (found,) = parse_config({"mcpServers": {"one": settings}})

    assert problem == found.problem
    with pytest.raises(UsageError) as failure:
        found.transport()
    assert f"the server 'one' of the configuration is wrong: {problem}" == str(failure.value)
    assert SECRET not in repr(found) + str(failure.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"url": f"http://u:{SECRET}@ host"}, "the URL contains white space"),
        ({"url": f"ftp://u:{SECRET}@host"}, "is not a URL of http or https"),
        ({"url": "http://a", "headers": {"A": f"{SECRET}\n"}}, "`headers` has an invalid value for A"),
        ({"command": "x", "env": {"A=": SECRET}}, "cannot be set"),
    ],
)
def test_what_a_transport_refuses_names_the_server(settings: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=r"^the server 'one' of the configuration is wrong: ") as failure:
        entry(**settings).transport()

    assert reason in str(failure.value)
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ([SECRET], "the configuration must be a JSON object; an example is"),
        ({"one": {"command": SECRET}}, "the configuration has no `mcpServers`"),
        ({"mcpServers": [SECRET]}, "`mcpServers` of the configuration must be a JSON object"),
        ({"mcpServers": {}}, "the configuration names no server"),
        ({"mcpServers": {}, "servers": {}}, "the configuration has both `mcpServers` and `servers`"),
    ],
)
def test_what_is_no_configuration_is_refused(config: Any, reason: str) -> None:
    with pytest.raises(UsageError) as failure:
        parse_config(config)

    assert reason in str(failure.value)
    assert SECRET not in str(failure.value)


# Files


@pytest.mark.parametrize(
    ("name", "is_above"), [("mcp.json", False), (".vscode/mcp.json", True), (".cursor/mcp.json", True)]
)
def test_the_folder_of_the_project_is_that_of_the_file_or_above_the_folder_of_the_host(
    name: str, tmp_path: Path, *, is_above: bool
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b'\xef\xbb\xbf{"servers": // x\r\n{"a": {"command": "${workspaceFolder}/x", "args": ["${A}"],}}}')

    assert {"servers": {"a": {"command": f"{tmp_path}/x", "args": ["${A}"]}}} == read_config(file)
    assert is_above == (file.parent != tmp_path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cannot be read as JSON: line 1, column 1: a JSON value is missing"),
        (f'{{"mcpServers": {{"{SECRET}"}}}}'.encode(), "cannot be read as JSON: line 1, column 26: a colon is missing"),
        ("{}".encode("utf-16"), "is not UTF-8; save it as UTF-8"),
        (f'["{SECRET}"]'.encode(), "the configuration must be a JSON object"),
        (b'{"mcpServers": {}}', "mcp.json: the configuration names no server; add one"),
        (b" " * (16 * 1024 * 1024 + 1), "has more than 16777216 bytes, the most that mcpgen reads; check that"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(data)

    with pytest.raises(UsageError) as failure:
        read_config(file)

    assert reason in str(failure.value)
    assert SECRET not in str(failure.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    for name, reason in (("none", "No such file"), (".", "Is a directory"), ("loop", "symbolic links")):
        with pytest.raises(UsageError, match=rf"cannot be read: .*{reason}"):
            read_config(tmp_path / name)
    for path in ("~mcpgen-nobody/a", "\ud800"):
        with pytest.raises(UsageError, match="cannot be read: there is no such file"):
            read_config(path)


def test_short_references_do_not_become_long_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MCPGEN_LONG", "x" * 100_000)
    greedy = {"command": "prog", "args": ["${MCPGEN_LONG}"] * 200}
    folder = tmp_path.joinpath(*["x" * 200] * 10)
    folder.mkdir(parents=True)
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"command": "${workspaceFolder}" * 10_000}}}))

    found = parse_config({"mcpServers": {"one": greedy, "two": greedy}})

    expected = "the values of variables have more than 16777216 characters; use fewer of them"
    assert [(expected, {}), (expected, {})] == [(each.problem, each.settings) for each in found]
    with pytest.raises(UsageError, match=expected):
        read_config(file)
