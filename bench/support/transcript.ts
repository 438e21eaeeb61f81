/**
 * Owns: the record of a run: the model's calls from its requests, the threads' work from the log.
 * Must not: print.
 */
import { type ModelRequest, messageText } from "../../test/support/model.ts";

/** One tool call of the model. */
export interface Step {
  tool: string;
  args: unknown;
  /** The text that the model got. */
  result: string;
  /** Tools that are declared after the call but were not declared before. */
  declared: readonly string[];
}

/** All calls in order, from the requests that contain their results. */
export function stepsOf(requests: readonly ModelRequest[]): Step[] {
  return requests.slice(1).flatMap((request, index) => {
    const before = requests[index]?.toolNames ?? [];
    const asked = request.messages.findLast((message) => message.role === "assistant");
    const declared = request.toolNames.filter((name) => !before.includes(name));
    return (asked?.tool_calls ?? []).map((call) => {
      const answer = request.messages.find((message) => message.tool_call_id === call.id);
      return {
        tool: call.function.name,
        args: JSON.parse(call.function.arguments) as unknown,
        result: answer ? messageText(answer) : "(no result)",
        declared,
      };
    });
  });
}

/** A line of the log as `workers/shared/log.ts` writes it: `<time> <level> [<thread>] <message>`. */
const LOG_LINE = /^(\S+) (\w+)\s+\[([^\]]+)\] (.*)$/;

/** Lines of the log by thread, each with the milliseconds since the first line and the message. */
export function threadLines(log: string): Map<string, string[]> {
  const threads = new Map<string, string[]>();
  let firstAt: number | undefined;
  for (const line of log.split("\n")) {
    const match = LOG_LINE.exec(line);
    if (match === null) continue;
    const [, time = "", level = "", thread = "", message = ""] = match;
    firstAt ??= Date.parse(time);
    const at = `${Date.parse(time) - firstAt}`.padStart(5);
    const marked = level === "info" ? message : `${level}: ${message}`;
    threads.set(thread, [...(threads.get(thread) ?? []), `${at} ms  ${marked}`]);
  }
  return threads;
}
