/**
 * The configuration that runs: loads and follows the files, decides which servers may run, and turns each
 * change into a plan that is handed on. Owns consents and what waits for the user's word; starts nothing
 * itself.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileStamp } from "../../src/protocol/stamp.ts";
import type { ConfigProblem, ConsentQuestion, SessionFacts } from "../../src/protocol/types.ts";
import type { LiveConfig } from "./config/live.ts";
import { configFacts, describeProblem, type LoadedConfig, loadConfig } from "./config/load.ts";
import { type ConfigFacts, type RegisteredServer, trustFile } from "./config/paths.ts";
import { DEFAULT_SETTINGS } from "./config/settings.ts";
import { type Consent, decideTrust, type TrustDecision } from "./config/trust.ts";
import { loadConsents, remember } from "./config/trust-file.ts";
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
  /** Remembers the user's answer and applies what it allows. */
  answer(hash: string, decision: Consent["decision"]): Promise<void>;
  /** Forgets refusals of this project's servers, so that they are asked for again. */
  askAgain(): Promise<void>;
  /** Applies an edit that waits because of `hotReload: "ask"`; false leaves it waiting. */
  applyHeld(apply: boolean): Promise<void>;
  /** Accepts the named server as the user's own wish, for example after `/mcp enable`. */
  reload(changed?: { registered?: readonly RegisteredServer[] }): Promise<void>;
  close(): Promise<void>;
}

export interface ConfigurationOptions {
  facts: SessionFacts;
  log: Log;
  /** Carries a plan out. The first call is the start of the session. */
  onPlan: (change: Plan, state: ConfigState) => Promise<void>;
  /** An edit waits for the user: what it would do. */
  onHeld: (change: Plan) => void;
}

const NOTHING: Configuration = { servers: [], settings: DEFAULT_SETTINGS };

/** Looked at after the read, so that an edit during it counts as one. */
async function changedSinceStart({ cwd, projectFile }: SessionFacts): Promise<boolean> {
  if (projectFile === undefined) return false;
  const found = await stat(join(cwd, ".pi", "mcp.json")).catch(() => undefined);
  return fileStamp(found) !== projectFile;
}

/** Settles when the first plan has been handed on. */
export async function runConfiguration(options: ConfigurationOptions): Promise<RunningConfiguration> {
  const { facts: session, log, onPlan, onHeld } = options;
  const facts = configFacts(session);
  const consentFile = trustFile(session.agentDir);
  let consents = await loadConsents(consentFile);
  let accepted: TrustDecision["accepted"] | undefined;
  let running = NOTHING;
  let held: LoadedConfig | undefined;
  let state: ConfigState = { problems: [], files: [], questions: [], refused: [] };
  const { cwd, projectTrusted, canAsk } = session;

  const decide = (config: LoadedConfig): { next: Configuration; trust: TrustDecision } => {
    const trust = decideTrust(config.servers, consents, { projectTrusted, canAsk, cwd, accepted });
    return { next: { servers: trust.allowed, settings: config.settings }, trust };
  };

  const apply = async (config: LoadedConfig): Promise<void> => {
    held = undefined;
    const { next, trust } = decide(config);
    accepted = trust.accepted;
    const change = plan(running, next);
    running = next;
    for (const problem of config.problems) log.warn(describeProblem(problem));
    for (const { definition, reason } of trust.refused)
      log.warn(`${definition.name} is not started: ${reason}`);
    state = {
      problems: config.problems,
      files: config.files,
      questions: trust.pending.map(({ definition, hash, question }) => ({
        server: definition.name,
        hash,
        question,
      })),
      refused: trust.refused.map(({ definition, reason }) => ({ name: definition.name, reason })),
    };
    await onPlan(change, state);
  };

  /** An edit while the session is open: the setting that ran until now decides whether it is applied at once. */
  const onEdit = async (config: LoadedConfig): Promise<void> => {
    const { hotReload } = running.settings;
    if (hotReload === "on") return apply(config);
    held = config;
    const change = plan(running, decide(config).next);
    if (isIdle(change)) return;
    log.info(`an edit of the configuration waits: hotReload is "${hotReload}"`);
    if (hotReload === "ask") onHeld(change);
  };

  const first = await loadConfig(facts);
  // What was written between the start of the session and this read is an edit like any other: asked for.
  if (await changedSinceStart(session)) accepted = new Set();
  await apply(first);
  // With it comes the watcher, which no first plan needs.
  const { followConfig } = await import("./config/live.ts");
  const live: LiveConfig = followConfig({
    facts,
    first,
    onConfig: onEdit,
    onError: (message) => log.error(message),
  });

  return {
    get now() {
      return running;
    },
    get state() {
      return state;
    },
    facts,
    answer: async (hash, decision) => {
      const question = state.questions.find((pending) => pending.hash === hash);
      if (!question) return;
      const definition = live.current.servers.find(({ name }) => name === question.server);
      const consent: Consent = {
        hash,
        decision,
        server: question.server,
        file: definition?.file ?? "",
        decidedAt: Date.now(),
      };
      consents = await remember(consentFile, [consent]);
      await apply(live.current);
    },
    askAgain: async () => {
      // In memory only: the file changes when there is another answer.
      consents = consents.filter(({ decision }) => decision === "allowed");
      await apply(live.current);
    },
    applyHeld: async (wanted) => {
      if (held && wanted) await apply(held);
    },
    reload: async (changed) => {
      await live.reload(changed);
      if (held) await apply(held);
    },
    close: () => live.close(),
  };
}
