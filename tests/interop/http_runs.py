"""Letting one client and one server talk over HTTP, through a relay; and judging what both did."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.interop import server_expectations
from tests.interop.client_expectations import FEATURES, LABELS, Verdict, connect, judge
from tests.interop.http_client_judge import misconduct
from tests.interop.http_recording import excerpt, play
from tests.interop.stdio_runs import driver_of_ours, environment, offers, said_by
from tests.interop.transports import ALL, HTTP, SESSIONLESS, SSE, Cell, looked_at
from tests.specification.http_server.http_recorder import Overseer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.interop.peer_packages import Server
    from tests.interop.relay import Relay, Tape
    from tests.specification.http_server.session_record import Owned

__all__ = ["Web", "overseen"]

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\w+")

# A machine that is busy takes a while to import everything.
START_SECONDS = 60
# With open streams, two seconds is what our server takes; the rest is for a busy machine.
END_SECONDS = 60
# What others take is theirs; they are stopped.
GRACE_SECONDS = 0.5


class Host:
    """A server that listens on this machine.

    Attributes:
        url: Where.
        noise: What it has printed.
    """

    def __init__(self, command: Sequence[str], served: str = "") -> None:
        env = {**environment(os.environ), **({"INTEROP_REVISIONS": served} if served else {})}
        flags = subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            creationflags=flags,
        )
        self._listens = Event()
        self.url = ""
        self.noise = ""
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.decode(errors="replace")
            self.noise += text
            found = ADDRESS.search(text)
            if found and not self.url:
                self.url = found[0]
                self._listens.set()
        self._listens.set()  # or never will

    def wait(self) -> str:
        """Return the URL, as soon as it is known; nothing, if there will be none."""
        self._listens.wait(START_SECONDS)
        return self.url

    def end(self, seconds: float) -> int | None:
        """Tell it to end, and return its status, or None if it had to be stopped."""
        self._process.send_signal(signal.CTRL_BREAK_EVENT if sys.platform == "win32" else signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None
        finally:
            self._reader.join()
            assert self._process.stdout is not None
            self._process.stdout.close()


class Unserved(Exception):  # noqa: N818 - what happened
    """A server does not listen; the message has what it said instead."""


class Served:
    """A server behind a door.

    Attributes:
        url: Where clients find it.
        status: How it ended; None if it had to be stopped.
    """

    def __init__(self, host: Host, tape: Tape, url: str) -> None:
        self.host = host
        self.tape = tape
        self.url = url
        self.status: int | None = None


class Strict(Overseer):
    """An overseer of a conversation in which messages may cross."""

    def _recorder(self) -> Owned:
        recorder = super()._recorder()
        recorder.may_cross = True
        return recorder


def overseen(tape: Tape, served: list[str]) -> list[str]:
    """Return each rule that our server has broken, with the exchange that breaks it."""
    judge = Strict(served, lambda label: connect(label)["capabilities"])
    faults = play(tape, judge)
    silence = [] if tape.pieces else ["nothing was said"]
    return [*faults, *map(str, judge.violations), *silence]


# What a client says where a feature brings it to that: where on a stream it has been, when it comes back; and an
# argument once more, encoded.
BROUGHT_TO = {"reconnect": b"last-event-id: ", "parameter headers": b"mcp-param-region: =?base64?wso8cmljaa==?="}


def missed(tape: Tape, features: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield those of *features* that bring a client to say something that it has not said, as failures.

    Spec:
        2025-11-25, basic/transports, "Resumability and Redelivery"; 2026-07-28, basic/transports/streamable-http,
        "Value Encoding".
    """
    for feature in features:
        said = BROUGHT_TO.get(feature, b"")
        if not any(each.is_clients and said in each.data.lower() for each in tape.pieces):
            yield feature, ("failed", f"the client never said {said.decode()}")


class Web:
    """All that is said over HTTP.

    Args:
        relay: What it goes through.
        ours: The command that starts our server over HTTP.
        tapes: Where tapes are kept for people, if at all.
    """

    def __init__(self, relay: Relay, ours: Sequence[str], tapes: Path | None = None) -> None:
        self._relay = relay
        self._ours = ours
        self._tapes = tapes

    def converse(self, driver: Sequence[str], cell: Cell) -> dict[str, Verdict]:
        """Let a client talk to our server, and to one that speaks this revision only; return what became of it."""
        asked = looked_at(FEATURES, cell.transport, cell.revision)
        try:
            with self._served(self._ours, cell) as whole, self._served(self._ours, cell, cell.revision) as only:
                said, noise = said_by([*driver, cell.revision, whole.url, only.url])
        except Unserved as error:
            return dict.fromkeys(asked, Verdict("failed", str(error)))
        said["end"] = ("observed", [each.status for each in (whole, only)])
        said["wire"] = ("observed", [*overseen(whole.tape, LABELS), *overseen(only.tape, [cell.revision])])
        said |= missed(whole.tape, asked)
        verdicts = {
            feature: judge(feature, cell.revision, *said.get(feature, ("failed", "not said"))) for feature in asked
        }
        self._report(cell, verdicts, noise, whole, only)
        return verdicts

    def ask(self, server: Server, command: Sequence[str], cell: Cell) -> dict[str, Verdict]:
        """Let our client talk to a server; return what became of each feature."""
        is_ours = not server.package
        offered = LABELS if cell.revision == ALL else [cell.revision]
        asked = server_expectations.asked_of(server, cell)
        repertoire = "alone" if cell.transport == SESSIONLESS else server.repertoire
        try:
            with self._served(self._ours if is_ours else command, cell) as only:
                said, noise = said_by([*driver_of_ours(), repertoire, cell.revision, only.url])
        except Unserved as error:
            return dict.fromkeys(asked, Verdict("failed", str(error)))
        said["end"] = ("observed", [str(only.status)])
        own = overseen(only.tape, LABELS) if is_ours else []
        said["wire"] = ("observed", [*misconduct(only.tape, offered), *own])
        said |= missed(only.tape, asked)
        verdicts = {
            feature: server_expectations.judge(server, feature, cell, *said.get(feature, ("failed", "not said")))
            for feature in asked
        }
        self._report(cell, verdicts, noise, only)
        return verdicts

    def agreements(self) -> dict[tuple[str, str], str]:
        """Return what our client and our server agree on, as `running.agreements` does."""
        found: dict[tuple[str, str], str] = {}
        for served in [*LABELS, ALL]:
            cell = Cell("mcpgen server", HTTP, served)
            label = ",".join(LABELS) if served == ALL else served
            with suppress(Unserved), self._served(self._ours, cell, label) as host:
                found |= {(offered, served): outcome for offered, outcome in offers(host.url)}
        return found

    @contextmanager
    def _served(self, command: Sequence[str], cell: Cell, served: str = "") -> Iterator[Served]:
        """Serve for the length of the block, behind a door of the relay."""
        host = Host(command, served)
        try:
            url = host.wait()
            if not url:
                raise Unserved(f"the server does not listen; it said: {host.noise}")
            parts = urlsplit(url)
            path = "/sse" if cell.transport == SSE else parts.path
            with self._relay.door(parts.port or 80) as tape:
                found = Served(host, tape, f"{tape.url}{path}")
                yield found
        finally:
            ended = host.end(END_SECONDS if command is self._ours else GRACE_SECONDS)
        found.status = ended

    def _report(self, cell: Cell, verdicts: Mapping[str, Verdict], noise: str, *served: Served) -> None:
        """Say what else was said, if something failed; keep the tapes, if they are wanted."""
        if any(verdict.outcome == "failed" for verdict in verdicts.values()):
            spoken = "\n".join(each.host.noise for each in served)
            sys.stderr.write(f"--- what was said beside that: {cell}\n{noise}\n{spoken}\n")
        if self._tapes is not None:
            for number, each in enumerate(served):
                name = re.sub(r"[^\w.-]+", "-", f"{cell.name}-{cell.transport}-{cell.revision}-{number}")
                text = "\n".join(excerpt(each.tape))
                (self._tapes / f"{name}.tape").write_text(text, encoding="utf-8")
