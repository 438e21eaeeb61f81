/**
 * Owns: one measured result in a running Pi, and a whole Pi for one result and the smallest one.
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

/** The server that is called. */
export const SERVER = "bench1";

const SHOWN_CHARS = 60;
/** Until Pi is idle after a prompt, and for how long it is watched then. */
const SETTLE_MS = 200;
const IDLE_MS = 600;

export interface Outcome {
  /** From the server's last byte to the model's next request; undefined for many results and for a failure. */
  deliveryMs: number | undefined;
  /** What the model was shown where that is not the result. */
  failure: string | undefined;
}

export interface Sample extends Outcome {
  window: Window;
  /** CPU of main in the window, less what an idle Pi with the heartbeat takes in as long. */
  cpuMs: number;
  /** Longest wait of an idle thread at the same time. */
  idleMs: number;
}

/** The model finds the tool and calls it once: what a first call costs is over then. */
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

/** Results that do not carry what was asked for, in a few words. */
function failureOf({ results }: Prompted, payload: Payload, ids: readonly string[]): string | undefined {
  const wrong = ids.filter((id, index) => !payload.isRight(results[index] ?? "", id));
  const [first] = wrong;
  if (first === undefined) return undefined;
  const shown = (results[ids.indexOf(first)] ?? "no result").replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARS);
  return ids.length === 1 ? shown : `${wrong.length} of ${ids.length} wrong, the first: ${shown}`;
}

/** A Pi of its own: warm-up, the smallest payload, this one. Answers a sample of each of the last two. */
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
