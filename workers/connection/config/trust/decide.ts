/**
 * Which servers of a project may run. `.pi/mcp.json` is as trusted as the project; every other project
 * file needs a consent for each server, bound to what would run. While a session is open, also a change
 * in `.pi/mcp.json` is asked for: a model can write files. What such a change brought and nobody agreed to is
 * asked for at every later start. So is, in any case, a server that the user's own file switches off and a
 * project's on. Pure.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type EnvSeen, isOwn } from "../env-files/env-files.ts";
import { consentHash, firstVersionHash, placeOf, subjectOf } from "./keys.ts";
import { consentQuestion, leastChars } from "./question.ts";
import { type Consent, createRecords, type Standing } from "./records.ts";

export interface TrustFacts {
  projectTrusted: boolean;
  /** Whether somebody can be asked: TUI and RPC. */
  canAsk: boolean;
  /** The session's folder as Pi names it. */
  cwd: string;
  /** Where that folder really lies. Binds a permission to a place: the same command is another program elsewhere. */
  folder: string;
  /** What the servers' envFiles hold now. */
  envFiles?: ReadonlyMap<ServerDefinition, EnvSeen> | undefined;
  /** When the session began: an envFile that was written later was not seen by whoever trusted the project. */
  startedAtMs?: number | undefined;
  /**
   * Hashes that this session accepted already, from the `accepted` of the decision before. Undefined at
   * its start, where all of `.pi/mcp.json` counts as seen by whoever trusted the project.
   */
  accepted?: ReadonlySet<string> | undefined;
}

/** A server of a project, and what a decision about it is bound to. */
export interface Asked {
  definition: ServerDefinition;
  hash: string;
  subject: string;
  place: string;
}

export interface PendingConsent extends Asked {
  /** What would run, for a dialog. */
  question: string;
}

export interface RefusedServer extends Asked {
  reason: string;
}

export interface TrustDecision {
  /** May run. Where a project's server may not, the one that it replaced is here. */
  allowed: ServerDefinition[];
  pending: PendingConsent[];
  refused: RefusedServer[];
  /** For the next decision's facts. */
  accepted: Set<string>;
}

type Verdict = { may: "run" } | { may: "ask" } | { may: "never"; reason: string };

function verdict({ definition, hash }: Asked, { own, elsewhere }: Standing, facts: TrustFacts): Verdict {
  const { origin, enabled, enabledByProject } = definition;
  if (!definition.project) return { may: "run" };
  if (!facts.projectTrusted) return { may: "never", reason: "the project is not trusted" };
  if (facts.accepted?.has(hash)) return { may: "run" };
  if (own === "allowed") return { may: "run" };
  const isRefused = own === "refused" || (own === undefined && elsewhere === "refused");
  if (isRefused) return { may: "never", reason: "it was refused before; /mcp trust asks again" };
  const isKnown = own !== undefined || elsewhere !== undefined;
  const atStart = origin === "project-pi" && enabledByProject === undefined && facts.accepted === undefined;
  if (atStart && !isKnown && !isEnvNewer(definition, facts)) return { may: "run" };
  if (!enabled) return { may: "run" };
  return facts.canAsk ? { may: "ask" } : { may: "never", reason: "nobody can be asked for consent here" };
}

function isEnvNewer(definition: ServerDefinition, { envFiles, startedAtMs }: TrustFacts): boolean {
  const seen = envFiles?.get(definition);
  if (startedAtMs === undefined || !seen || !("content" in seen)) return false;
  return (seen.changedAtMs ?? 0) > startedAtMs;
}

/** Nobody checks a question of any length, so a longer one is not asked. */
function questionOf(definition: ServerDefinition, seen?: EnvSeen): { question: string } | { reason: string } {
  const least = leastChars(definition, seen);
  const question = least > LIMITS.consentChars ? "" : consentQuestion(definition, seen);
  const chars = Math.max(least, question.length);
  if (chars <= LIMITS.consentChars) return { question };
  const reason = `all that it would do takes at least ${chars} characters to tell, and more than ${LIMITS.consentChars} are not asked for`;
  return { reason: `${reason}; make its entry in ${definition.file}, or its envFile, shorter` };
}

/** Decides for every server. A switched-off server is let through: it does not run. */
export function decideTrust(
  definitions: readonly ServerDefinition[],
  consents: readonly Consent[],
  facts: TrustFacts,
): TrustDecision {
  const standingOf = createRecords(consents);
  const place = placeOf(facts.folder);
  const result: TrustDecision = {
    allowed: [],
    pending: [],
    refused: [],
    accepted: new Set(facts.accepted ?? []),
  };
  const allow = (definition: ServerDefinition, seen: EnvSeen | undefined): void => {
    const agreedEnvFile = seen && "content" in seen ? seen.content.hash : undefined;
    result.allowed.push(agreedEnvFile === undefined ? definition : { ...definition, agreedEnvFile });
  };
  const decide = (definition: ServerDefinition): void => {
    if (!definition.project) {
      allow(definition, undefined);
      return;
    }
    const seen = isOwn(definition) ? undefined : facts.envFiles?.get(definition);
    const asked = askedOf(definition, place, seen);
    const firstVersion = { hash: firstVersionHash(definition, facts.cwd), coversAll: seen === undefined };
    const standing = standingOf({ ...asked, name: definition.name, firstVersion });
    const decided = verdict(asked, standing, facts);
    if (decided.may === "run") {
      // A switched-off server was not asked for: switching it on must be.
      if (definition.enabled) result.accepted.add(asked.hash);
      allow(definition, seen);
      return;
    }
    if (decided.may === "never") result.refused.push({ ...asked, reason: decided.reason });
    else {
      const made = questionOf(definition, seen);
      if ("question" in made) result.pending.push({ ...asked, ...made });
      else result.refused.push({ ...asked, ...made });
    }
    if (definition.replaced) decide(definition.replaced);
  };
  for (const definition of definitions) decide(definition);
  return result;
}

/** What a decision about a server is bound to, in this place and with what its envFile holds. */
export const askedOf = (definition: ServerDefinition, place: string, seen?: EnvSeen): Asked => ({
  definition,
  hash: consentHash(definition, place, seen),
  subject: subjectOf(definition),
  place,
});

/** A decision as it is remembered. */
export const consentOf = (
  { definition: { name, file }, hash, subject, place }: Asked,
  decision: Consent["decision"],
  nowMs: number,
): Consent => ({ hash, subject, place, decision, server: name, file, decidedAt: nowMs });

/**
 * What a later start must not take for seen by whoever trusted the project: servers of `.pi/mcp.json` that may
 * not run and about which nothing is remembered here. Every other file of a project is asked for in any case.
 */
export function awaitingConsents(
  { pending, refused }: TrustDecision,
  known: readonly Consent[],
  facts: Pick<TrustFacts, "cwd">,
  nowMs: number,
): Consent[] {
  const standingOf = createRecords(known);
  return [...pending, ...refused]
    .filter((asked) => {
      const { definition } = asked;
      const firstVersion = { hash: firstVersionHash(definition, facts.cwd), coversAll: false };
      const { own } = standingOf({ ...asked, name: definition.name, firstVersion });
      return definition.origin === "project-pi" && own === undefined;
    })
    .map((asked) => consentOf(asked, "awaiting", nowMs));
}
