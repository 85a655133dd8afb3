// The TypeScript SDK, 2.x, as a client. `versionNegotiation: 'auto'` probes with `server/discover`, in a process of its own
// on stdio, and so reaches 2026-07-28. Its option `supportedProtocolVersions` says what the handshake offers.

import { Client, ProtocolError, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { CAPABILITIES, CLIENT, converse, Missing, Refused, Seen, STATELESS, urlIn } from './conversation.mjs';

const CHANGES = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
const [command, ...args] = process.argv.slice(3);

/** Turns the client's errors into ours. It calls every unknown resource -32602, so the code is read off the transport. */
function refusing(transport) {
    const hear = transport.onmessage;
    let code;
    transport.onmessage = (message, ...rest) => {
        if (message.error) code = message.error.code;
        hear(message, ...rest);
    };
    return async made => {
        try {
            return await made;
        } catch (error) {
            throw error instanceof ProtocolError ? new Refused(code) : error;
        }
    };
}

function listening(client, seen) {
    client.setNotificationHandler('notifications/message', ({ params: { _meta, ...entry } }) =>
        seen.add(seen.logs, entry)
    );
    for (const method of ['tools/list_changed', 'prompts/list_changed', 'resources/list_changed', 'resources/updated'])
        client.setNotificationHandler(`notifications/${method}`, notification => seen.notice(notification));
    for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'])
        client.setRequestHandler(method, request => seen.answer(method, request.params));
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
    const isStateless = revision === STATELESS;
    const mode = isStateless && !insists ? { pin: STATELESS } : 'auto';
    const client = new Client(CLIENT, {
        capabilities: CAPABILITIES,
        ...(insists && !isStateless ? { supportedProtocolVersions: [revision] } : { versionNegotiation: { mode } })
    });
    listening(client, seen);
    const transport = reach(revision, insists);
    await client.connect(transport);
    const refusals = refusing(transport);

    const lists = {
        tools: 'tools/list',
        resources: 'resources/list',
        resourceTemplates: 'resources/templates/list',
        prompts: 'prompts/list'
    };
    return {
        seen,
        close: async () => {
            await transport.terminateSession?.(); // which close() leaves to its users
            await client.close();
        },
        greeting: () => ({
            revision: client.getNegotiatedProtocolVersion(),
            server: client.getServerVersion(),
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions(),
            ...(isStateless && { supported: client.getDiscoverResult()?.supportedVersions })
        }),
        // listTools() and its siblings fetch all pages by themselves; request() fetches one.
        page: (kind, cursor) => client.request({ method: lists[kind], params: cursor === undefined ? {} : { cursor } }),
        call: (name, given, { withProgress, signal, meta } = {}) =>
            refusals(
                client.callTool(
                    { name, arguments: given, ...(meta && { _meta: meta }) },
                    { signal, ...(withProgress && { onprogress: seen.report }) }
                )
            ),
        read: uri => refusals(client.readResource({ uri })),
        prompt: (name, given) => client.getPrompt({ name, arguments: given }),
        complete: (ref, argument, known) =>
            client.complete({ ref, argument, ...(known && { context: { arguments: known } }) }),
        ping: () => client.ping(),
        setLevel: level => client.setLoggingLevel(level),
        listen: async uris => {
            if (isStateless) {
                const subscription = await client.listen(uris.length > 0 ? { resourceSubscriptions: uris } : CHANGES);
                return { agreed: subscription.honoredFilter, stop: () => subscription.close() };
            }
            for (const uri of uris) await client.subscribeResource({ uri });
            const stop = async () => {
                for (const uri of uris) await client.unsubscribeResource({ uri });
            };
            return { agreed: {}, stop };
        },
        demand: async (name, given, answers, state) => {
            if (!isStateless) throw new Missing('the revision asks with requests of its own');
            const params = { name, arguments: given, inputResponses: answers, requestState: state };
            return refusals(client.request({ method: 'tools/call', params }, { allowInputRequired: true }));
        }
    };
}

await converse(connection);
