/**
 * The files of this package that are loaded after main: those of the workers, and of the screens. An update may delete or
 * replace them while Pi runs, and Pi keeps main for all sessions of its process: what follows must be of main's version. Owns: the
 * memory of these files, one for the process, and the copy in a private folder from which they are loaded after an update.
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { stampOf } from "../catalog/stamp.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";

/** Raw TypeScript in a checkout, one bundled file beside the packed entry. */
export function connectionWorkerUrl(here = import.meta.url): URL {
  return here.endsWith(".ts")
    ? new URL("../../workers/connection.ts", here)
    : new URL("./workers/connection.js", here);
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
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  };
  const writeCopy = async (): Promise<NonNullable<typeof copy>> => {
    const folder = await mkdtemp(join(tmpdir(), "pi-mcp-threads-"));
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
    // The system clears its temp folder, and what another user of the machine puts there has another stamp.
    if (copy?.files.some(([file, stamp]) => stampOf(file) !== stamp)) copy = undefined;
    copy ??= await writeCopy();
    return copy.url;
  };
  return {
    url,
    isReplaced,
    /** Keeps the packed files in memory. Does nothing in a checkout, which nobody deletes while Pi runs. */
    remember: async (): Promise<void> => {
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
