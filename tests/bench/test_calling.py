"""Clients do as they are ordered, and none is believed that was answered wrongly. No figure is asserted here either."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bench import calling, calling_page, serving, startup, sustained
from tests.bench.calling import CallingRow, Contender, OpeningRow
from tests.bench.ordered import ClientGone, Ordered, processor
from tests.bench.stopwatch import timing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OURS, _, FLOOR = calling.contenders()


@pytest.fixture(params=calling.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[OURS, FLOOR], ids=lambda each: each.name)
def contender(request: pytest.FixtureRequest) -> Contender:
    found: Contender = request.param
    return found


def program(body: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-u", "-c", f"import sys\n{body}")


@pytest.mark.parametrize("server", calling.servers(), ids=lambda each: each.name)
def test_a_client_has_every_call_answered(contender: Contender, server: serving.Contender, revision: str) -> None:
    with Ordered(contender.command(revision, server.command)) as client:
        alone = client.alone(10)
        together = client.together(3000, window=serving.WIDE)

    assert 10 == len(alone.clock)
    assert all(0 < each for each in (*alone.clock, alone.cpu, together.clock, together.cpu))
    assert all(0 < each for each in (client.first_answer, client.cpu_milliseconds))


def test_our_client_has_every_call_answered_in_memory(revision: str) -> None:
    with Ordered(OURS.command(revision)) as client:
        client.alone(10)

        assert 0 < client.together(3000, window=serving.WIDE).clock


def test_a_client_counts_its_tasks_and_is_seen_from_outside(contender: Contender, revision: str) -> None:
    with Ordered(contender.command(revision, calling.still().command)) as client:
        before = client.tasks()
        client.together(100, window=50)

        assert before == client.tasks()
        assert 0 < client.resident()
        assert 0 <= client.descriptors()


def test_a_thousand_calls_of_one_client_wait_at_once(contender: Contender, revision: str) -> None:
    with Ordered(contender.command(revision, sustained.COMMAND)) as client:
        assert 1000 == client.hold(1000)


@pytest.mark.skipif(processor() is None, reason="processes cannot be kept to a processor here")
def test_a_client_and_its_server_can_be_kept_to_one_processor() -> None:
    before = os.sched_getaffinity(0)
    tell = "print(*__import__('os').sched_getaffinity(0)); sys.stdin.read()"
    with Ordered(program(f"print(0)\nsys.stdin.readline()\n{tell}"), processor=processor()) as client:
        assert processor() == client.tasks()
    assert before == os.sched_getaffinity(0)


def test_a_client_that_gets_a_wrong_answer_is_disqualified(tmp_path: Path) -> None:
    liar = tmp_path / "liar.py"
    text = (
        """{"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"content": [{"type": "text", "text": "lie"}]}}"""
    )
    liar.write_text(f"import json, sys\nfor line in sys.stdin: print(json.dumps({text}), flush=True)", "utf-8")

    with pytest.raises(ClientGone, match="WrongAnswer: lie"):
        Ordered(FLOOR.command("2026-07-28", (sys.executable, "-I", str(liar))))


def test_a_client_that_ends_is_not_waited_for() -> None:
    with pytest.raises(ClientGone, match="no thanks"):
        Ordered(program("sys.exit('no thanks')"))


def test_a_client_that_ends_later_is_not_waited_for_either() -> None:
    body = "print(0)\nsys.stdin.readline()\nsys.exit('no more')"

    with Ordered(program(body)) as client, pytest.raises(ClientGone, match="no more"):
        client.alone(1)


def test_a_client_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.load.PATIENCE_SECONDS", 0.2)

    with pytest.raises(ClientGone, match="it said nothing"):
        Ordered(program("sys.stdin.read()"))


def test_a_race_of_clients_has_a_row_for_each_server_and_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_BATCH_SECONDS", 0.001)
    monkeypatch.setattr(calling, "_LEAST_ONE_AT_A_TIME", 100)
    racing = (OURS, FLOOR)
    rows = list(calling.rows(racing, [calling.still()], rounds=1))
    openings = list(calling.openings(racing, rounds=1))
    expected = [(revision, each.name) for revision in calling.REVISIONS for each in racing]
    in_memory = [(revision, OURS.name) for revision in calling.REVISIONS]

    assert expected == [(row.revision, row.contender.name) for row in rows if row.server != calling.IN_MEMORY]
    assert in_memory == [(row.revision, row.contender.name) for row in rows if row.server == calling.IN_MEMORY]
    assert expected == [(row.revision, row.contender.name) for row in openings]
    assert all(row.median.median <= row.tail.median for row in rows)
    assert all((row.near is None) == (processor() is None or row.server == calling.IN_MEMORY) for row in rows)
    assert all(0 < row.clock.median and 0 < row.memory.median for row in openings)


def test_what_our_client_imports_is_what_it_needs() -> None:
    ours, _ = calling.importing()
    (cost,) = startup.measure([ours], rounds=1)

    assert {startup.package_of(calling.NEWEST)} == startup.revisions_loaded(cost.modules)


def page_of(*, times: float, server: str = "", has_near: bool = True) -> str:
    def row(name: str, factor: float) -> CallingRow:
        return CallingRow(
            contender=Contender(name, ""),
            server=server or calling.still().name,
            revision="2025-11-25",
            median=timing([factor * 100]),
            tail=timing([factor * 200]),
            near=timing([factor * 50]) if has_near else None,
            near_cpu=timing([factor * 20]),
            wide=timing([factor * 10]),
            wide_cpu=timing([factor * 8]),
        )

    rows = [row(calling.OURS, 1), row(calling.SDK, times), row(calling.FLOOR, 0.5)]
    openings = [
        OpeningRow(
            contender=Contender(name, ""),
            revision="2025-11-25",
            clock=timing([factor * 100]),
            cpu=timing([factor * 80]),
            memory=timing([factor * 30]),
        )
        for name, factor in ((calling.OURS, 1), (calling.SDK, 4))
    ]
    return calling_page.text(calling.Measurements(rows=rows, openings=openings))


def test_the_page_says_that_a_client_kept_its_promise() -> None:
    text = page_of(times=6)

    assert "| 100 (100) | 200 (200) | 10,000 (10,000) | **6.00** | **0.50** | 20,000 (20,000) | **6.00** |" in text
    assert "| 100,000 (100,000) | **6.00** | **0.50** | 8.00 (8.00) |" in text
    assert "≥ 5 times the calls/s of `mcp`, one processor: kept" in text
    assert "| 100 (100) | **0.25** | 80.0 (80.0) | **0.25** | 30.0 (30.0) | **0.25** |" in text


def test_the_page_says_that_a_client_missed_its_promise() -> None:
    text = page_of(times=4, server=calling.IN_MEMORY, has_near=False)

    assert "≥ 5 times the calls/s of `mcp`: **missed**" in text


def test_nothing_is_promised_where_a_server_of_weight_counts_too() -> None:
    text = page_of(times=4, server=calling.OURS)

    assert "≥ 5 times" not in text


def test_a_client_can_be_put_to_the_sustained_test(contender: Contender, capsys: pytest.CaptureFixture[str]) -> None:
    # Too few calls to tell what grows.
    sustained.run_client(contender, calls=400, batch=20)

    assert len(calling.REVISIONS) == capsys.readouterr().out.count("1,000 calls waited at once: 1,000 answered")


def test_a_client_that_breaks_down_fails_the_sustained_run() -> None:
    broken = Contender("broken", "nowhere.py")
    wrong = sustained.run_client(broken, calls=10, batch=10)

    assert len(calling.REVISIONS) == len(wrong)
    assert all("nowhere.py" in each for each in wrong)
