"""The path of a call does not grow by accident: each module and function more is decided, and noted here."""

from __future__ import annotations

import pytest

from tests.bench.call_path import over_http, over_stdio

MOST_MODULES = {
    "stdio plain": 15,
    "stdio structured": 23,
    "http plain": 25,
    "http structured": 34,
    "http with_context": 33,
}
MOST_FUNCTIONS = {
    "stdio plain": 56,
    "stdio structured": 73,
    "http plain": 46,  # two count the turns of the event loop, and ask who calls: an address, a user or a token
    "http structured": 63,
    "http with_context": 150,  # notifications count in the turns of the event loop
}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_call_passes_no_more_modules_and_functions(name: str) -> None:
    transport, tool = name.split()
    modules, functions = {"stdio": over_stdio, "http": over_http}[transport](tool)

    assert 0 < modules <= MOST_MODULES[name]
    assert 0 < functions <= MOST_FUNCTIONS[name]
