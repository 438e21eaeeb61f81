/**
 * Decides what becomes of one tool of a server: declared to the model, found by ToolSearch, or withheld. Pi's own
 * words are understood: `deferred` and `codemode` both mean "found by ToolSearch", because codemode reaches every
 * registered tool. Pure.
 */
import {
  fittedName,
  hashedName,
  plainToolName,
  serverPrefix,
  type ToolPrefix,
} from "../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { Exposure } from "./choices.ts";
import type { Entry } from "./server-shape.ts";

type Written = NonNullable<Entry["exposure"]>;

export const toExposure = (written: Written): Exposure =>
  written === "direct" || written === "hidden" ? written : "search";

/** Whether a tool's name fits a pattern. `*` stands for any characters. */
export function matchesPattern(pattern: string, tool: string): boolean {
  const first = pattern.indexOf("*");
  if (first === -1) return pattern === tool;
  const last = pattern.lastIndexOf("*");
  const end = tool.length - (pattern.length - last - 1);
  if (end < first || !tool.startsWith(pattern.slice(0, first)) || !tool.endsWith(pattern.slice(last + 1)))
    return false;
  // Each middle part is taken where it first follows the part before: linear, whatever the pattern.
  let at = first;
  for (let from = first + 1; from <= last; ) {
    const star = pattern.indexOf("*", from);
    const part = pattern.slice(from, star);
    const found = tool.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
    from = star + 1;
  }
  return true;
}

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
export interface RuleNames {
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
  const prefixes = new Set<ToolPrefix>([prefix, "server", "mcp", "short"]);
  const names = [...prefixes].flatMap((each) => {
    const plain = plainToolName(server, tool, each);
    return plain.length > LIMITS.toolNameChars
      ? [plain, fittedName({ server, tool, prefix: each })]
      : [plain];
  });
  let hashed: string[] | undefined;
  return {
    names: [...names, `${serverPrefix(server)}_${tool}`],
    // The hashes are made once for each tool, however many rules end like a hash.
    hashed: () => (hashed ??= [...prefixes].map((each) => hashedName({ server, tool, prefix: each }))),
  };
}

/** Whether a rule fits a tool by its own name or by another name that rules may use. */
export const fitsTool = (pattern: string, tool: string, { names, hashed }: RuleNames): boolean =>
  matchesPattern(pattern, tool) ||
  names.some((name) => matchesPattern(pattern, name)) ||
  (HASHED.test(pattern) && hashed().includes(pattern));

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
  defaultDirect: boolean | string[] = false,
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
  const preset = Array.isArray(defaultDirect) ? defaultDirect.find(fits) : undefined;
  if (preset !== undefined) return decided("direct", "settings.directTools", preset);
  return defaultDirect === true ? decided("direct", "settings.directTools") : { exposure: "search" };
}

export const exposureOf = (...asked: Parameters<typeof decideExposure>): Exposure =>
  decideExposure(...asked).exposure;

/** Whether some tool of a server may be direct, judged by the rules alone, before the tools are known. */
export function mayBeDirect(rules: ExposureRules, defaultDirect: boolean | string[] = false): boolean {
  const named = (value: boolean | string[] | undefined): boolean =>
    Array.isArray(value) ? value.length > 0 : value === true;
  if (Object.values(rules.toolExposure).includes("direct") || named(rules.directTools)) return true;
  if (rules.exposure) return rules.exposure === "direct";
  return rules.directTools === undefined && named(defaultDirect);
}
