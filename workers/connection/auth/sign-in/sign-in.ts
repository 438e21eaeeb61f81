/**
 * Signing in with a browser, here or at another device. Owns: the sign-ins that are under way, each from the user's wish to
 * its end: success, a failure, a limit of time, or the user's Esc. Must not: renew tokens or decide that a sign-in is needed:
 * only the user begins one.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, ThreadsError, toWireError } from "../../../../src/shared/protocol/errors.ts";
import type { SignInAgreed, SignInResult, SignInStep } from "../../../../src/shared/protocol/session.ts";
import { commandFor } from "../../../shared/commands.ts";
import { abortable } from "../../../shared/pace/abort.ts";
import type { GrantContext } from "../grants/ask.ts";
import type { AuthorizationAnswer } from "../grants/authorize.ts";
import { explainProblem, SignInProblem, type SignInRecord } from "../model/model.ts";
import { endingWith } from "../requests/requests.ts";
import { Listeners } from "./callback.ts";
import {
  exchange,
  isEnough,
  PARTS,
  type Prepared,
  prepare,
  receive,
  type SignInParts,
  type SignInTarget,
} from "./prepare.ts";
import { readPaste } from "./redirect.ts";

interface FlowOver {
  /** Absent if `begin` has answered or thrown how the sign-in ended. */
  result?: SignInResult;
  /** The old dynamic client with which the user did not get through. */
  deadClient?: string;
}

type OpenPrepared = Extract<Prepared, { kind: "open" }>;
type WaitingStep = Extract<SignInStep, { endsInMs: number }>;
type DevicePrepared = Extract<Prepared, { kind: "device" }>;

/** Most sign-ins have a browser. */
const device = () => import("./device.ts");

/** What tells which sign-in is stored, and for what. `id`: renewals keep it. */
interface Stored {
  id: string | undefined;
  scope: string | undefined;
}

/** Undefined: the store cannot be read, of which the next request tells. */
const storedIn = ({ store }: SignInTarget): Promise<Stored | undefined> =>
  store.read().then(
    ({ record }) => ({ id: record?.id, scope: record?.scope }),
    () => undefined,
  );

class Flow {
  readonly id = randomUUID();
  readonly target: SignInTarget;
  readonly #signIns: SignIns;
  readonly #deadClient: string | undefined;
  readonly #context: GrantContext;
  /** Fires with the `SignInProblem` that ends the sign-in, or at its end. */
  readonly #lifetime = new AbortController();
  readonly #listening = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #prepared: OpenPrepared | undefined;
  /** What `begin` answers while the sign-in waits for the user. `endsAt`: by `performance.now()`. */
  #waiting: { step: WaitingStep; endsAt: number } | undefined;
  /** Set by the first answer, or while the answer of another device is asked for: true once the user is signed in. */
  #finishing: Promise<boolean> | undefined;
  #hasTokens = false;
  #isAbandoned = false;
  #isOver = false;
  #beginning: Promise<SignInStep> | undefined;
  /** What was stored when the sign-in began. */
  #before: Stored | undefined;

  constructor(target: SignInTarget, signIns: SignIns, deadClient: string | undefined) {
    this.target = target;
    this.#signIns = signIns;
    this.#deadClient = deadClient;
    const { plan, requests, onNote, isIdentity } = target;
    this.#context = {
      ...{ plan, onNote, requests: endingWith(requests, this.#lifetime.signal) },
      ...(isIdentity && { isIdentity }),
    };
  }

  /**
   * Also for a second wish, which gets the same answer. `signal` cancels the sign-in before its first step. Rejects with
   * `ThreadsError`.
   */
  async begin(agreed: SignInAgreed, signal?: AbortSignal): Promise<SignInStep> {
    if (this.#waiting) {
      const { step, endsAt } = this.#waiting;
      return { ...step, endsInMs: Math.max(0, Math.round(endsAt - performance.now())) };
    }
    const cancel = (): void => this.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      this.#beginning ??= this.#begin(agreed);
      return await this.#beginning;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Answers what is wrong with the text; undefined: the sign-in goes on. */
  paste(text: string): string | undefined {
    if (this.#finishing || !this.#prepared) return undefined;
    const { redirectUri, state, discovered } = this.#prepared.pending;
    const needsIssuer = discovered.metadata.authorization_response_iss_parameter_supported === true;
    const read = readPaste(text, { redirectUri, state, needsIssuer });
    if ("problem" in read) return read.problem;
    void this.#answer(read);
    return undefined;
  }

  /** Does nothing once the tokens are there: then the user is signed in. */
  cancel(kind: "cancelled" | "timed-out" = "cancelled"): void {
    if (this.#hasTokens) return;
    this.#lifetime.abort(new SignInProblem(kind));
    // Before and after the wait, the work under way fails with the signal's reason.
    if (this.#waiting && !this.#finishing) this.#fail(this.#lifetime.signal.reason);
  }

  /** The server is gone or was edited. Also ends the wait for the store's lock and for the server's connection. */
  abandon(): void {
    this.#isAbandoned = true;
    this.cancel();
    this.#lifetime.abort(new SignInProblem("cancelled"));
  }

  /** Settles when the sign-in stores nothing any more. */
  async settled(): Promise<void> {
    await this.#finishing;
  }

  async #begin(agreed: SignInAgreed): Promise<SignInStep> {
    const { parts, listeners, options } = this.#signIns;
    this.#limit(parts.limits.talkMs);
    const { device: deviceCode } = agreed;
    const plan = { ...this.#context.plan, ...(deviceCode === undefined ? {} : { deviceCode }) };
    try {
      this.#before = await this.#orEnd(storedIn(this.target));
      const preparing = prepare({
        ...{ agreed, parts, listeners, env: options.env, platform: options.platform },
        prepareDevice: async (...given) => (await device()).prepareDevice(...given),
        target: this.target,
        deadClient: this.#deadClient,
        context: { ...this.#context, plan },
        signal: this.#lifetime.signal,
        listenSignal: this.#listening.signal,
      });
      const prepared = await this.#orEnd(preparing);
      if (prepared.kind === "open") return await this.#openBrowser(prepared);
      if (prepared.kind === "device") return this.#showCode(prepared);
      if (prepared.kind === "ask") {
        this.#end({});
        return { step: "ask", question: prepared.question };
      }
      this.#hasTokens = true;
      void this.#connect();
      return { step: "renewed", id: this.id };
    } catch (error) {
      this.#end({});
      throw this.#explain(error);
    }
  }

  async #openBrowser(prepared: OpenPrepared): Promise<SignInStep> {
    const { parts, options } = this.#signIns;
    const { env, platform, log } = options;
    const { server, onNote } = this.target;
    const { redirectUri, state, url, discovered } = prepared.pending;
    const codeGoesTo = new URL(discovered.metadata.token_endpoint ?? discovered.foundAt).host;
    this.#prepared = prepared;
    prepared.listening?.wait({ redirectUri, state, answer: (parameters) => this.#answer({ parameters }) });
    const browser = await this.#orEnd(parts.openBrowser(url, { env, platform, onNote }));
    const endsInMs = parts.limits.flowMs;
    const listens = prepared.listening !== undefined;
    const { id } = this;
    log.info(`${server}: the sign-in waits for its answer at ${redirectUri}, browser: ${browser}`);
    this.#elsewhere().then(
      () => {
        this.#finishing ??= this.#finish(async () => undefined);
      },
      // The sign-in has ended.
      () => undefined,
    );
    return this.#wait({ step: "open", id, url, redirectUri, codeGoesTo, browser, listens, endsInMs });
  }

  /** Asks for the answer of the other device from now on. */
  #showCode({ pending }: DevicePrepared): SignInStep {
    const { parts, options } = this.#signIns;
    const { deviceMs, secondMs } = parts.limits;
    const { url, userCode, urlWithCode, discovered } = pending;
    const codeFrom = new URL(discovered.metadata.device_authorization_endpoint ?? discovered.foundAt).host;
    const endsInMs = Math.min(pending.life * 1_000, deviceMs);
    const { id } = this;
    const { signal } = this.#lifetime;
    const wait = (seconds: number) => sleep(seconds * secondMs, undefined, { signal, ref: false });
    this.#finishing = this.#finish(async () => {
      const { pollTokens } = await device();
      const polled = pollTokens(pending, this.#context, wait);
      const received = polled.then((tokens) => receive(this.target, pending, tokens));
      return Promise.race([received, this.#elsewhere()]);
    });
    options.log.info(
      `${this.target.server}: the sign-in waits for another device, with a code of ${codeFrom}`,
    );
    const page = urlWithCode === undefined ? {} : { urlWithCode };
    return this.#wait({ step: "device", id, url, userCode, ...page, codeFrom, endsInMs });
  }

  /**
   * Settles when the user has signed in in another session of Pi, which has the same store, and has there the rights for which
   * the server has asked here: nobody answers here then. Rejects when this sign-in ends.
   */
  async #elsewhere(): Promise<undefined> {
    const { parts, options } = this.#signIns;
    const { signal } = this.#lifetime;
    for (;;) {
      await sleep(parts.limits.lookMs, undefined, { signal, ref: false });
      const now = this.#before && (await storedIn(this.target));
      if (now?.id === undefined || now.id === this.#before?.id) continue;
      // The call would be refused again, which counts as a sign-in that has not given the rights.
      if (!isEnough(now.scope, this.target)) continue;
      options.log.info(`${this.target.server}: the user has signed in in another session`);
      return undefined;
    }
  }

  #wait(step: WaitingStep): SignInStep {
    this.#limit(step.endsInMs);
    this.#waiting = { step, endsAt: performance.now() + step.endsInMs };
    return step;
  }

  #limit(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.cancel("timed-out"), ms).unref();
  }

  /** The promise, or the reason for which the sign-in ended meanwhile. */
  async #orEnd<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this.#lifetime;
    try {
      return await abortable(promise, signal, "The sign-in");
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }

  /** The first answer counts, whether it comes from the browser or by paste. Never rejects. */
  #answer(answer: AuthorizationAnswer): Promise<boolean> {
    this.#finishing ??= this.#finish(() => this.#exchange(answer));
    return this.#finishing;
  }

  async #exchange(answer: AuthorizationAnswer): Promise<SignInRecord> {
    const { parts } = this.#signIns;
    if (!this.#prepared) throw new SignInProblem("cancelled");
    this.#limit(parts.limits.talkMs);
    const { pending } = this.#prepared;
    return exchange(this.target, { pending, answer, context: this.#context }, parts);
  }

  /** `receiving`: gets the tokens; undefined: they are stored already. Never rejects. */
  async #finish(receiving: () => Promise<SignInRecord | undefined>): Promise<boolean> {
    const { target } = this;
    try {
      // A browser may answer before its start is known, and the step comes before the end.
      await this.#beginning;
      const record = await this.#orEnd(receiving());
      this.#hasTokens = true;
      if (record) await target.store.locked((held) => held.write(record), this.#lifetime.signal);
    } catch (error) {
      this.#fail(error);
      return false;
    }
    this.#listening.abort();
    void this.#connect();
    return true;
  }

  /** Never rejects: a server that does not connect says so by its own status. */
  async #connect(): Promise<void> {
    const { server, redact } = this.target;
    const { log } = this.#signIns.options;
    let tools: number | undefined;
    try {
      // Whoever signed in at the company reads why that is not enough.
      await this.target.keeper?.prove();
    } catch (error) {
      return this.#fail(error);
    }
    try {
      tools = await this.#orEnd(this.target.signedIn());
    } catch (error) {
      log.warn(`${server}: signed in, but not connected: ${redact(messageOf(error))}`);
    }
    log.info(`${server}: signed in`);
    this.#end({ result: { ok: true, ...(tools === undefined ? {} : { tools }) } });
  }

  #fail(problem: unknown): void {
    const error = toWireError(this.#explain(problem));
    this.#signIns.options.log.info(`the sign-in ended: ${error.message}`);
    const { isOldClient = false, pending } = this.#prepared ?? {};
    const deadClient = isOldClient && !this.#isAbandoned ? pending?.client.id : undefined;
    this.#end({ result: { ok: false, error }, ...(deadClient === undefined ? {} : { deadClient }) });
  }

  #explain(error: unknown): ThreadsError {
    const { server, redact, keeper } = this.target;
    if (error instanceof SignInProblem)
      return explainProblem(error, { server, redact, at: keeper?.url.host });
    if (error instanceof ThreadsError) return error;
    return new ThreadsError("internal", `${server}: ${redact(messageOf(error))}`, { cause: error });
  }

  #end(over: FlowOver): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#lifetime.abort(new SignInProblem("cancelled"));
    this.#listening.abort();
    this.#signIns.over(this, over);
  }
}

const over = (): string => `This sign-in has ended. Begin another one with ${commandFor("auth")}.`;

interface SignInsOptions {
  onEnd: (end: { id: string; server: string; result: SignInResult }) => void;
  log: { info(message: string): void; warn(message: string): void };
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
}

export class SignIns {
  readonly options: SignInsOptions;
  readonly parts: SignInParts;
  readonly listeners: Listeners;
  /** By server. */
  readonly #flows = new Map<string, Flow>();
  /** By server: the old dynamic client with which the last sign-in was not finished. */
  readonly #deadClients = new Map<string, string>();

  constructor(options: SignInsOptions, parts: Partial<SignInParts> = {}) {
    this.options = options;
    this.parts = { ...PARTS, ...parts };
    this.listeners = new Listeners(this.parts.limits);
  }

  /**
   * The same server twice is one sign-in. `signal` ends a sign-in that has not answered its first step: without a dialog
   * no browser opens. Rejects with `ThreadsError`.
   */
  async begin(target: SignInTarget, agreed: SignInAgreed, signal?: AbortSignal): Promise<SignInStep> {
    const { server } = target;
    if (signal?.aborted) throw explainProblem(new SignInProblem("cancelled"), target);
    const running = this.#flows.get(server);
    if (running?.target.url.href === target.url.href) return running.begin(agreed, signal);
    running?.abandon();
    const most = this.parts.limits.flows;
    if (this.#flows.size >= most) throw explainProblem(new SignInProblem("too-many", { most }), target);
    const flow = new Flow(target, this, this.#deadClients.get(server));
    this.#flows.set(server, flow);
    return flow.begin(agreed, signal);
  }

  /** Answers what is wrong with the text; undefined: the sign-in goes on. */
  async paste(id: string, text: string): Promise<string | undefined> {
    const flow = this.#byId(id);
    return flow ? flow.paste(text) : over();
  }

  cancel(id: string): void {
    this.#byId(id)?.cancel();
  }

  /** Ends the sign-ins of a server that was edited or removed, or all. */
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

  /** Ends all sign-ins. Settles when nothing listens and nothing is being stored any more. */
  async close(): Promise<void> {
    const flows = [...this.#flows.values()];
    this.abandon();
    await Promise.all(flows.map((flow) => flow.settled()));
    await this.listeners.end();
  }

  #byId(id: string): Flow | undefined {
    return [...this.#flows.values()].find((flow) => flow.id === id);
  }

  /** Called once for each flow. */
  over(flow: Flow, { result, deadClient }: FlowOver): void {
    const { server } = flow.target;
    if (this.#flows.get(server) === flow) this.#flows.delete(server);
    if (deadClient !== undefined) this.#deadClients.set(server, deadClient);
    else if (result?.ok) this.#deadClients.delete(server);
    // A browser may answer before its start is known: main reads the step, which has the id, before the end.
    if (result) setImmediate(() => this.options.onEnd({ id: flow.id, server, result }));
  }
}
