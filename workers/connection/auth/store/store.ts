/**
 * The stored sign-in of one server. Owns: the files below `<agentDir>/mcp-oauth`, their modes, their lock, the tokens
 * that someone else put there, and Pi's own sign-ins, which are moved here after a yes. Must not: send anything.
 * Called by: auth.ts, tokens, sign-in.
 */
import { nodeFiles } from "../../../shared/files/file-system.ts";
import type { GivenTokens, SignInRecord } from "../model/model.ts";
import { CachedFile } from "./cached-file.ts";
import { parseGiven } from "./given.ts";
import { nameOnDisk } from "./guard.ts";
import { SIGN_IN_LOCK } from "./lock.ts";
import { createPiFile, PI_TIMES, type PiTimes } from "./pi-file.ts";
import type { ConfiguredClient } from "./pi-state.ts";
import { folderNameOf, type Place, placeOf } from "./place.ts";
import { hasTokens } from "./record.ts";
import { RecordFile, type StoreSystem } from "./record-file.ts";

export type { ConfiguredClient };

export interface StoredSignIn {
  record?: SignInRecord;
  /** `tokens.json`, only if there is no record with an access token or a refresh token. */
  given?: { tokens: GivenTokens; path: string };
}

/** The sign-in while this process holds its lock. */
export interface LockedSignIn {
  /** As it stands in the file now. */
  readonly record: SignInRecord | undefined;
  /**
   * Writes the record before it settles. If the disk takes nothing, the record is kept in memory for this process and
   * one warning is given: a rotated token must not be lost.
   */
  write(record: SignInRecord): Promise<void>;
  /** Removes the file, and the server's folder if it is empty then. */
  forget(): Promise<void>;
}

export interface SignInStore {
  /** Cached by the files' stats. Never rejects: a file that cannot be used is told once and counts as absent. */
  read(): Promise<StoredSignIn>;
  /**
   * Runs `work` under the lock of this sign-in, which all processes share. Throws `SignInProblem` "lock-busy", "cancelled"
   * if the signal fires before `work` begins, and what `work` throws.
   */
  locked<T>(work: (held: LockedSignIn) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Pi's own sign-in for this server and url. Undefined: there is none, or it cannot be used. */
  findInPi(): Promise<SignInRecord | undefined>;
  /**
   * Moves it here under Pi's locks and removes it there. Undefined: it is gone meanwhile. Throws `SignInProblem`
   * "lock-busy", "cancelled" or "store-unwritable"; then Pi still has it, and nothing has changed here.
   */
  takeFromPi(signal: AbortSignal): Promise<SignInRecord | undefined>;
}

export interface StoreOptions {
  agentDir: string;
  /** Whether `tokens.json` counts: it is for a server of this name, wherever the name leads. */
  takesGiven: boolean;
  server: string;
  /** MCP endpoint, as it is resolved. */
  url: string;
  /** The client that the configuration names, asked only for Pi's own sign-ins, which do not say it. */
  client?: (() => Promise<ConfiguredClient | undefined>) | undefined;
  /** Gets one line for the log. */
  onNote: (note: string) => void;
  /** Gets one line for the user. */
  warn: (text: string) => void;
}

const realSystem: StoreSystem & { piTimes: PiTimes } = {
  files: nodeFiles,
  lockTimes: SIGN_IN_LOCK,
  piTimes: PI_TIMES,
};

/** Why the folder is not the server's; undefined if it is. */
async function otherCase(server: string, folder: string): Promise<string | undefined> {
  const [actual, wanted] = [await nameOnDisk(folder), folderNameOf(server)];
  // Where case does not count, tokens for `linear` would otherwise also go to `Linear`.
  return actual === undefined || actual === wanted
    ? undefined
    : `its folder is ${actual}, and the server's would be ${wanted}`;
}

function openGiven({ server, url, warn }: StoreOptions, place: Place): CachedFile<GivenTokens> {
  return new CachedFile({
    path: place.given,
    place,
    parse: (text, modifiedMs) => parseGiven(text, { modifiedMs, url }),
    refuses: () => otherCase(server, place.folder),
    onRefused: warn,
    onUnusable: warn,
  });
}

/** `system`: what the store uses of the machine; a test passes its own. */
export function openSignInStore(options: StoreOptions, system: Partial<typeof realSystem> = {}): SignInStore {
  const place = placeOf(options);
  const record = new RecordFile({ ...options, ...realSystem, ...system, place });
  const given = openGiven(options, place);
  const pi = createPiFile({ ...options, ...realSystem, ...system, target: place.file });
  return {
    read: async () => {
      const found = await record.read();
      if (found && hasTokens(found)) return { record: found };
      const { value } = options.takesGiven ? await given.read() : {};
      return {
        ...(found && { record: found }),
        ...(value && { given: { tokens: value, path: place.given } }),
      };
    },
    locked: (work, signal) => record.locked(work, signal),
    findInPi: () => pi.find(),
    takeFromPi: (signal) => record.locked((held) => pi.moveTo(held, signal), signal),
  };
}
