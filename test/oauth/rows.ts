/**
 * Owns: the oddities of real authorization servers, one row each: how the server behaves, and what the user reads.
 * To add a row: a name, a behaviour of a few lines, and the sentence, or `signed in`.
 */
import type { Behaviour } from "../support/authorization-server.ts";
import type { Protection } from "../support/protected-server.ts";
import { sendHtml, sendJson } from "../support/recording-server.ts";
import type { Servers } from "./support.ts";

export interface Oddity {
  behaviour?: Behaviour;
  protection?: Partial<Protection>;
  /** Further keys of the server's entry. */
  entry?: Record<string, unknown>;
  /** Runs before the sign-in, once the addresses are known. */
  prepare?: (servers: Servers) => void;
  /** What the user reads at the end. Default: `signed in`. */
  says?: string | RegExp | ((servers: Servers) => string | RegExp);
  /** The questions before it. Default: none. */
  asks?: (servers: Servers) => string[];
  /** The request that reached no authorization endpoint or token endpoint. */
  neverAsks?: "/authorize" | "/token";
}

const without =
  (...keys: string[]) =>
  (metadata: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(metadata).filter(([key]) => !keys.includes(key)));

const AGAIN = "Run /mcp auth web again.";
const OTHER_ISSUER = "https://login.example.test";
const CODE_REFUSED = `web: the authorization server no longer accepts the code of this sign-in. ${AGAIN}`;
const ABSENT_ISSUER = ({ trusted }: Servers): string =>
  `web: the answer of the browser does not say which authorization server it comes from (iss), as was promised. It is not used, since any other server could have sent it. If you signed in at ${trusted.origin}, only its operator can mend that (RFC 9207).`;
const wrongIssuer =
  (found: (servers: Servers) => string) =>
  (servers: Servers): string =>
    `web: the answer of the browser comes from another authorization server: it names ${found(servers)} in place of ${servers.trusted.origin}. Do not trust that page. ${AGAIN} If it stays so, its operator has to make both the same (iss, RFC 9207).`;
const WRONG_ISSUER = wrongIssuer(() => OTHER_ISSUER);
const registerAt = ({ trusted }: Servers): string =>
  `Register a client at ${trusted.issuer}, and write its id as oauth.clientId.`;
const atToken = (what: string) => (servers: Servers) => `web: ${servers.trusted.origin}/token ${what}`;

/** The issuer of the metadata is not the one under which they were found (Atlassian). */
const issuerDiffers: Behaviour = {
  metadata: (metadata) => ({ ...metadata, issuer: OTHER_ISSUER }),
  iss: OTHER_ISSUER,
};

/** Nothing of the server is of that issuer's site. */
const asksForPage = ({ trusted }: Servers): string => {
  const { host } = new URL(trusted.origin);
  return `web sends you to sign in at ${host}, and the code of that sign-in goes to ${host}, as ${host} says, which calls itself login.example.test. Whoever gets the code can act as you at login.example.test. Go on only if you know that they belong together.`;
};

const entra: Behaviour = {
  metadata: without("code_challenge_methods_supported", "authorization_response_iss_parameter_supported"),
  iss: false,
  answer: {
    token: ({ form }, response) => {
      if (!form.has("resource")) return false;
      const error_description = "AADSTS9010010: The resource parameter does not match the requested scopes.";
      return sendJson(response, 400, { error: "invalid_target", error_description });
    },
  },
};

const DISCOVERY: Record<string, Oddity> = {
  "an issuer that differs, and the user trusts it": {
    behaviour: issuerDiffers,
    asks: (servers) => [
      `web should use ${servers.trusted.issuer}, which says it is ${OTHER_ISSUER}. Trust it?`,
      asksForPage(servers),
    ],
  },
  "an issuer that differs, which oauth.issuer names": {
    behaviour: issuerDiffers,
    entry: { oauth: { issuer: OTHER_ISSUER } },
    asks: (servers) => [asksForPage(servers)],
  },
  "an issuer that differs from the one that oauth.issuer names": {
    entry: { oauth: { issuer: OTHER_ISSUER } },
    says: ({ trusted }) =>
      `web: its authorization server should be ${OTHER_ISSUER} and says it is ${trusted.issuer}. Only the user can decide to trust that: "issuer": "${trusted.issuer}" in oauth.`,
    neverAsks: "/authorize",
  },
  "a trailing slash at the issuer (Google)": {
    prepare: ({ guarded, trusted }) => {
      guarded.protection.issuers = [`${trusted.issuer}/`];
    },
  },
  "a path in the issuer, OpenID metadata only (Keycloak)": {
    behaviour: { issuerPath: "/realms/test", wellKnown: "openid" },
  },
  "OpenID metadata only": { behaviour: { wellKnown: "openid" } },
  "no metadata of the resource, the server is its own authorization server (2025-03-26)": {
    behaviour: {
      answer: { metadata: (_request, response) => sendHtml(response, 404, "There is no such page.") },
      iss: false,
    },
    protection: { metadata: "none" },
    prepare: ({ guarded, trusted }) => {
      guarded.protection.otherwise = (request, response) => trusted.answer(request, response);
    },
  },
  "metadata of the resource at the root only": { protection: { metadata: "root" } },
  "metadata for another resource": {
    protection: { resource: "https://other.example.test/mcp" },
    says: ({ guarded }) =>
      `web: it should be the resource ${guarded.url} and says it is https://other.example.test/mcp. If the url is right, write that resource as "resource" in oauth.`,
    neverAsks: "/authorize",
  },
  "an authorization server that is not https": {
    protection: { issuers: ["http://auth.example.test"] },
    says: /^web: http:\/\/auth\.example\.test\S* is not https, and a token would travel in the open\. Only its operator can change that\.$/,
    neverAsks: "/authorize",
  },
  "HTML in the place of the metadata": {
    behaviour: { answer: { metadata: (_request, response) => sendHtml(response, 200, "Welcome.") } },
    says: /^web: \S+ gave an answer that cannot be used: HTML in the place of JSON\. Check the url in mcp\.json, or oauth\.authServerMetadataUrl\.$/,
    neverAsks: "/authorize",
  },
  "metadata that answer 503": {
    behaviour: { answer: { metadata: (_request, response) => response.writeHead(503).end() } },
    says: ({ trusted }) =>
      `web: ${trusted.origin}/.well-known/oauth-authorization-server answered status 503. Nothing is lost: the next call or /mcp auth web tries again.`,
    neverAsks: "/authorize",
  },
  "PKCE without S256": {
    behaviour: { metadata: (metadata) => ({ ...metadata, code_challenge_methods_supported: ["plain"] }) },
    says: "web: its authorization server does not support PKCE with S256, without which no sign-in is safe. Only its operator can change that.",
    neverAsks: "/authorize",
  },
  "no PKCE advertised": { behaviour: { metadata: without("code_challenge_methods_supported") } },
};

const REGISTRATION: Record<string, Oddity> = {
  "no dynamic registration (GitHub)": {
    behaviour: { metadata: without("registration_endpoint") },
    says: (story) => `web: its authorization server registers no clients by itself. ${registerAt(story)}`,
    neverAsks: "/authorize",
  },
  "known clients only (Slack, Figma)": {
    behaviour: {
      answer: { register: (_request, response) => sendJson(response, 403, { error: "forbidden" }) },
    },
    says: (story) =>
      `web: its authorization server takes known clients only. ${registerAt(story)} Some servers go by oauth.clientName.`,
    neverAsks: "/authorize",
  },
  "a registration that answers 200": { behaviour: { registeredStatus: 200 } },
  "a registration whose secret does not say when it ends": {
    behaviour: {
      metadata: (metadata) => ({
        ...metadata,
        token_endpoint_auth_methods_supported: ["client_secret_post"],
      }),
      registered: without("client_secret_expires_at"),
    },
  },
  "a registration that takes only localhost": {
    behaviour: {
      answer: {
        register: ({ body }, response) =>
          body.includes("127.0.0.1") && sendJson(response, 400, { error: "invalid_redirect_uri" }),
      },
    },
  },
  "a registration that takes no scope": {
    protection: { challengeScope: "read" },
    behaviour: {
      answer: {
        register: ({ body }, response) =>
          body.includes('"scope"') && sendJson(response, 400, { error: "invalid_client_metadata" }),
      },
    },
  },
  "a registration that takes no redirect URI": {
    behaviour: {
      answer: {
        register: (_request, response) => sendJson(response, 400, { error: "invalid_redirect_uri" }),
      },
    },
    says: /^web: its authorization server refuses the redirect URI http:\/\/localhost:\d+\/callback\S*\. Write one that is registered there as oauth\.redirectUri\.$/,
    neverAsks: "/authorize",
  },
  "a client that was registered by hand": {
    behaviour: { metadata: without("registration_endpoint") },
    entry: { oauth: { clientId: "by hand", clientSecret: "100 % +secret" } },
    prepare: ({ trusted }) => {
      trusted.book.addClient({ id: "by hand", secret: "100 % +secret" });
    },
  },
};

const BROWSER: Record<string, Oddity> = {
  "no issuer in the answer, as announced": {
    behaviour: { iss: false, metadata: without("authorization_response_iss_parameter_supported") },
  },
  "no issuer in the answer, although it was announced": {
    behaviour: { iss: false },
    says: ABSENT_ISSUER,
    neverAsks: "/token",
  },
  "another issuer in the answer": {
    behaviour: { iss: OTHER_ISSUER },
    says: WRONG_ISSUER,
    neverAsks: "/token",
  },
  "an issuer with a slash in the answer": {
    prepare: ({ trusted }) => {
      trusted.behaviour.iss = `${trusted.issuer}/`;
    },
    says: wrongIssuer(({ trusted }) => `another address of ${trusted.origin}`),
    neverAsks: "/token",
  },
  "the user says no": {
    behaviour: { refuses: "access_denied" },
    says: `web: the sign-in was declined in the browser. ${AGAIN}`,
    neverAsks: "/token",
  },
  "another issuer says no": {
    behaviour: { refuses: "access_denied", iss: OTHER_ISSUER },
    says: WRONG_ISSUER,
    neverAsks: "/token",
  },
  "a scope that is refused": {
    protection: { challengeScope: "read all" },
    behaviour: { refuses: "invalid_scope" },
    says: "web: the authorization server refuses the scope: read all. Write the scope that it knows as oauth.scope.",
    neverAsks: "/token",
  },
  "an error of its own": {
    behaviour: { refuses: "temporarily_unavailable" },
    says: `web: the authorization server answered temporarily_unavailable. ${AGAIN}`,
    neverAsks: "/token",
  },
};

const TOKENS: Record<string, Oddity> = {
  "resource is refused, no PKCE advertised (Entra)": {
    behaviour: entra,
    says: 'web: its authorization server refuses the parameter resource. Write "resource": false in oauth.',
  },
  "resource is refused, and oauth.resource is false (Entra)": {
    behaviour: { ...entra, answer: { ...entra.answer } },
    entry: { oauth: { resource: false } },
  },
  "scope: null and refresh_token: null": {
    behaviour: { tokens: (answer) => ({ ...answer, scope: null, refresh_token: null, id_token: null }) },
  },
  "expires_in as a text": {
    behaviour: { tokens: (answer) => ({ ...answer, expires_in: String(answer.expires_in) }) },
  },
  "no token_type": { behaviour: { tokens: without("token_type") } },
  "a form in the place of JSON (GitHub)": { behaviour: { sendsForm: true } },
  "an error under status 200": {
    behaviour: {
      answer: {
        token: (_request, response) =>
          sendJson(response, 200, { error: "invalid_grant", error_description: "The code has expired." }),
      },
    },
    says: CODE_REFUSED,
  },
  "a code that expires at once": { behaviour: { codeMs: 0 }, says: CODE_REFUSED },
  "a client that is unknown at the token endpoint": {
    behaviour: {
      answer: { token: (_request, response) => sendJson(response, 401, { error: "invalid_client" }) },
    },
    says: `web: its authorization server no longer knows this client. ${AGAIN} With a configured client, check oauth.clientId and oauth.clientSecret.`,
  },
  "HTML in the place of tokens": {
    behaviour: { answer: { token: (_request, response) => sendHtml(response, 200, "Please wait.") } },
    says: atToken(
      "gave an answer that cannot be used: HTML in the place of JSON, with status 200. Check the url in mcp.json, or oauth.authServerMetadataUrl.",
    ),
  },
  "status 503 for tokens": {
    behaviour: { answer: { token: (_request, response) => response.writeHead(503).end() } },
    says: atToken("answered status 503. Nothing is lost: the next call or /mcp auth web tries again."),
  },
  "a reset connection": {
    behaviour: { answer: { token: (_request, response) => response.destroy() } },
    says: ({ trusted }) =>
      new RegExp(
        `^web: ${trusted.origin}/token could not be reached: .+\\. Nothing is lost: the next call or /mcp auth web tries again\\.$`,
      ),
  },
};

export const ODDITIES: Record<string, Oddity> = { ...DISCOVERY, ...REGISTRATION, ...BROWSER, ...TOKENS };
