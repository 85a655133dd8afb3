// What the protected servers of the TypeScript SDKs have in common: they ask the authorization server about each token.

import { createServer } from 'node:http';

export const [PORT, ISSUER] = process.argv.slice(2);
export const RESOURCE = new URL(`http://127.0.0.1:${PORT}/mcp`);
export const SCOPE = 'files:read';

/** Return what the authorization server says of its own endpoints. */
export async function metadata() {
    const answer = await fetch(`${ISSUER}/.well-known/openid-configuration`);
    return answer.json();
}

/** Return a verifier of tokens, as both SDKs have them; `Invalid` is the class of its error. */
export const verifier = invalid => ({
    async verifyAccessToken(token) {
        const answer = await fetch(`${ISSUER}/token/introspection`, {
            method: 'POST',
            headers: { authorization: `Basic ${btoa('files:of+files')}` },
            body: new URLSearchParams({ token })
        });
        const { active, client_id, scope, exp, aud, sub } = await answer.json();
        if (!active) throw invalid('the token is not active');
        return { token, clientId: client_id, scopes: scope.split(' '), expiresAt: exp, resource: new URL(aud), extra: { sub } };
    }
});

/** Say whose token it is. */
export const whose = ({ extra, scopes }) => ({ content: [{ type: 'text', text: `${extra.sub}: ${scopes.join(' ')}` }] });

/** Serve until the process is ended; say where. */
export const listen = handle => createServer(handle).listen(Number(PORT), '127.0.0.1', () => console.error(RESOURCE.href));
