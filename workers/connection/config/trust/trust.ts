/**
 * What the user agreed to, as one session knows it: decides who may run, and remembers in mcp-trust.json what was
 * answered, and what is still to be answered: a file that a model wrote must not run at the next start because
 * nobody answered in this one.
 */
import { homedir } from "node:os";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { SessionFacts } from "../../../../src/shared/protocol/session.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { reasonOf } from "../../../shared/files/file-system.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type EnvLook, endOf, lookAtEnvFiles } from "../env-files/env-files.ts";
import { trustFile } from "../files/files.ts";
import {
  type Asked,
  askedOf,
  awaitingConsents,
  consentOf,
  decideTrust,
  type TrustDecision,
  type TrustFacts,
} from "./decide.ts";
import { loadTrust, remember } from "./file.ts";
import { placeOf } from "./keys.ts";
import { type Consent, isEverything, keyOf } from "./records.ts";

export type { PendingConsent } from "./decide.ts";

export interface Consents {
  /** Of the file itself, and of envFiles that may not decide what runs; as the last decision found them. */
  readonly problems: readonly ConfigProblem[];
  /** envFiles whose change asks for another decision. */
  readonly envFiles: readonly string[];
  /** Hashes that this session has let run; undefined before the first `accept`. */
  readonly accepted: ReadonlySet<string> | undefined;
  /** Who may run. What is not agreed to is in the file when this settles, so before anybody is asked. */
  decide(servers: readonly ServerDefinition[]): Promise<TrustDecision>;
  /** The decision is carried out. */
  accept(decision: TrustDecision): void;
  /** From now on nothing of the project counts as seen by whoever trusted it. */
  distrustStart(): void;
  /** Throws `bad_config` where the answer could not be remembered; it then holds for this session. */
  answer(asked: Asked, decision: "allowed" | "refused"): Promise<void>;
  /** What the user's own files say of this server is allowed here. Throws as `answer` does. */
  vouch(own: ServerDefinition): Promise<void>;
  /** Refusals do not count any more in this session; the file keeps them until there is another answer. */
  reopen(): void;
}

const FULL =
  "Servers of projects are asked for in each folder from now on, also those of .pi/mcp.json; delete the file to begin anew.";

export async function openConsents(session: SessionFacts, log: (problem: string) => void): Promise<Consents> {
  const { cwd, projectTrusted, canAsk, startedAtMs } = session;
  const file = trustFile(session.agentDir);
  const [{ consents: known, problem: unreadable }, folder] = await Promise.all([loadTrust(file), endOf(cwd)]);
  const place = placeOf(folder);
  let consents = known;
  let unwritable: ConfigProblem | undefined;
  let full: ConfigProblem | undefined;
  let look: EnvLook = { seen: new Map(), problems: [], files: [] };
  let accepted: ReadonlySet<string> | undefined = session.accepted && new Set(session.accepted.servers);
  // Where nothing is known of what the user wanted, nothing of the project may start unasked.
  if (unreadable) accepted ??= new Set();
  const reopened = new Set<string>();

  const decideNow = (servers: readonly ServerDefinition[], { seen: envFiles }: EnvLook): TrustDecision => {
    const counted = consents.filter(
      (consent) => consent.decision !== "refused" || !reopened.has(keyOf(consent)),
    );
    const facts: TrustFacts = { projectTrusted, canAsk, cwd, folder, envFiles, startedAtMs, accepted };
    return decideTrust(servers, counted, facts);
  };

  /** Also where the file cannot be written this session goes by it. */
  const store = async (added: readonly Consent[], unless: string): Promise<void> => {
    const wasFull = consents.some(isEverything);
    try {
      consents = await remember(file, added);
      unwritable = undefined;
    } catch (error) {
      const keys = new Set(added.map(keyOf));
      consents = [...consents.filter((consent) => !keys.has(keyOf(consent))), ...added];
      const message = `it cannot be written (${reasonOf(error)})`;
      unwritable = { severity: "error", file, message, remedy: unless };
      log(`${file}: ${message}`);
    }
    // Of a broken file it is told already.
    if (wasFull || unreadable || !consents.some(isEverything)) return;
    const message = "what was refused or put off before is not known any more";
    full = { severity: "warning", file, message, remedy: FULL };
  };

  const answer = async (asked: Asked, decision: "allowed" | "refused"): Promise<void> => {
    reopened.delete(keyOf(asked));
    await store([consentOf(asked, decision, Date.now())], "Your answer holds for this session only.");
    if (!unwritable) return;
    throw new ThreadsError("bad_config", `${file}: ${unwritable.message}.`, { remedy: unwritable.remedy });
  };

  return {
    get problems() {
      const own = [unreadable, unwritable, full].filter((problem) => problem !== undefined);
      return [...own, ...look.problems];
    },
    get envFiles() {
      return look.files;
    },
    get accepted() {
      return accepted;
    },
    decide: async (servers) => {
      const now = await lookAtEnvFiles(servers, { env: process.env, home: homedir(), cwd });
      look = now;
      const decision = decideNow(servers, now);
      const awaiting = awaitingConsents(decision, consents, { cwd }, Date.now());
      if (awaiting.length === 0) return decision;
      await store(
        awaiting,
        "Until it can be, servers of .pi/mcp.json that you did not agree to run at the next start.",
      );
      // Another process may have had the answer meanwhile.
      return decideNow(servers, now);
    },
    accept: (decision) => {
      accepted = decision.accepted;
    },
    distrustStart: () => {
      accepted ??= new Set();
    },
    answer,
    vouch: (own) => answer(askedOf(own, place), "allowed"),
    reopen: () => {
      for (const consent of consents) if (consent.decision === "refused") reopened.add(keyOf(consent));
    },
  };
}
