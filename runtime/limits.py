"""How much a peer may ask of a server at once; each bound has a default and a reason."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.wire.envelope import MAX_BATCH_LENGTH
from mcpgen.runtime.wire.framing import MAX_FRAME_BYTES

__all__ = ["Limits"]


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on what one server holds for its peers.

    Attributes:
        max_frame_bytes: The longest message that is read.
        max_batch_length: The most messages in a batch (2025-03-26).
        max_in_flight: The most requests of one peer that are served at once; a host runs a few, a gateway a thousand.
        max_in_flight_bytes: How much the params of those may hold; what comes then is refused until some are served.
        max_subscriptions: The most resources that one session watches, and the most open streams of a connection.
        max_waiting: The most handlers that wait for an answer of a stateless peer, which may never come.
        max_waiting_bytes: The most that the requests behind them hold.
        waiting_seconds: How long each of them waits. People answer within minutes; a form that took longer is sent
            anew.
        answer_seconds: How long a handshake peer may take to answer a request of ours.
        max_rounds: How often one request may demand input, one demand after the other.
        max_buffered_bytes: How much is written ahead of a peer that does not read.
        grace_seconds: How long running handlers may go on when the input has ended; hosts wait a second or two before
            they kill a server.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    max_batch_length: int = MAX_BATCH_LENGTH
    max_in_flight: int = 4096
    max_in_flight_bytes: int = 64 * 1024 * 1024
    max_subscriptions: int = 1000
    max_waiting: int = 1000
    max_waiting_bytes: int = 16 * 1024 * 1024
    waiting_seconds: float = 600
    answer_seconds: float = 600
    max_rounds: int = 32
    max_buffered_bytes: int = 1024 * 1024
    grace_seconds: float = 0.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 0 or (value == 0 and name != "grace_seconds"):
                raise UsageError(f"{name} is {value}; it has to be more than 0")
