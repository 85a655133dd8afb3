"""The commands against hosts that do not read, servers without end, and documents that are too large."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.attacked_processes import MIB, PYTHON
from tests.bounds.hostile_messages import DEEP, call, initialize
from tests.faults import hostile_server
from tests.faults.http_raw_client import message
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

VILLAIN = (PYTHON, "-I", "-S", str(Path(hostile_server.__file__)))
# Lists that never end, in the era that the client asks for; each page holds one description of 1 MiB, or many items.
ENDLESS = """
text = "x" * {size}
first = greet()
while True:
    request = asked()
    key = {{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}}.get(request["method"])
    one = {{"name": "n", "uri": "a:b", "description": text, "inputSchema": {{"type": "object"}}}}
    more = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "nextCursor": str(request["id"])}}
    answer(request, {{key or "resourceTemplates": [one] * {count}, **more}})
"""
SCHEMA = Path(__file__).parents[2] / "schema" / "2025-11-25" / "schema.json"


def ended(command: Any, seconds: float = PATIENCE_SECONDS) -> tuple[int, str, int]:
    """Wait for its end; return its status, what it printed as errors, and how much it printed else."""
    output, errors = command.popen.communicate(timeout=seconds)
    return command.popen.returncode, errors.decode(), len(output)


@pytest.mark.parametrize("path", ["mcp", "sse"])
def test_trace_of_a_url_reads_no_more_than_its_host(victims: Victims, path: str) -> None:
    http = victims.http()
    trace = victims.command("trace", "--output", os.devnull, "--", f"http://127.0.0.1:{http.port}/{path}")
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    fill = {"name": "fill", "arguments": {"count": 3000, "size": 100_000}, "_meta": {"progressToken": "p"}}
    stdin, stdout = trace.popen.stdin, trace.popen.stdout
    with victims.watch(trace, drain=lambda: None) as seen:
        for message in (
            {"id": 0, "method": "initialize", "params": info},
            {"method": "notifications/initialized"},
            {"id": 1, "method": "tools/call", "params": fill},
        ):
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            stdin.flush()
            if message.get("id") == 0:
                assert b'"result"' in stdout.readline()
        _until_it_rests(trace.popen.pid)
        # Nothing is lost for a host that reads again.
        said = [json.loads(stdout.readline()) for _ in range(3001)]

    assert [*range(1, 3001)] == [each["params"]["progress"] for each in said[:-1]]
    assert 1 == said[-1]["id"]
    assert seen.grown < 64 * MIB
    stdin.close()
    trace.popen.stdin = None
    assert 0 == ended(trace)[0]


@pytest.mark.parametrize("direction", ["to the host", "to the server"])
def test_trace_passes_on_messages_of_too_many_values_without_decoding_them(victims: Victims, direction: str) -> None:
    # Decoded, the values of the message take about 250 MiB.
    deep = DEEP if direction == "to the server" else "0"
    http = victims.http(http={}, limits={"max_values": 10_000_000})
    trace = victims.command("trace", "--output", os.devnull, "--", f"http://127.0.0.1:{http.port}/mcp")
    stdin, stdout = trace.popen.stdin, trace.popen.stdout
    tool, arguments = ("echo", f'{{"text":{deep}}}') if direction == "to the server" else ("nested", "{}")
    with victims.watch(trace, drain=lambda: None) as seen:
        stdin.write(initialize("2025-11-25") + b"\n" + message("notifications/initialized") + b"\n")
        stdin.flush()
        assert b'"result"' in stdout.readline()
        stdin.write(call(tool, arguments, revision="2025-11-25") + b"\n")
        stdin.flush()
        said = stdout.readline()

    assert 1 == json.loads(said)["id"]
    assert (len(said) > MIB) == (direction == "to the host")
    assert seen.grown < 96 * MIB
    stdin.close()
    trace.popen.stdin = None
    assert 0 == ended(trace)[0]


def _until_it_rests(pid: int) -> None:
    """Return when a process has used no processor for a second, or after a while in any case."""

    def used() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    until, before, since = time.monotonic() + PATIENCE_SECONDS / 4, used(), time.monotonic()
    while time.monotonic() < min(until, since + 1):
        time.sleep(0.1)
        if used() > before + 1:
            before, since = used(), time.monotonic()


@pytest.mark.parametrize(("size", "count"), [(2 * MIB, 1), (1, 1000)], ids=["large", "many"])
def test_inspect_stops_at_bounds_and_says_so(victims: Victims, size: int, count: int) -> None:
    inspect = victims.command("inspect", "--json", "--", *VILLAIN, ENDLESS.format(size=size, count=count))
    with victims.watch(inspect, drain=lambda: None) as seen:
        _, errors, _ = ended(inspect)

    assert "--max-items" in errors or "bytes" in errors, errors[-300:]
    assert seen.peak_bytes < 256 * MIB


def test_what_trace_writes_is_for_its_owner_alone(victims: Victims, tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    trace = victims.command("trace", "--output", str(said), "--", *VILLAIN, "serve()")
    trace.popen.stdin.close()
    trace.popen.stdin = None
    ended(trace)

    assert 0o600 == stat.S_IMODE(said.stat().st_mode)


@pytest.mark.parametrize("what", ["20 enums of 9,000", "50,000 definitions"])
def test_a_large_document_is_built_or_refused(victims: Victims, what: str, tmp_path: Path) -> None:
    document = json.loads(SCHEMA.read_bytes())
    if what.startswith("20"):
        more = {
            f"Enum{each}": {"type": "string", "enum": [f"value-{each}-{n}" for n in range(9000)]} for each in range(20)
        }
    else:
        more = {f"More{each}": {"type": "object", "properties": {"a": {"type": "string"}}} for each in range(50_000)}
    document["$defs"].update(more)
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    build = victims.command(
        "build", "--schema", str(path), "--revision", "large", "--based-on", "none", "--out", str(tmp_path / "out")
    )
    watchdog = threading.Timer(2 * PATIENCE_SECONDS, build.popen.kill)
    watchdog.start()
    with victims.watch(build, drain=lambda: None) as seen:
        status, errors, _ = ended(build, 3 * PATIENCE_SECONDS)
    watchdog.cancel()

    assert status in (0, 1), errors[-500:]
    assert "Traceback" not in errors
    assert seen.peak_bytes < 1536 * MIB
