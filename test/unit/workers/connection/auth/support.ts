/**
 * Owns: a web that answers by address in place of the HTTP client, an authorization server in it, servers of a
 * configuration, and stored sign-ins in a temp folder.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { AuthServer } from "../../../../../workers/connection/auth/auth.ts";
import type { SignInRecord } from "../../../../../workers/connection/auth/model/model.ts";
import { placeOf } from "../../../../../workers/connection/auth/store/file.ts";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";
import type { OAuthPlan } from "../../../../../workers/connection/config/entry/oauth-keys.ts";
import type { HttpClient, HttpRequest, ServerBody } from "../../../../../workers/connection/web/client.ts";

export const ORIGIN = "http://127.0.0.1:9";
export const URL_OF_SERVER = `${ORIGIN}/mcp`;
export const PLAN: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

/** What an address answers: fields with status 200, or a function that may wait or throw. */
export type Route = object | ((request: HttpRequest) => Promise<object> | object);

export interface Web {
  client: HttpClient;
  /** `GET http://…`, oldest first. */
  log: string[];
  bodies: string[];
  headers: Record<string, string>[];
  isClosed: boolean;
}

/** Other addresses answer 404. */
export function webOf(routes: Record<string, Route>): Web {
  const web: Web = {
    log: [],
    bodies: [],
    headers: [],
    isClosed: false,
    client: {
      request: async (request) => {
        const { method, url, body = "", headers } = request;
        web.log.push(`${method} ${url.href}`);
        web.bodies.push(body);
        web.headers.push(headers);
        const route = routes[url.href];
        const fields = typeof route === "function" ? await route(request) : route;
        const text = JSON.stringify(fields ?? {});
        return {
          status: fields === undefined ? 404 : 200,
          headers: { "content-type": "application/json" },
          body: Readable.from([Buffer.from(text)]) as ServerBody,
        };
      },
      close: () => {
        web.isClosed = true;
      },
    },
  };
  return web;
}

/** An authorization server at the origin of the MCP server, with dynamic registration. */
export const AUTHORIZATION: Record<string, Route> = {
  [`${ORIGIN}/.well-known/oauth-authorization-server`]: {
    issuer: ORIGIN,
    authorization_endpoint: `${ORIGIN}/authorize`,
    token_endpoint: `${ORIGIN}/token`,
    registration_endpoint: `${ORIGIN}/register`,
    code_challenge_methods_supported: ["S256"],
  },
  [`${ORIGIN}/register`]: { client_id: "client-1" },
};

export interface ServerParts {
  entry?: object;
  headers?: Record<string, string>;
  url?: string;
  origin?: "user" | "project-file" | "project-pi";
  secrets?: Set<string>;
  notes?: string[];
}

/** The server `s`, as its connections see it. */
export function serverOf({
  entry = {},
  headers = {},
  url = URL_OF_SERVER,
  origin = "user",
  secrets = new Set(),
  notes = [],
}: ServerParts = {}): AuthServer {
  const { definition } = parseEntry("s", { url, ...entry }, { file: "/m.json", origin });
  if (!definition) throw new Error("the entry is wrong");
  return {
    definition,
    url,
    headers,
    redact: (text) => [...secrets].reduce((shown, secret) => shown.replaceAll(secret, "[redacted]"), text),
    onSecret: (secret) => secrets.add(secret),
    onNote: (note) => notes.push(note),
  };
}

const fileOf = (agentDir: string): string => placeOf({ agentDir, server: "s", url: URL_OF_SERVER }).file;

/** Stores a sign-in of the server `s`, as an earlier session has left it. */
export async function storeSignIn(agentDir: string, more: Partial<SignInRecord> = {}): Promise<void> {
  const record: SignInRecord = {
    version: 1,
    server: "s",
    url: URL_OF_SERVER,
    issuer: ORIGIN,
    tokenEndpoint: `${ORIGIN}/token`,
    client: { id: "client-0", method: "none", kind: "dynamic" },
    access_token: "access-0",
    token_type: "Bearer",
    ...more,
  };
  const file = fileOf(agentDir);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(record), { mode: 0o600 });
}

/** The stored sign-in of the server `s`; undefined if there is none. */
export const storedSignIn = (agentDir: string): Promise<SignInRecord | undefined> =>
  readFile(fileOf(agentDir), "utf8").then(
    (text) => JSON.parse(text) as SignInRecord,
    () => undefined,
  );

/** Writes `tokens.json` as another program does. */
export async function giveTokens(agentDir: string, tokens: object): Promise<string> {
  const path = join(agentDir, "mcp-oauth", "s", "tokens.json");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, JSON.stringify(tokens), { mode: 0o600 });
  return path;
}
