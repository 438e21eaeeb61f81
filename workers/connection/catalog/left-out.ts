/**
 * Servers whose tools cannot be published, by the hash of their definition: tools that made the cache worker fail once
 * do so again, and each time all other servers wait. Remembered for the session and, in a file beside the snapshot of
 * the working directory, for the starts of the next day.
 */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { writeFileAtomic } from "../../shared/files/file-system.ts";
import { readRegularText } from "../../shared/files/read-regular.ts";
import type { Log } from "../../shared/log.ts";

/** The definition of a server that was left out, and when that was, in milliseconds since the epoch. */
interface Mark {
  configHash: string;
  at: number;
}

/** Enough for all servers that can be configured. A larger file was not written by this extension. */
const FILE_BYTES = 64 * 1024;
const VERSION = 1;

/** `.../<hash>.bin` -> `.../<hash>.left-out.json`. */
export const leftOutPath = (snapshotPath: string): string => snapshotPath.replace(/\.bin$/, ".left-out.json");

function readMarks(text: string, nowMs: number): [string, Mark][] {
  const content: unknown = JSON.parse(text);
  if (!isObject(content) || content.version !== VERSION || !isObject(content.servers)) return [];
  return Object.entries(content.servers).flatMap(([name, mark]): [string, Mark][] => {
    if (!isObject(mark) || typeof mark.configHash !== "string" || typeof mark.at !== "number") return [];
    const age = nowMs - mark.at;
    const isRecent = age > -LIMITS.clockSkewMs && age < LIMITS.leftOutMs;
    return isRecent ? [[name, { configHash: mark.configHash, at: mark.at }]] : [];
  });
}

export class LeftOutServers {
  readonly #path: () => string;
  readonly #hashOf: (server: string) => string;
  readonly #log: Log;
  #marks = new Map<string, Mark>();
  #loaded: Promise<void> | undefined;
  #saved: Promise<void> = Promise.resolve();

  /** `hashOf`: the hash of the definition that a server has now; empty if it is unknown. */
  constructor({ path, hashOf, log }: { path: () => string; hashOf: (server: string) => string; log: Log }) {
    this.#path = path;
    this.#hashOf = hashOf;
    this.#log = log;
  }

  /** Reads the file once. Never rejects: without the file each server is tried. */
  load(): Promise<void> {
    this.#loaded ??= this.#read().catch(() => undefined);
    return this.#loaded;
  }

  async #read(): Promise<void> {
    const read = await readRegularText(this.#path(), FILE_BYTES);
    if (read.kind !== "text") return;
    this.#marks = new Map([...readMarks(read.text, Date.now()), ...this.#marks]);
  }

  has(server: string): boolean {
    const mark = this.#marks.get(server);
    return mark !== undefined && mark.configHash === this.#hashOf(server);
  }

  add(server: string): void {
    this.#marks.set(server, { configHash: this.#hashOf(server), at: Date.now() });
    this.#save();
  }

  /**
   * Forgets the server, or all servers, so that the next publication tries them again. Answers whether any was left out.
   */
  forget(server: string | undefined): boolean {
    const names = server === undefined ? [...this.#marks.keys()] : [server];
    const gone = names.filter((name) => this.#marks.delete(name));
    if (gone.length > 0) this.#save();
    return gone.length > 0;
  }

  /** Settles when the file is as it should be, or could not be written. */
  saved(): Promise<void> {
    return this.#saved;
  }

  #save(): void {
    // Without a hash a mark would hold for every definition.
    const servers = Object.fromEntries([...this.#marks].filter(([, { configHash }]) => configHash !== ""));
    this.#saved = this.#saved
      .then(() => writeFileAtomic(this.#path(), JSON.stringify({ version: VERSION, servers })))
      .catch((error) => this.#log.warn(`${this.#path()} could not be written: ${messageOf(error)}`));
  }
}
