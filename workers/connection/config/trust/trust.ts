/**
 * Owns: what the user agreed to, as one session knows it. Decides who may run, and remembers in mcp-trust.json what
 * the user answered and what is still to be answered: a file that a model wrote must not run at the next start
 * because nobody answered in this one. Must not: apply a decision, or ask.
 */

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { ProjectDecision } from "../../../../src/shared/protocol/person.ts";
import type { ConfigProblem, SessionFacts } from "../../../../src/shared/protocol/session.ts";
import { fileStamp } from "../../../../src/shared/protocol/values.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type EnvLook, lookAtEnvFiles } from "../env-files/env-files.ts";
import { endOf } from "../files/path-stops.ts";
import { type ConfigFacts, projectPiFile, readText, trustFile } from "../files/sources.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";
import {
  type Asked,
  acceptedWithout,
  askedOf,
  awaitingConsents,
  consentOf,
  decideTrust,
  folderOf,
  type TrustDecision,
  type TrustFacts,
} from "./decide.ts";
import { openStore } from "./file.ts";
import { type Consent, keyOf, placeOf, subjectOf } from "./records.ts";

/**
 * The answers that the user has taken back in this session: refusals, which the file keeps until there is another answer, and
 * permissions, from the wish on, while the file may still have them and a plan may still go by them.
 */
class TakenBack {
  readonly #refusals = new Set<string>();
  readonly #permissions: Set<string>;

  /** `permissions`: those of a worker before this one. */
  constructor(permissions: readonly string[] = []) {
    this.#permissions = new Set(permissions);
  }

  refusals(consents: readonly Consent[]): void {
    for (const consent of consents) if (consent.decision === "refused") this.#refusals.add(keyOf(consent));
  }

  /** By their keys. */
  get permissions(): string[] {
    return [...this.#permissions];
  }

  permission(key: string): void {
    this.#permissions.add(key);
  }

  answered(key: string): void {
    this.#refusals.delete(key);
    this.#permissions.delete(key);
  }

  /** `folder`: the session's. */
  mayRun(definition: ServerDefinition, folder: string): boolean {
    if (!definition.project || this.#permissions.size === 0) return true;
    const place = placeOf(folderOf(definition, folder));
    return !this.#permissions.has(keyOf({ subject: subjectOf(definition), place }));
  }

  /** The records as they count. A permission is not left out: of a server of which nothing is known nobody is asked. */
  counted(consents: readonly Consent[]): Consent[] {
    return consents.flatMap((consent) => {
      const key = keyOf(consent);
      if (consent.decision === "refused" && this.#refusals.has(key)) return [];
      const isBack = consent.decision === "allowed" && this.#permissions.has(key);
      return isBack ? { ...consent, decision: "awaiting" } : consent;
    });
  }

  /**
   * A new decision is carried out, and no older one any more: the file alone counts for what it no longer has as allowed.
   * `written`: what it has. A worker that follows this one reads it again.
   */
  decided(written: readonly Consent[]): void {
    const allowed = new Set(written.filter(({ decision }) => decision === "allowed").map(keyOf));
    for (const key of this.#permissions) if (!allowed.has(key)) this.#permissions.delete(key);
  }
}

/** More decisions than a person looks through. */
const TOLD = 500;

/** `here`: the places of this session's servers. */
function decisionsOf(consents: readonly Consent[], here: ReadonlySet<string>): ProjectDecision[] {
  const told = consents.flatMap((consent): ProjectDecision[] => {
    const { decision, server, file, decidedAt, place } = consent;
    if (decision === "awaiting") return [];
    return [{ id: keyOf(consent), server, file, decision, decidedAt, here: here.has(place) }];
  });
  return told.sort((a, b) => b.decidedAt - a.decidedAt).slice(0, TOLD);
}

/** The places to which decisions about these servers are bound. */
const placesOf = (servers: readonly ServerDefinition[], folder: string): ReadonlySet<string> =>
  new Set([folder, ...servers.map((server) => folderOf(server, folder))].map(placeOf));

const HOLDS = "Your answer holds for this session only.";

export type Consents = Awaited<ReturnType<typeof openConsents>>;

export async function openConsents(session: SessionFacts, log: (problem: string) => void) {
  const { cwd, projectTrusted, canAsk, startedAtMs } = session;
  const [store, folder] = await Promise.all([openStore(trustFile(session.agentDir), log), endOf(cwd)]);
  let look: EnvLook = { seen: new Map(), scripts: new Map(), problems: [], files: [] };
  let accepted: ReadonlySet<string> | undefined = session.accepted && new Set(session.accepted.servers);
  // Without a readable file nobody knows what the user wanted: nothing of the project may start unasked.
  if (store.isUnreadable) accepted ??= new Set();
  const takenBack = new TakenBack(session.accepted?.takenBack);
  let decided: readonly ServerDefinition[] = [];

  const decideNow = (
    servers: readonly ServerDefinition[],
    { seen: envFiles, scripts }: EnvLook,
  ): TrustDecision => {
    const facts: TrustFacts = { projectTrusted, canAsk, folder, envFiles, scripts, startedAtMs, accepted };
    return decideTrust(servers, takenBack.counted(store.consents), facts);
  };

  /** Throws `bad_config` if the answer cannot be remembered; it then holds for this session. */
  const remembered = async (consent: Consent, replaces = false): Promise<void> => {
    const unwritable = await store.add([consent], HOLDS, replaces);
    if (!unwritable) return;
    throw new ThreadsError("bad_config", `${unwritable.file}: ${unwritable.message}.`, {
      remedy: unwritable.remedy,
    });
  };
  const answer = (asked: Asked, decision: "allowed" | "refused"): Promise<void> => {
    takenBack.answered(keyOf(asked));
    if (decision === "refused") accepted = accepted && acceptedWithout(accepted, keyOf(asked));
    return remembered(consentOf(asked, decision, Date.now()));
  };

  return {
    /** Mistakes of mcp-trust.json, and of envFiles that may not decide what runs, as the last decision found them. */
    get problems(): readonly ConfigProblem[] {
      return [...store.problems, ...look.problems];
    },
    /** The envFiles that the last decision looked at. If one of them changes, another decision is due. */
    get envFiles(): readonly string[] {
      return look.files;
    },
    /** What this session has let run; undefined before the first `accept`. */
    get accepted(): ReadonlySet<string> | undefined {
      return accepted;
    },
    takenBack,
    /**
     * Who may run. Before this settles, everything that nobody has agreed to is in the file: so before anybody is
     * asked.
     */
    decide: async (servers: readonly ServerDefinition[]): Promise<TrustDecision> => {
      const now = await lookAtEnvFiles(servers, { env: process.env, home: homedir(), cwd });
      [look, decided] = [now, servers];
      const decision = decideNow(servers, now);
      const awaiting = awaitingConsents(decision, store.consents, Date.now());
      if (awaiting.length === 0) return decision;
      await store.add(
        awaiting,
        "Until it can be, servers of .pi/mcp.json that you did not agree to run at the next start.",
      );
      // Another process may have got the answer meanwhile.
      return decideNow(servers, now);
    },
    /** The decision is carried out. */
    accept: (decision: TrustDecision): void => {
      accepted = decision.accepted;
      takenBack.decided(store.written);
    },
    /** False: the decision by which the server runs, or was to run, has been taken back since. */
    mayRun: (definition: ServerDefinition): boolean => takenBack.mayRun(definition, folder),
    /** From now on, nothing of the project counts as seen by the person who trusted it. */
    distrustStart: (): void => {
      accepted ??= new Set();
    },
    answer,
    /** What was decided, the newest first. A record that awaits an answer is no decision. */
    get decisions(): ProjectDecision[] {
      return decisionsOf(store.consents, placesOf(decided, folder));
    },
    /**
     * The decision becomes a question again. It is not forgotten: a server of which nothing is known could run unasked at the
     * next start. It no longer counts at once, also for a plan that is being carried out. Throws as `answer` does.
     */
    takeBack: async (id: string): Promise<void> => {
      const consent = store.consents.find((one) => one.decision !== "awaiting" && keyOf(one) === id);
      if (!consent) return;
      takenBack.permission(id);
      accepted = acceptedWithout(accepted ?? [], id);
      await remembered({ ...consent, decision: "awaiting", decidedAt: Date.now() }, true);
    },
    /** The user allows here what his own files say of this server. Throws as `answer` does. */
    allowAsUser: (own: ServerDefinition): Promise<void> => answer(askedOf(own, placeOf(folder)), "allowed"),
    /** Refusals stop counting in this session. The file keeps them until there is another answer. */
    reopen: (): void => takenBack.refusals(store.consents),
  };
}

/**
 * Whether the file is another than at the start of the session. Call it after the first read: an edit during that
 * read counts.
 */
export async function changedSinceStart(
  { cwd, projectFile }: SessionFacts,
  { unanswered }: Pick<LoadedConfig, "unanswered">,
): Promise<boolean> {
  if (projectFile === undefined) return false;
  // What it will say when it answers, nobody has seen.
  if (unanswered.has(projectPiFile(cwd))) return true;
  const found = await stat(projectPiFile(cwd)).catch(() => undefined);
  return fileStamp(found) !== projectFile;
}

/**
 * Remembers an edit that the watcher has not reported yet, so that the next start asks about it. `last`: what the
 * watcher last read. `consents` remembers what nobody has agreed to when it decides.
 */
export async function rememberLastEdit(
  session: SessionFacts,
  { facts, last }: { facts: ConfigFacts; last: LoadedConfig },
  consents: { envFiles: readonly string[]; decide(servers: LoadedConfig["servers"]): Promise<unknown> },
): Promise<void> {
  if (!session.projectTrusted) return;
  const file = projectPiFile(session.cwd);
  const read = await readText(file);
  const isEdited = read.kind === "text" && read.text !== last.texts.get(file);
  if (!isEdited && consents.envFiles.length === 0) return;
  await consents.decide((await loadConfig(facts, last)).servers);
}
