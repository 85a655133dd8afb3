// What every TypeScript client does with the server: `conversation.py` once more, for the other language. Both go through
// the same features in the same order and print the same lines; `client_expectations.py` judges them alike.
//
// A driver is the same few calls, each made with that client's own API, each giving back what the client
// understood. An error of the server's is a `Refused`, and what the client has no API for is a `Missing`.

export const CLIENT = { name: 'interop-client', version: '7.1' };
export const CAPABILITIES = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };

const ROOT = { uri: 'file:///srv/project', name: 'project' };
const ACCEPTED = { name: 'Ada', age: 36 };
const SAMPLED = { role: 'assistant', content: { type: 'text', text: '42' }, model: 'stub-1', stopReason: 'endTurn' };
export const STATELESS = '2026-07-28';
const COUNTER = 'interop://counter';
const LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

// Long beside the tenths of a second that a feature takes; a client may wait in vain for minutes.
const FEATURE_SECONDS = 15;

export class Missing extends Error {}

export class Refused extends Error {
    constructor(code) {
        super(`error ${code}`);
        this.code = code;
    }
}

/** What the server sent without being asked, in the order of its coming. */
export class Seen {
    logs = [];
    progress = [];
    asked = [];
    notices = [];
    #waiting = [];

    add(where, what) {
        where.push(what);
        for (const look of this.#waiting) look();
    }

    /** Wait until `condition` holds; it is looked at whenever something arrives. */
    until(condition) {
        return new Promise(resolve => {
            const look = () => {
                if (!condition()) return;
                this.#waiting = this.#waiting.filter(other => other !== look);
                resolve();
            };
            this.#waiting.push(look);
            look();
        });
    }

    /** Keep a question of the server's, and return what the user, or the model, says to it. */
    answer(method, params) {
        const { _meta, ...asked } = params ?? {};
        this.add(this.asked, { method, ...asked });
        if (method === 'roots/list') return { roots: [ROOT] };
        if (method === 'sampling/createMessage') return SAMPLED;
        if (asked.mode === 'url') return { action: 'accept' };
        return asked.message === 'Really?' ? { action: 'decline' } : { action: 'accept', content: ACCEPTED };
    }

    /** Keep a notification, its metadata apart. */
    notice(notification) {
        const { _meta, ...params } = notification.params ?? {};
        this.add(this.notices, { method: notification.method, ...params });
    }

    report = progress => {
        const { progress: step, total = null, message = null } = progress;
        this.add(this.progress, { progress: step, total, message });
    };
}

/** Return where the server is, if a driver was told that, and no command: the first speaks all, the other one only. */
export function urlIn(command, args, insists) {
    if (command.startsWith('http:')) return new URL(insists ? command : args[0]);
}

async function pages(driver, kind) {
    const found = [];
    let cursor;
    do {
        const page = await driver.page(kind, cursor);
        found.push(page[kind]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

async function names(driver, kind, key) {
    const found = await pages(driver, kind);
    return { pages: found.map(page => page.length), [key]: found.flat().map(item => item[key]) };
}

/** Let whatever the server sent before now arrive, so that what is not there was not sent. */
async function settle(driver) {
    await driver.call('add', { a: 0, b: 0 });
    await new Promise(resolve => setImmediate(resolve));
}

/** Return the code of the error, or what the tool said, and whether it called that an error. */
async function outcome(made) {
    try {
        const result = await made;
        return { isError: result.isError ?? false, text: result.content?.[0]?.text ?? null };
    } catch (error) {
        if (error instanceof Refused) return { code: error.code };
        throw error;
    }
}

async function talk(driver, tool) {
    driver.seen.asked.length = 0;
    const said = await outcome(driver.call(tool, {}));
    return said.isError ? { asked: [...driver.seen.asked], isError: true } : { asked: [...driver.seen.asked], ...said };
}

const named = (found, name) => found.flat().find(item => item.name === name);
const style = { type: 'ref/prompt', name: 'review' };
const word = { type: 'ref/resource', uri: 'interop://echo/{word}' };

const FEATURES = {
    connect: async driver => driver.greeting(),
    peer: async driver => JSON.parse((await driver.call('whoami', {})).content[0].text),
    'list tools': async driver => {
        const found = await pages(driver, 'tools');
        return { ...(await names(driver, 'tools', 'name')), add: named(found, 'add'), forecast: named(found, 'forecast') };
    },
    'list resources': driver => names(driver, 'resources', 'uri'),
    'list templates': driver => names(driver, 'resourceTemplates', 'uriTemplate'),
    'list prompts': async driver => ({
        ...(await names(driver, 'prompts', 'name')),
        review: named(await pages(driver, 'prompts'), 'review')
    }),
    call: driver => driver.call('add', { a: 20, b: 22 }),
    'structured result': async driver => {
        const result = await driver.call('forecast', { city: 'Zürich' });
        return { ...result, content: result.content.map(block => JSON.parse(block.text)) };
    },
    content: async driver => (await driver.call('gallery', {})).content,
    'parameter headers': async driver => (await driver.call('route', { region: 'Zürich', count: 7 })).content,
    'tool error': driver => driver.call('fail', { reason: 'no luck' }),
    crash: async driver => {
        const result = await driver.call('crash', {});
        const leaks = JSON.stringify(result).includes('hunter2');
        return { isError: result.isError, leaks, blocks: result.content.length };
    },
    'unknown tool': driver => outcome(driver.call('no_such_tool', {})),
    'wrong arguments': async driver => {
        const { code, isError } = await outcome(driver.call('add', { a: 'one', b: 2 }));
        return code === undefined ? { isError } : { code };
    },
    'stray output': async driver => (await driver.call('noisy', { text: 'quiet' })).content,
    large: async driver => {
        const letters = Array.from({ length: 500_000 }, (_, n) => String.fromCodePoint(0xc0 + (n % 50)));
        const mirrored = (await driver.call('mirror', { text: letters.join('') })).content[0].text;
        return { length: mirrored.length, 'is mirrored': mirrored === letters.reverse().join('') };
    },
    'at once': async driver => {
        const calls = Array.from({ length: 50 }, (_, n) => driver.call('add', { a: n, b: n }));
        return (await Promise.all(calls)).map(result => String(JSON.parse(result.content[0].text).result));
    },
    // A client may drop reports that come together with the result, as this one does; those of a tool at work must arrive.
    progress: async driver => {
        driver.seen.progress.length = 0;
        const counting = driver.call('count', { to: 3 }, { withProgress: true });
        for (const step of [1, 2, 3]) {
            await driver.seen.until(() => driver.seen.progress.length >= step);
            await driver.call('go_on', {});
        }
        const result = await counting;
        return { progress: [...driver.seen.progress], text: result.content[0].text };
    },
    log: async driver => {
        driver.seen.logs.length = 0;
        const isStateless = driver.greeting().revision === STATELESS;
        if (!isStateless) await driver.setLevel('info');
        await driver.call('chatter', {}, isStateless ? { meta: { [LEVEL_KEY]: 'info' } } : {});
        await driver.seen.until(() => driver.seen.logs.some(entry => entry.level === 'error'));
        await settle(driver);
        return [...driver.seen.logs];
    },
    cancel: async driver => {
        driver.seen.progress.length = 0;
        const controller = new AbortController();
        const given = driver.call('hang', { label: 'first' }, { withProgress: true, signal: controller.signal });
        const gone = given.then(
            () => false,
            () => true
        );
        await driver.seen.until(() => driver.seen.progress.length > 0);
        controller.abort('no longer wanted');
        if (!(await gone)) throw new Error('the cancelled call was answered');
        return (await driver.call('was_cancelled', { label: 'first' })).content;
    },
    reconnect: async driver => (await driver.call('let_go', {})).content,
    elicit: driver => talk(driver, 'ask'),
    'elicit url': driver => talk(driver, 'ask_url'),
    sample: driver => talk(driver, 'sample'),
    roots: driver => talk(driver, 'roots'),
    read: async driver => {
        const contents = [];
        for (const uri of ['interop://greeting', 'interop://pixel', 'interop://echo/hello', 'interop://files/a/b.txt'])
            contents.push((await driver.read(uri)).contents);
        return contents;
    },
    'unknown resource': driver => outcome(driver.read('interop://nowhere')),
    prompt: async driver => [
        (await driver.prompt('review', { code: 'x = 1' })).messages,
        (await driver.prompt('review', { code: 'x = 1', style: 'strict' })).messages,
        (await driver.prompt('dialogue', {})).messages
    ],
    complete: async driver => [
        (await driver.complete(style, { name: 'style', value: 'kin' })).completion.values,
        (await driver.complete(word, { name: 'word', value: 'alpha' })).completion.values
    ],
    'complete context': async driver => {
        if (['2024-11-05', '2025-03-26'].includes(driver.greeting().revision))
            throw new Missing('the revision has no context in completions');
        return (await driver.complete(style, { name: 'style', value: 's' }, { code: 'ab' })).completion.values;
    },
    ping: async driver => {
        if (driver.greeting().revision === STATELESS) throw new Missing('the revision has no ping');
        return driver.ping();
    },
    subscribe: async driver => {
        driver.seen.notices.length = 0;
        const { agreed, stop } = await driver.listen([COUNTER]);
        await driver.call('bump', {});
        await driver.seen.until(() => driver.seen.notices.length > 0);
        const text = (await driver.read(COUNTER)).contents[0].text;
        await stop();
        await driver.call('bump', {});
        await settle(driver);
        return { agreed, heard: [...driver.seen.notices], text };
    },
    'input required': async driver => {
        const first = await driver.demand('ask', {});
        const [[key, question]] = Object.entries(first.inputRequests);
        const answers = { [key]: { action: 'accept', content: ACCEPTED } };
        const forged = await outcome(driver.demand('ask', {}, answers, 'A'.repeat(first.requestState.length)));
        const other = await outcome(driver.demand('ask_url', {}, answers, first.requestState));
        const second = await driver.demand('ask', {}, answers, first.requestState);
        const again = await driver.demand('ask', {}, answers, first.requestState);
        const [last] = Object.keys(second.inputRequests);
        const done = await driver.demand('ask', {}, { [last]: { action: 'cancel' } }, second.requestState);
        return {
            types: [first.resultType, second.resultType, done.resultType ?? 'complete'],
            question: { method: question.method, message: question.params.message },
            forged,
            'other call': other,
            'again is the same': JSON.stringify(again) === JSON.stringify(second),
            text: done.content[0].text
        };
    },
    'list changed': async driver => {
        driver.seen.notices.length = 0;
        const { stop } = await driver.listen([]);
        await driver.call('grow', {});
        await driver.seen.until(() => driver.seen.notices.length >= 3);
        await stop();
        await settle(driver);
        const heard = driver.seen.notices.map(notice => notice.method).sort();
        const tools = (await names(driver, 'tools', 'name')).name;
        const prompts = (await names(driver, 'prompts', 'name')).name;
        const resources = (await names(driver, 'resources', 'uri')).uri;
        const text = (await driver.call('sprout', {})).content[0].text;
        return { heard, last: [tools.at(-1), prompts.at(-1), resources.at(-1)], text };
    }
};

function say(feature, outcome, detail) {
    process.stdout.write(`${JSON.stringify({ feature, outcome, detail })}\n`);
}

async function attempt(feature, act) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('nothing came in time')), FEATURE_SECONDS * 1000);
    });
    try {
        say(feature, 'observed', await Promise.race([act(), late]));
    } catch (error) {
        if (error instanceof Missing) say(feature, 'unsupported', error.message);
        else say(feature, 'failed', `${error.name}: ${error.message}`);
    } finally {
        clearTimeout(timer);
    }
}

/**
 * Go through all features with a client that offers `revision`, then once more with what the client offers itself.
 *
 * `connection(revision, insists)` connects, and gives `driver` with a `close()`. A client that does not insist is left
 * alone, and gets a server that serves that revision only.
 */
export async function converse(connection) {
    const revision = process.argv[2];
    try {
        const driver = await connection(revision, true);
        for (const [feature, act] of Object.entries(FEATURES)) await attempt(feature, () => act(driver));
        await driver.close();
    } catch (error) {
        say('connect', 'failed', `${error.name}: ${error.message}`);
    }
    await attempt('counter-offer', async () => {
        const driver = await connection(revision, false);
        const { content } = await FEATURES.call(driver);
        const observed = { revision: driver.greeting().revision, content };
        await driver.close();
        return observed;
    });
}
