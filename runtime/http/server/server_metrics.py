"""OpenTelemetry instruments that show what the HTTP applications of this process hold, and what they refuse.

Theory of operation. The instruments are made once for a provider, and read the applications when a reader collects. So
they cost requests nothing. An application that is dropped is dropped here, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from mcpgen.runtime.http.server.responses import REFUSALS
from mcpgen.runtime.protocol.metrics import meter, provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.http.server.app_state import AppState

__all__ = ["observe"]

_SERVER: Final = "mcpgen.server.name"

_observed: Final[WeakKeyDictionary[Any, WeakSet[AppState]]] = WeakKeyDictionary()


def observe(state: AppState) -> None:
    """Let the instruments show *state*, too."""
    states = _observed.get(provider())
    if states is None:
        states = _observed[provider()] = WeakSet()
        _make_instruments(states)
    states.add(state)


def _make_instruments(states: WeakSet[AppState]) -> None:
    observation: Any = import_module("opentelemetry.metrics").Observation
    numbers: dict[str, tuple[str, Callable[[AppState], int]]] = {
        "sessions": ("Sessions that this process keeps.", lambda state: len(state.sessions)),
        "streams": ("Responses that are being sent.", lambda state: len(state.open_responses)),
        "waiting": ("Handlers that wait for a stateless client.", lambda state: len(state.engine.parked)),
    }
    own = meter()
    for name, (description, number) in numbers.items():

        def of_each(_: object, number: Callable[[AppState], int] = number) -> Iterator[Any]:
            for each in list(states):
                yield observation(number(each), {_SERVER: each.engine.name})

        own.create_observable_up_down_counter(f"mcpgen.server.{name}", [of_each], description=description)

    def kept(_: object) -> Iterator[Any]:
        for each in list(states):
            for kind, size in each.engine.ledger.by_kind().items():
                yield observation(size, {_SERVER: each.engine.name, "mcpgen.kind": kind})

    def refused(_: object) -> Iterator[Any]:
        for status, count in list(REFUSALS.items()):
            yield observation(count, {"http.response.status_code": status})

    own.create_observable_up_down_counter(
        "mcpgen.server.kept", [kept], unit="By", description="Bytes that are kept for clients, estimated."
    )
    own.create_observable_counter(
        "mcpgen.server.refusals", [refused], description="Requests that were refused because of a limit (429 and 503)."
    )
