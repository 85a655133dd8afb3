"""The guide does what it says: everything in it that could be run is run, and every exchange in it takes place.

A page is a story: its blocks are run from top to bottom, each with what those before it left behind.

* ``python``: executed; with a file name behind it, written to that file instead. tests/house/test_docs.py executes
  those without a name once more, without what is between them.
* ``py``: executed; looks at what an exchange before it has done.
* ``console``: each command after a ``$`` is run beside these files; what follows it is what it prints.
* ``console running``: the command goes on, until another block begins one or the page ends, and what follows it is what
  it prints first. Pages have it listen at port 8000; that is any port here, and the same in all that comes behind.
* ``jsonl``, ``toml`` or ``yaml`` with a file name: written to that file.
* ``json`` with a file name: written to that file; unless it is a schema, it is the configuration of a host, each of
  whose servers is started and asked what it has.
* ``text`` that begins with "client of": an exchange with the last `server`, as docs/guide/README.md explains.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

from mcpgen import Client, ClientLimits, Context, Http, Limits, Server, connect, runtime
from mcpgen.generated import registry
from mcpgen.runtime import errors
from mcpgen.runtime.cli.client.elicitation_prompt import MAX_QUESTION_CHARS
from mcpgen.runtime.client.outgoing_requests import CallOptions
from mcpgen.runtime.http import errors as http_errors
from mcpgen.runtime.http.server.application_options import Options as AsgiOptions
from mcpgen.runtime.limits import (
    MAX_COMPLETION_VALUES,
    MAX_FORM_FIELDS,
    MAX_RESPONSE_VALUES,
    MAX_SCHEMA_DEPTH,
    HttpLimits,
    RateLimit,
)
from mcpgen.runtime.protocol.value_costs import MAX_MADE_BYTES
from mcpgen.runtime.server.event_store import MemoryEventStore
from mcpgen.runtime.server.request_state import MAX_CONTENT_BYTES, MIN_KEY_BYTES
from mcpgen.runtime.server.tasks.memory_task_store import MemoryTaskStore
from mcpgen.runtime.transports import memory
from mcpgen.runtime.transports.process_transport import Process
from mcpgen.runtime.transports.tracebacks import MAX_TRACEBACK_CHARS
from tests.harness.server_recorder import Recorder
from tests.patience import PATIENCE_SECONDS
from tests.runtime.api.patient_clients import sitecustomize

if TYPE_CHECKING:
    from collections.abc import Iterator

from mcpgen.runtime.server.tasks.extension_tasks import MAX_TASK_IDS

GUIDE = Path(__file__).parents[3] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
BLOCK = re.compile(r"^```(?P<language>\w*) ?(?P<title>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADER = re.compile(r"client of (?P<revision>[\d-]+)(?:, capabilities (?P<capabilities>\{.*\}))?")
STEP = re.compile(r"(?P<arrow>[→←]) (?P<what>\S+)(?:\s+(?P<value>.*))?", re.DOTALL)
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# What a client hands back as it got it: an exchange writes … for it.
HANDED_BACK = {"requestState": "requestState", "cursor": "nextCursor", "taskId": "taskId"}
# Needs a package index; tests/house/test_packaging.py installs.
NOT_RUN = ("pip install ",)
# Has the guide's clients wait for servers that start slowly.
PATIENT_CLIENTS = Path(sitecustomize.__file__).parent
SLOW_START = re.compile(r"^Note: the server has not answered .*\n", re.MULTILINE)
# Where servers listen in the guide.
PORT = re.compile(r"\b8000\b")
LISTENING = re.compile(r"http://[\w.]+:(\d+)")


class Block(NamedTuple):
    """Something in a page that can be run."""

    language: str
    title: str
    text: str
    line: int

    @property
    def is_exchange(self) -> bool:
        return self.language == "text" and self.text.startswith("client of ")


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(each["language"], each["title"], each["text"], text.count("\n", 0, each.start()) + 1)
        for each in BLOCK.finditer(text)
    ]


class Exchange:
    """What a client and a server say to each other, as a page shows it."""

    def __init__(self, server: Server, text: str) -> None:
        head, _, rest = text.partition("\n")
        header = HEADER.fullmatch(head)
        assert header, f"not the head of an exchange: {head!r}"
        self.server = server
        self.revision = header["revision"]
        self.capabilities = json.loads(header["capabilities"] or "{}")
        self.steps = re.split(r"\n(?=[→←])", rest.rstrip("\n"))
        self.is_stateless = registry.revision(self.revision).era == "stateless"
        self.recorder = Recorder(server._engine.handlers.served, server._engine.handlers.capabilities)
        self.last_id = 0
        self.open: list[Any] = []  # what the server wants to know from the client
        self.handed: dict[str, Any] = {}

    async def take_place(self) -> list[str]:
        """Play the client, and return the steps as they really went."""
        async with memory.wire(self.server) as wire:
            if not self.is_stateless:
                await self._shake_hands(wire)
            happened = [await self._step(wire, each) for each in self.steps]
            await self._nothing_more(wire)
        self.recorder.verify()
        return happened

    async def _shake_hands(self, wire: memory.Wire) -> None:
        info = {"name": "guide", "version": "1"}
        offer = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
        await self._send(wire, {"id": "handshake", "method": "initialize", "params": offer})
        answer = await self._receive(wire)
        assert self.revision == answer["result"]["protocolVersion"]
        await self._send(wire, {"method": "notifications/initialized"})

    async def _nothing_more(self, wire: memory.Wire) -> None:
        method = "server/discover" if self.is_stateless else "ping"
        await self._send(wire, {"id": "end", "method": method, "params": self._params({})})
        unexpected = await self._receive(wire)
        assert unexpected.get("id") == "end", f"the page does not show {unexpected}"

    async def _step(self, wire: memory.Wire, step: str) -> str:
        match = STEP.fullmatch(step)
        assert match, f"not a step of an exchange: {step!r}"
        arrow, what = match["arrow"], match["what"]
        value = json.loads(match["value"]) if match["value"] and match["value"] != "?" else None
        if arrow == "→":
            await self._client(wire, what, value)
            return step
        said, got = self._said(await self._receive(wire))
        if said == what and fits(value, got):
            return step
        return f"← {said}" + ("" if got is None else f" {json.dumps(got, ensure_ascii=False)}")

    async def _client(self, wire: memory.Wire, what: str, value: Any) -> None:
        if what in ("result", "error"):
            await self._send(wire, {"id": self.open.pop(0), what: value})
        elif what.startswith("notifications/"):
            await self._send(wire, {"method": what} if value is None else {"method": what, "params": value})
        else:
            self.last_id += 1
            params = self._params({} if value is None else value)
            await self._send(wire, {"id": self.last_id, "method": what, "params": params})

    def _params(self, shown: dict[str, Any]) -> dict[str, Any]:
        """Return the params of a request with what an exchange leaves out."""
        kept: dict[str, Any] = dict(shown)
        kept.update((key, self.handed[HANDED_BACK[key]]) for key, each in shown.items() if each == "…")
        if "inputResponses" in kept:
            kept["inputResponses"] = {self._asked(key): each for key, each in kept["inputResponses"].items()}
        if not self.is_stateless:
            return kept
        meta = {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        return {**kept, "_meta": {**meta, **shown.get("_meta", {})}}

    def _asked(self, shown: str) -> str:
        """Return the key of the server's question that an exchange writes as the start of it and …."""
        head, dots, _ = shown.partition("…")
        return next(each for each in self.handed["inputRequests"] if each.startswith(head)) if dots else shown

    def _said(self, message: dict[str, Any]) -> tuple[str, Any]:
        """Return a message of the server as an exchange shows it."""
        if "method" in message:
            if "id" in message:
                self.open.append(message["id"])
            return message["method"], message.get("params")
        what = "result" if "result" in message else "error"
        value = message[what]
        for found in (value, value.get("task", {})):
            self.handed.update(
                (key, each) for key, each in found.items() if key in {*HANDED_BACK.values(), "inputRequests"}
            )
        meta = {key: each for key, each in value.pop("_meta", {}).items() if key != SERVER_INFO}
        return what, {**value, "_meta": meta} if meta else value

    async def _send(self, wire: memory.Wire, message: dict[str, Any]) -> None:
        frame = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.recorder.heard(frame)
        await wire.send(frame)

    async def _receive(self, wire: memory.Wire) -> Any:
        frame = await wire.receive_bytes()
        self.recorder.said(frame)
        return json.loads(frame)


def fits(shown: Any, got: Any) -> bool:
    """Whether *got* is what a page shows; … stands for anything, and as a key for any more members."""
    if shown == "…":
        return True
    if isinstance(shown, dict) and isinstance(got, dict):
        shown = {_written_out(key, got): each for key, each in shown.items()}
        named = shown.keys() - {"…"}
        is_same = named <= got.keys() if "…" in shown else named == got.keys()
        return is_same and all(fits(shown[key], got[key]) for key in named)
    if isinstance(shown, list) and isinstance(got, list):
        return len(shown) == len(got) and all(map(fits, shown, got))
    return type(shown) is type(got) and bool(shown == got)


def _written_out(key: str, got: dict[str, Any]) -> str:
    """Return the key of *got* that a page shows as the start of it and …; a key that is all dots stays as it is."""
    head, dots, _ = key.partition("…")
    return next((each for each in got if each.startswith(head)), key) if head and dots else key


class Story:
    """One page, run from top to bottom in a folder of its own."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.module = ModuleType(f"guide_{page.stem.replace('-', '_')}")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        self.environment["PYTHONPATH"] = str(PATIENT_CLIENTS)
        self.environment.pop("PYTHONSAFEPATH", None)  # a file of the page finds its neighbours, as it does for readers
        self.running: subprocess.Popen[str] | None = None
        self.port = ""  # where that listens

    def run(self, block: Block) -> None:
        match block.language, block.title:
            case "python" | "py", "":
                code = compile("\n" * block.line + self._there(block.text), str(self.page), "exec")
                exec(code, vars(self.module))  # noqa: S102 (the examples are ours)
            case "python" | "jsonl" | "toml" | "yaml", title if title:
                (self.folder / title).write_text(PORT.sub("0", block.text), encoding="utf-8")
            case "console", "":
                self._console(block.text)
            case "console", "running":
                self.close()
                self._start(block.text)
            case "json", title if title:
                (self.folder / title).write_text(block.text, encoding="utf-8")
                if "$defs" not in (document := json.loads(block.text)):
                    self._host(document)
            case "text", "" if block.is_exchange:
                exchange = Exchange(self.module.server, block.text)
                assert exchange.steps == anyio.run(exchange.take_place), f"line {block.line}"
            case "nginx" | "ini" | "yaml", "":
                pass  # for other programs; tests/runtime/http/cluster/test_behind_nginx.py runs nginx with its block
            case _:
                pytest.fail(f"line {block.line}: nobody runs a block of {block.language!r} {block.title!r}")

    def _console(self, text: str) -> None:
        for shown in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, printed = shown.partition("\n")
            if command.startswith(NOT_RUN):
                continue
            done = subprocess.run(
                [self._bash(), "-c", self._there(command)],
                check=False,
                capture_output=True,
                cwd=self.folder,
                encoding="utf-8",
                env=self.environment,
                timeout=PATIENCE_SECONDS,
            )
            stdout = SLOW_START.sub("", done.stdout)
            assert prints(self._there(printed), stdout), f"{command}\n{done.stdout}\n{done.stderr}"

    def _start(self, text: str) -> None:
        """Begin a command that goes on, and read what it prints first."""
        command, _, printed = text.removeprefix("$ ").partition("\n")
        self.running = subprocess.Popen(
            [self._bash(), "-c", f"exec {PORT.sub('0', command)}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            encoding="utf-8",
            env=self.environment,
        )
        with self._patient(self.running) as output:
            lines = [output.readline() for _ in printed.splitlines()]
        told = "".join(lines)
        found = LISTENING.search(told)
        self._move(found[1] if found else "")
        assert prints(self._there(printed), told), f"{command}\n{told}"

    def _move(self, port: str) -> None:
        """Note that the server of the page is at *port* now, in whatever the page remembers of its address, too."""
        for name, value in vars(self.module).items():
            if self.port and isinstance(value, str):
                setattr(self.module, name, value.replace(f":{self.port}/", f":{port}/"))
        self.port = port

    def close(self) -> None:
        """End the command that goes on, as whoever follows the page does."""
        if self.running is None:
            return
        self.running.terminate()
        with self.running, self._patient(self.running) as output:
            rest = output.read()
        # uvicorn sends itself the signal again that it was ended by.
        assert self.running.returncode in (0, -signal.SIGTERM), rest
        self.running = None

    @staticmethod
    @contextmanager
    def _patient(running: subprocess.Popen[str]) -> Iterator[IO[str]]:
        """Kill *running* if reading what it prints takes too long."""
        watchdog = Timer(PATIENCE_SECONDS, running.kill)
        watchdog.start()
        try:
            assert running.stdout is not None
            yield running.stdout
        finally:
            watchdog.cancel()

    def _there(self, text: str) -> str:
        """Return *text* with the port where the server really is."""
        return PORT.sub(self.port, text) if self.port else text

    @staticmethod
    def _bash() -> str:
        bash = shutil.which("bash")
        if bash is None:
            pytest.skip("there is no bash")
        return bash

    def _host(self, configuration: dict[str, Any]) -> None:
        """Start each server of a host's configuration as the host does, and ask it what it has."""
        for each in configuration["mcpServers"].values():
            arguments = [str(self.folder / Path(name).name) if name.endswith(".py") else name for name in each["args"]]
            program = shutil.which(Path(each["command"]).name, path=self.environment["PATH"])
            assert program, each["command"]
            asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
            done = subprocess.run(
                [program, *arguments],
                check=True,
                input=asked,
                capture_output=True,
                env=self.environment,
                timeout=PATIENCE_SECONDS,
            )

            assert {"jsonrpc": "2.0", "id": 1, "result": {}} == json.loads(done.stdout)


def prints(shown: str, printed: str) -> bool:
    """Whether *printed* is what a page shows; … stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed, re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.slow
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(page, tmp_path)
    monkeypatch.chdir(tmp_path)  # what examples read and write is theirs
    monkeypatch.setenv("PATH", story.environment["PATH"])  # where they find the programs that they start
    monkeypatch.setitem(sys.modules, story.module.__name__, story.module)  # where dataclasses look annotations up
    connecting = sys.modules["mcpgen.runtime.api.connect"]
    checked = connecting._limits
    patient = sitecustomize.ClientLimits()
    monkeypatch.setattr(connecting, "_limits", lambda given: checked(patient if given is None else given))
    with closing(story):
        for block in blocks(page):
            story.run(block)


def test_an_exchange_that_goes_otherwise_is_found() -> None:
    exchange = Exchange(Server("any"), 'client of 2025-11-25\n→ ping\n← result {"more": 1}\n→ ping\n← result {}')

    assert ["→ ping", "← result {}", "→ ping", "← result {}"] == anyio.run(exchange.take_place)


def test_an_exchange_that_keeps_something_quiet_is_found() -> None:
    exchange = Exchange(Server("any"), "client of 2025-11-25\n→ ping")

    with pytest.raises(AssertionError, match="the page does not show"):
        anyio.run(exchange.take_place)


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    got = {"kind": "x", "roots-1": [1], "more": 2}

    assert fits({"kind": "…", "roots-…": [1], "…": "…"}, got)
    assert not fits({"kind": "…", "roots-…": [1]}, got)
    assert not fits({"kind": "…", "roots-…": [True], "…": "…"}, got)


def test_a_command_that_goes_on_and_prints_something_else_is_found(tmp_path: Path) -> None:
    with closing(Story(tmp_path / "page.md", tmp_path)) as story, pytest.raises(AssertionError, match="hello"):
        story.run(Block("console", "running", "$ echo hello\nhullo\n", 1))


def test_a_command_that_goes_on_and_fails_at_its_end_is_found(tmp_path: Path) -> None:
    story = Story(tmp_path / "page.md", tmp_path)
    story.run(Block("console", "running", "$ python -c \"print('hi'); raise SystemExit('alas')\"\nhi\n", 1))
    assert story.running is not None
    story.running.wait(PATIENCE_SECONDS)

    with pytest.raises(AssertionError, match="alas"):
        story.close()


def test_the_table_of_contents_lists_every_chapter() -> None:
    contents = (GUIDE / "README.md").read_text(encoding="utf-8")

    assert [] == [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in contents]


def table(page: str, heading: str) -> dict[str, str]:
    """Return the first two columns of the table of *page* whose first heading is *heading*."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    lines = text.partition(f"\n| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {cells[1].strip().strip("`"): cells[2].strip() for cells in (each.split("|") for each in lines)}


def in_bytes(value: float) -> str:
    for unit, name in ((1024 * 1024, "MiB"), (1024, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} bytes"


def told(name: str, value: Any) -> str:
    """Return the default of a limit as the guide writes it."""
    if isinstance(value, RateLimit):
        return f"{value.per_second} a second, {value.burst:,} at once"
    return in_bytes(value) if "_bytes" in name else f"{value:,}"


def test_the_guide_has_every_limit_with_its_default() -> None:
    default = Limits()

    assert {name: told(name, getattr(default, name)) for name in Limits.__struct_fields__} == table(
        "limits.md", "limit"
    )


def test_the_guide_has_every_limit_of_a_client_with_its_default() -> None:
    default = ClientLimits()
    names = ClientLimits.__struct_fields__

    assert {name: told(name, getattr(default, name)) for name in names} == table("limits.md", "limit of a client")


def test_the_guide_has_every_limit_of_http_with_its_default() -> None:
    default = HttpLimits()
    names = HttpLimits.__struct_fields__

    assert {name: told(name, getattr(default, name)) for name in names} == table("limits.md", "limit of HTTP")


def test_the_guide_has_the_bounds_of_the_store_of_events() -> None:
    parameters = inspect.signature(MemoryEventStore).parameters
    bounds = {name: told(name, each.default) for name, each in parameters.items() if name != "clock"}

    assert bounds == table("limits.md", "argument of `MemoryEventStore`")


def test_the_guide_has_what_no_limit_changes() -> None:
    expected = {
        "values in one completion": f"{MAX_COMPLETION_VALUES}",
        "nested levels of an output schema that a client checks": f"{MAX_SCHEMA_DEPTH}",
        "entries in one page of a list": f"{inspect.signature(Server).parameters['page_size'].default}",
        "content of one `requestState": in_bytes(MAX_CONTENT_BYTES),
        "length of a key in `state_keys`, at least": in_bytes(MIN_KEY_BYTES),
        "values in the `inputResponses` of a request": f"{MAX_RESPONSE_VALUES:,}",
        "fields of a form that a client shows": f"{MAX_FORM_FIELDS}",
        "characters of a message or description that `mcpgen call` shows": f"{MAX_QUESTION_CHARS:,}",
        "memory of the defaults that are made for the objects of a message": in_bytes(MAX_MADE_BYTES),
        "characters of a traceback in the log": f"{MAX_TRACEBACK_CHARS:,}",
        "tasks in the `taskIds` of one stream": f"{MAX_TASK_IDS}",
    }

    assert expected == table("limits.md", "fixed limit")


def test_the_guide_has_the_bounds_of_the_store_of_tasks() -> None:
    parameters = inspect.signature(MemoryTaskStore).parameters

    assert {name: told(name, each.default) for name, each in parameters.items()} == table("limits.md", "argument")


def examples(page: Path) -> str:
    """Return the Python of *page* that is run in one piece, each line where it stands in the page."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language in ("python", "py") and not block.title:
            lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    return "\n".join([*lines, ""])


# What is left to readers to build, so that no file of these pages can be checked before.
BUILT_BY_THE_PAGE = ("drafts", "extensions")


def save_examples(page: Path, folder: Path) -> None:
    """Write the Python of *page* to *folder*: what is run in one piece, and each file that the page names."""
    folder.mkdir()
    (folder / f"{page.stem.replace('-', '_')}_page.py").write_text(examples(page), encoding="utf-8")
    if page.stem not in BUILT_BY_THE_PAGE:
        for block in blocks(page):
            if block.language == "python" and block.title:
                (folder / block.title).write_text(block.text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_examples_of_all_pages_satisfy_a_type_checker(checker: str, tmp_path: Path) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is in the dependency group `types`, which `nox -s types` installs")
    for page in PAGES:
        save_examples(page, tmp_path / page.stem)
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    commands = {
        "mypy": ["mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / '.cache'}", "."],
        "pyright": ["pyright", "--pythonpath", sys.executable, "-p", "."],
    }
    # Where this process finds the package, which need not be installed; mypy refuses paths of installed ones.
    paths = [str(Path(each).absolute()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(paths), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    # Several pages have a `server.py`, of which one run of mypy takes only one.
    folders = [tmp_path / page.stem for page in PAGES] if checker == "mypy" else [tmp_path]
    for folder in folders:
        done = subprocess.run(
            [sys.executable, "-m", *commands[checker]],
            check=False,
            capture_output=True,
            cwd=folder,
            encoding="utf-8",
            env=environment,
        )

        assert 0 == done.returncode, done.stdout + done.stderr


def test_the_whole_application_ignores_no_error() -> None:
    page = (GUIDE / "whole-application.md").read_text(encoding="utf-8")

    assert [] == re.findall(r"#\s*(?:type|pyright):.*|noqa.*", page)


def test_the_guide_names_every_logger() -> None:
    package = Path(str(runtime.__file__)).parent
    written = "".join(each.read_text(encoding="utf-8") for each in package.rglob("*.py"))

    assert set(re.findall(r"getLogger\(\"(mcpgen\..+?)\"\)", written)) == set(table("errors.md", "logger"))


def test_the_guide_names_every_error() -> None:
    errors_page = (GUIDE / "errors.md").read_text(encoding="utf-8")
    named = [*vars(errors).items(), *vars(http_errors).items()]
    raised = {name for name, each in named if isinstance(each, type) and issubclass(each, errors.McpgenError)}
    raised |= {"ResourceNotFound", "ToolError"}

    assert set() == {name for name in raised if f"`{name}`" not in errors_page}


def test_the_guide_has_every_revision() -> None:
    assert [each.label for each in registry.REVISIONS] == list(table("revisions.md", "revision"))


def test_the_guide_has_every_option_of_connect() -> None:
    own = {name for name, each in inspect.signature(connect).parameters.items() if each.kind is each.KEYWORD_ONLY}
    listed = [re.findall(r"\w+", names) for names in table("client.md", "option")]

    assert own == {name for names in listed for name in names}


def test_the_guide_has_every_option_of_a_process() -> None:
    assert inspect.signature(Process).parameters.keys() == table("processes.md", "argument of `Process`").keys()


def test_the_guide_has_every_option_of_an_asgi_application() -> None:
    listed = [re.findall(r"\w+", names) for names in table("http.md", "option of `asgi`")]

    assert AsgiOptions.__annotations__.keys() == {name for names in listed for name in names}


def test_the_guide_has_every_option_of_a_url() -> None:
    assert inspect.signature(Http).parameters.keys() == table("http-client.md", "argument of `Http`").keys()


def test_the_guide_has_everything_that_a_client_can_do() -> None:
    pages = "".join((GUIDE / name).read_text(encoding="utf-8") for name in ("client.md", "answering.md"))
    public = {name for name in dir(Client) if not name.startswith("_")} | CallOptions.__annotations__.keys()

    assert [] == sorted(name for name in public if not re.search(rf"\b{name}\b", pages))


def test_the_guide_has_every_attribute_of_a_context() -> None:
    page = (GUIDE / "talking-back.md").read_text(encoding="utf-8")
    public = [name for name in dir(Context) if not name.startswith("_")]

    assert [] == [name for name in public if not re.search(rf"\b{name}\b", page)]
