// What the servers of the TypeScript SDKs do: `repertoire.py` once more, for the other language. `offered.json` says what
// they offer, in the words of the wire.
//
// A server hands a tool call on to `call`, together with a `caller`: the few motions that a tool needs, made with that SDK:
// `introduction`, `progress`, `log`, `ask`, `updated`, `changed`, `letGo`, and `signal`, which says when the call was cancelled.

import { readFileSync } from 'node:fs';

export const OFFERED = JSON.parse(readFileSync(new URL('offered.json', import.meta.url), 'utf8'));
export const COUNTER = 'interop://counter';
export const STATELESS = '2026-07-28';
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
export const INSTRUCTIONS = 'Ask for one thing of everything.';
export const SERVER = { name: 'interop', version: '4.2', title: 'Interoperability' };

const PAGE_SIZE = 4;

// A cancellation is noticed long before this; without a limit, one that is lost would hang the call for ever.
const LONGEST_WAIT_SECONDS = 10;

export class Unknown extends Error {}

export const lists = {
    tools: [...OFFERED.tools],
    resources: [...OFFERED.resources],
    resourceTemplates: [...OFFERED.resourceTemplates],
    prompts: [...OFFERED.prompts]
};
export const watched = new Set();

/** Something that happens once. */
function event() {
    let set;
    const promise = new Promise(resolve => (set = resolve));
    return { promise, set };
}

let bumps = 0;
let mayGoOn = event();
const cancelled = new Map();

export function page(kind, cursor) {
    const start = Number(cursor ?? 0);
    const rest = start + PAGE_SIZE < lists[kind].length ? { nextCursor: String(start + PAGE_SIZE) } : {};
    return { [kind]: lists[kind].slice(start, start + PAGE_SIZE), ...rest };
}

async function inTime(promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('nothing came in time')), LONGEST_WAIT_SECONDS * 1000);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

const text = said => ({ content: [{ type: 'text', text: said }] });
const structured = value => ({ ...text(JSON.stringify(value)), structuredContent: value });
// As Python writes JSON, whose clients the expectations were written for.
const spaced = value => JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ').replaceAll(/([[{]) | ([\]}])/g, '$1$2');

const tools = {
    add: ({ a, b }) => {
        if (![a, b].every(Number.isInteger)) throw new TypeError('These are no numbers');
        return structured({ result: a + b });
    },
    forecast: ({ city }) => structured({ city, celsius: 21.5, sunny: true }),
    gallery: () => ({ content: OFFERED.gallery }),
    fail: ({ reason }) => ({ ...text(`It failed: ${reason}.`), isError: true }),
    crash: () => {
        throw new Error('hunter2');
    },
    whoami: (_, caller) => text(JSON.stringify(caller.introduction())),
    noisy: ({ text: said }) => {
        process.stdout.write(`just so\n${JSON.stringify({ jsonrpc: '2.0', id: 1, result: said })}\n`);
        return text(said.toUpperCase());
    },
    route: ({ region, count }) => text(`${count} to ${region}`),
    mirror: ({ text: said }) => text([...said].reverse().join('')),
    count: async ({ to }, caller) => {
        for (let step = 1; step <= to; step++) {
            mayGoOn = event();
            await caller.progress(step, to, `${step} of ${to}`);
            await inTime(mayGoOn.promise);
        }
        return text(`counted to ${to}`);
    },
    go_on: () => {
        mayGoOn.set();
        return text('gone on');
    },
    chatter: async (_, caller) => {
        await caller.log('debug', 'a detail', 'interop');
        await caller.log('info', { event: 'news', n: 1 }, 'interop');
        await caller.log('error', 'trouble');
        return text('said');
    },
    hang: async ({ label }, caller) => {
        cancelled.set(label, event());
        caller.signal.addEventListener('abort', () => cancelled.get(label).set());
        await caller.progress(1, 2);
        await inTime(cancelled.get(label).promise);
        throw new Error('cancelled');
    },
    was_cancelled: async ({ label }) => {
        await inTime(cancelled.get(label).promise);
        return text(`${label} was cancelled`);
    },
    ask: async (_, caller) => {
        const who = await caller.ask('who');
        const sure = await caller.ask('sure');
        return text(spaced({ first: who.action, name: who.content?.name ?? null, second: sure.action }));
    },
    ask_url: async (_, caller) => text(`user said ${(await caller.ask('page')).action}`),
    sample: async (_, caller) => {
        const answer = await caller.ask('model');
        return text(`${answer.model} says ${answer.content.text}`);
    },
    roots: async (_, caller) => text(spaced((await caller.ask('roots')).roots.map(({ uri, name }) => [uri, name]))),
    bump: async (_, caller) => {
        bumps += 1;
        await caller.updated(COUNTER);
        return text(`now ${bumps}`);
    },
    grow: async (_, caller) => {
        for (const [kind, what] of Object.entries(OFFERED.grown)) lists[kind].push(what);
        await caller.changed();
        return text('grown');
    },
    let_go: async (_, caller) => {
        await caller.letGo();
        return text('here again');
    },
    sprout: () => text('sprouted')
};

export async function call(name, given, caller) {
    if (!lists.tools.some(tool => tool.name === name)) throw new Unknown(`Unknown tool: ${name}`);
    return tools[name](given, caller);
}

export function read(uri) {
    const name = uri.replace('interop://', '');
    const simple = { greeting: 'Good morning, Vera.', counter: String(bumps), one: '1', two: '2' };
    const mime = name === 'greeting' || name.startsWith('echo/') ? { mimeType: 'text/plain' } : {};
    if (name === 'pixel')
        return [{ uri, blob: Buffer.from('89504e470d0a1a0a', 'hex').toString('base64'), mimeType: 'image/png' }];
    if (name in simple) return [{ uri, text: simple[name], ...mime }];
    if (name.startsWith('echo/')) return [{ uri, text: `echo of ${name.slice(5)}`, ...mime }];
    if (name.startsWith('files/')) return [{ uri, text: `file ${name.slice(6)}` }];
}

export function prompt(name, { code, style = 'kind' } = {}) {
    const said =
        name === 'dialogue'
            ? [
                  ['user', 'Knock knock.'],
                  ['assistant', 'Who is there?']
              ]
            : [['user', `In a ${style} way, review: ${code}`]];
    return { messages: said.map(([role, each]) => ({ role, content: { type: 'text', text: each } })) };
}

export function complete(subject, value, { code = '' } = {}) {
    if (subject === 'review')
        return ['kind', 'kinetic', 'strict'].filter(style => style.startsWith(value)).map(style => style + '!'.repeat(code.length));
    return ['alpha', 'alphabet', 'beta'].filter(word => word.startsWith(value));
}
