/**
 * Owns: what hostile servers share: newline-delimited JSON-RPC by hand, and a record of what they did.
 * Must not: be polite for them: a server replaces any answer by its own.
 * Called by: the programs beside it. SEEN is a file that gets a line for each deed, so that a test knows that the attack took place.
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

/** Method -> what it answers; undefined answers nothing. `on[method](message)` replaces one of them. */
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
