"""The options of `connect`."""

from __future__ import annotations

import difflib
import logging
import sys
from typing import TYPE_CHECKING, Final

from mcpgen import __version__
from mcpgen.runtime.client.handler_functions import HandlerFunctions
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    import httpx

    from mcpgen.runtime.client.declared_methods import Undeclared
    from mcpgen.runtime.client.output_validation import Policy
    from mcpgen.runtime.http.client.auth.credentials import Credentials
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.extensions import Extension

__all__ = ["DEFAULTS", "Options", "refuse_unknown"]

# Options that users look for in `connect`, and where they are; `{}` stands for the function that was called.
_OF_LIMITS = "time limits are options of ClientLimits: {}(…, limits=ClientLimits(call_seconds=…))"
_OF_HTTP = {"headers": "headers", "client": "client", "http_client": "client"}
_OF_PROCESS = {
    "env": "environment",
    "environment": "environment",
    "cwd": "directory",
    "directory": "directory",
    "on_stderr": "on_stderr",
    "inherit_environment": "inherit_environment",
}
_ELSEWHERE = {
    **{each: f"write {{}}(Http(url, {name}=…))" for each, name in _OF_HTTP.items()},
    **{each: f"write {{}}(Process(command, {name}=…))" for each, name in _OF_PROCESS.items()},
    **dict.fromkeys(("timeout", "timeout_seconds", "call_seconds", "connect_seconds"), _OF_LIMITS),
}
# The options of `connect` that a function like it does not have.
_LACKING: Final = {
    "connect_sync": frozenset({"native_revision"}),
    "connect_as": frozenset({"native_revision", "revisions"}),
}


class Options(HandlerFunctions, total=False):
    """The options of `connect`. Its base class `HandlerFunctions` has the options that are functions."""

    name: str
    """The name of this client; ``mcpgen`` by default."""
    version: str
    """The version of this client."""
    title: str | None
    """The name of this client for people."""
    revisions: Iterable[str] | None
    """The revisions to offer; all by default."""
    handlers: object
    """An instance of a subclass of the native revision's ``ClientHandlers``, instead of functions."""
    capabilities: Mapping[str, object] | None
    """More capabilities to declare, in the form of the native revision, such as ``{"sampling": {"tools": {}}}``.

    The client itself declares the capabilities that follow from the functions that you pass, such as ``sampling``.
    """
    extensions: Iterable[ModuleType | str | Extension]
    """The extensions to declare: the packages that `mcpgen build --extension` wrote, identifiers, or `Extension`."""
    tasks: bool
    """Whether servers of 2026-07-28 may run tools as tasks. The client then declares the extension for tasks.

    `Client.call_tool` waits for a task as for a call. The default is ``False``.
    """
    structured: Policy
    """Whether to check structured content against the tool's output schema: ``off``, ``warn`` or ``strict``.

    The default is ``off``. If the content does not match, ``warn`` logs it, and ``strict`` raises
    `InvalidStructuredContent`.
    """
    cache: bool | str | os.PathLike[str]
    """Whether to remember on disk, for a week, that the server needs `initialize`, or that it does not.

    ``True`` stores this in the user's cache folder. A path stores it in the folder at that path. By default, the client
    stores nothing on disk, and only this process remembers it.
    """
    cache_results: bool
    """Whether to keep results for as long as the server allows (``ttlMs``); False by default.

    The results are those of lists and of `read_resource`, up to ``ClientLimits.max_cached_bytes``. A notification that
    something has changed removes them. Each client has a cache of its own, so users never share one.
    """
    ping_seconds: float | None
    """How often the client sends `ping` to a server of a handshake revision; by default never.

    If the server does not answer one within ``ClientLimits.call_seconds``, the connection is closed. 2026-07-28 has no
    `ping`: each of its requests stands alone.
    """
    max_restarts: int
    """How often the process of a server of 2026-07-28 is started again after it has exited unexpectedly; 0 by default.

    Open calls raise `RequestLost`. Later calls use the new process. A server of a handshake revision is not started
    again: its session ends with its process.
    """
    strict: bool
    """Whether to refuse what the revision does not allow, also where other SDKs read it; False by default."""
    undeclared: Undeclared | None
    """Whether to ``ask`` for what the server has not declared, or to ``refuse`` the call. By default, the client asks.
    But it refuses in 2025-06-18 and 2025-11-25, because they forbid such requests, and if `strict` is True."""
    auth: httpx.Auth | Credentials | None
    """The credentials for a server at a URL, such as ``OAuth()``: a short form of ``Http(url, auth=…)``."""
    limits: ClientLimits | None
    """The limits and timeouts of this client."""


# The options whose default is not None.
DEFAULTS: Final[Options] = {
    "name": "mcpgen",
    "version": __version__,
    "structured": "off",
    "strict": False,
    "cache": False,
    "cache_results": False,
    "max_restarts": 0,
    "extensions": (),
    "tasks": False,
}


# By the option that adopts it, a feature that 2026-07-28 deprecates (SEP-2577), and what replaces it.
_DEPRECATED: Final = {
    "roots": ("roots", "pass paths as arguments of tools, or in the configuration of the server"),
    "sample": ("sampling", "servers can call the API of a model provider instead"),
    "log": ("log entries to clients", "read the standard error of the server, or use OpenTelemetry"),
}
_warned: Final[set[str]] = set()

_LOG = logging.getLogger("mcpgen.client")


def warn_deprecated(options: Mapping[str, object]) -> None:
    """Log each deprecated feature that *options* adopt, once, in the development mode of Python (``python -X dev``).

    Spec:
        2026-07-28, deprecated: SHOULD NOT be adopted. Servers of earlier revisions still need these features.
    """
    for name in sorted(_DEPRECATED.keys() & options.keys() - _warned) if sys.flags.dev_mode else ():
        _warned.add(name)
        _LOG.warning("2026-07-28 deprecates %s (the option `%s`); %s", _DEPRECATED[name][0], name, _DEPRECATED[name][1])


def refuse_unknown(options: Mapping[str, object], function: str = "connect") -> None:
    """Refuse an option that *function* does not have: `connect`, or one of `_LACKING`.

    Raises:
        UsageError: There is one.
    """
    lacking = _LACKING.get(function, frozenset())
    known = [each for each in (*Options.__annotations__, "native_revision") if each not in lacking]
    for each in options:
        if each not in known:
            meant = difflib.get_close_matches(each, known, 1, 0.7)  # not `version` for `protocol_version` or `verify`
            hint = f"did you mean `{meant[0]}`?" if meant else f"the options are {', '.join(known)}"
            elsewhere = _ELSEWHERE.get(each)
            advice = hint if elsewhere is None else elsewhere.format(function)
            raise UsageError(f"{function}() has no option `{each}`; {advice}")
