/**
 * Asks the user, one dialog at a time: whether a project's server may run, whether a held edit is applied.
 * Only in modes that have dialogs; each question is asked once a session.
 */
import type { PiContext } from "../host.ts";
import type { ConsentQuestion } from "../protocol/types.ts";
import { printable } from "../tools/width.ts";

const ALLOW = "Allow";
const REFUSE = "Refuse";
const LATER = "Not now";

export interface Dialogs {
  /** Asks for what was not asked for yet. */
  consents(questions: readonly ConsentQuestion[]): void;
  /** Whether an edit is to be applied; one that is asked for already is not asked for twice. */
  held(id: string, text: string): void;
  /** `/mcp trust`: what was put off is asked for again. */
  forget(): void;
}

export interface Answers {
  consent(hash: string, allow: boolean): Promise<void>;
  held(id: string, apply: boolean): Promise<void>;
  /** The session that asked is over. */
  over(): boolean;
  failed(error: unknown): void;
}

export function createDialogs(ctx: PiContext, answers: Answers): Dialogs {
  const asked = new Set<string>();
  /** Held edits whose question has no answer. */
  const open = new Set<string>();
  let queue: Promise<void> = Promise.resolve();
  const enqueue = (ask: () => Promise<void>): void => {
    queue = queue.then(() => (answers.over() ? undefined : ask())).catch(answers.failed);
  };
  return {
    consents: (questions) => {
      if (!ctx.hasUI) return;
      for (const { hash, question } of questions) {
        if (asked.has(hash)) continue;
        asked.add(hash);
        enqueue(async () => {
          const title = `This project wants to run an MCP server.\n${question}`;
          const choice = await ctx.ui.select(title, [ALLOW, REFUSE, LATER]);
          if (answers.over()) return;
          if (choice === ALLOW || choice === REFUSE) await answers.consent(hash, choice === ALLOW);
        });
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
