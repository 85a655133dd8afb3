// The TypeScript SDK, 1.x, as a reader. Its pages end as its manual has it: `while (cursor)`.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, CAPABILITIES, pages, readAll, verbs } from './reading.mjs';

class Offering extends Client {
    request(message, ...rest) {
        if (message.method === 'initialize') message.params.protocolVersion = this.offered;
        return super.request(message, ...rest);
    }
}

await readAll(({ revision, target }, seen, closes) => {
    const client = new Offering({ name: 'reader', version: '1' }, { capabilities: CAPABILITIES });
    client.offered = revision;
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void seen.logs.push(params));
    for (const schema of [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema])
        client.setRequestHandler(schema, ({ method }) => ANSWERS[method]);
    const transport = Array.isArray(target)
        ? new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: 'ignore' })
        : new StreamableHTTPClientTransport(new URL(target));
    closes(() => client.close());
    const does = verbs(client, (method, key) => pages(params => client[method](params), key), seen);
    does.progress = () =>
        client.callTool({ name: 'echo', arguments: {} }, undefined, { onprogress: each => void seen.progress.push(each) });
    return { does, opened: client.connect(transport) };
});
