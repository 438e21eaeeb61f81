/**
 * Values that a person types while a server is added. Each has a file of its own that only the user can read; the entry
 * in mcp.json gets the command that prints it.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { writeFileAtomic } from "../../../shared/files/file-system.ts";
import { codeOf, PRIVATE_FILE, PRIVATE_FOLDER } from "../../../shared/files/read-regular.ts";

/** In Pi's agent folder. */
const FOLDER = "mcp-keys";
/** Far more than a key or a token needs. */
const VALUE_CHARS = 16 * 1024;
const WORD_CHARS = 40;

/** A name for a file that no server's name can lead elsewhere; other names have other files. */
function fileName(server: string, name: string): string {
  const plain = `${server}.${name}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, WORD_CHARS);
  const hash = createHash("sha256")
    .update(JSON.stringify([server, name]))
    .digest("hex")
    .slice(0, 8);
  return `${plain.replace(/^\.+/, "_")}-${hash}`;
}

const printing = (file: string): string =>
  process.platform === "win32" ? `!type "${file}"` : `!cat '${file.replaceAll("'", `'\\''`)}'`;

/** Throws `bad_config` if the value is too long or no file can be written. */
export async function keepValue(
  agentDir: string,
  { server, name, value }: { server: string; name: string; value: string },
): Promise<{ file: string; written: string }> {
  if (value.length > VALUE_CHARS || value.includes("\0")) {
    throw new ThreadsError("bad_config", `The value of ${name} cannot be kept: it is not a key or token.`, {
      remedy: "Write the whole of it into a file, and name a command that prints it.",
    });
  }
  const folder = join(agentDir, FOLDER);
  const file = join(folder, fileName(server, name));
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  // An earlier file keeps its rights when it is replaced, so others must not read it before the value is in it.
  await chmod(file, PRIVATE_FILE).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
  await writeFileAtomic(file, `${value}\n`);
  return { file, written: printing(file) };
}
