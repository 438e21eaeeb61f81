/**
 * Owns: the shared code of hostile servers: newline-delimited JSON-RPC by hand, and the record of each server's steps.
 * Must not: prevent bad behaviour: a server may replace any answer.
 * Called by: the programs in this folder. SEEN names a file that gets a line for each step, which proves to a test that
 * the attack took place.
 */
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { SEEN } = process.env;

export const seen = (what) => {
  if (SEEN) appendFileSync(SEEN, `${what}\n`);
};

export const send = (message, written) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`, written);

export const tool = (name, more = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: "object" },
  ...more,
});

export const text = (words) => ({ content: [{ type: "text", text: words }] });

export const hello = ({ params }, more = {}) => ({
  protocolVersion: params.protocolVersion,
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: "hostile", version: "1" },
  ...more,
});

/** Answers requests on stdin. `on[method](message)` replaces an answer; a result of undefined sends no answer. */
export function serve(on = {}, tools = [tool("work")]) {
  const answers = {
    initialize: (message) => hello(message),
    ping: () => ({}),
    "tools/list": () => ({ tools }),
    "resources/list": () => ({ resources: [] }),
    "resources/templates/list": () => ({ resourceTemplates: [] }),
    "tools/call": ({ params }) => text(`${params.name} done`),
    ...on,
  };
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line);
    seen(message.method ?? "response");
    if (message.id === undefined || message.method === undefined) return;
    const result = answers[message.method]?.(message);
    if (result !== undefined) send({ id: message.id, result });
  });
}
