/**
 * The configuration that runs: loads and follows the files, decides which servers may run, and turns each
 * change into a plan that is handed on. Owns what waits for the user's word; starts nothing itself.
 */
import { stat } from "node:fs/promises";
import { fileStamp } from "../../src/protocol/stamp.ts";
import type { ConfigProblem, ConsentQuestion, SessionFacts } from "../../src/protocol/types.ts";
import { openConsents } from "./config/consents.ts";
import type { ServerDefinition } from "./config/definition.ts";
import type { LiveConfig } from "./config/live.ts";
import { configFacts, describeProblem, type LoadedConfig, loadConfig } from "./config/load.ts";
import { type ConfigFacts, projectPiFile, type RegisteredServer } from "./config/paths.ts";
import { readText } from "./config/read.ts";
import { DEFAULT_SETTINGS } from "./config/settings.ts";
import type { PendingConsent } from "./config/trust.ts";
import type { Log } from "./log.ts";
import { type Configuration, isIdle, type Plan, plan } from "./plan.ts";

/** What the user is told and asked, beside what the plan does. */
export interface ConfigState {
  problems: ConfigProblem[];
  files: string[];
  questions: ConsentQuestion[];
  /** Servers of the project that may not run, with the reason. */
  refused: { name: string; reason: string }[];
}

export interface RunningConfiguration {
  readonly now: Configuration;
  readonly state: ConfigState;
  readonly facts: ConfigFacts;
  /** As the files define it, whether it may run or not. */
  configured(name: string): ServerDefinition | undefined;
  /** Remembers the user's answer and applies what it allows. */
  answer(hash: string, decision: "allowed" | "refused"): Promise<void>;
  /** Forgets refusals of this project's servers, so that they are asked for again. */
  askAgain(): Promise<void>;
  /** Applies an edit that waits because of `hotReload: "ask"`; false leaves it waiting. */
  applyHeld(apply: boolean): Promise<void>;
  /** Reads now and applies also what was held: for a change that the user made here. */
  reload(changed?: { registered?: readonly RegisteredServer[] }): Promise<void>;
  close(): Promise<void>;
}

export interface ConfigurationOptions {
  facts: SessionFacts;
  log: Log;
  /** Carries a plan out. The first call is the start of the session. `accepted`: hashes that were let run. */
  onPlan: (change: Plan, state: ConfigState, accepted: string[]) => Promise<void>;
  /** An edit waits for the user: what it would do. */
  onHeld: (change: Plan) => void;
  /** A file is being written: a plan may follow in a moment. */
  onStir: () => void;
}

const NOTHING: Configuration = { servers: [], settings: DEFAULT_SETTINGS };

/** Looked at after the read, so that an edit during it counts as one. */
async function changedSinceStart({ cwd, projectFile }: SessionFacts): Promise<boolean> {
  if (projectFile === undefined) return false;
  const found = await stat(projectPiFile(cwd)).catch(() => undefined);
  return fileStamp(found) !== projectFile;
}

/** Settles when the first plan has been handed on. */
export async function runConfiguration(options: ConfigurationOptions): Promise<RunningConfiguration> {
  const { facts: session, log, onPlan, onHeld, onStir } = options;
  const facts = configFacts(session);
  const consents = await openConsents(session, log.error);
  let running = NOTHING;
  let held: LoadedConfig | undefined;
  let pending: PendingConsent[] = [];
  let state: ConfigState = { problems: [], files: [], questions: [], refused: [] };

  const applyNow = async (config: LoadedConfig): Promise<void> => {
    held = undefined;
    const trust = await consents.decide(config.servers);
    consents.accept(trust);
    const next: Configuration = { servers: trust.allowed, settings: config.settings };
    const change = plan(running, next);
    running = next;
    for (const problem of config.problems) log.warn(describeProblem(problem));
    for (const { definition, reason } of trust.refused)
      log.warn(`${definition.name} is not started: ${reason}`);
    pending = trust.pending;
    state = {
      problems: [...consents.problems, ...config.problems],
      files: config.files,
      questions: pending.map(({ definition, hash, question }) => ({
        server: definition.name,
        hash,
        question,
      })),
      refused: trust.refused.map(({ definition, reason }) => ({ name: definition.name, reason })),
    };
    await onPlan(change, state, [...trust.accepted]);
  };

  /** An edit and an answer may come at the same time. */
  let applying: Promise<void> = Promise.resolve();
  const apply = (config: LoadedConfig): Promise<void> => {
    const applied = applying.then(() => applyNow(config));
    // The failure is its caller's.
    applying = applied.catch(() => undefined);
    return applied;
  };

  /** An edit while the session is open: the setting that ran until now decides whether it is applied at once. */
  const onEdit = async (config: LoadedConfig): Promise<void> => {
    const { hotReload } = running.settings;
    if (hotReload === "on") return apply(config);
    held = config;
    const { allowed } = await consents.decide(config.servers);
    const change = plan(running, { servers: allowed, settings: config.settings });
    if (isIdle(change)) return;
    log.info(`an edit of the configuration waits: hotReload is "${hotReload}"`);
    if (hotReload === "ask") onHeld(change);
  };

  const first = await loadConfig(facts);
  // What was written between the start of the session and this read is an edit like any other: asked for.
  if (await changedSinceStart(session)) consents.distrustStart();
  await apply(first);
  // With it comes the watcher, which no first plan needs.
  const { followConfig } = await import("./config/live.ts");
  const live: LiveConfig = followConfig({
    facts,
    first,
    onConfig: onEdit,
    onStir,
    onError: (message) => log.error(message),
  });

  /** A model's last act may be a file that the watcher did not tell yet: the next start must ask for it. */
  const rememberLastEdit = async (): Promise<void> => {
    if (!session.projectTrusted) return;
    const file = projectPiFile(session.cwd);
    const read = await readText(file);
    if (read.kind !== "text" || read.text === live.current.texts.get(file)) return;
    await consents.decide((await loadConfig(facts, live.current)).servers);
  };

  return {
    get now() {
      return running;
    },
    get state() {
      return state;
    },
    facts,
    configured: (name) => live.current.servers.find((server) => server.name === name),
    answer: async (hash, decision) => {
      const question = pending.find((one) => one.hash === hash);
      // What would run is another thing by now, and is asked for anew.
      if (!question) return;
      try {
        await consents.answer(question, decision);
      } finally {
        await apply(live.current);
      }
    },
    askAgain: async () => {
      consents.reopen();
      await apply(live.current);
    },
    applyHeld: async (wanted) => {
      if (held && wanted) await apply(held);
    },
    reload: async (changed) => {
      await live.reload(changed);
      if (held) await apply(held);
    },
    close: async () => {
      await live.close();
      await rememberLastEdit();
    },
  };
}
