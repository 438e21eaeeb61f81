/**
 * What becomes of one tool of a server: declared to the model, found by ToolSearch, or withheld. Pure.
 * Pi's own words are understood: `deferred` and `codemode` are both found by ToolSearch here, since a
 * registered tool is reachable from codemode anyway.
 */

import {
  fittedName,
  hashedName,
  plainToolName,
  serverPrefix,
  type ToolPrefix,
} from "../../../../src/shared/naming/names.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { Entry, Exposure } from "./schema.ts";

type Written = NonNullable<Entry["exposure"]>;

export const toExposure = (written: Written): Exposure =>
  written === "direct" || written === "hidden" ? written : "search";

/** Whether a tool's name fits a pattern, in which `*` stands for any characters. */
export function matchesPattern(pattern: string, tool: string): boolean {
  const first = pattern.indexOf("*");
  if (first === -1) return pattern === tool;
  const last = pattern.lastIndexOf("*");
  const end = tool.length - (pattern.length - last - 1);
  if (end < first || !tool.startsWith(pattern.slice(0, first)) || !tool.endsWith(pattern.slice(last + 1)))
    return false;
  // Each middle part at its first place after the one before: linear, whatever the pattern.
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
  /** Rules of somebody who has the last word: what they hide stays hidden. */
  userRules?: ExposureRules | undefined;
}

/** What rules may call a tool beside its own name. */
export interface RuleNames {
  /** Fit exact names and patterns. */
  names: readonly string[];
  /** End in a hash, so they fit exact names only: a pattern would meet the hash by chance. */
  hashed: () => readonly string[];
}

const NO_NAMES: RuleNames = { names: [], hashed: () => [] };

/** What may be a hashed name at all. Hashes are made only for rules that may mean one: this runs for every tool. */
const HASHED = /_[0-9a-z]{6}$/;

/**
 * By the name it has in Pi, cut and hashed where it is too long; by the one it would have without
 * `toolPrefix`; and as pi-mcp-adapter and Pi's built-in MCP call it. Rules are applied before names are given,
 * so the name it would have if another tool wanted the same counts too, whether or not one does.
 */
export function namesInRules(server: string, tool: string, prefix: ToolPrefix): RuleNames {
  // All of them, or a changed prefix would lift what an excluded name keeps away.
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
    // Once a tool, however many rules end like a hash.
    hashed: () => (hashed ??= [...prefixes].map((each) => hashedName({ server, tool, prefix: each }))),
  };
}

/**
 * The verdict for one tool, by its original name or another that rules may use. Exclusion wins over
 * everything; then an exact name of `toolExposure`, its first fitting pattern, `directTools`, `exposure`, the
 * settings' `directTools`.
 */
export function exposureOf(
  tool: string,
  rules: ExposureRules,
  defaultDirect: boolean | string[] = false,
  inRules: RuleNames = NO_NAMES,
): Exposure {
  if (rules.userRules && exposureOf(tool, rules.userRules, defaultDirect, inRules) === "hidden")
    return "hidden";
  const { names: otherNames, hashed } = inRules;
  const names = [tool, ...otherNames];
  const fits = (pattern: string): boolean =>
    names.some((name) => matchesPattern(pattern, name)) ||
    (HASHED.test(pattern) && hashed().includes(pattern));
  if (rules.excludeTools.some(fits)) return "hidden";
  if (rules.includeTools && !rules.includeTools.some(fits)) return "hidden";
  const exact =
    names.find((name) => Object.hasOwn(rules.toolExposure, name)) ??
    Object.keys(rules.toolExposure).find((name) => HASHED.test(name) && hashed().includes(name));
  if (exact !== undefined) return rules.toolExposure[exact] ?? "search";
  const pattern = Object.keys(rules.toolExposure).find(fits);
  if (pattern !== undefined) return rules.toolExposure[pattern] ?? "search";
  if (Array.isArray(rules.directTools) && rules.directTools.some(fits)) return "direct";
  if (rules.directTools === true && rules.exposure !== "hidden") return "direct";
  if (rules.exposure) return rules.exposure;
  if (rules.directTools !== undefined) return "search";
  return defaultDirect === true || (Array.isArray(defaultDirect) && defaultDirect.some(fits))
    ? "direct"
    : "search";
}

/** Whether some tool of a server may be direct, as far as its rules tell before its tools are known. */
export function mayBeDirect(rules: ExposureRules, defaultDirect: boolean | string[] = false): boolean {
  const named = (value: boolean | string[] | undefined): boolean =>
    Array.isArray(value) ? value.length > 0 : value === true;
  if (Object.values(rules.toolExposure).includes("direct") || named(rules.directTools)) return true;
  if (rules.exposure) return rules.exposure === "direct";
  return rules.directTools === undefined && named(defaultDirect);
}
