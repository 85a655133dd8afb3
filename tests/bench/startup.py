"""What is paid before the first message: importing, the first decoder, memory; and building all bindings.

Everything here runs in processes of its own, in turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.adapting import NEWEST
from tests.bench.stopwatch import Timing, timing

if TYPE_CHECKING:
    from collections.abc import Sequence

# The base is imported before the clock starts, and counts for neither time nor memory. Memory is read from procfs where
# there is one: elsewhere there is only the peak of the resource module, in which a child may inherit its parent's.
_PROBE: Final = """
import json, os, sys, time
def resident():
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
{base}
memory = resident()
start = time.process_time()
{statement}
spent = time.process_time() - start
print(json.dumps([spent * 1000, (resident() - memory) / 2**20, sorted(sys.modules)]))
"""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do in a fresh interpreter.

    Attributes:
        name: What it is, for the table.
        base: What is imported before, and not counted.
        statement: What is counted.
        most_milliseconds: How much CPU it may take at most.
        loads: The packages of our revisions that it may load, besides those that its statement names.
    """

    name: str
    base: str = "pass"
    statement: str
    most_milliseconds: float | None = None
    loads: frozenset[str] = frozenset()


class Cost(msgspec.Struct, frozen=True):
    """What a `Start` takes.

    Attributes:
        cpu: Milliseconds of CPU.
        memory: Mebibytes by which resident memory grew.
        modules: What is loaded at its end.
    """

    cpu: Timing
    memory: Timing
    modules: frozenset[str]


def importing(revisions: Sequence[str]) -> list[Start]:
    """Return the imports that are compared: over the library that each is built on, and with it."""
    models = {each: f"from mcpgen.generated.{package_of(each)} import models" for each in revisions}
    return [
        *(
            Start(
                name=f"models of {each}, over `import msgspec`",
                base="import msgspec",
                statement=statement,
                most_milliseconds=20,
            )
            for each, statement in models.items()
        ),
        Start(name="`mcp_types`, over `import pydantic`", base="import pydantic", statement="import mcp_types"),
        *(Start(name=f"models of {each}, msgspec included", statement=models[each]) for each in revisions),
        Start(name="`mcp_types`, pydantic included", statement="import mcp_types"),
        Start(
            name="`mcp_types.methods` with the surface models, pydantic included", statement="import mcp_types.methods"
        ),
    ]


def serving() -> list[Start]:
    """Return the imports that a stdio server begins with, over a bare interpreter."""
    return [
        Start(
            name="the server side: `from mcpgen import Server`",
            statement="from mcpgen import Server",
            most_milliseconds=110,
            loads=frozenset({package_of(NEWEST)}),
        ),
        Start(
            name="the same, and a server with one tool",
            statement="from mcpgen import Server\n"
            "async def echo(text: str) -> str: return text\n"
            "Server('bench', version='1.0').tool(echo)",
            most_milliseconds=110,
            loads=frozenset({package_of(NEWEST)}),
        ),
        Start(
            name="the server side of mcp: `mcp.server.lowlevel`, `mcp.server.stdio`",
            statement="import mcp.server.lowlevel, mcp.server.stdio",
        ),
        Start(name="what it is built on: `asyncio`, `anyio`, `msgspec`", statement="import asyncio, anyio, msgspec"),
    ]


def first_messages(revision: str, text: bytes) -> tuple[Start, Start]:
    """Return, of us and of mcp-types, everything from a bare interpreter to one decoded tools/call request."""
    ours = Start(
        name=f"from nothing to the first `tools/call` of {revision} decoded: mcpgen",
        statement=f"from mcpgen.generated.{package_of(revision)} import CallToolRequest, models\n"
        f"models.decode({text!r}, CallToolRequest)",
    )
    theirs = Start(
        name="the same: surface model of mcp-types",
        statement="from mcp_types import methods\n"
        f"methods.CLIENT_REQUESTS['tools/call', {revision!r}].model_validate_json({text!r})",
    )
    return ours, theirs


def package_of(revision: str) -> str:
    """Return the name of the package of *revision*."""
    return f"v{revision.replace('-', '_')}"


def measure(starts: Sequence[Start], *, rounds: int) -> list[Cost]:
    """Return the cost of each of *starts*, done *rounds* times in turns.

    Raises:
        RuntimeError: A revision is loaded that the start does not need.
    """
    samples: list[list[tuple[float, float, list[str]]]] = [[] for _ in starts]
    for _ in range(rounds + 1):
        for found, start in zip(samples, starts, strict=True):
            found.append(_run(start))
    # The first round may have to write bytecode and read files from disk.
    costs = [_cost(found[1:]) for found in samples]
    for start, cost in zip(starts, costs, strict=True):
        extra = {name for name in revisions_loaded(cost.modules) - start.loads if name not in start.statement}
        if extra:
            raise RuntimeError(f"{start.statement!r} also loads {', '.join(sorted(extra))}")
    return costs


def revisions_loaded(modules: frozenset[str]) -> set[str]:
    """Return the revisions of ours that are among *modules*, as their packages are called."""
    parts = [name.split(".") for name in modules if name.startswith("mcpgen.generated.v")]
    return {path[2] for path in parts}


def _run(start: Start) -> tuple[float, float, list[str]]:
    # -I: neither the working directory nor the environment has a say in what is imported.
    program = _PROBE.format(base=start.base, statement=start.statement)
    done = subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, encoding="utf-8")
    spent, grown, modules = json.loads(done.stdout)
    return spent, grown, modules


def _cost(samples: list[tuple[float, float, list[str]]]) -> Cost:
    cpu, memory, modules = zip(*samples, strict=True)
    return Cost(timing(list(cpu)), timing(list(memory)), frozenset(modules[0]))


def building(*, rounds: int) -> tuple[Timing, Timing]:
    """Return the seconds that `mcpgen build --all` takes from its start: by the clock, and of CPU."""
    clock: list[float] = []
    cpu: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            arguments = ["build", "--all", "--out", str(Path(folder) / str(number))]
            program = f"from mcpgen.cli import main; main({arguments!r})"
            before, start = os.times(), time.perf_counter()
            subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, cwd=folder)
            clock.append(time.perf_counter() - start)
            after = os.times()
            cpu.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return timing(clock), timing(cpu)
