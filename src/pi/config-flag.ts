/**
 * The flag `--mcp-config <path>`: a file in place of `<agentDir>/mcp.json`. Pi tells flags only after the
 * factory, so the factory, which must read the right snapshot, looks at the command line itself.
 */
import { homedir } from "node:os";
import { resolve } from "node:path";

export const CONFIG_FLAG = "mcp-config";

/** The file that the flag names; undefined without one. */
export const configFileOf = (flag: unknown, cwd: string): string | undefined =>
  typeof flag === "string" && flag !== "" ? resolve(cwd, flag.replace(/^~(?=$|[\\/])/, homedir)) : undefined;

/** The value on the command line, as Pi reads it: the next word, or after `=`; the last one counts. */
export function flagOnCommandLine(argv: readonly string[]): string | undefined {
  const name = `--${CONFIG_FLAG}`;
  return argv.reduce<string | undefined>((found, word, at) => {
    const next = argv[at + 1];
    if (word === name && next !== undefined && !/^[-@]/.test(next)) return next;
    return word.startsWith(`${name}=`) ? word.slice(name.length + 1) : found;
  }, undefined);
}
