/**
 * Decides which servers of a project may run. `.pi/mcp.json` is as trusted as the project; in every other project
 * file, each server needs a consent that is bound to what would run. While a session is open, a change in
 * `.pi/mcp.json` needs a consent too, because a model can write files; if nobody agrees, every later start asks
 * again. A server that the user's own file disables and a project's file enables needs a consent in any case. Pure.
 */

import { isAbsolute } from "node:path";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { advice } from "../../../shared/commands.ts";
import { isUsersOwn, type ServerDefinition } from "../entry/definition.ts";
import type { EnvSeen } from "../env-files/env-files.ts";
import type { Scripts } from "../env-files/scripts.ts";
import { consentQuestion, leastChars } from "./question.ts";
import {
  type Consent,
  consentHash,
  createRecords,
  keyOf,
  placeOf,
  type Standing,
  subjectOf,
} from "./records.ts";

export interface TrustFacts {
  projectTrusted: boolean;
  /** Whether a person can be asked: in the TUI and over RPC. */
  canAsk: boolean;
  /** The real path of the session's folder. A permission is bound to it: the same command is another program elsewhere. */
  folder: string;
  /** The current content of the servers' envFiles. */
  envFiles?: ReadonlyMap<ServerDefinition, EnvSeen> | undefined;
  /** The files of the project that its servers name, with their current content. */
  scripts?: ReadonlyMap<ServerDefinition, Scripts> | undefined;
  /** When the session began. The person who trusted the project has not seen an envFile that was written later. */
  startedAtMs?: number | undefined;
  /**
   * What this session has accepted (`acceptedAs`): `accepted` of the decision before. Undefined at the start of the session,
   * when all of `.pi/mcp.json` counts as seen by the person who trusted the project.
   */
  accepted?: ReadonlySet<string> | undefined;
}

/** A server of a project, and the hashes to which a decision about it is bound. */
export interface Asked {
  definition: ServerDefinition;
  hash: string;
  subject: string;
  place: string;
}

export interface PendingConsent extends Asked {
  /** Everything that would run, for a dialog. */
  question: string;
}

interface RefusedServer extends Asked {
  reason: string;
  /** A person refused it, and can be asked again. */
  byPerson?: true;
}

export interface TrustDecision {
  /** The servers that may run. If a project's server may not run, the server that it replaced is here. */
  allowed: ServerDefinition[];
  pending: PendingConsent[];
  refused: RefusedServer[];
  /** For the facts of the next decision. */
  accepted: Set<string>;
}

type Verdict = { may: "run" } | { may: "ask" } | { may: "never"; reason: string; byPerson?: true };

function verdict(asked: Asked, { own, elsewhere }: Standing, facts: TrustFacts): Verdict {
  const { definition } = asked;
  const { origin, enabled, enabledByProject } = definition;
  if (!definition.project) return { may: "run" };
  if (!facts.projectTrusted && origin !== "package")
    return { may: "never", reason: "the project is not trusted" };
  // A no counts more than what was accepted before it, such as an earlier content of the same server's files.
  if (own !== "refused" && facts.accepted?.has(acceptedAs(asked))) return { may: "run" };
  if (own === "allowed") return { may: "run" };
  const isRefused = own === "refused" || (own === undefined && elsewhere === "refused");
  if (isRefused) return { may: "never", reason: `it was refused; ${advice("askAgain")}`, byPerson: true };
  const isKnown = own !== undefined || elsewhere !== undefined;
  const atStart = origin === "project-pi" && enabledByProject === undefined && facts.accepted === undefined;
  if (atStart && !isKnown && !isEnvNewer(definition, facts)) return { may: "run" };
  if (!enabled) return { may: "run" };
  return facts.canAsk ? { may: "ask" } : { may: "never", reason: "no one can be asked for consent here" };
}

function isEnvNewer(definition: ServerDefinition, { envFiles, startedAtMs }: TrustFacts): boolean {
  const seen = envFiles?.get(definition);
  if (startedAtMs === undefined || !seen || !("content" in seen)) return false;
  return (seen.changedAtMs ?? 0) > startedAtMs;
}

/** What of the project's files a decision is bound to, beside the definition. */
interface Bound {
  seen?: EnvSeen | undefined;
  scripts?: Scripts | undefined;
}

/** A person cannot check a question of any length, so a longer question is not asked. */
function questionOf(
  definition: ServerDefinition,
  { seen, scripts }: Bound,
  isAgain: boolean,
): { question: string } | { reason: string } {
  if (scripts && "reason" in scripts) return scripts;
  const least = leastChars(definition, seen);
  const question =
    least > LIMITS.consentChars ? "" : consentQuestion(definition, seen, scripts?.names, isAgain);
  const chars = Math.max(least, question.length);
  if (chars <= LIMITS.consentChars) return { question };
  const reason = `all that it would do takes at least ${chars} characters to tell, and more than ${LIMITS.consentChars} are not asked for`;
  return { reason: `${reason}; make its entry in ${definition.file}, or its envFile, shorter` };
}

/**
 * The folder to which a decision is bound: the session's, where the same command is another program than elsewhere. What a
 * package or a folder above sends to an address, or runs in a folder of its own, is the same everywhere.
 */
export const folderOf = ({ base, target }: ServerDefinition, session: string): string =>
  base && (target.kind === "http" || isAbsolute((target.kind === "stdio" ? target.cwd : target.socket) ?? ""))
    ? base.folder
    : session;

/** Decides for every server. A disabled server is allowed, because it does not run. */
export function decideTrust(
  definitions: readonly ServerDefinition[],
  consents: readonly Consent[],
  facts: TrustFacts,
): TrustDecision {
  const standingOf = createRecords(consents);
  const places = new Map<string, string>();
  const result: TrustDecision = {
    allowed: [],
    pending: [],
    refused: [],
    accepted: new Set(facts.accepted ?? []),
  };
  const allow = (definition: ServerDefinition, { seen, scripts }: Bound): void => {
    const agreed = {
      ...(seen && "content" in seen && { agreedEnvFile: seen.content.hash }),
      ...(scripts && "hash" in scripts && { agreedScripts: scripts.hash }),
    };
    result.allowed.push(Object.keys(agreed).length === 0 ? definition : { ...definition, ...agreed });
  };
  const decide = (definition: ServerDefinition): void => {
    if (!definition.project) {
      result.allowed.push(definition);
      return;
    }
    const seen = isUsersOwn(definition) ? undefined : facts.envFiles?.get(definition);
    // Only here: without a server of the project nothing is hashed, and Node's crypto need not load.
    const decidedIn = folderOf(definition, facts.folder);
    const place = places.get(decidedIn) ?? placeOf(decidedIn);
    places.set(decidedIn, place);
    const bound: Bound = { seen, scripts: facts.scripts?.get(definition) };
    const asked = askedOf(definition, place, bound);
    const standing = standingOf(asked);
    const decided = verdict(asked, standing, facts);
    if (decided.may === "run") {
      // Nobody was asked about a disabled server: enabling it needs a question.
      if (definition.enabled) result.accepted.add(acceptedAs(asked));
      allow(definition, bound);
      return;
    }
    if (decided.may === "never") {
      const { may: _, ...why } = decided;
      result.refused.push({ ...asked, ...why });
    } else {
      const made = questionOf(definition, bound, standing.own === "changed");
      if ("question" in made) result.pending.push({ ...asked, ...made });
      else result.refused.push({ ...asked, ...made });
    }
    if (definition.replaced) decide(definition.replaced);
  };
  for (const definition of definitions) decide(definition);
  return result;
}

/** The hashes to which a decision about a server is bound, in this place and with this content of its files. */
export const askedOf = (definition: ServerDefinition, place: string, bound?: Bound): Asked => ({
  definition,
  hash: consentHash(definition, place, bound),
  subject: subjectOf(definition),
  place,
});

/** With the key of its decision, by which all contents of one server are found. */
const acceptedAs = (asked: Asked): string => `${asked.hash} ${keyOf(asked)}`;

/** What is left of what was accepted once the server's decision is another one. `key`: `keyOf` the decision. */
export const acceptedWithout = (accepted: Iterable<string>, key: string): Set<string> =>
  new Set([...accepted].filter((one) => !one.endsWith(` ${key}`)));

/** A decision in the form in which it is remembered. */
export const consentOf = (
  { definition: { name, file }, hash, subject, place }: Asked,
  decision: Consent["decision"],
  nowMs: number,
): Consent => ({ hash, subject, place, decision, server: name, file, decidedAt: nowMs });

/**
 * The servers that a later start must not count as seen by the person who trusted the project: servers of
 * `.pi/mcp.json` that may not run and about which nothing is remembered here. Servers of every other project file
 * need a consent in any case.
 */
export function awaitingConsents(
  { pending, refused }: TrustDecision,
  known: readonly Consent[],
  nowMs: number,
): Consent[] {
  const standingOf = createRecords(known);
  return [...pending, ...refused]
    .filter((asked) => asked.definition.origin === "project-pi" && standingOf(asked).own === undefined)
    .map((asked) => consentOf(asked, "awaiting", nowMs));
}
