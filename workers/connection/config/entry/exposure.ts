/**
 * Decides what becomes of one tool of a server: declared to the model, found by ToolSearch, or withheld. Pi's own
 * words are understood: `deferred` and `codemode` both mean "found by ToolSearch", because codemode reaches every
 * registered tool. Pure.
 */

import {
  hashedNames,
  NAME_SEPARATOR,
  plainToolName,
  plainToolNames,
  serverPrefix,
  spellingsOf,
  type ToolPrefix,
} from "../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { fitsNarrowly, fitsWidely, isLikeRule, readArgumentRule } from "./argument-rules.ts";
import { UNSAFE_KEY } from "./interpolate.ts";
import { matchesPattern } from "./patterns.ts";

/** Our own values and Pi's. */
export const EXPOSURES = ["direct", "deferred", "codemode", "codemode-deferred", "hidden"] as const;

/** What becomes of a tool: declared to the model, found by ToolSearch, or withheld. */
export type Exposure = "direct" | "search" | "hidden";

/** Which calls ask the user. */
export const APPROVE_WORDS = ["never", "destructive", "always"] as const;
export const APPROVE_RULES = ["allow", "ask", "destructive", "deny"] as const;

export const toExposure = (written: (typeof EXPOSURES)[number]): Exposure =>
  written === "direct" || written === "hidden" ? written : "search";

export interface ExposureRules {
  directTools: boolean | string[] | undefined;
  exposure: Exposure | undefined;
  /** By tool or pattern, in the order written. */
  toolExposure: Record<string, Exposure>;
  includeTools: string[] | undefined;
  excludeTools: string[];
  /** Rules of the user, who has the last word: a tool that they hide stays hidden. */
  userRules?: ExposureRules | undefined;
}

/** The names that rules may use for a tool, beside its own. */
interface RuleNames {
  /** Names that exact rules and patterns can fit. */
  names: readonly string[];
  /** Names that end in a hash. Only exact rules can fit them: a pattern would fit the hash by chance. */
  hashed: () => readonly string[];
}

const NO_NAMES: RuleNames = { names: [], hashed: () => [] };

/** The end of a hashed name. Hashes are made only if a rule ends like this, because the check runs for every tool. */
const HASHED = /_[0-9a-z]{6}$/;

/**
 * A tool's name in Pi, cut and hashed if it is too long; its name without `toolPrefix`; and its names in
 * pi-mcp-adapter and Pi's built-in MCP. Rules are applied before names are given, so the name that the tool would
 * have if another tool wanted the same one counts too.
 */
export function namesInRules(server: string, tool: string, prefix: ToolPrefix): RuleNames {
  // All prefixes count; otherwise a changed prefix would show a tool that is excluded by its name.
  const prefixes = new Set<ToolPrefix>([prefix, "server", "mcp", "short", "none"]);
  const names = [...prefixes].flatMap((each) => {
    const plain = plainToolNames(server, tool, each);
    return plain.some(({ length }) => length > LIMITS.toolNameChars)
      ? [...plain, ...spellingsOf(server, tool, [each])]
      : plain;
  });
  let hashed: string[] | undefined;
  return {
    names: [...names, `${serverPrefix(server)}_${tool}`],
    // The hashes are made once for each tool, however many rules end like a hash.
    hashed: () => (hashed ??= [...prefixes].flatMap((each) => hashedNames(server, tool, each))),
  };
}

/** Whether a rule fits a tool by its own name or by another name that rules may use. */
const fitsTool = (pattern: string, tool: string, { names, hashed }: RuleNames): boolean =>
  matchesPattern(pattern, tool) ||
  names.some((name) => matchesPattern(pattern, name)) ||
  (HASHED.test(pattern) && hashed().includes(pattern));

/** The words of all names and patterns that fit the tool; undefined: none. */
export function keywordsFor(
  tool: string,
  keywords: Record<string, string[]> | undefined,
  inRules: RuleNames,
): string | undefined {
  if (keywords === undefined) return undefined;
  const found = Object.entries(keywords).flatMap(([pattern, words]) =>
    fitsTool(pattern, tool, inRules) ? words : [],
  );
  return found.join(" ").slice(0, LIMITS.searchKeywordsChars) || undefined;
}

/** The rule that decides about a tool. `pattern`: of a list or an object; absent for a plain value. */
export interface DecidingRule {
  key: "excludeTools" | "includeTools" | "toolExposure" | "directTools" | "exposure" | "settings.directTools";
  pattern?: string | undefined;
}

/** What becomes of a tool, and why. Without a rule ToolSearch finds the tool. */
export interface Decision {
  exposure: Exposure;
  by?: DecidingRule;
}

const decided = (exposure: Exposure, key: DecidingRule["key"], pattern?: string): Decision => ({
  exposure,
  by: pattern === undefined ? { key } : { key, pattern },
});

/**
 * The exposure of one tool. `tool`: its original name; `inRules`: the other names that rules may use. An exclusion
 * wins over everything; then these count in order: an exact name in `toolExposure`, the first pattern there that
 * fits, `directTools`, `exposure`, the settings' `directTools`.
 */
export function decideExposure(
  tool: string,
  rules: ExposureRules,
  defaultDirect?: boolean | string[],
  inRules: RuleNames = NO_NAMES,
): Decision {
  const users = rules.userRules && decideExposure(tool, rules.userRules, defaultDirect, inRules);
  if (users?.exposure === "hidden") return users;
  const { names: otherNames, hashed } = inRules;
  const names = [tool, ...otherNames];
  const fits = (pattern: string): boolean => fitsTool(pattern, tool, inRules);
  const excluded = rules.excludeTools.find(fits);
  if (excluded !== undefined) return decided("hidden", "excludeTools", excluded);
  if (rules.includeTools && !rules.includeTools.some(fits)) return decided("hidden", "includeTools");
  const { toolExposure, directTools, exposure } = rules;
  const rule =
    names.find((name) => Object.hasOwn(toolExposure, name)) ??
    Object.keys(toolExposure).find((name) => HASHED.test(name) && hashed().includes(name)) ??
    Object.keys(toolExposure).find(fits);
  if (rule !== undefined) return decided(toolExposure[rule] ?? "search", "toolExposure", rule);
  const direct = Array.isArray(directTools) ? directTools.find(fits) : undefined;
  if (direct !== undefined) return decided("direct", "directTools", direct);
  if (directTools === true && exposure !== "hidden") return decided("direct", "directTools");
  if (exposure) return decided(exposure, "exposure");
  if (directTools !== undefined) return decided("search", "directTools");
  if (defaultDirect === undefined) return { exposure: "search" };
  const preset = Array.isArray(defaultDirect) ? defaultDirect.find(fits) : undefined;
  if (preset !== undefined) return decided("direct", "settings.directTools", preset);
  return decided(defaultDirect === true ? "direct" : "search", "settings.directTools");
}

export const exposureOf = (...asked: Parameters<typeof decideExposure>): Exposure =>
  decideExposure(...asked).exposure;

/** Whether no rule says what becomes of the tool, of the user's own ones neither: then the server may have a wish. */
export const isUndecided = (
  ...[tool, rules, defaultDirect, inRules]: Parameters<typeof decideExposure>
): boolean =>
  [rules, rules.userRules].every(
    (each) => !each || decideExposure(tool, each, defaultDirect, inRules).by === undefined,
  );

/** Whether some tool of a server may be direct, judged by the rules alone, before the tools are known. */
export function mayBeDirect(rules: ExposureRules, defaultDirect?: boolean | string[]): boolean {
  const named = (value: boolean | string[] | undefined): boolean =>
    Array.isArray(value) ? value.length > 0 : value === true;
  if (Object.values(rules.toolExposure).includes("direct") || named(rules.directTools)) return true;
  if (rules.exposure) return rules.exposure === "direct";
  return rules.directTools === undefined && named(defaultDirect);
}

type ApproveRule = (typeof APPROVE_RULES)[number];

/** As written: a word, or rules by tool or pattern, and by an argument of its call. */
export type Approve = (typeof APPROVE_WORDS)[number] | Record<string, ApproveRule>;

/** What a call meets. `each`: it is asked about each time, by a rule about its argument. */
type Verdict = "allow" | "ask" | "each" | "deny";
/** What rules say, before the hints of the tool count. */
type Ruled = ApproveRule | "each";

/** Each word as the one rule that it stands for. */
const RULE_OF = {
  never: "allow",
  destructive: "destructive",
  always: "ask",
} as const satisfies Record<(typeof APPROVE_WORDS)[number], ApproveRule>;

const RULE_STRICTNESS: readonly Ruled[] = ["allow", "destructive", "ask", "each", "deny"];
const VERDICT_STRICTNESS: readonly Verdict[] = ["allow", "ask", "each", "deny"];

/** The server's part of what decides. */
export interface ServerApproval {
  /** Undefined: the settings decide. */
  approve: Approve | undefined;
  /** What files of a project add to it: the strictest verdict counts. */
  approveToo: readonly Approve[];
}

/** The user's value, or a list of it and of what files of a project add. */
export type SettingsApproval = Approve | readonly Approve[];

const isList = (settings: SettingsApproval): settings is readonly Approve[] => Array.isArray(settings);

/** The user's value first. */
export const approvals = (settings: SettingsApproval): readonly Approve[] =>
  isList(settings) ? settings : [settings];

export interface JudgedTool {
  server: string;
  /** The server's own name of the tool. */
  tool: string;
  prefix: ToolPrefix;
  annotations: Record<string, unknown> | undefined;
  /** Of the call; absent: there are none. */
  args?: Record<string, unknown>;
  inputSchema?: unknown;
  /** Names of the user's own servers; absent: the tool's server is one of them. */
  usersServers?: readonly string[];
}

/** The higher of two weights wins; an exact name is above every pattern. */
const weightOf = (pattern: string): number =>
  pattern.includes("*") ? pattern.replaceAll("*", "").length : LIMITS.toolRuleChars + 1;

const stricter = <T>(order: readonly T[], a: T, b: T): T => (order.indexOf(b) > order.indexOf(a) ? b : a);

type Fits = (pattern: string, rule: ApproveRule) => boolean;

/**
 * The most specific rule that fits; of two that are equally specific, the stricter one. A rule about an argument is more
 * specific than one for the same tools without; one that asks or denies counts in any case.
 */
function ruleFor(approve: Approve | undefined, fits: Fits, judged: JudgedTool): Ruled | undefined {
  if (typeof approve === "string") return RULE_OF[approve];
  const { args = {}, inputSchema } = judged;
  let found: Ruled | undefined;
  let least: Ruled | undefined;
  let weight = -1;
  for (const [key, rule] of Object.entries(approve ?? {})) {
    const about = readArgumentRule(key);
    const pattern = about?.tool ?? key;
    if (about && rule !== "allow") {
      if (!fits(pattern, rule) || !fitsWidely(about, args, inputSchema)) continue;
      least = stricter(RULE_STRICTNESS, least ?? "each", rule);
      continue;
    }
    const own = 2 * weightOf(pattern) + (about ? 1 : 0);
    if (own < weight || (about && !fitsNarrowly(about, args)) || !fits(pattern, rule)) continue;
    found = own === weight && found ? stricter(RULE_STRICTNESS, found, rule) : rule;
    weight = own;
  }
  return least ? stricter(RULE_STRICTNESS, found ?? least, least) : found;
}

/** A tool without hints may change and destroy things: so says MCP (2025-11-25, `ToolAnnotations`). */
const mayDestroy = (hints: JudgedTool["annotations"]): boolean =>
  hints?.readOnlyHint !== true || hints.destructiveHint === true;

function verdictOf(rule: Ruled, { annotations }: JudgedTool): Verdict {
  if (rule === "destructive") return mayDestroy(annotations) ? "ask" : "allow";
  return rule;
}

/** Whether a rule of the server's entry fits. */
const inEntry = ({ server, tool, prefix }: JudgedTool): Fits => {
  // A word needs no names, and to make them takes 2 µs.
  let names: RuleNames | undefined;
  return (pattern) => {
    names ??= namesInRules(server, tool, prefix);
    return fitsTool(pattern, tool, names);
  };
};

/** The names of a server before its tools' own names, without the separator. */
const serverParts = (server: string, modes: readonly ToolPrefix[]): string[] =>
  modes
    .flatMap((mode) => plainToolNames(server, "", mode))
    .map((name) => name.slice(0, -NAME_SEPARATOR.length));

/** Each way to read a pattern as that of a server and of its tool. */
function readings(pattern: string): [server: string, tool: string][] {
  const found: [string, string][] = [];
  for (let at = pattern.indexOf(NAME_SEPARATOR); at !== -1; at = pattern.indexOf(NAME_SEPARATOR, at + 1))
    found.push([pattern.slice(0, at), pattern.slice(at + NAME_SEPARATOR.length)]);
  return found;
}

const SERVER_MODES = ["server", "mcp", "short"] as const;

/**
 * Answers whether a pattern of the settings names the tool with its server: the part before the separator is the whole name of the
 * server, since `github__evil` and `mcp-github` are other servers than `github`. What names a server of the user's own is
 * about no server of a project or a package, whose names others choose.
 */
function namingServer({ server, tool, prefix, usersServers }: JudgedTool): (pattern: string) => boolean {
  const users = usersServers && new Set(usersServers.flatMap((name) => serverParts(name, SERVER_MODES)));
  const modes = SERVER_MODES.filter((mode) => mode !== "short" || !users || prefix === mode);
  const [servers, tools] = [serverParts(server, modes), [tool, ...plainToolNames(server, tool, "none")]];
  const { hashed } = namesInRules(server, tool, prefix);
  const fits = (part: string, names: string[]) => names.some((name) => matchesPattern(part, name));
  return (pattern) => {
    const read = readings(pattern);
    if (users && read.some(([named]) => users.has(named))) return false;
    // `mcp__*` names no server: all names may begin like that.
    const isWide = read.length === 1 && pattern.startsWith(`mcp${NAME_SEPARATOR}`);
    return (
      read.some(([ofServer, ofTool]) => fits(ofServer, servers) && fits(ofTool, tools)) ||
      (isWide && fits(pattern, plainToolNames(server, tool, "mcp"))) ||
      (HASHED.test(pattern) && hashed().includes(pattern))
    );
  };
}

/**
 * Whether a rule of the settings fits. Servers name themselves and their tools, so the tool `github__x` of any server, and
 * any tool of a server `github__x`, could pass for one of the server github: by such a name alone no tool is allowed.
 */
function inSettings(judged: JudgedTool): Fits {
  const { server, tool } = judged;
  const fits = inEntry(judged);
  const names = () => SERVER_MODES.flatMap((each) => plainToolNames(server, tool, each));
  // Made with the first such rule: a word needs no names.
  let namesServer: ReturnType<typeof namingServer> | undefined;
  return (pattern, rule) => {
    if (rule === "deny" || rule === "ask") return fits(pattern, rule);
    if (pattern.includes(NAME_SEPARATOR)) {
      namesServer ??= namingServer(judged);
      return namesServer(pattern);
    }
    return plainToolName(server, tool, "none").includes(NAME_SEPARATOR)
      ? names().some((name) => matchesPattern(pattern, name))
      : fits(pattern, rule);
  };
}

/** Whether nothing is ever asked or denied: then nobody need look at the tool. */
export const asksNothing = ({ approve, approveToo }: ServerApproval, settings: SettingsApproval): boolean =>
  approveToo.length === 0 && (approve === "never" || approve === undefined) && settings === "never";

/** What decides about a tool: the server's rule, else the settings' rule, else nothing; files of a project may add. */
export function verdictOn(
  judged: JudgedTool,
  { approve, approveToo }: ServerApproval,
  settings: SettingsApproval,
): Verdict {
  const [entry, general] = [inEntry(judged), inSettings(judged)];
  const [own = "never", ...projectSettings] = approvals(settings);
  return [
    ruleFor(approve, entry, judged) ?? ruleFor(own, general, judged),
    ...approveToo.map((added) => ruleFor(added, entry, judged)),
    ...projectSettings.map((added) => ruleFor(added, general, judged)),
  ]
    .map((rule) => verdictOf(rule ?? "allow", judged))
    .reduce((a, b) => stricter(VERDICT_STRICTNESS, a, b), "allow");
}

/**
 * Whether a rule for this one tool in the user's file lets its calls run: no file of a project asks or denies as well, and
 * the name can be a rule, which fits no other tool. `tools`: names of all tools of the server.
 */
export function canBeAllowed(
  judged: JudgedTool,
  server: ServerApproval,
  settings: SettingsApproval,
  tools: readonly string[] = [],
): boolean {
  const { tool, prefix } = judged;
  const isNoRule = tool.includes("*") || tool === UNSAFE_KEY || isLikeRule(tool);
  if (isNoRule || tool.length > LIMITS.toolRuleChars) return false;
  if (tools.some((one) => one !== tool && fitsTool(tool, one, namesInRules(judged.server, one, prefix))))
    return false;
  const approve = { ...asRules(server.approve), [tool]: "allow" } satisfies Approve;
  return verdictOn(judged, { ...server, approve }, settings) === "allow";
}

/** `approveTools` of pi-mcp-adapter in our words, which have no sign for a single character. */
export const approveOf = (tools: boolean | readonly string[]): Approve =>
  typeof tools === "boolean"
    ? tools
      ? "always"
      : "never"
    : Object.fromEntries(tools.map((tool) => [tool.replaceAll("?", "*"), "ask"]));

/** The rules that mean the same as the value, as an object to which a rule can be added. */
export const asRules = (approve: Approve | undefined): Record<string, ApproveRule> =>
  typeof approve === "string" ? { "*": RULE_OF[approve] } : { ...approve };
