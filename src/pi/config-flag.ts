/**
 * The flag `--mcp-config <path>`: a file in place of `<agentDir>/mcp.json`. The factory must read the right snapshot,
 * and Pi knows the value of a flag only after the factory has run. So the factory reads the command line itself.
 */
import { homedir } from "node:os";
import { resolve } from "node:path";

export const CONFIG_FLAG = "mcp-config";

/** Absolute path of the file that the flag names; undefined if the flag is not set. */
export const configFileOf = (flag: unknown, cwd: string): string | undefined =>
  typeof flag === "string" && flag !== "" ? resolve(cwd, flag.replace(/^~(?=$|[\\/])/, homedir)) : undefined;

/** The flag's value on the command line, read as Pi reads it: the next word, or what follows `=`; the last one counts. */
export function flagOnCommandLine(argv: readonly string[]): string | undefined {
  const name = `--${CONFIG_FLAG}`;
  return argv.reduce<string | undefined>((found, word, at) => {
    const next = argv[at + 1];
    if (word === name && next !== undefined && !/^[-@]/.test(next)) return next;
    return word.startsWith(`${name}=`) ? word.slice(name.length + 1) : found;
  }, undefined);
}
