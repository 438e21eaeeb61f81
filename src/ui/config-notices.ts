/**
 * What the user is told of the configuration: each line once, and one notice for all lines of a plan. A file of a
 * clone can hold thousands of mistakes, and each notice costs Pi a drawing of its screen. Bounded.
 */
import type { PiContext } from "../pi/api.ts";
import { notify } from "../pi/notices.ts";

const LINES = 10;
const LINE_CHARS = 500;

export interface ConfigNotices {
  /** All lines that hold now. Those that the user has read since they came up are not told again. */
  tell(lines: readonly string[]): void;
}

const cut = (line: string): string => (line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line);

export function createConfigNotices(ctx: PiContext): ConfigNotices {
  let told = new Set<string>();
  return {
    tell(lines) {
      const added = lines.filter((line) => !told.has(line));
      told = new Set(lines);
      if (added.length === 0) return;
      const more = added.length - LINES;
      const shown = added.slice(0, LINES).map(cut);
      if (more > 0) shown.push(`and ${more.toLocaleString("en")} more: /mcp shows what is wrong.`);
      // Where there is no UI each line stands for itself.
      for (const text of ctx.hasUI ? [shown.join("\n")] : shown) notify(ctx, text, "warning");
    },
  };
}
