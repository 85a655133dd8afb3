"""One of several workers of a server: sessions that all of them serve, and requests that they relay to each other.

docs/adr/0032 says what is shared and why. An application without ``cluster=`` does not import this package.
"""
