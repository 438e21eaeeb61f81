/**
 * Questions on the terminal: written to stderr, answered by a line of stdin. Without a terminal nobody is asked. The
 * terminal itself edits the line, so that Ctrl-C stays a signal.
 */
import { createInterface } from "node:readline";
import { LINE_CHARS } from "./limits.ts";

export interface PromptStreams {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

/** Asks for one line. Undefined: the input has ended, or the signal aborts. */
export function askLine(
  { input, output }: PromptStreams,
  question: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve(undefined);
      return;
    }
    const lines = createInterface({ input, terminal: false });
    const end = (line: string | undefined): void => {
      // Closing ends it once more.
      resolve(line?.slice(0, LINE_CHARS));
      signal?.removeEventListener("abort", onAbort);
      lines.close();
    };
    const onAbort = (): void => {
      output.write("\n");
      end(undefined);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    lines.once("line", (line) => end(line));
    lines.once("close", () => end(undefined));
    output.write(question);
  });
}
