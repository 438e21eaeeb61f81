/**
 * Says something to the user once: a notice where there is a UI, one line on stderr where there is none. Names and
 * words of servers and of project files are in it, so that nothing of it acts on the terminal.
 */

import { printable } from "../shared/text/width.ts";
import type { NoticeLevel, PiContext } from "./api.ts";

export function notify(ctx: PiContext, message: string, level: NoticeLevel): void {
  const text = printable(message);
  if (ctx.hasUI) ctx.ui.notify(text, level);
  else process.stderr.write(`${text.trim().replace(/\s*\n\s*/g, " | ")}\n`);
}
