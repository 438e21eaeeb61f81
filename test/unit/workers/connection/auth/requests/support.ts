/** Owns: a server on loopback that answers by path, and requests that reach it. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  type AuthRequests,
  createAuthRequests,
  type RequestsOptions,
} from "../../../../../../workers/connection/auth/requests/requests.ts";
import { createHttpClient } from "../../../../../../workers/connection/web/client.ts";
import { onCleanup } from "../../../../../support/cleanup.ts";

/** What a path answers: an object as JSON, a text as a web page, a function what it likes. */
export type Route = object | string | number | ((response: ServerResponse) => void);

export interface AuthServer {
  origin: string;
  port: number;
  /** `GET /path`, oldest first. */
  log: string[];
  headers: IncomingHttpHeaders[];
  bodies: string[];
}

function answer(route: Route | undefined, response: ServerResponse): void {
  if (typeof route === "function") route(response);
  else if (typeof route === "object") {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(route));
  } else if (typeof route === "string") response.writeHead(200, { "content-type": "text/html" }).end(route);
  else response.writeHead(route ?? 404).end();
}

/** `routes` gets the server's own origin, so that documents can name it. Other paths answer 404. */
export async function authServer(
  routes: (origin: string) => Record<string, Route> = () => ({}),
): Promise<AuthServer> {
  const log: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const bodies: string[] = [];
  let table: Record<string, Route> = {};
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      log.push(`${request.method} ${request.url}`);
      headers.push(request.headers);
      bodies.push(body);
      answer(table[request.url ?? ""], response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  table = routes(origin);
  onCleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { origin, port, log, headers, bodies };
}

/** A server with one answer, at its root. */
export const serving = (route: Route): Promise<AuthServer> => authServer(() => ({ "/": route }));

export const sending =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}): Route =>
  (response) =>
    response.writeHead(status, headers).end(body);

/** Requests of a session with the MCP server at `server`. */
export function requestsFor(
  server: string,
  { env = {}, ...more }: Partial<RequestsOptions> = {},
): AuthRequests {
  const client = createHttpClient(env);
  onCleanup(() => client.close());
  return createAuthRequests({
    client,
    env,
    server: new URL(server),
    signal: new AbortController().signal,
    ...more,
  });
}

/** Kind and facts of the problem with which a promise is rejected. */
export async function problemOf(promise: Promise<unknown>): Promise<{ kind: string; facts: object }> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SignInProblem))
    throw new Error("not rejected with a SignInProblem", { cause: error });
  return { kind: error.kind, facts: error.facts };
}
