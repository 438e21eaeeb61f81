/** Owns: processes that change one sign-in of a store, are waited for and killed. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { oneFile } from "../../../../../support/one-file.ts";

const PROGRAM = (): string => oneFile("changes-record", join(import.meta.dirname, "changes-record.ts")).file;

export interface Changer {
  child: ChildProcessWithoutNullStreams;
  /** Settles when the process has printed so many lines, or has ended. */
  printed: (lines: number) => Promise<void>;
  /** `last`: the last line. */
  ended: Promise<{ code: number | null; errors: string; last: string }>;
}

/** `env`: then the tokens go to the system's store, whose program is found with it. */
export function startChanger(
  agentDir: string,
  count: string,
  env?: Record<string, string | undefined>,
): Changer {
  const place = env === undefined ? "file" : "system";
  const child = spawn(process.execPath, [PROGRAM(), agentDir, count, place], { env: env ?? process.env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [lines, errors, last] = [0, "", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const reader = createInterface(child.stdout).on("line", (line) => {
    lines++;
    last = line;
    child.emit("line");
  });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, errors, last }));
  const printed = async (wanted: number): Promise<void> => {
    while (lines < wanted)
      await Promise.race([once(child, "line"), ended.then(() => Promise.reject(new Error(errors)))]);
  };
  onTestFinished(() => reader.close());
  return { child, printed, ended };
}
