import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import {
  DEFAULT_SETTINGS,
  type Settings,
} from "../../../../../../workers/connection/config/entry/settings.ts";
import {
  type Configuration,
  describeEffect,
  effectSince,
  isIdle,
  type Plan,
  plan,
  tracesOf,
} from "../../../../../../workers/connection/config/plan/plan.ts";
import { canonical } from "../../../../../../workers/shared/json.ts";
import { amount, repeats } from "../../../../../support/long.ts";
import { createRandom, definition, PROJECT_PI, USER } from "../support.ts";

/** Random pairs of configurations. */
const PAIRS = repeats("PLAN_PAIRS", amount(150, 700));

const configuration = (servers: ServerDefinition[], settings: Partial<Settings> = {}): Configuration => ({
  servers,
  settings: { ...DEFAULT_SETTINGS, ...settings },
});

const STDIO = { command: "x", args: ["a"], env: { A: "1", B: "2" } };
const HTTP = { url: "https://x.y/mcp", headers: { A: "1" } };

describe("plan", () => {
  test.each<[string, object, object, string, string[] | undefined]>([
    ["the same", STDIO, STDIO, "keep", undefined],
    [
      "another order of keys",
      STDIO,
      { env: { B: "2", A: "1" }, args: ["a"], command: "x" },
      "keep",
      undefined,
    ],
    [
      "defaults written out",
      STDIO,
      { ...STDIO, enabled: true, lifecycle: "lazy", type: "stdio" },
      "keep",
      undefined,
    ],
    ["an unknown key", STDIO, { ...STDIO, foo: 1 }, "keep", undefined],
    ["command", STDIO, { ...STDIO, command: "y" }, "restart", ["command"]],
    ["args", STDIO, { ...STDIO, args: ["b"] }, "restart", ["args"]],
    ["env", STDIO, { ...STDIO, env: { A: "1" } }, "restart", ["env"]],
    ["cwd", STDIO, { ...STDIO, cwd: "/w" }, "restart", ["cwd"]],
    ["debug", STDIO, { ...STDIO, debug: true }, "restart", ["debug"]],
    ["elicitation", STDIO, { ...STDIO, elicitation: false }, "restart", ["elicitation"]],
    ["roots", STDIO, { ...STDIO, roots: true }, "restart", ["roots"]],
    ["protocol", STDIO, { ...STDIO, protocol: "legacy" }, "restart", ["protocol"]],
    ["enabled", STDIO, { ...STDIO, enabled: false }, "restart", ["enabled"]],
    ["url", HTTP, { ...HTTP, url: "https://x.y/other" }, "restart", ["url"]],
    ["headers", HTTP, { ...HTTP, headers: {} }, "restart", ["headers"]],
    ["type", HTTP, { ...HTTP, type: "sse" }, "restart", ["type"]],
    ["token", HTTP, { ...HTTP, bearerToken: "t" }, "restart", ["auth"]],
    ["oauth", HTTP, { ...HTTP, oauth: false }, "restart", ["oauth"]],
    ["another kind", STDIO, HTTP, "restart", ["url"]],
    ["two keys", STDIO, { ...STDIO, args: [], lifecycle: "eager" }, "restart", ["args", "lifecycle"]],
    ["lifecycle", STDIO, { ...STDIO, lifecycle: "keep-alive" }, "update", ["lifecycle"]],
    ["idleTimeout", STDIO, { ...STDIO, idleTimeout: 0 }, "update", ["idleTimeout"]],
    ["timeout", STDIO, { ...STDIO, timeout: 5 }, "update", ["timeout"]],
    ["startupTimeoutMs", STDIO, { ...STDIO, startupTimeoutMs: 5 }, "update", ["startupTimeoutMs"]],
    ["exposure", STDIO, { ...STDIO, exposure: "direct" }, "update", ["exposure"]],
    ["toolExposure", STDIO, { ...STDIO, toolExposure: { a: "direct" } }, "update", ["toolExposure"]],
    ["directTools", STDIO, { ...STDIO, directTools: true }, "update", ["directTools"]],
    ["toolPrefix", STDIO, { ...STDIO, toolPrefix: "none" }, "update", ["toolPrefix"]],
    ["description", STDIO, { ...STDIO, description: "d" }, "update", ["description"]],
    [
      "exclusion",
      STDIO,
      { ...STDIO, excludeTools: ["a"], includeTools: ["b"] },
      "update",
      ["includeTools", "excludeTools"],
    ],
  ])("%s changed -> %#", (_, before, after, action, keys) => {
    const [change] = plan(
      configuration([definition("a", before)]),
      configuration([definition("a", after)]),
    ).servers;
    expect(change).toMatchObject({ action, name: "a", ...(keys && { keys }) });
  });

  test("toolExposure of the user's own file in another order, a project's file repeats its patterns -> the rules change", () => {
    const first = { "*": "direct", "delete_*": "hidden" } as const;
    const turned = { "delete_*": "hidden", "*": "direct" } as const;
    const server = definition("a", { ...STDIO, toolExposure: first });
    const by = (toolExposure: ServerDefinition["toolExposure"]): Configuration =>
      configuration([{ ...server, userRules: { ...server, toolExposure } }]);
    expect(plan(by(first), by(turned)).servers).toMatchObject([{ action: "update", keys: ["toolExposure"] }]);
    expect(plan(by(first), by({ ...first })).servers).toMatchObject([{ action: "keep" }]);
  });

  test("the user agreed to another content of the envFile -> the server restarts", () => {
    const before = { ...definition("a", { ...STDIO, envFile: ".env" }), agreedEnvFile: "one" };
    const change = plan(configuration([before]), configuration([{ ...before, agreedEnvFile: "two" }]));
    expect(change.servers).toMatchObject([{ action: "restart", keys: ["content of envFile"] }]);
    expect(plan(configuration([before]), configuration([{ ...before }])).servers).toMatchObject([
      { action: "keep" },
    ]);
  });

  test("added starts, removed stops, moved to another file updates", () => {
    const before = configuration([definition("old", STDIO), definition("moved", STDIO, USER)]);
    const after = configuration([definition("moved", STDIO, PROJECT_PI), definition("new", STDIO)], {
      catalog: "off",
    });
    const made = plan(before, after);
    expect(made.servers.map(({ action, name }) => `${action} ${name}`)).toEqual([
      "update moved",
      "start new",
      "stop old",
    ]);
    expect(made.settings.keys).toEqual(["catalog"]);
  });
});

const VALUES: Record<string, unknown[]> = {
  args: [["a"], ["a", "b"], []],
  env: [{ A: "1", B: "2" }, { A: "1" }, { B: "2", A: "1" }],
  cwd: ["/a", "/b"],
  enabled: [true, false],
  disabled: [false],
  lifecycle: ["lazy", "eager", "keep-alive"],
  idleTimeout: [0, 1],
  timeout: [1, 2],
  directTools: [true, false, ["a"]],
  exposure: ["direct", "deferred", "hidden"],
  toolExposure: [
    { a: "direct", b: "hidden" },
    { b: "hidden", a: "direct" },
  ],
  excludeTools: [["a"], []],
  includeTools: [["a"]],
  description: ["d"],
  debug: [true],
  elicitation: [true, false],
  roots: [true, ["/a"], ["/b"]],
  protocol: ["legacy", "2026-07-28"],
  toolPrefix: ["none"],
};

/** Random configurations of up to five servers out of five names. */
function createGenerator(seed: number): () => Configuration {
  const random = createRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const entry = (): object => {
    const target =
      random() < 0.5 ? { command: pick(["x", "y"]) } : { url: pick(["https://x.y", "https://z.y"]) };
    const keys = Object.keys(VALUES).filter(() => random() < 0.3);
    return { ...target, ...Object.fromEntries(keys.map((key) => [key, pick(VALUES[key] ?? [])])) };
  };
  return () => {
    const names = ["a", "b", "c", "__x", "constructor"].filter(() => random() < 0.6);
    const servers = names
      .sort(() => random() - 0.5)
      .map((name) => definition(name, entry(), pick([USER, PROJECT_PI])));
    return configuration(servers, random() < 0.5 ? { idleTimeout: Math.floor(random() * 3) } : {});
  };
}

/** A configuration without the way in which it is written. */
const meaning = ({ servers, settings }: Configuration): unknown => ({
  servers: servers.map(({ raw: _raw, replaced: _replaced, ...server }) => server),
  settings,
});

const reordered = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, entry]) => [key, key === "toolExposure" ? entry : reordered(entry)]),
      )
    : value;

/** The configuration that a plan leads to, from the one that it was made from. */
function applyPlan(before: Configuration, { servers, settings }: Plan): Configuration {
  const old = new Map(before.servers.map((server) => [server.name, server]));
  const after = servers.flatMap((change) => {
    if (change.action === "stop") return [];
    return [change.action === "keep" ? (old.get(change.name) ?? change.after) : change.after];
  });
  return { servers: after, settings: settings.keys.length === 0 ? before.settings : settings.after };
}

describe(`properties of plan, ${PAIRS} random pairs`, () => {
  const next = createGenerator(4);
  const pairs = Array.from({ length: PAIRS }, () => [next(), next()] as const);

  test("plan(a, a) keeps everything", () => {
    for (const [a] of pairs) {
      const made = plan(a, structuredClone(a));
      expect(isIdle(made)).toBe(true);
      expect(made.servers).toHaveLength(a.servers.length);
      expect(describeEffect(made, new Map())).toBeUndefined();
    }
  });

  test("applying plan(a, b) to a gives b", () => {
    for (const [a, b] of pairs) expect(meaning(applyPlan(a, plan(a, b)))).toEqual(meaning(b));
  });

  test("the order of keys never matters", () => {
    for (const [a, b] of pairs) {
      const turned = (from: Configuration): Configuration => ({
        servers: from.servers.map((server) => definition(server.name, reordered(server.raw), server)),
        settings: reordered(from.settings) as Settings,
      });
      const shape = ({ servers }: ReturnType<typeof plan>): unknown =>
        servers.map((change) => ({ ...change, before: 0, after: 0 }));
      expect(shape(plan(turned(a), b))).toEqual(shape(plan(a, b)));
      expect(isIdle(plan(a, turned(a)))).toBe(true);
    }
  });

  test("canonical text tells unequal data apart", () => {
    expect(canonical({ a: [1, { c: 2, b: undefined }] })).toBe(canonical({ a: [1, { c: 2 }] }));
    expect(canonical({ a: "1" })).not.toBe(canonical({ a: 1 }));
    expect(canonical({ a: null })).not.toBe(canonical({}));
  });
});

describe("describeEffect", () => {
  const counts = new Map([
    ["docs", 12],
    ["one", 1],
  ]);
  const digest = (text: string): string => hash("sha256", text).slice(0, 8);
  /** Also as it is told when only the traces of the configuration before are left. */
  const effect = (
    before: [string, object][],
    after: [string, object][],
    settings: Partial<Settings> = {},
  ): string | undefined => {
    const old = configuration(before.map(([name, raw]) => definition(name, raw)));
    const now = configuration(
      after.map(([name, raw]) => definition(name, raw)),
      settings,
    );
    const line = describeEffect(plan(old, now), counts);
    const traces = JSON.parse(JSON.stringify(tracesOf(old, digest)));
    const since = effectSince(traces, tracesOf(now, digest), now);
    expect(describeEffect(since, counts)).toBe(line);
    expect(isIdle(since)).toBe(line === undefined);
    return line;
  };

  test.each<[[string, object][], [string, object][], string | undefined]>([
    [[], [["docs", STDIO]], "mcp.json: + docs (12 tools)"],
    [
      [],
      [
        ["one", STDIO],
        ["unknown", STDIO],
      ],
      "mcp.json: + one (1 tool), + unknown",
    ],
    [
      [
        ["github", STDIO],
        ["old", HTTP],
      ],
      [
        ["docs", HTTP],
        ["github", { ...STDIO, args: [] }],
      ],
      "mcp.json: + docs (12 tools), ~ github (args), - old",
    ],
    [[["docs", STDIO]], [["docs", { ...STDIO, enabled: false }]], "mcp.json: - docs (disabled)"],
    [[["x", { ...STDIO, enabled: false }]], [["x", STDIO]], "mcp.json: + x (enabled)"],
    [[], [["x", { ...STDIO, enabled: false }]], "mcp.json: + x (disabled)"],
    [[["docs", STDIO]], [["docs", STDIO]], undefined],
    [[["docs", STDIO]], [["docs", HTTP]], "mcp.json: ~ docs (url)"],
    [
      [["docs", { ...STDIO, env: { TOKEN: "before" } }]],
      [["docs", { ...STDIO, env: { TOKEN: "after" }, lifecycle: "eager" }]],
      "mcp.json: ~ docs (env, lifecycle)",
    ],
  ])("%#", (before, after, line) => {
    expect(effect(before, after)).toBe(line);
  });

  test("settings and a long list", () => {
    expect(effect([], [], { catalog: "off", idleTimeout: 1 })).toBe(
      "mcp.json: settings (idleTimeout, catalog)",
    );
    const many = Array.from({ length: 10 }, (_, i): [string, object] => [`s${i}`, STDIO]);
    expect(effect([], many)).toBe("mcp.json: + s0, + s1, + s2, + s3, + s4, + s5, + s6, + s7, 2 more");
  });
});
