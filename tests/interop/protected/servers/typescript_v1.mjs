// The TypeScript SDK, 1.x, as a protected server. Arguments: its port, and the issuer.

import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { listen, metadata, RESOURCE, SCOPE, verifier, whose } from './introspection.mjs';

async function endpoint(request, response) {
    const server = new McpServer({ name: 'files', version: '1' });
    server.registerTool('whose', {}, ({ authInfo }) => whose(authInfo));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => transport.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
}

const app = express();
app.use(mcpAuthMetadataRouter({ oauthMetadata: await metadata(), resourceServerUrl: RESOURCE, scopesSupported: [SCOPE] }));
const gate = requireBearerAuth({
    verifier: verifier(text => new InvalidTokenError(text)),
    requiredScopes: [SCOPE],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(RESOURCE),
    expectedResource: RESOURCE
});
app.all('/mcp', gate, endpoint);
listen(app);
