/**
 * The consent to a project's server: asked on the terminal with everything that would run, given by `--yes` after showing
 * it, and otherwise missing. The worker remembers the answer.
 */
import { refusedLine } from "../../report/refused.ts";
import { serverName } from "../../report/server-name.ts";
import type { StatusReport } from "../../shared/protocol/status.ts";
import { type Console, EXIT, Failure, inWordsHere } from "../console/console.ts";
import { HOW_TO_CONSENT } from "../state/state.ts";

interface ConsentsOptions {
  console: Console;
  yes: boolean;
  signal: AbortSignal;
  answer: (hash: string, allow: boolean) => Promise<unknown>;
}

const isYes = (line: string | undefined): boolean => /^y(es)?$/i.test(line?.trim() ?? "");

export function createConsents({ console, yes, signal, answer }: ConsentsOptions) {
  return {
    allow: async (server: string, { questions, refused }: StatusReport): Promise<void> => {
      const question = questions.find((one) => one.server === server);
      if (!question) {
        const refusal = refused.find(({ name }) => name === server);
        if (refusal)
          throw new Failure(EXIT.consent, inWordsHere(refusedLine(refusal)), { remedy: HOW_TO_CONSENT });
        return;
      }
      console.warn(`This project wants to run an MCP server.\n${question.question}`);
      const allowed = yes || (console.canAsk && isYes(await console.ask("Allow it? [y/N] ", signal)));
      if (!allowed && !console.canAsk) {
        throw new Failure(EXIT.consent, `${serverName(server)} waits for your consent.`, {
          remedy: HOW_TO_CONSENT,
        });
      }
      await answer(question.hash, allowed);
      if (!allowed) throw new Failure(EXIT.consent, `You did not allow ${serverName(server)}.`);
    },
  };
}
