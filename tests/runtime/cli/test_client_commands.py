"""``mcpgen inspect``, ``call``, ``read`` and ``prompt``, from outside: what they write where, and their exit status."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from tests.runtime.cli import everything

if os.name != "posix":
    pytest.skip("the helper needs pseudo terminals", allow_module_level=True)

from tests.runtime.cli.terminals import COMMAND, PATIENCE_SECONDS, PROGRAM, environment, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OURS = """
import os
from mcpgen import Context, Server

server = Server("ours", version="1")
other = Server("other", version="2")

@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return f"{answer.action} {answer.content}"

@server.tool
async def roots(ctx: Context) -> list[str]:
    return [root.uri for root in await ctx.roots()]

@server.tool
def about() -> dict[str, str]:
    return {"token": os.environ.get("TOKEN", ""), "secret": os.environ.get("SECRET", ""), "cwd": os.getcwd()}

@server.tool
async def log(ctx: Context) -> str:
    for level in ("debug", "info", "error"):
        await ctx.log(level, f"at {level}")
    return "logged"
"""

TASKS = """
from mcpgen import Server

server = Server("tasks")

@server.tool(task="always")
async def ferment() -> str:
    return "risen"

@server.tool(task="always")
async def burn() -> str:
    raise ValueError("burnt")
"""


@pytest.fixture
def ours(tmp_path: Path) -> str:
    path = tmp_path / "ours.py"
    path.write_text(OURS, encoding="utf-8")
    return str(path)


def server(tmp_path: Path, code: str) -> str:
    """Return the command of a program of 2025-11-25, which answers with what *code* makes of ``message``."""
    path = tmp_path / "program.py"
    lines = "\n".join(f"    {line}" for line in textwrap.dedent(code).strip().split("\n"))
    path.write_text(
        "import json, os, signal, sys, time\n"
        "def say(**message): print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)\n"
        "def hello(capabilities, revision='2025-11-25'): say(id=message['id'], result={'protocolVersion': revision, "
        "'capabilities': capabilities, 'serverInfo': {'name': 'p', 'version': '1'}})\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line); method = message.get('method')\n"
        "    if method == 'server/discover':\n"
        "        say(id=message['id'], error={'code': -32601, 'message': 'what?'})\n"
        "        continue\n"
        f"{lines}\n",
        encoding="utf-8",
    )
    return f"{sys.executable} {path}"


# --- inspect


def test_everything_of_a_server_comes_exactly_as_json_on_one_line() -> None:
    status, out, err = run("inspect", COMMAND, "--json")
    found = json.loads(out)

    assert (0, "") == (status, err)
    assert out.isascii()
    assert 1 == out.count("\n")
    assert everything.TOOLS == found["tools"]
    assert everything.RESOURCES == found["resources"]
    assert everything.TEMPLATES == found["resourceTemplates"]
    assert everything.PROMPTS == found["prompts"]
    assert everything.INFO == found["serverInfo"]
    assert everything.CAPABILITIES == found["capabilities"]
    assert ("2025-11-25", "handshake", everything.INSTRUCTIONS) == (
        found["revision"],
        found["era"],
        found["instructions"],
    )
    assert [{"nextCursor": "more", "_meta": {"page": 1}}, {}] == found["results"]["tools/list"]


@pytest.mark.parametrize(
    "words", [("--json", "--", *COMMAND.split()), (*COMMAND.split(), "--json"), (COMMAND, "--json")]
)
def test_a_command_is_one_word_or_many(words: tuple[str, ...]) -> None:
    status, out, _ = run("inspect", *words)

    assert 0 == status
    assert COMMAND == json.loads(out)["command"]


def test_a_file_is_served_as_serve_does(ours: str) -> None:
    assert "ours" == json.loads(run("inspect", ours, "--json")[1])["serverInfo"]["name"]
    assert "other" == json.loads(run("inspect", f"{ours}:other", "--json")[1])["serverInfo"]["name"]


def test_a_file_is_found_from_here_wherever_its_server_runs(ours: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    relative = os.path.relpath(ours)
    status, out, _ = run("call", relative, "about", "--cwd", str(elsewhere))

    assert 0 == status
    assert str(elsewhere) == json.loads(out)["cwd"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_every_revision_can_be_asked_for(ours: str, revision: str) -> None:
    status, out, _ = run("inspect", ours, "--revision", revision, "--json")

    assert (0, revision) == (status, json.loads(out)["revision"])
    assert ["ask", "roots", "about", "log"] == [tool["name"] for tool in json.loads(out)["tools"]]


def test_what_a_server_does_not_offer_is_not_shown(tmp_path: Path) -> None:
    command = server(tmp_path, "if method == 'initialize': hello({'logging': {}})")
    status, out, err = run("inspect", command)

    assert (0, "") == (status, err)
    assert out.startswith("p 1\n")
    assert "capabilities   logging\n" in out
    assert not {"Tools", "Resources", "Prompts", "Instructions"} & set(out.split())


def test_a_list_that_is_refused_costs_nothing_but_itself(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'tools': {}, 'prompts': {}, 'resources': {}})
    elif method == 'tools/list': say(id=message['id'], error={'code': -32603, 'message': 'broken \\x1b'})
    elif method == 'prompts/list': say(id=message['id'], result={'prompts': [{'name': 'still there'}]})
    elif method == 'resources/list': say(id=message['id'], result={'resources': []})
    elif 'id' in message: say(id=message['id'], error={'code': -32601, 'message': 'no'})
    """
    status, out, err = run("inspect", server(tmp_path, code))

    assert 1 == status
    assert "still there" in out
    assert "Error: The server answered tools/list with error -32603: broken \\x1b\n" == err


@pytest.mark.spec("2026-07-28", "basic/index#resulttype", "31476f83")
def test_a_list_of_an_unknown_type_is_not_an_empty_list(tmp_path: Path) -> None:
    code = """
    import json, sys
    hello = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    results = {"server/discover": {"resultType": "complete", **hello}, "tools/list": {"resultType": "later"}}
    for line in sys.stdin:
        message = json.loads(line)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}), flush=True)
    """
    path = tmp_path / "later.py"
    path.write_text(textwrap.dedent(code), encoding="utf-8")
    status, out, err = run("inspect", f"{sys.executable} {path}")

    assert (1, "") == (status, out)
    assert "Error: the result of tools/list is not valid in 2026-07-28 at /resultType" in err


@pytest.mark.parametrize(("options", "probes"), [((), 1), (("--no-cache",), 2)])
def test_the_probe_is_sent_once_and_what_it_made_the_server_print_is_not_shown(
    options: tuple[str, ...], probes: int, tmp_path: Path
) -> None:
    command = server(tmp_path, "if method == 'initialize': hello({'tools': {}})")
    program = tmp_path / "program.py"
    before, probe, after = program.read_text(encoding="utf-8").partition("    if method == 'server/discover':\n")
    told = "        for each in (sys.stderr, open('seen', 'a')): print(method, file=each, flush=True)\n"
    program.write_text(f"{before}{probe}{told}{after}", encoding="utf-8")
    words = (command, "--cwd", str(tmp_path), "--timeout", "3", *options)
    said = [run("inspect", *words, XDG_CACHE_HOME=str(tmp_path / "cache")) for _ in range(2)]

    assert probes == len((tmp_path / "seen").read_text(encoding="utf-8").splitlines())
    assert all("server/discover" not in err and "tools/list" in err for _, _, err in said)


ENDLESS = """
    if method == 'initialize': hello({'tools': {}})
    elif method == 'tools/list':
        say(id=message['id'], result={'tools': [{'name': 'a', 'inputSchema': {}, 'x': %s}], 'nextCursor': 'x'})
    elif 'id' in message: say(id=message['id'], result={'content': [{'type': 'text', 'text': 'done'}]})
"""


@pytest.mark.parametrize(
    ("more", "options", "count", "limit"),
    [
        ("'x'", ("--max-items", "3"), 3, "`--max-items` is 3"),
        ("'x'", (), 1000, "the limit is 1000 pages for all lists"),
        ("'x' * 2_000_000", (), 9, "the limit is 16777216 bytes for all lists"),
        ("[{}] * 24_000", (), 14, "the limit is 67108864 bytes of memory for all lists"),
    ],
)
def test_a_list_without_an_end_is_cut_at_limits_that_are_named(
    more: str, options: tuple[str, ...], count: int, limit: str, tmp_path: Path
) -> None:
    status, out, err = run("inspect", server(tmp_path, ENDLESS % more), "--json", *options)
    said = json.loads(out)

    assert (0, count) == (status, len(said["tools"]))
    assert {"tools/list": f"the list is cut after {count} items: {limit}"} == said["incomplete"]
    assert f"Note: tools/list: the list is cut after {count} items: {limit}\n" == err


def test_a_list_that_ends_at_the_limit_is_not_cut(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'tools': {}})
    elif 'id' in message:
        say(id=message['id'], result={'tools': [{'name': 'a', 'inputSchema': {}}], 'nextCursor': None})
    """
    status, out, err = run("inspect", server(tmp_path, code), "--json", "--max-items", "1")

    assert (0, "") == (status, err)
    assert "incomplete" not in json.loads(out)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("error={'code': -32603, 'message': 'broken'}", "tools/list failed: "),
        ("result=[]", "tools/list failed: "),
        ("result={'tools': [], 'nextCursor': 'x'}", "the tool is not listed; the list is cut after 0 items: "),
    ],
)
def test_a_tool_can_be_called_although_it_cannot_be_listed(answer: str, reason: str, tmp_path: Path) -> None:
    code = f"""
    if method == 'initialize': hello({{'tools': {{}}}})
    elif method == 'tools/list': say(id=message['id'], {answer})
    elif 'id' in message:
        text = json.dumps(message['params']['arguments'])
        say(id=message['id'], result={{'content': [{{'type': 'text', 'text': text}}]}})
    """
    status, out, err = run("call", server(tmp_path, code), "a", "text=b", "number=3")

    assert (0, '{"text": "b", "number": 3}\n') == (status, out)
    assert err.startswith("Note: The arguments are not checked: ")
    assert reason in err


@pytest.mark.parametrize(
    ("identity", "text", "shown"),
    [("str(message['id'])", "'here'", "here"), ("message['id']", "'\\ud800'", "\ufffd")],
)
def test_a_result_that_is_read_with_a_correction_is_shown(identity: str, text: str, shown: str, tmp_path: Path) -> None:
    code = f"""
    if method == 'initialize': hello({{'tools': {{}}}})
    elif method == 'tools/list': say(id=message['id'], result={{'tools': [{{'name': 'a', 'inputSchema': {{}}}}]}})
    elif 'id' in message: say(id={identity}, result={{'content': [{{'type': 'text', 'text': {text}}}]}})
    """
    status, out, err = run("call", server(tmp_path, code), "a")

    assert (0, f"{shown}\n") == (status, out)
    assert "is not valid, but is accepted" in err


def test_a_result_whose_content_is_null_has_no_content(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'tools': {}})
    elif method == 'tools/list': say(id=message['id'], result={'tools': [{'name': 'a', 'inputSchema': {}}]})
    elif 'id' in message: say(id=message['id'], result={'content': None})
    """
    status, out, err = run("call", server(tmp_path, code), "a")

    assert (0, "") == (status, out)
    assert "is not valid, but is accepted" in err


def test_a_number_that_the_client_does_not_read_is_an_error_of_the_server(tmp_path: Path) -> None:
    code = """
    info = '{"name": "p", "version": "1", "x": 1e400}'
    result = f'{{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {info}}}'
    if method == 'initialize': print(f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {result}}}', flush=True)
    """
    status, out, err = run("inspect", server(tmp_path, code), "--revision", "2025-11-25")

    assert (1, "") == (status, out)
    assert err.startswith("Error: the result of initialize is not valid: Number out of range")


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("2024-11-05", "the server speaks 2025-11-25"),
        (
            "2026-07-28",
            """the server does not support it (server/discover was answered with an error: what? (-32601))
The server speaks 2025-11-25.""",
        ),
    ],
)
def test_a_server_that_does_not_speak_the_revision_is_told_with_what_it_does(revision: str, said: str) -> None:
    status, out, err = run("inspect", COMMAND, "--revision", revision)

    assert (1, "") == (status, out)
    assert f"Error: no revision in common: the client offered {revision}, {said}\n" == err


def test_a_second_connection_that_fails_says_nothing_about_revisions(tmp_path: Path) -> None:
    once, path, lock = server(tmp_path, "pass"), tmp_path / "program.py", str(tmp_path / "lock")
    first = f"import os, sys\nos.path.exists({lock!r}) and sys.exit('locked')\nopen({lock!r}, 'w').close()\n"
    path.write_text(first + path.read_text(encoding="utf-8"), encoding="utf-8")
    status, _, err = run("inspect", once, "--revision", "2026-07-28")

    assert 1 == status
    assert "mcpgen connected again. This failed:\nError: the server " in err
    assert "locked" in err
    assert "no revision that mcpgen knows" not in err


# --- what goes wrong


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", ""),
        ("inspect", "'unfinished"),
        ("inspect", "ftp://example.com/mcp"),
        ("inspect", "no_such_file.py"),
        ("inspect", COMMAND, "--revision", "2027-01-01"),
        ("inspect", COMMAND, "--timeout", "0"),
        ("inspect", COMMAND, "--env", "NAME"),
        ("inspect", COMMAND, "--cwd", "/no/such/folder"),
        ("call", COMMAND),
        ("call", COMMAND, "echo", "value"),
        ("call", COMMAND, "echo", "a=1", "--json-args", "{}"),
        ("call", COMMAND, "echo", "--json-args", "[]"),
        ("call", COMMAND, "ekho"),
        ("call", COMMAND, "book", "boat=x"),
        ("prompt", COMMAND, "plan"),
        ("prompt", COMMAND, "plan", "day:=1"),
        ("read", COMMAND),
    ],
)
def test_wrong_usage_is_status_2(words: tuple[str, ...]) -> None:
    status, out, err = run(*words)

    assert (2, "") == (status, out)
    assert "Error: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program-anywhere", "cannot be started"),
        (
            f"{sys.executable} -c 'import sys; print(\"bad\\x1b\", file=sys.stderr); sys.exit(7)'",
            "has exited with status 7",
        ),
        (f"{sys.executable} -c 'print(\"no json\")'", "has exited with status 0"),
    ],
)
def test_a_server_that_cannot_be_reached_is_status_1(command: str, said: str) -> None:
    status, out, err = run("inspect", command)

    assert (1, "") == (status, out)
    assert all(line.startswith(("Error: ", "Note: ", "TARGET is", "    ")) for line in err.splitlines())
    assert said in err
    assert "\x1b" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inspect", "python greeter.py", "extra"), "in one pair of quotes, or without quotes after `--`."),
        (("call", COMMAND, "greet", "name"), "Arguments are KEY=VALUE or KEY:=JSON, not 'name'."),
        (("prompt", COMMAND, "greet", "name"), "Arguments are KEY=VALUE, not 'name'."),
        (("inspect", COMMAND, "--timeout", "abc"), "'abc' is not a number."),
        (("inspect", COMMAND, "--max-items", "x"), "'x' is not a whole number."),
        (("call", "python", "greeter.py", "add", "a=1"), 'whole command of the server in quotes: "python …".'),
        (("read", "python3.13", "greeter.py", "a://b"), 'whole command of the server in quotes: "python3.13 …".'),
        (("inspect", "uvx", "--from", "greeter", "greet"), 'whole command of the server in quotes: "uvx …".'),
        (("call", "npx", "-y", "greeter", "greet"), 'whole command of the server in quotes: "npx …".'),
        (("prompt", "npx", "greeter", "greet"), 'whole command of the server in quotes: "npx …".'),
        (("call", COMMAND, "greet", "--json-args", "-"), "is `-`, but standard input is empty"),
    ],
)
def test_a_mistake_is_explained(words: tuple[str, ...], said: str) -> None:
    status, _, err = run(*words)

    assert 2 == status
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("more", "count", "advice"),
    [
        (["extra"], "there is another word, 'extra'.", 'Leave it out, or give the whole command: "python {} extra".'),
        (["a", "b c"], "there are 2 more words.", "Leave them out, or give the whole command: \"python {} a 'b c'\"."),
    ],
)
def test_words_after_a_file_are_explained(more: list[str], count: str, advice: str) -> None:
    status, _, err = run("inspect", __file__, *more)

    assert 2 == status
    assert f"After {__file__} {count} {advice.format(__file__)}" in " ".join(err.split())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no `cat`")
def test_a_program_that_sends_everything_back_is_no_server() -> None:
    status, _, err = run("inspect", "cat")

    assert 1 == status
    assert "a request that only clients send; check that the server is an MCP server, and not a program" in err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("ctx.roots()", "Offer them with `--root PATH`."),
        ("ctx.sample('hi', max_tokens=1)", "a language model, which this command does not have"),
    ],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_the_client_lacks_for_a_tool_is_explained(tmp_path: Path, revision: str, call: str, said: str) -> None:
    path = tmp_path / "asking.py"
    path.write_text(
        "from mcpgen import Context, Server\nserver = Server('asking')\n@server.tool\n"
        f"async def ask(ctx: Context) -> str:\n    return str(await {call})\n",
        encoding="utf-8",
    )
    status, _, err = run("call", str(path), "ask", "--revision", revision)

    assert 1 == status
    assert said in err


def test_a_program_that_is_taken_for_a_file_to_serve_is_explained() -> None:
    status, _, err = run("inspect", everything.__file__)

    assert 1 == status
    assert f'give its command as TARGET: "python {everything.__file__}"' in err


def test_a_server_that_takes_too_long_is_told_with_its_last_words() -> None:
    status, out, err = run("call", COMMAND, "hang", "--quiet", "--timeout", "4.5")

    assert (1, "") == (status, out)
    assert (
        "Error: tools/call was not answered within 4.5 seconds\n"
        "The last lines of its standard error:\n    still thinking\n" == err
    )


def test_a_server_that_refuses_the_first_request_is_told_with_its_last_words(tmp_path: Path) -> None:
    code = """
    print("the database is away", file=sys.stderr, flush=True)
    time.sleep(0.2)
    say(id=message["id"], error={"code": -32603, "message": "Internal error"})
    """
    status, out, err = run("call", server(tmp_path, code), "x", "--revision", "2025-11-25")

    assert (1, "") == (status, out)
    assert (
        "Error: The server answered initialize with error -32603: Internal error\n"
        "The last lines of its standard error:\n    the database is away\n" == err
    )


def test_a_server_that_lacks_a_variable_is_told_how_to_give_it_one(tmp_path: Path) -> None:
    _, _, err = run("inspect", server(tmp_path, "os.environ['API_KEY']"))

    assert "    KeyError: 'API_KEY'\n" in err
    assert "Add others with --env KEY=VALUE." in err


def test_a_server_of_a_configuration_that_lacks_a_variable_is_told_the_key_of_the_configuration(tmp_path: Path) -> None:
    command, *arguments = shlex.split(server(tmp_path, "os.environ['API_KEY']"))
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"a": {"command": command, "args": arguments}}}), encoding="utf-8")
    _, _, err = run("inspect", "--config", str(config), "--server", "a")

    assert "Add others in the configuration, under the key `env` of the server." in err


def test_progress_does_not_lengthen_the_time_that_one_has_given(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'tools': {}})
    elif method == 'tools/list':
        say(id=message['id'], result={'tools': [{'name': 'a', 'inputSchema': {'type': 'object'}}]})
    elif method == 'tools/call':
        for done in range(80):
            token = message['params']['_meta']['progressToken']
            say(method='notifications/progress', params={'progressToken': token, 'progress': done})
            time.sleep(0.1)
        say(id=message['id'], result={'content': [{'type': 'text', 'text': 'late'}]})
    """
    status, out, err = run("call", server(tmp_path, code), "a", "--timeout", "4")

    assert (1, "") == (status, out)
    assert "Error: tools/call was not answered within 4 seconds\n" in err


def test_a_server_that_crashes_is_told_with_its_last_words() -> None:
    status, out, err = run("call", "--quiet", COMMAND, "crash")

    assert (1, "") == (status, out)
    assert (
        f"Error: the server {COMMAND!r} has exited with status 3; the last lines of its standard error:\n"
        "    about to fail\n"
    ) in err
    assert "\x1b" not in err


def test_what_a_server_prints_as_errors_is_shown_and_escaped_while_it_works() -> None:
    status, out, err = run("call", COMMAND, "crash")

    assert (1, "") == (status, out)
    assert err.startswith("about to fail\n\\x1b[31mred")
    assert err.endswith(f"\nError: the server {COMMAND!r} has exited with status 3; its standard error is above\n")
    assert 1 == err.count("about to fail")
    assert "\x1b" not in err


BOOM = """
from mcpgen import Server

server = Server("boom")
print("imported")

@server.tool
def divide(a: int, b: int) -> float:
    return a / b
"""


@pytest.mark.parametrize("options", [(), ("--quiet",), ("-q",)])
def test_the_traceback_of_a_tool_in_a_file_is_on_the_screen_unless_it_is_quiet(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "boom.py"
    file.write_text(BOOM, encoding="utf-8")

    status, out, err = run("call", *options, str(file), "divide", "a=1", "b=0")

    assert (1, "") == (status, out)
    assert "The tool divide failed: ZeroDivisionError: division by zero\n" in err
    assert (not options) == (f'  File "{file}", line 9, in divide\n    return a / b\n' in err)
    assert (not options) == ("imported\n" in err)


def test_only_the_commands_that_start_a_file_put_its_exceptions_into_errors(tmp_path: Path) -> None:
    file = tmp_path / "boom.py"
    file.write_text(BOOM, encoding="utf-8")
    serve = f"{sys.executable} -m mcpgen serve {file}"

    assert "The tool divide failed.\n" == run("call", "-q", serve, "divide", "a=1", "b=0")[2]
    assert "ZeroDivisionError" in run("call", "-q", f"{serve} --debug", "divide", "a=1", "b=0")[2]


def test_an_interrupt_ends_the_server_and_is_status_130(tmp_path: Path) -> None:
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if method == 'initialize': hello({'tools': {}})
    elif method == 'tools/list':
        open(sys.argv[0] + '.pid', 'w').write(str(os.getpid()) + '\\n')
        while True: time.sleep(60)
    """
    command = server(tmp_path, code)
    noted = tmp_path / "program.py.pid"
    program = [sys.executable, "-c", PROGRAM, "inspect", command]

    def heed() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        program,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=heed,  # noqa: PLW1509 (it takes no lock)
    )
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (noted.exists() and noted.read_text(encoding="utf-8").endswith("\n")):
            assert time.monotonic() < until
            time.sleep(0.01)  # there is no event to wait for: it is another process
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()

    assert 130 == process.returncode
    assert f"Note: the server {command!r} does not end after SIGTERM, and is killed\n" == err.decode()
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text(encoding="utf-8")), 0)


# --- call


def test_arguments_become_what_the_tool_takes() -> None:
    words = ("boat=5", "when=x", "people=3", "paid=true", "price=null", 'tags=["sun"]', 'skipper:={"name": "A"}')
    status, out, _ = run("call", COMMAND, "book", *words)

    given = {
        "boat": "5",
        "when": "x",
        "people": 3,
        "paid": True,
        "price": None,
        "tags": ["sun"],
        "skipper": {"name": "A"},
    }
    assert 0 == status
    assert given == json.loads(out)["given"]


@pytest.mark.parametrize("source", ['{"value": [1]}', "-", "@FILE"])
def test_arguments_come_as_json(source: str, tmp_path: Path) -> None:
    file = tmp_path / "args.json"
    file.write_text('{"value": [1]}', encoding="utf-8")
    status, out, _ = run(
        "call", COMMAND, "echo", "--json-args", source.replace("FILE", str(file)), given=b'{"value": [1]}'
    )

    assert (0, {"value": [1]}) == (status, json.loads(out)["given"])


@pytest.mark.parametrize("source", ["-", "@FILE"])
def test_arguments_as_json_have_a_limit(source: str, tmp_path: Path) -> None:
    file, given = tmp_path / "args.json", b'{"value": [1]}'.ljust(16 * 1024 * 1024 + 1)
    file.write_bytes(given)
    status, _, err = run("call", COMMAND, "echo", "--json-args", source.replace("FILE", str(file)), given=given)

    assert 2 == status
    assert "has more than 16777216 bytes" in " ".join(err.split())


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_result_of_a_task_is_shown_and_its_failure_is_status_1(revision: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks.py"
    file.write_text(TASKS, encoding="utf-8")
    words = ("--quiet", "--revision", revision)

    assert (0, "risen\n", "") == run("call", *words, str(file), "ferment")
    assert [{"type": "text", "text": "risen"}] == json.loads(run("call", "--json", str(file), "ferment")[1])["content"]
    assert (1, "", "The tool burn failed: ValueError: burnt\n") == run("call", *words, str(file), "burn")


def test_values_that_are_given_as_json_are_not_checked() -> None:
    for words in (("boat:=1", 'when:="x"', "people:=[]"), ("--json-args", '{"boot": 1}')):
        assert "Arguments of book" not in run("call", COMMAND, "book", *words)[2]
    assert 2 == run("call", COMMAND, "book", "boot:=1")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call", "x.py", "greet", "--name", "Ann"), "No such option '--name'. Write arguments as name=Ann."),
        (("call", "x.py", "greet", "a=1", "--name=Ann"), "No such option '--name'. Write arguments as name=Ann."),
        (("call", "x.py", "greet", "--name", "a=1"), "No such option '--name'. Write arguments as name=VALUE."),
        (("prompt", "x.py", "greet", "--name"), "No such option '--name'. Write arguments as name=VALUE."),
        (("call", "--config", "x", "greet", "--name", "A"), "No such option '--name'. Write arguments as name=A."),
        (("call", "--jso", "x.py", "greet"), "No such option '--jso'. "),
        (("call", "x.py", "--jso", "greet"), "No such option '--jso'. "),
    ],
)
def test_an_argument_that_is_written_as_an_option_is_explained(words: tuple[str, ...], said: str) -> None:
    status, _, err = run(*words)

    assert 2 == status
    assert f"Error: {said}" in err


@pytest.mark.parametrize("name", ["greeter", "./greeter", "README.md"])
def test_a_command_that_is_not_there_is_told_what_a_target_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("greeter.py", "README.md"):
        (tmp_path / each).touch()
    status, _, err = run("inspect", name)
    hint = f"Did you mean {name}.py?" if "greeter" in name else "TARGET is a Python file, a module:object, a URL or"

    assert 1 == status
    assert err.splitlines()[1].startswith(hint)


def test_a_server_that_does_not_answer_the_first_question_is_noted_without_python(tmp_path: Path) -> None:
    command = server(tmp_path, "if method == 'initialize': hello({})")
    program = tmp_path / "program.py"
    text = program.read_text(encoding="utf-8").replace("        say(id=message['id'], error=", "        str(", 1)
    program.write_text(text.replace("'what?'})", "'what?'})"), encoding="utf-8")
    status, _, err = run("inspect", command, "--no-cache", notes_slow_start=True)

    assert 0 == status
    note = "the server has not answered for 2 seconds. Some older servers need `--revision 2025-11-25`."
    assert f"Note: {note}\n" == err


def test_a_server_that_is_being_ended_is_not_noted_as_slow() -> None:
    """`sleep` reads no input, so the client needs two more seconds to end it."""
    status, _, err = run("inspect", "sleep 30", "--no-cache", "--timeout", "0.5", notes_slow_start=True)

    assert 1 == status
    assert "Error: the server 'sleep 30' was not ready within 0.5 seconds\n" == err


def test_arguments_that_do_not_fit_are_explained_with_what_the_tool_takes() -> None:
    status, out, err = run("call", COMMAND, "book", "boot=x", "people=some")

    assert (2, "") == (status, out)
    assert err.startswith(
        "Error: There is no argument `boot`. Did you mean boat?\n"
        "Error: Arguments `boat` and `when` are missing.\n"
        "Error: `people` must be of type integer, not 'some'.\n"
        "\n"
        "Arguments of book:\n"
        "  boat     string, required"
    )


def test_a_tool_of_another_name_is_suggested_or_all_are_listed() -> None:
    assert "Error: The server has no tool 'ekho'. Did you mean echo?\n" == run("call", COMMAND, "ekho")[2]
    assert "Its tools: ask, book, confirm, crash," in run("call", COMMAND, "zzzzzz")[2]


def test_a_failed_tool_is_status_1_with_its_content_as_an_error() -> None:
    assert (1, "", "there is no such boat\n") == run("call", COMMAND, "fail")
    status, out, err = run("call", COMMAND, "fail", "--json")
    assert (1, True, "") == (status, json.loads(out)["isError"], err)


def test_a_refused_request_is_status_1() -> None:
    status, out, err = run("call", COMMAND, "refuse")

    assert (1, "") == (status, out)
    assert err.startswith("Error: The server answered tools/call with error -32000: no \\x1b[31mred")
    assert '{"why":"\\u001b[31mred' in err


def test_content_that_is_no_text_is_noted_and_saved(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    status, out, _ = run("call", COMMAND, "picture", "--output", str(folder))

    assert 0 == status
    assert out.split("\n")[:3] == [
        f"[image, image/png, 1,200 bytes, saved as {folder}/image-1.png]",
        f"[resource mem://../../etc/x, ../../evil, 3 bytes, saved as {folder}/resource-1.bin]",
        "→ mem://picture picture (image/png)",
    ]
    assert {"image-1.png": b"\x89PNG" * 300, "resource-1.bin": b"abc"} == {
        each.name: each.read_bytes() for each in folder.iterdir()
    }
    assert 1 == run("call", COMMAND, "picture", "--output", "/dev/null/x")[0]


def test_text_in_a_pipe_holds_no_controls_but_json_has_them_exactly() -> None:
    assert "\\x1b[31mred\\x1b[0m\\x07 \\u202eesrever\\x9b1A\n" == run("call", COMMAND, "evil")[1]
    assert everything.EVIL == json.loads(run("call", COMMAND, "evil", "--json")[1])["content"][0]["text"]


def test_a_script_is_never_asked_and_so_does_not_hang(ours: str) -> None:
    status, out, _ = run("call", COMMAND, "ask")
    assert (0, -32601) == (status, json.loads(out)["code"])

    needed = (
        "The server asks the user for input. That needs a terminal, and revision 2025-06-18 or later for a form, or "
        "2025-11-25 or later for a URL."
    )
    status, out, err = run("call", ours, "ask")
    assert (1, "") == (status, out)
    assert "elicit" in err
    assert 1 == err.count(needed)
    assert "Traceback" not in err

    status, out, err = run("call", ours, "ask", "--revision", "2025-11-25")
    assert (1, 1) == (status, err.count(needed)), "the error is a result of the tool"
    assert "elicitation/create, which cannot be sent to this client" in out + err


def test_roots_environment_and_folder_are_told(ours: str, tmp_path: Path) -> None:
    status, out, _ = run("call", ours, "roots", "--root", str(tmp_path), "--root", "/")
    assert (0, {"result": [tmp_path.resolve().as_uri(), "file:///"]}) == (status, json.loads(out))

    words = ("--env", "TOKEN=a=b", "--cwd", str(tmp_path))
    status, out, _ = run("call", ours, "about", *words, SECRET="mine")  # noqa: S106 (what has to stay ours)
    assert (0, {"token": "a=b", "secret": "", "cwd": str(tmp_path)}) == (status, json.loads(out))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_log_goes_to_standard_error_from_the_level_on(ours: str, revision: str) -> None:
    deprecated = (
        "2026-07-28 deprecates log entries to clients (`Context.log`); log to standard error, or use OpenTelemetry"
    )
    said = run("call", ours, "log", "--revision", "2025-11-25")[2]
    assert {"[error] at error", deprecated} == set(said.splitlines())  # of two processes, so in any order
    for level, expected in (("debug", 3), ("info", 2), ("alert", 0)):
        status, out, err = run("call", ours, "log", "--log-level", level, "--revision", revision)

        assert (0, "logged\n", expected) == (status, out, err.count("] at "))


def test_a_server_without_a_log_is_told_and_works(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'tools': {}})
    elif method == 'tools/list':
        say(id=message['id'], result={'tools': [{'name': 'a', 'inputSchema': {'type': 'object'}}]})
    elif method == 'tools/call': say(id=message['id'], result={'content': [{'type': 'text', 'text': 'done'}]})
    """
    note = "Note: the server has no logging, so --log-level has no effect\n"
    assert (0, "done\n", note) == run("call", server(tmp_path, code), "a", "--log-level", "info")


@pytest.mark.parametrize(
    ("command", "name", "kind"), [("call", "a", "tools"), ("prompt", "a", "prompts"), ("read", "a:b", "resources")]
)
def test_a_server_without_a_kind_of_items_is_not_asked(command: str, name: str, kind: str, tmp_path: Path) -> None:
    status, _, err = run(command, server(tmp_path, "if method == 'initialize': hello({})"), name)

    assert 1 == status
    assert f"Error: The server has no {kind}: it has not declared the capability `{kind}`.\n" in err


# --- read and prompt


def test_a_prompt_may_be_in_the_rest_of_a_list_that_is_cut(tmp_path: Path) -> None:
    code = """
    if method == 'initialize': hello({'prompts': {}})
    elif 'id' in message: say(id=message['id'], result={'prompts': [{'name': 'a'}], 'nextCursor': 'x'})
    """
    status, _, err = run("prompt", server(tmp_path, code), "xyz", "--max-items", "1")

    assert 2 == status
    assert (
        "Note: prompts/list: the list is cut after 1 items: `--max-items` is 1\n"
        "Error: There is no prompt 'xyz' in the part of the list that was read.\n"
        "The prompts in this part: a\n" == err
    )


def test_text_is_written_exactly_and_blobs_raw(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from mcpgen.cli import main; main()", "read", COMMAND]

    def written(uri: str, *more: str) -> bytes:
        return subprocess.run([*program, uri, *more], capture_output=True, check=True, env=environment()).stdout

    assert f"a\r\nb\t{everything.EVIL}".encode() == written("mem://evil")
    assert b"\x89PNG" == written("mem://picture")
    file = tmp_path / "picture"
    assert b"" == written("mem://picture", "--output", str(file))
    assert b"\x89PNG" == file.read_bytes()
    assert {"uri": "mem://picture", "blob": "iVBORw==", "mimeType": "image/png"} == json.loads(
        written("mem://picture", "--json")
    )["contents"][0]


def test_a_prompt_is_shown_message_by_message() -> None:
    status, out, _ = run("prompt", COMMAND, "plan", "day=monday")

    assert 0 == status
    assert out.startswith("user:\nPlan monday. \\x1b[31mred")
    assert "\n\nassistant:\nPlan monday." in out
    assert "user" == json.loads(run("prompt", COMMAND, "plan", "day=x", "--json")[1])["messages"][0]["role"]


def test_arguments_of_a_prompt_are_explained() -> None:
    status, _, err = run("prompt", COMMAND, "plan", "moo=x")

    assert 2 == status
    expected = (
        "Error: There is no argument `moo`. Did you mean mood?\n"
        "Error: Argument `day` is missing.\n"
        "\n"
        "Arguments of plan:\n"
        "  day   string, required"
    )
    assert err.startswith(expected)


# --- what it costs


@pytest.mark.parametrize("command", ["inspect", "call", "read", "prompt"])
def test_help_is_there_and_says_what_a_target_is(command: str) -> None:
    status, out, _ = run(command, "--help")

    assert 0 == status
    assert "TARGET is the server's URL, its command" in out


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    program = shlex.join([sys.executable, "-c", PROGRAM, "inspect", COMMAND]) + " | head -n 1"
    done = subprocess.run(program, shell=True, capture_output=True, check=True, env=environment())  # noqa: S602 (ours)

    assert (b"boats 1.2.3 \xe2\x80\x94 Boats of the bay\n", b"") == (done.stdout, done.stderr)


def test_an_encoding_that_lacks_characters_costs_no_line() -> None:
    status, out, err = run("inspect", COMMAND, PYTHONIOENCODING="ascii")

    assert (0, "") == (status, err)
    assert out.startswith("boats 1.2.3 - Boats of the bay\n")


def test_after_five_seconds_a_note_says_what_is_awaited() -> None:
    status, _, err = run("call", COMMAND, "hang", "--timeout", "6.5")

    note = (
        "Note: the server has not answered tools/call for 5 seconds; still waiting. "
        "`--timeout SECONDS` sets a limit, and Ctrl-C cancels.\n"
    )
    assert (1, 1) == (status, err.count(note))


def test_a_wait_of_a_few_seconds_is_not_noted() -> None:
    _, _, err = run("call", COMMAND, "hang", "--timeout", "3")

    assert "Note:" not in err


@pytest.mark.parametrize("target", ["shops.tea:server", "shops.tea:holder.server"])
def test_a_server_in_a_module_is_a_target(target: str, tmp_path: Path) -> None:
    (tmp_path / "shops").mkdir()
    (tmp_path / "shops" / "tea.py").write_text(f"{OURS}\nclass holder:\n    server = server\n", encoding="utf-8")

    status, out, _ = run("call", "--cwd", str(tmp_path), target, "about")
    assert 0 == status
    assert str(tmp_path) == json.loads(out)["cwd"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("shops.tea:server", "Error: There is no file or module shops.tea."),
        ("json:server", "Error: There is no `server` in json."),
        ("json:dumps", "Error: `dumps` in json is not a Server; it is of type function."),
    ],
)
def test_a_module_without_the_server_is_explained(target: str, reason: str) -> None:
    status, _, err = run("inspect", target)

    assert 1 == status
    assert f"the server 'mcpgen serve {target}' has exited with status 2" in err
    assert reason in err
