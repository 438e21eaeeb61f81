/** Owns: a console of the command whose output is kept: in a pipe, or on a terminal. */
import { PassThrough } from "node:stream";
import { Console, type ConsoleOptions } from "../../../src/cli/console/console.ts";

export interface Captured {
  console: Console;
  /** All of stdout so far. */
  stdout(): string;
  stderr(): string;
}

export function captureConsole({
  isTTY,
  ...options
}: Partial<ConsoleOptions> & { isTTY?: boolean } = {}): Captured {
  const written = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof written): PassThrough =>
    Object.assign(new PassThrough(), isTTY ? { isTTY } : {}).on("data", (chunk: Buffer) => {
      written[name] += String(chunk);
    });
  const console = new Console({
    stdin: new PassThrough(),
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    env: {},
    json: false,
    quiet: false,
    noColor: true,
    ...options,
  });
  return { console, stdout: () => written.stdout, stderr: () => written.stderr };
}
