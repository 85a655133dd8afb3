// The TypeScript SDK, 1.x, as a server: its low-level `Server`, which can do all that the protocol has.
//
// It agrees to any handshake revision, and then sends the same to everybody: what a revision has not is sent all the same.

import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CallToolRequestSchema,
    CompleteRequestSchema,
    GetPromptRequestSchema,
    ListPromptsRequestSchema,
    ListResourcesRequestSchema,
    ListResourceTemplatesRequestSchema,
    ListToolsRequestSchema,
    McpError,
    ReadResourceRequestSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import { Events, listen, RETRY_MS, TRANSPORT } from './listening.mjs';
import { call, complete, INSTRUCTIONS, OFFERED, page, prompt, read, SERVER, Unknown, watched } from './repertoire.mjs';

let pages = 0;

function caller(server, extra) {
    const token = extra._meta?.progressToken;
    return {
        signal: extra.signal,
        introduction: () => {
            const { name, version } = server.getClientVersion(); // it tells nobody the revision
            return { era: 'handshake', name, version };
        },
        progress: async (progress, total, message) => {
            const params = { progressToken: token, progress, total, ...(message && { message }) };
            if (token !== undefined) await extra.sendNotification({ method: 'notifications/progress', params });
        },
        log: (level, data, logger) =>
            server.sendLoggingMessage({ level, data, ...(logger && { logger }) }, extra.sessionId),
        ask: async key => {
            const { params } = OFFERED.questions[key];
            if (key === 'roots') return server.listRoots();
            if (key === 'model') return server.createMessage(params);
            if (key === 'page') return server.elicitInput({ ...params, elicitationId: `page-${(pages += 1)}` });
            return server.elicitInput(params);
        },
        letGo: async () => extra.closeSSEStream?.(),
        updated: async uri => {
            if (watched.has(uri)) await server.sendResourceUpdated({ uri });
        },
        changed: async () => {
            await server.sendToolListChanged();
            await server.sendPromptListChanged();
            await server.sendResourceListChanged();
        }
    };
}

/** A server for one client. */
function made() {
    const server = new Server(SERVER, {
        capabilities: {
            tools: { listChanged: true },
            prompts: { listChanged: true },
            resources: { listChanged: true, subscribe: true },
            logging: {},
            completions: {}
        },
        instructions: INSTRUCTIONS
    });
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => page('tools', params?.cursor));
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => page('resources', params?.cursor));
    server.setRequestHandler(ListResourceTemplatesRequestSchema, ({ params }) => page('resourceTemplates', params?.cursor));
    server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => page('prompts', params?.cursor));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
        try {
            return await call(params.name, params.arguments ?? {}, caller(server, extra));
        } catch (error) {
            if (error instanceof Unknown) throw new McpError(-32602, error.message);
            if (error instanceof McpError) throw error;
            return { content: [{ type: 'text', text: error.name }], isError: true };
        }
    });
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => {
        const contents = read(params.uri);
        if (contents === undefined) throw new McpError(-32002, 'Resource not found');
        return { contents };
    });
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) => prompt(params.name, params.arguments));
    server.setRequestHandler(CompleteRequestSchema, ({ params }) => ({
        completion: { values: complete(params.ref.name, params.argument.value, params.context?.arguments) }
    }));
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        watched.add(params.uri);
        return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
        watched.delete(params.uri);
        return {};
    });
    return server;
}

const sessions = new Map();

/** Serve Streamable HTTP: a session of its own to each client, or to each request none. */
async function endpoint(request, response) {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (!transport) {
        transport = new StreamableHTTPServerTransport({
            ...(TRANSPORT !== 'sessionless' && { sessionIdGenerator: randomUUID, eventStore: new Events(), retryInterval: RETRY_MS }),
            onsessioninitialized: id => sessions.set(id, transport)
        });
        await made().connect(transport);
    }
    await transport.handleRequest(request, response);
}

/** Serve HTTP+SSE. */
async function pair(request, response) {
    if (request.method === 'GET') {
        const transport = new SSEServerTransport('/messages', response);
        sessions.set(transport.sessionId, transport);
        await made().connect(transport);
    } else if (request.url.startsWith('/sse')) {
        response.writeHead(405).end();
    } else {
        const id = new URL(request.url, 'http://localhost').searchParams.get('sessionId');
        await sessions.get(id).handlePostMessage(request, response);
    }
}

if (TRANSPORT === 'stdio') await made().connect(new StdioServerTransport());
else listen(TRANSPORT === 'sse' ? pair : endpoint);
