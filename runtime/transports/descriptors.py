"""Descriptors that are read and written without ever waiting, and the standard ones, kept for the protocol alone.

Theory of operation. Whether an operation may wait, O_NONBLOCK, is no property of a descriptor but of the open file
description behind it, which other processes may share: the shell that started us, a terminal, a child. Setting it would
break them, and whoever is killed cannot set it back. So it is never set on what we were given. Instead,

* a socket is asked not to wait at each call (MSG_DONTWAIT);
* a pipe or terminal is opened again by its name in ``/proc``, which makes a description of our own, with O_NONBLOCK
  (Linux);
* where that cannot be done, a descriptor is read only when the event loop saw that it is readable, and written only in
  pieces of PIPE_BUF bytes after `select.poll` saw that it is writable, which is when POSIX promises that a pipe takes
  them. (A terminal promises nothing; but somebody reads it. A process that reads the same input could make us wait; but
  then it also steals our messages.)
* a regular file never waits to be written. What cannot be watched by an event loop is read in a thread.
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

# A pipe of Linux holds as much, so that one read empties it.
READ_BYTES: Final = 64 * 1024

# Behind the standard input, output and error.
_FIRST_PRIVATE: Final = 3

Watching: TypeAlias = Literal["loop", "thread", "never"]
"""Who waits until a descriptor is ready: the event loop, a thread that is blocked meanwhile, or nobody needs to."""


@dataclass(frozen=True, slots=True)
class Source:
    """A descriptor to read from.

    Attributes:
        fd: The descriptor to watch.
        read: Read some bytes, none at the end. It raises BlockingIOError if there is nothing yet, or waits in a thread.
        watching: Who waits.
        close: Give up what was opened for it. The descriptor that it was made of stays open.
    """

    fd: int
    read: Callable[[], bytes]
    watching: Watching
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Sink:
    """A descriptor to write to.

    Attributes:
        fd: The descriptor to watch.
        write: Write some of the bytes and return how many. It raises BlockingIOError if none can be written now.
        watching: Who waits.
        close: Give up what was opened for it. The descriptor that it was made of stays open.
    """

    fd: int
    write: Callable[[bytes | memoryview], int]
    watching: Watching
    close: Callable[[], None]


def duplicate(fd: int) -> int:
    """Return another descriptor of what *fd* is, which no child inherits and no program takes for a standard one."""
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl  # noqa: PLC0415 (Windows has none)

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)


def open_source(fd: int) -> Source:
    """Return a source of what *fd* has to read; *fd* must stay open as long."""
    mode = os.fstat(fd).st_mode
    if sys.platform == "win32":
        return Source(fd, partial(os.read, fd, READ_BYTES), "thread", _nothing)
    if stat.S_ISSOCK(mode):
        own = socket.socket(fileno=os.dup(fd))
        return Source(own.fileno(), partial(own.recv, READ_BYTES, socket.MSG_DONTWAIT), "loop", own.close)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return Source(fd, partial(os.read, fd, READ_BYTES), "thread", _nothing)
    if (again := _opened_again(fd, os.O_RDONLY)) is None:
        return Source(fd, partial(os.read, fd, READ_BYTES), "loop", _nothing)
    return Source(again, partial(os.read, again, READ_BYTES), "loop", partial(os.close, again))


def open_sink(fd: int) -> Sink:
    """Return a sink for what is written to *fd*, which must stay open as long."""
    mode = os.fstat(fd).st_mode
    if sys.platform == "win32":
        return Sink(fd, partial(os.write, fd), "thread", _nothing)
    if stat.S_ISSOCK(mode):
        own = socket.socket(fileno=os.dup(fd))
        return Sink(own.fileno(), partial(_send, own), "loop", own.close)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return Sink(fd, partial(os.write, fd), "never", _nothing)
    if (again := _opened_again(fd, os.O_WRONLY)) is not None:
        return Sink(again, partial(os.write, again), "loop", partial(os.close, again))
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return Sink(fd, partial(_write_piece, poll, fd), "loop", _nothing)


def _nothing() -> None:
    pass


def _send(own: socket.socket, data: bytes | memoryview) -> int:
    return own.send(data, socket.MSG_DONTWAIT)


def _write_piece(poll: select.poll, fd: int, data: bytes | memoryview) -> int:
    if not poll.poll(0):
        raise BlockingIOError
    return os.write(fd, data[: select.PIPE_BUF])


def _opened_again(fd: int, access: int) -> int | None:
    """Return a descriptor of our own, which does not wait, of the pipe or terminal *fd*; None if there is no way."""
    try:
        again = os.open(f"/proc/self/fd/{fd}", access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no Linux, no /proc, another user's pipe, or one that nobody reads any more
        return None
    if os.path.samestat(os.fstat(fd), os.fstat(again)):
        return again
    os.close(again)
    return None
