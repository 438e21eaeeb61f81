/**
 * How the user is asked whether a project's server may run. A question that is longer than the screen is asked page by
 * page, and the user can allow nothing before its last page.
 */
import type { PiContext } from "../../pi/api.ts";
import { printable } from "../../shared/text/width.ts";
import { pagesOf, screenOf } from "../dialog.ts";

const ALLOW = "Allow";
const REFUSE = "Refuse";
const LATER = "Not now";
const NEXT = "Next page";
const BACK = "Previous page";
/** `others`: the questions that wait behind this one. */
const noneOf = (others: number): string =>
  `Not now, for this one and the ${others === 1 ? "other one" : `${others} others`}`;

/** The first choice of the last page allows nothing, because Enter has turned the pages before it. */
function choicesOn(page: number, pages: number): string[] {
  if (pages === 1) return [ALLOW, REFUSE, LATER];
  const back = page === 0 ? [] : [BACK];
  return page === pages - 1 ? [LATER, REFUSE, ALLOW, ...back] : [NEXT, REFUSE, LATER, ...back];
}

/** The user's choice. `ALLOW` is possible only after every page. `more`: further choices on every page. */
async function askPaged(
  ctx: PiContext,
  question: string,
  { more, over }: { more: readonly string[]; over: () => boolean },
): Promise<string | undefined> {
  const pages = pagesOf(printable(question), screenOf(ctx));
  for (let at = 0; !over(); ) {
    const page = pages.length === 1 ? "" : ` Page ${at + 1} of ${pages.length}:`;
    const title = `This project wants to run an MCP server.${page}\n${pages[at]}`;
    const choices = [...choicesOn(at, pages.length), ...more];
    const choice = await ctx.ui.select(title, choices);
    // Over RPC the other program may answer with a choice that it was not given.
    if (choice === undefined || !choices.includes(choice)) return undefined;
    if (choice !== NEXT && choice !== BACK) return choice;
    at += choice === NEXT ? 1 : -1;
  }
  return undefined;
}

/**
 * The user's answer; `none` postpones this question and the `others` that wait behind it, and undefined only this one.
 * `over`: whether the session that asks has ended.
 */
export async function askConsent(
  ctx: PiContext,
  question: string,
  { others, over }: { others: number; over: () => boolean },
): Promise<"allow" | "refuse" | "none" | undefined> {
  const none = noneOf(others);
  const choice = await askPaged(ctx, question, { more: others === 0 ? [] : [none], over });
  if (choice === none) return "none";
  if (choice === ALLOW) return "allow";
  return choice === REFUSE ? "refuse" : undefined;
}
