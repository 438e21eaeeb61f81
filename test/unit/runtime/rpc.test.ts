/** Owns: what a request to the worker leaves behind when it has settled: nothing. test/worker/rpc.test.ts has the rest. */
import { getEventListeners } from "node:events";
import { expect, it, test } from "vitest";
import { createRpc } from "../../../src/runtime/keep-worker.ts";
import { deadlineOf } from "../../../src/runtime/runtime.ts";
import type { RuntimeThread } from "../../../src/runtime/thread.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

type Ping = () => Promise<unknown>;

function fakeThread(ping: Ping) {
  const counts = { named: 0, held: 0, cancelled: 0 };
  const api = {
    get request() {
      counts.named++;
      return ping;
    },
    cancel: async () => void counts.cancelled++,
  };
  const thread = {
    api,
    exited: new Promise(() => {}),
    hold: () => void counts.held++,
    release: () => void counts.held--,
  };
  return { counts, rpc: createRpc(thread as unknown as RuntimeThread) };
}

const never: Ping = () => new Promise(() => {});

it.each<[string, Ping, number, string]>([
  ["is answered", async () => ({ ok: true, value: "value" }), 60_000, "value"],
  ["fails", async () => ({ ok: false, error: { code: "internal", message: "failed" } }), 60_000, "failed"],
  ["cannot be sent", () => Promise.reject(new Error("no clone")), 60_000, "no clone"],
  ["is late", never, 1, "did not answer"],
])(
  "a request that %s -> no listener, no open request, nothing that keeps Pi alive",
  async (_name, ping, deadlineMs, outcome) => {
    const { rpc, counts } = fakeThread(ping);
    const { signal } = new AbortController();
    const settled = rpc
      .request("ping", {}, { deadlineMs, signal })
      .then(String, ({ message }: Error) => message);
    expect([rpc.open, counts.held, getEventListeners(signal, "abort").length]).toEqual([1, 1, 1]);
    expect(await settled).toContain(outcome);
    expect([rpc.open, counts.held, getEventListeners(signal, "abort").length]).toEqual([0, 0, 0]);
  },
);

test("a request that is cancelled -> the worker is told once, and no listener is left", async () => {
  const { rpc, counts } = fakeThread(never);
  const controller = new AbortController();
  const request = rpc.request("ping", {}, { deadlineMs: 60_000, signal: controller.signal });
  controller.abort();
  await expect(request).rejects.toThrow("ping was cancelled.");
  expect([rpc.open, counts.held, counts.cancelled]).toEqual([0, 0, 1]);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
});

test("many requests of one method -> one proxy of comlink", async () => {
  const { rpc, counts } = fakeThread(async () => ({ ok: true, value: undefined }));
  for (let index = 0; index < 5; index++) await rpc.request("ping", {}, { deadlineMs: 60_000 });
  expect(counts.named).toBe(1);
});

it.each([
  ["reconnect", true],
  ["tryServer", true],
  ["getPrompt", true],
  ["readResource", true],
  ["status", false],
  ["diagnose", false],
] as const)(
  "%s connects a server: %s -> only then its deadline is beyond npm's and every start's limit",
  (method, connects) => {
    // A server's own startupTimeoutMs may be minutes, and npm may fetch its package before.
    expect(deadlineOf(method) > LIMITS.npxRunMs + 10 * LIMITS.startupTimeoutMs).toBe(connects);
  },
);
