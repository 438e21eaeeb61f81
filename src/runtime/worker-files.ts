/**
 * The files of the worker's code. An update of the package may delete them while Pi runs, and a worker that crashes must
 * still be started again. So the packed files are kept in memory and, if they are gone, written to a private temp
 * folder.
 */
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Raw TypeScript in a checkout, one bundled file beside the packed entry. */
export function connectionWorkerUrl(here = import.meta.url): URL {
  return here.endsWith(".ts")
    ? new URL("../../workers/connection.ts", here)
    : new URL("./workers/connection.js", here);
}

export interface WorkerFiles {
  url: URL;
  /** Keeps the packed files in memory. Does nothing in a checkout, which nobody deletes while Pi runs. */
  remember(): Promise<void>;
  /** The URL to start the worker from; after a deletion, the URL of the copy. */
  locate(): Promise<URL>;
  /** Removes the copy, if one was made. Does not fail. */
  dispose(): Promise<void>;
}

export function createWorkerFiles(url: URL): WorkerFiles {
  const path = fileURLToPath(url);
  let kept = new Map<string, Buffer>();
  let copy: URL | undefined;
  const exists = (file: string): Promise<boolean> =>
    access(file).then(
      () => true,
      () => false,
    );
  return {
    url,
    remember: async () => {
      if (path.endsWith(".ts") || kept.size > 0) return;
      const folder = dirname(path);
      const names = (await readdir(folder)).filter((name) => name.endsWith(".js"));
      const read = await Promise.all(names.map((name) => readFile(join(folder, name))));
      // All files or none: a worker with a part of its files fails later and less clearly.
      kept = new Map(names.map((name, i) => [name, read[i] ?? Buffer.alloc(0)]));
    },
    locate: async () => {
      if (copy) return copy;
      // An update leaves a `connection.js`, but not the files that this version of main knows.
      const found = await Promise.all([...kept.keys()].map((name) => exists(join(dirname(path), name))));
      if (found.every(Boolean)) return url;
      const folder = await mkdtemp(join(tmpdir(), "pi-mcp-threads-"));
      for (const [name, code] of kept) await writeFile(join(folder, name), code);
      await writeFile(join(folder, "package.json"), '{"type":"module"}');
      copy = pathToFileURL(join(folder, "connection.js"));
      return copy;
    },
    dispose: async () => {
      if (!copy) return;
      // The system cleans its temp folder if the removal fails here.
      await rm(dirname(fileURLToPath(copy)), { recursive: true, force: true }).catch(() => undefined);
      copy = undefined;
    },
  };
}
