/** Owns: what a server's line over stdio does to its reader, whatever the line holds. */
import { expect, it, test } from "vitest";
import { createStdioInbox } from "../../../../../../workers/connection/transports/stdio/inbox.ts";

it.each([
  ["an object whose toString is not a function", { toString: null }],
  ["a list of such an object", [{ toString: null }]],
  ["true", true],
])("the id of an answer is %s -> the line is noted, and the next one is read", (_title, id) => {
  const messages: unknown[] = [];
  const notes: string[] = [];
  const inbox = createStdioInbox({
    server: "odd",
    maxMessageBytes: 1_000_000,
    onMessage: (message) => messages.push(message),
    onTooLarge: (error) => {
      throw error;
    },
    onNote: (note) => notes.push(note),
  });
  const right = { jsonrpc: "2.0", id: 1, result: {} };
  for (const message of [{ jsonrpc: "2.0", id, result: {} }, right])
    for (const _ of inbox.push(Buffer.from(`${JSON.stringify(message)}\n`)));
  inbox.stop();
  expect(messages).toEqual([right]);
  expect(notes).toEqual([expect.stringMatching(/^printed a line that is not a JSON-RPC 2\.0 message: /)]);
});

test("a long message before short ones -> read in another thread, and handed on before them", async () => {
  const told: unknown[] = [];
  const inbox = createStdioInbox({
    server: "long",
    maxMessageBytes: 1_000_000,
    onMessage: (message) => told.push("method" in message ? message.method : "id" in message && message.id),
    onTooLarge: (error) => {
      throw error;
    },
    onNote: (note) => told.push(note),
  });
  inbox.sent({ jsonrpc: "2.0", id: 1, method: "tools/call" });
  inbox.sent({ jsonrpc: "2.0", id: 2, method: "ping" });
  const text = "x".repeat(300_000);
  const lines = [
    { jsonrpc: "2.0", method: "first" },
    { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text }] } },
    { jsonrpc: "2.0", method: "notifications/x", params: { text } },
    { jsonrpc: "2.0", id: 2, result: {} },
    { jsonrpc: "2.0", id: 3, result: { text } },
    { jsonrpc: "2.0", method: "last" },
  ];
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const step of inbox.push(bytes)) await step;
  inbox.stop();
  expect(told).toEqual([
    "first",
    1,
    "notifications/x",
    2,
    "answered a request that is not open, with 300045 bytes",
    "last",
  ]);
});
