/**
 * How the user is asked whether a tool may run: server, tool and the start of each argument; all of the arguments, page
 * by page, on demand. A choice that another program makes up, and a closed dialog, mean no.
 */
import type { PiContext } from "../../pi/api.ts";
import type { ApprovalAnswer, ApprovalQuestion } from "../../shared/protocol/approval.ts";
import { cutTo, printable } from "../../shared/text/width.ts";
import { pagesOf, screenOf, shortOf } from "../dialog.ts";

const NO = "No";
const ANSWERS: readonly [choice: string, answer: ApprovalAnswer][] = [
  ["Allow once", "once"],
  ["Allow for this session", "session"],
  ["Always allow", "always"],
  [NO, "no"],
];
const WHOLE = "Show all arguments";
const NEXT = "Next page";
const BACK = "Previous page";

/** Long names leave room for the question. */
const NAME_CELLS = 200;

const headOf = ({ server, tool }: ApprovalQuestion): string =>
  printable(`Run ${cutTo(tool, NAME_CELLS)} of the MCP server ${cutTo(server, NAME_CELLS)}?`);

/** The first view, and the pages behind it if it does not hold everything. */
function viewsOf(ctx: PiContext, question: ApprovalQuestion): { short: string; pages: string[] } {
  const args = printable(question.args);
  const screen = screenOf(ctx);
  const short = args === "" ? "It gets no arguments." : shortOf(args, screen);
  return { short, pages: args === "" || short === args ? [] : pagesOf(args, screen) };
}

export async function askApproval(
  ctx: PiContext,
  question: ApprovalQuestion,
  signal: AbortSignal,
): Promise<ApprovalAnswer> {
  const head = headOf(question);
  const { short, pages } = viewsOf(ctx, question);
  const answers = ANSWERS.filter(([, answer]) => answer !== "always" || question.canAlways);
  const words = answers.map(([choice]) => choice);
  // On the last page Enter has turned the pages before it, so the first choice lets nothing run.
  const noFirst = [NO, ...words.filter((word) => word !== NO)];
  let at = -1;
  for (;;) {
    const isLast = at === pages.length - 1;
    const title = at < 0 ? `${head}\n${short}` : `${head} Page ${at + 1} of ${pages.length}:\n${pages[at]}`;
    const choices =
      at < 0 ? [...words, ...(pages.length > 0 ? [WHOLE] : [])] : [...(isLast ? noFirst : [NEXT, NO]), BACK];
    const choice = await ctx.ui.select(title, choices, { signal });
    if (choice === undefined || !choices.includes(choice)) return "no";
    const found = answers.find(([word]) => word === choice);
    if (found) return found[1];
    at += choice === BACK ? -1 : 1;
  }
}
