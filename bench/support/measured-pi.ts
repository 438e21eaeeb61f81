/**
 * Owns: one running Pi over RPC with a probe around a variant: prompts with a scripted model, marks, the report.
 * Must not: compare variants or summarise figures.
 * Called by: the scenarios that run Pi.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ModelRequest, type ModelTurn, startModel, toolResultTexts } from "../../test/support/model.ts";
import { startRpc } from "../../test/support/pi-run.ts";
import { notices } from "../../test/support/rpc-events.ts";
import type { BenchHome } from "./bench-home.ts";
import { type ProbeReport, readProbeReport } from "./probe-report.ts";
import type { Variant } from "./variants.ts";
import { withProbe } from "./with-probe.ts";

const PROMPT_TIMEOUT_MS = 90_000;
const NOTICE_TIMEOUT_MS = 30_000;

/** `afterMs`: how long the model takes. */
export type TimedTurn = ModelTurn & { afterMs?: number };

export interface Prompted {
  /** All requests that the prompt caused. */
  requests: readonly ModelRequest[];
  /** The text that the model got for each tool call of this prompt. */
  results: readonly string[];
}

export interface MeasuredPi {
  /** Milliseconds since the epoch. */
  startedAtMs: number;
  /** Sends a prompt; the model answers with these turns, then with "done". Resolves once Pi has settled. */
  prompt(...turns: TimedTurn[]): Promise<Prompted>;
  /** Waits for a later notice to the user; answers its time in milliseconds since the epoch. */
  noticeAt(fits: RegExp): Promise<number>;
  mark(name: string, options?: { gc: boolean }): Promise<void>;
  ready(): Promise<void>;
  /** Waits until `ms` milliseconds after Pi's start. */
  untilAge(ms: number): Promise<void>;
  report(): Promise<ProbeReport>;
  /** Ends Pi and answers the report that Pi wrote at its exit. */
  stop(): Promise<ProbeReport>;
  /** Ends Pi if it still runs. */
  dispose(): Promise<void>;
}

export const epochMs = (): number => performance.timeOrigin + performance.now();

export async function startMeasured(
  { extension }: Pick<Variant, "extension">,
  { home }: Pick<BenchHome, "home">,
): Promise<MeasuredPi> {
  const reportFile = join(home.dir, "report.json");
  const turns: TimedTurn[] = [];
  const model = await startModel(async () => {
    const turn = turns.shift();
    if (turn?.afterMs !== undefined) await sleep(turn.afterMs);
    return turn;
  });
  const session = await startRpc({
    home,
    model,
    extensions: withProbe(extension),
    env: { BENCH_REPORT: reportFile },
  });
  const stop = async (): Promise<void> => {
    await session.stop();
    await model.close();
  };
  return {
    startedAtMs: session.startedAtMs,
    prompt: async (...wanted) => {
      turns.splice(0, turns.length, ...wanted);
      const [before, shownBefore] = [model.requests.length, toolResultsOf(model.requests).length];
      await session.prompt("go on", PROMPT_TIMEOUT_MS);
      return {
        requests: model.requests.slice(before),
        results: toolResultsOf(model.requests).slice(shownBefore),
      };
    },
    noticeAt: async (fits) => {
      const isIt = (event: Parameters<typeof notices>[0][number]): boolean =>
        notices([event]).some(({ message }) => fits.test(message));
      await session.waitFor(isIt, NOTICE_TIMEOUT_MS, session.events.length);
      return epochMs();
    },
    mark: async (name, { gc } = { gc: false }) => {
      await session.command(`/bench-mark ${gc ? "gc " : ""}${name}`);
    },
    ready: () => session.ready(),
    untilAge: (ms) => sleep(Math.max(session.startedAtMs + ms - epochMs(), 0)),
    report: async () => {
      await session.command("/bench-report");
      return readProbeReport(reportFile);
    },
    stop: async () => {
      await stop();
      return readProbeReport(reportFile);
    },
    dispose: stop,
  };
}

/** All results so far: every request contains the whole conversation, so the last request has them all. */
function toolResultsOf(requests: readonly ModelRequest[]): string[] {
  const last = requests.at(-1);
  return last === undefined ? [] : toolResultTexts(last);
}
