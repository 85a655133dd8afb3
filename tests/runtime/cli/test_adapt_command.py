"""The command ``mcpgen adapt``: what goes in, what comes out where, and with which status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from mcpgen.cli import main
from mcpgen.runtime.cli import adapt_command

if TYPE_CHECKING:
    from pathlib import Path

NEW, OLD = "2026-07-28", "2024-11-05"
TOOLS: dict[str, Any] = {
    "tools": [{"name": "a", "title": "A", "inputSchema": {"type": "object"}}],
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
LIST = ("--method", "tools/list", "--part", "result")


def run(*arguments: str, stdin: Any = None) -> Result:
    data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    return CliRunner().invoke(main, ["adapt", *arguments], input=data)


def down(*arguments: str, stdin: Any = TOOLS) -> Result:
    return run("--from", NEW, "--to", OLD, *arguments, stdin=stdin)


def test_the_adapted_value_is_one_line_of_json_and_the_losses_are_on_standard_error() -> None:
    result = down(*LIST)

    assert '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}\n' == result.stdout
    assert 0 == result.exit_code
    (line,) = result.stderr.splitlines()
    assert line.startswith("dropped /tools/0/title: ")
    assert line.endswith(" (2025-06-18 to 2025-03-26)")


def test_on_a_terminal_the_value_is_indented(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sys:
        class stdout:  # noqa: N801 (as in sys)
            @staticmethod
            def isatty() -> bool:
                return True

    monkeypatch.setattr(adapt_command, "sys", Sys)

    assert (
        json.dumps({"cursor": "a"}, indent=2) + "\n"
        == run("--from", OLD, "--to", OLD, "--method", "tools/list", "--part", "params", stdin={"cursor": "a"}).stdout
    )


def test_a_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")

    assert down(*LIST).stdout == down(*LIST, str(path)).stdout


@pytest.mark.parametrize(
    ("method", "part", "message", "key"),
    [
        ("tools/list", "result", {"id": 1, "result": TOOLS}, "result"),
        ("tools/call", "params", {"id": 1, "method": "tools/call", "params": {"name": "a"}}, "params"),
        ("notifications/progress", "notification", {"method": "notifications/progress", "params": {}}, "params"),
    ],
)
def test_a_whole_message_is_told_from_its_part(method: str, part: str, message: dict[str, Any], key: str) -> None:
    options = ("--method", method, "--part", part, "--sender", "server" if part == "notification" else "client")
    whole = down(*options, stdin={"jsonrpc": "2.0", **message})
    wrong = down(*options, stdin=message)

    assert (1, 1) == (whole.exit_code, wrong.exit_code)
    assert whole.stderr.endswith(f"; the input looks like a whole message; give only its `{key}`\n")
    assert "whole message;" not in wrong.stderr


def test_a_whole_message_that_is_valid_as_a_part_is_adapted_with_a_note() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    result = run("--from", OLD, "--to", OLD, "--method", "tools/list", "--part", "params", stdin=message)

    assert 0 == result.exit_code
    assert "Note: the input looks like a whole message; give only its `params`\n" == result.stderr


def test_json_has_the_value_and_the_losses() -> None:
    result = down(*LIST, "--json")
    reported = json.loads(result.stdout)

    assert ["value", "losses", "kept", "restored"] == list(reported)
    assert [("/tools/0/title", "dropped")] == [(each["pointer"], each["severity"]) for each in reported["losses"]]
    assert "" == result.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_strict_fails_on_any_loss_and_still_writes(more: tuple[str, ...]) -> None:
    assert 1 == down(*LIST, "--strict", *more).exit_code
    assert down(*LIST, *more).stdout == down(*LIST, "--strict", *more).stdout


def test_strict_passes_what_loses_nothing() -> None:
    assert 0 == down(*LIST, "--strict", stdin={**TOOLS, "tools": []}).exit_code


def test_what_is_kept_comes_back() -> None:
    there = down(*LIST, "--keep")
    back = run("--from", OLD, "--to", NEW, *LIST, "--strict", stdin=there.stdout.encode())

    assert (TOOLS, 0, "") == (json.loads(back.stdout), back.exit_code, back.stderr)


def test_it_is_said_that_nothing_was_kept() -> None:
    """A tool of 2024-11-05 has no `_meta`."""
    arguments = ("--definition", "Tool", "--keep")

    assert "Note: `--keep` stored no lost values" in down(*arguments, stdin=TOOLS["tools"][0]).stderr
    assert "" == down(*arguments, stdin={"name": "a", "inputSchema": {"type": "object"}}).stderr
    assert "Note" not in down(*LIST, "--keep").stderr


def test_a_definition_is_adapted_by_name() -> None:
    value = {"name": "a", "title": "A", "version": "1"}
    result = down("--definition", "Implementation", stdin=value)

    assert {"name": "a", "version": "1"} == json.loads(result.stdout)


def test_the_sender_decides_where_both_may_send() -> None:
    arguments = ("--from", "2025-11-25", "--to", NEW, "--method", "notifications/progress", "--part", "notification")
    value = {"progressToken": 1, "progress": 1}

    assert 0 == run(*arguments, "--sender", "server", stdin=value).exit_code
    assert 1 == run(*arguments, "--sender", "client", stdin=value).exit_code


def test_many_losses_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt_command, "MAX_SHOWN", 2)
    result = down(*LIST, stdin={**TOOLS, "tools": TOOLS["tools"] * 5})

    assert 3 == len(result.stderr.splitlines())
    assert "and 3 more; --json lists them all" == result.stderr.splitlines()[-1]


# What cannot be adapted


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the input is empty"),
        (b" \n", "the input is empty"),
        (b"{", "the input is not JSON: line 1, column 2: a key in double quotes is missing"),
        (b"{} {}", "the input is not JSON: line 1, column 4: there is more text after the end of the value"),
        (b"NaN", "JSON has no NaN"),
        (b'{"a":-Infinity}', "JSON has no -Infinity"),
        (b'{"a":1,"a":2}', "the input has an object with the key 'a' twice"),
        (b'"\xff"', "not UTF-8, at byte 1"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b"[" * 10_000, "nested too deeply"),
        (b'{"tools":' + b"9" * 5000 + b"}", "the input has a number with too many digits"),
        (b'{"tools":1}', "at /tools: Expected `array`, got `int`"),
        (b'{"tools":[],"x":1e999}', "at /x: inf is not a JSON value"),
        (b'{"tools":[],"x":"\\ud800"}', "at /x: a string holds half of a surrogate pair"),
        (b" " * (16 * 1024 * 1024 + 1), "the input has more than 16777216 bytes"),
        (b'{"tools":"' + b"x" * 10_000_000 + b'"}', "at /tools: Expected `array`, got `str`"),
    ],
    ids=range(18),
)
def test_bad_input_is_an_error_and_nothing_is_written(data: bytes, says: str) -> None:
    result = run("--from", OLD, "--to", NEW, *LIST, stdin=data)

    assert (1, "") == (result.exit_code, result.stdout)
    assert says in result.stderr
    assert 1 == len(result.stderr.splitlines())


def test_ten_megabytes_go_through() -> None:
    value = {"tools": [], "x": ["y" * 1000] * 10_000}
    result = run("--from", OLD, "--to", NEW, *LIST, stdin=value)

    assert value["x"] == json.loads(result.stdout)["x"]


def test_what_the_target_cannot_say_is_an_error() -> None:
    result = run("--from", OLD, "--to", NEW, "--method", "ping", "--part", "params", stdin={})

    assert (1, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("Error: the message cannot be adapted from 2025-11-25 to 2026-07-28: ")


def test_errors_are_json_where_that_was_asked_for() -> None:
    bad = run("--from", OLD, "--to", NEW, *LIST, "--json", stdin={"tools": 1})
    gone = run("--from", OLD, "--to", NEW, "--method", "ping", "--part", "params", "--json", stdin={})
    unreadable = run("--from", OLD, "--to", NEW, *LIST, "--json", stdin=b"{")

    assert (1, 1, 1) == (bad.exit_code, gone.exit_code, unreadable.exit_code)
    assert ("InvalidPayload", "/tools") == tuple(json.loads(bad.stdout)["error"][key] for key in ("kind", "pointer"))
    assert ("AdaptationError", "negotiation") == tuple(
        json.loads(gone.stdout)["error"][key] for key in ("kind", "service")
    )
    assert "UnreadableInput" == json.loads(unreadable.stdout)["error"]["kind"]


ESCAPES = "\x1b[31m\x07\x9b\u202e\n"


def test_nothing_from_the_input_steers_the_terminal() -> None:
    tool = {**TOOLS["tools"][0], "inputSchema": {"type": "object"}}
    lossy = down(*LIST, stdin={**TOOLS, "tools": [tool], ESCAPES: 1, "_meta": {ESCAPES: 1}})
    twice = run("--from", OLD, "--to", NEW, *LIST, stdin=b'{"\\u001b[31m":1,"\\u001b[31m":2}')
    level = {"level": ESCAPES, "data": 1}
    wrong = run("--from", OLD, "--to", NEW, "--definition", "LoggingMessageNotificationParams", stdin=level)
    unknown = run("--from", ESCAPES, "--to", NEW, "--definition", ESCAPES, stdin={})

    for result in (lossy, twice, wrong, unknown):
        assert (result.stdout + result.stderr).replace("\n", "").isprintable()
        assert result.stdout.isascii()


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--from", "2024-11-06", "--to", NEW, *LIST),
            "'--from': unknown revision '2024-11-06'; the known revisions are 2024-11-05, ",
        ),
        (
            ("--from", NEW, "--to", "next", *LIST),
            "'--to': unknown revision 'next'; the known revisions are 2024-11-05, ",
        ),
        (
            ("--from", NEW, "--to", OLD, "--method", "tools/lst", "--part", "params"),
            "the known ones are completion/complete, ",
        ),
        (
            ("--from", NEW, "--to", OLD, "--method", "tools/list", "--part", "notification"),
            "it is a request from a client; its parts are params, result and error",
        ),
        (("--from", NEW, "--to", OLD, *LIST, "--sender", "server"), "no request 'tools/list' from a server"),
        (("--from", NEW, "--to", OLD, "--method", "tools/list", "--part", "body"), "'body' is not one of"),
        (("--from", NEW, "--to", OLD, "--method", "tools/list"), "Give `--method` and `--part`"),
        (("--from", NEW, "--to", OLD, "--part", "params"), "Give `--method` and `--part`"),
        (("--from", NEW, "--to", OLD), "Give `--method` and `--part`"),
        (("--from", NEW, "--to", OLD, *LIST, "--definition", "Tool"), "Give `--method` and `--part`"),
        (("--from", NEW, "--to", OLD, "--definition", "Tol"), "did you mean Tool"),
        (("--from", NEW, *LIST), "Missing option '--to'"),
        (("--from", NEW, "--to", OLD, *LIST, "/no/such/file"), "No such file"),
    ],
)
def test_wrong_usage_says_what_is_known(arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments, stdin=TOOLS)

    assert (2, "") == (result.exit_code, result.stdout)
    assert says in result.stderr
