/** Owns: what a server's line over stdio does to its reader, whatever the line holds. */
import { expect, it } from "vitest";
import { createStdioInbox } from "../../../../../../workers/connection/transports/stdio/inbox.ts";

it.each([
  ["an object whose toString is not a function", { toString: null }],
  ["a list of such an object", [{ toString: null }]],
  ["true", true],
])("the id of an answer is %s -> the line is noted, and the next one is read", (_title, id) => {
  const messages: unknown[] = [];
  const notes: string[] = [];
  const inbox = createStdioInbox({
    maxMessageBytes: 1_000_000,
    onMessage: (message) => messages.push(message),
    onTooLarge: (error) => {
      throw error;
    },
    onNote: (note) => notes.push(note),
  });
  const right = { jsonrpc: "2.0", id: 1, result: {} };
  for (const message of [{ jsonrpc: "2.0", id, result: {} }, right])
    void inbox.push(Buffer.from(`${JSON.stringify(message)}\n`));
  inbox.stop();
  expect(messages).toEqual([right]);
  expect(notes).toEqual([expect.stringMatching(/^printed a line that is not a JSON-RPC 2\.0 message: /)]);
});
