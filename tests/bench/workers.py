"""``nox -s scaling``: what several workers cost with and without Redis, beside other servers; writes a page.

All servers run under the same uvicorn, with ``--workers``. The page is docs/benchmarks-workers.md. Measure on a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import worker_load
from tests.harness.redis_servers import redis_server

if TYPE_CHECKING:
    from collections.abc import Generator

FILE: Final = Path(__file__).parents[2] / "docs" / "benchmarks-workers.md"
SERVERS: Final = Path(__file__).parent / "servers"

# The name, the module, and whether the workers share Redis.
CONTENDERS: Final = (
    ("mcpgen", "workers_ours", False),
    ("mcpgen with Redis", "workers_ours", True),
    ("mcp, stateless", "workers_sdk", False),
    ("FastMCP, stateless", "workers_fastmcp", False),
)

_START_SECONDS: Final = 60
_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_KIB: Final = 1024

HEAD: Final = """\
# Many workers

Written by `nox -s scaling`; do not edit. All servers run under uvicorn with `--workers`. The load comes from
{clients} processes of the same machine, over {connections} connections each, with one call at a time on each. Each
connection of mcpgen has a session. The workers, the load and Redis share the processors, so workers beyond those that
are free add nothing.

Machine: {machine}.

"""


class Options(msgspec.Struct, frozen=True):
    """How much is measured.

    Attributes:
        seconds: For which each rate is measured.
        connections: Of each process that makes load.
        clients: How many processes make load.
        sessions: How many sessions are opened to measure their memory.
        listeners: How many hear of a change.
        changes: How many changes there are.
        workers: How many workers there are, in turn.
        modules: Which servers are measured.
    """

    seconds: float = 20
    connections: int = 32
    clients: int = 2
    sessions: int = 10_000
    listeners: int = 1000
    changes: int = 20
    workers: Sequence[int] = (1, 2, 4)
    modules: Sequence[str] = tuple(module for _, module, _ in CONTENDERS)


class Site:
    """Running workers.

    Attributes:
        port: Where they listen.
    """

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self._process = process

    @property
    def processes(self) -> list[int]:
        """The ids of the supervisor and the workers."""
        found = [self._process.pid]
        for each in found:
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                found += map(int, children.read_text(encoding="ascii").split())
        return found

    def cpu_seconds(self) -> float:
        """Return the CPU time that the processes have used."""
        total = 0
        for each in self.processes:
            fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS

    def resident_bytes(self) -> int:
        """Return the memory of the processes."""
        pages = sum(int(Path(f"/proc/{each}/statm").read_text(encoding="ascii").split()[1]) for each in self.processes)
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(module: str, workers: int, redis: str | None) -> Generator[Site]:
    """Run a server with *workers* within the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", f"{module}:app", "--app-dir", str(SERVERS), "--port", str(port)]
    command += ["--workers", str(workers), "--no-access-log", "--log-level", "warning", "--backlog", "4096"]
    environment = {**os.environ, "BENCH_REDIS": redis or ""}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        _wait_for(port, process)
        yield Site(port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            asyncio.run(worker_load.keep_sessions(port, 1))
        except (OSError, AssertionError, asyncio.IncompleteReadError):
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            time.sleep(1)  # the other workers start at the same time
            return


def rates(options: Options, redis: str) -> str:
    """Return the table of calls and of new sessions."""
    head = (
        "## Calls\n\nCalls of a tool that returns its argument; CPU is that of all workers, without Redis.\n\n"
        "| server | workers | calls/s | median ms | p99 ms | CPU µs/call | sessions opened/s | p99 ms |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    lines = [head]
    load = {"connections": options.connections, "seconds": options.seconds, "processes": options.clients}
    for name, module, has_redis in CONTENDERS:
        for workers in options.workers if module in options.modules else ():
            with serving(module, workers, redis if has_redis else None) as site:
                worker_load.calls(site.port, **{**load, "seconds": options.seconds / 5})  # warms it up
                before = site.cpu_seconds()
                found = worker_load.calls(site.port, **load)
                cpu = (site.cpu_seconds() - before) / found.count * 1e6
                opened = worker_load.open_sessions(site.port, **load) if module == "workers_ours" else None
            more = "| |" if opened is None else f"{opened.per_second:,.0f} | {opened.p99:.1f} |"
            lines.append(
                f"| {name} | {workers} | {found.per_second:,.0f} | {found.median:.2f} | {found.p99:.2f} "
                f"| {cpu:.0f} | {more}\n"
            )
    return "".join(lines)


def memory(options: Options, redis: str) -> str:
    """Return the table of what sessions take."""
    head = (
        f"\n## Memory\n\nWhat one of {options.sessions:,} sessions takes, which have made one call each.\n\n"
        "| server | workers | bytes in the workers |\n|---|--:|--:|\n"
    )
    lines = [head]
    for name, module, has_redis in CONTENDERS[:2]:
        for workers in options.workers:
            with serving(module, workers, redis if has_redis else None) as site:
                asyncio.run(worker_load.keep_sessions(site.port, 200))
                before = site.resident_bytes()
                asyncio.run(worker_load.keep_sessions(site.port, options.sessions))
                size = (site.resident_bytes() - before) / options.sessions
            lines.append(f"| {name} | {workers} | {size:,.0f} |\n")
    return "".join(lines)


def changes(options: Options, redis: str) -> str:
    """Return the table of how long a change needs to reach all listeners."""
    head = (
        f"\n## Changes\n\nMilliseconds until {options.listeners:,} listeners have heard of one change: the median of "
        f"{options.changes}.\nWith Redis, it may take at most 3 times as long as one worker takes without.\n\n"
        "| server | workers | ms | ratio |\n|---|--:|--:|--:|\n"
    )
    lines = [head]
    first: float | None = None
    for name, workers, url in (("mcpgen", 1, None), *(("mcpgen with Redis", each, redis) for each in options.workers)):
        with serving("workers_ours", workers, url) as site:
            found = statistics.median(asyncio.run(worker_load.listen(site.port, options.listeners, options.changes)))
        first = first or found
        lines.append(f"| {name} | {workers} | {found:.0f} | {found / first:.1f} |\n")
    return "".join(lines)


def page(options: Options) -> str:
    """Measure everything, and return the page."""
    machine = (
        f"{os.cpu_count()} logical processors ({platform.machine()}), {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )
    head = HEAD.format(clients=options.clients, connections=options.connections, machine=machine)
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as running:
        parts = [part(options, running.admin_url) for part in (rates, memory, changes)]
    return head + "".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write on request."""
    parser = argparse.ArgumentParser(prog="nox -s scaling --", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks-workers.md")
    parser.add_argument("--seconds", type=float, default=Options().seconds, help="for which each rate is measured")
    options = parser.parse_args(arguments)
    text = page(Options(seconds=options.seconds))
    sys.stdout.write(text)
    if options.write:
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
