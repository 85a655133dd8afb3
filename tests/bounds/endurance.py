"""``nox -s endurance``: random hostile traffic for an hour, beside an honest client that must not notice much of it.

The honest client over HTTP loses no call, and the 99th percentile of its waits stays below 250 ms or three times that
of the same run without attackers. An honest call at the end of each hostile conversation on stdio is answered. After
the traffic, the server's ledger is at zero, and its resident memory within 64 MiB of the start.

The server starts with a rehearsal: each kind of conversation, a few times. A server loads the code of a revision when
it is first asked for it. What it loads in the middle of an attack stays between that which is freed later, so that
Python's allocator cannot return the memory around it: of eight minutes, 90 instead of 33 MiB stayed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpgen.generated.registry import REVISIONS
from tests.bounds.attacked_processes import HONEST, MIB, Http, Seen, Stdio, be_honest, kept_bytes
from tests.bounds.hostile_messages import DEEP, ELICITATION, TEXT, batch, call, cancelled, initialize
from tests.bounds.raw_sessions import joined, post_all, stateless, streamed
from tests.faults.http_raw_client import Closed, Line, called, calling, head, listened, message, posted
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The times after which an idle client is forgotten, short enough to wait for it at the end; all else is the default.
GIVEN: Final = {
    "limits": {"waiting_seconds": 30, "answer_seconds": 30},
    "http": {"idle_seconds": 30, "handshake_seconds": 10, "write_seconds": 10, "body_seconds": 10},
    "events": {"lifetime_seconds": 30},
}
ATTACKERS: Final = 3
QUIET_PART: Final = 0.1  # of the time, in which the honest client is alone
MOST_SECONDS: Final = 0.25
MOST_TIMES: Final = 3
MOST_KEPT: Final = 64 * MIB
REST_SECONDS: Final = 75  # until idle clients are forgotten, and free memory is returned, which takes 30 seconds each
HANDSHAKE: Final = [each.label for each in REVISIONS if each.era == "handshake" and each.label != "2024-11-05"]
ALL: Final = [each.label for each in REVISIONS]

_FAILURES: Final = (OSError, Closed, AssertionError, ValueError, KeyError, IndexError)


class Attacker:
    """Does one hostile thing after the other, chosen by a seed."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.random = random.Random(seed)  # noqa: S311 (to be repeated)
        self.done: dict[str, int] = {}
        self.stdio_lost: list[str] = []
        self._lines: list[Line] = []

    def run(self, over: threading.Event) -> None:
        deeds: Sequence[Callable[[], None]] = (
            self.flood,
            self.garbage,
            self.hang_up,
            self.large,
            self.park,
            self.read_slowly,
            self.session,
            self.stalled_uploads,
            self.stdio,
            self.stream,
            self.subscribe,
        )
        while not over.is_set():
            deed = self.random.choice(deeds)
            with suppress(*_FAILURES):
                deed()
            self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
            while len(self._lines) > 40:
                with suppress(OSError):  # closed already
                    self._lines.pop(self.random.randrange(len(self._lines))).reset()
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for each in self._lines:
            each.close()
        self._lines.clear()

    def line(self, receive_bytes: int | None = None, source: str | None = None) -> Line:
        made = Line(self.port, receive_bytes, source)
        made.socket.settimeout(5)
        self._lines.append(made)
        return made

    def flood(self) -> None:
        line = self.line()
        for number in range(self.random.randrange(50)):
            line.send(called("echo", number) * 20)
            for _ in range(20):
                line.reply()

    def garbage(self) -> None:
        data = posted(self.random.randbytes(self.random.randrange(5000)))
        cut = self.random.randrange(len(data))
        self.line().send(data[:cut] if cut % 2 else data)
        self.line().send(head("GET", "/mcp", *["X: " + "a" * 1000] * self.random.randrange(90)))

    def hang_up(self) -> None:
        for _ in range(self.random.randrange(40)):
            tool, given = self.random.choice(
                (("wait", {}), ("drowse", {"seconds": 0.5}), ("fill", {"count": 1000, "size": 1000}))
            )
            line = self.line()
            line.send(called(tool, meta={"progressToken": "p"}, **given))
            if self.random.random() < 0.5:
                time.sleep(0.01)
            line.reset()
            self._lines.remove(line)

    def large(self) -> None:
        body = self.random.choice(
            (
                call("echo", f'{{"text":{DEEP}}}'),
                call("echo", f'{{"text":"{TEXT}"}}'),
                call("ask", meta=ELICITATION, beside=f',"x":"{TEXT}"'),
            )
        )
        line = self.line()
        line.send(stateless(body))
        if self.random.random() < 0.5:
            line.reply()
        self.line().send(posted(initialize(self.random.choice(ALL), capabilities=f'{{"experimental":{{"x":{DEEP}}}}}')))

    def park(self) -> None:
        line = self.line()
        for _ in range(self.random.randrange(60)):
            line.send(stateless(call("ask", meta=ELICITATION)))
            state = line.reply().json["result"]["requestState"]
            forged = state[:-4] + "AAAA"
            line.send(stateless(call("ask", meta=ELICITATION, params=f',"requestState":"{forged}"')))
            line.reply()

    def read_slowly(self) -> None:
        line = self.line(receive_bytes=4096)
        line.send(called("fill", meta={"progressToken": "p"}, count=2000, size=10_000))
        other = self.line(receive_bytes=4096)
        other.send(called("big", size=MIB) * 20)
        line.socket.recv(1000)

    def session(self) -> None:
        revision = self.random.choice(HANDSHAKE)
        for _ in range(self.random.randrange(1, 20)):
            line, own, _ = joined(self, revision)
            for number in range(self.random.randrange(20)):
                tool = self.random.choice(("wait", "echo", "fill"))
                given = {"count": 50, "size": 1000} if tool == "fill" else {}
                other = self.line()
                other.send(posted(calling(tool, number, "p", **given), *own))
                if self.random.random() < 0.5:
                    other.reset()
                    self._lines.remove(other)
            line.send(posted(cancelled(self.random.randrange(20)), *own))
            if revision == "2025-03-26":
                self.line().send(posted(batch(200, "tools/list", "{}"), *own))
            if self.random.random() < 0.3:
                line.send(head("DELETE", "/mcp", *own))

    def stalled_uploads(self) -> None:
        for _ in range(self.random.randrange(8)):
            self.line().send(posted(b"x" * 4 * MIB)[: -self.random.randrange(1, 4 * MIB)])

    def stdio(self) -> None:
        """Talk to a server of its own, end with an honest call, and then with the process."""
        revision = self.random.choice(ALL)
        process = Stdio(revision)
        try:
            process.open()
            for number in range(1, self.random.randrange(200)):
                process.write(
                    self.random.choice(
                        (
                            process.request(number, "wait"),
                            process.request(number, "drowse", seconds=0.1),
                            cancelled(number - 1) + b"\n",
                            self.random.randbytes(50).replace(b"\n", b"") + b"\n",
                            b'{"jsonrpc":"2.0","id":"x","method":"nothing"}\n',
                            batch(20, "ping", "{}") + b"\n",
                            call("echo", f'{{"text":{DEEP[:20000]}', identity=f"{number}") + b"\n",
                        )
                    )
                )
            process.call(10_000, "echo", text="there")
            until = time.monotonic() + PATIENCE_SECONDS
            while b'"id":10000' not in process.line():
                assert time.monotonic() < until, "the honest call was not answered"
        except AssertionError as error:
            self.stdio_lost.append(f"{revision}: {error}")
        finally:
            process.kill()

    def stream(self) -> None:
        _, _, target = streamed(self)
        post_all(self, [posted(calling("wait", each), target=target) for each in range(50)])

    def subscribe(self) -> None:
        for number in range(self.random.randrange(20)):
            self.line().send(listened(number))
        line, own, _ = joined(self)
        for number in range(100):
            line.send(posted(message("resources/subscribe", number, uri=f"note://{number}"), *own))
            line.reply()
        line.send(called("change", count=200))


def attack(port: int, seed: int) -> None:
    """Attack the server at *port* until the input ends, and print what was done."""
    os.nice(10)  # an attacker is not on the machine of its server, or of the honest client
    attacker, over = Attacker(port, seed), threading.Event()
    thread = threading.Thread(target=attacker.run, args=(over,))
    thread.start()
    sys.stdin.read()
    over.set()
    thread.join()
    print(json.dumps({"done": attacker.done, "stdio_lost": attacker.stdio_lost}))  # noqa: T201 (for `run`)


def percentile(waits: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(waits)[len(waits) * 99 // 100]


def run(minutes: float, seed: int) -> list[str]:
    """Attack a server for some minutes, print what is found, and return what is wrong."""
    http = Http(**GIVEN)
    try:
        return _run(http, minutes * 60, seed)
    finally:
        http.kill()


def _run(http: Http, seconds: float, seed: int) -> list[str]:
    seen, quiet, attacked = Seen(http.popen.pid), [0.0], [0.0]
    _honest(http, seen, quiet, seconds * QUIET_PART)
    _rehearse(http, seed)
    start = kept_bytes(http)
    command = [sys.executable, "-m", "tests.bounds.endurance", "--attack", str(http.port), "--seed"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    attackers = [subprocess.Popen([*command, str(seed + each)], **pipes) for each in range(ATTACKERS)]
    try:
        _honest(http, seen, attacked, seconds * (1 - QUIET_PART))
        reports = [json.loads(each.communicate(timeout=4 * PATIENCE_SECONDS)[0]) for each in attackers]
    finally:
        for process in attackers:
            process.kill()
    until = time.monotonic() + 2 * PATIENCE_SECONDS
    while (kept_bytes(http) - start > MOST_KEPT or any(_ledger(http).values())) and time.monotonic() < until:
        http.drain()
        time.sleep(0.1)
    ledger = {kind: size for kind, size in _ledger(http).items() if size}
    kept, bound = kept_bytes(http) - start, max(MOST_SECONDS, MOST_TIMES * percentile(quiet))
    lost_stdio = [error for each in reports for error in each["stdio_lost"]]
    figures = (
        f"{seen.answered:,} honest calls, {seen.lost} lost; p99 {percentile(attacked) * 1000:.0f} ms "
        f"({percentile(quiet) * 1000:.0f} ms without attack), longest {max(attacked):.1f} s; peak "
        f"{seen.peak_bytes // MIB} MiB; {kept // MIB:+} MiB at the end; seed {seed}"
    )
    deeds = sum((Counter(each["done"]) for each in reports), Counter[str]())
    print(figures, dict(deeds), sep="\n")  # noqa: T201 (this is a command)
    if "MCPGEN_FIGURES" in os.environ:
        Path(os.environ["MCPGEN_FIGURES"]).write_text(figures, encoding="utf-8")
    wrong = [f"the honest client lost {seen.lost} calls, such as {seen.losses[:3]}"] * bool(seen.lost)
    wrong += [f"on stdio, honest calls were lost: {lost_stdio[:3]}"] * bool(lost_stdio)
    wrong += [f"p99 is {percentile(attacked):.3f} s; the bound is {bound:.3f} s"] * (percentile(attacked) > bound)
    wrong += [f"{kept // MIB} MiB are still kept"] * (kept > MOST_KEPT)
    wrong += [f"the ledger is not at zero: {ledger}"] * bool(ledger)
    wrong += ["the server has ended"] * (http.popen.poll() is not None)
    return wrong


def _rehearse(http: Http, seed: int) -> None:
    """Hold each kind of conversation a few times, and wait until the server has returned the free memory."""
    attacker = Attacker(http.port, seed)
    for deed in (
        attacker.flood,
        attacker.garbage,
        attacker.park,
        attacker.session,
        attacker.stream,
        attacker.subscribe,
    ):
        for _ in range(2 * len(ALL)):
            with suppress(*_FAILURES):
                deed()
            http.drain()
    attacker.close()
    until = time.monotonic() + REST_SECONDS
    while time.monotonic() < until:
        http.drain()
        time.sleep(0.1)


def _ledger(http: Http) -> dict[str, int]:
    found: dict[str, int] = json.loads(http.call("ledger", HONEST))
    return found


def _honest(http: Http, seen: Seen, waits: list[float], seconds: float) -> None:
    over = threading.Event()
    client = threading.Thread(target=be_honest, args=(http.port, seen, over, waits))
    client.start()
    until = time.monotonic() + seconds
    for each in count():
        if time.monotonic() >= until or http.popen.poll() is not None:
            break
        http.drain()
        if each % 10 == 0:
            with suppress(OSError, ValueError, IndexError):
                seen.sample()
        time.sleep(0.05)
    over.set()
    client.join(2 * PATIENCE_SECONDS)


def main() -> int:
    """Return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.bounds.endurance", description="Attack a server for long.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--attack", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attack is not None:
        attack(given.attack, given.seed)
        return 0
    wrong = run(given.minutes, given.seed)
    for each in wrong:
        print("wrong:", each)  # noqa: T201 (this is a command)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
