/**
 * The questions about skills of servers: whether one may be loaded, and whether a tool may run that a loaded one may have led
 * to. The first choice lets nothing happen, since Enter may be meant for what was on the screen before.
 */
import type { PiContext } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import type { ApprovalAnswer, SkillQuestion } from "../../shared/protocol/calls.ts";
import { grouped } from "../../shared/text/amounts.ts";
import { oneLine, replaceHidden } from "../../shared/text/unprintable.ts";
import { cutTo, printable } from "../../shared/text/width.ts";
import { ALL_ARGUMENTS, askInPages, NAME_CELLS, NO } from "../dialogs/questions.ts";

const LOAD: readonly [choice: string, answer: ApprovalAnswer][] = [
  [NO, "no"],
  ["Load it for this session", "session"],
  ["Load it always, until it changes", "always"],
];

export async function askAboutSkill(
  ctx: PiContext,
  { server, name, description, files, canAlways }: SkillQuestion,
  signal: AbortSignal,
): Promise<ApprovalAnswer> {
  const head = `Load the skill ${cutTo(name, NAME_CELLS)} of the MCP server ${cutTo(serverName(server), NAME_CELLS)}? Its text can lead the model to run commands.`;
  const answers = LOAD.filter(([, answer]) => answer !== "always" || canAlways);
  const text = [`│ ${description}`, files].join("\n");
  return (
    (await askInPages(ctx, { head, text, answers, isNoFirst: true, whole: "Show all of it" }, signal)) ?? "no"
  );
}

const ARGUMENT_CHARS = 20_000;

/** What a terminal acts on, or nobody sees, by its code: a shell runs what stands within an escape sequence. */
const withCodes = (text: string): string =>
  replaceHidden(text, (unit) => `\\u{${unit.charCodeAt(0).toString(16)}}`);

/** The command of a shell as it is, any other arguments as JSON, one on each line. */
export function inputText(input: Record<string, unknown>): string {
  const { command, ...others } = input;
  const shell =
    typeof command === "string"
      ? [`$ ${command}`]
      : command === undefined
        ? []
        : [`command: ${JSON.stringify(command)}`];
  const rest = Object.entries(others).map(
    ([key, value]) => `${oneLine(key, NAME_CELLS)}: ${JSON.stringify(value)}`,
  );
  const text = withCodes([...shell, ...rest].join("\n"));
  if (text.length <= ARGUMENT_CHARS) return text.toWellFormed();
  return `${text.slice(0, ARGUMENT_CHARS).toWellFormed()}…\n(cut: only the first ${grouped(ARGUMENT_CHARS)} of ${grouped(text.length)} characters are shown)`;
}

interface RunQuestion {
  /** In words, in one line. */
  tool: string;
  input: Record<string, unknown>;
  /** The skills in words. */
  skills: string;
  /** The yes counts for this one call. */
  each: boolean;
}

/** Whether the tool may run. The signal takes the dialog away: then it may not. */
export async function askToRun(
  ctx: PiContext,
  { tool, input, skills, each }: RunQuestion,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const head = `Run ${tool}? The skill ${skills} is in the conversation and may have led to it.`;
  const yes = each ? "Yes, this once" : "Yes, here and for the rest of this session";
  const answers: [string, boolean][] = [
    [NO, false],
    [yes, true],
  ];
  const text = printable(inputText(input));
  return (
    (await askInPages(
      ctx,
      { head: printable(head), text, answers, isNoFirst: true, whole: ALL_ARGUMENTS },
      signal,
    )) === true
  );
}
