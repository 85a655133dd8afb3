"""What a file remembers of servers, and that no file ever fails a connection."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpgen import ClientLimits, Process, ServerExited, UsageError, connect
from mcpgen.runtime.api import connect as connecting
from mcpgen.runtime.client.era_cache import EraCache
from mcpgen.runtime.client.era_store import EraStore, cache_folder

BOTH = ["2025-11-25", "2026-07-28"]
URL = "http://example.com/mcp"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def store(folder: Path, clock: Clock, description: str = URL) -> EraStore:
    """Return the store as another process has it."""
    return EraStore(EraCache(), folder, description, clock)


def test_an_era_is_remembered_for_other_processes_until_it_is_too_old(tmp_path: Path) -> None:
    clock = Clock()
    store(tmp_path / "new", clock).remember("a", "handshake")
    path = tmp_path / "new" / "eras.json"
    found = [store(path.parent, clock).first_plan("a", BOTH)]
    clock.now += 7 * 24 * 3600
    found.append(store(path.parent, clock).first_plan("a", BOTH))
    clock.now += 1
    found.append(store(path.parent, clock).first_plan("a", BOTH))

    assert ["initialize", "initialize", "probe"] == found
    assert URL not in path.read_text(encoding="utf-8")
    if os.name == "posix":
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)
        assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    assert ["eras.json"] == [each.name for each in path.parent.iterdir()]


def test_an_era_is_forgotten_and_kept_apart_from_others(tmp_path: Path) -> None:
    clock = Clock()
    store(tmp_path, clock).remember("a", "stateless")
    store(tmp_path, clock, "python server.py").remember("b", "handshake")
    plans = [store(tmp_path, clock).first_plan("a", BOTH)]
    store(tmp_path, clock).forget("a")
    plans.append(store(tmp_path, clock).first_plan("a", BOTH))
    plans.append(store(tmp_path, clock, "python server.py").first_plan("b", BOTH))
    plans.append(store(tmp_path, clock, "python server.py").first_plan(None, BOTH))

    assert ["discover", "probe", "initialize", "probe"] == plans


def test_a_command_is_another_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, Clock(), "python server.py").remember("a", "handshake")
    monkeypatch.chdir(tmp_path)

    assert "probe" == store(tmp_path, Clock(), "python server.py").first_plan("a", BOTH)


def test_the_file_has_a_bound(tmp_path: Path) -> None:
    clock = Clock()
    for number in range(1010):
        clock.now += 1
        if number < 5 or number > 1000:
            store(tmp_path, clock, f"{URL}/{number}").remember("a", "handshake")
        elif number == 5:
            path = tmp_path / "eras.json"
            entries = json.loads(path.read_text(encoding="utf-8"))
            entries |= {str(each): ["handshake", clock.now] for each in range(995)}
            path.write_text(json.dumps(entries), encoding="utf-8")

    assert 1000 == len(json.loads((tmp_path / "eras.json").read_text(encoding="utf-8")))
    assert "probe" == store(tmp_path, clock, f"{URL}/0").first_plan("a", BOTH)
    assert "initialize" == store(tmp_path, clock, f"{URL}/1009").first_plan("a", BOTH)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b'{"a":1}', b'{"a":["old",1]}', b'{"a":["handshake","x"]}', b"[" * 100_000, b" " * 2_000_000],
)
def test_a_broken_file_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "eras.json").write_bytes(content)
    store(tmp_path, Clock()).forget("a")
    store(tmp_path, Clock()).remember("a", "handshake")

    assert "initialize" == store(tmp_path, Clock()).first_plan("a", BOTH)


@pytest.mark.parametrize("what", ["a file", "a folder in its place", "no folder"])
def test_a_folder_that_cannot_be_written_costs_only_the_probe(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "x" if what != "no folder" else Path(os.devnull) / "x"
    if what == "a file":
        folder.write_bytes(b"")
    elif what == "a folder in its place":
        (folder / "eras.json" / "deeper").mkdir(parents=True)
    own = store(folder, Clock())
    own.remember("a", "handshake")
    own.forget("b")

    assert "probe" == store(folder, Clock()).first_plan("a", BOTH)
    assert "a folder in its place" != what or ["eras.json"] == [each.name for each in folder.iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have other folders")
def test_the_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    found: list[Any] = []
    for chosen in ("/caches", "relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", chosen)
        found.append(str(cache_folder()))

    assert ["/caches/mcpgen", "/home/a/.cache/mcpgen", "/home/a/.cache/mcpgen"] == found


OLD_SERVER = """
import json, os, sys, time
def answer(message, **more):
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **more}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "server/discover":
        print("no such method", file=sys.stderr, flush=True)
        print(message["method"], file=open(os.environ["SEEN"], "a"))
        time.sleep(float(os.environ.get("SLOW", "0")))
        answer(message, error={"code": -32601, "message": "no"})
    elif message["method"] == "initialize":
        info = {"name": "a", "version": "1"}
        answer(message, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    elif message["method"] == "tools/call":
        print("last words", file=sys.stderr, flush=True)
        sys.exit(3)
"""


def old_server(folder: Path, **environment: str) -> Process:
    (folder / "old.py").write_text(OLD_SERVER, encoding="utf-8")
    return Process([sys.executable, str(folder / "old.py")], environment={"SEEN": str(folder / "seen"), **environment})


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("cache", "probes"), [(True, 1), (False, 2), ("folder", 1), (Path("folder"), 1)])
async def test_connect_remembers_on_request(
    cache: Any, probes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        monkeypatch.setattr(connecting, "_ERAS", EraCache())  # as in another process
        async with connect(old_server(tmp_path), cache=cache) as client:
            assert "2025-11-25" == client.revision

    assert probes == len((tmp_path / "seen").read_text(encoding="utf-8").splitlines())
    with pytest.raises(UsageError, match="`cache` must be True, False or the path of a folder, not int"):
        connect("a", cache=1)  # type: ignore[call-overload]  # that is what is tried


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_server_prints_because_of_the_probe_is_not_its_last_words(tmp_path: Path) -> None:
    async with connect(old_server(tmp_path)) as client:
        with pytest.raises(ServerExited) as failure:
            await client.call_tool("a")

    assert "last words\n" == failure.value.stderr


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("revisions", "hints"), [(None, 1), (["2025-11-25"], 0)])
async def test_a_slow_probe_is_explained_after_two_seconds(
    revisions: Any, hints: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ClientLimits(probe_seconds=5)
    async with connect(old_server(tmp_path, SLOW="2.5"), revisions=revisions, limits=limits):
        pass

    said = [each for each in caplog.records if each.levelno == logging.WARNING and "`revisions=" in each.getMessage()]
    assert hints == len(said)
