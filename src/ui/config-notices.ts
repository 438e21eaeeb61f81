/**
 * The notices about the configuration: each line once, and one notice for all lines of a plan, because each notice
 * costs Pi a drawing of its screen. Bounded: a file of a cloned project can hold thousands of mistakes.
 */
import type { PiContext } from "../pi/api.ts";
import { notify } from "../pi/extension.ts";

const LINES = 10;
const LINE_CHARS = 500;

export interface ConfigNotices {
  /** `lines`: all that hold now. Shows those that did not hold at the last call. */
  show(lines: readonly string[]): void;
}

const cut = (line: string): string => (line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line);

export function createConfigNotices(ctx: PiContext): ConfigNotices {
  let reported = new Set<string>();
  return {
    show(lines) {
      const added = lines.filter((line) => !reported.has(line));
      reported = new Set(lines);
      if (added.length === 0) return;
      const more = added.length - LINES;
      const shown = added.slice(0, LINES).map(cut);
      if (more > 0) shown.push(`and ${more.toLocaleString("en")} more: /mcp shows what is wrong.`);
      // Without a UI each notice is one line on stderr.
      for (const text of ctx.hasUI ? [shown.join("\n")] : shown) notify(ctx, text, "warning");
    },
  };
}
