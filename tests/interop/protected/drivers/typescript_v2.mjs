// The TypeScript SDK, 2.x, as a client that logs in.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { authProvider, REVISION, run, url } from './logging_in.mjs';

const isStateless = REVISION === '2026-07-28';

function made() {
    const options = isStateless ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [REVISION] };
    const client = new Client({ name: 'test', version: '1' }, options);
    return { client, transport: new StreamableHTTPClientTransport(url, { authProvider }) };
}

await run(made, { Unauthorized: UnauthorizedError });
