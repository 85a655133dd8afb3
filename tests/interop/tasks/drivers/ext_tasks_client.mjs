// The package of the extension's authors, as a client: `ext_tasks_client.mjs REVISION COMMAND...` or `... REVISION URL`.
// It prints one JSON object: what came of each feature.
//
// It stands on the TypeScript SDK, which refuses results of the kind "task". So the package demands a function that sends
// requests past the SDK's `Client`; ours uses the SDK's transport, which also sets the headers of HTTP.

import { setTimeout } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

const STATELESS = '2026-07-28';
const CLIENT = { name: 'ext-tasks', version: '0.2.2' };
const CAPABILITIES = { elicitation: { form: {} } };
const [revision, command, ...args] = process.argv.slice(2);

function reach() {
    if (command.startsWith('http')) return new StreamableHTTPClientTransport(new URL(command));
    return new StdioClientTransport({ command, args, env: process.env });
}

/** Send requests past the client; what it has not asked for it does not get to see. */
function dispatcher(transport) {
    const waiting = new Map();
    const hear = transport.onmessage;
    let sent = 0;
    transport.onmessage = (message, ...rest) => {
        const settle = waiting.get(message.id);
        if (!settle) return hear(message, ...rest);
        waiting.delete(message.id);
        settle(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
    };
    return request =>
        new Promise((settle, fail) => {
            const id = `raw-${++sent}`;
            waiting.set(id, settle);
            transport.send({ jsonrpc: '2.0', id, ...request }).catch(fail);
        });
}

const client = new Client(CLIENT, {
    capabilities: CAPABILITIES,
    ...(revision === STATELESS
        ? { versionNegotiation: { mode: { pin: STATELESS } } }
        : { supportedProtocolVersions: [revision] })
});
const transport = reach();
await client.connect(transport);
const dispatch = dispatcher(transport);
const framing = { protocolVersion: revision, clientInfo: CLIENT, clientCapabilities: CAPABILITIES };
const asked = [];
const session = createTaskSessionFromClient(client, {
    endpointId: 'interop',
    ...(revision === STATELESS ? { rawDispatch: dispatch, v2RequestFraming: framing } : {}),
    onInputRequest: async request => {
        asked.push(request.params.message);
        return { action: 'accept', content: { name: 'Ada' } };
    }
});

const prefer = { task: { preference: 'prefer' } };
const text = outcome => resultFromTaskOutcome(outcome).content[0].text;
const start = (name, given = {}) => session.callTool(name, given, prefer);
const settled = async execution => (await execution.settle()).outcome;

async function refusal(made) {
    try {
        await made;
        return 'not refused';
    } catch (error) {
        return error.code ?? error.message;
    }
}

const features = {
    immediate: async () => {
        const execution = await start('greet');
        return [execution.kind, text(await settled(execution))];
    },
    call: async () => {
        const execution = await start('bake', { loaves: 3 });
        return [execution.kind, text(await settled(execution))];
    },
    required: async () => text(await settled(await session.callTool('ferment', {}))),
    ask: async () => [text(await settled(await start('deliver'))), asked.includes('Who?')],
    progress: async () => {
        const messages = [];
        const execution = await start('knead');
        const onEvent = event => event.task?.statusMessage && messages.push(event.task.statusMessage);
        return [text((await execution.settle({ onEvent })).outcome), messages.includes('Kneading')];
    },
    'tool error': async () => {
        const outcome = await settled(await start('burn'));
        return outcome.status === 'completed'
            ? [outcome.status, outcome.result.isError, text(outcome)]
            : [outcome.status, outcome.error.message];
    },
    'protocol error': async () => {
        const outcome = await settled(await start('explode'));
        return [outcome.status, outcome.error.code ?? null, outcome.error.message];
    },
    cancel: async () => {
        const execution = await start('rest');
        await execution.cancel();
        return [(await session.task(execution.handle.taskId).snapshot()).status, (await execution.result()).status];
    },
    'unknown task': () => refusal(session.task('unknown').snapshot()),
    list: async () => {
        if (session.capabilities.inventory !== 'server-list') return session.capabilities.inventory;
        const { tasks } = await session.listTasks();
        return [tasks.length > 3, tasks.every(each => each.retentionMs === 600000)];
    },
    resume: async () => {
        const execution = await start('rest');
        let reference;
        await execution.handoff(kept => {
            reference = JSON.parse(JSON.stringify(kept));
        });
        await setTimeout(10); // until then, the session owns the task
        const resumed = await session.resumeTask(reference);
        await resumed.cancel();
        return (await resumed.result()).status;
    }
};

const said = {};
for (const [feature, go] of Object.entries(features)) {
    try {
        said[feature] = await go();
    } catch (error) {
        said[feature] = `failed: ${error.stack}`;
    }
}
await session.close();
if (transport.terminateSession) await transport.terminateSession();
await client.close();
process.stdout.write(`${JSON.stringify(said)}\n`);
