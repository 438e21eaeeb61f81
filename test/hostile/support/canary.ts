/**
 * Owns: a server on loopback that no attack may reach, and the record of its requests.
 * Must not: judge results.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Canary {
  /** `http://127.0.0.1:<port>` */
  origin: string;
  /** A line for each request: method, path and the names of headers that carry secrets. */
  requests: readonly string[];
  /** Connections, also those over which nothing was sent. */
  connections(): number;
  close(): Promise<void>;
}

const TELLING = ["authorization", "cookie", "x-client"];

export async function startCanary(): Promise<Canary> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const told = TELLING.filter((name) => request.headers[name] !== undefined);
    requests.push([request.method, request.url, ...told].join(" "));
    request.resume();
    response.writeHead(404).end();
  });
  let connections = 0;
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    connections: () => connections,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
