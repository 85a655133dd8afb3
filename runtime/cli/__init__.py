"""The commands of the runtime: ``serve``, ``adapt``, ``inspect``, ``call``, ``read``, ``prompt`` and ``trace``.

Each module ``*_command.py`` (or ``*_commands.py``) is imported when its command is called. ``client/`` holds what
``inspect``, ``call``, ``read`` and ``prompt`` share; ``trace/`` holds what only ``trace`` needs.
"""

__all__: list[str] = []
