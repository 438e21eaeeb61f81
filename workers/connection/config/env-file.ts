/**
 * Reads the `envFile` of a server: lines of `NAME=value`, as VS Code and Cursor read them. Its values are
 * literal and secret: they are in no error.
 */
import { readFile, stat } from "node:fs/promises";
import { parseEnv } from "node:util";

/** Larger files are no environment. */
const FILE_BYTES = 1024 * 1024;

export type EnvFile = { entries: Record<string, string> } | { reason: string };

const REASONS: Record<string, string> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "it may not be read",
  EPERM: "it may not be read",
};

/** `file`: an absolute path. Never throws. */
export async function readEnvFile(file: string): Promise<EnvFile> {
  try {
    const { size } = await stat(file);
    if (size > FILE_BYTES) return { reason: `it has ${size} bytes` };
    const text = (await readFile(file, "utf8")).replace(/^\uFEFF/, "");
    if (text.includes("\0")) return { reason: "it holds a NUL character" };
    const entries = Object.entries(parseEnv(text)).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    return { entries: Object.fromEntries(entries) };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return { reason: REASONS[code] ?? `it cannot be read (${code || "unknown error"})` };
  }
}
