/**
 * The decisions of `mcp-trust.json` in memory: how a new one joins those that are there, how many are kept, and what
 * is known of one server. Whatever is forgotten for want of room is asked for again, never allowed. Pure.
 */
import { EVERY_SUBJECT } from "./keys.ts";

export type Decision = "allowed" | "refused" | "awaiting";

export interface Consent {
  /** What a permission holds for: `consentHash`. Without `subject`: the hash of version 1. */
  hash: string;
  /** What a refusal holds for: `subjectOf`. Absent in what version 1 wrote. */
  subject?: string | undefined;
  /** `placeOf` the folder where it was decided. Goes with `subject`. */
  place?: string | undefined;
  /** `awaiting`: it was to be asked for, and there is no answer yet. */
  decision: Decision;
  /** For people who read the file, cut where it is long. */
  server: string;
  file: string;
  decidedAt: number;
}

/** The oldest permissions go first: their servers are asked for again. */
const KEPT_ALLOWED = 1_000;
/** The user gives each of these answers by hand, so that nobody reaches this number. */
const KEPT_REFUSED = 1_000;
/** A model that writes files can make any number of these. Beyond this one, everything awaits an answer. */
const KEPT_AWAITING = 500;

const NAME_CHARS = 60;
const FILE_CHARS = 200;

/** Two decisions with the same key are about the same server in the same folder: the newer one counts. */
export const keyOf = ({ subject, place, hash }: Pick<Consent, "subject" | "place" | "hash">): string =>
  subject === undefined ? hash : `${subject} ${place}`;

/** Stands for every server of every project: each is asked for unless there is a decision of its own. */
export const everythingAwaits = (nowMs: number): Consent => ({
  hash: EVERY_SUBJECT,
  subject: EVERY_SUBJECT,
  place: "",
  decision: "awaiting",
  server: "*",
  file: "*",
  decidedAt: nowMs,
});

/** Version 1 wrote a record that stood for all servers of one file; it counts for all. */
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

/** The newer decision counts; that something awaits one never replaces one. */
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

/** How one server stands to the records. */
export interface Standing {
  /** The decision of the folder where Pi runs. `changed`: what was allowed there is not what would run now. */
  own: Decision | "changed" | undefined;
  /** What decisions of other folders, or about everything, say: it may not run unasked. */
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

/** Indexes the records once and answers how each server stands to them. */
export function createRecords(consents: readonly Consent[]): (server: Subject) => Standing {
  const byKey = new Map(consents.map((consent) => [keyOf(consent), consent]));
  const denied = consents.filter(({ decision }) => decision !== "allowed");
  const bySubject = Map.groupBy(denied, ({ subject }) => subject);
  /** Version 1 bound its refusals to a path, which may have changed since: only the server's name is left to know them by. */
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
