// The TypeScript SDK, 2.x, as a reader. `listTools` and its siblings fetch all pages by themselves.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERS, CAPABILITIES, readAll, verbs } from './reading.mjs';

await readAll(({ revision, target }, seen, closes) => {
    const client = new Client(
        { name: 'reader', version: '1' },
        {
            capabilities: CAPABILITIES,
            ...(revision < '2026'
                ? { supportedProtocolVersions: [revision] }
                : { versionNegotiation: { mode: 'auto' } })
        }
    );
    client.setNotificationHandler('notifications/message', ({ params }) => void seen.logs.push(params));
    for (const method of Object.keys(ANSWERS)) client.setRequestHandler(method, () => ANSWERS[method]);
    const transport = Array.isArray(target)
        ? new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: 'ignore' })
        : new StreamableHTTPClientTransport(new URL(target));
    closes(() => client.close());
    const does = verbs(client, method => client[method](), seen);
    does.progress = () =>
        client.callTool({ name: 'echo', arguments: {} }, { onprogress: each => void seen.progress.push(each) });
    return { does, opened: client.connect(transport) };
});
