/**
 * The skills of servers that stand in the conversation. Owns: which they are, in a form that costs a call nothing while there
 * are none; gate.ts, loaded when one is there, decides what waits for the person. A skill stands there from its load until the
 * entry of that load leaves the context, by compaction or on another branch (SEP-2640, "The Acting Window and the Held Entry").
 */
import type { BlockedCall, FinishedMessage, PiContext } from "../pi/api.ts";
import { type LoadedSkill, skillKeyOf } from "../shared/protocol/calls.ts";
import type { judge } from "./gate.ts";
import { LOADED_ENTRY, type SkillsHost, type Standing, type ToolAboutToRun } from "./standing.ts";

interface LoadedSkillsHost extends SkillsHost {
  /** Loads gate.ts: its code is a part of the screens, since most sessions load no skill. */
  judge: (...about: Parameters<typeof judge>) => ReturnType<typeof judge>;
}

export type LoadedSkills = ReturnType<typeof createLoadedSkills>;

const isLoad = (entry: unknown): boolean =>
  (entry as { customType?: unknown } | null)?.customType === LOADED_ENTRY;

export function createLoadedSkills(host: LoadedSkillsHost) {
  const standing: Standing = { active: new Map(), isKnown: false, granted: new Set() };
  /** Beginnings of the texts of skills that wait to be sent in the person's name -> the skill. */
  const waiting = new Map<string, LoadedSkill>();
  const loaded = (skill: LoadedSkill): void => {
    standing.active.set(skillKeyOf(skill), skill);
    // Each time: a compaction may take the first load away and keep this one.
    host.pi.appendEntry(LOADED_ENTRY, skill);
  };
  return {
    /** A result with a file of this skill is on its way to the model, by whatever call. */
    loaded,
    /** A command of the person has loaded the skill. A message that begins with `start` brings its text to the model later. */
    sending: (skill: LoadedSkill, start: string): void => {
      loaded(skill);
      waiting.set(start, skill);
    },
    /** For `message_end`. The entry of a load stands beside its text: a compaction in between would take the entry alone. */
    messageEnded: ({ role, content }: FinishedMessage): void => {
      if (waiting.size === 0 || role !== "user") return;
      const text = JSON.stringify(content);
      for (const [start, skill] of waiting) {
        if (text.includes(JSON.stringify(start).slice(1, -1)) && waiting.delete(start)) loaded(skill);
      }
    },
    /** Another session, another branch, or one that was compacted. */
    branchChanged: (): void => {
      standing.isKnown = false;
    },
    /** Undefined, or a promise of undefined: the call may run. */
    beforeCall: (call: ToolAboutToRun, ctx: PiContext): Promise<BlockedCall | undefined> | undefined => {
      // Most sessions have no skill. A first call that asked gate.ts would wait for the code of the screens.
      if (!standing.isKnown && !ctx.sessionManager.buildContextEntries().some(isLoad)) {
        standing.active.clear();
        standing.isKnown = true;
      }
      if (standing.isKnown && standing.active.size === 0) return undefined;
      return host.judge(call, ctx, { ...host, standing });
    },
  };
}
