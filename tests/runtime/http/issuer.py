"""An authorization server for tests: its metadata, its keys, its introspection, and tokens that it signs."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

if TYPE_CHECKING:
    from collections.abc import Generator

RESOURCE = "https://mcp.example.com/mcp"


def new_key(algorithm: str = "ES256") -> Any:
    """Return a new private key for *algorithm*."""
    if algorithm.startswith("ES"):
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else rsa.generate_private_key(65537, 2048)


def public_jwk(key: Any, kid: str, algorithm: str | None = "ES256") -> dict[str, Any]:
    """Return the public part of *key* as the issuer publishes it."""
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        text: Any = jwt.algorithms.RSAAlgorithm.to_jwk(public)
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        text = jwt.algorithms.OKPAlgorithm.to_jwk(public)
    else:
        text = jwt.algorithms.ECAlgorithm.to_jwk(public)
    alg = {} if algorithm is None else {"alg": algorithm}
    return {**json.loads(text), "kid": kid, "use": "sig", **alg}


class Issuer:
    """An issuer at a loopback address.

    Attributes:
        url: Its name.
        documents: What it answers, by path: a JSON value, or a status.
        asked: The paths that were asked for.
        forms: The bodies and credentials that were posted.
        key: Its private key.
        delay_seconds: How long it takes to answer.
        states_length: Whether its answers have a length.
    """

    def __init__(self, url: str, path: str = "") -> None:
        self.url = url + path
        self.key = new_key()
        self.asked: list[str] = []
        self.forms: list[tuple[str, str]] = []
        self.delay_seconds = 0.0
        self.states_length = True
        self.documents: dict[str, Any] = {
            f"/.well-known/oauth-authorization-server{path}": {
                "issuer": self.url,
                "jwks_uri": f"{url}/keys",
                "introspection_endpoint": f"{url}/introspect",
            },
            "/keys": {"keys": [public_jwk(self.key, "k1")]},
        }

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good token, changed; those that are None are left out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "ann",
            "client_id": "app",
            "scope": "mcp files:read",
            "iat": now,
            "exp": now + 600,
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def token(
        self, *, key: Any = None, algorithm: str = "ES256", header: dict[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return a signed token."""
        return jwt.encode(
            self.claims(**changes),
            self.key if key is None else key,
            algorithm,
            headers={"typ": "at+jwt", "kid": "k1"} | (header or {}),
        )


@contextmanager
def running_issuer(path: str = "") -> Generator[Issuer]:
    """Run an issuer within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            time.sleep(issuer.delay_seconds)
            found = issuer.documents.get(self.path, 404)
            if callable(found):
                found = found(issuer.forms[-1][0])
            status, body = (found, b"") if isinstance(found, int) else (200, json.dumps(found).encode())
            self.send_response(status)
            if status in {301, 302, 307}:
                self.send_header("Location", "/keys")
            if issuer.states_length:  # else the end of the connection is that of the body
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            issuer.forms.append((body, self.headers["Authorization"]))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    class Listening(ThreadingHTTPServer):
        request_queue_size = 300  # a flood of connections is not refused

    with Listening(("127.0.0.1", 0), Handler) as server:
        issuer = Issuer(f"http://127.0.0.1:{server.server_port}", path)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
