"""The judge of the real clients is judged here, without any of them: what it must let pass, and what it must not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.interop import page
from tests.interop.__main__ import PAGE, differences, failures
from tests.interop.expectations import FEATURES, LABELS, Absent, Verdict, difference, expected, judge, normal
from tests.interop.installing import peers
from tests.interop.recording import violations

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))["unsupported"]
PAIRS = [(peer, revision) for peer in peers() for revision in peer.revisions]
OUTSIDE = ["counter-offer", "end of input", "wire"]  # not among what a driver goes through


def promised() -> dict[tuple[str, str], dict[str, Verdict]]:
    """Return the results of a run in which everything is as expected.toml says, and passes otherwise."""
    results = {(peer.name, revision): dict.fromkeys(FEATURES, Verdict("passed", "")) for peer, revision in PAIRS}
    for each in TABLE:
        for (name, revision), found in results.items():
            if name in each.get("peers", [name]) and revision in each.get("revisions", [revision]):
                found[each["feature"]] = Verdict("unsupported", each["reason"])
    return results


@pytest.mark.parametrize(
    ("file", "begin", "end"),
    [
        ("conversation.py", "FEATURES: dict[str, Feature] = {", "\n}"),
        ("conversation.mjs", "const FEATURES = {", "\n};"),
    ],
)
def test_clients_of_every_language_go_through_the_same_features(file: str, begin: str, end: str) -> None:
    source = (HERE / "peers" / file).read_text(encoding="utf-8")
    table = source.partition(begin)[2].partition(end)[0]

    assert list(FEATURES) == [*re.findall(r"""^    ['"]?([a-z][a-z ]*)['"]?: """, table, re.MULTILINE), *OUTSIDE]


def test_the_page_explains_every_feature() -> None:
    assert list(FEATURES) == list(page.MEANING)


def seen(feature: str, revision: str) -> Any:
    wanted = expected(feature, revision)
    return wanted.seen if isinstance(wanted, Absent) else wanted


@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize("feature", FEATURES)
def test_what_must_come_back_passes(feature: str, revision: str) -> None:
    wanted = expected(feature, revision)
    verdict = Verdict("unsupported", wanted.reason) if isinstance(wanted, Absent) else Verdict("passed", "")

    assert verdict == judge(feature, revision, "observed", seen(feature, revision))


@pytest.mark.parametrize("revision", LABELS)
# A ping is answered with nothing, and on the wire nothing must be wrong.
@pytest.mark.parametrize("feature", [each for each in FEATURES if each not in {"ping", "wire"}])
@pytest.mark.parametrize("nothing", [None, {}, [], "", True, 0, {"content": []}], ids=str)
def test_a_stub_passes_nothing(feature: str, revision: str, nothing: Any) -> None:
    assert "failed" == judge(feature, revision, "observed", nothing).outcome


def leaves(value: Any) -> list[str]:
    """Return every text in *value*."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in leaves(each)]
    if isinstance(value, list):
        return [text for each in value for text in leaves(each)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("feature", FEATURES)
def test_another_text_than_the_one_that_must_come_back_fails(feature: str) -> None:
    value = normal(seen(feature, LABELS[-1]))

    for text in leaves(value):
        changed = json.loads(json.dumps(value).replace(json.dumps(text), '"another"'))
        if changed != value and text != "differs from call to call":
            assert "failed" == judge(feature, LABELS[-1], "observed", changed).outcome


@pytest.mark.parametrize("outcome", ["failed", "nonsense"])
def test_what_a_driver_does_not_call_observed_has_failed(outcome: str) -> None:
    assert Verdict("failed", "why") == judge("ping", LABELS[0], outcome, "why")


def test_what_clients_fill_in_is_not_held_against_the_server() -> None:
    filled = {
        "isError": False,
        "resultType": "complete",
        "_meta": {"server": 1},
        "content": [{"mode": "form", "n": 1.0}],
    }

    assert {"content": [{"n": 1}]} == normal(filled)


def test_an_error_is_not_taken_for_what_a_client_fills_in() -> None:
    assert {"isError": True} == normal({"isError": True})


@pytest.mark.parametrize(
    ("wanted", "found", "said"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": [1, 2]}, {"a": [1, 3]}, "at /a/1: 2 must be there, and 3 is"),
        ({"a": 1}, {"a": 1, "b": 2}, "at /: {'a': 1} must be there, and {'a': 1, 'b': 2} is"),
        ([1], [1, 2], "at /: [1] must be there, and [1, 2] is"),
        ({"a": None}, {}, "at /: {'a': None} must be there, and {} is"),
    ],
)
def test_a_difference_is_said_where_it_is(wanted: Any, found: Any, said: str) -> None:
    assert said == difference(wanted, found)


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["feature"])
def test_only_what_is_unsupported_for_a_reason_may_be_expected(entry: dict[str, Any]) -> None:
    assert set(entry) <= {"feature", "reason", "revisions", "peers"}
    assert entry["feature"] in FEATURES
    assert entry["reason"]
    assert set(entry.get("revisions", [])) <= set(LABELS)
    assert set(entry.get("peers", [])) <= {peer.name for peer in peers()}


def test_clients_are_pinned_exactly() -> None:
    assert [] == [each.package for each in peers() if not re.search(r"(==|.@)\d+\.\d+\.\d+$", each.package)]


def test_the_page_is_what_a_run_writes_that_is_as_it_must_be() -> None:
    assert page.text(peers(), promised()) == PAGE.read_text(encoding="utf-8")


def test_a_run_that_is_as_it_must_be_is_not_complained_of() -> None:
    assert [] == [*failures(promised()), *differences(promised(), PAIRS)]


def test_a_failure_is_complained_of() -> None:
    results = promised()
    results["FastMCP 4.1", "2025-06-18"]["ping"] = Verdict("failed", "why")

    assert ["FastMCP 4.1, 2025-06-18, ping: why"] == list(failures(results))


def test_what_nobody_expected_to_be_unsupported_is_complained_of() -> None:
    results = promised()
    results["FastMCP 4.1", "2025-06-18"]["ping"] = Verdict("unsupported", "why")

    said = ["FastMCP 4.1 / 2025-06-18 / ping / why: unsupported, and not listed in expected.toml"]
    assert said == list(differences(results, PAIRS))


def test_what_was_expected_to_be_unsupported_and_is_not_is_complained_of() -> None:
    results = promised()
    results["FastMCP 4.1", "2026-07-28"]["ping"] = Verdict("passed", "")

    said = ["FastMCP 4.1 / 2026-07-28 / ping / the revision has no ping: listed in expected.toml, but not so"]
    assert said == list(differences(results, PAIRS))


def test_a_server_that_is_watched_is_recorded_and_its_end_reported(tmp_path: Path) -> None:
    echo = [sys.executable, "-c", "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.exit(3)"]
    watched = [sys.executable, str(HERE / "watch.py"), "--record", str(tmp_path), *echo]
    done = subprocess.run(watched, input=b"one\ntwo\n", capture_output=True, check=False)
    [record] = tmp_path.glob("*.record")

    assert (3, b"ONE\nTWO\n") == (done.returncode, done.stdout)
    assert b"\n< one\n< two\n> ONE\n> TWO\n" == record.read_bytes()
    assert "3\n" == (tmp_path / "ends.txt").read_text(encoding="utf-8")


def test_a_server_that_breaks_its_revision_is_found_in_the_record(tmp_path: Path) -> None:
    lines = [
        (
            b'< {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05",'
            b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
        ),
        (
            b'> {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},'
            b'"serverInfo":{"name":"s","version":"1","title":"T"}}}'
        ),
    ]
    (tmp_path / "1.record").write_bytes(b"\n".join([b"", *lines]))

    [said] = violations(tmp_path)
    assert "title" in said


def test_a_conversation_that_was_not_recorded_is_not_taken_for_a_good_one(tmp_path: Path) -> None:
    assert ["nothing was recorded"] == list(violations(tmp_path))
