"""What every test relies on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mcpgen.codegen.checkout import find_checkout

# Commands remember servers in the user's cache folder, and logins in the one for state. Tests leave both alone: nothing
# can be written here.
os.environ["XDG_CACHE_HOME"] = os.devnull
os.environ["XDG_STATE_HOME"] = os.devnull

# Machines are busy and slow at times, and no property here is about time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def temporary_folders_are_outside_of_every_checkout() -> None:
    """Stop before a command under test takes this checkout for the one that the test meant, and writes to it."""
    folder = Path(tempfile.gettempdir())
    assert find_checkout(folder) is None, f"set TMPDIR to a folder outside of the checkout; it is {folder}"
