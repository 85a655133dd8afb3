// An authorization server for tests: `oidc-provider`, which lets everybody in as `ann` and asks no questions.
//
// Arguments: its port, the URL of the protected server, and the format of access tokens, `jwt` or `opaque`.

import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import Provider from 'oidc-provider';

const [port, resource, format] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

// Clients register for id tokens of RS256; access tokens have ES256.
const made = { ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }), RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }) };
const keys = Object.entries(made).map(([alg, { privateKey }]) => ({
    ...privateKey.export({ format: 'jwk' }),
    use: 'sig',
    alg,
    kid: alg
}));

const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
        { client_id: 'files', client_secret: 'of files', grant_types: [], redirect_uris: [], response_types: [] }
    ],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    cookies: { keys: ['of the tests'] },
    features: {
        devInteractions: { enabled: false },
        introspection: { enabled: true, allowedPolicy: () => true },
        registration: { enabled: true },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => undefined,
            useGrantedResource: () => true,
            getResourceServerInfo: (_context, indicator) => {
                if (indicator !== resource) throw new Error(`not the resource: ${indicator}`);
                const jwt = { sign: { alg: 'ES256' } };
                return { scope: 'files:read files:write', audience: resource, accessTokenFormat: format, jwt };
            }
        }
    },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'files:read', 'files:write']
});
const serve = provider.callback();

/** Log in as `ann`, and then grant all that is asked for. */
async function interact(request, response) {
    const { grantId, params, prompt } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login')
        return provider.interactionFinished(request, response, { login: { accountId: 'ann' } });
    const found = grantId ? await provider.Grant.find(grantId) : undefined;
    const grant = found ?? new provider.Grant({ accountId: 'ann', clientId: params.client_id });
    if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
    for (const [indicator, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {}))
        grant.addResourceScope(indicator, scopes.join(' '));
    return provider.interactionFinished(
        request,
        response,
        { consent: { grantId: await grant.save() } },
        { mergeWithLastSubmission: true }
    );
}

/** Forget the scopes of a registration: a client that has registered for some could never ask for more. */
async function withoutScope(request) {
    const parts = [];
    for await (const each of request) parts.push(each);
    const { scope, ...rest } = JSON.parse(Buffer.concat(parts));
    request.body = rest;
}

http.createServer(async (request, response) => {
    if (request.method === 'POST' && request.url === '/reg') await withoutScope(request);
    if (request.url.startsWith('/interaction/')) return interact(request, response);
    if (request.url === '/.well-known/oauth-authorization-server') request.url = '/.well-known/openid-configuration';
    return serve(request, response);
}).listen(Number(port), '127.0.0.1', () => console.log(issuer));
