// The TypeScript SDK, 1.x, as a client. It offers the newest revision that it knows, a constant, and has no option for
// another: `Offering` puts another one into the `initialize` request on its way out, and changes nothing else.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    McpError,
    PromptListChangedNotificationSchema,
    ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { CAPABILITIES, CLIENT, converse, Missing, Refused, Seen, urlIn } from './conversation.mjs';

const [command, ...args] = process.argv.slice(3);

class Offering extends Client {
    offered;

    request(message, ...rest) {
        if (message.method === 'initialize' && this.offered) message.params.protocolVersion = this.offered;
        return super.request(message, ...rest);
    }
}

async function refusals(made) {
    try {
        return await made;
    } catch (error) {
        throw error instanceof McpError ? new Refused(error.code) : error;
    }
}

function listening(client, seen) {
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params: { _meta, ...entry } }) =>
        seen.add(seen.logs, entry)
    );
    for (const schema of [
        ToolListChangedNotificationSchema,
        PromptListChangedNotificationSchema,
        ResourceListChangedNotificationSchema,
        ResourceUpdatedNotificationSchema
    ])
        client.setNotificationHandler(schema, notification => seen.notice(notification));
    for (const schema of [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema])
        client.setRequestHandler(schema, ({ method, params }) => seen.answer(method, params));
}

/** Reach the server, by whichever transport it has. */
function reach(revision, insists) {
    const url = urlIn(command, args, insists);
    if (url) return url.pathname.endsWith('/sse') ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
    const env = insists ? getDefaultEnvironment() : { ...getDefaultEnvironment(), INTEROP_REVISIONS: revision };
    return new StdioClientTransport({ command, args, env });
}

async function connection(revision, insists) {
    const seen = new Seen();
    const client = new Offering(CLIENT, { capabilities: CAPABILITIES });
    if (insists) client.offered = revision;
    listening(client, seen);
    const transport = reach(revision, insists);
    const tell = transport.setProtocolVersion?.bind(transport);
    let agreed;
    transport.setProtocolVersion = version => {
        agreed = version; // the client tells nobody else
        tell?.(version);
    };
    await client.connect(transport);

    const lists = {
        tools: 'listTools',
        resources: 'listResources',
        resourceTemplates: 'listResourceTemplates',
        prompts: 'listPrompts'
    };
    return {
        seen,
        close: async () => {
            await transport.terminateSession?.(); // which close() leaves to its users
            await client.close();
        },
        greeting: () => ({
            revision: agreed,
            server: client.getServerVersion(),
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions()
        }),
        page: (kind, cursor) => client[lists[kind]]({ cursor }),
        call: (name, given, { withProgress, signal, meta } = {}) =>
            refusals(
                client.callTool({ name, arguments: given, ...(meta && { _meta: meta }) }, undefined, {
                    signal,
                    ...(withProgress && { onprogress: seen.report })
                })
            ),
        read: uri => refusals(client.readResource({ uri })),
        prompt: (name, given) => client.getPrompt({ name, arguments: given }),
        complete: (ref, argument, known) =>
            client.complete({ ref, argument, ...(known && { context: { arguments: known } }) }),
        ping: () => client.ping(),
        setLevel: level => client.setLoggingLevel(level),
        listen: async uris => {
            for (const uri of uris) await client.subscribeResource({ uri });
            const stop = async () => {
                for (const uri of uris) await client.unsubscribeResource({ uri });
            };
            return { agreed: {}, stop };
        },
        demand: async () => {
            throw new Missing('the client knows no revision that has it');
        }
    };
}

await converse(connection);
