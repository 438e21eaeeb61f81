/**
 * Settings of all servers: defaults and checks. merge/layers.ts adds files up, merge/narrow.ts limits those of a
 * project. Pure.
 */
import type { ToolPrefix } from "../../../../src/shared/naming.ts";

import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { SettingsApproval } from "./exposure.ts";
import { check, kindOf, type Mistake } from "./mistakes.ts";
import { type SettingsEntry, settingsShape } from "./settings-shape.ts";

export interface Settings {
  toolPrefix: ToolPrefix;
  /** Minutes; 0: never. */
  idleTimeout: number;
  outputGuard: false | { maxBytes?: number | undefined; maxLines?: number | undefined };
  search: "ranked" | "weighted";
  proxyTool: boolean;
  toonEncode: boolean | string[];
  captureStats: boolean | { path?: string | undefined };
  directTools: boolean | string[];
  maxMessageBytes: number;
  /** The project's file that lowered it. */
  messageLimitOf?: string | undefined;
  hotReload: "on" | "ask" | "off";
  catalog: "tools" | "servers" | "off";
  /** A call that needs a sign-in begins the sign-in. */
  autoAuth: boolean;
  /** Which calls ask the user. */
  approve: SettingsApproval;
  /** As written. Empty: no further certificate authorities. */
  caFile: string;
}

export type SettingKey = Exclude<keyof Settings, "messageLimitOf">;

export const DEFAULT_SETTINGS: Settings = {
  toolPrefix: "server",
  idleTimeout: 10,
  outputGuard: {},
  search: "ranked",
  proxyTool: false,
  toonEncode: false,
  captureStats: false,
  directTools: false,
  maxMessageBytes: LIMITS.messageBytes,
  hotReload: "on",
  catalog: "tools",
  autoAuth: false,
  approve: "never",
  caFile: "",
};

/** Checks the settings of one file. A wrong key is left out; the others count. */
export function parseSettings(raw: unknown): { settings: Partial<Settings>; mistakes: Mistake[] } {
  if (!isObject(raw)) {
    const message = `expected an object, found ${kindOf(raw)}`;
    return {
      settings: {},
      mistakes: [{ severity: "error", path: [], message, remedy: 'Write {"toolPrefix": "server"}.' }],
    };
  }
  const { mistakes } = check(settingsShape, raw);
  const wrong = new Set(
    mistakes.filter(({ severity }) => severity === "error").map(({ path }) => path[0] ?? ""),
  );
  const sound = Object.entries(raw).filter(
    ([key]) => !wrong.has(key) && Object.hasOwn(DEFAULT_SETTINGS, key),
  );
  return { settings: Object.fromEntries(sound) as SettingsEntry as Partial<Settings>, mistakes };
}

export interface GuardLimits {
  maxBytes: number;
  maxLines: number;
}

export const DEFAULT_GUARD: GuardLimits = { maxBytes: LIMITS.resultBytes, maxLines: LIMITS.resultLines };

const isLimit = (value: unknown): value is number => typeof value === "number" && value >= 1;

/**
 * The limits that result from settings; later ones win. A setting is `{maxBytes?, maxLines?}`, `false` for no limit,
 * or `undefined` or `true` to keep the limits before it. Any other value is ignored; the configuration reports it.
 */
export function guardFrom(...settings: readonly unknown[]): GuardLimits | false {
  let limits: GuardLimits | false = DEFAULT_GUARD;
  for (const setting of settings) {
    if (setting === false) limits = false;
    if (typeof setting !== "object" || setting === null) continue;
    const { maxBytes, maxLines } = setting as Partial<Record<keyof GuardLimits, unknown>>;
    const base: GuardLimits = limits === false ? DEFAULT_GUARD : limits;
    limits = {
      maxBytes: isLimit(maxBytes) ? Math.floor(maxBytes) : base.maxBytes,
      maxLines: isLimit(maxLines) ? Math.floor(maxLines) : base.maxLines,
    };
  }
  return limits;
}
