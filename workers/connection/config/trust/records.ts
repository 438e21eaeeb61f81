/**
 * The decisions of `mcp-trust.json` in memory: how a new decision joins the others, how many are kept, and what is
 * known about one server. A decision that is dropped for want of room leads to a new question, never to a permission.
 * Pure.
 */
import { EVERY_SUBJECT } from "./keys.ts";

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

export interface Subject {
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
