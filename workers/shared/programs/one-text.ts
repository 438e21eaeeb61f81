/**
 * A command that holds its arguments too, `"command": "npx -y pkg"`: no program has that name, since no shell reads it.
 */
import { resolve } from "node:path";
import { splitWords } from "../../../src/shared/text/split-words.ts";
import { isFile } from "./find-program.ts";

/** The command and its arguments; undefined: the text is one program, or a path with a space in it. */
export async function dividedCommand(
  text: string,
  cwd: string,
): Promise<{ command: string; args: string[] } | undefined> {
  const split = splitWords(text.trim());
  if ("problem" in split) return undefined;
  const [command, ...args] = split.words;
  if (command === undefined || args.length === 0) return undefined;
  const isOne = /[\\/]/.test(command) && !(await isFile(resolve(cwd, command)));
  return isOne ? undefined : { command, args };
}

export const dividedRemedy = ({ command, args }: { command: string; args: readonly string[] }): string =>
  `Write "command": ${JSON.stringify(command)}, and begin "args" with ${args.map((arg) => JSON.stringify(arg)).join(", ")}.`;
