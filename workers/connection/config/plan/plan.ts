/**
 * Owns: what follows from two configurations: which servers start, stop or change, and the same in words:
 * `mcp.json: + docs (12 tools), ~ github (args), - old`. The session carries it out. Pure.
 */

import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { HELD, type HeldValues, inOrder } from "../entry/server-keys.ts";
import { SETTING_KEYS, type SettingKey, type Settings } from "../entry/settings.ts";

export interface Configuration {
  servers: readonly ServerDefinition[];
  settings: Settings;
}

type ServerChange =
  | { action: "start"; name: string; after: ServerDefinition }
  | { action: "stop"; name: string; before: ServerDefinition }
  /** The server gets another connection; the old one finishes its calls. `keys`: the keys that changed. */
  | { action: "restart"; name: string; keys: string[]; before: ServerDefinition; after: ServerDefinition }
  /** The connection stays; the rules are other ones. */
  | { action: "update"; name: string; keys: string[]; before: ServerDefinition; after: ServerDefinition }
  /** Nothing changes that anybody sees. `after` may be written differently. */
  | { action: "keep"; name: string; before: ServerDefinition; after: ServerDefinition };

export interface Plan {
  /** The servers in the order of the new configuration, then those that stop. */
  servers: ServerChange[];
  settings: { keys: SettingKey[]; after: Settings };
  /** The person has switched a server for this session: no file has changed. */
  inSession?: boolean;
}

type WithoutBefore<Change> = Change extends unknown ? Omit<Change, "before"> : never;

/** As much of a plan as its words need. */
export interface Effect {
  servers: readonly WithoutBefore<ServerChange>[];
  settings: { keys: readonly SettingKey[] };
  inSession?: boolean;
}

type Part = [key: string, value: unknown];

/** The values of the keys of one part. A rule of the user counts as well where a project's file changed it. */
function heldParts(definition: ServerDefinition, wanted: "connection" | "rules"): Part[] {
  const held: Partial<HeldValues> = inOrder(definition);
  const users: Partial<HeldValues> | undefined =
    wanted === "rules" && definition.userRules ? inOrder(definition.userRules) : undefined;
  return HELD.filter(({ part }) => part === wanted).map(({ key, name }) => {
    const own = held[name];
    const user = users?.[name];
    return [key, user === undefined || canonical(own) === canonical(user) ? [own] : [own, user]];
  });
}

/** The parts of a definition that make the connection. */
function connectionParts(definition: ServerDefinition): Part[] {
  const { target, auth, oauth, agreedEnvFile, agreedScripts } = definition;
  return [
    ...Object.entries(target),
    ["auth", auth],
    ["oauth", oauth],
    ...heldParts(definition, "connection"),
    ["policy", definition.policy],
    ["content of envFile", agreedEnvFile],
    ["content of its files", agreedScripts],
  ];
}

/** The parts of a definition that apply to the tools and calls of any connection. */
const ruleParts = (definition: ServerDefinition): Part[] => [
  ...heldParts(definition, "rules"),
  ["approve", definition.approveToo],
  ["file", [definition.file, definition.origin, ...definition.overrides]],
];

/** The keys whose values differ, in the order given. */
function differing(before: readonly Part[], after: readonly Part[]): string[] {
  const values = (parts: readonly Part[]) => Map.groupBy(parts, ([key]) => key);
  const [old, now] = [values(before), values(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter(
    (key) => canonical(old.get(key)) !== canonical(now.get(key)),
  );
}

/** Another kind of target has other keys; the kind alone says enough. */
const named = (keys: string[], { target }: ServerDefinition): string[] =>
  keys.includes("kind") ? [{ http: "url", stdio: "command", socket: "socket" }[target.kind]] : keys;

function changeOf(before: ServerDefinition | undefined, after: ServerDefinition): ServerChange {
  const { name } = after;
  if (!before) return { action: "start", name, after };
  const connection = differing(connectionParts(before), connectionParts(after));
  const rules = differing(ruleParts(before), ruleParts(after));
  const both = { name, before, after };
  const keys = named(connection, after);
  if (keys.length > 0) return { action: "restart", keys: [...keys, ...rules], ...both };
  return rules.length > 0 ? { action: "update", keys: rules, ...both } : { action: "keep", ...both };
}

const byName = (servers: readonly ServerDefinition[]): Map<string, ServerDefinition> =>
  new Map(servers.map((server) => [server.name, server]));

export function plan(before: Configuration, after: Configuration): Plan {
  const old = byName(before.servers);
  const current = byName(after.servers);
  const stops = [...old.values()]
    .filter(({ name }) => !current.has(name))
    .map((server): ServerChange => ({ action: "stop", name: server.name, before: server }));
  const keys = SETTING_KEYS.filter(
    (key) => canonical(before.settings[key]) !== canonical(after.settings[key]),
  );
  return {
    servers: [...[...current.values()].map((server) => changeOf(old.get(server.name), server)), ...stops],
    settings: { keys, after: after.settings },
  };
}

/** A configuration without its values: the digest of each part that has one. */
export interface Traces {
  servers: [name: string, parts: [key: string, digest: string][]][];
  settings: [key: string, digest: string][];
}

const NOTHING = canonical([undefined]);

/** `digest`: a short hash. */
export function tracesOf({ servers, settings }: Configuration, digest: (text: string) => string): Traces {
  const traced = (parts: readonly Part[]): [string, string][] =>
    parts.flatMap(([key, value]) => {
      const text = canonical(value);
      return value === undefined || text === NOTHING ? [] : [[key, digest(text)]];
    });
  return {
    servers: servers.map((server) => [
      server.name,
      traced([...connectionParts(server), ...ruleParts(server)]),
    ]),
    settings: traced(SETTING_KEYS.map((key) => [key, settings[key]])),
  };
}

/** What has changed from one configuration to another. The servers of `now` are those of `after`, in the same order. */
export function effectSince(before: Traces, now: Traces, after: Configuration): Effect {
  const old = new Map(before.servers);
  const names = new Set(now.servers.map(([name]) => name));
  const changes = after.servers.map((server, i): Effect["servers"][number] => {
    const { name } = server;
    const parts = old.get(name);
    if (!parts) return { action: "start", name, after: server };
    const keys = named(differing(parts, now.servers[i]?.[1] ?? []), server);
    return keys.length > 0
      ? { action: "update", name, keys, after: server }
      : { action: "keep", name, after: server };
  });
  const stops = before.servers.flatMap(([name]) =>
    names.has(name) ? [] : [{ action: "stop" as const, name }],
  );
  const changed = new Set(differing(before.settings, now.settings));
  return {
    servers: [...changes, ...stops],
    settings: { keys: SETTING_KEYS.filter((key) => changed.has(key)) },
  };
}

/** Whether there is nothing to do and nothing to report. */
export const isIdle = ({ servers, settings }: Effect): boolean =>
  settings.keys.length === 0 && servers.every(({ action }) => action === "keep");

const SHOWN_SERVERS = 8;
const SHOWN_KEYS = 3;

const list = (keys: readonly string[]): string =>
  keys.length <= SHOWN_KEYS
    ? keys.join(", ")
    : `${keys.slice(0, SHOWN_KEYS).join(", ")} and ${keys.length - SHOWN_KEYS} more`;

const count = (tools: number | undefined): string =>
  tools === undefined ? "" : ` (${tools} ${tools === 1 ? "tool" : "tools"})`;

function describeChange(
  change: Effect["servers"][number],
  toolCounts: ReadonlyMap<string, number>,
): string | undefined {
  const { name } = change;
  if (change.action === "keep") return undefined;
  if (change.action === "stop") return `- ${name}`;
  const tools = count(toolCounts.get(name));
  if (change.action === "start") return `+ ${name}${change.after.enabled ? tools : " (disabled)"}`;
  if (change.keys.includes("enabled")) {
    const how = change.after.isOff ? "off" : "disabled";
    return change.after.enabled ? `+ ${name}${tools || " (enabled)"}` : `- ${name} (${how})`;
  }
  return `~ ${name} (${list(change.keys)})`;
}

/** Undefined if nothing changes. `toolCounts`: server -> number of tools, for servers whose tools are known. */
export function describeEffect(plan: Effect, toolCounts: ReadonlyMap<string, number>): string | undefined {
  const lines = plan.servers
    .map((change) => describeChange(change, toolCounts))
    .filter((line) => line !== undefined);
  const shown = lines.slice(0, SHOWN_SERVERS);
  if (lines.length > shown.length) shown.push(`${lines.length - shown.length} more`);
  if (plan.settings.keys.length > 0) shown.push(`settings (${list(plan.settings.keys)})`);
  return shown.length === 0
    ? undefined
    : `${plan.inSession ? "this session" : "mcp.json"}: ${shown.join(", ")}`;
}
