/**
 * What the user agreed to, as one session knows it: decides who may run, and remembers in mcp-trust.json what was
 * answered, and what is still to be answered: a file that a model wrote must not run at the next start because
 * nobody answered in this one.
 */
import { ThreadsError } from "../../../src/protocol/errors.ts";
import type { ConfigProblem, SessionFacts } from "../../../src/protocol/types.ts";
import { reasonOf } from "../../cache/file-system.ts";
import type { ServerDefinition } from "./definition.ts";
import { trustFile } from "./paths.ts";
import {
  awaitingConsents,
  type Consent,
  decideTrust,
  type PendingConsent,
  type TrustDecision,
} from "./trust.ts";
import { loadTrust, remember } from "./trust-file.ts";

export interface Consents {
  /** Of the file itself: it could not be read when the session began, or it cannot be written now. */
  readonly problems: readonly ConfigProblem[];
  /** Hashes that this session has let run; undefined before the first `accept`. */
  readonly accepted: ReadonlySet<string> | undefined;
  /** Who may run. What is not agreed to is in the file when this settles, so before anybody is asked. */
  decide(servers: readonly ServerDefinition[]): Promise<TrustDecision>;
  /** The decision is carried out. */
  accept(decision: TrustDecision): void;
  /** From now on nothing of the project counts as seen by whoever trusted it. */
  distrustStart(): void;
  /** Throws `bad_config` where the answer could not be remembered; it then holds for this session. */
  answer(
    pending: Pick<PendingConsent, "hash" | "definition">,
    decision: "allowed" | "refused",
  ): Promise<void>;
  /** Refusals do not count any more in this session; the file keeps them until there is another answer. */
  reopen(): void;
}

export async function openConsents(session: SessionFacts, log: (problem: string) => void): Promise<Consents> {
  const { cwd, projectTrusted, canAsk } = session;
  const file = trustFile(session.agentDir);
  const { consents: known, problem: unreadable } = await loadTrust(file);
  let consents = known;
  let unwritable: ConfigProblem | undefined;
  let accepted: ReadonlySet<string> | undefined = session.accepted && new Set(session.accepted.servers);
  // Where nothing is known of what the user wanted, nothing of the project may start unasked.
  if (unreadable) accepted ??= new Set();
  const reopened = new Set<string>();

  const decideNow = (servers: readonly ServerDefinition[]): TrustDecision => {
    const counted = consents.filter(({ hash, decision }) => decision !== "refused" || !reopened.has(hash));
    return decideTrust(servers, counted, { projectTrusted, canAsk, cwd, accepted });
  };

  /** Also where the file cannot be written this session goes by it. */
  const store = async (added: readonly Consent[], unless: string): Promise<void> => {
    try {
      consents = await remember(file, added);
      unwritable = undefined;
    } catch (error) {
      const hashes = new Set(added.map(({ hash }) => hash));
      consents = [...consents.filter(({ hash }) => !hashes.has(hash)), ...added];
      const message = `it cannot be written (${reasonOf(error)})`;
      unwritable = { severity: "error", file, message, remedy: unless };
      log(`${file}: ${message}`);
    }
  };

  return {
    get problems() {
      return [unreadable, unwritable].filter((problem) => problem !== undefined);
    },
    get accepted() {
      return accepted;
    },
    decide: async (servers) => {
      const decision = decideNow(servers);
      const awaiting = awaitingConsents(decision, consents, Date.now());
      if (awaiting.length === 0) return decision;
      await store(
        awaiting,
        "Until it can be, servers of .pi/mcp.json that you did not agree to run at the next start.",
      );
      // Another process may have had the answer meanwhile.
      return decideNow(servers);
    },
    accept: (decision) => {
      accepted = decision.accepted;
    },
    distrustStart: () => {
      accepted ??= new Set();
    },
    answer: async ({ hash, definition }, decision) => {
      reopened.delete(hash);
      const consent: Consent = {
        hash,
        decision,
        server: definition.name,
        file: definition.file,
        decidedAt: Date.now(),
      };
      await store([consent], "Your answer holds for this session only.");
      if (!unwritable) return;
      throw new ThreadsError("bad_config", `${file}: ${unwritable.message}.`, { remedy: unwritable.remedy });
    },
    reopen: () => {
      for (const { hash, decision } of consents) if (decision === "refused") reopened.add(hash);
    },
  };
}
