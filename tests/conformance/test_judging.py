"""What the harness makes of what the suite wrote down."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance import everything_client, page
from tests.conformance.__main__ import PAGE
from tests.conformance.judging import ACCOMPANYING, ALLOWED, DONE, Expected, Verdict, complaints, expected, judge
from tests.conformance.suite import PACKAGE, RUNS, Result, Run, results

if TYPE_CHECKING:
    from pathlib import Path

RUN = Run("client", "required", "2025-11-25")
GOOD = {"id": "ping", "status": "SUCCESS", "description": "d"}


def check(status: str, **more: str) -> dict[str, Any]:
    return {"id": "check", "status": status, "description": "what is looked at", **more}


def test_a_scenario_conforms_whose_checks_succeed() -> None:
    result = Result("ping", [GOOD, check("INFO"), check("SKIPPED"), GOOD])

    assert Verdict(2) == judge(result, is_client=False)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "ANYTHING"])
def test_one_check_that_does_not_succeed_is_a_fault(status: str) -> None:
    result = Result("ping", [GOOD, check(status, errorMessage="why")])

    assert Verdict(1, (f"{status} check: why",)) == judge(result, is_client=False)


@pytest.mark.parametrize(
    "checks",
    [[], [check("INFO")], [check("SKIPPED")], [{**GOOD, "id": ACCOMPANYING}]],
    ids=["none", "told", "skipped", "only the messages"],
)
def test_a_scenario_in_which_nothing_was_looked_at_does_not_conform(checks: list[dict[str, Any]]) -> None:
    assert ("no check succeeded",) == judge(Result("ping", checks), is_client=False).faults


def test_a_scenario_that_left_nothing_behind_does_not_conform() -> None:
    assert ("nothing was written down",) == judge(Result("ping", None), is_client=False).faults


@pytest.mark.parametrize(
    ("noise", "said"), [("", "it said nothing"), ("Traceback …\nValueError: x\n", "ValueError: x")]
)
def test_a_client_that_does_not_come_to_its_end_does_not_conform(noise: str, said: str) -> None:
    result = Result("ping", [GOOD], output="", noise=noise)

    assert (f"the client did not come to its end: {said}",) == judge(result, is_client=True).faults


def test_a_client_that_comes_to_its_end_conforms() -> None:
    assert Verdict(1) == judge(Result("ping", [GOOD], output=f"{DONE}\n"), is_client=True)


def test_the_client_says_what_the_harness_looks_for() -> None:
    assert DONE == everything_client.DONE


def test_a_failure_is_complained_of() -> None:
    verdicts = {"ping": Verdict(1, ("why",)), "initialize": Verdict(2)}

    assert ["client, required 2025-11-25, ping: why"] == list(complaints(RUN, verdicts, []))


def test_what_was_expected_to_fail_and_does_not_is_complained_of() -> None:
    listed = [Expected(side="client", reason="r", scenarios=["auth/a", "auth/b"])]
    verdicts = {"auth/a": Verdict(1, ("why",)), "auth/b": Verdict(1)}

    said = ["client, required 2025-11-25, auth/b: it is expected to fail, but does not"]
    assert said == list(complaints(RUN, verdicts, listed))


def test_what_one_side_is_expected_to_fail_the_other_is_not() -> None:
    listed = [Expected(side="server", reason="r", scenarios=["ping"])]

    assert ["client, required 2025-11-25, ping: why"] == list(complaints(RUN, {"ping": Verdict(0, ("why",))}, listed))


def test_a_run_of_nothing_is_complained_of() -> None:
    assert ["client, required 2025-11-25: no scenario was run"] == list(complaints(RUN, {}, []))


def test_what_the_suite_leaves_behind_is_found(tmp_path: Path) -> None:
    when = "2026-11-21T14-48-35-123Z"
    for name in (f"server-server-initialize-{when}", f"tools_call-{when}", f"auth/metadata-var1-{when}"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / f"tools_call-{when}" / "checks.json").write_text(json.dumps([GOOD]), encoding="utf-8")
    (tmp_path / f"tools_call-{when}" / "stdout.txt").write_text("out", encoding="utf-8")
    (tmp_path / f"tools_call-{when}" / "stderr.txt").write_text("err", encoding="utf-8")

    found = [Result("auth/metadata-var1", None), Result("server-initialize", None)]
    assert [*found, Result("tools_call", [GOOD], "out", "err")] == list(results(tmp_path))


def test_only_authorization_and_extensions_may_be_expected_to_fail() -> None:
    names = [name for each in expected() for name in each.scenarios]

    assert [] == [name for name in names if not name.startswith(ALLOWED)]
    assert len(names) == len(set(names))
    assert all(each.reason and each.scenarios and each.side in page.TITLES for each in expected())


def test_the_suite_is_pinned_exactly() -> None:
    assert re.fullmatch(r"@\S+@\d+\.\d+\.\d+(-alpha\.\d+)?", PACKAGE)


def test_both_sides_are_judged_in_all_that_the_suite_has() -> None:
    wanted = ["required 2025-11-25", "required 2026-07-28"]
    wanted += [f"all {each}" for each in ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")]

    found = [f"found {each}" for each in ("2025-06-18", "2025-11-25", "2026-07-28")]
    assert wanted == [run.title for run in RUNS if run.side == "server"]
    assert [*wanted, *found] == [run.title for run in RUNS if run.side == "client"]


def test_the_page_says_what_was_found() -> None:
    verdicts = {run: {"ping": Verdict(3), "auth/a": Verdict(1, ("why",)), "new": Verdict(1, ("bad",))} for run in RUNS}
    listed = [Expected(side="client", reason="Because.", scenarios=["auth/a"])]

    text = page.text(verdicts, listed)
    for name, cell in (("ping", "3"), ("auth/a", "**failed**"), ("new", "**failed**"), ("**checks**", "**3**")):
        assert f"| {name} |{f' {cell} |' * 6}\n" in text
    for name, cell in (("ping", "3"), ("auth/a", "a"), ("new", "**failed**"), ("**checks**", "**3**")):
        assert f"| {name} |{f' {cell} |' * 9}\n" in text
    assert text.endswith("* **a**, client: Because.\n")


def test_the_page_in_the_documentation_is_of_this_suite_and_these_expectations() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written.startswith(page.HEAD)
    assert written.endswith("".join(page.reasons(expected())))
    assert "**failed**" not in written
