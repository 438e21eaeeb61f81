/** Owns: that no signal of a request, which lives longer, keeps the request's result, in either era of the protocol. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { type Peer, Wire } from "../../../../../workers/connection/mcp/both-eras.ts";
import { initialize } from "../../../../../workers/connection/mcp/legacy-peer.ts";
import { speakModern } from "../../../../../workers/connection/mcp/modern-peer.ts";
import type { Transport } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { connectOptions } from "./support.ts";

/** Answers each request but `silent`, and refuses `refused`. */
function fakeServer(): Transport {
  const serverInfo = { name: "fake", version: "1" };
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async (message) => {
      if (!("method" in message) || !("id" in message)) return;
      const { id, method } = message;
      if (method === "silent") return;
      const about = { protocolVersion: "2025-11-25", supportedVersions: ["2026-07-28"], serverInfo };
      const result = { ...about, capabilities: {}, resultType: "complete" };
      const outcome = method === "refused" ? { error: { code: -32_601, message: "no" } } : { result };
      transport.onmessage?.({ jsonrpc: "2.0", id, ...outcome });
    },
  };
  return transport;
}

const ERAS: [string, () => Promise<Peer>][] = [
  ["legacy", () => initialize(new Wire(fakeServer()), connectOptions())],
  ["modern", () => speakModern(new Wire(fakeServer()), connectOptions())],
];

test.each(ERAS)(
  "%s: nothing listens to a signal after its request, its call or its refusal",
  async (_, connect) => {
    const peer = await connect();
    const { signal } = new AbortController();
    const call = (method: string) =>
      peer.call({ request: { method, params: {} }, subject: "s/t", signal, onProgress: () => undefined });
    await peer.send({ method: "tools/list" }, { signal, timeout: 1_000 });
    await call("tools/call");
    await expect(call("refused")).rejects.toThrow("no");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  },
);

test.each(ERAS)("%s: a call that is given up rejects", async (_, connect) => {
  const peer = await connect();
  const controller = new AbortController();
  const { signal } = controller;
  const open = peer.call({
    request: { method: "silent", params: {} },
    subject: "s/t",
    signal,
    onProgress: () => undefined,
  });
  controller.abort(new Error("given up"));
  await expect(open).rejects.toThrow("given up");
});
