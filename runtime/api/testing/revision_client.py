"""`connect_as`: a recorded client of one revision, for a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from mcpgen.generated import registry
from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.api.connect_options import refuse_unknown
from mcpgen.runtime.api.connect_sync import connect_sync
from mcpgen.runtime.api.testing.answers import Answers
from mcpgen.runtime.api.testing.recorder import Recorder
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.negotiation import selected_revisions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect import Target
    from mcpgen.runtime.api.connect_options import Options
    from mcpgen.runtime.api.sync_client import SyncClient

__all__ = ["REVISIONS", "RecordedConnection", "connect_as"]

REVISIONS: Final = tuple(each.label for each in registry.REVISIONS)
"""All revisions, oldest first: ``@pytest.mark.parametrize("revision", REVISIONS)``."""

# The first revision has no elicitation, and URL mode came later: a test of all revisions may still have the script.
_FIRST_OF: Final = {"elicit": "2025-06-18", "elicit_url": "2025-11-25", "sample": "2024-11-05"}


def connect_as(target: Target | Recorder, revision: str, **options: Unpack[Options]) -> RecordedConnection:
    """Connect to a server as a client of *revision*, for a test, and record all messages.

        with connect_as(server, "2025-11-25") as client:
            assert client.call_tool("add", {"a": 2, "b": 3}).structured_content == {"result": 5}

    ``with`` gives a `SyncClient`, and ``async with`` a `Client`. The end of the block raises an AssertionError if a
    message violates its revision, or if the server did not ask for each scripted answer once.

    Args:
        target: The server, as for `connect`; usually a `Server` of the same process. Or a `Recorder`, to get the
            transcript.
        revision: The one revision that the client offers. `REVISIONS` lists all.
        **options: The options of `connect`, except ``revisions``. The answers to ``elicit``, ``elicit_url`` and
            ``sample`` can be `Answers`, and ``roots`` a list.

    Raises:
        UsageError: An argument is wrong.
        UnknownRevision: There is no such revision.
    """
    if "revisions" in options:
        raise UsageError("connect_as() has no option `revisions`; pass the one revision as `revision`")
    refuse_unknown(options, "connect_as")
    (label,) = selected_revisions([revision])
    # Snapshots contain the name and version of the client, so the version of mcpgen must not be in it.
    given: Options = {"name": "test", "version": "1", **options, "revisions": [label]}
    return RecordedConnection(target if isinstance(target, Recorder) else Recorder(target), label, given)


class RecordedConnection:
    """A recorded client of one revision that is not connected yet. `connect_as` returns it.

    Attributes:
        recorder: The messages.
    """

    def __init__(self, recorder: Recorder, revision: str, options: Options) -> None:
        self.recorder: Recorder = recorder
        self._revision = revision
        self._options = options
        self._async: Client | None = None
        self._sync: SyncClient | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._revision} to {self.recorder.description!r}>"

    if not TYPE_CHECKING:  # type checkers must report other attributes as errors

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"connect_as() returns a connection, which has no `{name}`; open it to get the client: "
                "`with connect_as(…) as client`, or `async with`"
            )

    async def __aenter__(self) -> Client:
        """Connect."""
        self._async = await connect(self.recorder, **self._options)
        return self._async

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client, and fail if something is wrong with the messages."""
        if self._async is not None:
            await self._async.close()
        self._verify(error)

    def __enter__(self) -> SyncClient:
        """Connect."""
        self._sync = connect_sync(self.recorder, **self._options)
        return self._sync

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client, and fail if something is wrong with the messages."""
        if self._sync is not None:
            self._sync.close()
        self._verify(error)

    def _verify(self, error: BaseException | None) -> None:
        """Raise what is wrong; if the block failed already, add it to that error as a note."""
        problems = [*self.recorder.problems(), *self._unscripted()]
        if not problems:
            return
        text = "\n".join(problems)
        if error is None:
            raise AssertionError(text)
        error.add_note(text)

    def _unscripted(self) -> Iterator[str]:
        for name, first in _FIRST_OF.items():
            answers = self._options.get(name)
            if isinstance(answers, Answers) and REVISIONS.index(self._revision) >= REVISIONS.index(first):
                problem = answers.problem()
                if problem is not None:
                    yield f"`{name}`: {problem}"
