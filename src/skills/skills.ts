/**
 * The skills of servers that stand in the conversation. Owns: which they are, in a form that costs a call nothing while there
 * are none; gate.ts, loaded when one is there, decides what waits for the person. A skill stands there from its load until the
 * entry of that load leaves the context, by compaction or on another branch (SEP-2640, "The Acting Window and the Held Entry").
 */
import type { BlockedCall, PiContext } from "../pi/api.ts";
import type { LoadedSkill } from "../shared/protocol/calls.ts";
import type { judge } from "./gate.ts";
import { keyOf, LOADED_ENTRY, type SkillsHost, type Standing, type ToolAboutToRun } from "./standing.ts";

interface LoadedSkillsHost extends SkillsHost {
  /** Loads gate.ts: its code is a part of the screens, since most sessions load no skill. */
  judge: (...about: Parameters<typeof judge>) => ReturnType<typeof judge>;
}

export type LoadedSkills = ReturnType<typeof createLoadedSkills>;

export function createLoadedSkills(host: LoadedSkillsHost) {
  const standing: Standing = { active: new Map(), isKnown: false, granted: new Set() };
  return {
    /** A result with a file of this skill is on its way to the model, by whatever call. */
    loaded: (skill: LoadedSkill): void => {
      standing.active.set(keyOf(skill), skill);
      // Each time: a compaction may take the first load away and keep this one.
      host.pi.appendEntry(LOADED_ENTRY, skill);
    },
    /** Another session, another branch, or one that was compacted. */
    branchChanged: (): void => {
      standing.isKnown = false;
    },
    /** Undefined, or a promise of undefined: the call may run. */
    beforeCall: (call: ToolAboutToRun, ctx: PiContext): Promise<BlockedCall | undefined> | undefined => {
      if (standing.isKnown && standing.active.size === 0) return undefined;
      return host.judge(call, ctx, { ...host, standing });
    },
  };
}
