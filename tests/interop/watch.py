"""Start a server in a client's stead, on the client's own descriptors, and write down how it ended.

``python watch.py FOLDER COMMAND…`` appends a line to ``ends.txt`` in FOLDER: the exit status, or ``stopped`` if whoever
started it did not wait for that. With ``--record`` in front, what is said goes through this process, and into a file.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any


def pump(mark: bytes, source: int, target: int, record: IO[bytes], lock: threading.Lock) -> None:
    """Hand on all that comes, and write it down line by line."""
    pending = b""
    while chunk := os.read(source, 65536):
        *lines, pending = (pending + chunk).split(b"\n")
        with lock:  # written down before it is handed on: an answer must not come before its question
            record.writelines(mark + line + b"\n" for line in lines)
            record.flush()
            os.write(target, chunk)
    os.close(target)


def recorded(command: list[str], record: IO[bytes]) -> tuple[subprocess.Popen[bytes], threading.Thread]:
    """Start the server on pipes of ours; return it, and the thread that ends when the server has said all."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    lock = threading.Lock()
    heard = (b"< ", 0, os.dup(server.stdin.fileno()), record, lock)
    server.stdin.close()
    threading.Thread(target=pump, args=heard, daemon=True).start()
    said = threading.Thread(target=pump, args=(b"> ", server.stdout.fileno(), os.dup(1), record, lock))
    said.start()
    return server, said


def main(*arguments: str) -> int:
    """Start, wait and report."""
    records = arguments[0] == "--record"
    folder, *command = arguments[records:]
    stopped: list[int] = []
    if records:
        record = Path(folder, f"{os.getpid()}.record").open("wb")  # noqa: SIM115 - until this process ends
        record.write(os.environ.get("INTEROP_REVISIONS", "").encode() + b"\n")
        server, said = recorded(command, record)
    else:
        server, said = subprocess.Popen(command), None

    def stop(*_: Any) -> None:
        stopped.append(1)
        server.terminate()

    signal.signal(signal.SIGTERM, stop)
    status = server.wait()
    if said is not None:
        said.join()
    with Path(folder, "ends.txt").open("a", encoding="utf-8") as file:
        file.write(f"{'stopped' if stopped else status}\n")
    return status


sys.exit(main(*sys.argv[1:]))
