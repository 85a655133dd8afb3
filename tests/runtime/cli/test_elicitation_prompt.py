"""A user at a terminal is asked, and the server gets the answers that the user agreed to send."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.cli.terminals import COMMAND, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Begin = Callable[..., Terminal]

pytestmark = pytest.mark.slow

OURS = """
from mcpgen import Context, Server

server = Server("ours", version="1")

@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return f"{answer.action} {answer.content['name']}"
"""

FIELD = "    > "
REVIEW = "[c]ancel: "


def answered(terminal: Terminal) -> Any:
    """Return what the server says that it got."""
    status, out, seen = terminal.end()
    assert 0 == status, seen
    return json.loads(out)


@pytest.mark.spec("2025-06-18", "client/elicitation#user-interaction-model", "dd7f80e4")
@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "550a3ff3")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "550a3ff3")
def test_a_form_is_filled_in_looked_at_changed_and_sent(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "ask", NO_COLOR="1")
    for text in ("Bob", "17", "22", "2", "1, 3", "", ""):
        terminal.sees(FIELD)
        terminal.types(f"{text}\n")
    review = terminal.sees(REVIEW)
    terminal.types("1\n")
    terminal.sees(FIELD)
    terminal.types("Eve\n")
    again = terminal.sees(REVIEW)
    terminal.types("y\n")

    content = {"name": "Eve", "age": 22, "meal": "v", "gear": ["rod", "knife"], "news": False}
    assert {"action": "accept", "content": content} == answered(terminal)
    assert " 1. Your name     Bob\n" in review
    assert " 6. mail          (no answer)\n" in review
    assert " 1. Your name     Eve\n" in again


@pytest.mark.spec("2025-06-18", "client/elicitation#security-considerations", "ecef6ba7")
@pytest.mark.spec("2025-06-18", "client/elicitation#user-interaction-model", "2c314da7")
@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "f931c6a1")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "f931c6a1")
@pytest.mark.spec("2025-11-25", "client/elicitation#security-considerations", "25da9d99")
@pytest.mark.spec("2026-07-28", "client/elicitation#security-considerations", "25da9d99")
def test_the_question_says_who_asks_and_every_field_what_it_takes(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "ask", NO_COLOR="1", width=200)
    seen = terminal.sees(FIELD)
    terminal.types("Bob\n")
    seen += terminal.sees(FIELD)
    terminal.types("20\n")
    seen += terminal.sees(FIELD)

    assert "The server asks you for information.\n  its own name  boats 1.2.3\n" in seen
    assert f"  its command   {COMMAND}\n  │ Who?\n  │ \\x1b[31mred" in seen
    assert "1/6  Your name [name], required\n    text, 2 to 10 characters\n" in seen
    assert "2/6  age, required\n    │ In years.\n    a whole number, at least 18\n" in seen
    assert "3/6  meal, optional\n     1. Fish [f]\n     2. Vegetables [v]\n" in seen
    assert "    one of these (type a number); press Enter for Fish\n" in seen
    assert "\x1b" not in terminal.all


def test_a_server_of_a_configuration_is_named_and_its_command_is_not_shown(at_terminal: Begin, tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(OURS, encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-P", "-m", "mcpgen", "serve", str(tmp_path / "ours.py")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"boats": entry}}), encoding="utf-8")
    terminal = at_terminal("call", "--config", str(tmp_path / "mcp.json"), "ask", NO_COLOR="1")
    seen = terminal.sees(FIELD)
    terminal.types("Bob\n")
    terminal.sees(REVIEW)
    terminal.types("y\n")
    answered_text = terminal.end()[1]

    assert "  its own name  ours 1\n  configured as boats\n" in seen
    assert "accept Bob" in answered_text


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_server_of_every_revision_can_ask_and_its_final_result_is_the_one_that_is_shown(
    at_terminal: Begin, tmp_path: Path, revision: str
) -> None:
    file = tmp_path / "ours.py"
    file.write_text(OURS, encoding="utf-8")
    terminal = at_terminal("call", str(file), "ask", "--json", "--revision", revision)
    terminal.sees(FIELD)
    terminal.types("Ada\n")
    terminal.sees(REVIEW)
    terminal.types("y\n")

    assert "accept Ada" == answered(terminal)["content"][0]["text"]


def test_while_a_user_thinks_about_an_answer_no_note_says_that_the_server_is_slow(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "ask")
    terminal.sees(FIELD)
    time.sleep(5.5)  # longer than the command waits with its note
    terminal.types("\x04")
    terminal.end()

    assert "has not answered" not in terminal.all


@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "550a3ff3")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "550a3ff3")
def test_one_can_go_back_and_leave_out_fields_also_those_with_defaults(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "ask")
    for text in (":skip", "Bob", ":back", "::Al", "20", ":skip", "", ":skip", ""):
        terminal.sees("> ")
        terminal.types(f"{text}\n")
    review = terminal.sees(REVIEW)
    terminal.types("yes\n")

    assert {"action": "accept", "content": {"name": ":Al", "age": 20}} == answered(terminal)
    assert review.count("(no answer)") == len(("meal", "gear", "news", "mail"))


@pytest.mark.spec("2025-06-18", "client/elicitation#user-interaction-model", "d12c76ec")
@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "d7cb6fd9")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "d7cb6fd9")
@pytest.mark.parametrize(
    ("typed", "action"),
    [(":decline\n", "decline"), (":cancel\n", "cancel"), ("\x04", "cancel"), (" :DECLINE \n", "decline")],
)
@pytest.mark.parametrize("before", [0, 2])
def test_one_can_leave_at_any_field(at_terminal: Begin, before: int, typed: str, action: str) -> None:
    terminal = at_terminal("call", COMMAND, "ask")
    for text in ("Bob\n", "20\n")[:before]:
        terminal.sees("> ")
        terminal.types(text)
    terminal.sees("> ")
    terminal.types(typed)

    assert {"action": action} == answered(terminal)


@pytest.mark.parametrize(
    ("typed", "action"),
    [("y\n", "accept"), ("d\n", "decline"), ("no\n", "decline"), ("c\n", "cancel"), ("\x04", "cancel")],
)
def test_a_confirmation_needs_an_answer_of_its_own(at_terminal: Begin, typed: str, action: str) -> None:
    terminal = at_terminal("call", COMMAND, "confirm")
    terminal.sees(REVIEW)
    terminal.types("\n")
    terminal.sees(REVIEW)
    terminal.types(typed)

    assert action == answered(terminal)["action"]


def test_what_was_typed_before_the_question_is_no_answer(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "confirm", typed="y\ny\ny\n")
    terminal.sees(REVIEW)
    terminal.types("d\n")

    assert {"action": "decline"} == answered(terminal)


@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "b9a6a101")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "b9a6a101")
@pytest.mark.spec(
    "2025-11-25", "client/elicitation#safe-url-handling", "336a3a64", "3fb2a576", "3f7f26d8", "f20e4c57", "da55c91d"
)
@pytest.mark.spec(
    "2026-07-28", "client/elicitation#safe-url-handling", "336a3a64", "3fb2a576", "3f7f26d8", "f20e4c57", "da55c91d"
)
@pytest.mark.parametrize(("typed", "action"), [("a\n", "accept"), ("d\n", "decline"), ("\x04", "cancel")])
def test_an_address_is_shown_with_its_host_and_nothing_is_opened(
    at_terminal: Begin, typed: str, action: str, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {tmp_path}/opened\n", encoding="utf-8")
    browser.chmod(0o755)
    terminal = at_terminal("call", COMMAND, "page", NO_COLOR="1", width=200, BROWSER=str(browser))
    seen = terminal.sees(REVIEW)
    terminal.types(typed)

    assert {"action": action} == answered(terminal)
    assert "  URL   https://bank.example@xn--pple-43d.example:8443/log?in=1\n" in seen
    assert "  host  xn--pple-43d.example:8443\n" in seen
    assert "! The text before the @ ('bank.example') is not the host.\n" in seen
    assert not (tmp_path / "opened").exists()


def test_an_interrupt_ends_it_while_the_user_is_asked(at_terminal: Begin) -> None:
    terminal = at_terminal("call", COMMAND, "ask")
    terminal.sees("> ")
    terminal.types("\x03")
    status, out, seen = terminal.end()

    assert (130, "") == (status, out)
    assert "Traceback" not in seen


def test_progress_is_shown_on_one_line_that_goes(at_terminal: Begin) -> None:
    status, out, seen = at_terminal("call", COMMAND, "progress").end()

    assert (0, "done\n") == (status, out)
    assert "50%  step 1" in seen
    assert seen.endswith("\r\x1b[K")


def test_what_the_server_prints_never_reaches_the_terminal_as_it_is(at_terminal: Begin) -> None:
    for words in (("inspect",), ("call", "evil"), ("read", "mem://evil"), ("prompt", "plan", "day=x"), ("call", "log")):
        command, *rest = words
        _, _, seen = at_terminal(command, COMMAND, *rest, is_output_too=True, NO_COLOR="1").end()

        assert "\\x1b[31mred" in seen or "\\u001b[31mred" in seen
        assert not set("\x1b\x9b\x07\u202e") & set(seen)


def test_json_is_laid_out_and_a_blob_is_not_shown(at_terminal: Begin) -> None:
    _, _, seen = at_terminal("call", COMMAND, "fail", "--json", is_output_too=True).end()
    _, _, blob = at_terminal("read", COMMAND, "mem://picture", is_output_too=True).end()

    assert seen.startswith('{\n  "content": [\n')
    assert "[mem://picture, image/png, 4 bytes; use --output FILE to save it]\n" == blob


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_page_of_a_server_fits_its_terminal(at_terminal: Begin, width: int) -> None:
    status, _, seen = at_terminal("inspect", COMMAND, is_output_too=True, NO_COLOR="1", width=width).end()

    assert 0 == status
    assert [] == [line for line in seen.split("\n") if len(line) > width]


def test_there_are_colours_on_a_terminal_only(at_terminal: Begin) -> None:
    _, _, coloured = at_terminal("inspect", COMMAND, is_output_too=True).end()
    _, piped, _ = at_terminal("inspect", COMMAND).end()
    _, _, dumb = at_terminal("inspect", COMMAND, is_output_too=True, TERM="dumb").end()

    assert "\x1b[1mTools\x1b[0m (14)" in coloured
    assert "\x1b" not in piped + dumb


@pytest.mark.parametrize("text", ["message", "description"])
def test_a_question_that_is_too_long_to_read_is_refused_and_not_shown(
    text: str, at_terminal: Begin, tmp_path: Path
) -> None:
    message, field = ('"m\\n" * 10001', "") if text == "message" else ('"Who?"', ', "description": "m\\n" * 10001')
    source = OURS.replace('"Who?"', message).replace('{"type": "string"', f'{{"type": "string"{field}')
    (tmp_path / "ours.py").write_text(source, encoding="utf-8")
    status, _, seen = at_terminal("call", str(tmp_path / "ours.py"), "ask", width=200).end()

    assert 1 == status
    assert "a text of the question has 20002 characters; this client shows at most 20000" in seen
    assert 100 > seen.count("\n")
