/**
 * Tries a server that is not configured: connects as any server does, lists its tools, and ends it. Owns: the limit on
 * time, and that nothing is left running. Called by: supervisor.ts.
 */
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { TriedServer } from "../../../src/shared/protocol/setup.ts";
import { shownName } from "../../../src/shared/text/unprintable.ts";
import { createGate } from "../../shared/pace/pace.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { Server, type ServerContext } from "./server.ts";

export type TrialContext = Omit<ServerContext, "gate" | "onStatus" | "onTools">;

const ignore = (): void => undefined;

/** The limit on time. What npm takes to fetch a package does not count: npm has limits of its own, and says that it lives. */
class TrialClock {
  readonly #over = new AbortController();
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#timer = this.#start();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** npm lives, or is done: the whole time is left for the server. */
  restart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => this.#over.abort(), this.#timeoutMs);
  }
}

/** Nobody signs in and nobody is asked: no stored token goes to a server that is not configured. */
const aloneIn = (context: TrialContext, onStatus: ServerContext["onStatus"]): ServerContext => {
  const { auth, asks: _, ...others } = context;
  const own = auth === undefined ? {} : { auth: { ...auth, of: auth.forTrial, status: () => undefined } };
  return { ...others, ...own, gate: createGate(1), onStatus, onTools: ignore };
};

const tooSlow = (name: string, timeoutMs: number): ThreadsError =>
  new ThreadsError("connect_timeout", `${name} did not tell its tools within ${timeoutMs / 1_000} s.`, {
    remedy:
      "Try again: a package that uvx or docker had to download is there then. Or start the program yourself.",
    data: { server: name, timeoutMs },
  });

/** Settles when the server has ended. Rejects with `cancelled` if the signal fires. */
export async function tryServer(
  definition: ServerDefinition,
  context: TrialContext,
  signal: AbortSignal,
  timeoutMs: number = LIMITS.tryMs,
): Promise<TriedServer> {
  const { name } = definition;
  const startedAt = performance.now();
  const tookMs = (): number => Math.round(performance.now() - startedAt);
  const { startupTimeoutMs = timeoutMs } = definition;
  const clock = new TrialClock(timeoutMs);
  let waits: string | undefined;
  const server = new Server(
    { ...definition, enabled: true, lifecycle: "lazy", startupTimeoutMs },
    aloneIn(context, (tried) => {
      const now = tried.status().waits;
      if (now === waits) return;
      waits = now;
      clock.restart();
      context.emit({ type: "trying", server: name, ...(waits === undefined ? {} : { waits }) });
    }),
  );
  const ends = AbortSignal.any([signal, clock.signal]);
  const end = (): void => void server.close();
  ends.addEventListener("abort", end, { once: true });
  try {
    ends.throwIfAborted();
    const { transport, protocol } = await server.connect("user");
    const tools = server.tools ?? [];
    return {
      outcome: "connected",
      toolCount: tools.length,
      tools: tools.slice(0, LIMITS.triedToolNames).map((tool) => shownName(tool.name)),
      transport,
      protocol: protocol.version,
      tookMs: tookMs(),
    };
  } catch (error) {
    if (signal.aborted) throw new ThreadsError("cancelled", `The trial of ${name} was cancelled.`);
    if (ends.aborted)
      return { outcome: "failed", error: toWireError(tooSlow(name, timeoutMs)), tookMs: tookMs() };
    const failure = toWireError(error);
    if (failure.data?.reason === "not-signed-in") return { outcome: "needs-sign-in", tookMs: tookMs() };
    return { outcome: "failed", error: failure, tookMs: tookMs() };
  } finally {
    clock.stop();
    ends.removeEventListener("abort", end);
    await server.close();
  }
}
