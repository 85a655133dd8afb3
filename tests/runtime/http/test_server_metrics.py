"""OpenTelemetry instruments, in a process of its own: importing OpenTelemetry switches them, and spans, on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS


@pytest.mark.slow
def test_the_instruments_of_a_server() -> None:
    cases = Path(__file__).with_name("metrics_cases.py")
    command = [sys.executable, "-m", "pytest", str(cases), "--quiet", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_SECONDS,
        cwd=Path(__file__).parents[3],
    )

    assert "6 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_program_that_does_not_measure_imports_nothing() -> None:
    code = """
import sys, anyio
from mcpgen import Server
async def main():
    async with Server("demo").asgi().running():
        pass
anyio.run(main)
assert not [each for each in sys.modules if each.startswith("opentelemetry")]
assert "mcpgen.runtime.http.server.server_metrics" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
