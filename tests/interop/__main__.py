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

from tests.interop import page
from tests.interop.expectations import LABELS
from tests.interop.installing import Node, Peer, Server, install, install_server, node, peers, servers
from tests.interop.running import agreements, ask, converse, server_command
from tests.interop.theirs import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.interop.expectations import Verdict

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
    parser.add_argument(
        "--server", type=shlex.split, help="another server's command, to see what clients make of it; likewise"
    )
    options = parser.parse_args(arguments)
    clients = [peer for peer in peers() if options.peer in peer.name]
    others = [server for server in servers() if options.peer in server.name and not options.server]
    is_whole = not (options.peer or options.revision or options.server)
    results = run(clients, others, options.revision, options.server or server_command())
    wrong = [*failures(results), *differences(results)]
    if is_whole:
        with timed("every offer"):
            found = agreements(server_command())
        wrong += disagreements(found)
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


def run(clients: list[Peer], others: list[Server], revision: str, ours: Sequence[str]) -> page.Results:
    """Install everybody; let each client talk to a server of its own, and our client to each server, a few at once."""
    results: dict[tuple[str, str], dict[str, Verdict]] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        with timed("installing"):
            javascript = node(HOME)
            # One after the other: a client and a server may share their packages.
            drivers = list(pool.map(lambda peer: install(peer, HOME, javascript), clients))
            commands = list(pool.map(lambda server: command(server, javascript, ours), others))
        with timed("their clients"):
            talks = {
                (peer.name, label): pool.submit(converse, peer, driver, label, ours)
                for peer, driver in zip(clients, drivers, strict=True)
                for label in peer.revisions
                if revision in label
            }
            results |= {pair: talk.result() for pair, talk in talks.items()}
        with timed("their servers"):
            talks = {
                (server.name, label): pool.submit(ask, server, start, label)
                for server, start in zip(others, commands, strict=True)
                for label in [*server.revisions, ALL]
                if revision in label
            }
            results |= {pair: talk.result() for pair, talk in talks.items()}
    return results


def command(server: Server, javascript: Node, ours: Sequence[str]) -> list[str]:
    """Return the command that starts a server, which is installed first, unless it is ours."""
    return install_server(server, HOME, javascript) if server.package else list(ours)


def failures(results: page.Results) -> Iterator[str]:
    """Say what came back that must not."""
    for (name, revision), found in results.items():
        for feature, verdict in found.items():
            if verdict.outcome == "failed":
                yield f"{name}, {revision}, {feature}: {verdict.detail}"


def differences(results: page.Results) -> Iterator[str]:
    """Say where a feature is unsupported and ``expected.toml`` does not say so, and the other way round."""
    table = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    newest = {server.name: server.revisions[-1] for server in servers()}
    listed = {
        (name, revision, each["feature"], each["reason"])
        for each in table["unsupported"]
        for (name, revision), verdicts in results.items()
        if each["feature"] in verdicts
        and name in each.get("peers", [name])
        and (newest[name] if revision == ALL else revision) in each.get("revisions", [*LABELS])
    }
    found = {
        (name, revision, feature, verdict.detail)
        for (name, revision), verdicts in results.items()
        for feature, verdict in verdicts.items()
        if verdict.outcome == "unsupported"
    }
    yield from (f"{' / '.join(each)}: unsupported, and not listed in expected.toml" for each in sorted(found - listed))
    yield from (f"{' / '.join(each)}: listed in expected.toml, but not so" for each in sorted(listed - found))


def disagreements(found: page.Agreements) -> Iterator[str]:
    """Say where our client and our server agreed on something else than they must."""
    for offered in [*LABELS, ALL]:
        for served in [*LABELS, ALL]:
            wanted, outcome = page.agreed(offered, served), found.get((offered, served), "nothing")
            if outcome != wanted:
                yield f"{offered} offered, {served} served: {wanted} must come of it, and {outcome} does"


if __name__ == "__main__":
    main()
