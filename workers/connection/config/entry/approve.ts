/**
 * Decides whether a call of a tool goes on, asks the user, or is refused. The hints of a tool come from its server, which
 * nobody trusts: they decide only where the user's own words leave it to them. The most specific rule counts, so that the
 * order of rules means nothing. Pure.
 */
import { plainToolName, type ToolPrefix } from "../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { APPROVE_RULES, APPROVE_WORDS } from "./choices.ts";
import { fitsTool, matchesPattern, namesInRules, type RuleNames } from "./exposure.ts";
import { UNSAFE_KEY } from "./unsafe-key.ts";

export type ApproveRule = (typeof APPROVE_RULES)[number];

/** As written: a word, or rules by tool or pattern. */
export type Approve = (typeof APPROVE_WORDS)[number] | Record<string, ApproveRule>;

/** What a call meets, the stricter the later. */
export type Verdict = "allow" | "ask" | "deny";

/** Each word as the one rule that it stands for. */
export const RULE_OF = {
  never: "allow",
  destructive: "destructive",
  always: "ask",
} as const satisfies Record<(typeof APPROVE_WORDS)[number], ApproveRule>;

const RULE_STRICTNESS: readonly ApproveRule[] = ["allow", "destructive", "ask", "deny"];
const VERDICT_STRICTNESS: readonly Verdict[] = ["allow", "ask", "deny"];

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
}

/** The higher of two weights wins; an exact name is above every pattern. */
const weightOf = (pattern: string): number =>
  pattern.includes("*") ? pattern.replaceAll("*", "").length : Number.POSITIVE_INFINITY;

const stricter = <T>(order: readonly T[], a: T, b: T): T => (order.indexOf(b) > order.indexOf(a) ? b : a);

type Fits = (pattern: string, rule: ApproveRule) => boolean;

/** The most specific rule that fits; of two that are equally specific, the stricter one. */
function ruleFor(approve: Approve | undefined, fits: Fits): ApproveRule | undefined {
  if (typeof approve === "string") return RULE_OF[approve];
  let found: ApproveRule | undefined;
  let weight = -1;
  for (const [pattern, rule] of Object.entries(approve ?? {})) {
    const own = weightOf(pattern);
    if (own < weight || !fits(pattern, rule)) continue;
    found = own === weight && found ? stricter(RULE_STRICTNESS, found, rule) : rule;
    weight = own;
  }
  return found;
}

/** A tool without hints may change and destroy things: so says MCP (2025-11-25, `ToolAnnotations`). */
const mayDestroy = (hints: JudgedTool["annotations"]): boolean =>
  hints?.readOnlyHint !== true || hints.destructiveHint === true;

function verdictOf(rule: ApproveRule, { annotations }: JudgedTool): Verdict {
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

/**
 * Whether a rule of the settings fits. A server names its tools, so the tool `github__x` of any server could pass for one
 * of the server github: by such a name alone no tool is allowed.
 */
function inSettings(judged: JudgedTool): Fits {
  const { server, tool } = judged;
  const fits = inEntry(judged);
  const names = () => (["server", "mcp", "short"] as const).map((each) => plainToolName(server, tool, each));
  return (pattern, rule) =>
    rule === "deny" || rule === "ask" || !plainToolName(server, tool, "none").includes("__")
      ? fits(pattern, rule)
      : names().some((name) => matchesPattern(pattern, name));
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
    ruleFor(approve, entry) ?? ruleFor(own, general),
    ...approveToo.map((added) => ruleFor(added, entry)),
    ...projectSettings.map((added) => ruleFor(added, general)),
  ]
    .map((rule) => verdictOf(rule ?? "allow", judged))
    .reduce((a, b) => stricter(VERDICT_STRICTNESS, a, b), "allow");
}

/**
 * Whether a rule for this one tool in the user's file lets its calls run: no file of a project asks or denies as well, and
 * the name can be a rule, which fits no other name.
 */
export function canBeAllowed(
  judged: JudgedTool,
  server: ServerApproval,
  settings: SettingsApproval,
): boolean {
  const { tool } = judged;
  if (tool.includes("*") || tool === UNSAFE_KEY || tool.length > LIMITS.toolRuleChars) return false;
  const approve = { ...asRules(server.approve), [tool]: "allow" } satisfies Approve;
  return verdictOn(judged, { ...server, approve }, settings) === "allow";
}

/** The rules that mean the same as the value, as an object to which a rule can be added. */
export const asRules = (approve: Approve | undefined): Record<string, ApproveRule> =>
  typeof approve === "string" ? { "*": RULE_OF[approve] } : { ...approve };
