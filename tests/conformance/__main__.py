"""``nox -s conformance``: let the official suite judge our server and client, and compare ``docs/conformance.md``."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.conformance import page, suite
from tests.conformance.judging import complaints, expected, judge
from tests.conformance.running import ServerFailed, client_command, serving
from tests.conformance.suite import RUNS, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.judging import Verdict

CHECKOUT: Final = Path(__file__).parents[2]
PAGE: Final = CHECKOUT / "docs" / "conformance.md"
HOME: Final = CHECKOUT / ".nox" / "conformance-suite"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, judge, and compare or write.

    Raises:
        SystemExit: Something is not as it must be.
    """
    parser = argparse.ArgumentParser(prog="nox -s conformance --", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md rather than compare it")
    parser.add_argument("--side", default="", help="server or client only; the page is not looked at then")
    parser.add_argument("--run", default="", help='only runs whose title has this in it, such as "all 2025"; likewise')
    parser.add_argument("--scenario", default="", help="only this scenario; likewise")
    parser.add_argument("--workers", action="store_true", help="judge a server of several workers; likewise")
    options = parser.parse_args(arguments)
    side = "server" if options.workers else options.side
    chosen = [run for run in RUNS if side in run.side and options.run in run.title]
    listed = expected()
    command = suite.install(HOME)
    verdicts: dict[Run, dict[str, Verdict]] = {}
    wrong: list[str] = []
    for run in chosen:
        begun = time.monotonic()
        verdicts[run], failure = judged(command, run, options.scenario, by_workers=options.workers)
        found = [*failure, *complaints(run, verdicts[run], listed)]
        succeeded = sum(each.successes for each in verdicts[run].values() if not each.faults)
        took = f"{time.monotonic() - begun:.0f} seconds"
        sys.stdout.write(f"{run.side}, {run.title}: {len(verdicts[run])} scenarios, {succeeded} checks, {took}\n")
        sys.stdout.flush()
        wrong += found
    if not wrong and chosen == RUNS and not options.scenario:
        wrong += written(page.text(verdicts, listed), is_new=options.write)
    if wrong:
        raise SystemExit("\n".join(wrong))


def judged(
    command: Sequence[str], run: Run, scenario: str, *, by_workers: bool = False
) -> tuple[dict[str, Verdict], list[str]]:
    """Run the suite once, and return what to think of each scenario, and of the server's end."""
    verdicts: dict[str, Verdict] = {}
    try:
        with ExitStack() as stack:
            client = client_command(is_told=run.scenarios != "found")
            subject = stack.enter_context(serving(by_workers=by_workers)) if run.side == "server" else client
            results, said = suite.run(command, run, subject, scenario)
            verdicts = {each.scenario: judge(each, is_client=run.side == "client") for each in results}
            if not verdicts:
                sys.stderr.write(said)
    except ServerFailed as error:
        return verdicts, [f"{run.side}, {run.title}: {error}"]
    return verdicts, []


def written(text: str, *, is_new: bool) -> list[str]:
    """Write the page, or say that it is another one."""
    if is_new:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        return [f"{PAGE.relative_to(CHECKOUT)} says something else: nox -s conformance -- --write"]
    return []


if __name__ == "__main__":
    main()
