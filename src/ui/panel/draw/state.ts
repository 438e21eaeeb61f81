/** A server's state as a sign and a word, so that it is told without colour, too. Pure. */
import { needsText, signInText } from "../../../report/sign-in.ts";
import { describeErrorOf } from "../../../shared/protocol/errors.ts";
import type { ServerStatus } from "../../../shared/protocol/status.ts";
import type { Cost, World } from "../model/model.ts";
import { type Colour, clean, withTilde } from "./line.ts";

export interface Mark {
  sign: string;
  word: string;
  colour: Colour;
}

const MARKS: Readonly<Record<ServerStatus["state"], Mark>> = {
  connected: { sign: "●", word: "connected", colour: "success" },
  connecting: { sign: "◐", word: "connecting", colour: "accent" },
  closing: { sign: "◐", word: "closing", colour: "muted" },
  idle: { sign: "○", word: "idle", colour: "muted" },
  "needs-auth": { sign: "!", word: "needs sign-in", colour: "warning" },
  failed: { sign: "✗", word: "failed", colour: "error" },
  disabled: { sign: "–", word: "disabled", colour: "dim" },
};

export const WAITING: Mark = { sign: "?", word: "asks consent", colour: "warning" };
export const REFUSED: Mark = { sign: "✗", word: "refused", colour: "warning" };
export const MISTAKE: Mark = { sign: "!", word: "mistake", colour: "error" };

export function markOf({ state, signIn, waits, error }: ServerStatus): Mark {
  if (waits) return { sign: "◐", word: "npm fetches", colour: "accent" };
  if (signIn?.state === "running") return { sign: "◐", word: "signing in", colour: "accent" };
  const mark = MARKS[state];
  return state === "needs-auth" && error ? { ...mark, word: needsText({ error }) } : mark;
}

/** For example `940`, `12.3k`. */
export function tokensText(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  return tokens < 99_950 ? `${(tokens / 1_000).toFixed(1)}k` : `${Math.round(tokens / 1_000)}k`;
}

/** The tokens that the declared tools cost; `…` while they are being counted. */
export const costText = (cost: Cost | undefined): string =>
  cost === undefined ? "–" : cost.isWhole ? tokensText(cost.declared) : "…";

/** What a person should know of the server first: its error with the remedy, its sign-in, or its purpose. */
export function wordsOf(
  status: ServerStatus,
  { now, home }: Pick<World, "now" | "home">,
): { text: string; colour: Colour } {
  const { name, error, signIn, state, description, source, waits } = status;
  if (waits) return { text: `${clean(waits)}.`, colour: "accent" };
  if (error) return { text: withTilde(describeErrorOf(name, error), home), colour: "error" };
  if (state === "disabled") return { text: withTilde(`Disabled in ${source}.`, home), colour: "muted" };
  if (signIn && state === "connected") return { text: `${signInText(signIn, now)}.`, colour: "muted" };
  return { text: withTilde(description ?? `From ${source}.`, home), colour: "muted" };
}
