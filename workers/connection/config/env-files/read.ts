/**
 * Reads the `envFile` of a server: lines of `NAME=value`, as VS Code and Cursor read them. The values are literal and
 * secret, so that no error holds one.
 */
import { parseEnv } from "node:util";
import { readRegularText, type Unread, whyUnread } from "../../../shared/files/read-regular.ts";
import { withoutBom } from "../files/files.ts";

/** A larger file is not an environment. */
const FILE_BYTES = 1024 * 1024;

export type EnvFile = { entries: Record<string, string> } | { reason: string };

function reasonOf(read: Unread): string {
  if (read.kind === "irregular" && read.what === "a folder") return "it is a folder";
  if (read.kind !== "unreadable") return whyUnread(read);
  const { code } = read;
  return code === "EACCES" || code === "EPERM" ? "it may not be read" : `it cannot be read (${code})`;
}

/** `file`: an absolute path. Never throws. */
export async function readEnvFile(file: string): Promise<EnvFile> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind !== "text") return { reason: reasonOf(read) };
  const text = withoutBom(read.text);
  if (text.includes("\0")) return { reason: "it holds a NUL character" };
  const entries = Object.entries(parseEnv(text)).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return { entries: Object.fromEntries(entries) };
}
