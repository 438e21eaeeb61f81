/**
 * The file of one sign-in. Owns: reading, replacing and removing the file, and what holds if the disk takes nothing. A file
 * that cannot be used is kept aside before it is replaced. Must not: decide what a sign-in is worth.
 */
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describeError } from "../../../../src/shared/protocol/errors.ts";
import {
  type FileSystem,
  keepAside,
  reasonOf,
  sweepTemps,
  writeFileAtomic,
} from "../../../shared/files/file-system.ts";
import type { LockTimes } from "../../../shared/files/lock.ts";
import { explainProblem, SignInProblem, type SignInRecord } from "../model/model.ts";
import { CachedFile, FILE_BYTES } from "./cached-file.ts";
import { makePrivate, type Refused, refusedFolder, shutOthersOut } from "./guard.ts";
import { fileLocked, type Held, type LockOptions, locked } from "./lock.ts";
import type { Place } from "./place.ts";
import { stateOf, tellOnce } from "./process-state.ts";
import { formatRecord, hasTokens, parseRecord } from "./record.ts";

/** What the store uses of the system; a test passes its own. */
export interface StoreSystem {
  files: FileSystem;
  lockTimes: LockTimes;
}

export interface RecordFileOptions extends StoreSystem {
  server: string;
  url: string;
  place: Place;
  onNote: (note: string) => void;
  warn: (text: string) => void;
}

/** The sign-in while its lock is held. */
export interface HeldRecord {
  readonly record: SignInRecord | undefined;
  /** What the disk does not take is kept in memory. */
  write(record: SignInRecord): Promise<void>;
  /** Answers why the disk does not take it; then nothing has changed. */
  writeToDisk(record: SignInRecord): Promise<string | undefined>;
  forget(): Promise<void>;
}

/** Another process took the lock while this one was suspended. */
class LockLost extends Error {}

const wordsOf = ({ path, what }: Refused): string => `${path}: ${what}`;

const whyNot = (error: unknown): string =>
  error instanceof SignInProblem ? "another process does not release it" : reasonOf(error);

/** Whether the name is that of the file, of a copy that was kept aside, or of a writer's temp file. */
const isOfFile = (file: string, name: string): boolean =>
  name === file ||
  name.startsWith(`${file}.corrupt-`) ||
  (name.startsWith(`.${file}.`) && /^[0-9a-f]{12}\.tmp$/.test(name.slice(file.length + 2)));

export class RecordFile {
  readonly #options: RecordFileOptions;
  readonly #file: CachedFile<SignInRecord>;

  constructor(options: RecordFileOptions) {
    const { place, server, url, onNote, warn } = options;
    this.#options = options;
    this.#file = new CachedFile({
      path: place.file,
      place,
      parse: (text) => {
        const parsed = parseRecord(text);
        const isOurs = "what" in parsed || (parsed.value.server === server && parsed.value.url === url);
        return isOurs ? parsed : { what: "it is the sign-in of another server or url" };
      },
      onRefused: warn,
      onUnusable: onNote,
    });
  }

  /** Never rejects. */
  async read(): Promise<SignInRecord | undefined> {
    const { stamp, value } = await this.#file.read();
    return this.#keptOr(stamp, value);
  }

  /** Runs `work` under the lock. Throws `SignInProblem` "lock-busy" or "cancelled", and what `work` throws. */
  async locked<T>(work: (held: HeldRecord) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { place, files, lockTimes } = this.#options;
    const options: LockOptions = { files, times: lockTimes, signal };
    const run = async (held: Held): Promise<T> => {
      const { stamp, value } = await this.#file.readAnew();
      return work(this.#held(held, this.#keptOr(stamp, value), options));
    };
    // Nothing is written where a link may lead elsewhere, not even a lock.
    const refused = await refusedFolder(place);
    try {
      return await locked(place.file, { ...options, refused: refused && wordsOf(refused) }, run);
    } finally {
      // Fails if the folder holds anything, which is then still needed.
      if (refused === undefined) await files.remove(place.folder).catch(() => undefined);
    }
  }

  #keptOr(stamp: string, value: SignInRecord | undefined): SignInRecord | undefined {
    const state = stateOf(this.#options.place.file);
    if (state.kept?.stamp === stamp) return state.kept.record;
    // The file has changed since: another process wrote what is newer.
    delete state.kept;
    return value;
  }

  #held(held: Held, found: SignInRecord | undefined, options: LockOptions): HeldRecord {
    let record = found;
    const writeToDisk = async (next: SignInRecord): Promise<string | undefined> => {
      try {
        record = await this.#writeOrYield(next, held, found, options);
        return undefined;
      } catch (error) {
        return whyNot(error);
      }
    };
    return {
      get record() {
        return record;
      },
      writeToDisk,
      write: async (next) => {
        const why = await writeToDisk(next);
        if (why === undefined) return;
        await this.#keep(next, why);
        record = next;
      },
      forget: async () => {
        await this.#forget();
        record = undefined;
      },
    };
  }

  /** Answers what the file then holds. Throws why the disk does not take it. */
  async #writeOrYield(
    next: SignInRecord,
    held: Held,
    before: SignInRecord | undefined,
    options: LockOptions,
  ): Promise<SignInRecord> {
    try {
      if (held.kind === "unlocked") throw new Error(held.why);
      await this.#replace(next, held.holds);
      return next;
    } catch (error) {
      if (!(error instanceof LockLost)) throw error;
    }
    const { place, onNote } = this.#options;
    // A token that was just issued is not given up because the user cancels something.
    const { signal } = new AbortController();
    return fileLocked(place.file, { ...options, signal }, async (again) => {
      if (again.kind === "unlocked") throw new Error(again.why);
      const { value } = await this.#file.readAnew();
      if (value !== undefined && hasTokens(value) && value.refresh_token !== before?.refresh_token) {
        onNote(
          `${place.file}: another process renewed the sign-in while this one stood still; that one counts.`,
        );
        return value;
      }
      await this.#replace(next, again.holds);
      return next;
    });
  }

  async #replace(next: SignInRecord, holds: () => Promise<boolean>): Promise<void> {
    const { place, files, server } = this.#options;
    const text = formatRecord(next);
    if (Buffer.byteLength(text) > FILE_BYTES) throw new Error(`it is larger than ${FILE_BYTES} bytes`);
    const parsed = parseRecord(text);
    if ("what" in parsed || !isDeepStrictEqual(parsed.value, JSON.parse(text)))
      throw new Error("it has a value that no sign-in has");
    const found = await this.#file.readAnew();
    const refused = found.refused ?? (await refusedFolder(place));
    if (refused) throw new Error(wordsOf(refused));
    await makePrivate(place);
    if (found.mode !== undefined) await shutOthersOut(place.file, found.mode);
    await writeFileAtomic(place.file, text, {
      files,
      beforeReplace: async (target) => {
        if (!(await holds())) throw new LockLost(`another process has the sign-in of ${server} now`);
        if (found.isUnusable) await keepAside(target, files, Date.now());
      },
    });
    delete stateOf(place.file).kept;
    tellOnce(place.file, "writing", { text: undefined, tell: this.#options.warn });
    await sweepTemps(place.file, files, Date.now());
  }

  /** Keeps what the disk does not take, until the file changes or this process ends. Tells that once. */
  async #keep(record: SignInRecord | undefined, what: string): Promise<void> {
    const { place, server, warn } = this.#options;
    const { stamp } = await this.#file.readAnew();
    stateOf(place.file).kept = { record, stamp };
    const problem = new SignInProblem("store-unwritable", { path: place.file, what });
    // The facts are a path and a reason of the file system: there is no secret in them.
    const unwritten = explainProblem(problem, { server, redact: (fact) => fact });
    const unremoved = `${server}: the sign-in could not be removed from ${place.file}: ${what}. Delete the file.`;
    const text = record === undefined ? unremoved : describeError(unwritten);
    tellOnce(place.file, "writing", { text, tell: warn });
  }

  /** Removes the file with its unusable copies and what killed writers left. */
  async #forget(): Promise<void> {
    const { place, files } = this.#options;
    const { refused } = await this.#file.readAnew();
    delete stateOf(place.file).kept;
    // A file that is refused counts as absent, and is not ours to remove.
    if (refused ?? (await refusedFolder(place))) return;
    try {
      const names = (await files.list(place.folder)).filter((name) => isOfFile(basename(place.file), name));
      for (const name of names) await files.remove(join(place.folder, name));
    } catch (error) {
      await this.#keep(undefined, reasonOf(error));
    }
  }
}
