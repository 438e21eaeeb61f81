/** What the dialogs of one question share. */
import type { DialogOptions, PiContext } from "../../pi/api.ts";
import type { AskAnswer, AskReply } from "../../shared/protocol/ask.ts";
import { orAborted } from "../dialog.ts";

export interface Conversation {
  ctx: PiContext;
  server: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  send(answer: AskAnswer): Promise<AskReply>;
}

/** The choice, or undefined: Escape, or the dialog was closed. */
export async function choose(
  { ctx, signal }: Conversation,
  title: string,
  choices: readonly string[],
): Promise<string | undefined> {
  const dialog: DialogOptions = { signal };
  const choice = await orAborted(ctx.ui.select(title, [...choices], dialog), signal);
  // Over RPC the other program may answer with a choice that it was not given.
  return choice !== undefined && choices.includes(choice) ? choice : undefined;
}

/** The text that the user has typed, or undefined: Escape, or the dialog was closed. */
export async function type(
  { ctx, signal }: Conversation,
  title: string,
  placeholder: string,
): Promise<string | undefined> {
  const text: unknown = await orAborted(ctx.ui.input(title, placeholder, { signal }), signal);
  // Over RPC the other program may send anything.
  return typeof text === "string" ? text : undefined;
}
