"""The commands for servers, clients and adapters: all except those that generate code.

Each module ``*_command.py`` (or ``*_commands.py``) is imported when its command is called. ``client/`` holds what
``inspect``, ``call``, ``read`` and ``prompt`` share; ``trace/`` holds what only ``trace`` needs;
``hosts/`` holds ``install``, and the option ``--config`` of the client commands.
"""

__all__: list[str] = []
