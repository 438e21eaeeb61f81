/**
 * The stored sign-in of one server. Owns: reading, replacing and removing it under the lock that all processes share, what
 * holds if the disk takes nothing, the tokens that someone else put there, and Pi's own sign-ins, which are moved here after
 * a yes. The file has the sign-in, or names the item of the system's store that has it: in both cases one rename of the file
 * decides what counts. Must not: send anything.
 */
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describeError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { SignInMoved } from "../../../../src/shared/protocol/person.ts";
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
  type TokenStore,
  tellOnce,
} from "./file.ts";
import { createInSystem, SYSTEM_STORE, whyUnusable } from "./in-system.ts";
import { createPiFile, PI_TIMES } from "./pi.ts";
import {
  formatRecord,
  formatStored,
  type HeldSignIn,
  hasTokens,
  parseGiven,
  parseRecord,
  parseStored,
  type Stored,
  type Unwritten,
} from "./record.ts";

/** A refresh holds the lock while the authorization server answers, for up to 15 s. */
const WAIT_MS = 25_000;

/** What the store uses of the system; a test passes its own. */
const SYSTEM = {
  files: nodeFiles,
  lockTimes: { waitMs: WAIT_MS, beatMs: LIMITS.lockBeatMs, silentMs: LIMITS.lockSilentMs },
  piTimes: PI_TIMES,
  /** After how long a read tries again to write what the disk did not take. */
  keptMs: 10_000,
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

type OpenOptions = StoreOptions & System & { place: Place };

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

export interface StoredSignIn {
  record?: SignInRecord;
  /** The record is in the system's credential store. */
  isInSystem?: true;
  /** `tokens.json`, only if there is no record with an access token or a refresh token. */
  given?: { tokens: GivenTokens; path: string };
}

/** Why the folder is not the server's; undefined if it is. */
async function otherCase(server: string, folder: string): Promise<string | undefined> {
  const [actual, wanted] = [await nameOnDisk(folder), folderNameOf(server)];
  // Where case does not count, tokens for `linear` would otherwise also go to `Linear`.
  return actual === undefined || actual === wanted
    ? undefined
    : `its folder is ${actual}, and the server's would be ${wanted}`;
}

class Store {
  readonly #options: OpenOptions;
  readonly #file: CachedFile<Stored>;
  readonly #given: CachedFile<GivenTokens>;
  readonly #pi: ReturnType<typeof createPiFile>;
  readonly #inSystem: ReturnType<typeof createInSystem>;

  constructor(options: OpenOptions) {
    const { place, server, url, onNote, warn } = options;
    this.#options = options;
    this.#file = new CachedFile({
      path: place.file,
      place,
      parse: (text) => parseStored(text, options),
      onRefused: warn,
      onUnusable: onNote,
    });
    this.#inSystem = createInSystem(options);
    this.#pi = createPiFile(options);
    this.#given = new CachedFile({
      path: place.given,
      place,
      parse: (text, modifiedMs) => parseGiven(text, { modifiedMs, url }),
      refuses: () => otherCase(server, place.folder),
      onRefused: warn,
      onUnusable: warn,
    });
  }

  /**
   * Cached by the files' stats. A file that cannot be used is told once and counts as absent. Rejects with `SignInProblem`
   * "system-store" if the sign-in is there and the store cannot be used.
   */
  async read(): Promise<StoredSignIn> {
    const { record, isInSystem } = await this.#readOwn();
    const own = { ...(record && { record }), ...(record && isInSystem && ({ isInSystem } as const)) };
    if (record && hasTokens(record)) return own;
    const { takesGiven, place } = this.#options;
    const { value } = takesGiven ? await this.#given.read() : {};
    return { ...own, ...(value && { given: { tokens: value, path: place.given } }) };
  }

  async #readOwn(): Promise<{ record: SignInRecord | undefined; isInSystem: boolean }> {
    const { kept } = stateOf(this.#options.place.file);
    if (kept?.record && performance.now() - kept.triedMs >= this.#options.keptMs) {
      kept.triedMs = performance.now();
      void this.locked(async () => undefined, new AbortController().signal).catch(() => undefined);
    }
    let content = await this.#file.read();
    for (let attempt = 1; ; attempt++) {
      const record = await this.#recordOf(content, false);
      const item = content.value?.item;
      if (record !== undefined || item === undefined || attempt === ATTEMPTS)
        return { record, isInSystem: item !== undefined };
      // Another process may have replaced the item since.
      content = await this.#file.readAnew();
      if (content.value?.item?.item === item.item) attempt = ATTEMPTS - 1;
    }
  }

  /** Whether the next sign-in could be stored. Rejects with `SignInProblem` "system-store". */
  async check(): Promise<void> {
    const { value } = await this.#file.read();
    if (this.#target(value) === "system") await this.#inSystem.check();
  }

  /**
   * Runs `work` under the lock of this sign-in, which all processes share. Throws `SignInProblem` "lock-busy", "cancelled"
   * if the signal fires before `work` begins, "system-store", and what `work` throws.
   */
  locked<T>(work: (held: HeldSignIn) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#inLock(signal, async (held) => {
      const content = await this.#file.readAnew();
      const holding = this.#held(held, await this.#recordOf(content, true));
      const { kept } = stateOf(this.#options.place.file);
      // The system's store may ask its user each time: it is tried with the next renewal and at the end alone.
      if (kept?.record && this.#target(content.value) === "file") await holding.write(kept.record);
      return work(holding);
    });
  }

  /** Writes at the end what neither disk nor system's store did take: the next worker does not know it. Never rejects. */
  async writeKept(): Promise<void> {
    const { signal } = new AbortController();
    const kept = () => stateOf(this.#options.place.file).kept?.record;
    const write = async (held: HeldSignIn): Promise<void> => {
      const record = kept();
      if (record) await held.write(record);
    };
    if (kept()) await this.locked(write, signal).catch(() => undefined);
  }

  /**
   * Moves the sign-in. `there`: it was there before. `none`: there is no sign-in. `keeps`: whether the system's store did not
   * remove its copy yet. Throws `SignInProblem`; then the sign-in is where it was.
   */
  move(to: TokenStore, signal: AbortSignal): Promise<SignInMoved> {
    return this.#inLock(signal, async (held) => {
      const content = await this.#file.readAnew();
      const record = await this.#recordOf(content, true);
      if (record === undefined) return { how: "none" };
      if ((content.value?.item !== undefined) === (to === "system")) return { how: "there" };
      try {
        if (held.kind === "unlocked") throw new Error(held.why);
        await this.#replace(record, held.holds, to);
      } catch (error) {
        const { path, what } = this.#whyNot(error);
        if (path === SYSTEM_STORE) throw new SignInProblem("system-store", { what }, error);
        throw new SignInProblem("store-unwritable", { path, what }, error);
      }
      const { value } = await this.#file.readAnew();
      return { how: "moved", keeps: to === "file" && (value?.remove.length ?? 0) > 0 };
    });
  }

  /** Pi's own sign-in for this server and url. Undefined: there is none, or it cannot be used. */
  findInPi(): Promise<SignInRecord | undefined> {
    return this.#pi.find();
  }

  /**
   * Moves it here under Pi's locks and removes it there. Undefined: it is gone meanwhile. Throws `SignInProblem`
   * "lock-busy", "cancelled" or "store-unwritable"; then Pi still has it, and nothing has changed here.
   */
  takeFromPi(signal: AbortSignal): Promise<SignInRecord | undefined> {
    return this.locked((held) => this.#pi.moveTo(held, signal), signal);
  }

  async #inLock<T>(signal: AbortSignal, run: (held: Held) => Promise<T>): Promise<T> {
    const { place, files, lockTimes } = this.#options;
    // Nothing is written where a link may lead elsewhere, not even a lock.
    const refused = await refusedFolder(place);
    const options: LockOptions = { files, lockTimes, signal, refused: refused && wordsOf(refused) };
    try {
      // One at a time in this process, also if the disk takes no lock.
      return await inTurn(place.file, { waitMs: lockTimes.waitMs, signal }, () =>
        fileLocked(place.file, options, run),
      );
    } finally {
      // Fails if the folder holds anything, which is then still needed.
      if (refused === undefined) await files.remove(place.folder).catch(() => undefined);
    }
  }

  /** `anew`: the system's store is asked, whatever is known of it. */
  async #recordOf(
    { stamp, value }: { stamp: string; value?: Stored },
    anew: boolean,
  ): Promise<SignInRecord | undefined> {
    const state = stateOf(this.#options.place.file);
    if (state.kept?.stamp === stamp) return state.kept.record;
    // The file has changed since: another process wrote what is newer.
    delete state.kept;
    return value?.item === undefined ? value?.record : this.#inSystem.read(value.item, anew);
  }

  /** Tokens never go from the system's store to a file, nor to a new file, unless a person moves them. */
  #target(now: Stored | undefined): TokenStore {
    return now?.item === undefined ? this.#options.tokenStore() : "system";
  }

  #whyNot(error: unknown): Unwritten {
    const unusable = whyUnusable(error);
    return unusable === undefined
      ? { path: this.#options.place.file, what: whyNot(error) }
      : { path: SYSTEM_STORE, what: unusable };
  }

  #held(held: Held, found: SignInRecord | undefined): HeldSignIn {
    let record = found;
    const tryToWrite = async (next: SignInRecord): Promise<Unwritten | undefined> => {
      try {
        record = await this.#writeOrYield(next, held, found);
        return undefined;
      } catch (error) {
        return this.#whyNot(error);
      }
    };
    return {
      get record() {
        return record;
      },
      tryToWrite,
      write: async (next) => {
        const why = await tryToWrite(next);
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

  /** Answers what is stored then. Throws why that is not possible. */
  async #writeOrYield(
    next: SignInRecord,
    held: Held,
    before: SignInRecord | undefined,
  ): Promise<SignInRecord> {
    try {
      if (held.kind === "unlocked") throw new Error(held.why);
      await this.#replace(next, held.holds);
      return next;
    } catch (error) {
      if (!(error instanceof LockLost)) throw error;
    }
    const { place, files, lockTimes, onNote } = this.#options;
    // A token that was just issued is not given up because the user cancels something.
    const options = { files, lockTimes, signal: new AbortController().signal };
    return fileLocked(place.file, options, async (again) => {
      if (again.kind === "unlocked") throw new Error(again.why);
      const value = await this.#recordOf(await this.#file.readAnew(), true);
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

  async #replace(next: SignInRecord, holds: () => Promise<boolean>, forced?: TokenStore): Promise<void> {
    const { place, files } = this.#options;
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
    const { value: before = { remove: [] } } = found;
    const isUnusable = found.isUnusable === true;
    const to = forced ?? this.#target(before);
    const spent = before.item ? [...before.remove, before.item] : before.remove;
    if (to === "file") await this.#put({ record: next, remove: spent }, holds, isUnusable);
    else if (this.#inSystem.has(before.item, next)) await this.#checkLock(holds);
    else {
      const item = await this.#inSystem.itemFor(next);
      // Announced, so that nothing is left in the system's store by a process that is killed.
      await this.#put({ ...before, remove: [...before.remove, item] }, holds, isUnusable);
      await this.#inSystem.write(item, next);
      try {
        await this.#put({ item, remove: spent }, holds);
      } catch (error) {
        await this.#inSystem.removeAll([item]);
        throw error;
      }
    }
    delete stateOf(place.file).kept;
    tellOnce(place.file, "writing", { text: undefined, tell: this.#options.warn });
    if (to === "system" || spent.length > 0) await this.#removeSpent(holds);
    await sweepTemps(place.file, files, Date.now());
  }

  async #checkLock(holds: () => Promise<boolean>): Promise<void> {
    if (!(await holds()))
      throw new LockLost(`another process has the sign-in of ${this.#options.server} now`);
  }

  /** Replaces the file in one step. Throws `LockLost` if another process has the lock. */
  async #put(stored: Stored, holds: () => Promise<boolean>, isUnusable = false): Promise<void> {
    const { place, files } = this.#options;
    await writeFileAtomic(place.file, formatStored(stored, this.#options), {
      files,
      beforeReplace: async (target) => {
        await this.#checkLock(holds);
        if (isUnusable) await keepAside(target, files, Date.now());
      },
    });
  }

  /** Removes what nobody needs from the system's store. Never rejects: what is left is removed after the next renewal. */
  async #removeSpent(holds: () => Promise<boolean>): Promise<void> {
    const { value } = await this.#file.readAnew();
    if (value === undefined || value.remove.length === 0) return;
    const left = await this.#inSystem.removeAll(value.remove);
    if (left.length === value.remove.length) return;
    await this.#put({ ...value, remove: left }, holds).catch((error: unknown) =>
      this.#options.onNote(`${this.#options.place.file} could not be written: ${reasonOf(error)}`),
    );
  }

  /** Keeps what cannot be stored, until it is stored, the file changes or this worker ends. Tells that once. */
  async #keep(record: SignInRecord | undefined, { path, what }: Unwritten): Promise<void> {
    const { place, server, warn } = this.#options;
    const { stamp } = await this.#file.readAnew();
    stateOf(place.file).kept = { record, stamp, triedMs: performance.now() };
    const problem = new SignInProblem("store-unwritable", { path, what });
    // The facts are a path and a reason of the file system: there is no secret in them.
    const unwritten = explainProblem(problem, { server, redact: (fact) => fact });
    const unremoved = `${server}: the sign-in could not be removed from ${place.file}: ${what}. Delete the file.`;
    const text = record === undefined ? unremoved : describeError(unwritten);
    tellOnce(place.file, "writing", { text, tell: warn });
  }

  /** Removes what is in the system's store, then the file with its unusable copies and what killed writers left. */
  async #forget(): Promise<void> {
    const { place, files } = this.#options;
    const { refused, value } = await this.#file.readAnew();
    delete stateOf(place.file).kept;
    // A file that is refused counts as absent, and is not ours to remove.
    if (refused ?? (await refusedFolder(place))) return;
    for (const item of [...(value?.item ? [value.item] : []), ...(value?.remove ?? [])])
      await this.#inSystem.remove(item);
    try {
      const names = (await files.list(place.folder)).filter((name) => isOfFile(basename(place.file), name));
      for (const name of names) await files.remove(join(place.folder, name));
    } catch (error) {
      await this.#keep(undefined, { path: place.file, what: reasonOf(error) });
    }
  }
}

export type SignInStore = Pick<Store, keyof Store>;

export const openSignInStore = (options: StoreOptions, system: Partial<System> = {}): SignInStore =>
  new Store({ ...options, ...SYSTEM, ...system, place: placeOf(options) });
