/**
 * Owns: the fixture of both eras over HTTP in the test's own process, with a fault in front of it, and what the tests of
 * the stateless era read from the requests that it got.
 */
import type { ServerResponse } from "node:http";
import { answering, type Eras } from "../fixtures/modern/http.mjs";
import { createTasks } from "../fixtures/modern/tasks.mjs";
import { type Asked, type Handler, serve, type TestServer } from "./http-server.ts";

export type { Eras } from "../fixtures/modern/http.mjs";

/** The revision of the stateless era. */
export const MODERN = "2026-07-28";

/** Answers true if it has taken the request. `nth`: how many requests with the same HTTP method came before. */
export type Fault = (asked: Asked, response: ServerResponse, nth: number) => boolean;

/** The server of test/fixtures/modern. Requests that the fault does not take are answered well. */
export function fixtureHandler(eras: Eras, fault: Fault = () => false): Handler {
  const answer = answering(eras);
  return (asked, response, nth) => {
    if (fault(asked, response, nth)) return;
    const { http: method, path: url, headers, message } = asked;
    void answer({ method, url, headers, body: JSON.stringify(message) }, response);
  };
}

export const serveFixture = (eras: Eras = "modern", fault?: Fault): Promise<TestServer> =>
  serve(fixtureHandler(eras, fault));

/** The server whose calls become tasks. */
export function serveTasks(fault: Fault = () => false): Promise<TestServer> {
  const answer = createTasks();
  return serve((asked, response, nth) => {
    if (fault(asked, response, nth)) return;
    const outcome = answer(asked.message as Parameters<typeof answer>[0]);
    if (outcome) sendMessage(response, { id: asked.message.id, ...outcome });
    else response.writeHead(202).end();
  });
}

export function sendMessage(response: ServerResponse, message: object, status = 200): void {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}

/** A fault of every `tools/call`. */
export const onCall =
  (answer: (asked: Asked, response: ServerResponse) => void): Fault =>
  (asked, response) => {
    if (asked.message.method !== "tools/call") return false;
    answer(asked, response);
    return true;
  };

/** The requests with that method. */
export const sentTo = ({ asked }: TestServer, method: string): Asked[] =>
  asked.filter(({ message }) => message.method === method);

/** What every request of the era carries. */
export const metaOf = ({ message }: Asked): Record<string, unknown> =>
  (message.params?._meta ?? {}) as Record<string, unknown>;
