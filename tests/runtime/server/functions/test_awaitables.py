"""What is known of a function before it is called."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.runtime.server.functions.awaitables import may_wait

if TYPE_CHECKING:
    from collections.abc import Callable


async def _plain(thing: Any) -> Any:
    return thing


async def _making(thing: Any) -> Any:
    async def inner() -> Any:
        return await thing

    return inner


async def _awaiting(thing: Any) -> Any:
    return await thing


async def _entering(thing: Any) -> None:
    async with thing:
        pass


async def _iterating(thing: Any) -> None:
    async for _ in thing:
        pass


async def _collecting(thing: Any) -> list[Any]:
    return [each async for each in thing]


async def _collecting_awaited(things: Any) -> list[Any]:
    return [[await each for each in some] for some in things]


def _thread(thing: Any) -> Any:
    return thing


@wraps(_plain)
async def _wrapped(thing: Any) -> Any:
    return await _plain(thing)


class _Callable:
    async def __call__(self, thing: Any) -> Any:
        return thing


@pytest.mark.parametrize("function", [_plain, _making], ids=lambda each: each.__name__)
def test_a_coroutine_function_without_await_never_waits(function: Callable[..., Any]) -> None:
    assert not may_wait(function)


@pytest.mark.parametrize(
    "function",
    [
        _awaiting,
        _entering,
        _iterating,
        _collecting,
        _collecting_awaited,
        _thread,
        _wrapped,
        partial(_plain, 1),
        _Callable(),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_any_other_function_may_wait(function: Callable[..., Any]) -> None:
    assert may_wait(function)
