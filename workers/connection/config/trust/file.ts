/**
 * Owns: `<agentDir>/mcp-trust.json`, the user's answers about servers of projects, by hash. The file has mode 0600, and one process at a time writes the whole file. A corrupt file counts as
 * empty and is kept aside, never lost. Nobody knows what a corrupt file refused, so everything awaits an answer then.
 */
import * as z from "zod";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { keepAside, nodeFiles, reasonOf, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { withLock } from "../../../shared/files/lock.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { type Consent, everythingAwaits, isEverything, keyOf, merge } from "./records.ts";

/**
 * Another number for each change of what is hashed (`subjectOf`, `consentHash` in records.ts): no record would fit any
 * more, and an entry that the user has refused would run as one of which nothing is known.
 */
const VERSION = 3;
/** More bytes than all records can take: a larger file was not written here. */
const FILE_BYTES = 8 * 1024 * 1024;

const SHA256 = /^[0-9a-f]{64}$/;

/** The schema is made only if there is a file. */
function trustSchema() {
  const consent = z.object({
    hash: z.string().regex(SHA256),
    subject: z.string().regex(SHA256),
    place: z.string(),
    decision: z.enum(["allowed", "refused", "awaiting"]),
    server: z.string(),
    file: z.string(),
    decidedAt: z.number(),
  });
  return z.object({ version: z.literal(VERSION), consents: z.array(consent) });
}

type Loaded =
  | { state: "usable"; consents: Consent[] }
  /** `what`: why nothing in the file counts. */
  | { state: "corrupt"; what: string };

/** Throws what the file system throws. A missing file counts as empty. */
async function load(file: string): Promise<Loaded> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind === "missing") return { state: "usable", consents: [] };
  if (read.kind === "too-large") return { state: "corrupt", what: whyUnread(read) };
  if (read.kind === "irregular") throw Object.assign(new Error(whyUnread(read)), { code: "EINVAL" });
  if (read.kind === "unreadable") throw read.error;
  try {
    const { success, data } = trustSchema().safeParse(JSON.parse(read.text));
    return success
      ? { state: "usable", consents: data.consents }
      : { state: "corrupt", what: "it is not a list of consents" };
  } catch (error) {
    return { state: "corrupt", what: `it is not complete JSON (${messageOf(error)})` };
  }
}

interface Trust {
  consents: Consent[];
  /** Why the file cannot be used. Then nobody knows what the user wanted. */
  problem?: ConfigProblem;
}

/** Without consents if the file is missing, corrupt, of another version or unreadable. Never throws. */
export async function loadTrust(file: string): Promise<Trust> {
  const unusable = (message: string, remedy: string): Trust => ({
    consents: [],
    problem: { severity: "error", file, message, remedy },
  });
  try {
    const loaded = await load(file);
    if (loaded.state === "usable") return { consents: loaded.consents };
    return unusable(
      `no consent in it counts: ${loaded.what}`,
      "Servers of projects are asked for again; what it held is kept as mcp-trust.json.corrupt-<date>.",
    );
  } catch (error) {
    return unusable(
      `no consent in it counts: it cannot be read (${reasonOf(error)})`,
      "Make it a file that you may read and write; until then servers of projects are asked for each time.",
    );
  }
}

/** Those about other servers or folders. */
function without(known: readonly Consent[], others: readonly Consent[]): Consent[] {
  const keys = new Set(others.map(keyOf));
  return known.filter((consent) => !keys.has(keyOf(consent)));
}

async function add(
  file: string,
  added: readonly Consent[],
  { holds, replaces }: { holds: () => Promise<boolean>; replaces: boolean },
): Promise<Consent[]> {
  const loaded = await load(file);
  const known = loaded.state === "usable" ? loaded.consents : [everythingAwaits(Date.now())];
  const all = merge(replaces ? without(known, added) : known, added);
  await writeFileAtomic(file, `${JSON.stringify({ version: VERSION, consents: all }, null, 2)}\n`, {
    beforeReplace: async (target) => {
      // A process that was suspended for long has lost the lock, and the text that it read may be old.
      if (!(await holds())) throw new Error("another process has it now");
      if (loaded.state === "corrupt") await keepAside(target, nodeFiles, Date.now());
    },
  });
  return all;
}

/**
 * Adds decisions; with `replaces`, also a record that awaits an answer takes the place of a decision. A newer one replaces an older one about the same server. Gives everything that the file then
 * holds, also the decisions of other processes. Throws what the file system throws, or if the lock was not free in
 * time.
 */
export async function remember(
  file: string,
  added: readonly Consent[],
  replaces = false,
): Promise<Consent[]> {
  const { target } = await nodeFiles.find(file);
  return withLock(target, { files: nodeFiles }, (holds) => add(file, added, { holds, replaces }));
}

const FULL =
  "Servers of projects are asked for in each folder from now on, also those of .pi/mcp.json; delete the file to start over.";

/** Never throws. `log` gets a line for each write that failed. */
export async function openStore(file: string, log: (problem: string) => void) {
  const { consents: known, problem: unreadable } = await loadTrust(file);
  let consents = known;
  let unwritable: ConfigProblem | undefined;
  let full: ConfigProblem | undefined;

  /**
   * Adds decisions, here in any case and in the file if possible. Gives the problem if the file cannot be written,
   * with this remedy. `replaces`: as for `remember`.
   */
  const add = async (
    added: readonly Consent[],
    remedy: string,
    replaces = false,
  ): Promise<ConfigProblem | undefined> => {
    const wasFull = consents.some(isEverything);
    try {
      consents = await remember(file, added, replaces);
      unwritable = undefined;
    } catch (error) {
      consents = [...without(consents, added), ...added];
      const message = `it cannot be written (${reasonOf(error)})`;
      unwritable = { severity: "error", file, message, remedy };
      log(`${file}: ${message}`);
    }
    // An unreadable file is a problem of its own, which says the same.
    if (!wasFull && !unreadable && consents.some(isEverything)) {
      const message = "what was refused or put off before is no longer known";
      full = { severity: "warning", file, message, remedy: FULL };
    }
    return unwritable;
  };

  return {
    get consents(): readonly Consent[] {
      return consents;
    },
    /** The file could not be used when it was opened. */
    isUnreadable: unreadable !== undefined,
    get problems(): readonly ConfigProblem[] {
      return [unreadable, unwritable, full].filter((problem) => problem !== undefined);
    },
    add,
  };
}
