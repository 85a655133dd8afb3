"""The process of a server, together with all that it starts.

Theory of operation. A server is often not one process: a package runner starts the server proper, a shell script starts
three. So each is the leader of a session, and of a process group, of its own: one signal reaches all of them, and an
interrupt from the keyboard reaches none; whoever is interrupted ends them in order. What leaves the group (a daemon,
which calls setsid) cannot be reached; it was meant to stay.

A group is known by the number of its leader, and the system may give that number to a new process, and a new group, as
soon as the leader was waited for and the group is empty. A signal that comes after that would hit a stranger. Hence the
rule: *nobody waits for the leader before the group got its last signal*. Until then it stays in the table of processes,
dead perhaps, and holds the number. Its end is noticed otherwise: a descriptor of the process (pidfd, Linux) becomes
readable, which the event loop sees at once, and `os.waitid` tells the status and leaves the process where it is
(WNOWAIT). Where there is no such descriptor, waitid is asked every now and then. Neither needs a thread, nor a handler
of SIGCHLD, of which there is only one in a process, and it is not ours.

Somebody else may wait for our leader: a handler of SIGCHLD that waits for any child, or the system itself if SIGCHLD is
ignored. Its status is unknown then. A descriptor still means this process and its group, and no other, so that a signal
through it (Linux 6.9) cannot go astray; without one the group gets no more signals.

Whether anybody is left in the group when the leader is dead cannot be asked by a signal, which the dead accept, too;
``/proc`` tells. Where there is none, the system's kill() passes over the dead.

Systems without waitid (macOS before Python 3.13) can only notice an end by waiting for the process. There what is left
of the group is killed in the same breath, before the number can be used again.

On Windows there are no groups: the process alone is ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports.command_line import missing_scheme
from mcpgen.runtime.transports.descriptors import duplicate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ChildProcess", "read_chunk"]

# Of pidfd_send_signal(2): to the group that the process leads. The signal module has no name for it.
_TO_THE_GROUP: Final = 1 << 2

# How often is looked where nothing can be watched: soon at first, because most end soon.
_FIRST_LOOK_SECONDS: Final = 0.001
_LOOK_SECONDS: Final = 0.03

# What the system may take to end a process that was killed, if nobody can await it any more.
_DYING_SECONDS: Final = 0.1

# Standard input, output and error.
_STANDARD: Final = 3


class ChildProcess:
    """A process with pipes as its standard streams, whose other ends never wait and are inherited by nobody.

    Attributes:
        stdin: Where its input is written to.
        stdout: Where its output is read.
        stderr: Where its errors are read.
        exited: Set when its end was noticed; `watch` must be running.
        status: Its exit status, negative for the signal that ended it; None before its end, and if it cannot be known.

    Raises:
        UsageError: It cannot be started. Nothing is left behind.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], directory: str | None) -> None:
        if directory is not None and not Path(directory).is_dir():
            raise UsageError(f"{command[0]!r} cannot be started in {directory!r}, which is not a directory")
        opened: list[int] = []
        try:
            theirs = self._open_pipes(opened)
            self._popen = _launch(command, environment, directory, theirs)
        except (OSError, ValueError) as error:
            for fd in opened:
                os.close(fd)
            raise UsageError(f"{command[0]!r} cannot be started: {_reason(error, command[0])}") from error
        for fd in theirs:
            os.close(fd)
        self.exited: anyio.Event = anyio.Event()
        self.status: int | None = None
        self._has_exited = False
        self._is_reaped = False  # by whomever
        self._pidfd = _open_pidfd(self._popen.pid)
        self._open = {self.stdin, self.stdout, self.stderr}

    def _open_pipes(self, opened: list[int]) -> tuple[int, int, int]:
        """Set our ends and return the process's; note in *opened* what is to be closed if it cannot be started."""
        self.stdin: int
        self.stdout: int
        self.stderr: int
        stdin, self.stdin = _pipe(opened)
        self.stdout, stdout = _pipe(opened)
        self.stderr, stderr = _pipe(opened)
        if sys.platform != "win32":
            for fd in (self.stdin, self.stdout, self.stderr):
                os.set_blocking(fd, False)
        return stdin, stdout, stderr

    async def watch(self) -> None:
        """Notice its end, and return then. Only one task may do so."""
        if self._pidfd is not None:
            await anyio.wait_readable(self._pidfd)
        seconds = _FIRST_LOOK_SECONDS
        while not self._look():
            await anyio.sleep(seconds)
            seconds = min(2 * seconds, _LOOK_SECONDS)
        self.exited.set()

    async def others_ended(self) -> None:
        """Return when nobody but the leader is left in the group."""
        seconds = _FIRST_LOOK_SECONDS
        while self.has_others():
            await anyio.sleep(seconds)
            seconds = min(2 * seconds, _LOOK_SECONDS)

    def has_others(self) -> bool:
        """Whether anybody but the leader is alive in the group."""
        if sys.platform == "win32":
            return False
        self._look()
        if self._is_reaped and self._pidfd is None:  # nor could anything be sent to them
            return False
        with suppress(OSError):
            # It may be mounted for another namespace of processes, with other numbers.
            if os.readlink("/proc/self") == str(os.getpid()):  # noqa: PTH115 (a Path of it would be no number)
                return any(map(self._is_other, os.listdir("/proc")))  # noqa: PTH208 (names are numbers here)
        try:
            os.killpg(self._popen.pid, 0)
        except OSError:
            return False
        return True

    def terminate(self) -> None:
        """Tell all of the group to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End all of the group."""
        if sys.platform == "win32":
            self._popen.kill()
        else:
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if sys.platform == "win32":
            self._popen.terminate()
            return
        if sys.platform == "linux" and self._pidfd is not None:
            try:
                signal.pidfd_send_signal(self._pidfd, number, None, _TO_THE_GROUP)
            except ProcessLookupError:
                return
            except OSError:  # an older system, or one that forbids it
                pass
            else:
                return
        self._look()  # somebody may have waited for it since
        if not self._is_reaped:
            with suppress(ProcessLookupError, PermissionError):  # all of it is dead, or has other rights
                os.killpg(self._popen.pid, number)

    def close_stdin(self) -> None:
        """Tell it that no more will come."""
        self._close(self.stdin)

    def release(self) -> bool:
        """Wait for the leader, give its number back, and close all; return whether it is dead.

        If it is not, all of its group is killed. This does not wait for the event loop, so that it works where nothing
        can be awaited any more.
        """
        if not self._look() or self.has_others():
            self.kill()
            until = time.monotonic() + _DYING_SECONDS
            while not self._look() and time.monotonic() < until:
                time.sleep(_FIRST_LOOK_SECONDS)
        if self._has_exited:
            self._popen.poll()
        for fd in list(self._open):
            self._close(fd)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        self._is_reaped = True  # or given up: its number is not ours any more
        return self._has_exited

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)

    def _look(self) -> bool:
        """Return whether it has ended, and note how, without giving up its number."""
        if self._is_reaped:
            return self._has_exited
        if sys.platform == "win32":
            self.status = self._popen.poll()
            self._has_exited = self.status is not None
        elif not hasattr(os, "waitid"):
            self._look_by_waiting()
        else:
            try:
                found = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # somebody else has waited for it
                self._has_exited = self._is_reaped = True
                return True
            if found is not None:
                self._has_exited = True
                self.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self._has_exited

    def _look_by_waiting(self) -> None:
        status = self._popen.poll()
        if status is not None and sys.platform != "win32":
            with suppress(OSError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self.status = status
            self._has_exited = self._is_reaped = True

    def _is_other(self, name: str) -> bool:
        if sys.platform == "win32" or not name.isdecimal() or int(name) == self._popen.pid:
            return False
        try:
            if os.getpgid(int(name)) != self._popen.pid:
                return False
            # "number (name) state …": the name may hold anything, and the dead wait for their own parent.
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:  # it has just ended
            return False
        return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


async def read_chunk(fd: int, size: int) -> bytes:
    """Return at most *size* bytes that are read from one of our ends, none at the end."""
    if sys.platform == "win32":
        limiter = anyio.CapacityLimiter(1)  # our own: others may be taken by what hangs
        return await anyio.to_thread.run_sync(os.read, fd, size, limiter=limiter, abandon_on_cancel=True)
    while True:
        await anyio.wait_readable(fd)
        try:
            return os.read(fd, size)
        except BlockingIOError:
            continue


def _pipe(opened: list[int]) -> tuple[int, int]:
    read, write = os.pipe()
    opened += (read, write)
    opened[-2] = read = _private(read)
    opened[-1] = write = _private(write)
    return read, write


def _private(fd: int) -> int:
    """Return *fd*, or another in its place if its number is that of a standard stream.

    If one of those is closed, its number is free; but whoever prints would write to it.
    """
    if fd >= _STANDARD:
        return fd
    own = duplicate(fd)
    os.close(fd)
    return own


def _launch(
    command: Sequence[str], environment: Mapping[str, str], directory: str | None, streams: tuple[int, int, int]
) -> subprocess.Popen[bytes]:
    program, (stdin, stdout, stderr), flags = command[0], streams, 0
    if sys.platform == "win32":
        import shutil  # noqa: PLC0415 (of use here only)

        # The system itself finds programs that end with .exe only; runners of packages are scripts.
        program = shutil.which(program, path=environment.get("PATH")) or program
        flags = subprocess.CREATE_NO_WINDOW
    return subprocess.Popen(  # noqa: S603 (to start what the user asks for is the point)
        [program, *command[1:]],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        cwd=directory,
        start_new_session=sys.platform != "win32",
        creationflags=flags,
    )


def _open_pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # an older system, or a Python that was built for one
            return _private(os.pidfd_open(pid))
    return None


def _reason(error: Exception, program: str) -> str:
    if isinstance(error, FileNotFoundError) and " " in program:
        return "there is no such program; in a list, each argument stands by itself"
    if isinstance(error, FileNotFoundError | PermissionError) and program.endswith(".py"):
        return f"it is a file for an interpreter; did you mean 'python {program}'?"
    if isinstance(error, FileNotFoundError) and (url := missing_scheme(program)) is not None:
        return f"there is no such program; did you mean {url}?"
    if isinstance(error, FileNotFoundError):
        if os.sep in program:
            return "there is no such program, or not the interpreter that its first line names"
        return "no such program is found on PATH"
    if isinstance(error, PermissionError):
        return "it is no program that may be executed"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
