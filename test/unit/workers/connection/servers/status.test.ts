/** Owns: the status of a server, and the idle time of a connection, as tables. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { IdleClock } from "../../../../../workers/connection/servers/idle-clock.ts";
import { listMark, StoredTools } from "../../../../../workers/shared/listed.ts";
import { settle, setup } from "./support.ts";

describe("status", () => {
  test("nothing known, not connected -> what the definition says", () => {
    const { server } = setup({ description: "Does it.", lifecycle: "eager" });
    expect(server.status()).toEqual({
      name: "s",
      state: "idle",
      lifecycle: "eager",
      transport: "stdio",
      source: "/m.json",
      description: "Does it.",
      toolCount: 0,
      resourceCount: 0,
      toolsKnown: false,
      direct: false,
    });
  });

  test("connected -> the transport of the connection, its process and its protocol", async () => {
    const http = setup({ command: undefined, url: "http://localhost/mcp" });
    expect(http.server.status().transport).toBe("http");
    await http.connected({ transport: "sse", pid: undefined });
    expect(http.server.status()).toMatchObject({ transport: "sse" });
    const stdio = setup();
    await stdio.connected();
    expect(stdio.server.status()).toMatchObject({ pid: 7, protocol: "2025-11-25" });
  });

  test.each([
    [true, 1],
    [false, 0],
  ])("a tool and a resource, exposeResources %s -> %i resources", (exposeResources, resourceCount) => {
    const { server } = setup({ exposeResources });
    const resources = { resources: [{ name: "note", uri: "x://note" }], templates: [] };
    server.restore({ tools: [{ name: "t" }], resources });
    expect(server.status()).toMatchObject({ toolCount: 1, resourceCount });
  });

  test("tools of the cache -> counted without being read; the same list from the server -> still not read", async () => {
    const json = JSON.stringify([{ name: "work", inputSchema: { type: "object" } }, { name: "t" }]);
    const held = new StoredTools(listMark(JSON.parse(json)), Buffer.from("not read"));
    const { server, connected } = setup();
    server.restore({ tools: held, resources: { resources: [], templates: [] } });
    expect(server.status()).toMatchObject({
      toolCount: 2,
      resourceCount: 0,
      toolsKnown: true,
      direct: false,
    });
    await connected({ listTools: async () => JSON.parse(json) });
    expect(server.held).toBe(held);
  });

  test("an error of the phase -> in the status", async () => {
    const { server, opening } = setup({}, { settings: { directTools: true } });
    server.connect("user").catch(() => undefined);
    await settle();
    opening(0).fail(new ThreadsError("needs_auth", "s wants a token.", { remedy: "Give one." }));
    await settle();
    expect(server.status()).toMatchObject({
      state: "needs-auth",
      direct: true,
      error: { code: "needs_auth", message: "s wants a token.", remedy: "Give one." },
    });
  });
});

describe("IdleClock", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  type Step = "begin" | "end" | "start" | "stop" | number;
  test.each<[string, idleMs: number, Step[], expiredAt: number[]]>([
    ["a connection that nothing uses -> after the idle time, once", 1_000, ["start", 9_000], [1_000]],
    ["not open -> never, even after a use", 1_000, ["begin", "end", 9_000], []],
    ["a longer use -> counts from its end", 1_000, ["start", "begin", 5_000, "end", 9_000], [6_000]],
    [
      "two uses that overlap -> counts from the end of the last",
      1_000,
      ["start", "begin", "begin", 500, "end", 2_000, "end", 9_000],
      [3_500],
    ],
    ["opened during a use -> counts from its end", 1_000, ["begin", "start", 5_000, "end", 1_000], [6_000]],
    ["idle time 0 -> never", 0, ["start", 100_000_000], []],
    ["longer than a timer can hold -> not at once", 60 * 24 * 60 * 60 * 1_000, ["start", 60_000], []],
    ["stopped -> never", 1_000, ["start", "stop", 9_000], []],
  ])("%s", (_case, idleMs, steps, expiredAt) => {
    const startedAt = performance.now();
    const expired: number[] = [];
    const clock = new IdleClock(
      () => idleMs,
      () => expired.push(Math.round(performance.now() - startedAt)),
    );
    const ends: (() => void)[] = [];
    for (const step of steps) {
      if (typeof step === "number") vi.advanceTimersByTime(step);
      else if (step === "begin") ends.push(clock.begin());
      else if (step === "end") ends.shift()?.();
      else clock[step]();
    }
    expect(expired).toEqual(expiredAt);
  });

  test("unused -> at once without a use, else when the last one ends that was open; later ones do not count", async () => {
    const clock = new IdleClock(
      () => 0,
      () => undefined,
    );
    const done: string[] = [];
    clock.unused().then(() => done.push("at once"));
    const endFirst = clock.begin();
    const endSecond = clock.begin();
    clock.unused().then(() => done.push("later"));
    const endThird = clock.begin();
    endFirst();
    await settle();
    expect(done).toEqual(["at once"]);
    endSecond();
    await settle();
    expect(done).toEqual(["at once", "later"]);
    expect(clock.isUsed).toBe(true);
    endThird();
    expect(clock.isUsed).toBe(false);
  });
});
