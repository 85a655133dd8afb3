"""Bytes to typed message to handler to bytes: the room where the bindings learn to speak."""
