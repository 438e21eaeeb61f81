/**
 * An override: an entry without `command`, `url`, `socket` and `type`. It changes a few keys of a server that a file of lower
 * precedence defines, but never where the server runs or what is sent to it. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { isProject, type Origin, type OwnRules, parseEntry, type ServerDefinition } from "./definition.ts";
import { check, type Mistake, mistake, untilMended, warning } from "./mistakes.ts";
import {
  type Entry,
  entryShape,
  inOneSpelling,
  isToolList,
  LIFECYCLES,
  OVERRIDE_KEYS,
  PROTECTING_KEYS,
} from "./server-keys.ts";
import { DEFAULT_SETTINGS, idleMinutes } from "./settings.ts";

const DEFINING_KEYS = ["command", "url", "socket", "type"] as const;

/** `includeTools`: of a file of another program, which may narrow a server of an earlier one to fewer tools. */
export type Override = Partial<Pick<Entry, (typeof OVERRIDE_KEYS)[number] | "includeTools">>;

const isOverrideKey = (key: string): boolean => (OVERRIDE_KEYS as readonly string[]).includes(key);

/** Whether an entry says where the server runs; otherwise it can only change the server of another file. */
export const definesServer = (raw: Record<string, unknown>): boolean =>
  DEFINING_KEYS.some((key) => Object.hasOwn(raw, key));

/** Whether an entry is an override. An empty object is not: it is a mistake, which `parseEntry` explains. */
export const isOverride = (raw: unknown): raw is Record<string, unknown> =>
  isObject(raw) && Object.keys(raw).some(isOverrideKey) && !definesServer(raw);

/**
 * What counts of a user's entry that has an error: what the user wants of the server is not known before the mistake is
 * mended, so the server stays off, whoever defines it.
 */
export const offUntilMended = (
  mistakes: readonly Mistake[],
): { override: Override; mistakes: Mistake[] } => ({
  override: { enabled: false },
  mistakes: untilMended(mistakes, "Until then the server is off."),
});

/** Whether a key that has no effect lists the only tools to be used. `tools` can hold anything: other programs write it, too. */
const listsTools = (key: string, value: unknown): boolean =>
  key === "includeTools" || (key === "tools" && isToolList(value) && !value.includes("*"));

/** A key that has no effect in an override. A user who lists the only tools to be used wants no others. */
const ineffective = (key: string, value: unknown, isUsers: boolean): Mistake =>
  isUsers && listsTools(key, value)
    ? mistake(
        [key],
        "has no effect in an entry without command, url or socket",
        "Write excludeTools, or repeat command, url or socket to replace the whole server.",
      )
    : warning(
        [key],
        "has no effect in an entry without command, url or socket",
        "Repeat command, url or socket to replace the whole server.",
      );

/** Checks an override. Without a result there is at least one error. */
export function parseOverride(
  raw: Record<string, unknown>,
  isUsers = false,
): { override: Override | undefined; mistakes: Mistake[] } {
  const { data, mistakes } = check(entryShape, raw, isUsers ? PROTECTING_KEYS : []);
  const idle = Object.keys(raw).filter((key) => Object.hasOwn(entryShape, key) && !isOverrideKey(key));
  const all = [...mistakes, ...idle.map((key) => ineffective(key, raw[key], isUsers))];
  if (isUsers && all.some(({ severity }) => severity === "error")) return offUntilMended(all);
  if (!data) return { override: undefined, mistakes: all };
  const kept = Object.entries(inOneSpelling(data)).filter(([key]) => isOverrideKey(key));
  return { override: Object.fromEntries(kept), mistakes: all };
}

const rulesIn = (server: ServerDefinition): OwnRules => {
  const { enabled, directTools, exposure, toolExposure, includeTools, excludeTools, skills } = server;
  return { enabled, directTools, exposure, toolExposure, includeTools, excludeTools, skills };
};

/**
 * The rules of the user's own files for a server; undefined for a server that a project itself defines and of which they
 * say nothing. What they say of any other server, no project's file may lift.
 */
export function ownRules(base: ServerDefinition): OwnRules | undefined {
  const isTheirs = base.project && base.origin !== "package" && !base.userKeys?.length;
  if (base.userRules || isTheirs) return base.userRules;
  return rulesIn(base);
}

/** The user's rules with what a file of the user's says after a project's: nothing of that may be lifted either. */
const withUsers = (rules: OwnRules, said: Override, now: OwnRules): OwnRules => ({
  ...rules,
  ...Object.fromEntries(Object.entries(now).filter(([key]) => Object.hasOwn(said, key))),
});

/** Minutes until an unused server is stopped; 0: never. The setting is for lazy servers; an entry may set it for any. */
export const idleMinutesOf = (
  { lifecycle, idleTimeoutMinutes }: Pick<ServerDefinition, "lifecycle" | "idleTimeoutMinutes">,
  setting: number,
): number => idleTimeoutMinutes ?? (lifecycle === "lazy" ? setting : 0);

/** A project lets the user's server run less, never more: a plain clone would otherwise start it. */
function runsLess(base: ServerDefinition, override: Override, setting: number): Override {
  const { lifecycle, idleTimeout, shared, inheritEnv: _env, sandbox: _room, ...others } = override;
  const isLess =
    lifecycle !== undefined &&
    (LIFECYCLES as readonly string[]).indexOf(lifecycle) <= LIFECYCLES.indexOf(base.lifecycle);
  if (isLess) Object.assign(others, { lifecycle });
  if (idleTimeout !== undefined)
    Object.assign(others, { idleTimeout: idleMinutes(idleMinutesOf(base, setting), idleTimeout) });
  if (shared === false) Object.assign(others, { shared });
  return others;
}

/**
 * The server with some keys changed. A project may narrow the user's rules, never widen them: its exclusions and its
 * `approve` add to the user's, tools that the user's rules hide stay hidden, and the server runs no more than it does
 * anyway. `idleTimeout`: the setting, in minutes. If a project enables a server that the user's own
 * files disable, the project decides that the server runs: that needs the user's consent.
 */
export function applyOverride(
  base: ServerDefinition,
  override: Override,
  by: { file: string; origin: Origin },
  idleTimeout: number = DEFAULT_SETTINGS.idleTimeout,
): ServerDefinition {
  const userRules = isProject(by.origin) ? ownRules(base) : undefined;
  const { approve, ...given } = override;
  const others = userRules ? runsLess(base, given, idleTimeout) : given;
  const { excludeTools } = others;
  const rules =
    userRules && excludeTools
      ? { ...others, excludeTools: [...new Set([...userRules.excludeTools, ...excludeTools])] }
      : others;
  const adds = userRules !== undefined && approve !== undefined;
  const { definition } = parseEntry(
    base.name,
    { ...base.raw, ...rules, ...(approve === undefined || adds ? {} : { approve }) },
    { file: base.file, origin: base.origin, base: base.base },
  );
  if (!definition) return base;
  const { enabledByProject, definedByProject } = base;
  const replaced = base.replaced && applyOverride(base.replaced, override, by, idleTimeout);
  const enabledIn = override.enabled === undefined ? base.enabledIn : by.file;
  const overrides = [...base.overrides, by.file];
  // What others offer and the user's files leave switched off, only the user switches on.
  const staysOff = base.project && base.enabledByProject === undefined && userRules?.enabled === false;
  const overridden = {
    ...definition,
    ...(base.passesOn && { passesOn: base.passesOn }),
    ...(staysOff && { enabled: false }),
    ...(base.project && {
      userKeys: [...(base.userKeys ?? []), ...(isProject(by.origin) ? [] : Object.keys(override))],
    }),
    definedByProject,
    overrides,
    userRules: userRules ?? (base.userRules && withUsers(base.userRules, override, rulesIn(definition))),
    enabledIn,
    enabledByProject,
    replaced,
    approveToo: adds ? [...base.approveToo, approve] : base.approveToo,
  };
  if (!userRules || userRules.enabled || base.project || !definition.enabled) return overridden;
  return { ...overridden, origin: by.origin, project: true, enabledByProject: by.file, replaced: base };
}
