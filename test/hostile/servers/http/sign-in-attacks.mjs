// What each attack of sign-in.mjs replaces: fields of an answer, or with `on` the whole answer to a step.

const MIB = 1024 * 1024;
const json = (response, headers = {}) =>
  response.writeHead(200, { "content-type": "application/json", ...headers });

/** Sends pieces until there are enough, or the client has gone. */
function flood(response, piece, most = Number.POSITIVE_INFINITY) {
  let sent = 0;
  const more = () => {
    while (sent < most && !response.destroyed) {
      sent++;
      if (!response.write(piece)) {
        response.once("drain", more);
        return;
      }
    }
    response.end("}");
  };
  json(response).write('{"a":"');
  more();
}

/** Sends one byte a second without end. */
function drip(response) {
  json(response).write("{");
  const timer = setInterval(() => response.write(" "), 1_000);
  response.on("close", () => clearInterval(timer));
}

const redirect =
  (location) =>
  ({ response }) =>
    response.writeHead(302, { location }).end();

const text =
  (makeBody) =>
  ({ response }) =>
    json(response).end(makeBody());

const fields = (count) =>
  `{${Array.from({ length: count }, (_, i) => `"f${i}":1`).join(",")},"__proto__":{"polluted":1}}`;

/** What may stand in the place of any JSON document. */
const DOCUMENTS = {
  "64 MiB": ({ response }) => flood(response, "x".repeat(MIB), 64),
  endless: ({ response }) => flood(response, "x".repeat(64 * 1024)),
  deep: text(() => `${'{"a":'.repeat(30_000)}1${"}".repeat(30_000)}`),
  "100,000 fields": text(() => fields(100_000)),
  "20,000 fields": text(() => fields(20_000)),
  "a redirect to a file": redirect("file:///etc/passwd"),
  "a redirect to a private address": redirect("http://169.254.169.254/latest/meta-data/"),
  "a redirect to another server": (asked) => redirect(`${asked.canary}/stolen`)(asked),
  "a redirect to itself": ({ request, response }) => response.writeHead(302, { location: request.url }).end(),
  "a byte a second": ({ response }) => drip(response),
  "a list": text(() => "[1,2,3]"),
};

const on = (step, documents) =>
  Object.fromEntries(
    Object.entries(documents).map(([what, answer]) => [`${step}: ${what}`, { on: { [step]: answer } }]),
  );

const ADDRESSES = {
  "javascript:": "javascript:alert(1)",
  "file:": "file:///etc/passwd",
  "data:": "data:text/html,<script>alert(1)</script>",
  "a leading dash": "-h",
  "escape sequences": "https://as.example/\u001b]8;;https://evil.example\u0007\u001b[2J",
  "1 MB": `https://as.example/${"a".repeat(MIB)}`,
  "200 KB": `https://as.example/${"a".repeat(200_000)}`,
  "http elsewhere": "http://169.254.169.254/authorize",
};

const scopes = (count) => Array.from({ length: count }, (_, i) => `scope-${i}`);

/** A call of a tool without `Authorization` never comes so far. `headers`: further ones. */
const refusing =
  (status, challenge, headers = () => ({})) =>
  ({ request, response, body, secret, usual, ...more }) => {
    const isCall =
      body.includes('"tools/call"') && request.headers.authorization?.endsWith(` ${secret}-access`);
    if (!isCall) return usual({ request, response, body, secret, ...more });
    return response.writeHead(status, { "www-authenticate": challenge, ...headers() }).end();
  };

/** Both servers want tokens that are bound to a key (RFC 9449). */
const BOUND = {
  resource: { dpop_bound_access_tokens_required: true },
  metadata: { dpop_signing_alg_values_supported: ["ES256"] },
  tokens: { token_type: "DPoP" },
  scheme: "DPoP",
};
const WANTS_NONCE = JSON.stringify({ error: "use_dpop_nonce" });

/** Another one each time. */
const newNonce = () => ({ "dpop-nonce": `nonce-${process.hrtime.bigint()}` });

const wantingNonce = (nonce) => ({
  ...BOUND,
  on: {
    token: ({ response }) =>
      response.writeHead(400, { "content-type": "application/json", ...nonce() }).end(WANTS_NONCE),
  },
});

/** Node's own server writes no such header. */
const rawNonce = (nonce) => ({
  ...BOUND,
  on: {
    token: ({ response }) =>
      response.socket.end(
        `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ndpop-nonce: ${nonce}\r\ncontent-length: ${WANTS_NONCE.length}\r\n\r\n${WANTS_NONCE}`,
      ),
  },
});

const refusingProofs = (nonce) => ({
  ...BOUND,
  on: { mcp: refusing(401, 'DPoP error="use_dpop_nonce"', nonce) },
});

/** Everything but a call needs no token. */
const refusingCalls = ({ request, response, body, secret, origin, usual, ...more }) => {
  if (body.includes('"tools/call"')) {
    const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    return response.writeHead(401, { "www-authenticate": challenge }).end();
  }
  request.headers.authorization = `Bearer ${secret}-access`;
  return usual({ request, response, body, secret, origin, ...more });
};

const missing = ({ response }) => response.writeHead(404).end();

/** There is nothing to sign in to. The server repeats what it was sent, and its words act on a terminal. */
const wantingKey = ({ request, response }) => {
  const error = `Missing API key\u001b[2J\u202e, you sent ${request.headers["x-api-key"]}. ${"Get one! ".repeat(2_000)}`;
  return response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error }));
};

const repeating =
  (error) =>
  ({ response, body }) =>
    response
      .writeHead(400, { "content-type": "application/json" })
      .end(JSON.stringify({ error, error_description: `You sent ${body}\u001b[2J` }));

/** Of a code for another device. */
const DEVICE = {
  ...Object.fromEntries(
    ["endless", "deep", "a list"].map((what) => [
      `device: ${what}`,
      { device: {}, on: { device_authorization: DOCUMENTS[what] } },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries({
      "a user code of 1 MB": { user_code: "W".repeat(MIB) },
      "a user code with escape sequences": { user_code: "W\u001b[2J\u202e" },
      "a user code of 10 KB": { user_code: "W".repeat(10_000) },
      "minus 1 s of life": { expires_in: -1 },
      "a page by javascript:": { verification_uri: "javascript:alert(1)" },
      "a page by http": { verification_uri: "http://evil.example/device" },
      "a page with credentials": { verification_uri: "https://user:pw@evil.example/device" },
      "the page of another server": { verification_uri: "https://accounts.bank.example/device" },
      "a complete page elsewhere": { verification_uri_complete: "https://evil.example/device?user_code=W" },
      "1e308 s of life, every minus 1 s": { expires_in: 1e308, interval: -1 },
    }).map(([what, device]) => [`device: ${what}`, { device }]),
  ),
  "device: an endpoint elsewhere, without https": {
    device: {},
    metadata: { device_authorization_endpoint: "http://evil.example/device" },
  },
  "device: a scope that nobody asked for": { device: {}, tokens: { scope: "admin root" } },
  "device: slow_down for ever": { device: { expires_in: 10 }, on: { token: repeating("slow_down") } },
  "device: an error that repeats the code": { device: {}, on: { token: repeating("own_error") } },
};

export const ATTACKS = {
  none: {},
  "a key: its words": { on: { mcp: wantingKey, resource: missing, metadata: missing, authorize: missing } },
  "calls: 401 without a sign-in": { on: { mcp: refusingCalls } },
  ...DEVICE,
  "authorization endpoint: of another server": {
    metadata: {
      authorization_endpoint: "https://accounts.bank.example/authorize",
      authorization_response_iss_parameter_supported: undefined,
    },
    client: { client_id: "a-client-of-the-bank" },
  },
  ...on("resource", DOCUMENTS),
  "resource: of another origin": { resource: { resource: "https://bank.example/mcp" } },
  "resource: a file as the authorization server": {
    resource: { authorization_servers: ["file:///etc/passwd"] },
  },
  "resource: a private address as the authorization server": {
    resource: { authorization_servers: ["http://169.254.169.254/"] },
  },
  "resource: 5,000 authorization servers": {
    resource: {
      authorization_servers: Array.from({ length: 5_000 }, (_, i) => `http://as${i}.example`),
    },
  },
  ...on("metadata", DOCUMENTS),
  ...Object.fromEntries(
    Object.entries(ADDRESSES).map(([what, address]) => [
      `authorization endpoint: ${what}`,
      { metadata: { authorization_endpoint: address } },
    ]),
  ),
  "metadata: the issuer of another server": { metadata: { issuer: "https://accounts.bank.example" } },
  "metadata: an issuer with escape sequences": { metadata: { issuer: "https://a\u001b[2J.example" } },
  "challenge: 10,000 commas": { challenge: `, ${"x,".repeat(5_000)}` },
  "challenge: 12 KB of scopes": { challenge: `, scope="${scopes(1_300).join(" ")}"` },
  "scopes by the thousand": { resource: { scopes_supported: scopes(10_000) } },
  ...on("register", DOCUMENTS),
  "register: odd fields": {
    client: { client_id: { a: 1 }, client_secret: ["x"], redirect_uris: "javascript:alert(1)" },
  },
  "register: an id with escape sequences": { client: { client_id: "\u001b[2J\u001b]0;evil\u0007" } },
  "register: an id of 100 KB": { client: { client_id: "x".repeat(100_000) } },
  "answer: another issuer": {
    answer: { iss: "https://bank.example", error: "x", error_description: "Call +1 555 0100 now" },
  },
  "answer: another state": { answer: { state: "guessed" } },
  ...on("token", DOCUMENTS),
  "token: a type that nobody knows": { tokens: { token_type: "mac" } },
  "token: wrong types": {
    tokens: { access_token: 7, refresh_token: {}, scope: { a: 1 }, expires_in: [], token_type: null },
  },
  "token: a line break in it": { tokens: { access_token: "a\r\nX-Injected: 1" } },
  "token: 100 KB of it": { tokens: { access_token: "x".repeat(100_000) } },
  "token: for 1e308 s": { tokens: { expires_in: 1e308 } },
  "token: for minus 1 s": { tokens: { expires_in: -1 } },
  "token endpoint: of another server": {
    metadata: { token_endpoint: "https://accounts.bank.example/token" },
  },
  "token: an error that repeats the code": { on: { token: repeating("invalid_request") } },
  "token: an error that repeats the assertion": { on: { token: repeating("invalid_grant") } },
  "dpop: none": BOUND,
  "dpop: a bearer token": { ...BOUND, tokens: { token_type: "Bearer" } },
  "dpop: an authorization server without it": { ...BOUND, metadata: {} },
  "dpop: algorithms of every wrong shape": {
    ...BOUND,
    metadata: { dpop_signing_alg_values_supported: [{ alg: "ES256" }, "none", 7, "\u001b[2J", ["ES256"]] },
  },
  "dpop: token: another nonce each time": wantingNonce(newNonce),
  "dpop: token: the same nonce for ever": wantingNonce(() => ({ "dpop-nonce": "nonce-1" })),
  "dpop: token: no nonce": wantingNonce(() => ({})),
  "dpop: token: a nonce of 10 KB": wantingNonce(() => ({ "dpop-nonce": "n".repeat(10_000) })),
  "dpop: token: a nonce of 1 MB": wantingNonce(() => ({ "dpop-nonce": "n".repeat(MIB) })),
  "dpop: token: a nonce with escape sequences": rawNonce("a\u001b[2Jb"),
  "dpop: token: a nonce with a quote": rawNonce('a","htm":"GET'),
  "dpop: calls: another nonce each time": refusingProofs(newNonce),
  "dpop: calls: the same nonce for ever": refusingProofs(() => ({ "dpop-nonce": "nonce-1" })),
  "dpop: calls: a challenge of Bearer": {
    ...BOUND,
    on: { mcp: refusing(401, 'Bearer error="invalid_token"') },
  },
  "calls: 401 for ever": { on: { mcp: refusing(401, 'Bearer error="invalid_token"') } },
  "calls: 403 for ever": {
    on: { mcp: refusing(403, 'Bearer error="insufficient_scope", scope="admin root"') },
  },
};
