/**
 * The words of a command. Owns: that in a pipe their lines stay lines, while a notice that nobody asked for is one line there.
 * Loaded with the screens.
 */
import type { NoticeLevel, PiContext } from "../pi/api.ts";
import { notify, toStderr } from "../pi/extension.ts";
import { printable } from "../shared/text/width.ts";
import { endAs } from "./refuse.ts";

export function say(ctx: PiContext, text: string, level: NoticeLevel = "info"): void {
  if (ctx.hasUI) notify(ctx, text, level);
  else toStderr(printable(text));
}

/** As `refuse` does it. */
export function sayRefused(
  ctx: PiContext,
  outcome: Parameters<typeof endAs>[1],
  text: string,
  level: NoticeLevel = "warning",
): void {
  endAs(ctx, outcome);
  say(ctx, text, level);
}
