"""What no client can beat by much: msgspec, the descriptors, a future for each call, and nothing checked.

``floor.py REVISION COMMAND...`` starts the command.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import msgspec
from orders import obey

CHUNK_BYTES = 64 * 1024
STATELESS = "2026-07-28"
WHO = {"name": "floor", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class Floor:
    """A conversation."""

    def __init__(self, into: int, out_of: int) -> None:
        self._into, self._out_of = into, out_of
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self._out: list[bytes] = []
        self._unread = b""
        for pipe in (into, out_of):
            os.set_blocking(pipe, False)
        self._loop.add_reader(out_of, self._readable)

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result."""
        number, self._next = self._next, self._next + 1
        self._waiting[number] = future = self._loop.create_future()
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return await future

    def write(self, message: dict[str, Any]) -> None:
        """Write, together with all that is written in this turn of the loop."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += (encode(message), b"\n")

    def _flush(self) -> None:
        data = b"".join(self._out)
        self._out.clear()
        try:
            written = os.write(self._into, data)
        except BlockingIOError:
            written = 0
        if written < len(data):
            self._out.append(data[written:])
            self._loop.add_writer(self._into, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._into)
        self._flush()

    def _readable(self) -> None:
        *lines, self._unread = (self._unread + os.read(self._out_of, CHUNK_BYTES)).split(b"\n")
        for answer in map(decode, lines):
            self._waiting.pop(answer["id"]).set_result(answer["result"])


async def main(revision: str, *command: str) -> None:
    """Connect, and call as ordered."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: ASYNC220
    if process.stdin is None or process.stdout is None:
        raise AssertionError  # both are pipes
    floor = Floor(process.stdin.fileno(), process.stdout.fileno())
    if revision != STATELESS:
        await floor.request("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": WHO})
        floor.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(name: str, arguments: dict[str, Any]) -> str:
        params = {"name": name, "arguments": arguments}
        if revision == STATELESS:
            params["_meta"] = META
        result = await floor.request("tools/call", params)
        text: str = result["content"][0]["text"]
        return text

    await obey(call)
    process.stdin.close()
    process.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
