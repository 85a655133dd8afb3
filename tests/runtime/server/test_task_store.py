"""Tasks in memory: never more than allowed, no longer than promised, each requestor's by themselves."""

from __future__ import annotations

import base64
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
from mcpgen.runtime.server.tasks.memory_task_store import MemoryTaskStore, counted_bytes
from mcpgen.runtime.server.tasks.redis_task_store import RedisTaskStore
from mcpgen.runtime.server.tasks.sqlite_task_store import SqliteTaskStore
from mcpgen.runtime.server.tasks.task_store import (
    FREE_OUTCOME_BYTES,
    Outcome,
    Position,
    Status,
    StoreFailed,
    StoreFull,
    TaskCall,
    TaskRecord,
    cursor_behind,
    forget_all,
    position_at,
)
from mcpgen.runtime.server.tasks.task_worker import TaskWorker
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TASKS = "basic/utilities/tasks"

AnyStore: TypeAlias = MemoryTaskStore | SqliteTaskStore | RedisTaskStore
NewStore: TypeAlias = "Callable[..., AnyStore]"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=needs_redis)])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Make a store of each kind, with the limits of the test."""
    made: list[SqliteTaskStore | RedisTaskStore] = []

    def make(**limits: int) -> AnyStore:
        if request.param == "memory":
            return MemoryTaskStore(**limits)
        if request.param == "redis":
            running: RedisServer = request.getfixturevalue("redis")
            running.command("FLUSHALL")
            made.append(RedisTaskStore(running.url, name="s", timeout_seconds=PATIENCE_SECONDS, **limits))
            return made[-1]
        made.append(SqliteTaskStore(tmp_path / "tasks.db", **limits))
        return made[-1]

    yield make
    for each in made:
        each.close()


def record(
    task_id: str, principal: str = "alice", *, status: Status = "working", created_ms: int = 0, ttl_ms: int = 1000
) -> TaskRecord:
    return TaskRecord(
        task_id=task_id,
        principal=principal,
        status=status,
        created_ms=created_ms,
        updated_ms=created_ms,
        ttl_ms=ttl_ms,
    )


def ended(before: TaskRecord, size: int) -> TaskRecord:
    return msgspec.structs.replace(before, status="completed", outcome=Outcome(b"x" * (size + FREE_OUTCOME_BYTES)))


def ids(store: AnyStore, principal: str = "alice", after: Position | None = None, limit: int = 100) -> list[str]:
    return [each.task_id for each in store.page(principal, after=after, limit=limit)]


def test_a_task_is_kept_changed_and_dropped(new_store: NewStore) -> None:
    store = new_store()
    store.add(record("a"))
    assert record("a") == store.get("a")

    store.replace(record("a", status="failed"))
    assert record("a", status="failed") == store.get("a")

    store.remove("a")
    store.remove("a")
    assert store.get("a") is None
    assert ([], None, 0) == (ids(store), store.next_expiry_ms(), store.count)


def test_a_task_that_is_gone_does_not_come_back_by_being_changed(new_store: NewStore) -> None:
    store = new_store()
    store.replace(record("a"))

    assert store.get("a") is None


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-id-requirements", "a57e2247")
def test_ids_are_unique_among_all_principals(new_store: NewStore) -> None:
    store = new_store()
    store.add(record("a", "alice"))

    with pytest.raises(UsageError, match="its own id"):
        store.add(record("a", "bob"))
    assert record("a", "alice") == store.get("a")


def test_tasks_come_oldest_first_and_each_principal_sees_its_own(new_store: NewStore) -> None:
    store = new_store()
    for each in (record("b", created_ms=2), record("a", created_ms=3), record("c", created_ms=1), record("d", "bob")):
        store.add(each)

    assert ["c", "b", "a"] == ids(store)
    assert ["c", "b"] == ids(store, limit=2)
    assert ["a"] == ids(store, after=(2, "b"))
    assert ["d"] == ids(store, "bob")
    assert [] == ids(store, "carol")


def test_a_page_goes_on_where_a_task_was_that_is_gone(new_store: NewStore) -> None:
    store = new_store()
    for number, task_id in enumerate("abcd"):
        store.add(record(task_id, created_ms=number))
    store.remove("b")

    assert ["c", "d"] == ids(store, after=(1, "b"))


@pytest.mark.spec("2025-11-25", f"{TASKS}#resource-management", "e28fd969")
def test_what_has_expired_is_dropped_whatever_its_status(new_store: NewStore) -> None:
    store = new_store()
    store.add(record("a", ttl_ms=10))
    store.add(record("b", ttl_ms=20, status="completed"))
    store.add(record("c", ttl_ms=30))

    assert [] == store.expire(9)
    assert 10 == store.next_expiry_ms()
    assert ["a", "b"] == [each.task_id for each in store.expire(20)]
    assert (30, 1, ["c"]) == (store.next_expiry_ms(), store.count, ids(store))


@pytest.mark.spec("2025-11-25", f"{TASKS}#resource-management")
def test_one_principal_cannot_fill_the_store(new_store: NewStore) -> None:
    store = new_store(max_tasks=3, max_tasks_per_principal=2)
    store.add(record("a"))
    store.add(record("b"))

    with pytest.raises(StoreFull):
        store.add(record("c"))
    store.add(record("d", "bob"))
    with pytest.raises(StoreFull):
        store.add(record("e", "carol"))
    assert (3, ["a", "b"]) == (store.count, ids(store))


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-cancellation")
def test_cancelled_tasks_make_room_oldest_first_and_those_with_results_do_not(new_store: NewStore) -> None:
    store = new_store(max_tasks_per_principal=3)
    store.add(record("a", created_ms=1, status="completed"))
    store.add(record("b", created_ms=2, status="cancelled"))
    store.add(record("c", created_ms=3, status="cancelled"))

    store.add(record("d", created_ms=4))
    assert ["a", "c", "d"] == ids(store)
    store.add(record("e", created_ms=5))
    assert ["a", "d", "e"] == ids(store)
    with pytest.raises(StoreFull):
        store.add(record("f", created_ms=6))


def test_a_full_store_drops_the_cancelled_tasks_of_anybody(new_store: NewStore) -> None:
    store = new_store(max_tasks=2)
    store.add(record("a", "bob", status="cancelled"))
    store.add(record("b"))
    store.add(record("c"))

    assert (["b", "c"], []) == (ids(store), ids(store, "bob"))


def test_results_are_bounded_for_each_principal_and_in_all(new_store: NewStore) -> None:
    store = new_store(max_outcome_bytes=25, max_outcome_bytes_per_principal=20)
    for task_id, principal in (("a", "alice"), ("b", "alice"), ("c", "bob")):
        store.add(record(task_id, principal))
    store.replace(ended(record("a"), 20))

    with pytest.raises(StoreFull, match=r"more than 20 bytes \(max_outcome_bytes_per_principal\)"):
        store.replace(ended(record("b"), 1))
    with pytest.raises(StoreFull, match=r"more than 25 bytes \(max_outcome_bytes\)"):
        store.replace(ended(record("c", "bob"), 6))
    assert record("b") == store.get("b")
    store.replace(ended(record("c", "bob"), 5))

    store.remove("a")
    store.replace(ended(record("b"), 20))
    assert ended(record("b"), 20) == store.get("b")


def test_a_worker_is_known_by_its_beats_and_its_tasks(new_store: NewStore) -> None:
    store = new_store()
    store.add(msgspec.structs.replace(record("a"), worker="lost"))
    store.add(msgspec.structs.replace(record("b"), worker="lost", status="completed"))
    store.add(msgspec.structs.replace(record("c"), worker="own é"))
    assert {"own é": 1, "lost": 0} == store.beat("own é")
    assert {"own é": 1, "lost": 1} == store.beat("lost")
    assert {"own é": 2, "lost": 1} == store.beat("own é")
    assert (["a"], ["c"]) == tuple([each.task_id for each in store.unfinished(name)] for name in ("lost", "own é"))

    assert store.replace(msgspec.structs.replace(record("a"), worker="own é"), before=store.get("a"))
    store.remove_worker("lost")
    store.remove_worker("unknown")
    assert {"own é": 3} == store.beat("own é")
    assert ["a", "c"] == sorted(each.task_id for each in store.unfinished("own é"))


def test_a_change_to_a_record_that_is_another_by_now_is_refused(new_store: NewStore) -> None:
    store = new_store()
    first, second = record("a"), msgspec.structs.replace(record("a"), status_message="é")
    store.add(first)

    assert store.replace(second, before=first)
    assert not store.replace(record("a", status="failed"), before=first)
    assert not store.replace(record("b"), before=record("b"))
    assert second == store.get("a")


@pytest.mark.slow
@needs_redis
def test_nothing_is_left_in_redis_of_tasks_that_are_gone(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    limits = {"max_tasks": 6, "max_tasks_per_principal": 4, "max_outcome_bytes": 5000}
    store = RedisTaskStore(redis.admin_url, name="s", timeout_seconds=PATIENCE_SECONDS, **limits)
    for number in range(300):
        task_id = "abcdefgh"[number * 7 % 8]
        held = store.get(task_id)
        try:
            if held is None:
                new = record(task_id, ("alice", "bob")[number % 2], created_ms=number, ttl_ms=40)
                store.add(msgspec.structs.replace(new, worker=f"w{number % 3}"))
            elif number % 5 == 0:
                store.remove(task_id)
            elif number % 3 == 0:
                store.replace(msgspec.structs.replace(held, status="cancelled"))
            else:
                store.replace(ended(held, number))
        except StoreFull:
            pass
        if number % 11 == 0:
            store.expire(number)
        listed = [each for name in ("alice", "bob") for each in store.page(name, after=None, limit=10)]
        total = sum(counted_bytes(full) for each in listed if (full := store.get(each.task_id)) is not None)
        assert store.count == len(listed) <= 6
        assert total == int(store._client.get(f"{store._prefix}total") or 0) <= 5000
    assert all(store._client.ttl(each) > 0 for each in store._client.keys("*"))
    store.expire(10_000)

    assert [f"{store._prefix}total".encode()] == store._client.keys("*")
    assert b"0" == store._client.get(f"{store._prefix}total")
    store.close()


@needs_redis
def test_a_record_that_changes_after_it_was_compared_is_not_replaced(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.command("FLUSHALL")
    store = RedisTaskStore(redis.url, name="s", timeout_seconds=PATIENCE_SECONDS)
    first, second = record("a"), record("a", status="input_required")
    store.add(first)
    read = store._stored

    def read_and_change(task_id: str) -> bytes | None:
        found = read(task_id)
        store.replace(second)
        return found

    monkeypatch.setattr(store, "_stored", read_and_change)

    assert not store.replace(record("a", status="failed"), before=first)
    assert second == store.get("a")
    store.close()


@needs_redis
def test_servers_of_other_names_share_no_tasks(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    one, other = (RedisTaskStore(redis.url, name=name, timeout_seconds=PATIENCE_SECONDS) for name in ("one", "other"))
    one.add(record("a"))

    assert (1, 0) == (one.count, other.count)
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        (None, {}, "`url` must be a string"),
        ("http://127.0.0.1", {}, "`url` or `options` of RedisTaskStore"),
        ("redis://127.0.0.1", {"timeout_seconds": 0}, "`timeout_seconds` must be greater than 0"),
        ("redis://127.0.0.1", {"name": ""}, "`name` of RedisTaskStore"),
    ],
)
def test_an_argument_of_a_redis_store_that_makes_no_sense_is_found_at_once(
    url: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        RedisTaskStore(url, **{"name": "s", **options})


def test_a_record_costs_memory_beside_its_result() -> None:
    store = MemoryTaskStore()
    store.add(record("a"))
    empty = store.kept_bytes
    store.replace(msgspec.structs.replace(ended(record("a"), 2000), status_message="é" * 100))

    assert 400 < empty < 1000
    assert empty + 2000 + 400 <= store.kept_bytes <= empty + 2000 + 400 + FREE_OUTCOME_BYTES


def test_an_error_in_a_few_words_always_finds_room(new_store: NewStore) -> None:
    store = new_store(max_outcome_bytes=0, max_outcome_bytes_per_principal=0)
    store.add(record("a"))
    store.replace(ended(record("a"), 0))

    assert ended(record("a"), 0) == store.get("a")


@pytest.mark.parametrize("options", [{"max_tasks": 0}, {"max_tasks_per_principal": 0}, {"max_outcome_bytes": -1}])
def test_a_store_without_room_is_the_callers_mistake(new_store: NewStore, options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must be at least 1"):
        new_store(**options)


actions = st.tuples(
    st.sampled_from(["add", "end", "cancel", "remove", "expire"]),
    st.sampled_from("abcdefgh"),
    st.sampled_from(["alice", "bob"]),
    st.integers(0, 30),
)


@pytest.mark.slow
@given(actions=st.lists(actions, max_size=60))
def test_nothing_is_left_of_what_was_dropped_and_no_bound_is_passed(actions: list[tuple[str, str, str, int]]) -> None:
    store = MemoryTaskStore(max_tasks=5, max_tasks_per_principal=3, max_outcome_bytes=50)
    for action, task_id, principal, number in actions:
        held = store.get(task_id)
        try:
            if action == "add" and held is None:
                store.add(record(task_id, principal, created_ms=number, ttl_ms=10))
            elif action == "end" and held is not None:
                store.replace(ended(held, number))
            elif action == "cancel" and held is not None:
                store.replace(msgspec.structs.replace(held, status="cancelled", outcome=None))
            elif action == "remove":
                store.remove(task_id)
            elif action == "expire":
                store.expire(number)
        except StoreFull:
            pass
        listed = [each for name in ("alice", "bob") for each in store.page(name, after=None, limit=10)]
        assert store.count == len(listed) == len(store._expiries) <= 5
        assert all(len(order) <= 3 for order in store._order.values())
        assert store._total_bytes == sum(store._bytes.values()) <= 50
        assert all(store.get(each.task_id) == each for each in listed)
    store.expire(1000)

    assert (0, 0, {}, {}, []) == (store.count, store._total_bytes, store._bytes, store._order, store._expiries)
    assert store.kept_bytes == 0


@given(created_ms=st.integers(0, 2**63 - 1), task_id=st.text(max_size=43))
def test_a_cursor_leads_back_to_its_position(created_ms: int, task_id: str) -> None:
    assert (created_ms, task_id) == position_at(cursor_behind((created_ms, task_id)))


@pytest.mark.spec("2025-11-25", f"{TASKS}#protocol-errors")
@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "optional-cursor-value",
        "AAAAAAAAAA",
        "AAAAAAAAAAFh\n",
        "AAAAAAAA AAFh",
        "é",
        "AAAAAAAAAAH_",
        "A" * 100_000,
        base64.urlsafe_b64encode(b"\0" * 7).decode(),
        base64.urlsafe_b64encode(b"\xff" * 8 + b"abc").decode(),  # later than SQLite can count
    ],
)
def test_what_is_no_cursor_of_ours_is_known_as_such(cursor: str) -> None:
    assert position_at(cursor) is None


@needs_redis
def test_redis_returns_many_records_in_one_step(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    store = RedisTaskStore(redis.url, name="s", timeout_seconds=PATIENCE_SECONDS)
    for each in ("a", "b", "c"):
        store.add(record(each))

    assert [record("c"), record("a")] == store.briefs(["c", "unknown", "a"])
    assert [] == store.briefs([])
    store.close()


def test_the_tasks_of_a_session_are_removed_in_few_steps(new_store: NewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store()
    if isinstance(store, MemoryTaskStore):
        return  # its steps take a microsecond
    for number in range(200):
        store.add(record(f"{number}", status="completed"))
    store.add(record("0 of bob", "bob"))
    step, count = ("_do" if isinstance(store, RedisTaskStore) else "_connection"), 0
    take: Callable[..., object] = getattr(store, step)

    def counted(*arguments: object) -> object:
        nonlocal count
        count += 1
        return take(*arguments)

    monkeypatch.setattr(store, step, counted)
    forget_all(store, ["alice"])

    assert count < 20
    assert ([], ["0 of bob"]) == (ids(store), ids(store, "bob"))


@needs_redis
def test_redis_sends_the_content_of_one_task_only(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    store = RedisTaskStore(redis.admin_url, name="s", timeout_seconds=PATIENCE_SECONDS)
    large = b"[%s]" % (b" " * 1_000_000)
    names = [str(number) for number in range(8)]
    for each in names:
        call = TaskCall(params=large, capabilities=b"{}")
        asking = {"input_requests": b"{}", "input_responses": b"{}"}
        store.add(msgspec.structs.replace(record(each), worker="w", call=call, **asking))

    def sent() -> int:
        return int(store._client.info("stats")["total_net_output_bytes"])

    before = sent()
    found = [
        store.briefs(names),
        store.unfinished("w"),
        store.page("alice", after=None, limit=100),
        store.expire(1000),
    ]

    assert sent() - before < 64 * 1024
    assert [[record(each).brief() for each in names]] * 4 == [
        [msgspec.structs.replace(brief, worker="") for brief in sorted(briefs, key=lambda each: each.task_id)]
        for briefs in found
    ]
    store.close()


def test_sqlite_reads_and_expires_the_contents_of_few_tasks(tmp_path: Path) -> None:
    large = Outcome(b"[%s]" % (b" " * 1_000_000))
    names = [str(number) for number in range(8)]
    store = SqliteTaskStore(tmp_path / "tasks.db")
    for each in names:
        asking = {"input_requests": b"{}", "input_responses": b"{}", "outcome": large}
        store.add(msgspec.structs.replace(record(each), worker="w", **asking))
    briefs = [msgspec.structs.replace(record(each), worker="w") for each in names]

    assert briefs == store.unfinished("w") == store.page("alice", after=None, limit=100) == store.briefs(names)
    assert [briefs[2], briefs[0]] == store.briefs(["2", "unknown", "0"])
    assert [] == store.briefs([])

    tasks = TaskLifecycle(store, clock=lambda: 1.0, random_bytes=bytes)
    assert 1.0 == tasks.expire()  # the others expire in the next turns of the loop
    assert 7 == store.count
    with pytest.raises(RequestError, match="may have expired"):
        tasks.own("7", principal="alice", revision="2025-11-25", access=None)
    for _ in names:
        tasks.expire()
    assert 0 == store.count
    store.close()


def test_tasks_without_contents_expire_in_steps_of_a_thousand(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db", max_tasks_per_principal=2000)
    for number in range(1200):
        store.add(record(f"{number}"))

    assert [1000, 200, 0] == [len(store.expire(1000)) for _ in range(3)]
    store.close()


def test_the_tasks_of_a_dead_worker_are_taken_over_in_steps(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    for number in range(100):
        store.add(msgspec.structs.replace(record(f"{number}"), worker="dead"))
    tasks = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes, worker="alive")
    engine: Any = SimpleNamespace(handlers=None)
    worker = TaskWorker(engine, tasks, monotonic=lambda: 0.0)
    left: list[int] = []
    soon = worker.tick()
    while soon == 0:
        left.append(len(store.unfinished("dead")))
        soon = worker.tick()

    assert [68, 36, 4] == left
    assert [] == store.unfinished("dead")
    assert {"failed"} == {each.status for each in store.page("alice", after=None, limit=1000)}
    store.close()


def test_a_worker_that_was_suspended_itself_does_not_take_the_tasks_of_others(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    store.add(msgspec.structs.replace(record("1"), worker="other"))
    store.beat("other")
    tasks = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes, worker="own")
    now = 0.0
    engine: Any = SimpleNamespace(handlers=None)
    worker = TaskWorker(engine, tasks, monotonic=lambda: now)
    worker.tick()
    now += 100 * tasks.limits.lease_seconds  # in which the other one was suspended, too
    worker.tick()
    while_suspended = len(store.unfinished("other"))
    for _ in range(3):
        now += tasks.limits.lease_seconds / 3
        worker.tick()

    assert (1, 0) == (while_suspended, len(store.unfinished("other")))
    store.close()


class FailingStore(SqliteTaskStore):
    """A store that fails now and then, as one does that another process has locked."""

    fails: bool = False

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        if self.fails:
            raise StoreFailed("locked")
        return super().replace(record, before=before)

    def page(self, principal: str, *, after: Position | None, limit: int) -> list[TaskRecord]:
        if self.fails:
            raise StoreFailed("locked")
        return super().page(principal, after=after, limit=limit)


@pytest.mark.parametrize(("size", "steps"), [(10, [33, 66, 99, 100]), (100_000, [4, 8, 12, 16, 20, 24, 28, 32])])
def test_the_ends_of_tasks_are_stored_in_steps_once_the_store_works(
    tmp_path: Path, size: int, steps: list[int]
) -> None:
    store = FailingStore(tmp_path / "tasks.db")
    ids = [f"{number}" for number in range(steps[-1])]
    for each in ids:
        store.add(msgspec.structs.replace(record(each), worker="alive"))
    tasks = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes, worker="alive")
    engine: Any = SimpleNamespace(handlers=None)
    worker = TaskWorker(engine, tasks, monotonic=lambda: 0.0)
    store.fails = True
    for each in ids:
        tasks.change(each, "completed", outcome=Outcome(b'"%b"' % (b"x" * size)))
    assert worker.tick() == 1.0
    store.fails = False

    saved: list[int] = []
    while not saved or saved[-1] < len(ids):
        worker.tick()
        saved.append(sum(found is not None and found.has_ended for found in map(store.get, ids)))

    assert saved == steps
    store.close()


def test_an_end_is_kept_if_the_store_is_full_and_then_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FailingStore(tmp_path / "tasks.db")
    store.add(msgspec.structs.replace(record("one"), worker="alive"))
    tasks = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes, worker="alive")
    store.fails = True
    tasks.change("one", "completed", outcome=Outcome(b'"%b"' % (b"x" * 10_000)))

    def full(_record: TaskRecord, **_before: object) -> bool:
        monkeypatch.undo()
        raise StoreFull("no room")

    monkeypatch.setattr(store, "replace", full)
    with suppress(StoreFailed):
        tasks.save()
    store.fails = False

    assert tasks.save()
    found = store.get("one")
    assert found is not None
    assert found.status == "completed"
    store.close()


def test_the_tasks_of_sessions_that_end_are_removed_in_steps_and_once_the_store_works(tmp_path: Path) -> None:
    store = FailingStore(tmp_path / "tasks.db", max_tasks_per_principal=2000)
    for number in range(120):
        store.add(record(f"{number}", "alice" if number % 2 else "bob", status="completed"))
    tasks = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes, worker="alive")
    engine: Any = SimpleNamespace(handlers=None)
    worker = TaskWorker(engine, tasks, monotonic=lambda: 0.0)
    assert not worker.forget("alice")  # it does not run
    worker._spawner = engine
    assert worker.forget("alice")
    assert worker.forget("bob")
    store.fails = True
    assert worker.tick() == 1.0
    store.fails = False
    left = []
    while worker.tick() == 0:
        left.append(store.count)

    assert [70, 60, 60, 10, 0, 0] == left
    forget_all(store, ["nobody"])
    store.fails = True
    forget_all(store, ["alice"])  # the end of a session does not fail
    store.close()
