/**
 * Owns: the configuration that runs. Loads and follows the files, decides which servers may run, and turns each
 * change into a plan that the session carries out. An edit and an answer may come at the same time: they are applied one
 * after the other. Must not: start or know servers.
 * Parts: files and hosts read, merge adds up, trust decides, plan compares, live follows.
 * To add a setting: a row of entry/settings.ts. To add a host: hosts/hosts.ts says how.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ProjectDecision } from "../../../src/shared/protocol/person.ts";
import type {
  AcceptedBefore,
  ConfigProblem,
  ConsentQuestion,
  RegisteredServer,
  SessionFacts,
  StatusReport,
} from "../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import { canonical } from "../../shared/json.ts";
import { endIfFileGone, type Log } from "../../shared/log.ts";
import type { ServerDefinition } from "./entry/definition.ts";
import { DEFAULT_SETTINGS } from "./entry/settings.ts";
import type { ConfigFacts } from "./files/sources.ts";
import type { LiveConfig } from "./live/follow.ts";
import {
  asApplied,
  asKept,
  type EnvWatch,
  type HeldEdit,
  heldEdit,
  type OwnWrite,
  textsToKeep,
  watchEnvFiles,
} from "./live/live.ts";
import { configFacts, type LoadedConfig, loadConfig } from "./merge/merge.ts";
import { type Configuration, isIdle, type Plan, plan } from "./plan/plan.ts";
import type { PendingConsent, TrustDecision } from "./trust/decide.ts";
import { isInPlace } from "./trust/question.ts";
import { type Consents, changedSinceStart, openConsents, rememberLastEdit } from "./trust/trust.ts";

/** What the user hears and is asked, beside what the plan does. */
export interface ConfigState {
  problems: ConfigProblem[];
  files: string[];
  questions: ConsentQuestion[];
  /** Servers of the project that may not run, each with the reason. */
  refused: StatusReport["refused"];
  /** Names of the servers that are switched off for this session, in order. Absent: none. */
  off?: readonly string[];
}

/** Carries a plan out. `mayRun`: false for a server from when its permission is taken back, also after that. */
export type OnPlan = (
  change: Plan,
  state: ConfigState,
  accepted: AcceptedBefore,
  mayRun: (definition: ServerDefinition) => boolean,
) => Promise<void>;

interface ConfigurationOptions {
  facts: SessionFacts;
  log: Log;
  /** Fires when the session ends: the files are then not followed any more. */
  signal: AbortSignal;
  /** Carries a plan out. The first call is the start of the session. */
  onPlan: OnPlan;
  /** An edit waits for the user. `change`: what the edit would do. */
  onHeld: (edit: Pick<HeldEdit, "id" | "change"> | undefined) => void;
  /** A file is being written: a plan may follow in a moment. */
  onFirstChange: () => void;
}

export class RunningConfiguration {
  readonly #options: ConfigurationOptions;
  readonly #consents: Consents;
  readonly #envWatch: EnvWatch;
  /** What the person has switched in this session so far: name -> on. */
  readonly #switched: Map<string, boolean>;
  #facts: ConfigFacts;
  #live: LiveConfig | undefined;
  /** The one edit that waits. */
  #held: HeldEdit | undefined;
  /** Whether the user may still be asked about it. */
  #isAsked = false;
  #work: Promise<void> = Promise.resolve();
  #now: Configuration = { servers: [], settings: DEFAULT_SETTINGS };
  #applied: LoadedConfig;
  #state: ConfigState = { problems: [], files: [], questions: [], refused: [] };
  #pending: readonly PendingConsent[] = [];

  /** `first`: counts as applied before anything is. */
  constructor(
    options: ConfigurationOptions,
    { facts, first, consents }: { facts: ConfigFacts; first: LoadedConfig; consents: Consents },
  ) {
    const { log } = options;
    this.#options = options;
    this.#facts = facts;
    this.#applied = first;
    this.#consents = consents;
    this.#envWatch = watchEnvFiles({
      // An edit of an envFile never waits: the user is asked about it, whatever `hotReload` says.
      onChange: () => void this.#reapply().catch((error: Error) => this.#failed(error.message, error)),
      onError: (message) => log.error(`envFiles cannot be watched: ${message}`),
    });
    const { accepted, off } = options.facts;
    // From the transcript, which anybody may have written.
    const named = Array.isArray(off)
      ? off.slice(0, LIMITS.servers).filter((name) => typeof name === "string")
      : [];
    this.#switched = new Map(accepted ? accepted.switched : named.map((name) => [name, false]));
  }

  /** Settles when the first plan has been carried out and the files are followed. */
  async start(): Promise<void> {
    const { facts, signal } = this.#options;
    const first = this.#applied;
    await this.#apply(() => first);
    // A command of the shell ends with its answer, before an edit could count: the watcher would cost it a tenth of its time.
    if (signal.aborted || (facts.onDemand && first.unanswered.size === 0)) return;
    await this.#follow();
  }

  /** The worker that follows one whose code is gone reads the files anew. */
  #failed(message: string, error: unknown): void {
    const { log } = this.#options;
    log.error(message);
    void endIfFileGone(error, log);
  }

  /** Follows the files from now on, if nothing does yet. */
  async #follow(): Promise<LiveConfig> {
    if (this.#live) return this.#live;
    const { onFirstChange } = this.#options;
    const { followConfig } = await import("./live/follow.ts");
    this.#live = followConfig({
      facts: this.#facts,
      first: this.#applied,
      onConfig: (config) => this.#onEdit(config),
      onFirstChange,
      onError: (message, error) => this.#failed(message, error),
    });
    this.#followEnvFiles();
    return this.#live;
  }

  /** What runs. */
  get now(): Configuration {
    return this.#now;
  }

  get state(): ConfigState {
    return this.#state;
  }

  get facts(): ConfigFacts {
    return { ...this.#facts, ancestors: this.#applied.ancestors };
  }

  /** The files as they were when they were last applied; an edit that waits is not in them. */
  get applied(): LoadedConfig {
    return this.#applied;
  }

  /** What the watcher last read: the files on the disk, also while an edit waits. */
  get #read(): LoadedConfig {
    return this.#live?.current ?? this.#applied;
  }

  /** The server as the files define it, whether it may run or not. */
  configured(name: string): ServerDefinition | undefined {
    return this.#read.servers.find((server) => server.name === name);
  }

  /** Remembers the user's answer and applies what it allows. Throws `bad_config` if the answer cannot be remembered. */
  async answer(hash: string, decision: "allowed" | "refused"): Promise<void> {
    const question = this.#pending.find((one) => one.hash === hash);
    // If something else would run by now, there is a new question.
    if (!question) return;
    try {
      await this.#consents.answer(question, decision);
    } finally {
      await this.#reapply();
    }
  }

  /** The stamps of all files that what runs was made of, or would be; undefined: an edit is on its way, or nothing is followed. */
  async confirmed(): Promise<[file: string, stamp: string][] | undefined> {
    return this.#live?.confirmed();
  }

  /** What was decided about servers of projects, the newest first. */
  get decisions(): ProjectDecision[] {
    return this.#consents.decisions;
  }

  /** The decision becomes a question again, and what it allowed here stops. Throws as `answer` does. */
  async takeBack(id: string): Promise<void> {
    const written = this.#consents.takeBack(id);
    try {
      // It no longer counts already: what it allowed does not run on while another process has the file.
      await Promise.all([written, this.#reapply()]);
    } finally {
      // What the write has brought: answers of other sessions, or that the file cannot be written.
      await this.#reapply();
    }
  }

  /** Forgets the refusals of this project's servers, so that the user is asked again. */
  async askAgain(): Promise<void> {
    this.#consents.reopen();
    await this.#reapply();
  }

  /**
   * The answer to `onHeld`. True applies that edit if it still waits; if the file was edited again, the newer edit
   * has been announced and keeps waiting. False leaves the edit waiting.
   */
  async applyHeld(id: string, apply: boolean): Promise<void> {
    const edit = this.#held;
    if (!apply || edit?.id !== id || isIdle(edit.change)) return;
    this.#held = undefined;
    this.#isAsked = false;
    await this.#apply(() => edit.config);
  }

  /** Other extensions registered other servers. An edit that waits keeps waiting. */
  async register(registered: readonly RegisteredServer[]): Promise<void> {
    this.#facts = { ...this.#facts, registered };
    if (this.#editsWait) await this.#reapply();
    await this.#live?.reload({ registered });
  }

  /** The user changed this file from within Pi: applies the new text, and nothing else of an edit that waits. */
  async written(own: OwnWrite): Promise<void> {
    if (this.#editsWait) await this.#reapply(own);
    await (await this.#follow()).reload();
  }

  /** Switches a server on or off for this session, whatever the files say; undefined: as they say again. */
  async switch(name: string, on: boolean | undefined): Promise<void> {
    const asWritten = on === true && this.configured(name)?.enabled === true;
    const wanted = asWritten ? undefined : on;
    if (this.#switched.get(name) === wanted) return;
    if (wanted === undefined) this.#switched.delete(name);
    else this.#switched.set(name, wanted);
    await this.#reapply(undefined, true);
  }

  /**
   * The user enables this server himself, in a file of the project: what his own files say of the server runs
   * without another question. Throws `bad_config` if that cannot be remembered; it then holds for this session.
   */
  allowAsUser(server: ServerDefinition): Promise<void> {
    return this.#consents.allowAsUser(server);
  }

  async close(): Promise<void> {
    await Promise.all([this.#live?.close(), this.#envWatch.close()]);
    const read = { facts: this.#facts, last: this.#read };
    await rememberLastEdit(this.#options.facts, read, this.#consents);
  }

  /** The first plan needs no watcher, so that nothing is watched before it. */
  #followEnvFiles(): void {
    if (this.#live) void this.#envWatch.follow(this.#consents.envFiles);
  }

  /** Works out again what runs: without an edit that waits, and with what the user wrote from within Pi. */
  #reapply(own?: OwnWrite, inSession?: boolean): Promise<void> {
    const load = async (): Promise<LoadedConfig> => {
      if (!this.#editsWait) return this.#read;
      const applied = this.#applied;
      const written = own && { file: own.file, text: await own.text(applied) };
      return loadConfig(this.#facts, applied, asApplied(applied, written));
    };
    return this.#apply(load, inSession);
  }

  /** The servers as the person has switched them. What is switched off is not asked about either. */
  #inSession({ servers }: LoadedConfig): readonly ServerDefinition[] {
    if (this.#switched.size === 0) return servers;
    return servers.map((server) => {
      const on = this.#switched.get(server.name);
      if (on === undefined || server.isRequired) return server;
      return on ? { ...server, enabled: true } : { ...server, enabled: false, isOff: true };
    });
  }

  /** Whether an edit has to wait: the setting that runs decides, not the one that the edit brings. */
  get #editsWait(): boolean {
    return this.#now.settings.hotReload !== "on";
  }

  /**
   * `load` is called when all that came before has been applied. `inSession`: because of `switch` alone. Rejects as `load` and
   * `onPlan` do.
   */
  #apply(load: () => LoadedConfig | Promise<LoadedConfig>, inSession = false): Promise<void> {
    const done = this.#work.then(async () => this.#applyNow(await load(), inSession));
    // The caller gets the failure; the next one in the queue does not.
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #applyNow(config: LoadedConfig, inSession: boolean): Promise<void> {
    const consents = this.#consents;
    const trust = await consents.decide(this.#inSession(config));
    consents.accept(trust);
    const next: Configuration = { servers: trust.allowed, settings: config.settings };
    const change = { ...plan(this.#now, next), ...(inSession && { inSession }) };
    this.#now = next;
    this.#applied = config;
    this.#pending = trust.pending;
    this.#state = this.#stateOf(config, trust);
    this.#report(config, trust);
    this.#followEnvFiles();
    const switched = [...this.#switched];
    const takenBack = consents.takenBack.permissions;
    const kept = {
      servers: [...trust.accepted],
      ...(switched.length > 0 && { switched }),
      ...(takenBack.length > 0 && { takenBack }),
    };
    const accepted = this.#editsWait ? { ...kept, texts: textsToKeep(config) } : kept;
    await this.#options.onPlan(change, this.#state, accepted, consents.mayRun);
  }

  #stateOf(config: LoadedConfig, { pending, refused }: TrustDecision): ConfigState {
    const off = [...this.#switched].flatMap(([name, on]) => (on ? [] : [name])).sort();
    return {
      problems: [...this.#consents.problems, ...config.problems],
      files: config.files,
      questions: pending.map(({ definition, hash, question }) => ({
        server: definition.name,
        hash,
        question,
        ...(isInPlace(definition) && { inPlace: true }),
        ...(definition.origin === "package" && { ofPackage: true }),
      })),
      refused: [
        ...config.denied.map(({ name, reason }) => ({ name, reason, byPolicy: true as const })),
        ...refused.map(({ definition, reason, byPerson }) => ({
          name: definition.name,
          reason,
          ...(byPerson && { byPerson }),
          ...(isInPlace(definition) && { inPlace: true as const }),
        })),
      ],
      ...(off.length > 0 && { off }),
    };
  }

  #report(config: LoadedConfig, { refused }: TrustDecision): void {
    const { log } = this.#options;
    for (const problem of [...config.problems, ...this.#consents.problems])
      log.warn(describeProblem(problem));
    for (const { name, reason } of config.denied) log.warn(`${name} is not started: ${reason}`);
    for (const { definition, reason } of refused) log.warn(`${definition.name} is not started: ${reason}`);
  }

  async #onEdit(config: LoadedConfig): Promise<void> {
    const { log, onHeld } = this.#options;
    const withdraw = (): void => {
      if (this.#isAsked) onHeld(undefined);
      this.#isAsked = false;
    };
    const applied = this.#applied;
    // No readable file wants a yes for this edit, and in many sessions nobody can give one.
    const isMended = applied.waitsForMending && config.settings.hotReload === "on";
    if (!this.#editsWait || isMended) {
      this.#held = undefined;
      withdraw();
      return this.#apply(() => config);
    }
    // What the administrator wrote waits for nobody.
    if (canonical(config.policy) !== canonical(applied.policy)) await this.#reapply();
    const { allowed } = await this.#consents.decide(this.#inSession(config));
    const change = plan(this.#now, { servers: allowed, settings: config.settings });
    // What is wrong in a broken file is told as it is now: the person mends it step by step.
    if (isIdle(change) && this.#applied.broken.length > 0) {
      this.#held = undefined;
      withdraw();
      return this.#apply(() => config);
    }
    const before = this.#held;
    const edit = heldEdit(config, change);
    this.#held = edit;
    // The user hears of an edit that does something, and something new.
    if (isIdle(change)) return withdraw();
    if (edit.id === before?.id) return;
    const { hotReload } = this.#now.settings;
    log.info(`an edit of the configuration waits: hotReload is "${hotReload}"`);
    if (hotReload !== "ask") return;
    this.#isAsked = true;
    onHeld(edit);
  }
}

/** Settles when the first plan has been carried out and the files are followed. */
export async function runConfiguration(options: ConfigurationOptions): Promise<RunningConfiguration> {
  const { facts: session, log } = options;
  const facts = configFacts(session);
  const consents = await openConsents(session, log.error);
  const kept = session.accepted?.texts;
  const first = await loadConfig(facts, undefined, kept && asKept(kept));
  // A text written between the start of the session and this read is an edit like any other: the user is asked.
  if (await changedSinceStart(session, first)) consents.distrustStart();
  const running = new RunningConfiguration(options, { facts, first, consents });
  await running.start();
  return running;
}
