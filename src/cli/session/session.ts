/**
 * One session of the connection worker, for one command. Owns: the worker's start and end, what its events mean here,
 * and the questions to the person. Must not: print results.
 *
 * The worker connects nothing by itself (`onDemand`), so a command reaches only the servers that it names.
 */

import { join } from "node:path";
import { type CatalogStore, createCatalogStore } from "../../catalog/store.ts";
import { refusedLine, serverName } from "../../report/server-name.ts";
import { wantsText } from "../../report/status.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { startRuntimeLater } from "../../runtime/later.ts";
import type {
  ApprovalQuestion,
  ApprovalVerdict,
  PromptAnswer,
  ProviderAnswer,
} from "../../shared/protocol/calls.ts";
import type { Question, WorkerEvent } from "../../shared/protocol/contract.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { SignInResult, StatusReport } from "../../shared/protocol/session.ts";
import { LOG_FILE } from "../../shared/snapshot/contract.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { type Console, isYes } from "../console/console.ts";
import { EXIT, Failure } from "../console/failure.ts";
import { factsOf, HOW_TO_CONSENT, type Place } from "../place/place.ts";
import { createAsks } from "./asks.ts";

export interface SessionOptions {
  place: Place;
  console: Console;
  /** `--yes`. */
  yes: boolean;
  /** Aborts when the command ends before its time. */
  signal: AbortSignal;
  /** When the time of `--timeout` is over, on the clock of `performance.now()`. */
  endsAtMs: number | undefined;
  /** The session goes on, as one of Pi: servers are connected as the configuration says, and nobody is asked on the terminal. */
  stays?: Stays | undefined;
}

export interface Stays {
  /** Answers in the place of the terminal. Undefined: nobody answers. */
  answer: (question: Question, signal: AbortSignal) => Promise<unknown>;
  /** Follows the session's events, after the catalog holds what they bring. */
  onEvent: (event: WorkerEvent) => void;
}

const REFUSED_BEFORE = "You refused this MCP server before.";
const OTHER_ONE =
  "A file of this project defines another server of that name: --trust-project shows it and asks about it, even with --yes.";
const HOW_TO_ASK_AGAIN =
  "In a terminal the command shows what would run, and asks again. --yes does not undo a refusal.";

type Progress = Extract<WorkerEvent, { type: "progress" }>;
type SignInEnd = Extract<WorkerEvent, { type: "sign-in" }>;

/** All servers together have the time of one start, and a moment. */
const ALL_MS = LIMITS.startupTimeoutMs + LIMITS.rpcGraceMs;
/** The last part of what is left of `--timeout` is for the answer, which takes seconds on a slow machine. */
const ANSWER_MS = 5_000;
const ANSWER_SHARE = 1 / 3;

export class CliSession {
  readonly runtime: Runtime;
  readonly store: CatalogStore;
  readonly #options: SessionOptions;
  readonly #plan = Promise.withResolvers<void>();
  readonly #askForServer: ReturnType<typeof createAsks>;
  readonly #progress = new Map<string, (event: Progress) => void>();
  /** Servers that have asked a model, which the person is told once. */
  readonly #wantAModel = new Set<string>();
  #onSignInEnd: ((event: SignInEnd) => void) | undefined;
  readonly #waits = new Map<string, string>();
  #report: StatusReport | undefined;

  constructor(options: SessionOptions) {
    const { place, console } = options;
    this.#options = options;
    this.#askForServer = createAsks(console);
    // Nobody waits for the plan in a command that ends early.
    this.#plan.promise.catch(() => undefined);
    this.store = createCatalogStore(place.agentDir, place.key);
    const facts = factsOf(place);
    this.runtime = startRuntimeLater({
      logFile: join(place.logDir ?? place.agentDir, LOG_FILE),
      commands: "shell",
      facts: () => ({
        ...facts,
        onDemand: !options.stays,
        asksSideBySide: options.stays !== undefined,
        snapshotChecksum: this.store.checksum(),
      }),
      onEvent: (event) => {
        this.#onEvent(event);
        options.stays?.onEvent(event);
      },
      onQuestion: (question, signal) =>
        this.#answer(question, signal).catch((error: unknown) => console.warn(messageOf(error))),
      onCrash: ({ reason, heldBack = [] }) => {
        const blamed = heldBack.length === 0 ? "" : ` Probably because of ${heldBack.join(", ")}.`;
        console.warn(`The connection worker ended unexpectedly (${reason}).${blamed}`);
      },
      onStartFailed: (error) => this.#plan.reject(error),
    });
  }

  async #answer(question: Question, taken: AbortSignal): Promise<unknown> {
    const signal = AbortSignal.any([this.#options.signal, taken]);
    if (this.#options.stays) return this.#options.stays.answer(question, signal);
    const { console } = this.#options;
    if (question.about === "call")
      return console.inTurn(() => answerApproval(question, { ...this.#options, signal }));
    // Whoever types a command has asked for the skill that it names; nothing else loads one here.
    if (question.about === "skill") return "no";
    if (question.about === "prompt") {
      const { server } = question;
      if (!this.#wantAModel.has(server))
        console.warn(`MCP server ${serverName(server)} asks a model: only Pi has one.`);
      this.#wantAModel.add(server);
      return { action: "failed" } satisfies PromptAnswer;
    }
    if (question.about === "provider") return { problem: "needs-pi" } satisfies ProviderAnswer;
    return this.#askForServer(question.server, question.ask, taken);
  }

  #onEvent(event: WorkerEvent): void {
    const { console } = this.#options;
    switch (event.type) {
      case "planned":
        this.#report = event;
        this.#plan.resolve();
        break;
      case "catalog":
        this.store.replace(event.snapshot);
        break;
      case "removed":
        this.store.leaveOut(event);
        break;
      case "notice":
        if (event.level !== "info") console.warn(event.text);
        break;
      case "server":
        this.#waiting(event.status.name, event.status.waits);
        break;
      case "trying":
        this.#waiting(event.server, event.waits);
        break;
      case "progress":
        this.#progress.get(event.callId)?.(event);
        break;
      case "sign-in":
        this.#onSignInEnd?.(event);
        break;
    }
  }

  /** Shows in one line what the start of a server waits for, as long as it does. */
  #waiting(server: string, waits: string | undefined): void {
    if (waits === undefined && !this.#waits.delete(server)) return;
    if (waits !== undefined) this.#waits.set(server, waits);
    this.#options.console.progress(this.waitsFor());
  }

  /** What the start of a server waits for now, in one line; empty if none waits. */
  waitsFor(): string {
    const [first, ...others] = this.#waits;
    const more = others.length > 0 ? ` (and ${others.length} more)` : "";
    return first ? `${serverName(first[0])}: ${first[1]}${more}` : "";
  }

  /** Settles when the configuration is read. Rejects with a failure if it cannot be. */
  async planned(): Promise<StatusReport> {
    await this.#plan.promise;
    if (!this.#report) throw new Failure(EXIT.internal, "The worker has told no plan.");
    return this.#report;
  }

  async status(): Promise<StatusReport> {
    await this.#plan.promise;
    return this.runtime.ask("status", {});
  }

  /**
   * Settles when the project's server of this name may run, and does nothing for any other. The consent is asked on the
   * terminal with everything that would run, given by `--yes` after showing it, and otherwise missing: then it rejects with a
   * failure. The worker remembers the answer. A project's server with the name of an own one is asked about with
   * `--trust-project` alone: the name means the own server, as in Pi until the person allows the other one.
   */
  async allow(server: string): Promise<void> {
    const { console, yes, signal, place } = this.#options;
    const { ask } = this.runtime;
    const report = await this.planned();
    const refusalIn = ({ refused }: StatusReport) => refused.find(({ name }) => name === server);
    const withheld = report.questions.find((one) => one.server === server) ?? refusalIn(report);
    if (withheld?.inPlace && place.trust.trust !== "by-option") {
      console.note(`${serverName(server)} is your own server. ${OTHER_ONE}`);
      return;
    }
    const wasRefused = refusalIn(report)?.byPerson === true;
    // Opens the questions that were answered with no.
    if (wasRefused && console.canAsk) await ask("askAgain", {});
    const now = wasRefused && console.canAsk ? await ask("status", {}) : report;
    const question = now.questions.find((one) => one.server === server);
    if (!question) {
      const refusal = refusalIn(now);
      if (!refusal) return;
      const remedy = wasRefused ? HOW_TO_ASK_AGAIN : HOW_TO_CONSENT;
      throw new Failure(EXIT.consent, refusedLine(refusal), { remedy });
    }
    const mayAnswerYes = yes && !wasRefused;
    const asked = !mayAnswerYes && console.canAsk;
    const line = await console.inTurn(async () => {
      console.warn(`${wasRefused ? REFUSED_BEFORE : wantsText(question)}\n${question.question}`);
      return asked ? console.ask("Allow it? [y/N] ", signal) : undefined;
    });
    const allow = mayAnswerYes || isYes(line);
    // Ctrl-D, a signal or the end of the time is no answer: the question stays open.
    if (!allow && line === undefined) {
      throw new Failure(EXIT.consent, `${serverName(server)} waits for your consent.`, {
        remedy: HOW_TO_CONSENT,
      });
    }
    await ask("answerConsent", { hash: question.hash, allow });
    if (!allow) throw new Failure(EXIT.consent, `You did not allow ${serverName(server)}.`);
  }

  /** Connects the server. Settles when it has listed its tools or failed, and the catalog holds them. */
  async connect(server: string): Promise<void> {
    await this.#plan.promise;
    await this.runtime.ask("reconnect", { server }, this.#options.signal);
    await this.#settle([server], LIMITS.startupTimeoutMs);
  }

  /**
   * Connects these servers, or all that are on, side by side. Settles when each has listed its tools or failed, or after
   * the time of a start: one that waits for npm must not hide the others. `status` says how far each is.
   */
  async connectAll(servers?: readonly string[]): Promise<void> {
    await this.#plan.promise;
    const { signal, endsAtMs } = this.#options;
    const leftMs = endsAtMs === undefined ? undefined : Math.max(0, endsAtMs - performance.now());
    const mostMs =
      leftMs === undefined ? ALL_MS : Math.round(leftMs - Math.min(ANSWER_MS, leftMs * ANSWER_SHARE));
    const over = AbortSignal.timeout(mostMs);
    const until = AbortSignal.any([signal, over]);
    const asked = (servers ?? [undefined]).map((server) => this.runtime.ask("reconnect", { server }, until));
    // What is wrong with a server stands in its state. Without a worker `settleTools` fails, too.
    await Promise.allSettled(asked);
    await this.#settle(servers, over.aborted ? 0 : LIMITS.startupTimeoutMs);
  }

  async #settle(servers: readonly string[] | undefined, timeoutMs: number): Promise<void> {
    await this.runtime.settleTools(
      { timeoutMs, ...(servers === undefined ? {} : { servers: [...servers] }) },
      this.#options.signal,
    );
  }

  /** Shows the progress of the call with this id until the function that it returns is called. */
  onProgress(callId: string, show: (event: Progress) => void): () => void {
    this.#progress.set(callId, show);
    return () => this.#progress.delete(callId);
  }

  signInEnd(wanted: string): Promise<SignInResult> {
    return new Promise((resolve) => {
      this.#onSignInEnd = ({ id, result }) => {
        if (id === wanted) resolve(result);
      };
    });
  }

  stop(): Promise<void> {
    return this.runtime.stop();
  }
}

const NAME_CHARS = 200;

/** The question whether a tool may run, which a rule of the configuration demands. Asked on the terminal alone. */
async function answerApproval(
  { server, tool, args, canAlways }: ApprovalQuestion,
  { console, yes, signal }: { console: Console; yes: boolean; signal: AbortSignal },
): Promise<ApprovalVerdict> {
  const head = `Run ${oneLine(tool, NAME_CHARS)} of the MCP server ${serverName(server)}?`;
  console.warn([head, args === "" ? "It gets no arguments." : args].join("\n"));
  if (yes) return "once";
  if (!console.canAsk) {
    console.warn("No one can be asked here: it does not run. --yes allows it once.");
    return "nobody";
  }
  const line = await console.ask(canAlways ? "Allow it? [y/N, a: always] " : "Allow it? [y/N] ", signal);
  if (canAlways && /^a(lways)?$/i.test(line?.trim() ?? "")) return "always";
  return isYes(line) ? "once" : "no";
}
