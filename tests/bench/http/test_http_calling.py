"""Clients over HTTP do as they are ordered."""

from __future__ import annotations

import pytest

from tests.bench.http import calling, page, serving
from tests.bench.http.measuring import Measurements
from tests.bench.ordered import ClientGone, Ordered

pytestmark = pytest.mark.slow

RACING = (*calling.contenders()[:2], *calling.floors())


def test_every_client_has_a_row_for_every_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_BATCH_SECONDS", 0)
    monkeypatch.setattr(calling, "_LEAST_CALLS", 20)
    monkeypatch.setattr(calling, "WINDOW", 5)
    rows = list(calling.rows(RACING, calling.answering(), rounds=2))
    text = page.text(Measurements(serving=[], sessions=[], streams=[], calling=rows))

    assert [(revision, each.name) for revision in serving.REVISIONS for each in RACING] == [
        (row.revision, row.contender.name) for row in rows
    ]
    assert all(row.median.median <= row.tail.median for row in rows)
    assert all(f"| {row.revision} | {row.contender.name} |" in text for row in rows)


def test_a_client_that_finds_no_server_is_not_waited_for() -> None:
    with pytest.raises(ClientGone):
        Ordered(calling.floors()[1].command(serving.STATELESS, "http://127.0.0.1:1/mcp"))
