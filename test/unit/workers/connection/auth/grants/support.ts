/** Owns: a small authorization server on loopback, and what the tests of grants hand to each message. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { AuthorizationServer } from "oauth4webapi";
import type { GrantContext } from "../../../../../../workers/connection/auth/grants/ask.ts";
import {
  type ClientRecord,
  type Discovered,
  SignInProblem,
  type SignInRecord,
} from "../../../../../../workers/connection/auth/model/model.ts";
import type { AuthRequests } from "../../../../../../workers/connection/auth/requests/requests.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { onCleanup } from "../../../../../support/cleanup.ts";

export interface Asked {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  form: Record<string, string>;
}

export interface AuthServer {
  issuer: string;
  asked: Asked[];
  metadata: AuthorizationServer;
}

export interface Answer {
  status?: number;
  type?: string;
  headers?: Record<string, string>;
  /** A text is sent as it is. */
  body: unknown;
}

/** Null: the connection is cut. */
export type Answering = (asked: Asked, nth: number) => Answer | null;

function reply(response: ServerResponse, answer: Answer | null): void {
  if (!answer) {
    response.destroy();
    return;
  }
  const { status = 200, type = "application/json", headers = {}, body } = answer;
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** Each endpoint stands at its own path, for example `/token`. */
export async function authServer(
  answer: Answering,
  more: Partial<AuthorizationServer> = {},
): Promise<AuthServer> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const { url: path = "", headers } = request;
      const one = { path, headers, body, form: Object.fromEntries(new URLSearchParams(body)) };
      asked.push(one);
      reply(response, answer(one, asked.length - 1));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onCleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const metadata: AuthorizationServer = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    revocation_endpoint: `${issuer}/revoke`,
    ...more,
  };
  return { issuer, asked, metadata };
}

/** Asks like the real requests, without their limits. */
export const requests: AuthRequests = {
  async fetch(url, { method = "GET", headers, body }) {
    try {
      return await fetch(url, {
        method,
        redirect: "manual",
        ...(headers && { headers }),
        ...(body !== undefined && body !== null && { body: String(body) }),
      });
    } catch {
      throw new SignInProblem("unreachable", { url, what: "the connection was lost" });
    }
  },
};

/** Notes are added to `notes`. */
export function contextOf(plan: Partial<OAuthPlan> = {}): GrantContext & { notes: string[] } {
  const notes: string[] = [];
  const whole: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto", ...plan };
  return { plan: whole, requests, onNote: (note) => notes.push(note), notes };
}

export const discoveredOf = (metadata: AuthorizationServer, more: Partial<Discovered> = {}): Discovered => ({
  metadata,
  foundAt: metadata.issuer,
  ...more,
});

export const publicClient: ClientRecord = { id: "client-1", method: "none", kind: "dynamic" };

export const recordOf = ({ issuer }: AuthServer, more: Partial<SignInRecord> = {}): SignInRecord => ({
  version: 1,
  server: "docs",
  url: "https://docs.example/mcp",
  issuer,
  tokenEndpoint: `${issuer}/token`,
  revocationEndpoint: `${issuer}/revoke`,
  client: publicClient,
  access_token: "access-token-1",
  refresh_token: "refresh-token-1",
  ...more,
});

/** The problem with which the promise rejects. Anything else fails the test. */
export async function problemOf(promise: Promise<unknown>): Promise<SignInProblem> {
  const [settled] = await Promise.allSettled([promise]);
  if (settled?.status === "rejected" && settled.reason instanceof SignInProblem) return settled.reason;
  throw new Error(`no problem: ${JSON.stringify(settled)}`);
}
