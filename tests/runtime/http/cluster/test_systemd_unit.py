"""The example of systemd in the guide."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "many-workers.md"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is a program of the system, and not here")
def test_systemd_knows_each_line_of_the_unit_in_the_guide(tmp_path: Path) -> None:
    found = re.search(r"```ini\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    unit = tmp_path / "mcp.service"
    unit.write_text(found[1].replace("/srv/mcp/venv/bin/mcpgen", sys.executable), encoding="utf-8")
    verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
    said = subprocess.run(verify, check=False, capture_output=True, text=True)

    assert (0, "", "") == (said.returncode, said.stdout, said.stderr)
