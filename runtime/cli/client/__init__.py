"""The parts of ``inspect``, ``call``, ``read`` and ``prompt``: the run of a client, its input and its output."""

__all__: list[str] = []
