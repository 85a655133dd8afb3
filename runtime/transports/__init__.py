"""Transports: they move frames between an endpoint and its peer, and know nothing of what the frames mean.

`mcpgen.runtime.transports.interfaces` has the protocols, with which you write your own.
"""
