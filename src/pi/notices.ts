/**
 * Shows the user a message: as a notice with a UI, as one line on stderr without. A message may hold the words of a
 * server or of a project's file, so characters that act on a terminal are removed.
 */

import { printable } from "../shared/text/width.ts";
import type { NoticeLevel, PiContext } from "./context.ts";

export function notify(ctx: PiContext, message: string, level: NoticeLevel): void {
  const text = printable(message);
  if (ctx.hasUI) ctx.ui.notify(text, level);
  else process.stderr.write(`${text.trim().replace(/\s*\n\s*/g, " | ")}\n`);
}
