/**
 * The row of OpenCode, whose two versions write much in different ways: config.ts and paths.ts of OpenCode, config/mcp.ts of its
 * version 2, and opencode.ai/docs/config, mcp-servers and permissions. Pure.
 */
import { namePrefixes, serverPrefix } from "../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { pathsOf } from "../entry/interpolate.ts";
import type { Override } from "../entry/override.ts";
import { inBoth, matchesPattern } from "../entry/patterns.ts";
import { foldersUp } from "../files/sources.ts";
import {
  compact,
  type Data,
  type Dialect,
  type HostFiles,
  type HostFolders,
  oauthOf,
  objectAt,
  pick,
  type Rules,
  type RulesCost,
} from "./format.ts";

/**
 * OpenCode's own order, with the XDG rules on every platform. If `.opencode` folders are nested, the inner one wins
 * here, as in version 2; in version 1 the outer one wins.
 */
function files({ facts, config, join }: HostFolders): HostFiles {
  const { cwd, env, home, platform } = facts;
  const both = (folder: string): string[] =>
    ["opencode.json", "opencode.jsonc"].map((name) => join(folder, name));
  const folders = foldersUp(facts);
  const { OPENCODE_CONFIG: named, OPENCODE_CONFIG_DIR: folder } = env;
  const absolute = (path: string): string => pathsOf(platform).resolve(cwd, path);
  return {
    user: [...both(join(config, "opencode")), ...(named ? [absolute(named)] : [])],
    project: [...folders.flatMap(both), ...folders.flatMap((each) => both(join(each, ".opencode")))],
    userLast: [...both(join(home, ".opencode")), ...(folder ? both(absolute(folder)) : [])],
  };
}

/** Version 2 of OpenCode keeps the servers in `mcp.servers`, version 1 in `mcp`. */
const groups: Dialect["groups"] = (root) => {
  const { servers, timeout: _, ...plain } = objectAt(root.mcp);
  if (!isObject(servers) || typeof servers.type === "string") return [{ path: ["mcp"], servers: root.mcp }];
  return [
    { path: ["mcp"], servers: plain },
    { path: ["mcp", "servers"], servers },
  ];
};

/** Version 1 has one number of milliseconds, to list the tools; version 2 has one for each of these, also for all servers. */
function timeouts({ timeout }: Data, root: Data): Data {
  if (typeof timeout === "number") return { startupTimeoutMs: timeout };
  const { startup, execution, request } = {
    ...objectAt(objectAt(root.mcp).timeout),
    ...compact(objectAt(timeout)),
  } as Data;
  return { startupTimeoutMs: startup, requestTimeoutMs: execution ?? request };
}

/** Version 2 has underscores in its keys. */
const client = ({ oauth }: Data): Data => {
  const { client_id, client_secret, callback_port, redirect_uri, ...own } = objectAt(oauth);
  return {
    ...{
      clientId: client_id,
      clientSecret: client_secret,
      callbackPort: callback_port,
      redirectUri: redirect_uri,
    },
    ...compact(pick(own, "clientId", "clientSecret", "scope", "callbackPort", "redirectUri")),
  };
};

type Rule = [pattern: string, rule: "allow" | "ask" | "deny", isSwitch: boolean];

const isRule = (rule: unknown): rule is Rule[1] => rule === "allow" || rule === "ask" || rule === "deny";

const fitsStar = (pattern: string): boolean =>
  /^[*?]+$/.test(pattern) && pattern.indexOf("?") === pattern.lastIndexOf("?");

/** Of rules by what a tool is called with, those for `*` count: as that OpenCode asks about a server's tool, whatever its arguments. */
const ofAnyCall = (rule: unknown): unknown[] =>
  isObject(rule) ? Object.entries(rule).flatMap(([input, one]) => (fitsStar(input) ? [one] : [])) : [rule];

/** What the file says of tools by their names in OpenCode, `<server>_<tool>`; of several rules that fit the last one counts. */
function written({ tools, permission }: Data): Rule[] {
  const permissions = typeof permission === "string" ? { "*": permission } : objectAt(permission);
  return [
    ...Object.entries(objectAt(tools)).map(([pattern, is]) => [
      pattern,
      is === false ? "deny" : "allow",
      true,
    ]),
    ...Object.entries(permissions).flatMap(([pattern, rule]) =>
      ofAnyCall(rule).map((one) => [pattern, one, false]),
    ),
  ].filter((one): one is Rule => isRule(one[1]));
}

/** A rule for one server's own names of its tools. */
interface OwnRule {
  pattern: string;
  rule: Rule[1];
  /** The end of the server's part of the name there that the pattern is compared with, too. */
  own: string;
  /** It fits no more tools here than in OpenCode. */
  isExact: boolean;
  /** Of `tools`: what is switched off there, no `permission` switches on. */
  isSwitch: boolean;
}

/** What stands before a tool's own name in the other names that rules of ours fit, as `namesInRules` makes them. */
const startsOf = (server: string): string[] => [
  ...new Set([...namePrefixes(server), `${serverPrefix(server)}_`, "_"]),
];

/** Whether a literal part of a pattern may lie in the start of a name, further than in `own`, which OpenCode compares as well. */
function reachesInto(start: string, part: string, own: string): boolean {
  if (start.includes(part)) return true;
  for (let at = Math.max(0, start.length - part.length); at < start.length; at++) {
    const overlap = start.slice(at);
    if (part.startsWith(overlap) && !own.endsWith(overlap)) return true;
  }
  return false;
}

/**
 * Whether a pattern may fit a tool by another name that rules of ours fit, and not in OpenCode. `own`: the end of the server's part
 * of the name there that the pattern is compared with, too. It may say so of a pattern that does not: fewer tools are there then.
 */
function fitsMore(pattern: string, own: string, starts: readonly string[]): boolean {
  if (pattern.length > LIMITS.toolRuleChars) return true;
  if (pattern.endsWith("*") && matchesPattern(pattern, own)) return false;
  const [head = "", ...parts] = pattern.split("*");
  return starts.some((start) =>
    head === ""
      ? parts.some((part) => part !== "" && reachesInto(start, part, own))
      : start.startsWith(head) || head.startsWith(start),
  );
}

/**
 * What OpenCode does with the tool, or what is stricter: a rule with a sign for a single character fits more tools here, and a file
 * that says nothing of the tool leaves it to another one, which may ask.
 */
function ruleOn(tool: string, rules: readonly OwnRule[], otherwise: Rule[1]): Rule[1] {
  const fitting = rules.filter(
    ({ pattern, own, rule, isExact }) => (isExact || rule !== "allow") && matchesPattern(pattern, own + tool),
  );
  const sure = fitting.findLast(({ rule, isExact }) => isExact || rule === "deny")?.rule;
  return sure === "deny" ? sure : (fitting.at(-1)?.rule ?? otherwise);
}

/** The tools that the whole name of another one fits here besides. */
const namesakesOf = ({ pattern, rule, isExact }: OwnRule, starts: readonly string[]): string[] =>
  rule === "deny" || !isExact || pattern.includes("*")
    ? []
    : starts
        .filter((start) => pattern.length > start.length && pattern.startsWith(start))
        .map((start) => pattern.slice(start.length));

/**
 * With a rule before the exceptions for each tool that one of them would fit by another name of it: the exception for `gh_x` of the
 * server gh would count for its tool `x` as well.
 */
function withNamesakes(rules: readonly OwnRule[], starts: readonly string[]): OwnRule[] {
  const at = rules.findLastIndex(({ rule }) => rule !== "allow") + 1;
  if (at === 0) return [...rules];
  const namesakes = rules.flatMap((one): OwnRule[] => {
    const { isSwitch } = one;
    return namesakesOf(one, starts).flatMap((tool): OwnRule[] => {
      const counts = ruleOn(
        tool,
        rules.filter((other) => other.isSwitch === isSwitch),
        isSwitch ? "allow" : "ask",
      );
      return counts === "allow" ? [] : [{ pattern: tool, own: "", rule: counts, isExact: true, isSwitch }];
    });
  });
  return [...rules.slice(0, at), ...namesakes, ...rules.slice(at)];
}

/**
 * What of a pattern is left for a tool's own name, behind the server's part: from the last star that is reached in that on, and for
 * each end of that with which the text behind this star may begin, the rest of the text. None: it is for other servers.
 */
function restsOf(pattern: string, prefix: string): Pick<OwnRule, "pattern" | "own">[] {
  if (pattern.startsWith(prefix)) return [{ pattern: pattern.slice(prefix.length), own: "" }];
  let star = pattern.indexOf("*");
  if (star === -1 || !prefix.startsWith(pattern.slice(0, star))) return [];
  let at = star;
  let next = pattern.indexOf("*", star + 1);
  while (next !== -1) {
    const part = pattern.slice(star + 1, next);
    const found = prefix.indexOf(part, at);
    if (found === -1) break;
    at = found + part.length;
    star = next;
    next = pattern.indexOf("*", star + 1);
  }
  const own = prefix.slice(at);
  const text = pattern.slice(star + 1, next === -1 ? undefined : next);
  const begun = Array.from({ length: Math.min(text.length - 1, own.length) }, (_, i) => i + 1)
    .filter((chars) => own.endsWith(text.slice(0, chars)))
    .map((chars) => ({ pattern: pattern.slice(star + 1 + chars), own: "" }));
  return [{ pattern: pattern.slice(star), own }, ...begun];
}

function rulesFor(server: string, all: readonly Rule[]): OwnRule[] {
  const prefix = `${server.replace(/[^\w-]/g, "_")}_`;
  const starts = startsOf(server);
  return all.flatMap(([written, rule, isSwitch]) =>
    // Patterns have no sign for a single character here.
    restsOf(written.replaceAll("?", "*"), prefix).map(
      ({ pattern, own }): OwnRule => ({
        ...{ pattern: pattern || "*", own, rule, isSwitch },
        isExact:
          pattern !== "" &&
          !written.includes("?") &&
          !(pattern.includes("*") && fitsMore(pattern, own, starts)),
      }),
    ),
  );
}

/** Each `deny` that no later rule lifts as a whole, with the first later rule that is an exception from it. */
const denials = (rules: readonly OwnRule[]): { at: number; pattern: string; exception?: OwnRule }[] =>
  rules.flatMap(({ pattern, rule }, at) => {
    if (rule !== "deny") return [];
    const later = rules.filter((one, other) => other > at && one.rule !== "deny" && one.isExact);
    if (later.some((one) => matchesPattern(one.pattern, pattern))) return [];
    const exception = later.find((one) => matchesPattern(pattern, one.pattern));
    return [{ at, pattern, ...(exception && { exception }) }];
  });

/** An exception that would count for more tools here, and so counts for none. */
function unkept(rules: readonly OwnRule[]): string | undefined {
  const before = new Set<string>();
  for (const { pattern, rule, isExact, isSwitch } of rules) {
    const stricter = rule === "allow" ? ["ask", "deny"] : ["deny"];
    if (!isExact && rule !== "deny" && stricter.some((one) => before.has(`${isSwitch} ${one}`)))
      return pattern;
    before.add(`${isSwitch} ${rule}`);
  }
  return undefined;
}

interface Taken {
  includeTools?: string[];
  excludeTools: string[];
  /** What OpenCode lets run and an exclusion takes away here. */
  lost?: string | undefined;
}

/** Where all tools are denied, the later rules say which are there. Tools that are taken away besides are excluded. */
function takenBy(rules: readonly OwnRule[]): Taken {
  const denied = denials(rules);
  const all = denied.findLast(({ pattern }) => pattern === "*")?.at ?? -1;
  const shown = rules.filter((one, at) => at > all && one.rule !== "deny" && one.isExact);
  if (all !== -1 && shown.length === 0) return { excludeTools: ["*"] };
  const excluded = denied.filter(({ at }) => at > all);
  return {
    ...(all !== -1 && { includeTools: shown.map(({ pattern }) => pattern) }),
    excludeTools: excluded.map(({ pattern }) => pattern),
    lost: excluded.find(({ exception }) => exception)?.exception?.pattern,
  };
}

function taken(rules: readonly OwnRule[]): Taken {
  const switches = takenBy(rules.filter(({ isSwitch }) => isSwitch));
  const permissions = takenBy(rules.filter(({ isSwitch }) => !isSwitch));
  const includeTools =
    switches.includeTools && permissions.includeTools
      ? inBoth(switches.includeTools, permissions.includeTools)
      : (switches.includeTools ?? permissions.includeTools);
  return {
    ...(includeTools && { includeTools }),
    excludeTools: [...switches.excludeTools, ...permissions.excludeTools],
    lost: switches.lost ?? permissions.lost ?? unkept(rules),
  };
}

/** An `allow` counts only if no stricter rule comes after it. */
function asOverride(rules: readonly OwnRule[]): Override | undefined {
  const last = rules.findLastIndex(({ rule }) => rule !== "allow");
  if (last === -1) return undefined;
  const asks = rules.filter(
    ({ rule, isExact }, at) => rule === "ask" || (rule === "allow" && isExact && at > last),
  );
  const { lost: _, ...tools } = taken(rules);
  return {
    ...tools,
    ...(asks.some(({ rule }) => rule === "ask") && {
      approve: Object.fromEntries(asks.map(({ pattern, rule }) => [pattern, rule])) as Record<
        string,
        "allow" | "ask"
      >,
    }),
  };
}

/** Comparisons of the rules for one server: each `deny` with the others, and each namesake, which is one more rule, with all. */
function costOf(rules: readonly OwnRule[], starts: readonly string[]): RulesCost {
  const denied = rules.filter(({ rule }) => rule === "deny").length;
  const namesakes = rules.flatMap((one) => namesakesOf(one, starts)).length;
  const [switches = 0, permissions = 0] = [true, false].map((is) => {
    const some = rules.filter(({ isSwitch }) => isSwitch === is);
    const isListed = some.some(({ rule, pattern }) => rule === "deny" && /^\*+$/.test(pattern));
    return isListed ? some.filter(({ rule }) => rule !== "deny").length : 0;
  });
  return {
    steps:
      (denied + namesakes) * (rules.length - denied + namesakes) +
      namesakes * rules.length +
      2 * switches * permissions,
    listed: switches + permissions,
  };
}

/** Characters of a pattern that cost as much as a comparison. */
const PATTERN_CHARS = 16;

/** The rules for a server are looked for once, among all. They are compared for what counts, and for what is told. */
function rulesOf(root: Data): Rules | undefined {
  const all = written(root);
  const count = all.length;
  if (count === 0) return undefined;
  // A long pattern is looked at character by character.
  const looked = all.reduce((sum, [pattern]) => sum + 1 + Math.floor(pattern.length / PATTERN_CHARS), 0);
  const known = new Map<string, { rules: OwnRule[]; cost: RulesCost }>();
  const look = (name: string) => {
    const rules = rulesFor(name, all);
    const { steps, listed } = costOf(rules, startsOf(name));
    // One rule may come to several for a server whose name repeats itself.
    const found = { rules, cost: { steps: 2 * (Math.max(looked, rules.length) + steps), listed } };
    known.set(name, found);
    return found;
  };
  const found = (name: string) => known.get(name) ?? look(name);
  const named = (name: string): OwnRule[] => withNamesakes(found(name).rules, startsOf(name));
  return {
    count,
    cost: (name) => found(name).cost,
    of: (name) => asOverride(named(name)),
    lost: (name) => taken(named(name)).lost,
  };
}

export const OPENCODE: Dialect = {
  title: "OpenCode",
  files,
  looksUp: true,
  mergesEntries: true,
  groups,
  rules: rulesOf,
  convert: (entry, root) => {
    const [command, ...args] = [entry.command].flat();
    return {
      command,
      args: args.length > 0 ? args : undefined,
      env: entry.environment,
      ...pick(entry, "cwd", "url", "headers", "enabled", "disabled"),
      ...timeouts(entry, root),
      // `false` stays: OpenCode then signs in to nothing.
      oauth: isObject(entry.oauth)
        ? oauthOf(client(entry), (port = 19876) => `http://127.0.0.1:${port}/mcp/oauth/callback`)
        : entry.oauth,
    };
  },
  // In OpenCode a variable that is not set is empty.
  syntax: () => ({
    pattern: /\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g,
    fill: (name) => ({ ours: `\${${name}:-}` }),
  }),
  foreign: /\{(file:[^}]*)\}/g,
};
