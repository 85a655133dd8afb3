"""``nox -s interop``: let real clients talk to our server, and write down in ``docs/interop.md`` what they got."""

from __future__ import annotations

import argparse
import shlex
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop import page
from tests.interop.installing import Peer, install, node, peers
from tests.interop.running import converse, server_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    parser.add_argument(
        "--peer", default="", help="only clients whose name has this in it; the page is not written then"
    )
    parser.add_argument("--revision", default="", help="only this revision; likewise")
    parser.add_argument(
        "--server", type=shlex.split, help="another server's command, to see what clients make of it; likewise"
    )
    options = parser.parse_args(arguments)
    chosen = [peer for peer in peers() if options.peer in peer.name]
    pairs = [(peer, label) for peer in chosen for label in peer.revisions if options.revision in label]
    results = run(pairs, options.server or server_command())
    wrong = [*failures(results), *differences(results, pairs)]
    if not (options.peer or options.revision or options.server):
        PAGE.write_text(page.text(chosen, results), encoding="utf-8", newline="\n")
    verdicts = [verdict.outcome for found in results.values() for verdict in found.values()]
    sys.stdout.write("".join(f"{outcome}: {verdicts.count(outcome)}\n" for outcome in sorted(set(verdicts))))
    if wrong:
        raise SystemExit("\n".join(wrong))


def run(pairs: list[tuple[Peer, str]], server: Sequence[str]) -> page.Results:
    """Install all clients, and let each talk to a server of its own, a few at once."""
    javascript = node(HOME)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wanted = {peer.name: peer for peer, _ in pairs}
        drivers = {name: pool.submit(install, peer, HOME, javascript) for name, peer in wanted.items()}
        ready = {name: driver.result() for name, driver in drivers.items()}
        talks = {
            (peer.name, revision): pool.submit(converse, peer, ready[peer.name], revision, server)
            for peer, revision in pairs
        }
        return {pair: talk.result() for pair, talk in talks.items()}


def failures(results: page.Results) -> Iterator[str]:
    """Say what came back that must not."""
    for (name, revision), found in results.items():
        for feature, verdict in found.items():
            if verdict.outcome == "failed":
                yield f"{name}, {revision}, {feature}: {verdict.detail}"


def differences(results: page.Results, pairs: list[tuple[Peer, str]]) -> Iterator[str]:
    """Say where a feature is unsupported and ``expected.toml`` does not say so, and the other way round."""
    table = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    listed = {
        (peer.name, revision, each["feature"], each["reason"])
        for each in table["unsupported"]
        for peer, revision in pairs
        if peer.name in each.get("peers", [peer.name]) and revision in each.get("revisions", [revision])
    }
    found = {
        (name, revision, feature, verdict.detail)
        for (name, revision), verdicts in results.items()
        for feature, verdict in verdicts.items()
        if verdict.outcome == "unsupported"
    }
    yield from (f"{' / '.join(each)}: unsupported, and not listed in expected.toml" for each in sorted(found - listed))
    yield from (f"{' / '.join(each)}: listed in expected.toml, but not so" for each in sorted(listed - found))


if __name__ == "__main__":
    main()
