/**
 * `<agentDir>/mcp-trust.json`: what the user said about servers of projects, by hash. Version 1, 0600, written
 * whole by one process at a time. A file that is no such file holds nothing and is kept aside, never lost.
 */
import * as z from "zod";
import { messageOf } from "../../../src/protocol/errors.ts";
import { LIMITS } from "../../../src/protocol/limits.ts";
import type { ConfigProblem } from "../../../src/protocol/types.ts";
import { writeFileAtomic } from "../../cache/atomic-file.ts";
import { nodeFiles, reasonOf } from "../../cache/file-system.ts";
import { keepAside } from "../../cache/housekeeping.ts";
import { withLock } from "../../cache/lock.ts";
import { readTextOrThrow } from "../../shared/files/read-regular.ts";
import { type Consent, everyServerHash } from "./trust.ts";

const VERSION = 1;
/** Of "allowed" the oldest go first: whatever is gone is asked for again. */
const KEPT_ALLOWED = 1_000;
/** What is not allowed must not be forgotten. Beyond this many of one file, all of that file awaits consent. */
const KEPT_OF_A_FILE = 200;

/** Made where there is such a file. */
function trustSchema() {
  const consent = z.object({
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    decision: z.enum(["allowed", "refused", "awaiting"]),
    server: z.string(),
    file: z.string(),
    decidedAt: z.number(),
  });
  return z.object({ version: z.literal(VERSION), consents: z.array(consent) });
}

type Loaded =
  | { state: "usable"; consents: Consent[] }
  /** `what`: why nothing of it counts. */
  | { state: "corrupt"; what: string };

/** Throws what the file system throws, but for a file that is not there. */
async function load(file: string): Promise<Loaded> {
  let text: string;
  try {
    text = await readTextOrThrow(file, LIMITS.configFileBytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { state: "usable", consents: [] };
    throw error;
  }
  try {
    const { success, data } = trustSchema().safeParse(JSON.parse(text));
    return success
      ? { state: "usable", consents: data.consents }
      : { state: "corrupt", what: "it is not a list of consents" };
  } catch (error) {
    return { state: "corrupt", what: `it is no whole JSON (${messageOf(error)})` };
  }
}

export interface Trust {
  consents: Consent[];
  /** Why the file cannot be used: then nothing is known of what the user wanted. */
  problem?: ConfigProblem;
}

/** No consents where the file is missing, corrupt, of another version or unreadable. Never throws. */
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

/** The newer decision of a hash counts; that something awaits one never replaces one. */
function merge(known: readonly Consent[], added: readonly Consent[]): Consent[] {
  const merged = new Map(known.map((consent) => [consent.hash, consent]));
  for (const consent of added) {
    if (consent.decision === "awaiting" && merged.has(consent.hash)) continue;
    merged.delete(consent.hash);
    merged.set(consent.hash, consent);
  }
  return bounded([...merged.values()]);
}

function bounded(consents: readonly Consent[]): Consent[] {
  const allowed = consents.filter(({ decision }) => decision === "allowed").slice(-KEPT_ALLOWED);
  const byFile = Map.groupBy(
    consents.filter(({ decision }) => decision !== "allowed"),
    ({ file }) => file,
  );
  const others = [...byFile].flatMap(([file, ofFile]): Consent[] => {
    const hash = everyServerHash(file);
    const isFolded = ofFile.length > KEPT_OF_A_FILE || ofFile.some((consent) => consent.hash === hash);
    if (!isFolded) return ofFile;
    return [{ hash, decision: "awaiting", server: "*", file, decidedAt: ofFile.at(-1)?.decidedAt ?? 0 }];
  });
  const kept = new Set([...allowed, ...others]);
  return [...consents.filter((consent) => kept.delete(consent)), ...kept];
}

async function add(
  file: string,
  added: readonly Consent[],
  holds: () => Promise<boolean>,
): Promise<Consent[]> {
  const loaded = await load(file);
  const all = merge(loaded.state === "usable" ? loaded.consents : [], added);
  await writeFileAtomic(file, `${JSON.stringify({ version: VERSION, consents: all }, null, 2)}\n`, {
    beforeReplace: async (target) => {
      // A process that was stopped for long has lost the lock, and what it read may be old.
      if (!(await holds())) throw new Error("another process has it now");
      if (loaded.state === "corrupt") await keepAside(target, nodeFiles, Date.now());
    },
  });
  return all;
}

/**
 * Adds decisions, newer ones replacing older ones of the same hash, and answers all that the file then holds,
 * those of other processes too. Throws what the file system throws, or that the file could not be had in time.
 */
export async function remember(file: string, added: readonly Consent[]): Promise<Consent[]> {
  const { target } = await nodeFiles.find(file);
  return withLock(target, { files: nodeFiles }, (holds) => add(file, added, holds));
}
