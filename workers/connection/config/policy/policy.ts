/**
 * Owns: the policy of this machine, which only its administrator can write: from its file to checked rules, and what they let
 * run. It fails closed: a policy that cannot be used, or that others could have written, lets no server run. Loaded only where
 * the file exists. Must not: know where the file is, or what other files say.
 */
import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { type PolicyRule, type PolicyRules, parseEntry, type ServerDefinition } from "../entry/definition.ts";
import { parseJsonc } from "../files/document.ts";
import { readText } from "../files/sources.ts";
import { isKnownLate, patternProblem, reasonOf } from "./rules.ts";

export const FILE_BYTES = 1024 * 1024;
export const MOST_RULES = 1_000;
export const PATTERN_CHARS = 1_000;
export const MOST_REQUIRED = 100;

export interface Policy extends PolicyRules {
  /** Servers that every session has, as the administrator defines them. */
  required: readonly ServerDefinition[];
  /** Why the policy cannot be used. Then no server runs. */
  problem?: ConfigProblem;
}

type Look = (path: string) => Promise<{ uid: number; mode: number; isSymbolicLink(): boolean }>;

const WRITABLE_BY_OTHERS = 0o022;
const ROOT = 0;

/** Why others than the administrator could have written what is at the path; undefined: nobody else could. */
export async function whyNotAdministrators(
  file: string,
  platform: NodeJS.Platform = process.platform,
  look: Look = lstat,
): Promise<string | undefined> {
  for (let path = file; ; path = dirname(path)) {
    const what = path === file ? "it" : `the folder ${path}`;
    const found = await look(path);
    if (found.isSymbolicLink()) return `${what} is a link, which could lead elsewhere`;
    // Windows has no owner and no mode here: only administrators can write below Program Files.
    if (platform !== "win32") {
      if (found.uid !== ROOT) return `${what} does not belong to root`;
      if (found.mode & WRITABLE_BY_OTHERS)
        return `others than root can write ${what === "it" ? "to it" : what}`;
    }
    if (dirname(path) === path) return undefined;
  }
}

const broken = (file: string, problem: Pick<ConfigProblem, "message"> & Partial<ConfigProblem>): Policy => ({
  file,
  allow: [],
  deny: [],
  required: [],
  problem: {
    severity: "error",
    line: 1,
    column: 1,
    remedy: "No server runs until your administrator has corrected it.",
    ...problem,
    file,
  },
});

interface Found {
  path: string[];
  message: string;
}

const RULE_KEYS = ["name", "command", "url"];
const KEYS = ["allow", "deny", "required"];
/** Where an editor finds what a policy may hold. */
const FOR_EDITORS = "$schema";

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.trim() !== "" && value.length <= PATTERN_CHARS;

/** What is wrong with one rule. */
function ruleProblem(rule: unknown): string | undefined {
  if (!isObject(rule)) return 'is no object: write for example {"url": "https://mcp.example.com/*"}';
  const unknown = Object.keys(rule).find((key) => !RULE_KEYS.includes(key));
  if (unknown !== undefined)
    return `has the key ${JSON.stringify(unknown.slice(0, 50))}: it takes name, command and url`;
  const { name, command, url } = rule;
  if (name === undefined && command === undefined && url === undefined)
    return "names nothing: write name, command or url";
  if (command !== undefined && url !== undefined) return "has command and url: a server has one of them";
  if (name !== undefined && !isText(name)) return "has a name that is no text";
  const words = Array.isArray(command) ? command : command === undefined ? [] : [command];
  if (command !== undefined && (words.length === 0 || !words.every(isText)))
    return "has a command that is neither a text nor a list of texts";
  if (url === undefined) return undefined;
  return isText(url) ? patternProblem(url) : "has a url that is no text";
}

/** Checks the text of a policy. A single mistake makes all of it unusable: a rule that is left out could be the one that denies. */
export function parsePolicy(text: string, file: string): Policy {
  const parsed = parseJsonc(withoutBom(text), LIMITS.configFileValues);
  if ("problem" in parsed) return broken(file, parsed.problem);
  const { document } = parsed;
  const { value: root } = document;
  const wrong = ({ path, message }: Found): Policy =>
    broken(file, { ...document.at(path), ...(path.length > 0 && { key: path.join(".") }), message });
  if (!isObject(root)) return wrong({ path: [], message: "expected an object" });
  const [twice] = document.repeated;
  if (twice) return wrong({ path: twice, message: "is given twice" });
  const unknown = Object.keys(root).find((key) => !KEYS.includes(key) && key !== FOR_EDITORS);
  if (unknown !== undefined)
    return wrong({ path: [unknown], message: `is not known: a policy has ${KEYS.join(", ")}` });
  const rules: { allow?: PolicyRule[]; deny?: PolicyRule[] } = {};
  for (const key of ["allow", "deny"] as const) {
    const list = root[key];
    if (list === undefined) continue;
    if (!Array.isArray(list)) return wrong({ path: [key], message: "expected a list of rules" });
    if (list.length > MOST_RULES)
      return wrong({
        path: [key],
        message: `has more than ${MOST_RULES.toLocaleString("en")} rules`,
      });
    for (const [i, rule] of list.entries()) {
      const message = ruleProblem(rule);
      if (message) return wrong({ path: [key, String(i)], message });
    }
    rules[key] = list.map((rule: PolicyRule, i) => ({ ...rule, line: document.at([key, String(i)]).line }));
  }
  const required: ServerDefinition[] = [];
  if (root.required !== undefined && !isObject(root.required))
    return wrong({ path: ["required"], message: "expected an object of servers, as mcpServers has them" });
  for (const [name, raw] of Object.entries(root.required ?? {})) {
    const { definition, mistakes } = parseEntry(name, raw, { file, origin: "user" });
    const [mistake] = mistakes.filter(({ severity }) => severity === "error" || !definition);
    if (!definition || mistake)
      return wrong({
        path: ["required", name, ...(mistake?.path ?? [])],
        message: mistake?.message ?? "cannot be used",
      });
    if (required.length === MOST_REQUIRED)
      return wrong({ path: ["required"], message: `has more than ${MOST_REQUIRED} servers` });
    required.push({ ...definition, enabled: true, isRequired: true });
  }
  return { file, ...(rules.allow && { allow: rules.allow }), deny: rules.deny ?? [], required };
}

/** Undefined: this machine has no policy. Never throws. */
export async function readPolicy(file: string): Promise<Policy | undefined> {
  const read = await readText(file, FILE_BYTES);
  if (read.kind === "missing") {
    // A link to nothing is there, and its target may appear.
    const isThere = await lstat(file).catch(() => undefined);
    return isThere ? broken(file, { message: "it is a link that leads nowhere" }) : undefined;
  }
  try {
    const why = await whyNotAdministrators(file);
    if (why !== undefined) return broken(file, { message: why });
  } catch (error) {
    return broken(file, {
      message: `nobody can tell who may write it (${(error as NodeJS.ErrnoException).code})`,
    });
  }
  return read.kind === "text"
    ? parsePolicy(read.text, file)
    : broken(file, { message: `it cannot be read: ${read.reason}` });
}

export interface Denied {
  name: string;
  reason: string;
}

/** What the policy lets run, and what it does not. In the place of a denied server the one that it replaced counts. */
export function underPolicy(
  policy: Policy,
  servers: readonly ServerDefinition[],
): { servers: ServerDefinition[]; denied: Denied[] } {
  const denied: Denied[] = [];
  const allowed = (server: ServerDefinition | undefined): ServerDefinition | undefined => {
    if (!server) return undefined;
    const replaced = allowed(server.replaced);
    const { reason, server: kept } = judge(policy, { ...server, replaced });
    if (reason === undefined) return kept;
    denied.push({ name: server.name, reason });
    return replaced;
  };
  const names = new Set(policy.required.map(({ name }) => name));
  const kept = servers.filter(({ name }) => !names.has(name)).flatMap((server) => allowed(server) ?? []);
  return { servers: [...policy.required, ...kept], denied };
}

/**
 * `reason`: why it may not run, worded to follow a colon; absent: it may, as far as its values are known now. If they are not, the
 * server carries the rules, by which its connection is judged.
 */
export function judge(
  policy: Policy,
  server: ServerDefinition,
): { server: ServerDefinition; reason?: string } {
  if (policy.problem) {
    const { line, column, message } = policy.problem;
    return {
      server,
      reason: `the policy of this machine cannot be used (${policy.file}:${line}:${column}: ${message})`,
    };
  }
  const { name, target } = server;
  const reason = reasonOf(policy, { name, target, isResolved: false });
  if (reason !== undefined) return { server, reason };
  const { file, allow, deny } = policy;
  return {
    server: isKnownLate(target) ? { ...server, policy: { file, deny, ...(allow && { allow }) } } : server,
  };
}
