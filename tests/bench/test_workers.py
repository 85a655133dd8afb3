"""The bench of several workers measures what it says, with few of everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench import workers
from tests.harness.redis_servers import needs_redis


@needs_redis
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the CPU and memory of processes are read from /proc")
def test_each_part_of_the_page_has_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # of the processes that make the load, too
    few = workers.Options(
        seconds=0.5,
        connections=4,
        clients=1,
        sessions=50,
        listeners=10,
        changes=2,
        workers=(2,),
        modules=("workers_ours",),
    )
    text = workers.page(few)

    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| mcpgen")]
    assert ["mcpgen", "mcpgen with Redis"] * 3 == [row[0].removeprefix("| ") for row in rows]
    assert all(float(row[2].replace(",", "")) > 0 for row in rows[:2])
