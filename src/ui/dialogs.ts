/**
 * The dialogs of a session, one at a time: whether a project's server may run, and whether a held edit is applied. They
 * appear only in modes that have dialogs. Each question is asked once per session. A question that is longer than the
 * screen is asked page by page, and the user can allow nothing before its last page.
 */
import type { PiContext } from "../pi/api.ts";
import type { ConsentQuestion } from "../shared/protocol/status.ts";
import { printable } from "../shared/text/width.ts";
import { pagesOf, type Screen } from "./dialog-pages.ts";

const ALLOW = "Allow";
const REFUSE = "Refuse";
const LATER = "Not now";
const NEXT = "Next page";
const BACK = "Previous page";
/** `others`: the questions that wait behind this one. */
const noneOf = (others: number): string =>
  `Not now, for this one and the ${others === 1 ? "other one" : `${others} others`}`;

export interface Dialogs {
  /** Asks the questions that have not been asked yet. `questions`: all that are open now. */
  consents(questions: readonly ConsentQuestion[]): void;
  /** Asks whether an edit is applied, unless the same question is open. */
  held(id: string, text: string): void;
  /** For `/mcp trust`: every question may be asked again. */
  forget(): void;
}

export interface Answers {
  consent(hash: string, allow: boolean): Promise<void>;
  held(id: string, apply: boolean): Promise<void>;
  /** Whether the session that asks has ended. */
  over(): boolean;
  failed(error: unknown): void;
}

/** Size of the terminal; undefined if Pi does not draw on it. */
const screenOf = ({ mode }: PiContext): Screen | undefined =>
  mode === "tui" ? { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 } : undefined;

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
  const pages = pagesOf(question, screenOf(ctx));
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

export function createDialogs(ctx: PiContext, answers: Answers): Dialogs {
  const asked = new Set<string>();
  /** Questions whose turn has not come. */
  const waiting = new Set<string>();
  /** Held edits whose question has no answer. */
  const open = new Set<string>();
  let queue: Promise<void> = Promise.resolve();
  const enqueue = (ask: () => Promise<void>): void => {
    queue = queue.then(() => (answers.over() ? undefined : ask())).catch(answers.failed);
  };
  const askConsent = async ({ hash, question }: ConsentQuestion): Promise<void> => {
    if (!waiting.delete(hash)) return;
    const none = noneOf(waiting.size);
    const more = waiting.size === 0 ? [] : [none];
    const choice = await askPaged(ctx, question, { more, over: answers.over });
    if (answers.over()) return;
    if (choice === none) waiting.clear();
    if (choice === ALLOW || choice === REFUSE) await answers.consent(hash, choice === ALLOW);
  };
  return {
    consents: (questions) => {
      if (!ctx.hasUI) return;
      const wanted = new Set(questions.map(({ hash }) => hash));
      // A question that an edit has made void is not asked. If it comes back, it counts as new.
      for (const hash of [...waiting].filter((one) => !wanted.has(one))) {
        waiting.delete(hash);
        asked.delete(hash);
      }
      for (const question of questions) {
        if (asked.has(question.hash)) continue;
        asked.add(question.hash);
        waiting.add(question.hash);
        enqueue(() => askConsent(question));
      }
    },
    held: (id, text) => {
      if (!ctx.hasUI || open.has(id)) return;
      open.add(id);
      enqueue(async () => {
        const apply = await ctx.ui.confirm("Apply the edit of the MCP configuration?", printable(text));
        open.delete(id);
        if (!answers.over()) await answers.held(id, apply);
      });
    },
    forget: () => asked.clear(),
  };
}
