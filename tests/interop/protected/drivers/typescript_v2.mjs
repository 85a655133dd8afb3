// The TypeScript SDK, 2.x, as a client that logs in. Argument: the URL of the server.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const REDIRECT = 'http://127.0.0.1:5555/callback';
const url = new URL(process.argv[2]);
let logins = 0;
let redirected;
let cookies = {};

/** Follow redirects until the one to the client, as a browser does. */
async function visit(to) {
    logins += 1;
    let at = to;
    while (!at.href.startsWith(REDIRECT)) {
        const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`).join('; ');
        const answer = await fetch(at, { redirect: 'manual', headers: { cookie } });
        for (const line of answer.headers.getSetCookie()) {
            const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
            cookies[name] = value;
        }
        at = new URL(answer.headers.get('location'), at);
    }
    redirected = at.searchParams;
}

const kept = {};
const authProvider = {
    redirectUrl: REDIRECT,
    clientMetadata: {
        client_name: 'test',
        redirect_uris: [REDIRECT],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none'
    },
    clientInformation: () => kept.client,
    saveClientInformation: value => void (kept.client = value),
    tokens: () => kept.tokens,
    saveTokens: value => void (kept.tokens = value),
    saveCodeVerifier: value => void (kept.verifier = value),
    codeVerifier: () => kept.verifier,
    saveDiscoveryState: value => void (kept.discovery = value),
    discoveryState: () => kept.discovery,
    redirectToAuthorization: visit
};

async function connected() {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    const transport = new StreamableHTTPClientTransport(url, { authProvider });
    return { client, transport, open: () => client.connect(transport) };
}

/** Do something; if it needs a login, finish the login and do it again. */
async function withLogin(transport, act) {
    try {
        return await act();
    } catch (error) {
        if (!(error instanceof UnauthorizedError) && error.cause?.name !== 'UnauthorizedError') throw error;
        await transport.finishAuth(redirected);
        return undefined;
    }
}

let { client, transport, open } = await connected();
for (let tries = 0; tries < 3; tries += 1) {
    const before = logins;
    await withLogin(transport, open);
    if (logins === before) break;
    ({ client, transport, open } = await connected());
}
const texts = [];
for (const name of ['whose', 'write', 'whose']) {
    const call = () => client.callTool({ name, arguments: {} });
    const result = (await withLogin(transport, call)) ?? (await call());
    texts.push(result.content[0].text);
}
await client.close();
console.log(JSON.stringify({ texts, logins }));
