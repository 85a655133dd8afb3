// What the clients of the TypeScript SDKs have in common. Arguments: the URL of the server, and the revision.

const REDIRECT = 'http://127.0.0.1:5555/callback';
export const url = new URL(process.argv[2]);
export const REVISION = process.argv[3];
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
export const authProvider = {
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

/** Do something; if it needs a login, finish the login and do it again. */
async function withLogin(transport, { Unauthorized, takes = each => each }, act) {
    try {
        return await act();
    } catch (error) {
        if (!(error instanceof Unauthorized) && error.cause?.name !== 'UnauthorizedError') throw error;
        await transport.finishAuth(takes(redirected));
        return undefined;
    }
}

/**
 * Connect, call the tools, the second of which needs one scope more, and print the outcome.
 *
 * `made` returns a client and its transport; `sdk` has `Unauthorized`, the class of the error that wants a login, and
 * `takes`, which returns what finishes a login, given the query of the redirect.
 */
export async function run(made, sdk) {
    let { client, transport } = made();
    for (let tries = 0; tries < 3; tries += 1) {
        const before = logins;
        await withLogin(transport, sdk, () => client.connect(transport));
        if (logins === before) break;
        ({ client, transport } = made());
    }
    const texts = [];
    for (const name of ['whose', 'write', 'whose']) {
        const call = () => client.callTool({ name, arguments: {} });
        const result = (await withLogin(transport, sdk, call)) ?? (await call());
        texts.push(result.content[0].text);
    }
    await client.close();
    console.log(JSON.stringify({ texts, logins }));
}
