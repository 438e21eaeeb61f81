/** Says something to the user once: a notice where there is a UI, one line on stderr where there is none. */
import type { NoticeLevel, PiContext } from "../host.ts";

export function notify(ctx: PiContext, message: string, level: NoticeLevel): void {
  if (ctx.hasUI) ctx.ui.notify(message, level);
  else process.stderr.write(`${message.trim().replace(/\s*\n\s*/g, " | ")}\n`);
}
