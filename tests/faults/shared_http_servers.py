"""Houses that tests share, and the certainty that nothing is left in them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.faults.http_raw_client import called
from tests.faults.http_server_process import House

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

HEADS = "mcpgen.runtime.http.server.uvicorn_limits"
BOUNDS = "mcpgen.runtime.http.server.uvicorn_limits"

# What a test can wait for, and a busy machine does not take for what should take no time.
SHORT: dict[str, Any] = {
    "constants": {f"{HEADS}._HEAD_SECONDS": 2, f"{BOUNDS}._UNREAD_SECONDS": 2},
    "http": {"body_seconds": 2, "write_seconds": 2, "keep_alive_seconds": 0.1},
}


@contextmanager
def opened(program: Sequence[str] | None = None, **given: Any) -> Generator[House]:
    """Run a server within the block."""
    house = House(program, **given)
    try:
        assert is_well(house)
        house.close_lines()
        yield house
    finally:
        house.kill()


def is_well(house: House) -> bool:
    """Return whether it answers."""
    line = house.line()
    line.send(called("echo", text="well"))
    return line.reply().json["result"]["content"][0]["text"] == "well"


@contextmanager
def unharmed(house: House) -> Generator[None]:
    """See that a server still answers at the end of the block, and holds no connection more than before."""
    before, said = house.descriptors(), len(house.said)
    yield
    house.close_lines()

    assert is_well(house)
    house.close_lines()
    house.until(lambda: house.descriptors() <= before)
    assert "Traceback" not in house.said[said:], house.said[said:]
