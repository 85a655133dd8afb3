"""What the tests of the house look at: the installed package's files, and the checkout they came from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def package() -> Path:
    """The folder of the installed package."""
    folder = files("mcpgen")
    assert isinstance(folder, Path)
    return folder


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The top level of the repository."""
    return Path(__file__).parents[2]
