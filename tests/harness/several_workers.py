"""Serve a file by several workers, each of which gets the next request.

``python -m tests.harness.several_workers FILE.py`` stands in for ``mcpgen serve FILE.py --http 127.0.0.1:0``: it prints
such a line, and ends all workers on SIGTERM.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.harness.connection_proxy import connection_proxy
from tests.harness.redis_servers import redis_server

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command", "run"]

CHECKOUT: Final = Path(__file__).parents[2]
WORKERS: Final = 4
_SERVING: Final = re.compile(r"(mcpgen: serving .+ at http://127\.0\.0\.1:)(\d+)(/mcp)")


def command(file: Path) -> list[str]:
    """Return the command that serves *file*, with an environment in which this module is found."""
    run = [sys.executable, "-m", "tests.harness.several_workers", str(file)]
    return ["env", f"PYTHONPATH={CHECKOUT}", "PYTHONSAFEPATH=1", *run]


class Worker:
    """One worker.

    Args:
        command: What runs it.
        env: Its environment.

    Attributes:
        port: Where it listens; 0 if it ended before.
        line: What it printed when it listened.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=env)
        self.port, self.line = 0, ""
        for line in self._lines():
            found = _SERVING.match(line)
            if found:
                self.port, self.line = int(found[2]), line.strip()
                break
            sys.stderr.write(line)
        self._reader = threading.Thread(target=self._repeat, daemon=True)
        self._reader.start()

    def _lines(self) -> list[str]:
        assert self.process.stderr
        return self.process.stderr  # type: ignore[return-value]  # an iterable of lines

    def _repeat(self) -> None:
        for line in self._lines():
            sys.stderr.write(line)

    def end(self) -> int:
        """Return how it ended."""
        status = self.process.wait()
        self._reader.join()
        return status


def run(command: Sequence[str], count: int, *, is_graceful: bool = True) -> int:
    """Run workers until SIGTERM, and return the worst status of a worker.

    Args:
        command: Serves at a free port, with the Redis that ``MCPGEN_REDIS`` names.
        count: How many workers there are.
        is_graceful: Whether they get SIGTERM at the end; else they are killed, and their process ids are printed first.
    """
    told = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: told.set())
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        redis = stack.enter_context(redis_server(Path(folder)))
        env = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONSAFEPATH"}}
        env |= {"INTEROP_LEDGER": folder, "SEVERAL_WORKERS": str(count), "MCPGEN_REDIS": redis.url}
        workers: list[Worker] = []
        for number in range(count):
            workers.append(Worker(command, env | {"WORKER_NUMBER": str(number)}))
            stack.callback(workers[-1].process.kill)
        if not is_graceful:
            sys.stderr.write(f"workers: {' '.join(str(each.process.pid) for each in workers)}\n")
        port = stack.enter_context(connection_proxy([each.port for each in workers]))
        sys.stderr.write(_SERVING.sub(rf"\g<1>{port}\g<3>", workers[0].line) + "\n")
        sys.stderr.flush()
        told.wait()
        for each in workers:
            (each.process.terminate if is_graceful else each.process.kill)()
        return max(abs(each.end()) for each in workers)


if __name__ == "__main__":
    sys.exit(run([sys.executable, str(Path(__file__).with_name("served_worker.py")), sys.argv[1]], WORKERS))
