"""The path of a call does not grow by accident: each module and function more is decided, and noted here."""

from __future__ import annotations

import pytest

from tests.bench.call_path import over_http, over_stdio

MOST_MODULES = {
    "stdio plain": 16,
    "stdio structured": 17,
    "http plain": 23,
    "http structured": 24,
    "http with_context": 25,
    "http protected": 24,
}
MOST_FUNCTIONS = {
    "stdio plain": 51,
    "stdio structured": 52,
    "http plain": 41,  # three count the turns of the event loop, one asks who calls: an address, a user or a token
    "http structured": 42,
    "http with_context": 46,  # of a function that has no `await`
    "http protected": 45,  # the token is known; its expiry and its scopes are checked
}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_call_passes_no_more_modules_and_functions(name: str) -> None:
    transport, tool = name.split()
    modules, functions = {"stdio": over_stdio, "http": over_http}[transport](tool)

    assert 0 < modules <= MOST_MODULES[name]
    assert 0 < functions <= MOST_FUNCTIONS[name]
