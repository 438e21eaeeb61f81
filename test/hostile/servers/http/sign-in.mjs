// MCP servers that are their own authorization servers, each sound but for one attack. A line of stdin begins one:
// `{"args": ["token: huge", "secret"], "env": {"SEEN": "...", "CANARY_URL": "..."}}`. All that nobody may read begins with
// the secret.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { announce, answerWell } from "./lib.mjs";
import { ATTACKS } from "./sign-in-attacks.mjs";

const sendJson = (response, value, status = 200) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

const soundBut = (attack, secret) => ({
  resource: ({ response, origin }) =>
    sendJson(response, { resource: `${origin}/mcp`, authorization_servers: [origin], ...attack.resource }),
  metadata: ({ response, origin }) =>
    sendJson(response, {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      ...(attack.device && { device_authorization_endpoint: `${origin}/device_authorization` }),
      ...attack.metadata,
    }),
  device_authorization: ({ response, origin }) =>
    sendJson(response, {
      device_code: `${secret}-device`,
      user_code: "WDJB-MJHT",
      verification_uri: `${origin}/device`,
      expires_in: 600,
      interval: 1,
      ...attack.device,
    }),
  register: ({ response, body }) =>
    sendJson(response, { ...JSON.parse(body), client_id: "c", ...attack.client }, 201),
  authorize: ({ response, query, origin }) => {
    const to = new URL(query.get("redirect_uri"));
    const answer = { code: `${secret}-code`, state: query.get("state"), iss: origin, ...attack.answer };
    for (const [key, value] of Object.entries(answer)) to.searchParams.set(key, value);
    response.writeHead(302, { location: to.href }).end();
  },
  token: ({ response }) =>
    sendJson(response, {
      access_token: `${secret}-access`,
      refresh_token: `${secret}-refresh`,
      token_type: "Bearer",
      ...attack.tokens,
    }),
  mcp: ({ request, response, body, origin }) => {
    const message = body === "" ? {} : JSON.parse(body);
    const { scheme = "Bearer" } = attack;
    if (request.headers.authorization === `${scheme} ${secret}-access`) {
      answerWell(message, request, response);
      return;
    }
    const challenge = `${scheme} resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"${attack.challenge ?? ""}`;
    response.writeHead(401, { "www-authenticate": challenge }).end();
  },
});

const stepOf = (path) => {
  if (path.startsWith("/.well-known/oauth-protected-resource")) return "resource";
  if (path.startsWith("/.well-known/")) return "metadata";
  return path.slice(1);
};

function begin([name, secret], { SEEN, CANARY_URL: canary }) {
  const attack = ATTACKS[name];
  if (!attack) throw new Error(`no such attack: ${name}`);
  const sound = soundBut(attack, secret);
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const origin = `http://${request.headers.host}`;
      const { pathname, searchParams: query } = new URL(request.url, origin);
      const step = stepOf(pathname);
      appendFileSync(SEEN, `${step}\n`);
      // A token that is bound to a key must never come so.
      if (request.headers.authorization?.startsWith("Bearer ")) appendFileSync(SEEN, "a bearer token\n");
      const answer = attack.on?.[step] ?? sound[step];
      if (answer) answer({ request, response, body, query, origin, secret, canary, usual: sound[step] });
      else response.writeHead(404).end();
    });
    response.on("error", () => undefined);
  });
  announce(server);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { args, env } = JSON.parse(line);
  begin(args, env);
});
