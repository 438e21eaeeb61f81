/**
 * The files of this package that are loaded after main: those of the workers, and of the screens. An update may delete or
 * replace them while Pi runs, and Pi keeps main for all sessions of its process: what follows must be of main's version. Owns: the
 * memory of these files, one for the process, and the copy from which they are loaded after an update: in the user's own folder for
 * code, since the system clears its temp folder, where another user of the machine could then put code in the place of the copy.
 */
import * as fs from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { stampOf } from "../catalog/stamp.ts";
import { codeFolder } from "../shared/process/code-folder.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";
import { LIMITS } from "../shared/protocol/limits.ts";

/** Raw TypeScript in a checkout, one bundled file beside the packed entry. */
export function connectionWorkerUrl(here = import.meta.url): URL {
  return here.endsWith(".ts")
    ? new URL("../../workers/connection.ts", here)
    : new URL("./workers/connection.js", here);
}

/** The user's own folder for code below the agent folder; undefined: there is none that only the user writes. */
export const userCodeFolder = (agentDir: string): string | undefined =>
  codeFolder(agentDir, { fs, path: { dirname, isAbsolute, join }, uid: process.getuid?.() });

/** An update may replace the package: whoever can wait has its files read when Pi has made its first request. */
export const REMEMBER_MS = 3_000;

/** A copy of a Pi that was killed stays. */
const COPY = "pi-mcp-threads-";

async function removeOldCopies(place: string): Promise<void> {
  for (const name of (await readdir(place)).filter((one) => one.startsWith(COPY))) {
    const folder = join(place, name);
    if (Date.now() - (await stat(folder)).mtimeMs > LIMITS.unusedMs) await rm(folder, { recursive: true });
  }
}

/** The screens and their chunks, which lie beside the folder of the workers. */
const OF_SCREENS = /^(screens|chunk-.*)\.js$/;

/** `url`: the file of the connection worker. */
export function createFiles(url: URL) {
  const path = fileURLToPath(url);
  const workers = dirname(path);
  const home = dirname(workers);
  /** Each by its path below `home`, with the stamp that it had. */
  let kept = new Map<string, { code: Buffer; stamp: string }>();
  /** Every folder that a copy was written into: a thread may still load from an older one. */
  const folders: string[] = [];
  /** The newest copy: each of its files with its stamp. */
  let copy: { url: URL; files: [path: string, stamp: string][] } | undefined;
  let locating: Promise<URL> | undefined;
  let agentFolder: string | undefined;

  const namesIn = async (folder: string, fits: RegExp): Promise<string[]> =>
    (await readdir(folder)).filter((name) => fits.test(name));
  /** An update leaves files of the same names, which do not fit this version of main or each other. */
  const isReplaced = async (): Promise<boolean> => {
    const same = [...kept].map(async ([name, { code, stamp }]) => {
      const file = join(home, name);
      return stampOf(file) === stamp || (await readFile(file).catch(() => undefined))?.equals(code) === true;
    });
    return (await Promise.all(same)).includes(false);
  };
  const removeAtExit = (): void => {
    for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
  };
  const writeCopy = async (): Promise<NonNullable<typeof copy>> => {
    const place = agentFolder === undefined ? undefined : userCodeFolder(agentFolder);
    // Old copies only take room.
    if (place !== undefined) await removeOldCopies(place).catch(() => undefined);
    const folder = await mkdtemp(join(place ?? tmpdir(), COPY));
    if (folders.push(folder) === 1) process.once("exit", removeAtExit);
    await mkdir(join(folder, basename(workers)));
    const files = new Map([...kept].map(([name, { code }]) => [join(folder, name), code] as const));
    files.set(join(folder, "package.json"), Buffer.from('{"type":"module"}'));
    for (const [file, code] of files) await writeFile(file, code);
    return {
      url: pathToFileURL(join(folder, basename(workers), basename(path))),
      files: [...files.keys()].map((file) => [file, stampOf(file)]),
    };
  };
  const find = async (): Promise<URL> => {
    if (!(await isReplaced())) return url;
    // What was removed, or is not what was written, is written anew.
    if (copy?.files.some(([file, stamp]) => stampOf(file) !== stamp)) copy = undefined;
    copy ??= await writeCopy();
    return copy.url;
  };
  return {
    url,
    isReplaced,
    /**
     * Keeps the packed files in memory; a copy of them belongs into the agent folder. Does nothing in a checkout, which nobody
     * deletes while Pi runs, nor in a process that ends before `afterMs`.
     */
    remember: async (agentDir: string, afterMs = 0): Promise<void> => {
      if (afterMs > 0) await sleep(afterMs, undefined, { ref: false });
      agentFolder = agentDir;
      if (path.endsWith(".ts") || kept.size > 0) return;
      const names = [
        ...(await namesIn(workers, /\.js$/)).map((name) => join(basename(workers), name)),
        ...(await namesIn(home, OF_SCREENS)),
      ];
      const read = names.map(async (name) => {
        const file = join(home, name);
        // The stamp first: of a file that is replaced meanwhile, the content is compared.
        const stamp = stampOf(file);
        return [name, { code: await readFile(file), stamp }] as const;
      });
      // All files or none: a worker with a part of its files fails later and less clearly.
      kept = new Map(await Promise.all(read));
    },
    /** The URL to start the worker from; after an update, the URL of the copy. Whoever asks meanwhile gets the same copy. */
    locate: (): Promise<URL> => {
      locating ??= find().finally(() => {
        locating = undefined;
      });
      return locating;
    },
  };
}

export type Files = ReturnType<typeof createFiles>;

/** Those of this package. */
export const ownFiles = createFiles(connectionWorkerUrl());

/** Tells whoever begins a session after an update. */
export async function tellUpdate(files: Files, onEvent: (event: WorkerEvent) => void): Promise<void> {
  if (!(await files.isReplaced())) return;
  const text =
    "pi-mcp-threads was updated. This Pi goes on with the version that it has loaded: start Pi again to use the new one.";
  onEvent({ type: "notice", level: "info", text });
}
