/**
 * Which servers of a project may run. `.pi/mcp.json` is as trusted as the project; every other project
 * file needs a consent for each server, bound to what would run. While a session is open, also a change
 * in `.pi/mcp.json` is asked for: a model can write files. What such a change brought and nobody agreed to is
 * asked for at every later start. So is, in any case, a server that the user's own file switches off and a
 * project's on. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "./canonical.ts";
import { consentQuestion } from "./consent-text.ts";
import type { ServerDefinition } from "./definition.ts";

export interface Consent {
  /** `consentHash` of what was asked for. */
  hash: string;
  /** `awaiting`: it was to be asked for, and there is no answer yet. */
  decision: "allowed" | "refused" | "awaiting";
  /** For people who read the file. */
  server: string;
  file: string;
  decidedAt: number;
}

export interface TrustFacts {
  projectTrusted: boolean;
  /** Whether somebody can be asked: TUI and RPC. */
  canAsk: boolean;
  /** Binds a consent to a place: the same command is another program in another project. */
  cwd: string;
  /**
   * Hashes that this session accepted already, from the `accepted` of the decision before. Undefined at
   * its start, where all of `.pi/mcp.json` counts as seen by whoever trusted the project.
   */
  accepted?: ReadonlySet<string> | undefined;
}

export interface PendingConsent {
  definition: ServerDefinition;
  hash: string;
  /** What would run, for a dialog. */
  question: string;
}

export interface RefusedServer {
  definition: ServerDefinition;
  hash: string;
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

/** Hex SHA-256 of what would run, as written: no secret is resolved for it. */
export const consentHash = ({ name, target, auth, oauth }: ServerDefinition, cwd: string): string =>
  createHash("sha256").update(canonical({ cwd, name, target, auth, oauth })).digest("hex");

/** Stands for all servers of a file, where there are too many to remember each. */
export const everyServerHash = (file: string): string =>
  createHash("sha256")
    .update(canonical({ everyServerOf: file }))
    .digest("hex");

type Verdict = { may: "run" } | { may: "ask" } | { may: "never"; reason: string };

function verdict(
  definition: ServerDefinition,
  hash: string,
  decisions: ReadonlyMap<string, Consent["decision"]>,
  facts: TrustFacts,
): Verdict {
  if (!definition.project) return { may: "run" };
  if (!facts.projectTrusted) return { may: "never", reason: "the project is not trusted" };
  if (facts.accepted?.has(hash)) return { may: "run" };
  const decision = decisions.get(hash);
  if (decision === "allowed") return { may: "run" };
  if (decision === "refused") return { may: "never", reason: "it was refused before; /mcp trust asks again" };
  const awaits = decision === "awaiting" || decisions.has(everyServerHash(definition.file));
  const isNarrow = definition.switchedOnBy === undefined;
  const asStarted = definition.origin === "project-pi" && isNarrow && facts.accepted === undefined && !awaits;
  if (asStarted) return { may: "run" };
  if (!definition.enabled) return { may: "run" };
  return facts.canAsk ? { may: "ask" } : { may: "never", reason: "nobody can be asked for consent here" };
}

/** Decides for every server. A switched-off server is let through: it does not run. */
export function decideTrust(
  definitions: readonly ServerDefinition[],
  consents: readonly Consent[],
  facts: TrustFacts,
): TrustDecision {
  const decisions = new Map(consents.map(({ hash, decision }) => [hash, decision]));
  const result: TrustDecision = {
    allowed: [],
    pending: [],
    refused: [],
    accepted: new Set(facts.accepted ?? []),
  };
  const decide = (definition: ServerDefinition): void => {
    const hash = consentHash(definition, facts.cwd);
    const decided = verdict(definition, hash, decisions, facts);
    if (decided.may === "run") {
      // A switched-off server was not asked for: switching it on must be.
      if (definition.project && definition.enabled) result.accepted.add(hash);
      result.allowed.push(definition);
      return;
    }
    if (decided.may === "ask") {
      result.pending.push({ definition, hash, question: consentQuestion(definition) });
    } else {
      result.refused.push({ definition, hash, reason: decided.reason });
    }
    if (definition.replaced) decide(definition.replaced);
  };
  for (const definition of definitions) decide(definition);
  return result;
}

/**
 * What a later start must not take for seen by whoever trusted the project: servers of `.pi/mcp.json` that may
 * not run and about which nothing is remembered. Every other file of a project is asked for in any case.
 */
export function awaitingConsents(
  { pending, refused }: TrustDecision,
  known: readonly Consent[],
  nowMs: number,
): Consent[] {
  const hashes = new Set(known.map(({ hash }) => hash));
  return [...pending, ...refused]
    .filter(({ hash, definition }) => {
      const isKnown = hashes.has(hash) || hashes.has(everyServerHash(definition.file));
      return definition.origin === "project-pi" && !isKnown;
    })
    .map(({ hash, definition: { name, file } }) => ({
      hash,
      decision: "awaiting",
      server: name,
      file,
      decidedAt: nowMs,
    }));
}
