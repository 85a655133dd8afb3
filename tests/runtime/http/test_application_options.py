"""What an application is made with, and what is said of that where it makes no sense."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mcpgen import Protect, Server, UsageError


async def whoever(scope: dict[str, Any]) -> str:
    return str(scope)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 1}, r"asgi\(\) has no option `port`; the options are path, "),
        ({"user": whoever}, "`user` must be a plain function"),
        ({"user": "me"}, "`user` must be a plain function"),
        ({"events": "x"}, "`events` must be an event store"),
        ({"limits": 7}, "`limits` must be an HttpLimits"),
        ({"path": "mcp"}, "`path` is 'mcp'; it must begin with /"),
        ({"path": "/a b"}, "`path` is '/a b'; it must begin with / and contain no space"),
        ({"sse_path": "/mcp"}, "must be different paths"),
        ({"allowed_hosts": []}, "`allowed_hosts` is empty"),
    ],
)
def test_an_option_that_makes_no_sense_is_found_when_the_application_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        Server("demo").asgi(**options)


def scope_of_a_request() -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": [], "client": ("127.0.0.1", 5)}


async def nothing(*_: object) -> None:
    raise AssertionError


# A state of a request names its user as text. With a number, the client never got the question, and waited forever.
@pytest.mark.anyio
@pytest.mark.parametrize("user", [7, 0, b"ann", ("ann",)])
async def test_a_user_that_is_not_text_is_refused(user: Any) -> None:
    app = Server("demo").asgi(user=lambda _: user)
    async with app.running():
        with pytest.raises(UsageError, match=r"`user` returned a value of the type \w+; return a str"):
            await app(scope_of_a_request(), nothing, nothing)


PROTECT = "Protect(resource='https://mcp.example.com/mcp', issuers=['https://login.example.com'])"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "loaded"),
    [
        ("", "[] []\n"),
        # Otherwise the first request loads them, and all clients wait for it.
        (f"auth={PROTECT}", "['cryptography', 'httpx', 'jwt'] ['key_sets', 'token_check']\n"),
    ],
)
def test_what_access_tokens_need_is_loaded_with_a_protected_application_only(options: str, loaded: str) -> None:
    program = (
        f"import sys; from mcpgen import Protect, Server; Server('a').asgi({options});"
        "names = {each.rpartition('.')[2] for each in sys.modules};"
        "print(sorted({'cryptography', 'httpx', 'jwt'} & names), sorted({'token_check', 'key_sets'} & names))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8")

    assert loaded == done.stdout


@pytest.mark.parametrize("missing", ["jwt", "cryptography", "httpx"])
def test_a_missing_extra_is_named_when_the_application_is_made(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    auth = Protect(resource="https://mcp.example.com/mcp", issuers=["https://login.example.com"])

    with pytest.raises(UsageError, match=r'not installed: pip install "mcpgen\[http,auth\]"'):
        Server("demo").asgi(auth=auth)
