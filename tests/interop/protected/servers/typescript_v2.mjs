// The TypeScript SDK, 2.x, as a protected server. Arguments: its port, and the issuer.

import { Readable } from 'node:stream';
import {
    createMcpHandler,
    getOAuthProtectedResourceMetadataUrl,
    McpServer,
    OAuthError,
    OAuthErrorCode,
    oauthMetadataResponse,
    requireBearerAuth
} from '@modelcontextprotocol/server';
import { listen, metadata, RESOURCE, SCOPE, verifier, whose } from './introspection.mjs';

const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'files', version: '1' });
    server.registerTool('whose', {}, context => whose(context.http.authInfo));
    return server;
});
const gate = requireBearerAuth({
    verifier: verifier(text => new OAuthError(OAuthErrorCode.InvalidToken, text)),
    requiredScopes: [SCOPE],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(RESOURCE),
    expectedResource: RESOURCE
});
const documents = { oauthMetadata: await metadata(), resourceServerUrl: RESOURCE, scopesSupported: [SCOPE] };

async function answered(request) {
    const document = oauthMetadataResponse(request, documents);
    if (document) return document;
    const auth = await gate(request);
    return auth instanceof Response ? auth : handler.fetch(request, { authInfo: auth });
}

listen(async (request, response) => {
    const { method, headers, url } = request;
    const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
    const answer = await answered(new Request(new URL(url, RESOURCE), { method, headers, ...body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).pipe(response);
    else response.end();
});
