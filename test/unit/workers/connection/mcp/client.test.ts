/** Owns: what the client tells a server of itself. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { initialize } from "../../../../../workers/connection/mcp/client.ts";
import type { JSONRPCMessage, Transport } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { definitionOf } from "../servers/support.ts";

/** A server that answers `initialize`, and keeps what it was sent. */
function fakeTransport(): { transport: Transport; sent: JSONRPCMessage[] } {
  const sent: JSONRPCMessage[] = [];
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async (message) => {
      sent.push(message);
      if (!("id" in message) || message.id === undefined) return;
      const serverInfo = { name: "fake", version: "1" };
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo };
      transport.onmessage?.({ jsonrpc: "2.0", id: message.id, result });
    },
  };
  return { transport, sent };
}

test("initialize -> the name and the version of the package, no capabilities", async () => {
  const root = join(import.meta.dirname, "..", "..", "..", "..", "..");
  const { name, version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { transport, sent } = fakeTransport();
  await initialize(transport, {
    definition: definitionOf("s"),
    cwd: "/cwd",
    npxCacheFile: "/npx",
    signal: new AbortController().signal,
    maxMessageBytes: 1_000,
    onSpawn: () => undefined,
    onExit: () => undefined,
    onNote: () => undefined,
    onLogMessage: () => undefined,
    onSecrets: () => undefined,
    redact: (text) => text,
    onClosed: () => undefined,
    onListChanged: () => undefined,
  });
  expect(sent[0]).toMatchObject({
    method: "initialize",
    params: { clientInfo: { name, version }, capabilities: {} },
  });
});
