"""A store of tasks in a SQLite database, which the processes of one machine can share and which outlives them.

Each call is one short statement or transaction: reading takes some 25 µs, writing 250 µs. SQLite writes ahead in a log,
so readers do not wait for a writer. A task survives the end of every process; after a power failure, the changes of
the last moments may be missing.

A record may have megabytes, and SQLite takes 7 ms to read or to delete each of them. So the methods that find several
tasks return their briefs, and `expire` removes some of the tasks. SQLite reads the columns of a row up to the last one
that it needs, so the brief is before the record.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import weakref
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_file_path, check_numbers
from mcpgen.runtime.server.tasks.memory_task_store import StoreBounds, counted_bytes
from mcpgen.runtime.server.tasks.task_store import MAX_READ_BYTES, StoreFailed, StoreFull, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from mcpgen.runtime.server.tasks.task_store import Position

__all__ = ["SqliteTaskStore"]

# In the header of the database. Another layout gets another number, and a store refuses layouts that it does not know.
_LAYOUT: Final = 2

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, sharer TEXT NOT NULL, worker TEXT NOT NULL, status TEXT NOT NULL,
    has_ended INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, size INTEGER NOT NULL,
    brief BLOB NOT NULL, record BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS tasks_by_principal ON tasks (principal, created_ms, id);
CREATE INDEX IF NOT EXISTS tasks_by_sharer ON tasks (sharer, size);
CREATE INDEX IF NOT EXISTS tasks_by_expiry ON tasks (expires_ms);
CREATE INDEX IF NOT EXISTS unfinished_tasks ON tasks (worker) WHERE NOT has_ended;
CREATE TABLE IF NOT EXISTS workers (name TEXT PRIMARY KEY, beats INTEGER NOT NULL);
"""

# The first bytes of each file that is not empty (sqlite.org/fileformat.html, "The Database Header").
_MAGIC: Final = b"SQLite format 3\0"

# How many tasks without contents expire in one step, which takes 10 ms.
_MAX_EXPIRED: Final = 1000

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(TaskRecord).decode


class SqliteTaskStore:
    """A `TaskStore` in a SQLite database, for one process or several processes of one machine.

    Its tasks and results survive a restart of the server. Only the user who runs the server can read the file.

    Args:
        path: The file of the database. It is created if it does not exist. Do not put it on a network drive.
        lock_seconds: The time to wait for another process that writes; after it, a request fails. The server does
            nothing else in this time.
        max_tasks: The largest number of tasks of all owners together. An owner is a user, or else an address.
        max_tasks_per_principal: The largest number of tasks of one owner.
        max_outcome_bytes: The total size of all results, at most.
        max_outcome_bytes_per_principal: The total size of the results of one owner, at most.

    Raises:
        UsageError: A limit is not valid, or the folder of the file does not exist.
    """

    def __init__(  # noqa: PLR0913 (each limit by its name)
        self,
        path: str | os.PathLike[str],
        *,
        lock_seconds: float = 0.25,
        max_tasks: int = 10_000,
        max_tasks_per_principal: int = 1000,
        max_outcome_bytes: int = 1024 * 1024 * 1024,
        max_outcome_bytes_per_principal: int = 16 * 1024 * 1024,
    ) -> None:
        check_file_path("path", path)
        check_numbers(lock_seconds=lock_seconds)
        if not lock_seconds >= 0:
            raise UsageError(f"`lock_seconds` is {lock_seconds}; it must be 0 or more")
        self._path = Path(path)
        if self._path.is_dir():
            raise UsageError(f"`path` is {str(path)!r}, which is a folder; add the name of a file, such as tasks.db")
        if not self._path.parent.is_dir():
            raise UsageError(f"`path` is {str(path)!r}, but its folder does not exist; create the folder first")
        if self._path.is_file() and not _is_database(self._path):
            raise UsageError(f"`path` is {str(path)!r}, which is not a database of SQLite; name another file")
        self._lock_seconds = lock_seconds
        self._bounds = StoreBounds(
            max_tasks, max_tasks_per_principal, max_outcome_bytes, max_outcome_bytes_per_principal
        )
        self._lock = Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None  # with the id of the process: see `_connection`

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self._path)!r}>"

    @property
    def is_shared(self) -> bool:
        """Whether several processes use it."""
        return True

    @property
    def count(self) -> int:
        """The number of stored tasks."""
        with self._reading() as database:
            (found,) = _row(database, "SELECT count(*) FROM tasks")
            return int(found)

    def add(self, record: TaskRecord) -> None:
        """Store the record of a new task; see `TaskStore`."""
        with self._transaction() as database:
            of_all, all_bytes = _row(database, "SELECT count(*), total(size) FROM tasks")
            of_owner, owner_bytes = _row(
                database, "SELECT count(*), total(size) FROM tasks WHERE sharer = ?", record.sharer
            )
            exceeded = self._bounds.exceeded_count(of_owner, of_all)
            if exceeded is not None:
                limit, is_of_owner = exceeded
                _drop_cancelled(database, record.sharer if is_of_owner else None, limit)
            size = counted_bytes(record)
            if size:
                self._bounds.check_bytes(int(owner_bytes) + size, int(all_bytes) + size)
            try:
                database.execute(
                    "INSERT INTO tasks (id, principal, sharer, worker, status, has_ended, created_ms, expires_ms, size,"
                    " brief, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        record.task_id,
                        record.principal,
                        record.sharer,
                        record.worker,
                        record.status,
                        record.has_ended,
                        record.created_ms,
                        record.expires_ms,
                        size,
                        _encode(record.brief()),
                        _encode(record),
                    ),
                )
            except sqlite3.IntegrityError:
                reason = f"there is already a task with the id {record.task_id[:8]}…; give each task its own id"
                raise UsageError(reason) from None

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task; see `TaskStore`."""
        found = self._records("SELECT record FROM tasks WHERE id = ?", task_id)
        return found[0] if found else None

    def briefs(self, task_ids: Sequence[str]) -> list[TaskRecord]:
        """Return the briefs of those tasks that exist, in one step."""
        wanted = msgspec.json.encode(task_ids).decode()
        found = self._records("SELECT brief FROM tasks WHERE id IN (SELECT value FROM json_each(?))", wanted)
        by_id = {each.task_id: each for each in found}
        return [by_id[each] for each in task_ids if each in by_id]

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        """Replace the record that has the same `task_id`; see `TaskStore`."""
        with self._transaction() as database:
            found = database.execute("SELECT size, record FROM tasks WHERE id = ?", (record.task_id,)).fetchone()
            if found is None or (before is not None and _decode(found[1]) != before):
                return False
            size = counted_bytes(record)
            if size > found[0]:
                (all_bytes,) = _row(database, "SELECT total(size) FROM tasks")
                (owner_bytes,) = _row(database, "SELECT total(size) FROM tasks WHERE sharer = ?", record.sharer)
                more = size - found[0]
                self._bounds.check_bytes(int(owner_bytes) + more, int(all_bytes) + more)
            database.execute(
                "UPDATE tasks SET worker = ?, status = ?, has_ended = ?, expires_ms = ?, size = ?, brief = ?, "
                "record = ? WHERE id = ?",
                (
                    record.worker,
                    record.status,
                    record.has_ended,
                    record.expires_ms,
                    size,
                    _encode(record.brief()),
                    _encode(record),
                    record.task_id,
                ),
            )
            return True

    def remove(self, task_id: str) -> None:
        """Remove a task, if it exists."""
        self.remove_all([task_id])

    def remove_all(self, task_ids: Sequence[str]) -> None:
        """Remove those tasks that exist, in one step."""
        with self._transaction() as database:
            database.executemany("DELETE FROM tasks WHERE id = ?", [(each,) for each in task_ids])

    def page(self, principal: str, *, after: Position | None, limit: int) -> list[TaskRecord]:
        """Return the briefs of tasks of *principal*, oldest first; see `TaskStore`."""
        created_ms, task_id = (-1, "") if after is None else after
        return self._records(
            "SELECT brief FROM tasks WHERE principal = ? AND (created_ms, id) > (?, ?) ORDER BY created_ms, id LIMIT ?",
            principal,
            created_ms,
            task_id,
            limit,
        )

    def expire(self, now_ms: int) -> list[TaskRecord]:
        """Remove expired tasks, those first that expired first, and return their briefs; see `TaskStore`."""
        following = self.next_expiry_ms()
        if following is None or following > now_ms:  # usual, and needs no lock
            return []
        expired: list[TaskRecord] = []
        with self._transaction() as database:
            query = "SELECT brief, size FROM tasks WHERE expires_ms <= ? ORDER BY expires_ms, id LIMIT ?"
            rest = MAX_READ_BYTES
            for brief, size in database.execute(query, (now_ms, _MAX_EXPIRED)).fetchall():
                expired.append(_decode(brief))
                rest -= size
                if rest <= 0:
                    break
            database.executemany("DELETE FROM tasks WHERE id = ?", [(each.task_id,) for each in expired])
        return expired

    def next_expiry_ms(self) -> int | None:
        """Return the time at which the next task expires; None if there are no tasks."""
        with self._reading() as database:
            (found,) = _row(database, "SELECT min(expires_ms) FROM tasks")
            return None if found is None else int(found)

    def beat(self, worker: str) -> Mapping[str, int]:
        """Count one beat of *worker*; see `TaskStore`."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO workers VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET beats = beats + 1", (worker,)
            )
            removed = database.execute("SELECT DISTINCT worker FROM tasks WHERE NOT has_ended").fetchall()
            beats = database.execute("SELECT name, beats FROM workers").fetchall()
        return {**{name: 0 for (name,) in removed}, **dict(beats)}

    def unfinished(self, worker: str) -> list[TaskRecord]:
        """Return the briefs of the tasks of *worker* that have not ended."""
        return self._records("SELECT brief FROM tasks WHERE worker = ? AND NOT has_ended", worker)

    def remove_worker(self, worker: str) -> None:
        """Forget the beats of *worker*."""
        with self._transaction() as database:
            database.execute("DELETE FROM workers WHERE name = ?", (worker,))

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None and opened[0] == os.getpid():
                opened[1].close()

    def _records(self, query: str, *values: object) -> list[TaskRecord]:
        with self._reading() as database:
            return [_decode(each) for (each,) in database.execute(query, values).fetchall()]

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, _explained(self._path):
            yield self._connection()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._lock, _explained(self._path):
            database = self._connection()
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                if database.in_transaction:  # SQLite ends it itself if the disk is full
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _connection(self) -> sqlite3.Connection:
        """Return the connection of this process: SQLite forbids to carry one into a forked process."""
        process = os.getpid()
        if self._opened is None or self._opened[0] != process:
            self._opened = process, self._open()
            weakref.finalize(self, _close_in, *self._opened)  # a store may be dropped without `close`
        return self._opened[1]

    def _open(self) -> sqlite3.Connection:
        _keep_private(self._path)
        database = sqlite3.connect(
            self._path, timeout=self._lock_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            layout = self._layout(database)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            if layout == 0:
                database.executescript(f"BEGIN IMMEDIATE; {_CREATE} PRAGMA user_version = {_LAYOUT}; COMMIT;")
        except BaseException:
            database.close()
            raise
        return database

    def _layout(self, database: sqlite3.Connection) -> int:
        """Return the layout of the database, which is 0 if it is new.

        Raises:
            StoreFailed: The layout is unknown.
        """
        (layout,) = _row(database, "PRAGMA user_version")
        if layout not in {0, _LAYOUT}:
            raise StoreFailed(
                f"{self._path} was written by another version of mcpgen, or by another program; use another file"
            )
        return int(layout)


def _is_database(path: Path) -> bool:
    """Return whether *path* is a database, or an empty file; a file that cannot be read is told when it is opened."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) in (_MAGIC, b"")
    except OSError:
        return True


def _close_in(process: int, database: sqlite3.Connection) -> None:
    if process == os.getpid():
        database.close()


def _keep_private(path: Path) -> None:
    """Let only the user of this process read and write the file, which is created if need be.

    Records hold the calls that a worker runs again, so a user who could write them could call tools as any other.

    Raises:
        StoreFailed: The file belongs to another user.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # SQLite would let every user read a new file
    try:
        found = os.fstat(descriptor)
        if sys.platform != "win32":
            if found.st_uid != os.geteuid():
                raise StoreFailed(f"{path} belongs to another user of this machine; use another file")
            if found.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """Raise the errors of SQLite as those of a store.

    Raises:
        StoreFailed: The database is locked, damaged, or cannot be opened, or its disk is full.
    """
    try:
        yield
    except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
        raise StoreFailed(f"{path}: {error}") from error


def _row(database: sqlite3.Connection, query: str, *values: object) -> Sequence[Any]:
    with closing(database.execute(query, values)) as cursor:
        row: Sequence[Any] = cursor.fetchone()
        return row


def _drop_cancelled(database: sqlite3.Connection, sharer: str | None, limit: str) -> None:
    """Remove the oldest cancelled task of an owner, or of all for None.

    Raises:
        StoreFull: There is none.
    """
    removed = database.execute(
        "DELETE FROM tasks WHERE id = (SELECT id FROM tasks WHERE status = 'cancelled' "
        "AND (:sharer IS NULL OR sharer = :sharer) ORDER BY created_ms LIMIT 1)",
        {"sharer": sharer},
    )
    if not removed.rowcount:
        raise StoreFull(f"it has {limit}")
