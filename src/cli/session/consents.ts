/**
 * The consent to a project's server: asked on the terminal with everything that would run, given by `--yes` after showing
 * it, and otherwise missing. The worker remembers the answer. A project's server with the name of an own one is asked about
 * with `--trust-project` alone: the name means the own server, as in Pi until the person allows the other one.
 */
import { refusedLine } from "../../report/refused.ts";
import { serverName } from "../../report/server-name.ts";
import type { StatusReport } from "../../shared/protocol/status.ts";
import { type Console, EXIT, Failure } from "../console/console.ts";
import { HOW_TO_CONSENT } from "../state/state.ts";

interface ConsentsOptions {
  console: Console;
  yes: boolean;
  /** `--trust-project`. */
  trustProject: boolean;
  signal: AbortSignal;
  answer: (hash: string, allow: boolean) => Promise<unknown>;
  /** Opens the questions that were answered with no; answers what there is to ask then. */
  again: () => Promise<StatusReport>;
}

const PROJECT_WANTS = "This project wants to run an MCP server.";
const OTHER_ONE =
  "A file of this project names another one so, which --trust-project shows and asks about, also beside --yes.";
const HOW_TO_ASK_AGAIN =
  "In a terminal the command shows what would run, and asks again. --yes takes back no refusal.";

const isYes = (line: string | undefined): boolean => /^y(es)?$/i.test(line?.trim() ?? "");

export function createConsents({ console, yes, trustProject, signal, answer, again }: ConsentsOptions) {
  return {
    allow: async (server: string, report: StatusReport): Promise<void> => {
      const refusalIn = ({ refused }: StatusReport) => refused.find(({ name }) => name === server);
      const withheld = report.questions.find((one) => one.server === server) ?? refusalIn(report);
      if (withheld?.inPlace && !trustProject) {
        console.note(`${serverName(server)} is your own server. ${OTHER_ONE}`);
        return;
      }
      const wasRefused = refusalIn(report)?.byPerson === true;
      const now = wasRefused && console.canAsk ? await again() : report;
      const question = now.questions.find((one) => one.server === server);
      if (!question) {
        const refusal = refusalIn(now);
        if (!refusal) return;
        throw new Failure(EXIT.consent, refusedLine(refusal), {
          remedy: wasRefused ? HOW_TO_ASK_AGAIN : HOW_TO_CONSENT,
        });
      }
      const lead = wasRefused ? "You refused this MCP server of the project before." : PROJECT_WANTS;
      console.warn(`${lead}\n${question.question}`);
      const mayAnswerYes = yes && !wasRefused;
      const asked = !mayAnswerYes && console.canAsk;
      const line = asked ? await console.ask("Allow it? [y/N] ", signal) : undefined;
      const allowed = mayAnswerYes || isYes(line);
      // Ctrl-D, a signal or the end of the time is no answer: the question stays open.
      if (!allowed && line === undefined) {
        throw new Failure(EXIT.consent, `${serverName(server)} waits for your consent.`, {
          remedy: HOW_TO_CONSENT,
        });
      }
      await answer(question.hash, allowed);
      if (!allowed) throw new Failure(EXIT.consent, `You did not allow ${serverName(server)}.`);
    },
  };
}
