/**
 * The decisions of `mcp-trust.json` in memory: how a new decision joins the others, how many are kept, and what is
 * known about one server. A decision that is dropped for want of room leads to a new question, never to a permission.
 * Pure.
 */

import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { consentedKeys } from "../entry/server-keys.ts";
import type { EnvSeen } from "../env-files/env-files.ts";
import type { Scripts } from "../env-files/scripts.ts";

export type Decision = "allowed" | "refused" | "awaiting";

export interface Consent {
  /** A permission holds for this `consentHash`. */
  hash: string;
  /** A refusal holds for this `subjectOf`. */
  subject: string;
  /** `placeOf` the folder where the user decided. */
  place: string;
  /** `awaiting`: a question is due, and there is no answer yet. */
  decision: Decision;
  /** For people who read the file; a long name is cut. */
  server: string;
  file: string;
  decidedAt: number;
}

/** The oldest permissions are dropped first: their servers need a new answer. */
const KEPT_ALLOWED = 1_000;
/** The user refuses each server by hand, so that nobody reaches this number. */
const KEPT_REFUSED = 1_000;
/** A model that writes files can make any number of these. Beyond this number, everything awaits an answer. */
const KEPT_AWAITING = 500;

const NAME_CHARS = 60;
const FILE_CHARS = 200;

/** Two decisions with the same key are about the same server in the same folder; the newer one counts. */
export const keyOf = ({ subject, place }: Pick<Consent, "subject" | "place">): string =>
  `${subject} ${place}`;

/** A record for every server of every project: each needs an answer, unless there is a decision of its own. */
export const everythingAwaits = (nowMs: number): Consent => ({
  hash: EVERY_SUBJECT,
  subject: EVERY_SUBJECT,
  place: "",
  decision: "awaiting",
  server: "*",
  file: "*",
  decidedAt: nowMs,
});

/** Whether the record stands for everything. */
export const isEverything = ({ subject, decision }: Consent): boolean =>
  decision === "awaiting" && subject === EVERY_SUBJECT;

const brief = (consent: Consent): Consent => ({
  ...consent,
  server: consent.server.slice(0, NAME_CHARS).toWellFormed(),
  file: consent.file.slice(-FILE_CHARS).toWellFormed(),
});

function bounded(consents: readonly Consent[]): Consent[] {
  const of = (wanted: Decision): Consent[] => consents.filter(({ decision }) => decision === wanted);
  const refused = of("refused");
  const awaiting = of("awaiting");
  const isFull = refused.length > KEPT_REFUSED || awaiting.length > KEPT_AWAITING;
  const kept = new Set([
    ...of("allowed").slice(-KEPT_ALLOWED),
    ...refused.slice(-KEPT_REFUSED),
    ...(awaiting.length > KEPT_AWAITING ? [] : awaiting),
  ]);
  const whole = consents.filter((consent) => kept.has(consent));
  if (!isFull || whole.some(isEverything)) return whole;
  return [...whole, everythingAwaits(consents.at(-1)?.decidedAt ?? 0)];
}

/** The newer decision counts. A record that awaits an answer never replaces a decision. */
export function merge(known: readonly Consent[], added: readonly Consent[]): Consent[] {
  const merged = new Map(known.map((consent) => [keyOf(consent), brief(consent)]));
  for (const consent of added.map(brief)) {
    const key = keyOf(consent);
    if (consent.decision === "awaiting" && merged.has(key)) continue;
    merged.delete(key);
    merged.set(key, consent);
  }
  return bounded([...merged.values()]);
}

/** What the records say about one server. */
export interface Standing {
  /** The decision in the folder where Pi runs. `changed`: something else was allowed there than would run now. */
  own: Decision | "changed" | undefined;
  /** Decisions in other folders, or about everything: the server may not run unasked. */
  elsewhere: "refused" | "awaiting" | undefined;
}

/** Indexes the records once. The result gives what they say about one server. */
export function createRecords(
  consents: readonly Consent[],
): (server: Pick<Consent, "hash" | "subject" | "place">) => Standing {
  const byKey = new Map(consents.map((consent) => [keyOf(consent), consent]));
  const denied = consents.filter(({ decision }) => decision !== "allowed");
  const bySubject = Map.groupBy(denied, ({ subject }) => subject);
  const everything = denied.some(isEverything);
  return (server) => {
    const own = byKey.get(keyOf(server));
    const isChanged = own?.decision === "allowed" && own.hash !== server.hash;
    const others = bySubject.get(server.subject) ?? [];
    const isRefused = others.some(({ decision }) => decision === "refused");
    const awaits = others.length > 0 || everything;
    return {
      own: isChanged ? "changed" : own?.decision,
      elsewhere: isRefused ? "refused" : awaits ? "awaiting" : undefined,
    };
  };
}

const sha256 = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex");

/** Hex SHA-256 of a definition as written. No secret is resolved for it, and the folder does not matter. */
export const subjectOf = (definition: ServerDefinition): string => {
  const { name, target, auth, oauth } = definition;
  // A key that is new to this package leaves the decisions about servers without it as they are.
  const keys = consentedKeys(definition).flatMap(({ key, value }) =>
    value === undefined ? [] : [[key, value]],
  );
  return sha256({ name, target, auth, oauth, keys });
};

/**
 * Stands for all servers of all projects, if there are too many to remember each: the hash of "every server of every
 * project". It is written out, because to compute it would load Node's crypto at each start.
 */
export const EVERY_SUBJECT = "7c1d795dea487017d8cc07baa8ab3bfa5f6ed02d7034f8ea040b9cccc8aeae16";

const PLACE_CHARS = 32;

/**
 * A short hash of a folder, which is given by its real path. On Windows the case of the drive letter does not matter.
 */
export const placeOf = (folder: string): string =>
  sha256(folder.replace(/^[a-z]:/, (drive) => drive.toUpperCase())).slice(0, PLACE_CHARS);

/**
 * Hex SHA-256 of everything that was shown, and of the place. A yes to a server of the user's own, which a project switches on or
 * changes, is none to a server of the project with the same entry: that one replaces the user's, and its rules and protection.
 */
export const consentHash = (
  definition: ServerDefinition,
  place: string,
  { seen, scripts }: { seen?: EnvSeen | undefined; scripts?: Scripts | undefined } = {},
): string => {
  const envFile = seen && ("content" in seen ? seen.content.hash : "cannot be used");
  const files = scripts && ("hash" in scripts ? scripts.hash : "cannot be used");
  const isUsers = !definition.definedByProject && definition.origin !== "package";
  const whose = isUsers ? { whose: "the user's" } : {};
  return sha256({ place, subject: subjectOf(definition), envFile, files, ...whose });
};
