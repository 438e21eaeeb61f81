/**
 * Owns: the one edit that waits for the user (`hotReload` "ask" and "off"). An edit that would do the same is not
 * announced again; a newer edit takes the place of the older one; the user's answer counts for one edit only. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json.ts";
import type { LoadedConfig } from "../merge/merge.ts";
import { isIdle, type Plan } from "../plan/plan.ts";

export interface HeldEdit {
  /** Hex SHA-256 of everything that the edit would do. */
  id: string;
  change: Plan;
  config: LoadedConfig;
}

export interface HeldEditSlot {
  /** The edit waits from now on. Gives the edit if the user has to hear of it: it does something, and something new. */
  hold(config: LoadedConfig, change: Plan): HeldEdit | undefined;
  /** Nothing waits any more: a newer edit has been applied. */
  drop(): void;
  /** Gives the configuration of the edit `id` once. Undefined if another edit waits, or none. */
  take(id: string): LoadedConfig | undefined;
}

const idOf = ({ servers, settings }: Plan): string => {
  const doing = servers.filter(({ action }) => action !== "keep");
  return createHash("sha256")
    .update(canonical({ servers: doing, settings }))
    .digest("hex");
};

export function createHeldEdit(): HeldEditSlot {
  let held: HeldEdit | undefined;
  return {
    hold: (config, change) => {
      const before = held;
      held = { config, change, id: idOf(change) };
      return isIdle(change) || held.id === before?.id ? undefined : held;
    },
    drop: () => {
      held = undefined;
    },
    take: (id) => {
      const edit = held;
      if (edit?.id !== id || isIdle(edit.change)) return undefined;
      held = undefined;
      return edit.config;
    },
  };
}
