/**
 * The decisions of `mcp-trust.json` in memory: how a new decision joins the others, how many are kept, and what is
 * known about one server. A decision that is dropped for want of room leads to a new question, never to a permission.
 * Pure.
 */

import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { isDefaultOAuth } from "../entry/oauth-values.ts";
import type { EnvSeen, Scripts } from "../env-files/env-files.ts";

export type Decision = "allowed" | "refused" | "awaiting";

export interface Consent {
  /** A permission holds for this `consentHash`. Without `subject`: the hash of version 1. */
  hash: string;
  /** A refusal holds for this `subjectOf`. Version 1 did not write it. */
  subject?: string | undefined;
  /** `placeOf` the folder where the user decided. Present with `subject`. */
  place?: string | undefined;
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
export const keyOf = ({ subject, place, hash }: Pick<Consent, "subject" | "place" | "hash">): string =>
  subject === undefined ? hash : `${subject} ${place}`;

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

/**
 * Whether the record stands for everything. Version 1 wrote one for all servers of a file; it counts for everything
 * here.
 */
export const isEverything = ({ server, subject, decision }: Consent): boolean =>
  decision === "awaiting" && (subject === EVERY_SUBJECT || (subject === undefined && server === "*"));

const briefName = (name: string): string => name.slice(0, NAME_CHARS).toWellFormed();

const brief = (consent: Consent): Consent => ({
  ...consent,
  server: briefName(consent.server),
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

interface Subject {
  hash: string;
  subject: string;
  place: string;
  name: string;
  /** `firstVersionHash`, and whether a permission of that version covers what would run now. */
  firstVersion: { hash: string; coversAll: boolean };
}

/** Indexes the records once. The result gives what they say about a server. */
export function createRecords(consents: readonly Consent[]): (server: Subject) => Standing {
  const byKey = new Map(consents.map((consent) => [keyOf(consent), consent]));
  const denied = consents.filter(({ decision }) => decision !== "allowed");
  const bySubject = Map.groupBy(denied, ({ subject }) => subject);
  /**
   * Version 1 bound its refusals to a path, which may have changed since. Only the server's name is left to recognise
   * them.
   */
  const namesBefore = new Set(bySubject.get(undefined)?.map(({ server }) => briefName(server)));
  const everything = denied.some(isEverything);

  const ownOf = ({ subject, place, hash, firstVersion }: Subject): Standing["own"] => {
    const own = byKey.get(keyOf({ subject, place, hash }));
    if (own) return own.decision === "allowed" && own.hash !== hash ? "changed" : own.decision;
    const before = byKey.get(firstVersion.hash);
    return before?.decision === "allowed" && !firstVersion.coversAll ? "changed" : before?.decision;
  };

  return (server) => {
    const others = bySubject.get(server.subject) ?? [];
    const isRefused = others.some(({ decision }) => decision === "refused");
    const awaits = others.length > 0 || namesBefore.has(briefName(server.name)) || everything;
    return { own: ownOf(server), elsewhere: isRefused ? "refused" : awaits ? "awaiting" : undefined };
  };
}

const sha256 = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex");

/**
 * What a definition says about OAuth. An entry that says nothing about it keeps the hash that it had before there was
 * OAuth, so that no old decision about it is lost. A scheme without OAuth is in the hash by itself.
 */
const oauthOf = ({ auth: { scheme }, oauth }: ServerDefinition): ServerDefinition["oauth"] | undefined =>
  scheme === "none" || scheme === "bearer" || isDefaultOAuth(oauth) ? undefined : oauth;

/** Hex SHA-256 of a definition as written. No secret is resolved for it, and the folder does not matter. */
export const subjectOf = (definition: ServerDefinition): string => {
  const { name, target, auth, roots } = definition;
  return sha256({ name, target, auth, oauth: oauthOf(definition), roots });
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

/** Hex SHA-256 of everything that was shown, and of the place. */
export const consentHash = (
  definition: ServerDefinition,
  place: string,
  { seen, scripts }: { seen?: EnvSeen | undefined; scripts?: Scripts | undefined } = {},
): string => {
  const envFile = seen && ("content" in seen ? seen.content.hash : "cannot be used");
  const files = scripts && ("hash" in scripts ? scripts.hash : "cannot be used");
  return sha256({ place, subject: subjectOf(definition), envFile, files });
};

/** The only hash in version 1 of the file, for permissions and refusals alike. `cwd`: as Pi spells it. */
export const firstVersionHash = (definition: ServerDefinition, cwd: string): string => {
  const { name, target, auth, roots } = definition;
  return sha256({ cwd, name, target, auth, oauth: oauthOf(definition), roots });
};
