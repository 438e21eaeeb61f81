/** Owns: calls of servers whose answers have accidents. Each call must be answered, or fail, in time. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { currentCatalog, type Started, start, textOf } from "../../worker/support.ts";

/** The number of mutations of each kind. */
export const COUNT = Number(process.env.HOSTILE_MUTATIONS ?? 40);
export const SEED = Number(process.env.HOSTILE_SEED ?? 20_270_101);
/** This limit catches hangs only. */
export const HANG_MS = 10_000;

/** The mutations go to these servers in turn. */
export const SERVER_NAMES = ["s0", "s1", "s2", "s3"] as const;
/** An accident that ends a connection also ends the other open calls, so a short run has few open calls. */
const IN_FLIGHT = COUNT < 1_000 ? 8 : 32;
/** A server is connected again once in `CALLS_A_RENEWAL` of its calls, at call number `RENEWED_AT`. */
const CALLS_A_RENEWAL = 25;
const RENEWED_AT = 5;
const ATTEMPTS = 3;
const ANSWER_MS = 20;
/** Accidents of bytes and of ids leave a request without an answer. */
export const SHORT = { requestTimeoutMs: 600, startupTimeoutMs: 2_000 };
/** Errors of a call that never reached the server, because the connection had an accident. */
const UNSENT = ["connect_failed", "connect_timeout", "spawn_failed", "needs_auth", "unknown_tool"];

export const serverFile = (file: string): string => join(import.meta.dirname, "..", "servers", file);
const HEALTHY = { command: process.execPath, args: [serverFile("healthy.mjs")] };

/** Declines what an accident asks the user: the time of a call stands still until somebody answers. */
function declineQuestions({ user }: Started): () => void {
  let read = 0;
  const timer = setInterval(() => {
    for (const { answer } of user.ofServers().slice(read)) {
      read++;
      answer({ action: "decline" });
    }
  }, ANSWER_MS);
  return () => clearInterval(timer);
}

/** Makes many calls at a time whose answers have accidents, and calls of the healthy server between them. */
async function mutateCalls(at: Started): Promise<{ outcomes: Record<string, number>; wrong: string[] }> {
  const outcomes: Record<string, number> = {};
  const wrong: string[] = [];
  const renewals = new Map<string, Promise<void>>();
  /** Resolves with how the call ended, and adds a wrong end to `wrong`. */
  const settle = async (what: string, calling: Promise<unknown>): Promise<string> => {
    const over = new AbortController();
    const outcome = await Promise.race([
      calling.then(
        () => "answered",
        (error: unknown) => (error instanceof ThreadsError ? error.code : `threw ${String(error)}`),
      ),
      sleep(HANG_MS, "hangs", { signal: over.signal }).catch(() => "over"),
    ]);
    over.abort();
    if (/^(hangs|threw|internal|runtime)/.test(outcome)) wrong.push(`seed ${SEED}, ${what}: ${outcome}`);
    const key = what.startsWith("renewal") ? `renewal ${outcome}` : outcome;
    outcomes[key] = (outcomes[key] ?? 0) + 1;
    return outcome;
  };
  const renew = (name: string, number: number): Promise<void> => {
    const running = renewals.get(name);
    if (running) return running;
    const renewal = settle(
      `renewal at mutation ${number}`,
      at.runtime.ask("reconnect", { server: name }),
    ).then(() => void renewals.delete(name));
    renewals.set(name, renewal);
    return renewal;
  };
  const mutation = async (number: number): Promise<void> => {
    const name = SERVER_NAMES[number % SERVER_NAMES.length] ?? "s0";
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const outcome = await settle(`mutation ${number}`, at.call(name, "work", { number }));
      if (!UNSENT.includes(outcome)) break;
      await renew(name, number);
    }
    if (Math.floor(number / SERVER_NAMES.length) % CALLS_A_RENEWAL === RENEWED_AT) await renew(name, number);
    if (number % IN_FLIGHT > 0) return;
    const beside = await at.call("healthy", "echo", { text: `${number}` }).then(textOf, String);
    if (beside !== `echo: ${number}`) wrong.push(`seed ${SEED}, beside mutation ${number}: ${beside}`);
  };
  let next = 0;
  const runSome = async (): Promise<void> => {
    while (next < COUNT && wrong.length < 10) await mutation(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, runSome));
  return { outcomes, wrong };
}

/** Makes the calls and asserts what must hold after them. */
export async function checkCalls(
  servers: Record<string, Record<string, unknown>>,
  kind: string,
): Promise<void> {
  const at = await start({ ...servers, healthy: HEALTHY });
  const begunMs = performance.now();
  const stop = declineQuestions(at);
  const { outcomes, wrong } = await mutateCalls(at).finally(stop);
  const tookMs = Math.round(performance.now() - begunMs);
  process.stdout.write(`${COUNT} mutations over ${kind}, ${tookMs} ms: ${JSON.stringify(outcomes)}\n`);
  expect({ wrong, crashes: at.crashes }).toEqual({ wrong: [], crashes: [] });
  expect(textOf(await at.call("healthy", "echo", { text: "still" }))).toBe("echo: still");
  expect((await currentCatalog(at)).servers.length).toBe(SERVER_NAMES.length + 1);
  // The accidents are real, and some calls still get an answer.
  expect(outcomes.answered).toBeGreaterThan(COUNT / 50);
  expect(Object.keys(outcomes).length).toBeGreaterThan(1);
}
