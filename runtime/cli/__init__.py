"""Looking at servers from a terminal: what the commands ``inspect``, ``call``, ``read`` and ``prompt`` are made of."""

__all__: list[str] = []
