"""``nox -s interop``: let others and us talk to each other, and write down in ``docs/interop.md`` what came of it."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness import several_workers
from tests.installations import Node, node
from tests.interop import page
from tests.interop.client_expectations import LABELS
from tests.interop.http_runs import Web
from tests.interop.logins.runs import failures as login_failures
from tests.interop.packages.runs import failures as package_failures
from tests.interop.packages.runs import packages
from tests.interop.peer_packages import OLDEST_NODE, Peer, Server, install, install_server, over, peers, servers
from tests.interop.protected.runs import failures as protected_failures
from tests.interop.relay import Relay
from tests.interop.server_expectations import spoken
from tests.interop.sloppy.readings import faults, stored
from tests.interop.stdio_runs import agreements, ask, converse, server_command
from tests.interop.tasks.runs import failures as task_failures
from tests.interop.transports import ALL, STDIO, TRANSPORTS, Cell, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.interop.client_expectations import Verdict

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PAGE = CHECKOUT / "docs" / "interop.md"
HOME = CHECKOUT / ".nox" / "interop-peers"

# Clients and servers wait for each other most of the time; more at once would only make the slowest ones slower.
AT_ONCE = 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print and write.

    Raises:
        SystemExit: Something else came back than must.
    """
    parser = argparse.ArgumentParser(prog="nox -s interop --", description=__doc__)
    parser.add_argument("--peer", default="", help="only peers whose name has this in it; the page is not written then")
    parser.add_argument("--revision", default="", help="only this revision, or all; likewise")
    parser.add_argument("--transport", choices=[*TRANSPORTS], default="", help="only this one; likewise")
    parser.add_argument("--server", type=shlex.split, help="another server's command, for clients over stdio; likewise")
    parser.add_argument("--tapes", type=Path, help="a folder, in which what is said over HTTP is kept")
    parser.add_argument(
        "--workers", action="store_true", help="let clients talk to several workers over HTTP; likewise"
    )
    options = parser.parse_args(arguments)
    if options.tapes:
        options.tapes.mkdir(parents=True, exist_ok=True)
    clients = [peer for peer in peers() if options.peer in peer.name]
    others = [server for server in servers() if options.peer in server.name and not (options.server or options.workers)]
    is_whole = not (options.peer or options.revision or options.transport or options.server or options.workers)
    chosen = [options.transport] if options.transport else [STDIO] if options.server else [*TRANSPORTS]
    over_http = server_command("--http", "127.0.0.1:0")
    if options.workers:
        over_http = several_workers.command(HERE / "server.py")
        chosen = [each for each in chosen if each != STDIO]

    def is_wanted(cell: Cell) -> bool:
        return cell.transport in chosen and options.revision in cell.revision

    with Relay() as relay:
        web = Web(relay, over_http, options.tapes)
        results = run(clients, others, is_wanted, web, options.server or server_command())
        wrong = [*failures(results), *differences(results)]
        if is_whole:
            with timed("every offer"):
                found = agreements(server_command())
                wrong += disagreements(found, "stdio")
            with timed("every offer over HTTP"):
                wrong += disagreements(web.agreements(), "HTTP")
            with timed("packages as they come"):
                wrong += package_failures(each for each in packages() if each.always)
            with timed("logins"):
                wrong += login_failures()
            with timed("tasks"):
                wrong += task_failures(lambda peer, transport: transport in peer.always)
            with timed("protected servers"):
                wrong += protected_failures()
            wrong += faults(stored())  # what `nox -s sloppy` has read
            PAGE.write_text(page.text(clients, others, results, found), encoding="utf-8", newline="\n")
    verdicts = [verdict.outcome for each in results.values() for verdict in each.values()]
    sys.stdout.write("".join(f"{outcome}: {verdicts.count(outcome)}\n" for outcome in sorted(set(verdicts))))
    if wrong:
        raise SystemExit("\n".join(wrong))


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Say how long a part of the run took."""
    begun = time.monotonic()
    yield
    sys.stdout.write(f"{part}: {time.monotonic() - begun:.0f} seconds\n")
    sys.stdout.flush()


def run(
    clients: list[Peer], others: list[Server], is_wanted: Callable[[Cell], bool], web: Web, ours: Sequence[str]
) -> page.Results:
    """Install everybody; let each client talk to a server of its own, and our client to each server, a few at once."""
    results: dict[Cell, dict[str, Verdict]] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        with timed("installing"):
            javascript = node(HOME, oldest=OLDEST_NODE)
            # One after the other: a client and a server may share their packages.
            drivers = list(pool.map(lambda peer: install(peer, HOME, javascript), clients))
            commands = list(pool.map(lambda server: command(server, javascript, ours), others))
        for transport, called in TRANSPORTS.items():
            talks = {}
            for peer, driver in zip(clients, drivers, strict=True):
                for label in columns(peer, transport, is_server=False):
                    cell = Cell(peer.name, transport, label)
                    if is_wanted(cell) and transport == STDIO:
                        talks[cell] = pool.submit(converse, driver, cell, ours)
                    elif is_wanted(cell):
                        talks[cell] = pool.submit(web.converse, driver, cell)
            with timed(f"their clients over {called}"):
                results |= {cell: talk.result() for cell, talk in talks.items()}
            talks = {}
            for server, start in zip(others, commands, strict=True):
                for label in columns(server, transport, is_server=True):
                    cell = Cell(server.name, transport, label)
                    if is_wanted(cell):
                        asking = ask if transport == STDIO else web.ask
                        talks[cell] = pool.submit(asking, server, over(server, start, transport), cell)
            with timed(f"their servers over {called}"):
                results |= {cell: talk.result() for cell, talk in talks.items()}
    return results


def command(server: Server, javascript: Node, ours: Sequence[str]) -> list[str]:
    """Return the command that starts a server, which is installed first, unless it is ours."""
    return install_server(server, HOME, javascript) if server.package else list(ours)


def failures(results: page.Results) -> Iterator[str]:
    """Say what came back that must not."""
    for cell, found in results.items():
        for feature, verdict in found.items():
            if verdict.outcome == "failed":
                yield f"{cell}, {feature}: {verdict.detail}"


def differences(results: page.Results) -> Iterator[str]:
    """Say where a feature is unsupported and ``expected.toml`` does not say so, and the other way round."""
    table = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    known = {server.name: server for server in servers()}
    speak = {cell: spoken(known[cell.name], cell) if cell.revision == ALL else cell.revision for cell in results}
    listed = {
        (cell, each["feature"], each["reason"])
        for each in table["unsupported"]
        for cell, verdicts in results.items()
        if each["feature"] in verdicts
        and cell.name in each.get("peers", [cell.name])
        and cell.transport in each.get("transports", TRANSPORTS)
        and speak[cell] in each.get("revisions", LABELS)
    }
    found = {
        (cell, feature, verdict.detail)
        for cell, verdicts in results.items()
        for feature, verdict in verdicts.items()
        if verdict.outcome == "unsupported"
    }
    yield from (f"{' / '.join(map(str, each))}: unsupported, and not listed" for each in sorted(found - listed))
    yield from (f"{' / '.join(map(str, each))}: listed as unsupported, but not so" for each in sorted(listed - found))


def disagreements(found: page.Agreements, over: str) -> Iterator[str]:
    """Say where our client and our server agreed on something else than they must."""
    for offered in [*LABELS, ALL]:
        for served in [*LABELS, ALL]:
            wanted, outcome = page.agreed(offered, served), found.get((offered, served), "nothing")
            if outcome != wanted:
                yield f"{offered} offered, {served} served over {over}: {wanted} must come of it, and {outcome} does"


if __name__ == "__main__":
    main()
