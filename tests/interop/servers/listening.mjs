// Serving over HTTP with the TypeScript SDKs, at any free port of this machine alone.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';

// What is asked for: nothing is stdio.
export const TRANSPORT = process.argv[2] ?? 'stdio';

// When clients are to come back whose connection was closed.
export const RETRY_MS = 100;

/** What was said on streams, for clients who come back; an event store, as both SDKs have them. */
export class Events {
    said = [];

    async storeEvent(stream, message) {
        return String(this.said.push({ stream, message }) - 1);
    }

    async replayEventsAfter(last, { send }) {
        const { stream } = this.said[last];
        for (const [number, { stream: each, message }] of this.said.entries())
            if (each === stream && number > last && 'jsonrpc' in message) await send(String(number), message);
        return stream;
    }
}

/** Serve until the process is ended; say where. */
export function listen(handle) {
    const server = createServer((request, response) => {
        handle(request, response).catch(error => {
            console.error(error);
            if (!response.headersSent) response.writeHead(500);
            response.end();
        });
    });
    const path = TRANSPORT === 'sse' ? 'sse' : 'mcp';
    server.listen(0, '127.0.0.1', () => console.error(`http://127.0.0.1:${server.address().port}/${path}`));
}

/** Hand a request on to whoever takes those of the web's standards, and send what comes back. */
export async function asOnTheWeb(request, response, fetch) {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { method, headers } = request;
    const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
    const url = `http://${headers.host}${request.url}`;
    const answer = await fetch(new Request(url, { method, headers, signal: gone.signal, ...body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (!answer.body) return response.end();
    const reader = answer.body.getReader();
    response.on('close', () => reader.cancel().catch(() => {}));
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return response.end();
        response.write(value);
    }
}
