/**
 * A file of this package that a worker starts later than itself. An update may delete or replace it while the worker runs, and
 * another version would not fit: then main is asked, which keeps the files of the worker's own version.
 */
import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { settledWithin } from "./pace/abort.ts";

/** Main copies about a MB of files, or does not. */
const FIND_MS = 10_000;

let workerFolder: (() => Promise<string>) | undefined;

/** `ask` answers in which folder the files are after an update. */
export function findOwnFilesBy(ask: () => Promise<string>): void {
  workerFolder = ask;
}

export class OwnFile {
  #path: string;
  /** When the file became what it was when it was first looked at, or when main named it. */
  #knownMs: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get path(): string {
    return this.#path;
  }

  #changedMs(): number | undefined {
    return statSync(this.#path, { throwIfNoEntry: false })?.ctimeMs;
  }

  /** Remembers which file belongs to this worker. */
  remember(): void {
    this.#knownMs ??= this.#changedMs();
  }

  /** What the file imports is gone, so that the file itself says nothing any more. */
  distrust(): void {
    this.#knownMs = Number.NaN;
  }

  isKnown(): boolean {
    const now = this.#changedMs();
    return now !== undefined && now === (this.#knownMs ?? now);
  }

  /** Asks main where the file is now. Throws if main does not answer. */
  async find(): Promise<void> {
    const folder = workerFolder?.();
    if (!folder || !(await settledWithin(folder, FIND_MS)))
      throw new Error("a file of pi-mcp-threads is gone, as after an update");
    this.#path = join(await folder, basename(this.#path));
    this.#knownMs = statSync(this.#path).ctimeMs;
  }
}
