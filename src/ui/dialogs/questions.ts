/**
 * The questions whether a project's server may run, whether a tool may run, and whether a held edit is applied. A question
 * that is longer than the screen is asked page by page, and nothing can be allowed before its last page. A choice that
 * another program makes up, and a closed dialog, allow nothing.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { wantsText } from "../../report/status.ts";
import type { ApprovalAnswer, ApprovalQuestion, SkillQuestion } from "../../shared/protocol/calls.ts";
import type { ConsentQuestion } from "../../shared/protocol/session.ts";
import { cutTo, printable } from "../../shared/text/width.ts";
import { pagesOf, screenOf, shortOf } from "../dialog.ts";
import type { TickLines } from "../ticks.ts";
import { afterPause, answered, isTyping, whileTyped } from "../typing.ts";

export interface DialogsHost {
  consent(hash: string, allow: boolean): Promise<void>;
  applyHeld(id: string, apply: boolean): Promise<unknown>;
  /** Whether the session that asks has ended. */
  over(): boolean;
  failed(error: unknown): void;
  /** Lines to tick, of a form. */
  tick: TickLines;
  /** Whether a skill may be loaded. */
  skill: (ctx: PiContext, question: SkillQuestion, signal: AbortSignal) => Promise<ApprovalAnswer>;
}

/** The first choice of a question that nobody has asked for: Enter may be meant for the editor. */
const LATER = "Not now";
const APPLY = "Apply it";
const UNAPPLIED =
  "The edit is not applied. You are asked again once an edit does something else; a new start of Pi takes the file as it is.";

const NEXT = "Next page";
const BACK = "Previous page";

export type LastingQuestions = ReturnType<typeof createLastingQuestions>;

/**
 * The questions that outlast a worker, because their answers are bound to what was shown: consents and held edits. Each is
 * asked once, in its turn, and not at all if it is void before its turn.
 */
export function createLastingQuestions(
  ctx: PiContext,
  host: DialogsHost,
  inTurn: <T>(task: () => Promise<T>) => Promise<T>,
) {
  const asked = new Set<string>();
  /** Questions whose turn has not come. */
  const waiting = new Set<string>();
  const ask = async (asked: ConsentQuestion): Promise<void> => {
    const { hash } = asked;
    if (host.over() || !waiting.delete(hash)) return;
    const choice = await askConsent(ctx, asked, { others: waiting.size, over: host.over });
    if (host.over() || choice === undefined) return;
    if (choice === "none") waiting.clear();
    else await host.consent(hash, choice === "allow");
  };
  /** The edit that is held, whose question has no answer yet. A later one takes its place, and nobody is asked about this one. */
  let held: { id: string; cut: AbortController } | undefined;
  return {
    /** `id`: "" if no edit waits any more. */
    held: (id: string, text: string): void => {
      if (held?.id === id) return;
      held?.cut.abort();
      held = undefined;
      if (id === "") return;
      const cut = new AbortController();
      const { signal } = cut;
      held = { id, cut };
      inTurn(async () => {
        if (host.over() || signal.aborted) return;
        const title = `Apply the edit of the MCP configuration?\n${printable(text)}`;
        const choice = await afterPause(ctx, () => ctx.ui.select(title, [LATER, APPLY], { signal }));
        if (signal.aborted) return;
        answered(ctx);
        held = undefined;
        if (host.over()) return;
        if (choice !== APPLY) notify(ctx, UNAPPLIED, "info");
        await host.applyHeld(id, choice === APPLY);
      }).catch(host.failed);
    },
    consents: (questions: readonly ConsentQuestion[]): void => {
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
        inTurn(() => ask(question)).catch(host.failed);
      }
    },
    forget: (): void => asked.clear(),
  };
}

export const NO = "No";
const ANSWERS: readonly [choice: string, answer: ApprovalAnswer][] = [
  ["Allow once", "once"],
  ["Allow this tool for this session", "session"],
  ["Allow all tools of this server for this session", "server"],
  ["Always allow this tool", "always"],
  [NO, "no"],
];
export const ALL_ARGUMENTS = "Show all arguments";

const canAnswer = (answer: ApprovalAnswer, { canAlways, onceOnly }: ApprovalQuestion): boolean =>
  (answer !== "always" || canAlways) && ((answer !== "session" && answer !== "server") || !onceOnly);

/** Long names leave room for the question. */
export const NAME_CELLS = 200;

const headOf = ({ server, tool }: ApprovalQuestion): string =>
  printable(`Run ${cutTo(tool, NAME_CELLS)} of the MCP server ${cutTo(server, NAME_CELLS)}?`);

export const askAboutCall = async (
  ctx: PiContext,
  question: ApprovalQuestion,
  signal: AbortSignal,
): Promise<ApprovalAnswer> => {
  const answers = ANSWERS.filter(([, answer]) => canAnswer(answer, question));
  const text = printable(question.args);
  return (
    (await askInPages(
      ctx,
      { head: headOf(question), text, answers, isNoFirst: false, whole: ALL_ARGUMENTS },
      signal,
    )) ?? "no"
  );
};

interface PagedQuestion<A> {
  head: string;
  /** Empty: the call gets no arguments. */
  text: string;
  /** `NO` is one of the words. */
  answers: readonly (readonly [choice: string, answer: A])[];
  /** The first choice lets nothing happen, also where nobody types. */
  isNoFirst: boolean;
  /** The choice that shows the pages. */
  whole: string;
}

/** A question whose text may have many pages, which are shown on demand. Undefined: no answer that was offered. */
export async function askInPages<A>(
  ctx: PiContext,
  { head, text, answers, isNoFirst, whole }: PagedQuestion<A>,
  signal: AbortSignal | undefined,
): Promise<A | undefined> {
  const screen = screenOf(ctx);
  const short = text === "" ? "It gets no arguments." : shortOf(text, screen);
  const pages = text === "" || short === text ? [] : pagesOf(text, screen);
  const words = answers.map(([choice]) => choice);
  // On the last page Enter has turned the pages before it, and over a text that is being typed it is meant for the text: then
  // the first choice lets nothing run.
  const noFirst = [NO, ...words.filter((word) => word !== NO)];
  const first = isNoFirst || isTyping(ctx) ? noFirst : words;
  let at = -1;
  let isFirst = true;
  for (;;) {
    const isLast = at === pages.length - 1;
    const title = at < 0 ? `${head}\n${short}` : `${head} Page ${at + 1} of ${pages.length}:\n${pages[at]}`;
    const choices =
      at < 0 ? [...first, ...(pages.length > 0 ? [whole] : [])] : [...(isLast ? noFirst : [NEXT, NO]), BACK];
    const ask = (): Promise<string | undefined> =>
      whileTyped(ctx, ctx.ui.select(title, choices, signal ? { signal } : {}), signal);
    const choice = await (isFirst ? afterPause(ctx, ask) : ask());
    isFirst = false;
    if (choice === undefined || !choices.includes(choice)) return undefined;
    const found = answers.find(([word]) => word === choice);
    if (found) return found[1];
    at += choice === BACK ? -1 : 1;
  }
}

const ALLOW = "Allow";
const REFUSE = "Refuse";
/** `others`: the questions that wait behind this one. */
const noneOf = (others: number): string =>
  others === 1 ? "Not now for both servers" : `Not now for all ${others + 1} servers`;

/** The first choice allows nothing: Enter may be meant for the editor, or for the page before. */
function choicesOn(page: number, pages: number): string[] {
  const back = page === 0 ? [] : [BACK];
  return page === pages - 1 ? [LATER, REFUSE, ALLOW, ...back] : [NEXT, REFUSE, LATER, ...back];
}

/** The user's choice. `ALLOW` is possible only after every page. `more`: further choices on every page. */
async function askPaged(
  ctx: PiContext,
  asked: ConsentQuestion,
  { more, over }: { more: readonly string[]; over: () => boolean },
): Promise<string | undefined> {
  const pages = pagesOf(printable(asked.question), screenOf(ctx));
  let isFirst = true;
  for (let at = 0; !over(); ) {
    const page = pages.length === 1 ? "" : ` Page ${at + 1} of ${pages.length}:`;
    const title = `${wantsText(asked)}${page}\n${pages[at]}`;
    const choices = [...choicesOn(at, pages.length), ...more];
    const ask = (): Promise<string | undefined> => ctx.ui.select(title, choices);
    const choice = await (isFirst ? afterPause(ctx, ask) : ask());
    answered(ctx);
    isFirst = false;
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
async function askConsent(
  ctx: PiContext,
  asked: ConsentQuestion,
  { others, over }: { others: number; over: () => boolean },
): Promise<"allow" | "refuse" | "none" | undefined> {
  const none = noneOf(others);
  const choice = await askPaged(ctx, asked, { more: others === 0 ? [] : [none], over });
  if (choice === none) return "none";
  if (choice === ALLOW) return "allow";
  return choice === REFUSE ? "refuse" : undefined;
}
