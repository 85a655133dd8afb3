// The TypeScript SDK, 1.x, as a client that logs in. What it offers is a constant, which is changed on its way out.

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { authProvider, REVISION, run, url } from './logging_in.mjs';

class Offering extends Client {
    request(message, ...rest) {
        if (message.method === 'initialize') message.params.protocolVersion = REVISION;
        return super.request(message, ...rest);
    }
}

function made() {
    const client = new Offering({ name: 'test', version: '1' });
    return { client, transport: new StreamableHTTPClientTransport(url, { authProvider }) };
}

await run(made, { Unauthorized: UnauthorizedError, takes: query => query.get('code') });
