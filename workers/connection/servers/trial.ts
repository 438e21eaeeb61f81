/**
 * Tries a server that is not configured: connects as any server does, lists its tools, and ends it. Owns: the limit on
 * time, and that nothing is left running. Called by: supervisor.ts.
 */
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { TriedServer } from "../../../src/shared/protocol/setup.ts";
import { shownName } from "../../../src/shared/text/unprintable.ts";
import { createGate } from "../../shared/pace/gate.ts";
import { takesSignIn } from "../auth/auth.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { Server, type ServerContext } from "./server.ts";

export type TrialContext = Omit<ServerContext, "gate" | "onStatus" | "onTools">;

const ignore = (): void => undefined;

/** Nobody signs in and nobody is asked: no stored token goes to a server that is not configured. */
const aloneIn = (context: TrialContext): ServerContext => {
  const { auth: _, asks: __, ...others } = context;
  return { ...others, gate: createGate(1), onStatus: ignore, onTools: ignore };
};

const tooSlow = (name: string, timeoutMs: number): ThreadsError =>
  new ThreadsError("connect_timeout", `${name} did not tell its tools within ${timeoutMs / 1_000} s.`, {
    remedy:
      "Try again: a package that npx or uvx had to download is there then. Or start the program yourself.",
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
  const server = new Server(
    { ...definition, enabled: true, lifecycle: "lazy", startupTimeoutMs },
    aloneIn(context),
  );
  const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
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
    const { target } = definition;
    const headers = target.kind === "http" ? target.headers : {};
    if (failure.code === "needs_auth" && takesSignIn(definition, headers))
      return { outcome: "needs-sign-in", tookMs: tookMs() };
    return { outcome: "failed", error: failure, tookMs: tookMs() };
  } finally {
    ends.removeEventListener("abort", end);
    await server.close();
  }
}
