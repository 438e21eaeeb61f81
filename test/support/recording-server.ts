/** Owns: an HTTP server on loopback that keeps every request with its body, for servers that speak OAuth and MCP. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Recorded {
  method: string;
  /** Without its query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
  /** The body as a form. Empty if it is none. */
  form: URLSearchParams;
}

/** May be async. A rejected promise is answered with status 500 and its message. */
export type Answer = (request: Recorded, response: ServerResponse) => unknown;

export interface RecordingServer {
  /** `http://127.0.0.1:<port>` */
  origin: string;
  /** Oldest first. */
  requests: readonly Recorded[];
  server: Server;
  close(): Promise<void>;
}

const FORM = "application/x-www-form-urlencoded";

/** Splits a request target into its path and its query. */
function targetOf(target: string): { path: string; query: URLSearchParams } {
  const at = target.indexOf("?");
  if (at === -1) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, at), query: new URLSearchParams(target.slice(at + 1)) };
}

export async function startRecording(answer: Answer): Promise<RecordingServer> {
  const requests: Recorded[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const isForm = String(request.headers["content-type"]).startsWith(FORM);
      const recorded = {
        method: request.method ?? "",
        ...targetOf(request.url ?? "/"),
        headers: request.headers,
        body,
        form: new URLSearchParams(isForm ? body : ""),
      };
      requests.push(recorded);
      Promise.resolve()
        .then(() => answer(recorded, response))
        .catch((error: unknown) => {
          if (!response.headersSent) response.writeHead(500);
          response.end(String(error));
        });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    server,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response
    .writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify(value));
}

export function sendHtml(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/html" }).end(`<!doctype html><p>${text}</p>`);
}
