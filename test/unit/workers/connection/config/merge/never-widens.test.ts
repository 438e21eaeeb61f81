/**
 * Owns: the rule that a project's files never widen what the user's own files allow, for each key that there is: a key
 * without a decision here fails. Random files of a user and a project; what counts as wider is written anew, not taken
 * from the code.
 */

import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import {
  type Approve,
  exposureOf,
  verdictOn,
} from "../../../../../../workers/connection/config/entry/exposure.ts";
import { entryShape, OVERRIDE_KEYS } from "../../../../../../workers/connection/config/entry/server-keys.ts";
import {
  DEFAULT_SETTINGS,
  guardFrom,
  type Settings,
  settingsShape,
} from "../../../../../../workers/connection/config/entry/settings.ts";
import {
  ASK_FOR_SKILLS,
  type SkillPolicy,
  skillPolicy,
} from "../../../../../../workers/connection/config/entry/skill-policy.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { createRandom, definition, PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";

const TOOLS = ["read", "drop_all", "admin_x"];
const APPROVALS: Approve[] = ["never", "destructive", "always", { "drop_*": "deny", "*": "allow" }];
const LIFECYCLES = ["lazy", "eager", "keep-alive"];

/** Whether what counts is wider than what the user's own files say. */
type IsWider<T> = (own: T, result: T, settings: Settings) => boolean;
interface Decision<T> {
  values: readonly unknown[];
  isWider: IsWider<T>;
}

/** Verdicts of the user's settings and of nothing else, so that the entry's rules are what is compared. */
const verdict = (server: ServerDefinition, settings: Settings): number[] =>
  TOOLS.map((tool) =>
    ["allow", "ask", "deny"].indexOf(
      verdictOn({ server: "a", tool, prefix: "server", annotations: undefined }, server, settings.approve),
    ),
  );
const shows = (server: ServerDefinition): string[] =>
  TOOLS.filter((tool) => exposureOf(tool, server) !== "hidden");
const showsMore: IsWider<ServerDefinition> = (own, result) =>
  shows(result).some((tool) => !shows(own).includes(tool));
const minutes = ({ idleTimeoutMinutes, lifecycle }: ServerDefinition, { idleTimeout }: Settings): number =>
  (idleTimeoutMinutes ?? (lifecycle === "lazy" ? idleTimeout : 0)) || Number.POSITIVE_INFINITY;
/** Where it runs and what it gets: only an entry that replaces the whole server changes it, with a name of its own. */
const fixed = (...values: unknown[]): Decision<ServerDefinition> => ({
  values,
  isWider: (own, result) => {
    const { raw: _, ...before } = own;
    const same = Object.keys(before).filter((key) => !(key in CHANGEABLE));
    const at = (server: ServerDefinition) => same.map((key) => server[key as keyof ServerDefinition]);
    return JSON.stringify(at(own)) !== JSON.stringify(at(result));
  },
});
/** What a decision of its own below compares, and what only says who changed something. */
const CHANGEABLE: Partial<Record<keyof ServerDefinition, true>> = {
  ...{
    enabled: true,
    lifecycle: true,
    idleTimeoutMinutes: true,
    directTools: true,
    exposure: true,
    shared: true,
    skills: true,
    skillPolicy: true,
  },
  ...{ toolExposure: true, excludeTools: true, approveToo: true, overrides: true, enabledIn: true },
  ...{ userRules: true, project: true, origin: true, enabledByProject: true, replaced: true },
};
/** Switching on what the user switched off needs a yes: the server then counts as the project's. */
const switchesOn: IsWider<ServerDefinition> = (own, result) =>
  result.enabled && !own.enabled && result.enabledByProject === undefined;

const SKILLS = [false, "ask", "allow", { dynamic: true }, { use: "allow", dynamic: true }];
const widerSkills = (own: SkillPolicy, result: SkillPolicy): boolean =>
  [false, "ask", "allow"].indexOf(result.use) > [false, "ask", "allow"].indexOf(own.use) ||
  (result.dynamic && !own.dynamic);

const ENTRY: Record<keyof typeof entryShape, Decision<ServerDefinition>> = {
  skills: {
    values: SKILLS,
    isWider: ({ skillPolicy: own }, { skillPolicy: result }) => widerSkills(own, result),
  },
  shared: {
    values: [true, false],
    isWider: ({ shared: own }, { shared: result }) => result === true && own !== true,
  },
  inheritEnv: fixed(true, false, ["EVIL*"]),
  sandbox: fixed(true, false, { write: ["/"], network: true }),
  type: fixed(),
  command: fixed(),
  url: fixed(),
  socket: fixed(),
  args: fixed(["--evil"]),
  env: fixed({ A: "evil" }),
  envFile: fixed("evil.env"),
  envFileNames: fixed(["NODE_OPTIONS"]),
  cwd: fixed("/evil"),
  headers: fixed({ A: "evil" }),
  requestHeadersCommand: fixed({ command: "evil" }),
  auth: fixed("none"),
  bearerToken: fixed("evil"),
  bearerTokenEnv: fixed("EVIL"),
  oauth: fixed(false),
  caFile: fixed("./evil.pem"),
  startupTimeoutMs: fixed(1, 2 ** 31),
  timeout: fixed(0.001, 2 ** 31),
  requestTimeoutMs: fixed(1, 2 ** 31),
  exposeResources: fixed(true, false),
  exposePrompts: fixed(true, false),
  includeTools: fixed(["*"]),
  tools: fixed(["*"], ["read"]),
  toolPrefix: fixed("none"),
  searchKeywords: fixed({ "*": ["evil"] }),
  description: fixed("evil"),
  elicitation: fixed(true),
  sampling: fixed(true),
  protocol: fixed("legacy"),
  roots: fixed(true),
  outputGuard: fixed(false),
  debug: fixed(true),
  trace: fixed(true),
  enabled: { values: [true, false], isWider: switchesOn },
  disabled: { values: [true, false], isWider: switchesOn },
  lifecycle: {
    values: LIFECYCLES,
    isWider: (own, result) => LIFECYCLES.indexOf(result.lifecycle) > LIFECYCLES.indexOf(own.lifecycle),
  },
  idleTimeout: {
    values: [0, 0.01, 1, 7, 10, 500],
    isWider: (own, result, settings) => minutes(result, settings) > minutes(own, settings),
  },
  exposure: { values: ["direct", "deferred", "hidden"], isWider: showsMore },
  directTools: { values: [true, ["drop_all"], false], isWider: showsMore },
  toolExposure: {
    values: [{ "*": "direct" }, { drop_all: "hidden" }, { read: "direct" }],
    isWider: showsMore,
  },
  excludeTools: { values: [[], ["drop_*"], ["read"]], isWider: showsMore },
  approve: {
    values: APPROVALS,
    isWider: (own, result, settings) =>
      verdict(result, settings).some((one, i) => one < (verdict(own, settings)[i] ?? 0)),
  },
  approveTools: {
    values: [true, false, [], ["drop_*"]],
    isWider: (own, result, settings) =>
      verdict(result, settings).some((one, i) => one < (verdict(own, settings)[i] ?? 0)),
  },
};

/** The keys that the user's own file may set over a server of others. */
const CHANGED_BY_USER = Object.fromEntries(
  Object.entries(ENTRY).filter(([key]) => (OVERRIDE_KEYS as readonly string[]).includes(key)),
);

const differs = (own: unknown, result: unknown): boolean => JSON.stringify(own) !== JSON.stringify(result);
const usersOnly = <K extends keyof Settings>(key: K, ...values: unknown[]): Decision<Settings> => ({
  values,
  isWider: (own, result) => differs(own[key], result[key]),
});
/** It decides how the model finds what it may use anyway: a project may choose. */
const free = (...values: unknown[]): Decision<Settings> => ({ values, isWider: () => false });

const SETTINGS: Record<keyof typeof settingsShape, Decision<Settings>> = {
  ancestorConfigRoots: usersOnly("ancestorConfigRoots", ["/"], []),
  captureStats: usersOnly("captureStats", true, false, { path: "/evil" }),
  autoAuth: usersOnly("autoAuth", true),
  tokenStore: usersOnly("tokenStore", "file", "system"),
  clientMetadataUrl: usersOnly("clientMetadataUrl", "https://evil.example/client.json"),
  caFile: usersOnly("caFile", "./evil.pem"),
  identityProvider: usersOnly("identityProvider", { issuer: "https://evil.test", clientId: "a" }),
  toolPrefix: usersOnly("toolPrefix", "none", "server"),
  proxyTool: usersOnly("proxyTool", true),
  sandbox: usersOnly("sandbox", true, false, { write: ["/"] }),
  inheritEnv: usersOnly("inheritEnv", true, false, ["EVIL*"]),
  skills: {
    values: SKILLS,
    isWider: ({ skills: own }, { skills: result }) =>
      widerSkills(skillPolicy(own, ASK_FOR_SKILLS), skillPolicy(result, ASK_FOR_SKILLS)),
  },
  shared: { values: [true, false], isWider: ({ shared: own }, { shared: result }) => result && !own },
  hotReload: {
    values: ["on", "ask", "off"],
    isWider: (own, result) =>
      ["on", "ask", "off"].indexOf(result.hotReload) < ["on", "ask", "off"].indexOf(own.hotReload),
  },
  // Neither more than the user allows, nor so little that no server of his works.
  maxMessageBytes: {
    values: [1_024, 2 ** 20, 2 ** 22, 2 ** 40],
    isWider: ({ maxMessageBytes: own }, { maxMessageBytes: result }) =>
      result > own || result < Math.min(own, 2 ** 20),
  },
  idleTimeout: {
    values: [0, 0.01, 1, 7, 500],
    isWider: ({ idleTimeout: own }, { idleTimeout: result }) =>
      (result || Number.POSITIVE_INFINITY) > (own || Number.POSITIVE_INFINITY) ||
      (result !== 0 && result < Math.min(own || 1, 1)),
  },
  outputGuard: {
    values: [
      false,
      { maxBytes: 1_000, maxLines: 10 },
      { maxBytes: 9_000 },
      { maxLines: 90 },
      { maxBytes: 10_000_000 },
    ],
    isWider: (own, result) => {
      const [most, now] = [guardFrom(own.outputGuard), guardFrom(result.outputGuard)];
      if (now === false) return most !== false;
      const { maxBytes, maxLines } = most || { maxBytes: LIMITS.resultBytes, maxLines: LIMITS.resultLines };
      const isMore = most !== false && (now.maxBytes > maxBytes || now.maxLines > maxLines);
      return isMore || now.maxBytes < Math.min(maxBytes, 4_000) || now.maxLines < Math.min(maxLines, 50);
    },
  },
  approve: {
    values: APPROVALS,
    isWider: (own, result) => {
      const server = { approve: undefined, approveToo: [] } as unknown as ServerDefinition;
      return verdict(server, result).some((one, i) => one < (verdict(server, own)[i] ?? 0));
    },
  },
  // Another spelling of approve, whose row judges it.
  approveTools: free(true, false, ["drop_*"]),
  search: free("weighted"),
  toonEncode: free(true),
  directTools: free(true, ["a/read"]),
  catalog: free("off"),
};

const file = (source: typeof USER, entry: object, settings: object) =>
  parseConfigText(JSON.stringify({ mcpServers: { a: entry }, settings }), source);

describe("a project never widens", () => {
  test("every key of a server and of the settings has a decision", () => {
    expect(Object.keys(ENTRY).sort()).toEqual(Object.keys(entryShape).sort());
    expect(Object.keys(SETTINGS).sort()).toEqual(Object.keys(settingsShape).sort());
    const { approveTools: _, ...ours } = SETTINGS;
    expect(Object.keys(ours).sort()).toEqual(Object.keys(DEFAULT_SETTINGS).sort());
  });

  const random = createRandom(29);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  /** Some of the keys, each with one of its values. */
  const some = (decisions: Record<string, Decision<never>>, share: number): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(decisions)
        .filter(([, { values }]) => values.length > 0 && random() < share)
        .map(([key, { values }]) => [key, pick(values)]),
    );
  const runs = Array.from({ length: 60 }, (_, run) => ({
    run,
    // Below the user's server may lie a server of the project that takes its name, with a rule for that name above it.
    cases: Array.from({ length: 30 }, () => ({
      own: { ...some(ENTRY, 0.2), command: "mine" },
      ownSettings: some(SETTINGS, 0.3),
      first: random() < 0.2 ? { ...some(ENTRY, 0.3), command: "theirs" } : some(ENTRY, 0.3),
      second: some(ENTRY, 0.3),
      settings: [some(SETTINGS, 0.4), some(SETTINGS, 0.4)],
      source: random() < 0.5 ? PROJECT_FILE : PROJECT_PI,
      theirs: { command: "theirs", ...some(CHANGED_BY_USER, 0.2) },
      users: { approve: "destructive", ...some(CHANGED_BY_USER, 0.3) },
    })),
  }));

  test.each(runs)("thirty random projects, %#", ({ cases }) => {
    for (const { own, ownSettings, first, second, settings, source } of cases) {
      const users = [file(USER, own, ownSettings)];
      const before = mergeLayers({ registered: [], hosts: [], files: users });
      const projects = [file(PROJECT_FILE, first, settings[0] ?? {})];
      if (source === PROJECT_PI) projects.push(file(PROJECT_PI, second, settings[1] ?? {}));
      const after = mergeLayers({ registered: [], hosts: [], files: [...users, ...projects] });
      const told = JSON.stringify({ own, ownSettings, first, second, settings, source: source.file });
      const [mine] = before.servers;
      const [top] = after.servers;
      const result = top?.definedByProject ? top.replaced : top;
      if (!mine || !result) throw new Error(`no server: ${told}`);
      for (const [key, { isWider }] of Object.entries(ENTRY))
        expect(isWider(mine, result, before.settings), `${key}: ${told}`).toBe(false);
      for (const [key, { isWider }] of Object.entries(SETTINGS))
        expect(isWider(before.settings, after.settings, before.settings), `${key}: ${told}`).toBe(false);
    }
  });

  const HOST = { file: "/work/app/.cursor/mcp.json", origin: "project-file" } as const;
  const INSTALLED = { file: "/home/me/plugin/mcp.json", origin: "package" } as const;

  // What comes from elsewhere, and what the user's own file says of it.
  test.each(runs)(
    "thirty random projects, and a server that the user's file only changes, %#",
    ({ cases }) => {
      for (const [at, { theirs, users, first, second, settings }] of cases.entries()) {
        const [from, base] =
          at % 2 === 0
            ? [HOST, { hosts: [[definition("a", theirs, HOST)]] }]
            : [INSTALLED, { hosts: [], packages: [definition("a", theirs, INSTALLED)] }];
        const { command: _, ...override } = first as Record<string, unknown>;
        const user = file(USER, users, {});
        const before = mergeLayers({ registered: [], ...base, files: [user] });
        const files = [user, file(PROJECT_FILE, override, settings[0] ?? {}), file(PROJECT_PI, second, {})];
        const after = mergeLayers({ registered: [], ...base, files });
        const told = JSON.stringify({ from, theirs, users, override, second, settings });
        const [mine] = before.servers;
        const [result] = after.servers;
        if (!mine || !result) throw new Error(`no server: ${told}`);
        for (const [key, { isWider }] of Object.entries(CHANGED_BY_USER))
          expect(isWider(mine, result, before.settings), `${key}: ${told}`).toBe(false);
      }
    },
  );
});
