/**
 * `<agentDir>/mcp-trust.json`: what the user said about servers of projects, by hash. Version 2, 0600, written
 * whole by one process at a time; version 1 is read. A file that is no such file holds nothing and is kept aside,
 * never lost. Since nobody knows what such a file refused, everything awaits an answer from then on.
 */
import * as z from "zod";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { writeFileAtomic } from "../../../shared/files/atomic-file.ts";
import { nodeFiles, reasonOf } from "../../../shared/files/file-system.ts";
import { keepAside } from "../../../shared/files/housekeeping.ts";
import { withLock } from "../../../shared/files/lock.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { type Consent, everythingAwaits, merge } from "./records.ts";

const VERSION = 2;
/** More than all that is ever kept takes: a larger file was not written here. */
const FILE_BYTES = 8 * 1024 * 1024;

const SHA256 = /^[0-9a-f]{64}$/;

/** Made where there is such a file. */
function trustSchema() {
  const consent = z.object({
    hash: z.string().regex(SHA256),
    decision: z.enum(["allowed", "refused", "awaiting"]),
    server: z.string(),
    file: z.string(),
    decidedAt: z.number(),
  });
  const bound = consent.extend({ subject: z.string().regex(SHA256), place: z.string() });
  return z.union([
    z.object({ version: z.literal(VERSION), consents: z.array(z.union([bound, consent.strict()])) }),
    z.object({ version: z.literal(1), consents: z.array(consent) }),
  ]);
}

type Loaded =
  | { state: "usable"; consents: Consent[] }
  /** `what`: why nothing of it counts. */
  | { state: "corrupt"; what: string };

/** Throws what the file system throws, but for a file that is not there. */
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

async function add(
  file: string,
  added: readonly Consent[],
  holds: () => Promise<boolean>,
): Promise<Consent[]> {
  const loaded = await load(file);
  const all = merge(loaded.state === "usable" ? loaded.consents : [everythingAwaits(Date.now())], added);
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
 * Adds decisions, newer ones replacing older ones about the same, and answers all that the file then holds,
 * those of other processes too. Throws what the file system throws, or that the file could not be had in time.
 */
export async function remember(file: string, added: readonly Consent[]): Promise<Consent[]> {
  const { target } = await nodeFiles.find(file);
  return withLock(target, { files: nodeFiles }, (holds) => add(file, added, holds));
}
