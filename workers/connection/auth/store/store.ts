/**
 * The stored sign-in of one server. Owns: reading, replacing and removing it under the lock that all processes share, what
 * holds if the disk takes nothing, the tokens that someone else put there, and Pi's own sign-ins, which are moved here after
 * a yes. Must not: send anything.
 */
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describeError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import {
  keepAside,
  nodeFiles,
  reasonOf,
  sweepTemps,
  writeFileAtomic,
} from "../../../shared/files/file-system.ts";
import { type LockTimes, withLock } from "../../../shared/files/lock.ts";
import { codeOf } from "../../../shared/files/read-regular.ts";
import { explainProblem, type GivenTokens, SignInProblem, type SignInRecord } from "../model/model.ts";
import {
  CachedFile,
  FILE_BYTES,
  folderNameOf,
  inTurn,
  makePrivate,
  nameOnDisk,
  type Place,
  placeOf,
  type Refused,
  refusedFolder,
  type StoreOptions,
  shutOthersOut,
  stateOf,
  tellOnce,
} from "./file.ts";
import { createPiFile, PI_TIMES } from "./pi.ts";
import { formatRecord, type HeldSignIn, hasTokens, parseGiven, parseRecord } from "./record.ts";

/** A refresh holds the lock while the authorization server answers, for up to 15 s. */
const WAIT_MS = 25_000;

/** What the store uses of the system; a test passes its own. */
const SYSTEM = {
  files: nodeFiles,
  lockTimes: { waitMs: WAIT_MS, beatMs: LIMITS.lockBeatMs, silentMs: LIMITS.lockSilentMs },
  piTimes: PI_TIMES,
};
type System = Omit<typeof SYSTEM, "lockTimes"> & { lockTimes: LockTimes };

/** The folder may be removed by one who has signed out between its making and its use. */
const ATTEMPTS = 5;

type Held =
  /** `holds` answers whether this process still has the lock. Asked right before a file is replaced. */
  | { kind: "locked"; holds: () => Promise<boolean> }
  /** `why`: the disk takes no lock. */
  | { kind: "unlocked"; why: string };

interface LockOptions extends Pick<System, "files" | "lockTimes"> {
  signal: AbortSignal;
  /** Why the disk must not be used. */
  refused?: string | undefined;
}

/** Throws "lock-busy" after the time, "cancelled" after the signal unless `work` has begun, and what `work` throws. */
async function fileLocked<T>(
  path: string,
  { files, lockTimes: times, signal, refused }: LockOptions,
  work: (held: Held) => Promise<T>,
): Promise<T> {
  if (refused !== undefined) return work({ kind: "unlocked", why: refused });
  let isIn = false;
  const rename = async (from: string, to: string): Promise<void> => {
    // A contender renames at each attempt: here it notices that it is no longer needed.
    if (!isIn && signal.aborted) throw new SignInProblem("cancelled");
    await files.rename(from, to);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await withLock(path, { files: { ...files, rename }, times }, (holds) => {
        isIn = true;
        return work({ kind: "locked", holds });
      });
    } catch (error) {
      if (isIn || error instanceof SignInProblem) throw error;
      const code = codeOf(error);
      if (code === undefined) throw new SignInProblem("lock-busy", { path }, error);
      if (code === "ENOENT" && attempt < ATTEMPTS) continue;
      return work({ kind: "unlocked", why: reasonOf(error) });
    }
  }
}

type RecordFileOptions = StoreOptions & System & { place: Place };

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

  async read(): Promise<SignInRecord | undefined> {
    const { stamp, value } = await this.#file.read();
    return this.#keptOr(stamp, value);
  }

  /** Runs `work` under the lock. Throws `SignInProblem` "lock-busy" or "cancelled", and what `work` throws. */
  async locked<T>(work: (held: HeldSignIn) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { place, files, lockTimes } = this.#options;
    const options: LockOptions = { files, lockTimes, signal };
    const run = async (held: Held): Promise<T> => {
      const { stamp, value } = await this.#file.readAnew();
      return work(this.#held(held, this.#keptOr(stamp, value), options));
    };
    // Nothing is written where a link may lead elsewhere, not even a lock.
    const refused = await refusedFolder(place);
    try {
      // One at a time in this process, also if the disk takes no lock.
      return await inTurn(place.file, { waitMs: lockTimes.waitMs, signal }, () =>
        fileLocked(place.file, { ...options, refused: refused && wordsOf(refused) }, run),
      );
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

  #held(held: Held, found: SignInRecord | undefined, options: LockOptions): HeldSignIn {
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

export interface StoredSignIn {
  record?: SignInRecord;
  /** `tokens.json`, only if there is no record with an access token or a refresh token. */
  given?: { tokens: GivenTokens; path: string };
}

export type SignInStore = ReturnType<typeof openSignInStore>;

/** Why the folder is not the server's; undefined if it is. */
async function otherCase(server: string, folder: string): Promise<string | undefined> {
  const [actual, wanted] = [await nameOnDisk(folder), folderNameOf(server)];
  // Where case does not count, tokens for `linear` would otherwise also go to `Linear`.
  return actual === undefined || actual === wanted
    ? undefined
    : `its folder is ${actual}, and the server's would be ${wanted}`;
}

export function openSignInStore(options: StoreOptions, system: Partial<System> = {}) {
  const { server, url, warn, takesGiven } = options;
  const place = placeOf(options);
  const all = { ...options, ...SYSTEM, ...system, place };
  const record = new RecordFile(all);
  const pi = createPiFile(all);
  const given = new CachedFile({
    path: place.given,
    place,
    parse: (text, modifiedMs) => parseGiven(text, { modifiedMs, url }),
    refuses: () => otherCase(server, place.folder),
    onRefused: warn,
    onUnusable: warn,
  });
  return {
    /** Cached by the files' stats. Never rejects: a file that cannot be used is told once and counts as absent. */
    read: async (): Promise<StoredSignIn> => {
      const found = await record.read();
      if (found && hasTokens(found)) return { record: found };
      const { value } = takesGiven ? await given.read() : {};
      return {
        ...(found && { record: found }),
        ...(value && { given: { tokens: value, path: place.given } }),
      };
    },
    /**
     * Runs `work` under the lock of this sign-in, which all processes share. Throws `SignInProblem` "lock-busy", "cancelled"
     * if the signal fires before `work` begins, and what `work` throws.
     */
    locked: <T>(work: (held: HeldSignIn) => Promise<T>, signal: AbortSignal): Promise<T> =>
      record.locked(work, signal),
    /** Pi's own sign-in for this server and url. Undefined: there is none, or it cannot be used. */
    findInPi: (): Promise<SignInRecord | undefined> => pi.find(),
    /**
     * Moves it here under Pi's locks and removes it there. Undefined: it is gone meanwhile. Throws `SignInProblem`
     * "lock-busy", "cancelled" or "store-unwritable"; then Pi still has it, and nothing has changed here.
     */
    takeFromPi: (signal: AbortSignal): Promise<SignInRecord | undefined> =>
      record.locked((held) => pi.moveTo(held, signal), signal),
  };
}
