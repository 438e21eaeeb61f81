/**
 * Owns: what runs now. Decides about each loaded configuration, turns it into a plan and hands the plan on. An edit
 * and an answer may come at the same time: they are applied one after the other.
 */
import type {
  AcceptedBefore,
  ConfigProblem,
  ConsentQuestion,
  StatusReport,
} from "../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import type { Log } from "../../shared/log.ts";
import type { ServerDefinition } from "./entry/definition.ts";
import { DEFAULT_SETTINGS } from "./entry/settings.ts";
import { textsToKeep } from "./live/live.ts";
import type { LoadedConfig } from "./merge/merge.ts";
import { type Configuration, type Plan, plan } from "./plan/plan.ts";
import type { PendingConsent, TrustDecision } from "./trust/decide.ts";
import { isInPlace } from "./trust/question.ts";
import type { Consents } from "./trust/trust.ts";

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

interface ApplyOptions {
  consents: Consents;
  /** What the person has switched in this session so far: name -> on. */
  switched: ReadonlyMap<string, boolean>;
  log: Log;
  onPlan: OnPlan;
  /** A decision has been made: the envFiles of `consents` may be other ones. */
  onDecided: () => void;
}

export class ApplyQueue {
  readonly #options: ApplyOptions;
  readonly #switched: Map<string, boolean>;
  #work: Promise<void> = Promise.resolve();
  #now: Configuration = { servers: [], settings: DEFAULT_SETTINGS };
  #applied: LoadedConfig;
  #state: ConfigState = { problems: [], files: [], questions: [], refused: [] };
  #pending: readonly PendingConsent[] = [];

  /** `first`: counts as applied before anything is. */
  constructor(first: LoadedConfig, options: ApplyOptions) {
    this.#applied = first;
    this.#options = options;
    this.#switched = new Map(options.switched);
  }

  /**
   * For this session only, whatever the files say; undefined: as they say. Counts from the next `apply` on. False: so it was
   * already.
   */
  switch(name: string, on: boolean | undefined): boolean {
    if (this.#switched.get(name) === on) return false;
    if (on === undefined) this.#switched.delete(name);
    else this.#switched.set(name, on);
    return true;
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

  /** What runs. */
  get now(): Configuration {
    return this.#now;
  }

  /** The files as they were when they were last applied. */
  get applied(): LoadedConfig {
    return this.#applied;
  }

  get state(): ConfigState {
    return this.#state;
  }

  /** Whether an edit has to wait: the setting that runs decides, not the one that the edit brings. */
  get editsWait(): boolean {
    return this.#now.settings.hotReload !== "on";
  }

  /** The open question with this hash. Undefined if something else would run by now: then there is a new question. */
  pending(hash: string): PendingConsent | undefined {
    return this.#pending.find((question) => question.hash === hash);
  }

  /** What this configuration would change, without applying it. */
  async preview(config: LoadedConfig): Promise<Plan> {
    const { allowed } = await this.#options.consents.decide(this.#inSession(config));
    return plan(this.#now, { servers: allowed, settings: config.settings });
  }

  /**
   * `load` is called when all that came before has been applied. `inSession`: because of `switch` alone. Rejects as `load` and
   * `onPlan` do.
   */
  apply(load: () => LoadedConfig | Promise<LoadedConfig>, inSession = false): Promise<void> {
    const done = this.#work.then(async () => this.#applyNow(await load(), inSession));
    // The caller gets the failure; the next one in the queue does not.
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #applyNow(config: LoadedConfig, inSession: boolean): Promise<void> {
    const { consents, onPlan, onDecided } = this.#options;
    const trust = await consents.decide(this.#inSession(config));
    consents.accept(trust);
    const next: Configuration = { servers: trust.allowed, settings: config.settings };
    const change = { ...plan(this.#now, next), ...(inSession && { inSession }) };
    this.#now = next;
    this.#applied = config;
    this.#pending = trust.pending;
    this.#state = this.#stateOf(config, trust);
    this.#report(config, trust);
    onDecided();
    const switched = [...this.#switched];
    const takenBack = consents.takenBack.permissions;
    const kept = {
      servers: [...trust.accepted],
      ...(switched.length > 0 && { switched }),
      ...(takenBack.length > 0 && { takenBack }),
    };
    const accepted = this.editsWait ? { ...kept, texts: textsToKeep(config) } : kept;
    await onPlan(change, this.#state, accepted, consents.mayRun);
  }

  #stateOf(config: LoadedConfig, { pending, refused }: TrustDecision): ConfigState {
    const off = [...this.#switched].flatMap(([name, on]) => (on ? [] : [name])).sort();
    return {
      problems: [...this.#options.consents.problems, ...config.problems],
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
    const { consents, log } = this.#options;
    for (const problem of [...config.problems, ...consents.problems]) log.warn(describeProblem(problem));
    for (const { name, reason } of config.denied) log.warn(`${name} is not started: ${reason}`);
    for (const { definition, reason } of refused) log.warn(`${definition.name} is not started: ${reason}`);
  }
}
