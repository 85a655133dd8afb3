"""The process of a server, and the process group that it leads: start it, signal it, wait for its end.

This module knows no messages. `mcpgen.runtime.transports.process_transport` is the transport that uses it.

Theory of operation. A server is often several processes: a package runner starts the server proper, a shell script
starts three. So the process leads a session and a process group of its own. One signal reaches the whole group, and
Ctrl-C in the terminal reaches none of it; the client ends it in order. A process that leaves the group (a daemon, which
calls setsid) is not reached, and is meant to stay.

A group has the number of its leader. As soon as the leader was reaped and the group is empty, the system may reuse that
number, and a signal would hit an unrelated process. Hence the rule: *do not reap the leader before the group got its
last signal*. Until then the leader keeps its number, if only as a zombie. Its end is noticed without reaping it: a
pidfd (Linux) becomes readable, and `os.waitid` with WNOWAIT returns the status. Without a pidfd, waitid is polled.
Neither needs a thread or a SIGCHLD handler; a process has only one such handler, and it belongs to the program.

Other code may reap the leader: a SIGCHLD handler that waits for any child, or the system if SIGCHLD is ignored. Then
the status is unknown. A pidfd still refers to this process and its group, so a signal through it (Linux 6.9) cannot hit
another one. Without a pidfd, the group gets no more signals.

A signal cannot tell whether the group has living members, because zombies accept signals; ``/proc`` can. Systems
without ``/proc`` have a kill() that ignores zombies.

Systems without waitid (macOS before Python 3.13) must reap the process to notice its end. There the rest of the group
is killed in the same step, before the number can be reused.

Windows has no process groups: only the process itself is ended.
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
from mcpgen.runtime.transports.command_line import hide_userinfo, missing_scheme
from mcpgen.runtime.transports.descriptors import duplicate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ChildProcess", "read_chunk"]

# PIDFD_SIGNAL_PROCESS_GROUP of pidfd_send_signal(2), for which the signal module has no name.
_PIDFD_SIGNAL_PROCESS_GROUP: Final = 1 << 2

# How often to poll where nothing can be watched: soon at first, because most processes end soon.
_FIRST_POLL_SECONDS: Final = 0.001
_POLL_SECONDS: Final = 0.03

# For the system to end a process that was killed, where the event loop cannot be awaited any more. It takes a
# millisecond, or more than a second where other processes keep every processor busy.
_KILL_SECONDS: Final = 5.0

# Standard input, output and error.
_STANDARD: Final = 3


class ChildProcess:
    """A process with pipes as its standard streams. Our ends are non-blocking, and no child inherits them.

    Args:
        command: The program and its arguments.
        environment: All environment variables of the process.
        directory: The working directory; None for that of this process.
        shown: What errors show in place of the program and the directory, if these may hold secrets.

    Attributes:
        stdin: The descriptor that writes to its input.
        stdout: The descriptor that reads its output.
        stderr: The descriptor that reads its standard error.
        exited: Set when it has ended; `watch` must be running.
        status: Its exit status, negative for the signal that ended it; None before its end, and if it is unknown.

    Raises:
        UsageError: It cannot be started. Nothing is left behind.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str | None,
        *,
        shown: tuple[str, str | None] | None = None,
    ) -> None:
        shown_program, shown_directory = shown or (command[0], directory)
        program = hide_userinfo(shown_program)
        if directory is not None and not (_is_folder(directory) and os.access(directory, os.X_OK)):
            problem = f"`directory` is {shown_directory!r}, which is not a directory that this user may open"
            raise UsageError(f"{program!r} cannot be started: {problem}")
        opened: list[int] = []
        try:
            child_ends = self._open_pipes(opened)
            self._popen = _launch(command, environment, directory, child_ends)
        except (OSError, ValueError) as error:
            for fd in opened:
                os.close(fd)
            cause = error if shown is None else None  # it names the program
            is_file = os.path.isfile(Path(directory or "", command[0]))  # noqa: PTH113 (as in `_is_folder`)
            reason = _reason(error, shown_program, is_file=is_file)
            raise UsageError(f"{program!r} cannot be started: {reason}") from cause
        for fd in child_ends:
            os.close(fd)
        self.exited: anyio.Event = anyio.Event()
        self.status: int | None = None
        self._has_exited = False
        self._is_reaped = False  # by this object or by other code
        self._pidfd = _open_pidfd(self._popen.pid)
        self._open = {self.stdin, self.stdout, self.stderr}

    def _open_pipes(self, opened: list[int]) -> tuple[int, int, int]:
        """Set our ends, and return the ends of the process. Add all to *opened*, to be closed if the start fails."""
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
        """Return when the process has ended. Only one task may call this."""
        if self._pidfd is not None:
            await anyio.wait_readable(self._pidfd)
        seconds = _FIRST_POLL_SECONDS
        while not self.has_ended():
            await anyio.sleep(seconds)
            seconds = min(2 * seconds, _POLL_SECONDS)
        self.exited.set()

    async def wait_others_ended(self) -> None:
        """Return when the group has no living process but the leader."""
        seconds = _FIRST_POLL_SECONDS
        while self.has_others():
            await anyio.sleep(seconds)
            seconds = min(2 * seconds, _POLL_SECONDS)

    def has_others(self) -> bool:
        """Whether the group has a living process besides the leader."""
        if sys.platform == "win32":
            return False
        self.has_ended()
        if self._is_reaped and self._pidfd is None:  # they could get no signal either
            return False
        with suppress(OSError):
            # /proc may be mounted for another PID namespace, with other numbers.
            if os.readlink("/proc/self") == str(os.getpid()):  # noqa: PTH115 (it is a number, not a path)
                return any(map(self._is_other, os.listdir("/proc")))  # noqa: PTH208 (names are numbers here)
        try:
            os.killpg(self._popen.pid, 0)
        except OSError:
            return False
        return True

    def terminate(self) -> None:
        """Send SIGTERM to the group."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the group."""
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
                signal.pidfd_send_signal(self._pidfd, number, None, _PIDFD_SIGNAL_PROCESS_GROUP)
            except ProcessLookupError:
                return
            except OSError:  # an older system, or one that forbids it
                pass
            else:
                return
        self.has_ended()  # other code may have reaped it since
        if not self._is_reaped:
            with suppress(ProcessLookupError, PermissionError):  # all are dead, or run as another user
                os.killpg(self._popen.pid, number)

    def close_stdin(self) -> None:
        """Close its input."""
        self._close(self.stdin)

    def release(self) -> bool:
        """Reap the leader and close all descriptors. Return whether the leader has ended.

        Kill the group first, if any of it is alive. This does not use the event loop, so it works after its end.
        """
        if not self.has_ended() or self.has_others():
            self.kill()
            until = time.monotonic() + _KILL_SECONDS
            while not self.has_ended() and time.monotonic() < until:
                time.sleep(_FIRST_POLL_SECONDS)
        if self._has_exited:
            self._popen.poll()
        for fd in list(self._open):
            self._close(fd)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        self._is_reaped = True  # from now on its number may belong to another process
        return self._has_exited

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)

    def has_ended(self) -> bool:
        """Return whether the leader has ended, and store its status, without reaping it."""
        if self._is_reaped:
            return self._has_exited
        if sys.platform == "win32":
            self.status = self._popen.poll()
            self._has_exited = self.status is not None
        elif not hasattr(os, "waitid"):
            self._poll_by_reaping()
        else:
            try:
                found = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # other code has reaped it
                self._has_exited = self._is_reaped = True
                return True
            if found is not None:
                self._has_exited = True
                self.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self._has_exited

    def _poll_by_reaping(self) -> None:
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
            # "number (name) state …", where the name may hold anything. Zombies (Z, X) count as dead.
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:  # it has just ended
            return False
        return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


async def read_chunk(fd: int, size: int) -> bytes:
    """Return at most *size* bytes that are read from *fd*; none at the end."""
    if sys.platform == "win32":
        limiter = anyio.CapacityLimiter(1)  # our own: reads that hang may use up the shared one
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
    """Return *fd*, or a duplicate with another number if its number is that of a standard stream.

    If a standard stream is closed, its number is free, and code that prints would write to the pipe.
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

        # The system itself finds only programs that end with .exe. Package runners are scripts.
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


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (Path raises PermissionError before Python 3.14)


def _reason(error: Exception, program: str, *, is_file: bool) -> str:
    if isinstance(error, FileNotFoundError) and " " in program:
        return "the program does not exist; write each argument as a separate word, or as a separate item of a list"
    if isinstance(error, FileNotFoundError) and program.endswith(".py") and not is_file:
        return f"there is no file {program}"
    if isinstance(error, FileNotFoundError | PermissionError) and program.endswith(".py"):
        return f"it is a Python file; did you mean 'python {program}'?"
    if isinstance(error, FileNotFoundError) and (url := missing_scheme(program)) is not None:
        return f"the program does not exist; did you mean {url}?"
    if isinstance(error, FileNotFoundError):
        if os.sep in program:
            return "the program, or the interpreter in its first line, does not exist"
        return "the program is not on PATH"
    if isinstance(error, PermissionError) and _is_folder(program):
        return "it is a folder; name a program in it, or 'python' and a Python file in it"
    if isinstance(error, PermissionError):
        return "it is not executable by this user"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
