// What the readers in JavaScript have in common, as reading.py has it for those in Python.

import { readFileSync } from 'node:fs';

const DEADLINE_MS = 10000;
const MAX_PAGES = 20;

export async function pages(get, key) {
    const items = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES; page++) {
        const found = await get(cursor === undefined ? {} : { cursor });
        items.push(...found[key]);
        cursor = found.nextCursor;
        if (!cursor) return { [key]: items };
    }
    throw new Error('the list has no end');
}

export function verbs(client, list, seen) {
    const call = (options, name = 'echo') => client.callTool({ name, arguments: {} }, ...options);
    return {
        connect: () => ({ capabilities: client.getServerCapabilities() }),
        tools: () => list('listTools', 'tools'),
        resources: () => list('listResources', 'resources'),
        templates: () => list('listResourceTemplates', 'resourceTemplates'),
        prompts: () => list('listPrompts', 'prompts'),
        read: () => client.readResource({ uri: 'test://a' }),
        prompt: () => client.getPrompt({ name: 'p', arguments: {} }),
        complete: () => client.complete({ ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'who', value: '' } }),
        level: () => client.setLoggingLevel('info'),
        call: () => call([]),
        ask: () => call([]),
        error: () => call([], 'error')
    };
}

export const ANSWERS = {
    'elicitation/create': { action: 'decline' },
    'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' },
    'roots/list': { roots: [] }
};
export const CAPABILITIES = { sampling: {}, elicitation: {}, roots: {} };

/** Go through the plan. A connection is made by `connect(reading, seen)`, which returns verbs and a way to close. */
export async function readAll(connect) {
    // An error that no call waits for must not end the other readings.
    process.on('uncaughtException', () => {});
    process.on('unhandledRejection', () => {});
    console.error = console.warn = console.log = () => {};
    for (const reading of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
        const seen = { logs: [], progress: [] };
        const found = { seen };
        let failure = 'not connected';
        let close = async () => {};
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error('late')), DEADLINE_MS);
        });
        const read = async () => {
            const { does, opened } = connect(reading, seen, end => (close = end));
            await opened;
            for (const verb of reading.do) {
                failure = `${verb} has not ended`;
                found[verb] = await does[verb]();
            }
            if (reading.waits) await new Promise(resolve => setTimeout(resolve, 200));
            failure = '';
        };
        try {
            await Promise.race([read(), late]);
        } catch (error) {
            if (error.message === 'late') failure = `hangs: ${failure}`;
            else {
                if (typeof error.code === 'number') found.error = { code: error.code, message: error.message };
                failure = `${error.name ?? error.constructor.name}: ${error.message}`;
            }
        }
        clearTimeout(timer);
        const { kind, revision } = reading;
        const line = JSON.stringify({ kind, revision, found, failure: failure.slice(0, 400) });
        process.stdout.write(`${line}\n`);
        await Promise.race([close().catch(() => {}), new Promise(resolve => setTimeout(resolve, 1000))]);
    }
    process.exit(0);
}
