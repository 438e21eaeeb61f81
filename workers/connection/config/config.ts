/**
 * Owns: the configuration that runs. Loads and follows the files, decides which servers may run, and turns each
 * change into a plan that the session carries out. Must not: start or know servers.
 * Parts: files and hosts read, merge adds up, trust decides, plan compares (apply-queue.ts), live follows and holds.
 * To add a setting: a row of entry/settings.ts. To add a host: hosts/hosts.ts says how.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ProjectDecision } from "../../../src/shared/protocol/person.ts";
import type { RegisteredServer, SessionFacts } from "../../../src/shared/protocol/session.ts";
import { canonical } from "../../shared/json.ts";
import { endIfFileGone, type Log } from "../../shared/log.ts";
import { ApplyQueue, type ConfigState, type OnPlan } from "./apply-queue.ts";
import type { ServerDefinition } from "./entry/definition.ts";
import type { ConfigFacts } from "./files/sources.ts";
import type { LiveConfig } from "./live/follow.ts";
import {
  asApplied,
  asKept,
  createHeldEdit,
  type EnvWatch,
  type HeldEdit,
  type OwnWrite,
  watchEnvFiles,
} from "./live/live.ts";
import { configFacts, type LoadedConfig, loadConfig } from "./merge/merge.ts";
import { type Configuration, isIdle } from "./plan/plan.ts";
import { type Consents, changedSinceStart, openConsents, rememberLastEdit } from "./trust/trust.ts";

export type { ConfigState, OnPlan } from "./apply-queue.ts";

interface ConfigurationOptions {
  facts: SessionFacts;
  log: Log;
  /** Fires when the session ends: the files are then not followed any more. */
  signal: AbortSignal;
  /** Carries a plan out. The first call is the start of the session. */
  onPlan: OnPlan;
  /** An edit waits for the user. `change`: what the edit would do. */
  onHeld: (edit: Pick<HeldEdit, "id" | "change">) => void;
  /** A file is being written: a plan may follow in a moment. */
  onFirstChange: () => void;
}

export class RunningConfiguration {
  readonly #options: ConfigurationOptions;
  readonly #consents: Consents;
  readonly #queue: ApplyQueue;
  readonly #envWatch: EnvWatch;
  readonly #held = createHeldEdit();
  #facts: ConfigFacts;
  #live: LiveConfig | undefined;

  constructor(
    options: ConfigurationOptions,
    { facts, first, consents }: { facts: ConfigFacts; first: LoadedConfig; consents: Consents },
  ) {
    const { log, onPlan } = options;
    this.#options = options;
    this.#facts = facts;
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
    const switched = new Map(accepted ? accepted.switched : named.map((name) => [name, false]));
    const onDecided = () => this.#followEnvFiles();
    this.#queue = new ApplyQueue(first, { consents, switched, log, onPlan, onDecided });
  }

  /** Settles when the first plan has been carried out and the files are followed. */
  async start(): Promise<void> {
    const { facts, signal } = this.#options;
    const first = this.#queue.applied;
    await this.#queue.apply(() => first);
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
      first: this.#queue.applied,
      onConfig: (config) => this.#onEdit(config),
      onFirstChange,
      onError: (message, error) => this.#failed(message, error),
    });
    this.#followEnvFiles();
    return this.#live;
  }

  get now(): Configuration {
    return this.#queue.now;
  }

  get state(): ConfigState {
    return this.#queue.state;
  }

  get facts(): ConfigFacts {
    return { ...this.#facts, ancestors: this.#queue.applied.ancestors };
  }

  /** The files as they were when they were last applied; an edit that waits is not in them. */
  get applied(): LoadedConfig {
    return this.#queue.applied;
  }

  /** What the watcher last read: the files on the disk, also while an edit waits. */
  get #read(): LoadedConfig {
    return this.#live?.current ?? this.#queue.applied;
  }

  /** The server as the files define it, whether it may run or not. */
  configured(name: string): ServerDefinition | undefined {
    return this.#read.servers.find((server) => server.name === name);
  }

  /** Remembers the user's answer and applies what it allows. Throws `bad_config` if the answer cannot be remembered. */
  async answer(hash: string, decision: "allowed" | "refused"): Promise<void> {
    const question = this.#queue.pending(hash);
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
    const config = apply ? this.#held.take(id) : undefined;
    if (config) await this.#queue.apply(() => config);
  }

  /** Other extensions registered other servers. An edit that waits keeps waiting. */
  async register(registered: readonly RegisteredServer[]): Promise<void> {
    this.#facts = { ...this.#facts, registered };
    if (this.#queue.editsWait) await this.#reapply();
    await this.#live?.reload({ registered });
  }

  /** The user changed this file from within Pi: applies the new text, and nothing else of an edit that waits. */
  async written(own: OwnWrite): Promise<void> {
    if (this.#queue.editsWait) await this.#reapply(own);
    await (await this.#follow()).reload();
  }

  /** Switches a server on or off for this session, whatever the files say; undefined: as they say again. */
  async switch(name: string, on: boolean | undefined): Promise<void> {
    const asWritten = on === true && this.configured(name)?.enabled === true;
    if (this.#queue.switch(name, asWritten ? undefined : on)) await this.#reapply(undefined, true);
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
    const load = (): LoadedConfig | Promise<LoadedConfig> => {
      const { applied, editsWait } = this.#queue;
      return editsWait ? loadConfig(this.#facts, applied, asApplied(applied, own)) : this.#read;
    };
    return this.#queue.apply(load, inSession);
  }

  async #onEdit(config: LoadedConfig): Promise<void> {
    const { log, onHeld } = this.#options;
    const { applied, editsWait } = this.#queue;
    // No readable file wants a yes for this edit, and in many sessions nobody can give one.
    const isMended = applied.waitsForMending && config.settings.hotReload === "on";
    if (!editsWait || isMended) {
      this.#held.drop();
      return this.#queue.apply(() => config);
    }
    // What the administrator wrote waits for nobody.
    if (canonical(config.policy) !== canonical(applied.policy)) await this.#reapply();
    const change = await this.#queue.preview(config);
    // What is wrong in a broken file is told as it is now: the person mends it step by step.
    if (isIdle(change) && this.#queue.applied.broken.length > 0) {
      this.#held.drop();
      return this.#queue.apply(() => config);
    }
    const edit = this.#held.hold(config, change);
    if (!edit) return;
    const { hotReload } = this.#queue.now.settings;
    log.info(`an edit of the configuration waits: hotReload is "${hotReload}"`);
    if (hotReload === "ask") onHeld(edit);
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
