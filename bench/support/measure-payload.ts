/**
 * Owns: the measurement of one result in a running Pi, and of one result and the smallest one in a Pi of their own.
 * Must not: compare variants or make rows.
 * Called by: the stall and memory scenarios.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchHome } from "./bench-home.ts";
import { type IdleBeat, longestWithin } from "./idle-beat.ts";
import { type MeasuredPi, type Prompted, startMeasured } from "./measured-pi.ts";
import { type Payload, payloadCall, SMALL } from "./payloads.ts";
import type { ProbeReport, Window } from "./probe-report.ts";
import type { Variant } from "./variants.ts";

/** Name of the called server. */
export const SERVER = "bench1";

const SHOWN_CHARS = 60;
/** Pi is idle within this time after a prompt. */
const SETTLE_MS = 200;
/** The idle Pi is watched for this time. */
const IDLE_MS = 600;

export interface Outcome {
  /** Time from the server's last byte to the next request to the model; undefined for several results or a failure. */
  deliveryMs: number | undefined;
  /** The text that the model got instead of the right result; undefined if the result is right. */
  failure: string | undefined;
}

export interface Sample extends Outcome {
  window: Window;
  /** CPU time of main in the window, minus that of an idle Pi with the heartbeat in the same time. */
  cpuMs: number;
  /** Longest stall of an idle thread in the same time. */
  idleMs: number;
}

/** The model finds the tool and calls it once, so that later figures contain no cost of a first call. */
export async function warmUp(pi: MeasuredPi, variant: Variant): Promise<void> {
  await pi.prompt(variant.find(SERVER, "payload"), variant.call(SERVER, [payloadCall(SMALL, "warm")]));
}

/** Prompts for a payload between the marks `before <name>` and `after <name>`. */
export async function promptPayload(
  pi: MeasuredPi,
  { variant, home, payload }: { variant: Variant; home: BenchHome; payload: Payload },
): Promise<Outcome> {
  const turns = Array.from({ length: payload.turns }, (_, turn) =>
    Array.from({ length: payload.callsATurn }, (_, index) => `${payload.id}-${turn}-${index}`),
  );
  const callsOf = (ids: readonly string[]) => ids.map((id) => payloadCall(payload, id));
  await pi.mark(`before ${payload.name}`);
  const prompted = await pi.prompt(...turns.map((ids) => variant.call(SERVER, callsOf(ids))));
  await pi.mark(`after ${payload.name}`);
  const ids = turns.flat();
  const failure = failureOf(prompted, payload, ids);
  const [sentAtMs] = await home.seen(`sent ${ids[0]}`);
  const shownAtMs = prompted.requests[1]?.arrivedAtMs;
  const known =
    ids.length === 1 && failure === undefined && sentAtMs !== undefined && shownAtMs !== undefined;
  return { deliveryMs: known ? shownAtMs - sentAtMs : undefined, failure };
}

/** A short text about the wrong results; undefined if all results are right. */
function failureOf({ results }: Prompted, payload: Payload, ids: readonly string[]): string | undefined {
  const wrong = ids.filter((id, index) => !payload.isRight(results[index] ?? "", id));
  const [first] = wrong;
  if (first === undefined) return undefined;
  const shown = (results[ids.indexOf(first)] ?? "no result").replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARS);
  return ids.length === 1 ? shown : `${wrong.length} of ${ids.length} wrong, the first: ${shown}`;
}

/** Starts a Pi: warm-up, the smallest payload, then `payload`. Answers a sample for each of the two payloads. */
export async function measurePayload(
  { variant, home, payload }: { variant: Variant; home: BenchHome; payload: Payload },
  idle: IdleBeat,
): Promise<Map<Payload, Sample>> {
  await home.reset({ cold: false });
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    await home.allListed();
    await warmUp(pi, variant);
    const outcomes = new Map<Payload, Outcome>();
    outcomes.set(SMALL, await promptPayload(pi, { variant, home, payload: SMALL }));
    await sleep(SETTLE_MS);
    await pi.mark("idle begins");
    await sleep(IDLE_MS);
    await pi.mark("idle ends");
    outcomes.set(payload, await promptPayload(pi, { variant, home, payload }));
    const probe = await pi.stop();
    const gaps = await idle.take();
    const quiet = probe.between("idle begins", "idle ends");
    const toSample = (one: Payload, outcome: Outcome): Sample => {
      const window = windowOf(probe, one);
      const cpuMs = window.cpuMs - (quiet.cpuMs / quiet.wallMs) * window.wallMs;
      return { ...outcome, window, cpuMs, idleMs: longestWithin(gaps, window) };
    };
    return new Map([...outcomes].map(([one, outcome]) => [one, toSample(one, outcome)]));
  } finally {
    await pi.dispose();
  }
}

const windowOf = (probe: ProbeReport, { name }: Payload): Window =>
  probe.between(`before ${name}`, `after ${name}`);
