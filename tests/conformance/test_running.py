"""How the server that the suite judges is started and ended."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.conformance import running
from tests.conformance.running import ServerFailed, client_command, serving
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SERVER = 'from mcpgen import Server\nserver = Server("mock")\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is served instead of the server with one thing of everything."""
    monkeypatch.setattr(running, "HERE", tmp_path)
    return tmp_path / "everything_server.py"


def test_a_server_is_served_as_long_as_it_is_needed() -> None:
    with serving() as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, data=b"{}", timeout=PATIENCE_SECONDS)  # noqa: S310 (our own server)
        refused.value.close()

    assert 415 == refused.value.code  # urllib sends a form
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(url, timeout=PATIENCE_SECONDS)  # noqa: S310 (likewise)


def test_a_server_that_cannot_start_is_told_of(file: Path) -> None:
    file.write_text("raise ValueError('no')\n", encoding="utf-8")

    with pytest.raises(ServerFailed, match=r"did not say where it is; it said: (?s:.)*ValueError: no"), serving():
        raise AssertionError


def test_a_server_that_says_more_than_where_it_is_is_told_of(file: Path) -> None:
    file.write_text(f"{SERVER}import atexit\natexit.register(print, 'one more thing')\n", encoding="utf-8")

    with pytest.raises(ServerFailed, match=r"ended with 0, and had said: one more thing\n"), serving():
        pass


def test_a_server_that_does_not_end_is_told_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "END_SECONDS", 1)
    keeps_output_open = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    code = f"import atexit, subprocess, sys, time\n{keeps_output_open}\natexit.register(time.sleep, 60)\n"
    file.write_text(f"{SERVER}{code}", encoding="utf-8")

    with pytest.raises(ServerFailed, match="did not end within 1 seconds"), serving():
        pass


def test_a_client_that_is_not_told_the_revision_finds_out() -> None:
    assert ["--any"] == [each for each in client_command(is_told=False) if each not in client_command(is_told=True)]
