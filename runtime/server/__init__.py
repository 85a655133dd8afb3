"""The protocol: sessions, the exchanges in them, and the shell that runs handlers.

`session` takes what a peer says. `answering` is what the engine answers itself, `hearing` what it is told, `telling`
what it tells; `inquiry` asks clients, `demands` asks stateless ones. `service` is what a server offers, `connection`
runs it. Only `connection` waits.
"""

from __future__ import annotations

__all__: list[str] = []
