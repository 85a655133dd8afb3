// An authorization server of npm's oidc-provider, which logs in every user: node authorization_server.mjs
//
// RESOURCE: the MCP server. CLIENT_JWK: the public key of the client "signing". OPAQUE: issue opaque tokens.
// NONCE: demand nonces in proofs of DPoP. FORMS: show the forms that oidc-provider has for development, instead of logging
// in at once. It prints its issuer when it listens.
import http from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import { Provider } from 'oidc-provider';

const { RESOURCE, CLIENT_JWK, OPAQUE, NONCE, FORMS } = process.env;
const keys = [
  { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), alg: 'ES256' },
  { ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), alg: 'RS256' },
];
const DOCUMENT = 'https://client.example/client.json';
const NATIVE = {
  client_name: 'a client with a document',
  redirect_uris: ['http://127.0.0.1/callback'],
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const MACHINE = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };

const server = http.createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  jwks: { keys: keys.map((each) => ({ ...each, use: 'sig', kid: each.alg })) }, // RS256 is for ID tokens
  clients: [
    { client_id: 'service', client_secret: 's3cret', ...MACHINE },
    { client_id: 'signing', ...MACHINE, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [JSON.parse(CLIENT_JWK)] } },
    { ...NATIVE, client_id: 'given', client_secret: 's3cret', token_endpoint_auth_method: 'client_secret_post' },
    { client_id: 'resource', client_secret: 's3cret', grant_types: [], redirect_uris: [], response_types: [] },
  ],
  scopes: ['openid', 'offline_access', 'read', 'write'],
  cookies: { keys: ['any'] },
  // The internet of this test: the document of the client is the only page.
  fetch: async (url) => {
    if (String(url) !== DOCUMENT) throw new Error(`there is no network: ${url}`);
    const document = JSON.stringify({ client_id: DOCUMENT, ...NATIVE });
    return new Response(document, { headers: { 'content-type': 'application/json' } });
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  features: {
    devInteractions: { enabled: Boolean(FORMS) },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true, allowedPolicy: () => true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => Boolean(NONCE) },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'read write',
        audience: resource,
        accessTokenTTL: 600,
        accessTokenFormat: OPAQUE ? 'opaque' : 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ...(!FORMS && { interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` } }),
});

async function interact(request, response) {
  const { prompt, params, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const result = { login: { accountId: 'ann' } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId: 'ann', clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

const answer = provider.callback();
server.on('request', (request, response) => {
  if (!FORMS && request.url.startsWith('/interaction/')) return interact(request, response);
  // oidc-provider has its metadata at the place of OpenID Connect alone.
  if (request.url === '/.well-known/oauth-authorization-server') request.url = '/.well-known/openid-configuration';
  return answer(request, response);
});
console.log(issuer, RESOURCE);
