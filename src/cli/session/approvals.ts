/** The question whether a tool may run, which a rule of the configuration demands. Asked on the terminal alone. */
import { serverName } from "../../report/server-name.ts";
import type { ApprovalAnswer, ApprovalQuestion } from "../../shared/protocol/approval.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import type { Console } from "../console/console.ts";

const NAME_CHARS = 200;

const ANSWERS: Readonly<Record<string, ApprovalAnswer>> = {
  y: "once",
  yes: "once",
  a: "always",
  always: "always",
};

export async function answerApproval(
  { server, tool, args, canAlways }: ApprovalQuestion,
  { console, yes, signal }: { console: Console; yes: boolean; signal: AbortSignal },
): Promise<ApprovalAnswer> {
  const head = `Run ${oneLine(tool, NAME_CHARS)} of the MCP server ${serverName(server)}?`;
  console.warn([head, args === "" ? "It gets no arguments." : args].join("\n"));
  if (yes) return "once";
  if (!console.canAsk) {
    console.warn("Nobody can be asked here: it does not run. --yes allows it once.");
    return "no";
  }
  const line = await console.ask(canAlways ? "Allow it? [y/N, a: always] " : "Allow it? [y/N] ", signal);
  const answer = ANSWERS[line?.trim().toLowerCase() ?? ""] ?? "no";
  return answer === "always" && !canAlways ? "no" : answer;
}
