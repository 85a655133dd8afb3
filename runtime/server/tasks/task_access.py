"""The rights to a task, and the errors that clients get about tasks."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.envelope import error_json
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.exchange import ResponseBody
from mcpgen.runtime.server.fair_turns import LARGE_BYTES
from mcpgen.runtime.server.tasks.task_store import StoreFailed, StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.tasks.task_store import Outcome, TaskRecord, TaskStore

__all__ = ["answering", "body_of", "may_use", "no_such_task"]

_LOG = logging.getLogger("mcpgen.tasks")


def no_such_task() -> RequestError:
    """Return the error for a task that does not exist for its client."""
    return RequestError(ErrorCode.INVALID_PARAMS, "There is no such task; it may have expired")


def may_use(record: TaskRecord, access: Access | None) -> bool:
    """Return whether a client with *access* may use the task; None for one that needs no access token."""
    return access is None or not record.scopes or not access.missing(record.scopes)


@contextmanager
def answering() -> Generator[None]:
    """Answer the request that is served with an error if the store fails or is full.

    Raises:
        RequestError: The store has failed, or has no room.
    """
    try:
        yield
    except StoreFull as full:
        raise RequestError(ErrorCode.INTERNAL_ERROR, f"The task store is full: {full}; try again later") from None
    except StoreFailed as failure:
        _LOG.warning("the task store failed: %s", failure)
        raise RequestError(ErrorCode.INTERNAL_ERROR, "The task store failed; try again later") from None


def body_of(store: TaskStore, task_id: str, outcome: Outcome) -> Callable[[], ResponseBody]:
    """Return what returns the response to a ``tasks/result``.

    A large outcome of a shared store is read again then: each response that waits for its turn would have its own copy.
    """
    if not store.is_shared or len(outcome.json) <= LARGE_BYTES:
        body = ResponseBody(outcome.json, is_error=outcome.is_error)
        return lambda: body

    def read() -> ResponseBody:
        try:
            with answering():
                record = store.get(task_id)
            if record is None or record.outcome is None:
                raise no_such_task()
        except RequestError as error:
            return ResponseBody(error_json(error), is_error=True)
        return ResponseBody(record.outcome.json, is_error=record.outcome.is_error)

    return read
