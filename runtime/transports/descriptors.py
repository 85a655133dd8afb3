"""Reading and writing descriptors without blocking, although O_NONBLOCK must not be set on them.

Theory of operation. O_NONBLOCK is not a property of a descriptor but of the open file description behind it. Other
processes may share that: the shell that started us, a terminal, a child. Setting the flag would break them, and a
process that is killed cannot reset it. So the flag is never set on a descriptor that we were given. Instead:

* A socket gets MSG_DONTWAIT with each call.
* A pipe or terminal is opened again by its name in ``/proc`` (Linux). That makes a file description of our own, with
  O_NONBLOCK.
* Where that fails, we read only after the event loop has reported the descriptor as readable, and write only PIPE_BUF
  bytes after `select.poll` has reported it as writable: POSIX guarantees that a pipe then takes them. (A terminal has
  no such guarantee, but it is read. If another process reads the same input we might block, but then it also takes
  our messages.)
* A regular file never blocks a writer. A file that the event loop cannot watch is read in a thread.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READ_BYTES", "Sink", "Source", "duplicate", "open_sink", "open_source"]

# The capacity of a pipe on Linux: one read empties it.
READ_BYTES: Final = 64 * 1024

# The first descriptor after standard input, output and error.
_FIRST_PRIVATE: Final = 3

Watching: TypeAlias = Literal["loop", "thread", "never"]
"""How to wait until a descriptor is ready: in the event loop, in a blocked thread, or not at all."""


@dataclass(frozen=True, slots=True)
class Source:
    """A descriptor to read from.

    Attributes:
        fd: The descriptor to watch.
        read: Read some bytes; none at the end. Raises BlockingIOError if there is nothing yet; in a thread, it waits.
        watching: How to wait.
        close: Close what was opened for it. The descriptor that it was made from stays open.
    """

    fd: int
    read: Callable[[], bytes]
    watching: Watching
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Sink:
    """A descriptor to write to.

    Attributes:
        fd: The descriptor to watch.
        write: Write some of the bytes and return how many. Raises BlockingIOError if none can be written now.
        watching: How to wait.
        close: Close what was opened for it. The descriptor that it was made from stays open.
    """

    fd: int
    write: Callable[[bytes | memoryview], int]
    watching: Watching
    close: Callable[[], None] = lambda: None


def duplicate(fd: int) -> int:
    """Return a duplicate of *fd* that no child inherits, with a number that is not of a standard stream."""
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl  # noqa: PLC0415 (Windows has none)

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)


def open_source(fd: int) -> Source:
    """Return a source that reads *fd*. Keep *fd* open while it is used."""
    mode = os.fstat(fd).st_mode
    if sys.platform == "win32":
        return Source(fd, partial(os.read, fd, READ_BYTES), "thread")
    if stat.S_ISSOCK(mode):
        own = socket.socket(fileno=os.dup(fd))
        return Source(own.fileno(), partial(own.recv, READ_BYTES, socket.MSG_DONTWAIT), "loop", own.close)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return Source(fd, partial(os.read, fd, READ_BYTES), "thread")
    if (reopened := _reopen(fd, os.O_RDONLY)) is None:
        return Source(fd, partial(os.read, fd, READ_BYTES), "loop")
    return Source(reopened, partial(os.read, reopened, READ_BYTES), "loop", partial(os.close, reopened))


def open_sink(fd: int) -> Sink:
    """Return a sink that writes to *fd*. Keep *fd* open while it is used."""
    mode = os.fstat(fd).st_mode
    if sys.platform == "win32":
        return Sink(fd, partial(os.write, fd), "thread")
    if stat.S_ISSOCK(mode):
        own = socket.socket(fileno=os.dup(fd))
        return Sink(own.fileno(), partial(_send, own), "loop", own.close)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return Sink(fd, partial(os.write, fd), "never")
    if (reopened := _reopen(fd, os.O_WRONLY)) is not None:
        return Sink(reopened, partial(os.write, reopened), "loop", partial(os.close, reopened))
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return Sink(fd, partial(_write_piece, poll, fd), "loop")


def _send(own: socket.socket, data: bytes | memoryview) -> int:
    return own.send(data, socket.MSG_DONTWAIT)


def _write_piece(poll: select.poll, fd: int, data: bytes | memoryview) -> int:
    if not poll.poll(0):
        raise BlockingIOError
    return os.write(fd, data[: select.PIPE_BUF])


def _reopen(fd: int, access: int) -> int | None:
    """Return a non-blocking descriptor of our own for the pipe or terminal *fd*; None if that is not possible."""
    try:
        reopened = os.open(f"/proc/self/fd/{fd}", access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no Linux, no /proc, the pipe of another user, or a pipe without a reader
        return None
    if os.path.samestat(os.fstat(fd), os.fstat(reopened)):
        return reopened
    os.close(reopened)
    return None
