"""A client that deviates as one kind says: what it sends, over which transport, and what it gets.

It is a script and no client: it knows nothing of the protocol but which messages are answered.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from tests.interop.sloppy.kinds import STATELESS, put

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.interop.sloppy.kinds import Kind

__all__ = ["AFTERTHOUGHT_SECONDS", "Step", "answer_in", "over_http", "over_sse", "over_stdio", "script"]

Wire = dict[str, Any]

# An answer takes milliseconds, or seconds on a busy machine; so does the start of a server, before its first answer.
DEADLINE_SECONDS = 10
START_SECONDS = 30
# How long a server has to answer a request after an error without an id, which may be about the line before.
AFTERTHOUGHT_SECONDS = 2
CLIENT = {"name": "sloppy-client", "version": "1.0"}
TOOL = {"id": 5, "method": "tools/call", "params": {"name": "mirror", "arguments": {"text": "24"}}}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Step(NamedTuple):
    """A message to send: its text, the id of the answer to wait for, and its method and name for headers."""

    text: str
    answered: Any
    method: str
    name: str


def script(kind: Kind, revision: str) -> list[Step]:
    """Return what a client of *kind* sends, in its order."""
    messages: list[Any] = []
    if revision != STATELESS:
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": dict(CLIENT)}
        hello = {"id": 1, "method": "initialize", "params": params, "notify": "notifications/initialized"}
        put(hello, kind.hello)
        notify = hello.pop("notify", None)
        messages += [hello, {"method": notify}] if notify else [hello]
    for each in json.loads(kind.send):
        message = each
        if each == "INITIALIZE":
            message = {**messages[0], "id": 2}
        elif each == "TOOL":
            message = json.loads(json.dumps(TOOL))
        if revision == STATELESS and isinstance(message, dict) and "id" in message:
            message.setdefault("params", {})["_meta"] = json.loads(json.dumps(META))
            put(message, kind.hello)
        messages.append(message)
    steps = [_step(each) for each in messages]
    return [*steps[:-1], steps[-1]._replace(text=kind.line.replace("{}", steps[-1].text))]


def _step(message: Wire | str) -> Step:
    if isinstance(message, str):
        return Step(message[1:].strip(), None, "", "")
    whole = {key: value for key, value in {"jsonrpc": "2.0", **message}.items() if value != "$drop"}
    params = message.get("params")
    name = params.get("name", "") if isinstance(params, dict) else ""
    return Step(json.dumps(whole), message.get("id"), message["method"], name)


def answer_in(texts: Sequence[str], wanted: Any) -> Wire | None:
    """Return the answer to a request among *texts*; the id None is that of errors about what was not understood."""
    for text in texts:
        try:
            found = json.loads(text)
        except ValueError:
            continue
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, dict) and "method" not in each and "id" in each and each["id"] == wanted:
                return dict(each)
    return None


class Exchange(Protocol):
    """How a step is sent; returns its answer, or {} if it is a notification."""

    def __call__(self, step: Step) -> Wire: ...


@contextmanager
def over_stdio(command: Sequence[str], environment: dict[str, str]) -> Iterator[Exchange]:
    """Start a server within the block."""
    lines: queue.Queue[str | None] = queue.Queue()
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, encoding="utf-8", env=environment, **pipes) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        output, given = process.stdout, process.stdin

        def read() -> None:
            for line in output:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        patience = START_SECONDS

        def exchange(step: Step) -> Wire:
            given.write(step.text + "\n")
            given.flush()
            nonlocal patience
            nameless: Wire | None = None
            while step.answered is not None:
                try:
                    line = lines.get(timeout=patience if nameless is None else AFTERTHOUGHT_SECONDS)
                except queue.Empty:
                    if nameless is None:
                        raise
                    return nameless
                if line is None:
                    raise ConnectionError("the server has exited")
                patience = DEADLINE_SECONDS
                found = answer_in([line], step.answered)
                if found is not None:
                    return found
                nameless = answer_in([line], None) or nameless
            return {}

        try:
            yield exchange
        finally:
            process.kill()


@contextmanager
def over_http(kind: Kind, revision: str, url: str) -> Iterator[Exchange]:
    """Send each step with a POST of its own."""
    given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    changed = json.loads(kind.headers)
    session: dict[str, str] = {}

    def exchange(step: Step) -> Wire:
        headers = {**given, **session}
        if revision >= "2025-06-18" and step.method != "initialize":
            headers["MCP-Protocol-Version"] = revision
        if revision == STATELESS:
            headers |= {"Mcp-Method": step.method} | ({"Mcp-Name": step.name} if step.name else {})
        # What is not right in the handshake has a kind of its own.
        wrong = changed if step.method != "initialize" else {}
        headers = {key: value for key, value in {**headers, **wrong}.items() if value is not None}
        response, body = _post(url + ("/" if kind.slash else ""), step.text, headers)
        if step.method == "initialize" and response.getheader("Mcp-Session-Id"):
            session["Mcp-Session-Id"] = str(response.getheader("Mcp-Session-Id"))
        if step.answered is None:
            return {}
        data = [line.removeprefix("data:").strip() for line in body.splitlines() if line.startswith("data:")]
        found = answer_in(data or [body], step.answered) or answer_in(data or [body], None)
        return found or {"error": {"message": f"status {response.status}: {body[:200]}"}}

    yield exchange


def _post(url: str, text: str, headers: dict[str, str]) -> tuple[HTTPResponse, str]:
    """Send a request, and once more if it is redirected with its body."""
    for _ in range(2):
        address = urlsplit(url)
        with closing(HTTPConnection(address.netloc, timeout=DEADLINE_SECONDS)) as connection:
            connection.putrequest("POST", f"{address.path}?{address.query}" if address.query else address.path)
            for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                connection.putheader(name, value)
            connection.endheaders(text.encode())
            with connection.getresponse() as response:
                body = response.read().decode()
        if response.status not in {307, 308}:
            return response, body
        url = urljoin(url, response.getheader("Location"))
    raise ConnectionError("the second redirect")


@contextmanager
def over_sse(kind: Kind, url: str) -> Iterator[Exchange]:
    """Open the stream of HTTP+SSE within the block, and send each step with a POST."""
    path = urlsplit(url).path + ("/" if kind.slash else "")
    with ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(closing(HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE_SECONDS)))
            connection.request("GET", path, headers={"Accept": "text/event-stream"})
            stream = stack.enter_context(connection.getresponse())
            if stream.status not in {307, 308}:
                break
            path = urlsplit(urljoin(url, stream.getheader("Location"))).path
        if stream.status != 200:
            raise ConnectionError(f"status {stream.status}: {stream.read().decode()[:200]}")

        def data() -> str:
            for line in stream:
                if line.startswith(b"data:"):
                    return line.decode().removeprefix("data:").strip()
            raise ConnectionError("the stream has ended")

        endpoint = urljoin(url, data())

        def exchange(step: Step) -> Wire:
            _post(endpoint, step.text, {"Content-Type": "application/json"})
            while step.answered is not None:
                found = answer_in([data()], step.answered)
                if found is not None:
                    return found
            return {}

        yield exchange
