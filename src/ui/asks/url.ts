/**
 * Asks whether a page of a server's choice may be opened. Nothing looks at the page before a yes, and then only the
 * browser does.
 */
import type { AskReply, AskUrl } from "../../shared/protocol/ask.ts";
import { isOpenable } from "../../shared/text/openable.ts";
import { openableUrl } from "../dialog.ts";
import { type Conversation, choose } from "./conversation.ts";
import { addressText, fitsDialog, urlText } from "./words.ts";

const OPEN = "Open it in the browser";
const SHOW = "I open it myself";
const DECLINE = "Decline";

/** Answers the worker's reply; undefined if nothing was sent, because nobody waits any more. */
export async function askUrl(ask: AskUrl, at: Conversation): Promise<AskReply | undefined> {
  const { ctx, server, signal, send } = at;
  if (openableUrl(ask.url) === undefined) return send({ action: "decline" });
  // Past `notify`, which removes links. The address holds nothing that a terminal acts on.
  if (!fitsDialog(ask, ctx)) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  // The worker starts no browser for any other address, so none is offered.
  const ways = isOpenable(URL.parse(ask.url)) ? [OPEN, SHOW] : [SHOW];
  const choice = await choose(at, urlText(server, ask, ctx), [...ways, DECLINE]);
  if (signal.aborted) return undefined;
  if (choice === undefined) return send({ action: "cancel" });
  if (choice === DECLINE) return send({ action: "decline" });
  if (choice === SHOW) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  return send({ action: "accept", open: choice === OPEN });
}
