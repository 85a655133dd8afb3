// The TypeScript SDK, 2.x, as a server: its `McpServer`, and `serveStdio`, which serves both eras in one process; what the
// client says first decides. Over HTTP that is what `createMcpHandler` does, with `isLegacyRequest` and a transport with
// sessions for the others.
//
// A tool that asks returns `inputRequired`. To clients of 2026-07-28 that is a demand for input; to others the SDK asks, and
// then calls the tool once more. `createRequestStateCodec` signs the state that goes with it.

import { randomBytes, randomUUID } from 'node:crypto';
import {
    completable,
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    isLegacyRequest,
    McpServer,
    ProtocolError,
    ResourceTemplate,
    WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { asOnTheWeb, Events, listen, RETRY_MS, TRANSPORT } from './listening.mjs';
import { call, complete, INSTRUCTIONS, lists, OFFERED, prompt, read, SERVER, STATELESS, watched } from './repertoire.mjs';

const codec = createRequestStateCodec({ key: randomBytes(32) });

class Demand extends Error {}

function caller(server, tool, context) {
    const { mcpReq } = context;
    const token = mcpReq._meta?.progressToken;
    const answers = { ...mcpReq.requestState()?.answers, ...mcpReq.inputResponses };
    return {
        answers,
        signal: mcpReq.signal,
        introduction: () => {
            const revision = server.server.getNegotiatedProtocolVersion();
            const { name, version } = server.server.getClientVersion() ?? mcpReq.envelope['io.modelcontextprotocol/clientInfo'];
            return { revision, era: revision === STATELESS ? 'stateless' : 'handshake', name, version };
        },
        progress: async (progress, total, message) => {
            const params = { progressToken: token, progress, total, ...(message && { message }) };
            if (token !== undefined) await mcpReq.notify({ method: 'notifications/progress', params });
        },
        log: (level, data, logger) => mcpReq.log(level, data, logger),
        ask: async key => {
            if (!(key in answers)) throw new Demand(key);
            return answers[key];
        },
        letGo: async () => context.http?.closeSSE?.(),
        updated: async uri => {
            const revision = server.server.getNegotiatedProtocolVersion();
            if (revision === STATELESS && TRANSPORT !== 'stdio') handler.notify.resourceUpdated(uri);
            else if (revision === STATELESS || watched.has(uri)) await server.server.sendResourceUpdated({ uri });
        },
        changed: async () => {
            const isOfNow = server.server.getNegotiatedProtocolVersion() === STATELESS;
            if (isOfNow && TRANSPORT !== 'stdio') {
                // There is a server for each request, and the next one has what is new.
                handler.notify.toolsChanged();
                handler.notify.promptsChanged();
                handler.notify.resourcesChanged();
            } else grow(server);
        }
    };
}

function tool(server, { name, title, description, inputSchema, outputSchema }) {
    const schemas = {
        inputSchema: fromJsonSchema(inputSchema),
        ...(outputSchema && { outputSchema: fromJsonSchema(outputSchema) })
    };
    server.registerTool(name, { title, description, ...schemas }, async (given, context) => {
        const state = context.mcpReq.requestState();
        if (state !== undefined && state.tool !== name) throw new ProtocolError(-32602, 'This is the state of another call');
        const asking = caller(server, name, context);
        try {
            return await call(name, given, asking);
        } catch (error) {
            if (!(error instanceof Demand)) throw error;
            const requestState = await codec.mint({ tool: name, answers: asking.answers }, context);
            return inputRequired({ inputRequests: { [error.message]: OFFERED.questions[error.message] }, requestState });
        }
    });
}

function resource(server, { uri, name, ...about }) {
    server.registerResource(name, uri, about, () => ({ contents: read(uri) }));
}

/** Registering after the start tells who listens. */
function grow(server) {
    tool(server, OFFERED.grown.tools);
    server.registerPrompt('seed', { description: OFFERED.grown.prompts.description }, () => prompt('seed'));
    resource(server, OFFERED.grown.resources);
}

/** What a new server has from the start: over stdio there is one, which grows by itself. */
const offered = kind => (TRANSPORT === 'stdio' ? OFFERED[kind] : lists[kind]);

function factory() {
    const server = new McpServer(SERVER, {
        capabilities: {
            tools: { listChanged: true },
            prompts: { listChanged: true },
            resources: { listChanged: true, subscribe: true },
            logging: {}
        },
        instructions: INSTRUCTIONS,
        requestState: { verify: codec.verify }
    });
    for (const each of offered('tools')) tool(server, each);
    for (const each of offered('resources')) resource(server, each);
    for (const { uriTemplate, name, ...about } of OFFERED.resourceTemplates) {
        const completions = name === 'echo' ? { word: value => complete('word', value) } : {};
        const template = new ResourceTemplate(uriTemplate, { list: undefined, complete: completions });
        server.registerResource(name, template, about, uri => ({ contents: read(uri.href) }));
    }
    for (const { name, description, arguments: given = [] } of offered('prompts')) {
        const style = completable(z.string().describe('How to say it.'), (value, context) =>
            complete('review', value, context?.arguments)
        ).optional();
        const argsSchema = given.length > 0 ? z.object({ code: z.string().describe('What to look at.'), style }) : undefined;
        server.registerPrompt(name, { description, argsSchema }, argsSchema ? said => prompt(name, said) : () => prompt(name));
    }
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
        watched.add(params.uri);
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
        watched.delete(params.uri);
        return {};
    });
    return server;
}

const sessions = new Map();
const handler = createMcpHandler(factory, TRANSPORT === 'sessionless' ? {} : { legacy: 'reject' });

/** Serve clients that shake hands in sessions, and others without. */
async function fetch(request) {
    if (TRANSPORT === 'sessionless' || !(await isLegacyRequest(request))) return handler.fetch(request);
    let transport = sessions.get(request.headers.get('mcp-session-id'));
    if (!transport) {
        transport = new WebStandardStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            eventStore: new Events(),
            retryInterval: RETRY_MS,
            onsessioninitialized: id => sessions.set(id, transport)
        });
        await factory().connect(transport);
    }
    return transport.handleRequest(request);
}

if (TRANSPORT === 'stdio') serveStdio(factory);
else listen((request, response) => asOnTheWeb(request, response, fetch));
