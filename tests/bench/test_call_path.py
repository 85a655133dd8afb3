"""The path of a call does not grow by accident: each module and function more is decided, and noted here."""

from __future__ import annotations

import pytest

from tests.bench.call_path import over_http, over_stdio

MOST_MODULES = {
    "stdio plain": 15,
    "stdio structured": 16,
    "http plain": 22,
    "http structured": 23,
    "http with_context": 24,
    "http protected": 23,
}
MOST_FUNCTIONS = {
    "stdio plain": 50,
    "stdio structured": 51,
    "http plain": 40,  # three count the turns of the event loop, one asks who calls: an address, a user or a token
    "http structured": 41,
    "http with_context": 45,  # of a function that has no `await`
    "http protected": 44,  # the token is known; its expiry and its scopes are checked
}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_call_passes_no_more_modules_and_functions(name: str) -> None:
    transport, tool = name.split()
    count = {"stdio": over_stdio, "http": over_http}[transport]
    # On a busy machine, a timer of the server can fire within one call; the path of a call is what all have.
    modules, functions = map(min, zip(*(count(tool) for _ in range(3)), strict=True))

    assert 0 < modules <= MOST_MODULES[name]
    assert 0 < functions <= MOST_FUNCTIONS[name]
