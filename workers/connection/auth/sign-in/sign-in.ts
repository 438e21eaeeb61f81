/**
 * Signing in with a browser. Owns: the flows that are under way, the listener at the redirect URI, what the user may
 * paste, and the browser's start. Must not: renew tokens (tokens) or decide that a sign-in is needed: only the user
 * begins one. Called by: auth.ts.
 */

import type { SignInAgreed, SignInStep } from "../../../../src/shared/protocol/sign-in.ts";
import { commandFor } from "../../../shared/commands.ts";
import { discover, promisesIssuer } from "../discovery/discovery.ts";
import { beginAuthorization, chooseScope, clientFor, finishAuthorization } from "../grants/grants.ts";
import { explainProblem, SignInProblem } from "../model/model.ts";
import { openBrowser } from "./browser.ts";
import {
  SIGN_IN_LIMITS,
  type SignInParts,
  type SignIns,
  type SignInsOptions,
  type SignInTarget,
} from "./contract.ts";
import { Flow, type FlowOver } from "./flow.ts";
import { Listeners } from "./listeners.ts";

export { openBrowser } from "./browser.ts";
export type { SignInLimits, SignInParts, SignIns, SignInsOptions, SignInTarget } from "./contract.ts";
export { SIGN_IN_LIMITS } from "./contract.ts";

const PARTS: SignInParts = {
  discover,
  promisesIssuer,
  clientFor,
  chooseScope,
  beginAuthorization,
  finishAuthorization,
  openBrowser,
  limits: SIGN_IN_LIMITS,
};

const over = (): string => `This sign-in has ended. Begin another one with ${commandFor("auth")}.`;

async function firstStep(
  flow: Flow,
  agreed: SignInAgreed,
  signal: AbortSignal | undefined,
): Promise<SignInStep> {
  const cancel = (): void => flow.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await flow.begin(agreed);
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

class RunningSignIns implements SignIns {
  readonly #options: SignInsOptions;
  readonly #parts: SignInParts;
  readonly #listeners: Listeners;
  /** By server. */
  readonly #flows = new Map<string, Flow>();
  /** By server: the old dynamic client with which the last sign-in was not finished. */
  readonly #deadClients = new Map<string, string>();

  constructor(options: SignInsOptions, parts: SignInParts) {
    this.#options = options;
    this.#parts = parts;
    this.#listeners = new Listeners(parts.limits);
  }

  async begin(target: SignInTarget, agreed: SignInAgreed, signal?: AbortSignal): Promise<SignInStep> {
    const { server, redact } = target;
    if (signal?.aborted) throw explainProblem(new SignInProblem("cancelled"), { server, redact });
    const running = this.#flows.get(server);
    if (running?.url === target.url.href) return firstStep(running, agreed, signal);
    running?.abandon();
    const most = this.#parts.limits.flows;
    if (this.#flows.size >= most) {
      throw explainProblem(new SignInProblem("too-many", { most }), { server, redact });
    }
    const flow: Flow = new Flow({
      target,
      parts: this.#parts,
      listeners: this.#listeners,
      options: this.#options,
      deadClient: this.#deadClients.get(server),
      onOver: (over) => this.#over(server, flow, over),
    });
    this.#flows.set(server, flow);
    return firstStep(flow, agreed, signal);
  }

  async paste(id: string, text: string): Promise<string | undefined> {
    const flow = this.#byId(id);
    return flow ? flow.paste(text) : over();
  }

  cancel(id: string): void {
    this.#byId(id)?.cancel();
  }

  abandon(server?: string): void {
    const servers = server === undefined ? [...this.#flows.keys()] : [server];
    for (const name of servers) {
      const flow = this.#flows.get(name);
      // The server may begin anew before this sign-in has ended.
      this.#flows.delete(name);
      flow?.abandon();
    }
  }

  isRunning(server: string): boolean {
    return this.#flows.has(server);
  }

  async close(): Promise<void> {
    const flows = [...this.#flows.values()];
    this.abandon();
    await Promise.all(flows.map((flow) => flow.settled()));
    await this.#listeners.end();
  }

  #byId(id: string): Flow | undefined {
    return [...this.#flows.values()].find((flow) => flow.id === id);
  }

  #over(server: string, flow: Flow, { result, deadClient }: FlowOver): void {
    if (this.#flows.get(server) === flow) this.#flows.delete(server);
    if (deadClient !== undefined) this.#deadClients.set(server, deadClient);
    else if (result?.ok) this.#deadClients.delete(server);
    if (result) this.#options.onEnd({ id: flow.id, server, result });
  }
}

/** `parts` replaces the work of the neighbours, for tests. */
export const createSignIns = (options: SignInsOptions, parts: Partial<SignInParts> = {}): SignIns =>
  new RunningSignIns(options, { ...PARTS, ...parts });
