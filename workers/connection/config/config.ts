/**
 * The configuration that runs: loads and follows the files, decides which servers may run, and turns each
 * change into a plan that is handed on. Owns what waits for the user's word; starts nothing itself.
 */
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { fileStamp } from "../../../src/shared/protocol/file-stamp.ts";
import type { AcceptedBefore, SessionFacts } from "../../../src/shared/protocol/session.ts";
import type { ConfigProblem, ConsentQuestion } from "../../../src/shared/protocol/status.ts";
import { canonical } from "../../shared/json/canonical.ts";
import type { Log } from "../../shared/log.ts";
import type { ServerDefinition } from "./entry/definition.ts";
import { DEFAULT_SETTINGS } from "./entry/settings.ts";
import { type ConfigFacts, projectPiFile, type RegisteredServer, readText } from "./files/files.ts";
import type { LiveConfig } from "./live/live.ts";
import { asApplied, asKept, type EnvWatch, textsToKeep, watchEnvFiles } from "./live/live.ts";
import { configFacts, describeProblem, type LoadedConfig, loadConfig } from "./merge/merge.ts";
import { type Configuration, isIdle, type Plan, plan } from "./plan/plan.ts";
import type { PendingConsent } from "./trust/trust.ts";
import { openConsents } from "./trust/trust.ts";

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
  /**
   * The answer to `onHeld`. True applies that edit, if it is still the one that waits: where it was edited meanwhile,
   * that was asked for, too. False leaves it waiting.
   */
  applyHeld(id: string, apply: boolean): Promise<void>;
  /** Other extensions registered other servers. An edit that waits goes on waiting. */
  register(registered: readonly RegisteredServer[]): Promise<void>;
  /** The user changed this file here: applies `text` as what it holds, and nothing else of an edit that waits. */
  written(own: OwnWrite): Promise<void>;
  /** What the files held when they were last applied: other than on the disk where an edit waits. */
  readonly applied: LoadedConfig;
  /**
   * The user switches this server on himself, in a file of the project: what his own files say of it runs without
   * another question. Throws `bad_config` where that could not be remembered; it then holds for this session.
   */
  vouch(server: ServerDefinition): Promise<void>;
  close(): Promise<void>;
}

export interface OwnWrite {
  file: string;
  text: string;
}

export interface ConfigurationOptions {
  facts: SessionFacts;
  log: Log;
  /** Carries a plan out. The first call is the start of the session. */
  onPlan: (change: Plan, state: ConfigState, accepted: AcceptedBefore) => Promise<void>;
  /** An edit waits for the user: what it would do. */
  onHeld: (edit: Pick<HeldEdit, "id" | "change">) => void;
  /** A file is being written: a plan may follow in a moment. */
  onStir: () => void;
}

const NOTHING: Configuration = { servers: [], settings: DEFAULT_SETTINGS };

/** An edit that waits for the user. `id`: a hash of all that it would do. */
interface HeldEdit {
  config: LoadedConfig;
  change: Plan;
  id: string;
}

const idOf = ({ servers, settings }: Plan): string => {
  const doing = servers.filter(({ action }) => action !== "keep");
  return createHash("sha256")
    .update(canonical({ servers: doing, settings }))
    .digest("hex");
};

/** Looked at after the read, so that an edit during it counts as one. */
async function changedSinceStart({ cwd, projectFile }: SessionFacts): Promise<boolean> {
  if (projectFile === undefined) return false;
  const found = await stat(projectPiFile(cwd)).catch(() => undefined);
  return fileStamp(found) !== projectFile;
}

/** Settles when the first plan has been handed on. */
export async function runConfiguration(options: ConfigurationOptions): Promise<RunningConfiguration> {
  const { facts: session, log, onPlan, onHeld, onStir } = options;
  let facts = configFacts(session);
  const consents = await openConsents(session, log.error);
  let running = NOTHING;
  let held: HeldEdit | undefined;
  let pending: PendingConsent[] = [];
  let envWatch: EnvWatch | undefined;
  let state: ConfigState = { problems: [], files: [], questions: [], refused: [] };

  const applyNow = async (config: LoadedConfig): Promise<void> => {
    const trust = await consents.decide(config.servers);
    consents.accept(trust);
    const next: Configuration = { servers: trust.allowed, settings: config.settings };
    const change = plan(running, next);
    running = next;
    applied = config;
    for (const problem of [...config.problems, ...consents.problems]) log.warn(describeProblem(problem));
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
    void envWatch?.follow(consents.envFiles);
    const servers = [...trust.accepted];
    await onPlan(change, state, editsWait() ? { servers, texts: textsToKeep(config) } : { servers });
  };

  const editsWait = (): boolean => running.settings.hotReload !== "on";

  /** An edit and an answer may come at the same time. `load` sees what was applied before. */
  let applying: Promise<void> = Promise.resolve();
  const apply = (load: () => LoadedConfig | Promise<LoadedConfig>): Promise<void> => {
    const done = applying.then(async () => applyNow(await load()));
    // The failure is its caller's.
    applying = done.catch(() => undefined);
    return done;
  };

  /** What runs, worked out again: without an edit that waits, with what the user wrote here. */
  const reapply = (own?: OwnWrite): Promise<void> =>
    apply(() => (editsWait() ? loadConfig(facts, applied, asApplied(applied, own)) : live.current));

  /** An edit while the session is open: the setting that ran until now decides whether it is applied at once. */
  const onEdit = async (config: LoadedConfig): Promise<void> => {
    if (!editsWait()) {
      held = undefined;
      return apply(() => config);
    }
    const { allowed } = await consents.decide(config.servers);
    const change = plan(running, { servers: allowed, settings: config.settings });
    const before = held;
    held = { config, change, id: idOf(change) };
    if (isIdle(change) || held.id === before?.id) return;
    const { hotReload } = running.settings;
    log.info(`an edit of the configuration waits: hotReload is "${hotReload}"`);
    if (hotReload === "ask") onHeld(held);
  };

  const kept = session.accepted?.texts;
  let applied = await loadConfig(facts, undefined, kept && asKept(kept));
  // What was written between the start of the session and this read is an edit like any other: asked for.
  if (await changedSinceStart(session)) consents.distrustStart();
  await apply(() => applied);
  // With it comes the watcher, which no first plan needs.
  const { followConfig } = await import("./live/live.ts");
  const live: LiveConfig = followConfig({
    facts,
    first: applied,
    onConfig: onEdit,
    onStir,
    onError: (message) => log.error(message),
  });

  // An envFile that changed is no edit that waits: what runs by it is asked for, whatever `hotReload` says.
  envWatch = watchEnvFiles({
    onChange: () => void reapply().catch((error: Error) => log.error(error.message)),
    onError: (message) => log.error(`envFiles cannot be watched: ${message}`),
  });
  void envWatch.follow(consents.envFiles);

  /** A model's last act may be a file that the watcher did not tell yet: the next start must ask for it. */
  const rememberLastEdit = async (): Promise<void> => {
    if (!session.projectTrusted) return;
    const file = projectPiFile(session.cwd);
    const read = await readText(file);
    const isEdited = read.kind === "text" && read.text !== live.current.texts.get(file);
    if (!isEdited && consents.envFiles.length === 0) return;
    await consents.decide((await loadConfig(facts, live.current)).servers);
  };

  return {
    get now() {
      return running;
    },
    get state() {
      return state;
    },
    get facts() {
      return facts;
    },
    configured: (name) => live.current.servers.find((server) => server.name === name),
    answer: async (hash, decision) => {
      const question = pending.find((one) => one.hash === hash);
      // What would run is another thing by now, and is asked for anew.
      if (!question) return;
      try {
        await consents.answer(question, decision);
      } finally {
        await reapply();
      }
    },
    askAgain: async () => {
      consents.reopen();
      await reapply();
    },
    applyHeld: async (id, wanted) => {
      const edit = held;
      if (!wanted || edit?.id !== id || isIdle(edit.change)) return;
      held = undefined;
      await apply(() => edit.config);
    },
    register: async (registered) => {
      facts = { ...facts, registered };
      if (editsWait()) await reapply();
      await live.reload({ registered });
    },
    written: async (own) => {
      if (editsWait()) await reapply(own);
      await live.reload();
    },
    get applied() {
      return applied;
    },
    vouch: (server) => consents.vouch(server),
    close: async () => {
      await Promise.all([live.close(), envWatch?.close()]);
      await rememberLastEdit();
    },
  };
}
