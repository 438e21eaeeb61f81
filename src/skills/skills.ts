/**
 * The skills of servers that stand in the conversation. Owns: which they are, in a form that costs a call nothing while there
 * are none; gate.ts, loaded when one is there, decides what waits for the person. A skill stands there from its load until the
 * entry of that load leaves the context, by compaction or on another branch (SEP-2640, "The Acting Window and the Held Entry").
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { BlockedCall, Pi, PiContext } from "../pi/api.ts";
import type { LoadedSkill } from "../shared/protocol/calls.ts";

/** A tool is about to run. */
export interface ToolAboutToRun {
  toolName: string;
  input: Record<string, unknown>;
}

export interface SkillsHost {
  pi: Pick<Pi, "appendEntry" | "getAllTools">;
  catalog: () => Catalog;
  /** Runs a dialog when those before it have ended. */
  inTurn: <T>(task: () => Promise<T>) => Promise<T>;
  log: (message: string) => void;
}

/** Types of the entries in the transcript: a load, and a yes to what a skill leads to. */
export const LOADED_ENTRY = "mcp-skill";
export const RUN_ENTRY = "mcp-skill-run";

/** The state that skills.ts and gate.ts share. */
export interface Standing {
  /** By `keyOf`. */
  active: Map<string, LoadedSkill>;
  /** False: the branch may hold others. */
  isKnown: boolean;
  /** Keys of skills of which the person let commands run, each with the id of the session. */
  granted: Set<string>;
}

/** Another content is another skill. */
export const keyOf = ({ server, uri, content }: LoadedSkill): string =>
  JSON.stringify([server, uri, content]);

export type LoadedSkills = ReturnType<typeof createLoadedSkills>;

export function createLoadedSkills(host: SkillsHost) {
  const standing: Standing = { active: new Map(), isKnown: false, granted: new Set() };
  return {
    /** A result with a file of this skill is on its way to the model, by whatever call. */
    loaded: (skill: LoadedSkill): void => {
      const key = keyOf(skill);
      if (standing.active.has(key)) return;
      standing.active.set(key, skill);
      host.pi.appendEntry(LOADED_ENTRY, skill);
    },
    /** Another session, another branch, or one that was compacted. */
    branchChanged: (): void => {
      standing.isKnown = false;
    },
    /** Undefined, or a promise of undefined: the call may run. */
    beforeCall: (call: ToolAboutToRun, ctx: PiContext): Promise<BlockedCall | undefined> | undefined => {
      if (standing.isKnown && standing.active.size === 0) return undefined;
      return import("./gate.ts").then(({ judge }) => judge(call, ctx, { ...host, standing }));
    },
  };
}
