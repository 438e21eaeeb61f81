/**
 * An entry without `command`, `url` and `type`: it changes a few keys of a server that a file of lower
 * precedence defines, and never where that server runs or what it is sent. Pure.
 */
import { isProject, type Origin, parseEntry, type ServerDefinition } from "./definition.ts";
import { check, type Mistake } from "./mistakes.ts";
import { type Entry, entryShape } from "./schema.ts";

const DEFINING_KEYS = ["command", "url", "type"] as const;

/** `disabled` is `enabled` the other way round. */
export const OVERRIDE_KEYS = [
  "enabled",
  "disabled",
  "lifecycle",
  "idleTimeout",
  "directTools",
  "exposure",
  "toolExposure",
  "excludeTools",
] as const;

export type Override = Partial<Pick<Entry, (typeof OVERRIDE_KEYS)[number]>>;

const isOverrideKey = (key: string): boolean => (OVERRIDE_KEYS as readonly string[]).includes(key);

/** An object that holds no defining key. An empty one is a mistake, which `parseEntry` explains. */
export const isOverride = (raw: unknown): raw is Record<string, unknown> =>
  typeof raw === "object" &&
  raw !== null &&
  !Array.isArray(raw) &&
  Object.keys(raw).some(isOverrideKey) &&
  !DEFINING_KEYS.some((key) => Object.hasOwn(raw, key));

/** Without an override there is at least one error. */
export function parseOverride(raw: Record<string, unknown>): {
  override: Override | undefined;
  mistakes: Mistake[];
} {
  const { data, mistakes } = check(entryShape, raw);
  const idle = Object.keys(raw).filter((key) => Object.hasOwn(entryShape, key) && !isOverrideKey(key));
  const ineffective = idle.map(
    (key): Mistake => ({
      severity: "warning",
      path: [key],
      message: "has no effect in an entry without command or url",
      remedy: "Repeat command or url to replace the whole server.",
    }),
  );
  if (!data) return { override: undefined, mistakes: [...mistakes, ...ineffective] };
  const { disabled, ...kept } = Object.fromEntries(
    Object.entries(data).filter(([key]) => isOverrideKey(key)),
  ) as Override;
  if (disabled !== undefined) kept.enabled ??= !disabled;
  return { override: kept, mistakes: [...mistakes, ...ineffective] };
}

/**
 * The server with some keys changed. Where a project switches a server on that was off, what then runs is
 * the project's doing and is trusted no further than the project.
 */
export function applyOverride(
  base: ServerDefinition,
  override: Override,
  by: { file: string; origin: Origin },
): ServerDefinition {
  const { definition } = parseEntry(
    base.name,
    { ...base.raw, ...override },
    { file: base.file, origin: base.origin },
  );
  if (!definition) return base;
  const replaced = base.replaced && applyOverride(base.replaced, override, by);
  const switchedBy = override.enabled === undefined ? base.switchedBy : by.file;
  const overridden = { ...definition, overrides: [...base.overrides, by.file], switchedBy, replaced };
  if (!isProject(by.origin) || base.project || base.enabled || !definition.enabled) return overridden;
  return { ...overridden, origin: by.origin, project: true, replaced: base };
}
