"""Starting coroutines: entered, cancelled, kept alive and reported alike on both event loops."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
import trio

from mcpgen.runtime.transports.spawner import StartedFunction, is_asyncio, open_group, open_spawner
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

pytestmark = pytest.mark.anyio

PLACE: ContextVar[str] = ContextVar("place")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_what_is_started_runs_with_its_arguments() -> None:
    seen: list[tuple[int, str]] = []
    over = anyio.Event()

    async def work(number: int, text: str) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((number, text))
        over.set()

    async with open_spawner() as spawner:
        spawner.start(work, 1, "a")
        with anyio.fail_after(PATIENCE_SECONDS):
            await over.wait()

    assert [(1, "a")] == seen


async def test_a_handle_cancels_what_it_stands_for_and_nothing_else() -> None:
    ends: list[str] = []
    begun, over = anyio.Event(), anyio.Event()

    async def waiting() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")
            over.set()

    async def living() -> None:
        await over.wait()
        ends.append("alive")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            handle = spawner.start(waiting)
            spawner.start(living)
            await begun.wait()
            handle.cancel()
            await over.wait()
            for _ in range(3):
                await anyio.lowlevel.checkpoint()

    assert ["cancelled", "alive"] == ends


async def test_what_is_cancelled_before_its_first_step_is_entered_nevertheless() -> None:
    steps: list[str] = []
    over = anyio.Event()

    async def work() -> None:
        steps.append("entered")
        try:
            await anyio.lowlevel.checkpoint()
            await anyio.sleep_forever()
        finally:
            steps.append("cancelled")
            over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(work).cancel()
            await over.wait()

    assert ["entered", "cancelled"] == steps


async def test_cancelling_what_is_over_does_nothing() -> None:
    over = anyio.Event()

    async def work() -> None:
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            handle = spawner.start(work)
            await over.wait()
            await anyio.lowlevel.checkpoint()
            handle.cancel()
            handle.cancel()


async def test_what_still_runs_at_the_end_is_cancelled_and_waited_for() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            ends.append("cleaned up")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            for _ in range(3):
                spawner.start(work)

    assert ["cleaned up"] * 3 == ends


async def test_what_is_cancelled_from_outside_waits_for_what_it_started() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    with anyio.fail_after(PATIENCE_SECONDS), anyio.CancelScope() as scope:
        async with open_spawner() as spawner:
            spawner.start(work)
            await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.sleep_forever()

    assert ["cancelled"] == ends


@pytest.mark.parametrize("failure", [RuntimeError("as told"), SystemExit(3)])
async def test_a_failure_is_logged_and_ends_nothing_else(
    failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    failed, over = anyio.Event(), anyio.Event()

    async def failing() -> None:
        try:
            await anyio.lowlevel.checkpoint()
            raise failure
        finally:
            failed.set()

    async def living() -> None:
        await failed.wait()
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(living)
            spawner.start(failing)
            await over.wait()

    (record,) = caplog.records
    assert logging.ERROR == record.levelno
    assert record.exc_info is not None
    assert failure is record.exc_info[1]


async def test_context_variables_of_the_caller_are_seen_and_not_changed() -> None:
    seen: list[str] = []
    over = anyio.Event()

    async def work() -> None:
        seen.append(PLACE.get())
        PLACE.set("inside")
        over.set()

    PLACE.set("outside")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(work)
            await over.wait()

    assert (["outside"], "outside") == (seen, PLACE.get())


async def test_the_first_steps_may_be_over_when_start_returns(anyio_backend: str) -> None:
    steps: list[str] = []
    over = anyio.Event()

    async def work() -> None:
        steps.append("work")
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(work)
            steps.append("started")
            await over.wait()

    is_eager = anyio_backend == "asyncio" and sys.version_info >= (3, 12)
    assert (["work", "started"] if is_eager else ["started", "work"]) == steps


async def test_what_is_started_between_hold_and_release_runs_after_release() -> None:
    steps: list[str] = []
    over = anyio.Event()

    async def work(name: str) -> None:
        steps.append(name)
        await anyio.lowlevel.checkpoint()
        steps.append(f"{name} went on")

    async def last() -> None:
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.hold()
            spawner.start(work, "cancelled").cancel()
            steps.append("held")
            spawner.start(last)
            spawner.release()
            await over.wait()

    assert ["held", "cancelled"] == steps


async def test_what_asks_to_be_cancelled_in_its_first_steps_is() -> None:
    handles: list[StartedFunction] = []
    ends: list[str] = []
    over = anyio.Event()

    async def work() -> None:
        try:
            if handles:  # eager ones have no handle yet
                handles[0].cancel()
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")
            over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            handles.append(spawner.start(work))
            handles[0].cancel()
            await over.wait()

    assert ["cancelled"] == ends


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.slow
async def test_tasks_are_kept_alive(anyio_backend: str) -> None:
    del anyio_backend
    ends: list[str] = []
    over = anyio.Event()

    async def work() -> None:
        nobody_else_holds: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await nobody_else_holds
        finally:
            ends.append("ended")

    async with open_spawner() as spawner:
        spawner.start(work)
        await anyio.lowlevel.checkpoint()
        gc.collect()
        assert [] == ends
        over.set()

    assert ["ended"] == ends


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_was_cancelled_needs_no_collector(anyio_backend: str) -> None:
    class Held:
        pass

    async def work(held: Held) -> None:
        await anyio.sleep_forever()
        del held

    del anyio_backend
    gc.disable()
    try:
        async with open_spawner() as spawner:
            held = Held()
            gone = weakref.ref(held)
            handle = spawner.start(work, held)
            del held
            await anyio.wait_all_tasks_blocked()
            handle.cancel()
            del handle
            await anyio.wait_all_tasks_blocked()

            assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_swallows_its_cancellation_is_left_behind_with_a_word(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    del anyio_backend
    enough, over = anyio.Event(), anyio.Event()

    async def stubborn() -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(stubborn)
            await anyio.lowlevel.checkpoint()
        enough.set()
        await over.wait()

    (record,) = caplog.records
    assert "catches its cancellation" in record.getMessage()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_nobody_asked_for_is_logged(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    del anyio_backend
    over = anyio.Event()

    async def work() -> None:
        try:
            raise asyncio.CancelledError
        finally:
            over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_spawner() as spawner:
            spawner.start(work)
            await over.wait()
            await anyio.lowlevel.checkpoint()

    assert ["a handler raised a cancellation exception, but nothing cancelled the handler"] == [
        each.getMessage() for each in caplog.records
    ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_factory_is_respected(anyio_backend: str) -> None:
    del anyio_backend
    made: list[str] = []
    over = anyio.Event()
    loop = asyncio.get_running_loop()

    def factory(loop: asyncio.AbstractEventLoop, work: object, **options: object) -> asyncio.Task[object]:
        made.append("task")
        return asyncio.Task(work, loop=loop, **options)  # type: ignore[arg-type] # (handed on as it came)

    async def work() -> None:
        over.set()

    loop.set_task_factory(factory)  # type: ignore[arg-type] # (typeshed's protocol is generic in what tasks return)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with open_spawner() as spawner:
                spawner.start(work)
                await over.wait()
                assert ["task"] == made
    finally:
        loop.set_task_factory(None)


async def run_together(*works: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Start *works* together, and return when all have ended."""
    async with open_spawner() as spawner:
        spawner.hold()
        handles = [spawner.start(each) for each in works]
        spawner.release()
        with anyio.fail_after(PATIENCE_SECONDS):
            await anyio.wait_all_tasks_blocked()
        del handles


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_functions_that_do_not_wait_share_a_task_and_others_have_their_own(anyio_backend: str) -> None:
    del anyio_backend
    tasks: list[asyncio.Task[object] | None] = []

    async def brief() -> None:
        tasks.append(asyncio.current_task())

    async def waiting() -> None:
        await brief()
        await anyio.lowlevel.checkpoint()

    await run_together(brief, brief, waiting, brief, waiting)

    assert tasks[0] is tasks[1] is tasks[2]
    assert 3 == len(set(tasks))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("first", ["sets a variable", "cancels its task", "raises a cancellation", "exits"])
async def test_a_function_leaves_nothing_to_those_that_it_could_share_a_task_with(
    anyio_backend: str, first: str
) -> None:
    del anyio_backend
    seen: list[str | None] = []

    async def leaving() -> None:
        if first == "sets a variable":
            PLACE.set("mine")
        elif first == "cancels its task":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        elif first == "raises a cancellation":
            raise asyncio.CancelledError
        else:
            raise SystemExit(3)

    async def looking() -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(PLACE.get(None))

    await run_together(leaving, looking, leaving, leaving, looking)

    assert [None, None] == seen


@pytest.mark.parametrize("when", ["before they run", "while one waits"])
async def test_of_functions_that_run_together_one_is_cancelled(when: str) -> None:
    ends: dict[str, str] = {}

    async def waiting(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends[name] = "cancelled"

    async def brief(name: str) -> None:
        ends[name] = "returned"

    async with open_spawner() as spawner:
        spawner.hold()
        spawner.start(brief, "first")
        handle = spawner.start(waiting, "second")
        spawner.start(brief, "third")
        spawner.start(waiting, "fourth")
        if when == "before they run":
            handle.cancel()
        spawner.release()
        if when == "while one waits":
            await anyio.wait_all_tasks_blocked()
            handle.cancel()
        await anyio.wait_all_tasks_blocked()

        assert {"first": "returned", "second": "cancelled", "third": "returned"} == ends
    assert "cancelled" == ends["fourth"]


async def test_functions_that_run_together_are_entered_even_at_the_end() -> None:
    ends: list[int] = []

    async def work(number: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append(number)

    async with open_spawner() as spawner:
        spawner.hold()
        for number in range(3):
            spawner.start(work, number)
        spawner.release()

    assert [0, 1, 2] == sorted(ends)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_no_task_of_a_group_is_interrupted_from_the_keyboard(anyio_backend: str) -> None:
    """A client's tasks descend from a system task, in which trio takes `KeyboardInterrupt` for an error of its own."""
    del anyio_backend
    is_protected: list[bool] = []
    over = anyio.Event()

    async def work() -> None:
        is_protected.append(trio.lowlevel.currently_ki_protected())
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with open_group() as group:
            group.start_soon(work)
            await over.wait()

    assert [True] == is_protected


async def test_the_library_is_recognised(anyio_backend: str) -> None:
    assert (anyio_backend == "asyncio") == is_asyncio()


def test_without_an_event_loop_there_is_no_asyncio() -> None:
    assert not is_asyncio()
