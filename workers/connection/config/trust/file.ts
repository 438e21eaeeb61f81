/** Owns: `<agentDir>/mcp-trust.json`, the user's answers about servers of projects, by hash. Nobody knows what a corrupt file refused, so everything awaits an answer then. */
import * as z from "zod";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { changeAnswers, readAnswers } from "../../../shared/files/answers.ts";
import { reasonOf } from "../../../shared/files/file-system.ts";
import { type Consent, everythingAwaits, isEverything, keyOf, merge } from "./records.ts";

/**
 * Another number for each change of what is hashed (`subjectOf`, `consentHash` in records.ts): no record would fit any
 * more, and an entry that the user has refused would run as one of which nothing is known.
 */
const VERSION = 3 as const;

const SHA256 = /^[0-9a-f]{64}$/;

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
    const found = await readAnswers(file, trustSchema);
    if (found.state === "usable") return { consents: found.value?.consents ?? [] };
    return unusable(
      `no consent in it counts: ${found.what}`,
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

/** Answers of this session that the file lacks, over what it holds. A permission gives way to whatever is not older. */
function laidOver(known: readonly Consent[], unwritten: readonly Consent[]): readonly Consent[] {
  if (unwritten.length === 0) return known;
  const decidedAt = new Map(known.map((consent) => [keyOf(consent), consent.decidedAt]));
  const counted = unwritten.filter(
    (consent) => consent.decision !== "allowed" || consent.decidedAt > (decidedAt.get(keyOf(consent)) ?? 0),
  );
  return [...without(known, counted), ...counted];
}

/**
 * Adds decisions: first those of `replacing`, where also a record that awaits an answer takes the place of a decision. A newer one
 * replaces an older one about the same server. Gives everything that the file then holds, also the decisions of other
 * processes. Throws what the file system throws, or if the lock was not free in time.
 */
export async function remember(
  file: string,
  added: readonly Consent[],
  replacing: readonly Consent[] = [],
): Promise<Consent[]> {
  const { consents } = await changeAnswers(file, trustSchema, (found) => {
    const known = found.state === "usable" ? (found.value?.consents ?? []) : [everythingAwaits(Date.now())];
    return {
      version: VERSION,
      consents: merge(without(known, replacing), [...replacing, ...added]),
    };
  });
  return consents;
}

const FULL =
  "Servers of projects are asked for in each folder from now on, also those of .pi/mcp.json; delete the file to start over.";

/** Never throws. `log` gets a line for each write that failed. */
export async function openStore(file: string, log: (problem: string) => void) {
  const { consents: known, problem: unreadable } = await loadTrust(file);
  let consents: readonly Consent[] = known;
  let written: readonly Consent[] = known;
  /** The person's answers that the file lacks, since it could not be written. Each holds until there is a newer one. */
  let unwritten: readonly Consent[] = [];
  let unwritable: ConfigProblem | undefined;
  let full: ConfigProblem | undefined;

  /**
   * Adds decisions, here in any case and in the file if possible. Gives the problem if the file cannot be written,
   * with this remedy. `replaces`: also a record that awaits an answer takes the place of a decision.
   */
  const add = async (
    added: readonly Consent[],
    remedy: string,
    replaces = false,
  ): Promise<ConfigProblem | undefined> => {
    const wasFull = consents.some(isEverything);
    // What an answer forbids is written late rather than never. Of a yes the person was told that it holds for this session only.
    const late = without(unwritten, added).filter(({ decision }) => decision !== "allowed");
    const answers = added.filter(({ decision }) => replaces || decision !== "awaiting");
    try {
      written = await remember(file, replaces ? [] : added, [...late, ...(replaces ? added : [])]);
      unwritten = without(
        unwritten.filter((consent) => !late.includes(consent)),
        answers,
      );
      consents = laidOver(written, unwritten);
      unwritable = undefined;
    } catch (error) {
      consents = [...without(consents, added), ...added];
      unwritten = merge([...without(unwritten, answers), ...answers], []);
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
    /** Without those that the file lacks. */
    get written(): readonly Consent[] {
      return written;
    },
    /** The file could not be used when it was opened. */
    isUnreadable: unreadable !== undefined,
    get problems(): readonly ConfigProblem[] {
      return [unreadable, unwritable, full].filter((problem) => problem !== undefined);
    },
    add,
  };
}
