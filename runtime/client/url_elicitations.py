"""URL elicitations: the URLs that a user may be shown, and the ids of those that the server may report as completed.

Spec:
    2025-11-25 and 2026-07-28, client/elicitation, "URL Mode Elicitation Requests" and "Safe URL Handling"; 2025-11-25,
    client/elicitation, "Completion Notifications for URL Mode Elicitation".
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mcpgen.runtime.errors import RequestError, quoted
from mcpgen.runtime.limits import MAX_URI_CHARS, MAX_WIDE_URL_CHARS
from mcpgen.runtime.protocol.newest import ErrorCode

__all__ = ["UrlElicitations", "check_url"]

# A server may start any number of elicitations, and complete none.
_MAX_IDS: Final = 1000
_MAX_ID_CHARS: Final = 1000

_LOG = logging.getLogger("mcpgen.session")


class UrlElicitations:
    """The ids of one server's URL elicitations that are not completed."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}

    def add(self, elicitation_id: object) -> None:
        """Add the id of an elicitation. The oldest ids are forgotten when there are too many."""
        if isinstance(elicitation_id, str) and len(elicitation_id) <= _MAX_ID_CHARS:
            self._open[elicitation_id] = None
            if len(self._open) > _MAX_IDS:
                del self._open[next(iter(self._open))]

    def complete(self, elicitation_id: str) -> bool:
        """Remove an id. Return whether it was known and not completed before."""
        is_known = elicitation_id in self._open
        self._open.pop(elicitation_id, None)
        return is_known


def check_url(url: str) -> None:
    """Check the URL that a server wants a user to open; log a warning if the connection would not be secure.

    A URL such as ``javascript:`` or ``file:`` could harm the user, and is refused.

    Raises:
        RequestError: It is too long, or not a URL that a browser opens with HTTP or HTTPS.
    """
    limit = MAX_URI_CHARS if url.isascii() else MAX_WIDE_URL_CHARS  # Python keeps the last 128 URLs
    if len(url) > limit:
        raise RequestError(ErrorCode.INVALID_PARAMS, f"`url` has more than {limit} characters; shorten it")
    found = _split(url)
    if found is None:
        raise RequestError(ErrorCode.INVALID_PARAMS, f"`url` must be an http or https URL, not {quoted(url[:100])}")
    if found.scheme == "http" and not _is_loopback(found.hostname or ""):
        _LOG.warning("the server asks the user to open a URL without HTTPS: %s", quoted(url))


def _split(url: str) -> SplitResult | None:
    """Return the parts of *url*; None if it is not an absolute URL of HTTP or HTTPS.

    No URL contains a backslash. Browsers read it as a slash, and others do not: they would disagree on the host.
    """
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        found = urlsplit(url)
        _ = found.port  # raises if it is not a port
    except ValueError:
        return None
    return found if found.scheme in ("http", "https") and found.hostname else None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
