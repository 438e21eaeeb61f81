/** Owns: the pure decisions of the servers' folder, as tables. */
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { plan } from "../../../../../workers/connection/config/plan/plan.ts";
import { attemptFailure } from "../../../../../workers/connection/servers/attempt.ts";
import { callTimeoutMs, isExcluded } from "../../../../../workers/connection/servers/call.ts";
import { noServer } from "../../../../../workers/connection/servers/lookup.ts";
import { lifecyclePolicy } from "../../../../../workers/connection/servers/policy.ts";
import { reconcile } from "../../../../../workers/connection/servers/reconcile.ts";
import type { ServerPhase } from "../../../../../workers/connection/servers/state.ts";
import { serverStatus } from "../../../../../workers/connection/servers/status.ts";
import { definitionOf } from "./support.ts";

describe("reconcile", () => {
  const other = { args: ["other"] };
  const rules = { description: "other" };
  test.each<[string, existing: string[], before: object, after: object, steps: string[]]>([
    ["a new server", [], {}, { a: {} }, ["create a"]],
    ["a server removed", ["a"], { a: {} }, {}, ["remove a"]],
    ["the same", ["a"], { a: {} }, { a: {} }, ["keep a"]],
    ["other rules", ["a"], { a: {} }, { a: rules }, ["keep a"]],
    ["another command", ["a"], { a: {} }, { a: other }, ["create a, replaces"]],
    [
      "the order of the new configuration, then removals",
      ["a", "b"],
      { a: {}, b: {} },
      { c: {}, b: {} },
      ["create c", "keep b", "remove a"],
    ],
    ["planned to be kept, but not there", [], { a: {} }, { a: {} }, ["create a"]],
    ["planned to be updated, but not there", [], { a: {} }, { a: rules }, ["create a"]],
    ["planned to be replaced, but not there", [], { a: {} }, { a: other }, ["create a"]],
    ["planned to start, but there", ["a"], {}, { a: {} }, ["create a, replaces"]],
    ["planned to be removed, but not there", [], { a: {} }, {}, ["remove a"]],
  ])("%s -> %j", (_case, existing, before, after, steps) => {
    const configuration = (entries: object) => ({
      servers: Object.entries(entries).map(([name, entry]) => definitionOf(name, entry)),
      settings: DEFAULT_SETTINGS,
    });
    const next = configuration(after);
    const found = reconcile(new Set(existing), plan(configuration(before), next));
    const shown = found.map(
      (step) => `${step.action} ${step.name}${step.action === "create" && step.replaces ? ", replaces" : ""}`,
    );
    expect(shown).toEqual(steps);
    for (const step of found) {
      if (step.action !== "remove") expect(next.servers).toContain(step.definition);
    }
  });
});

test.each([
  ["withheld", "server_not_trusted", "withheld is not started: it was refused."],
  ["removed", "server_removed", "The server removed was removed from the configuration."],
  ["both", "server_not_trusted", "both is not started: it waits."],
  ["x", "unknown_server", "No server named x is configured."],
])("noServer(%s) -> %s", (name, code, message) => {
  const withheld = new Map([
    ["withheld", "it was refused"],
    ["both", "it waits"],
  ]);
  const removed = new Set(["removed", "both"]);
  const error = noServer(name, { known: ["a"], withheld, removed });
  expect([error.code, error.message]).toEqual([code, message]);
  if (code !== "server_not_trusted") expect(error.data?.known).toEqual(["a"]);
});

test.each([
  ["lazy", undefined, 10 * 60_000],
  ["lazy", 0, 0],
  ["lazy", 2, 2 * 60_000],
  ["eager", undefined, 0],
  ["eager", 2, 2 * 60_000],
  ["keep-alive", undefined, 0],
] as const)(
  "lifecyclePolicy(%s, %s minutes of its own) -> closed after %i ms unused",
  (lifecycle, own, ms) => {
    const policy = lifecyclePolicy(
      { lifecycle, idleTimeoutMinutes: own },
      { idleTimeout: 10 },
      { reconnectMs: 3 },
    );
    expect(policy).toEqual({ lifecycle, idleTimeoutMs: ms, reconnectMs: 3 });
  },
);

test.each([
  [undefined, LIMITS.requestTimeoutMs],
  [5, 5],
])("callTimeoutMs(%s) -> %i", (requestTimeoutMs, ms) => {
  expect(callTimeoutMs({ requestTimeoutMs })).toBe(ms);
});

test.each<[string, object, string, boolean]>([
  ["no rules", {}, "work", false],
  ["excluded by the server's name for it", { excludeTools: ["work"] }, "work", true],
  ["excluded by the name in Pi", { excludeTools: ["s__work"] }, "work", true],
  ["another tool included", { includeTools: ["other"] }, "work", true],
])("isExcluded: %s", (_case, entry, tool, excluded) => {
  expect(isExcluded(definitionOf("s", entry), tool, DEFAULT_SETTINGS)).toBe(excluded);
});

describe("attemptFailure", () => {
  const redact = (text: string): string => text.replaceAll("secret", "[redacted]");

  test("an error meant for users -> the same code, remedy and data, without secrets", () => {
    const error = new ThreadsError("spawn_failed", "s: secret.", {
      remedy: "Mend it.",
      data: { server: "s" },
    });
    const shown = attemptFailure("s", error, redact);
    expect(shown).toMatchObject({ code: "spawn_failed", message: "s: [redacted].", remedy: "Mend it." });
  });

  test.each([
    [new Error("secret"), "s: [redacted]"],
    [new Error("s broke"), "s broke"],
    ["thrown", "s: thrown"],
  ])("%s -> internal: %s", (error, message) => {
    expect(attemptFailure("s", error, redact)).toMatchObject({ code: "internal", message });
  });
});

describe("serverStatus", () => {
  const none = { tools: undefined, resources: undefined };
  const settings = DEFAULT_SETTINGS;
  const idle: ServerPhase = { name: "idle" };

  test("nothing known, not connected -> what the definition says", () => {
    const definition = definitionOf("s", { description: "Does it.", lifecycle: "eager" });
    expect(
      serverStatus({ definition, phase: idle, connection: undefined, offer: none, settings, limits: LIMITS }),
    ).toEqual({
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

  test("connected -> the transport of the connection and its process", () => {
    const definition = definitionOf("s", { command: undefined, url: "http://localhost/mcp" });
    const parts = { definition, phase: idle, offer: none, settings, limits: LIMITS };
    expect(serverStatus({ ...parts, connection: undefined }).transport).toBe("http");
    const protocol = { era: "legacy", version: "2025-11-25" } as const;
    const connection = { transport: "sse", pid: undefined, protocol } as const;
    expect(serverStatus({ ...parts, connection })).toMatchObject({ transport: "sse" });
    expect(serverStatus({ ...parts, connection: { transport: "stdio", pid: 7, protocol } })).toMatchObject({
      pid: 7,
      protocol: "2025-11-25",
    });
  });

  test("tools and resources -> counted apart; resources only if they are offered", () => {
    const resources = { resources: [{ name: "note", uri: "x://note" }], templates: [] };
    const offer = { tools: [{ name: "t" }], resources };
    const count = (exposeResources: boolean): number[] => {
      const definition = definitionOf("s", { exposeResources });
      const status = serverStatus({
        definition,
        phase: idle,
        connection: undefined,
        offer,
        settings,
        limits: LIMITS,
      });
      return [status.toolCount, status.resourceCount];
    };
    expect([count(true), count(false)]).toEqual([
      [1, 1],
      [1, 0],
    ]);
  });

  test("an error of the phase -> in the status", () => {
    const error = new ThreadsError("needs_auth", "s wants a token.", { remedy: "Give one." });
    const phase: ServerPhase = { name: "needs-auth", error };
    const status = serverStatus({
      definition: definitionOf("s"),
      phase,
      connection: undefined,
      offer: none,
      settings: { directTools: true },
      limits: LIMITS,
    });
    expect(status).toMatchObject({
      state: "needs-auth",
      direct: true,
      error: { code: "needs_auth", message: "s wants a token.", remedy: "Give one." },
    });
  });
});
