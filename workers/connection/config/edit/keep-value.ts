/**
 * Values that a person types while a server is added. Each has a file of its own that only the user can read; the entry
 * in mcp.json gets the command that prints it.
 */
import { randomBytes } from "node:crypto";
import { chmod, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { nodeFiles, sweepFolder, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { makeFolder } from "../../../shared/files/owner.ts";
import { PRIVATE_FOLDER } from "../../../shared/files/read-regular.ts";

/** In Pi's agent folder. */
const FOLDER = "mcp-keys";
/** Far more than a key or a token needs. */
const VALUE_CHARS = 16 * 1024;
const WORD_CHARS = 40;

/** A file of its own for each value, wherever the server's name would lead: an entry that is there already keeps its value. */
function fileName(server: string, name: string): string {
  const plain = `${server}.${name}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, WORD_CHARS);
  return `${plain.replace(/^\.+/, "_")}-${randomBytes(4).toString("hex")}`;
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
  await makeFolder(folder);
  // Throws where the file system refuses chmod: files there are as open as their folder, whatever mode they ask for.
  if ((await stat(folder)).mode & 0o077) await chmod(folder, PRIVATE_FOLDER);
  await writeFileAtomic(file, `${value}\n`);
  await sweepFolder(folder, nodeFiles, Date.now());
  return { file, written: printing(file) };
}

const NAMED = new RegExp(`${FOLDER}[\\\\/]{1,4}([A-Za-z0-9._-]{1,${WORD_CHARS}}-[0-9a-f]{8})`, "g");

/** The files of values that texts of the configuration name, without their folder. */
export const keptIn = (texts: readonly (string | undefined)[]): string[] =>
  texts.flatMap((text = "") => [...text.matchAll(NAMED)].map(([, name = ""]) => name));

/** Those of the values that are there, with their folder. Never rejects. */
export async function valuesThere(agentDir: string, files: readonly string[]): Promise<string[]> {
  const paths = files.map((file) => join(agentDir, FOLDER, basename(file)));
  const there = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        () => [path],
        () => [],
      ),
    ),
  );
  return there.flat();
}

/** Removes values, and answers how many were there and are gone. Never rejects: each other file is found where it was. */
export async function dropValues(agentDir: string, files: readonly string[]): Promise<number> {
  const gone = files.map((file) =>
    rm(join(agentDir, FOLDER, basename(file))).then(
      () => 1,
      () => 0,
    ),
  );
  return (await Promise.all(gone)).reduce<number>((sum, one) => sum + one, 0);
}
