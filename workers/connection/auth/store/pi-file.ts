/**
 * Pi's own sign-ins. Owns: finding one in `<agentDir>/mcp-auth.json`, and moving it out under Pi's locks. It is moved and
 * never copied: two programs that renew with one refresh token make the authorization server end the sign-in.
 */
import { lstat, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type FileSystem, reasonOf, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { codeOf, readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { SignInProblem, type SignInRecord } from "../model/model.ts";
import { ownId, refusal } from "./guard.ts";
import { type PiLockTimes, withPiLock } from "./pi-lock.ts";
import { type ConfiguredClient, findEntry, type PiEntry, piKeys, refreshLockOf } from "./pi-state.ts";
import type { HeldRecord } from "./record-file.ts";

/** Pi keeps what discovery found with each sign-in, some 10 KB. */
const FILE_BYTES = 4 * 1024 * 1024;

export interface PiTimes {
  /** Of the whole file. Pi holds this lock for moments. */
  file: PiLockTimes;
  /** Of one sign-in, while Pi renews it. */
  refresh: PiLockTimes;
}

/** The first number of each pair is Pi's. */
export const PI_TIMES: PiTimes = {
  file: { staleMs: 10_000, waitMs: 12_000 },
  refresh: { staleMs: 20_000, waitMs: 25_000 },
};

export interface PiFileOptions {
  agentDir: string;
  server: string;
  url: string;
  client?: (() => Promise<ConfiguredClient | undefined>) | undefined;
  /** Our file, to which a sign-in is moved. */
  target: string;
  files: FileSystem;
  piTimes: PiTimes;
  onNote: (note: string) => void;
}

export interface PiFile {
  /** Never rejects. */
  find(): Promise<SignInRecord | undefined>;
  /** Moves the sign-in to `held`. Undefined: it is gone. Throws `SignInProblem`; then it is still where it was. */
  moveTo(held: HeldRecord, signal: AbortSignal): Promise<SignInRecord | undefined>;
}

export function createPiFile(options: PiFileOptions): PiFile {
  const { agentDir, server, url, client, target, files, piTimes, onNote } = options;
  const path = join(agentDir, "mcp-auth.json");
  const [key] = piKeys({ server, url });

  /** A link is followed as Pi follows it: the folder is the user's own. Undefined: there is no file, or no entry. */
  const load = async (): Promise<(PiEntry & { file: string }) | undefined> => {
    try {
      const file = await realpath(path);
      const refused = refusal(await lstat(file, { bigint: true }), "file", ownId());
      const read = refused === undefined ? await readRegularText(file, FILE_BYTES) : undefined;
      if (read?.kind !== "text") throw new Error(refused ?? (read && whyUnread(read)));
      const entry = findEntry(read.text, { server, url, client: await client?.(), nowMs: Date.now() });
      return entry && { ...entry, file };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") onNote(`${path} is not used: ${reasonOf(error)}.`);
      return undefined;
    }
  };

  const move = async (held: HeldRecord, holds: () => Promise<boolean>): Promise<SignInRecord | undefined> => {
    const entry = await load();
    if (entry === undefined) return undefined;
    const before = held.record;
    const why = await held.writeToDisk(entry.record);
    if (why !== undefined) throw new SignInProblem("store-unwritable", { path: target, what: why });
    try {
      await writeFileAtomic(entry.file, entry.rest, {
        files,
        beforeReplace: async () => {
          if (!(await holds())) throw new Error("Pi has it now");
        },
      });
    } catch (error) {
      await (before === undefined ? held.forget() : held.write(before));
      throw new SignInProblem("store-unwritable", { path, what: reasonOf(error) }, error);
    }
    return held.record;
  };

  return {
    find: async () => (await load())?.record,
    moveTo: async (held, signal) => {
      const found = await load();
      if (found === undefined || key === undefined) return undefined;
      const refreshLock = join(agentDir, refreshLockOf(key));
      return withPiLock(refreshLock, { ...piTimes.refresh, signal }, (holdsSignIn) =>
        withPiLock(`${found.file}.lock`, { ...piTimes.file, signal }, (holdsFile) =>
          move(held, async () => (await holdsSignIn()) && (await holdsFile())),
        ),
      );
    },
  };
}
