/**
 * A command that has not done what it was asked for. Owns: that the person reads why, and that a script, where nobody reads a
 * notice, learns it from the code of Pi's end, as from the exit codes of `pi-mcp-threads`.
 */
import type { NoticeLevel, PiContext } from "../pi/api.ts";
import { notify } from "../pi/extension.ts";

const CODES = {
  failed: 1,
  /** The words of the command cannot be used. */
  unusable: 2,
} as const;

type Outcome = keyof typeof CODES;

export function endAs({ mode }: PiContext, outcome: Outcome): void {
  if (mode === "print" || mode === "json") process.exitCode = CODES[outcome];
}

export function refuse(ctx: PiContext, outcome: Outcome, text: string, level: NoticeLevel = "warning"): void {
  endAs(ctx, outcome);
  notify(ctx, text, level);
}
