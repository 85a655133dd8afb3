"""Many clients are counted rightly, and those who were not told are missed."""

from __future__ import annotations

import pytest

from tests.bench.http import crowds, page, serving, sustained
from tests.bench.http.crowds import SessionsRow, StreamsRow
from tests.bench.http.measuring import Measurements
from tests.bench.http.serving import Contender
from tests.bench.stopwatch import timing
from tests.bench.traffic import WrongAnswer

pytestmark = pytest.mark.slow

OURS = Contender(serving.OURS, serving.ours("http_watched"))


def test_sessions_are_opened_and_can_be_used() -> None:
    (row,) = crowds.sessions([(OURS, 50)])

    assert 50 == row.count
    assert 0 < row.opening


def test_all_who_listen_are_told_of_every_change() -> None:
    rows = list(crowds.streams([OURS], count=5, changes=3))

    assert list(serving.REVISIONS) == [row.revision for row in rows]
    assert all(5 == row.count and 0 < row.all.median for row in rows)


def test_a_change_that_nobody_is_told_of_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds._Listeners, "hear", lambda *_: 1.0)

    with pytest.raises(WrongAnswer, match="0 of 2 changes"):
        list(crowds.streams([OURS], count=1, changes=2))


def test_our_server_survives_deserters(capsys: pytest.CaptureFixture[str]) -> None:
    # Too few calls to tell what grows: what is tried is that they are answered, and that it can be watched.
    sustained.run(calls=100, batch=20)

    assert [f"HTTP, {each}:" for each in serving.REVISIONS] == [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("HTTP")
    ]


def test_a_server_that_cannot_be_watched_fails_the_sustained_run() -> None:
    wrong = sustained.run(serving.command("no such file.py"), calls=10, batch=10)

    assert all("ServerGone" in each for each in wrong)
    assert len(serving.REVISIONS) == len(wrong)


def page_of(*, size: float, all_told: float) -> str:
    held = [
        SessionsRow(contender=Contender(name, ()), count=10_000, size=factor * size, opening=300)
        for name, factor in ((serving.OURS, 1), (serving.SDK, 4))
    ]
    told = [
        StreamsRow(
            contender=Contender(name, ()),
            revision=serving.STATELESS,
            count=1000,
            all=timing([factor * all_told]),
            cpu=None,
            size=20,
        )
        for name, factor in ((serving.OURS, 1), ("mcp", 2))
    ]
    return page.text(Measurements(serving=[], sessions=held, streams=told, calling=[]))


def test_the_page_says_which_promises_were_kept() -> None:
    text = page_of(size=5, all_told=50)

    assert "| mcpgen | 10,000 | 5.00 | **0.25** | 300 | ≤ 10 KiB: kept |" in text
    assert "| mcpgen | 1,000 | 50.0 (50.0) | **0.50** |  | 20.0 | ≤ 100 ms: kept |" in text
    assert "missed" not in text


def test_the_page_says_which_promises_were_missed() -> None:
    text = page_of(size=11, all_told=101)

    assert "≤ 10 KiB: **missed**" in text
    assert "≤ 100 ms: **missed**" in text
    assert "kept" not in text
