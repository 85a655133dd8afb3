"""The judge of the real peers is judged here, without any of them: what it must let pass, and what it must not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.interop import page, server_expectations
from tests.interop.__main__ import PAGE, differences, disagreements, failures
from tests.interop.client_expectations import (
    FEATURES,
    LABELS,
    TOOLS,
    Absent,
    Verdict,
    difference,
    expected,
    judge,
    normal,
)
from tests.interop.packages import page as packages_page
from tests.interop.packages.runs import packages
from tests.interop.peer_packages import Server, peers, servers
from tests.interop.reference_servers import EVERYTHING, TIME
from tests.interop.server_expectations import asked_of, spoken
from tests.interop.stdio_recording import breaches, violations
from tests.interop.tasks import page as tasks_page
from tests.interop.tasks.runs import TRANSPORTS as TASK_TRANSPORTS
from tests.interop.tasks.runs import missing, task_peers
from tests.interop.transports import ALL, HTTP, SSE, STDIO, TRANSPORTS, Cell, columns, looked_at

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))["unsupported"]
OUTSIDE = ["counter-offer", "end", "wire"]  # not among what a driver goes through
PASSED = Verdict("passed", "")
SERVERS = [
    (server, feature, Cell(server.name, transport, label))
    for server in servers()
    for transport in TRANSPORTS
    for label in columns(server, transport, is_server=True)
    for feature in asked_of(server, Cell(server.name, transport, label))
]
CHOICES = [*LABELS, ALL]
AGREED = {(offered, served): page.agreed(offered, served) for offered in CHOICES for served in CHOICES}


def promised() -> dict[Cell, dict[str, Verdict]]:
    """Return the results of a run in which everything is as expected.toml says, and passes otherwise."""
    results: dict[Cell, dict[str, Verdict]] = {}
    for transport in TRANSPORTS:
        for peer in peers():
            for label in columns(peer, transport, is_server=False):
                asked = looked_at(FEATURES, transport, label)
                results[Cell(peer.name, transport, label)] = dict.fromkeys(asked, PASSED)
        for server in servers():
            for label in columns(server, transport, is_server=True):
                cell = Cell(server.name, transport, label)
                results[cell] = dict.fromkeys(asked_of(server, cell), PASSED)
    known = {server.name: server for server in servers()}
    for each in TABLE:
        for cell, found in results.items():
            speaks = spoken(known[cell.name], cell) if cell.name in known else cell.revision
            is_meant = cell.name in each.get("peers", [cell.name]) and speaks in each.get("revisions", LABELS)
            if is_meant and cell.transport in each.get("transports", TRANSPORTS) and each["feature"] in found:
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


@pytest.mark.parametrize(("name", "wanted"), [("EVERYTHING", EVERYTHING), ("TIME", TIME)])
def test_what_servers_are_asked_that_come_as_they_are_is_expected(name: str, wanted: dict[str, Any]) -> None:
    source = (HERE / "peers" / "reference_servers.py").read_text(encoding="utf-8")
    table = source.partition(f"{name}: dict[str, Feature] = {{")[2].partition("\n}")[0]

    assert list(wanted) == re.findall(r'^    "([a-z ]+)": ', table, re.MULTILINE)


def test_packages_that_come_as_they_are_are_pinned_and_on_the_page() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    pins = [pin for each in packages() for pin in each.package.split()]

    assert [] == [each for each in pins if not re.fullmatch(r"@?[^@=]+(==|@)\d+(\.\d+)+(a\d+)?", each)]
    assert [] == [line for line in packages_page.lines() if line not in shown]


def test_implementations_of_tasks_are_pinned_and_on_the_page() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    pins = [pin for each in task_peers() for pin in each.package.split()]

    assert [] == [each for each in pins if not re.fullmatch(r"@?[^@=]+(==|@)\d+(\.\d+)+", each)]
    assert {each.peer for each in missing()} <= {each.name for each in task_peers()}
    assert {way for each in task_peers() for way in each.always} <= {*TASK_TRANSPORTS}
    assert [] == [line for line in tasks_page.lines() if line not in shown]


def test_servers_of_every_language_offer_what_ours_does() -> None:
    offered = json.loads((HERE / "servers" / "offered.json").read_text(encoding="utf-8"))

    assert TOOLS == [tool["name"] for tool in offered["tools"]]


def test_the_page_explains_every_feature() -> None:
    assert list(FEATURES) == list(page.MEANING)
    assert set(page.MEANING_FOR_US) <= set(FEATURES)


def seen(feature: str, revision: str) -> Any:
    wanted = expected(feature, revision)
    return wanted.seen if isinstance(wanted, Absent) else wanted


def test_what_must_come_back_passes() -> None:
    wrong: list[object] = []
    for feature, revision in product(FEATURES, LABELS):
        wanted = expected(feature, revision)
        verdict = Verdict("unsupported", wanted.reason) if isinstance(wanted, Absent) else PASSED
        found = judge(feature, revision, "observed", seen(feature, revision))
        if found != verdict:
            wrong.append((feature, revision, found))

    assert [] == wrong


def test_a_stub_passes_nothing() -> None:
    # A ping is answered with nothing, and on the wire nothing must be wrong.
    features = [each for each in FEATURES if each not in {"ping", "wire"}]
    stubs: list[Any] = [None, {}, [], "", True, 0, {"content": []}]

    assert [] == [
        (feature, revision, stub)
        for feature, revision, stub in product(features, LABELS, stubs)
        if judge(feature, revision, "observed", stub).outcome != "failed"
    ]


def theirs_seen(server: Server, feature: str, cell: Cell) -> tuple[Any, Verdict]:
    wanted = server_expectations.expected(server, feature, cell)
    if isinstance(wanted, Absent):
        return wanted.seen, Verdict("unsupported", wanted.reason)
    return wanted, PASSED


def test_what_must_come_from_a_server_passes() -> None:
    wrong: list[object] = []
    for server, feature, cell in SERVERS:
        seen, verdict = theirs_seen(server, feature, cell)
        found = server_expectations.judge(server, feature, cell, "observed", seen)
        if found != verdict:
            wrong.append((cell, feature, found))

    assert [] == wrong


@pytest.mark.slow
def test_what_comes_from_a_server_and_is_something_else_fails() -> None:
    passed: list[object] = []
    for server, feature, cell in SERVERS:
        seen, _ = theirs_seen(server, feature, cell)
        stubs = [stub for stub in (None, {}, [], "", True, 0) if normal(stub) != normal(seen)]
        passed += [
            (cell, feature, other)
            for other in ([seen, "more"], *stubs)
            if server_expectations.judge(server, feature, cell, "observed", other).outcome != "failed"
        ]

    assert [] == passed


def test_what_can_be_spoken_is_the_newest_that_a_server_has() -> None:
    assert {"2025-11-25", "2026-07-28"} == {spoken(server, Cell(server.name, STDIO, ALL)) for server in servers()}
    assert {"2025-11-25"} == {spoken(server, Cell(server.name, SSE, ALL)) for server in servers()}


@pytest.mark.parametrize(
    ("offered", "served", "outcome"),
    [
        ("2024-11-05", "2024-11-05", "2024-11-05"),
        ("2024-11-05", "2026-07-28", "NoCommonRevision"),
        ("2024-11-05", ALL, "2024-11-05"),
        (ALL, "2025-11-25", "2025-11-25"),
        (ALL, ALL, "2026-07-28"),
    ],
)
def test_an_offer_comes_to_the_newest_that_both_have(offered: str, served: str, outcome: str) -> None:
    assert outcome == page.agreed(offered, served)


def test_another_agreement_than_the_one_that_must_come_is_complained_of() -> None:
    wrong = {**AGREED, (ALL, ALL): "2025-11-25"}
    del wrong["2024-11-05", "2025-03-26"]

    assert [] == list(disagreements(AGREED, "HTTP"))
    assert [
        "2024-11-05 offered, 2025-03-26 served over HTTP: NoCommonRevision must come of it, and nothing does",
        "all offered, all served over HTTP: 2026-07-28 must come of it, and 2025-11-25 does",
    ] == list(disagreements(wrong, "HTTP"))


def leaves(value: Any) -> list[str]:
    """Return every text in *value*."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in leaves(each)]
    if isinstance(value, list):
        return [text for each in value for text in leaves(each)]
    return [value] if isinstance(value, str) else []


def test_another_text_than_the_one_that_must_come_back_fails() -> None:
    passed: list[object] = []
    for feature in FEATURES:
        value = normal(seen(feature, LABELS[-1]))
        for text in leaves(value):
            changed = json.loads(json.dumps(value).replace(json.dumps(text), '"another"'))
            if changed == value or text == "differs from call to call":
                continue
            if judge(feature, LABELS[-1], "observed", changed).outcome != "failed":
                passed.append((feature, text))

    assert [] == passed


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
    assert set(entry) <= {"feature", "reason", "revisions", "peers", "transports"}
    assert entry["feature"] in FEATURES
    assert entry["reason"]
    assert set(entry.get("revisions", [])) <= set(LABELS)
    assert set(entry.get("transports", [])) <= set(TRANSPORTS)
    assert set(entry.get("peers", [])) <= {each.name for each in [*peers(), *servers()]}


def test_peers_are_pinned_exactly() -> None:
    packages = [each.package for each in [*peers(), *servers()] if each.package]

    assert [] == [each for each in packages if not re.search(r"(==|.@)\d+\.\d+\.\d+$", each)]


def test_no_two_peers_have_one_name() -> None:
    names = [each.name for each in [*peers(), *servers()]]

    assert len(names) == len(set(names))


def test_the_page_is_what_a_run_writes_that_is_as_it_must_be() -> None:
    assert page.text(peers(), servers(), promised(), AGREED) == PAGE.read_text(encoding="utf-8")


def test_a_run_that_is_as_it_must_be_is_not_complained_of() -> None:
    assert [] == [*failures(promised()), *differences(promised())]


def test_a_failure_is_complained_of() -> None:
    results = promised()
    results[Cell("FastMCP 4.1", HTTP, "2025-06-18")]["ping"] = Verdict("failed", "why")

    assert ["FastMCP 4.1 over Streamable HTTP, 2025-06-18, ping: why"] == list(failures(results))


def test_what_nobody_expected_to_be_unsupported_is_complained_of() -> None:
    results = promised()
    results[Cell("FastMCP 4.1", HTTP, "2025-06-18")]["ping"] = Verdict("unsupported", "why")

    said = ["FastMCP 4.1 over Streamable HTTP, 2025-06-18 / ping / why: unsupported, and not listed"]
    assert said == list(differences(results))


def test_what_was_expected_to_be_unsupported_and_is_not_is_complained_of() -> None:
    results = promised()
    results[Cell("FastMCP 4.1", HTTP, "2026-07-28")]["ping"] = Verdict("passed", "")

    cell = "FastMCP 4.1 over Streamable HTTP, 2026-07-28"
    said = f"{cell} / ping / the revision has no ping: listed as unsupported, but not so"
    assert [said] == list(differences(results))


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


GREETING = (
    b'< {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
    b'> {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"serverInfo":{"name":"s","version":"1"}}}\n'
    b'< {"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


def test_a_client_that_keeps_its_revision_is_not_blamed(tmp_path: Path) -> None:
    (tmp_path / "1.record").write_bytes(b"\n" + GREETING)

    assert [] == list(breaches(tmp_path, ["2025-06-18"]))


def test_a_client_that_breaks_its_revision_is_found_in_the_record(tmp_path: Path) -> None:
    later = b'< {"jsonrpc":"2.0","id":2,"method":"server/discover","params":{}}\n'
    (tmp_path / "1.record").write_bytes(b"\n" + GREETING + later)

    assert any("server/discover" in said for said in breaches(tmp_path, ["2025-06-18"]))


def test_a_client_that_offers_what_it_must_not_is_found_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "1.record").write_bytes(b"\n" + GREETING)

    assert [] != list(breaches(tmp_path, ["2025-11-25"]))


@pytest.mark.parametrize(
    ("record", "said"), [(None, "nothing was recorded"), (b"\n", "a server was started and asked")]
)
def test_a_client_that_said_nothing_is_not_taken_for_a_good_one(tmp_path: Path, record: Any, said: str) -> None:
    if record is not None:
        (tmp_path / "1.record").write_bytes(record)

    [found] = breaches(tmp_path, LABELS)
    assert said in found
