/** Owns: the life of a server as a table: every state, every event, every lifecycle. */
import { describe, expect, it, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import {
  backoffMs,
  type Lifecycle,
  type ServerEffect,
  type ServerEvent,
  type ServerPhase,
  transition,
  type WantedBy,
} from "../../../../../workers/connection/servers/state.ts";

const LIFECYCLES: readonly Lifecycle[] = ["lazy", "eager", "keep-alive"];
const policyOf = (lifecycle: Lifecycle) => ({ lifecycle, idleTimeoutMs: 0 });

const error = new ThreadsError("connect_failed", "s could not be connected.");
const needsAuth = new ThreadsError("needs_auth", "s answered 401.");
const NOW = 100_000;
const TOOK = 250;

/** Long enough for a connection to count as steady. */
const STEADY = 60_000;

const STATES = {
  idle: { name: "idle" },
  "idle after a drop": { name: "idle", error, failures: 1 },
  "idle after four drops": { name: "idle", error, failures: 4 },
  connecting: { name: "connecting", failures: 0 },
  "connecting again": { name: "connecting", failures: 2 },
  connected: { name: "connected", failures: 0, sinceMs: NOW - 1 },
  "connected for a minute": { name: "connected", failures: 0, sinceMs: NOW - STEADY },
  "connected again": { name: "connected", failures: 2, sinceMs: NOW - STEADY + 1 },
  "connected again for a minute": { name: "connected", failures: 9, sinceMs: NOW - STEADY },
  "needs-auth": { name: "needs-auth", error: needsAuth },
  "failed, still to wait": { name: "failed", error, retryAtMs: NOW + 1, unaskedAtMs: NOW + 1, failures: 3 },
  "failed, waited for a call": { name: "failed", error, retryAtMs: NOW, unaskedAtMs: NOW + 1, failures: 3 },
  "failed, waited": { name: "failed", error, retryAtMs: NOW, unaskedAtMs: NOW, failures: 3 },
  "held back": { name: "failed", error, retryAtMs: 0, unaskedAtMs: 0, failures: 0, heldBack: true },
  closing: { name: "closing" },
  disabled: { name: "disabled" },
} as const satisfies Record<string, ServerPhase>;
type StateName = keyof typeof STATES;
const ALL = Object.keys(STATES) as StateName[];

const wanted = (by: WantedBy): ServerEvent => ({ type: "wanted", by, nowMs: NOW });
const EVENTS = {
  "wanted by a call": wanted("call"),
  "wanted in the background": wanted("background"),
  "wanted by the user": wanted("user"),
  "wanted by the timer": wanted("timer"),
  opened: { type: "opened", nowMs: NOW },
  "open-failed": { type: "open-failed", error, nowMs: NOW, tookMs: TOOK },
  "open-failed with 401": { type: "open-failed", error: needsAuth, nowMs: NOW, tookMs: TOOK },
  dropped: { type: "dropped", error, nowMs: NOW },
  "auth-lost": { type: "auth-lost", error: needsAuth },
  "held-back": { type: "held-back", error },
  "idle-expired": { type: "idle-expired" },
  outdated: { type: "outdated" },
  renewed: { type: "renewed", leave: "end" },
  closed: { type: "closed", leave: "now" },
} as const satisfies Record<string, ServerEvent>;
type EventName = keyof typeof EVENTS;

const OPEN: ServerEffect[] = [{ type: "open" }];
const CLOSE: ServerEffect[] = [{ type: "close" }];
const refuse = (reason: "waiting-to-retry" | "disabled" | "closing"): ServerEffect[] => [
  { type: "refuse", reason },
];
const connecting = (failures: number): ServerPhase => ({ name: "connecting", failures });
const failed = (failures: number): ServerPhase => ({
  name: "failed",
  error,
  retryAtMs: NOW + 10 * TOOK,
  unaskedAtMs: NOW + 10 * TOOK * 2 ** (failures - 1),
  failures,
});

/** A state of `undefined` stands for the same object as before. */
type Outcome = [state: ServerPhase | undefined, effects: ServerEffect[]];
const NOTHING: Outcome = [undefined, []];

type Row = Partial<Record<StateName, Outcome>>;

type OfLifecycle = "open-failed" | "dropped" | "outdated" | "idle-expired";
/** Outcomes that all lifecycles share: state -> outcome. A state that is not named does not change. */
const WANTED: Row = {
  idle: [connecting(0), OPEN],
  "idle after a drop": [connecting(1), OPEN],
  "idle after four drops": [connecting(4), OPEN],
  "needs-auth": [connecting(0), OPEN],
  "failed, still to wait": [undefined, refuse("waiting-to-retry")],
  "failed, waited for a call": [connecting(3), OPEN],
  "failed, waited": [connecting(3), OPEN],
  "held back": [connecting(0), OPEN],
  closing: [undefined, refuse("closing")],
  disabled: [undefined, refuse("disabled")],
};
/** The connection ends because nobody needs it, or to be replaced: there is no error. */
const ENDED: Row = Object.fromEntries(
  ALL.filter((name) => STATES[name].name === "connected").map((name) => [name, [{ name: "idle" }, CLOSE]]),
);
const COMMON: Record<Exclude<EventName, OfLifecycle>, Row> = {
  "wanted by a call": WANTED,
  "wanted in the background": {
    ...WANTED,
    "failed, waited for a call": [undefined, refuse("waiting-to-retry")],
    "held back": [undefined, refuse("waiting-to-retry")],
  },
  "wanted by the user": {
    ...WANTED,
    "idle after a drop": [connecting(0), OPEN],
    "idle after four drops": [connecting(0), OPEN],
    "failed, still to wait": [connecting(0), OPEN],
    "failed, waited for a call": [connecting(0), OPEN],
    "failed, waited": [connecting(0), OPEN],
  },
  "wanted by the timer": {
    ...WANTED,
    "failed, still to wait": [connecting(3), OPEN],
    "held back": [undefined, refuse("waiting-to-retry")],
  },
  opened: {
    connecting: [{ name: "connected", failures: 0, sinceMs: NOW }, []],
    "connecting again": [{ name: "connected", failures: 2, sinceMs: NOW }, []],
  },
  "open-failed with 401": {
    connecting: [{ name: "needs-auth", error: needsAuth }, []],
    "connecting again": [{ name: "needs-auth", error: needsAuth }, []],
  },
  "auth-lost": Object.fromEntries(
    ALL.filter((name) => STATES[name].name === "connected").map((name) => [
      name,
      [{ name: "needs-auth", error: needsAuth }, [{ type: "close-when-idle" }]],
    ]),
  ),
  "held-back": {
    idle: [STATES["held back"], []],
    "idle after a drop": [STATES["held back"], []],
    "idle after four drops": [STATES["held back"], []],
  },
  renewed: ENDED,
  closed: Object.fromEntries(
    ALL.filter((name) => name !== "closing" && name !== "disabled").map((name) => [
      name,
      [{ name: "closing" }, CLOSE],
    ]),
  ),
};

const later = (delayMs: number): ServerEffect => ({ type: "reconnect-later", delayMs });
const idle = (failures: number): ServerPhase => ({ name: "idle", error, failures });
/** After a connection that lived for a minute, failures are counted from the start. */
const dropped = (laterOf: (delayMs: number) => ServerEffect[]): Row => ({
  connected: [idle(1), [...CLOSE, ...laterOf(1_000)]],
  "connected for a minute": [idle(1), [...CLOSE, ...laterOf(1_000)]],
  "connected again": [idle(3), [...CLOSE, ...laterOf(4_000)]],
  "connected again for a minute": [idle(1), [...CLOSE, ...laterOf(1_000)]],
});
const openFailed = (laterOf: (delayMs: number) => ServerEffect[]): Row => ({
  connecting: [failed(1), laterOf(1_000)],
  "connecting again": [failed(3), laterOf(4_000)],
});
const outdated = (laterOf: (delayMs: number) => ServerEffect[]): Row =>
  Object.fromEntries(
    Object.keys(ENDED).map((name) => [
      name,
      [{ name: "idle" }, [{ type: "close-when-idle" }, ...laterOf(1_000)]],
    ]),
  );
const never = (): ServerEffect[] => [];
const byItself = (delayMs: number): ServerEffect[] => [later(delayMs)];
const waitsFor = (laterOf: (delayMs: number) => ServerEffect[]) => ({
  "open-failed": openFailed(laterOf),
  dropped: dropped(laterOf),
  outdated: outdated(laterOf),
});
const OF_LIFECYCLE: Record<Lifecycle, Record<OfLifecycle, Row>> = {
  lazy: { ...waitsFor(never), "idle-expired": ENDED },
  eager: { ...waitsFor(never), "idle-expired": ENDED },
  "keep-alive": { ...waitsFor(byItself), "idle-expired": {} },
};

const describeOutcome = ([state, effects]: Outcome): string => {
  const name = state === undefined ? "stays" : state.name;
  return [name, ...effects.map((effect) => effect.type)].join(" + ");
};

describe.each(LIFECYCLES)("transition of a server that is %s", (lifecycle) => {
  const table: Record<EventName, Row> = { ...COMMON, ...OF_LIFECYCLE[lifecycle] };
  const rows = (Object.keys(EVENTS) as EventName[]).flatMap((event) =>
    ALL.map((state) => {
      const outcome = table[event][state] ?? NOTHING;
      return { state, event, outcome, title: describeOutcome(outcome) };
    }),
  );
  it.each(rows)("$state, $event -> $title", ({ state, event, outcome }) => {
    const before: ServerPhase = STATES[state];
    const after = transition(before, EVENTS[event], policyOf(lifecycle));
    const [expected, effects] = outcome;
    if (expected === undefined) expect(after.state).toBe(before);
    else expect(after.state).toEqual(expected);
    expect(after.effects).toEqual(effects);
  });
});

describe("transition of a keep-alive server, event after event", () => {
  /** The last state, and the pauses before further attempts. */
  function run(before: ServerPhase, events: readonly ServerEvent[]) {
    let state = before;
    const delays: number[] = [];
    for (const event of events) {
      const after = transition(state, event, policyOf("keep-alive"));
      state = after.state;
      for (const effect of after.effects) if (effect.type === "reconnect-later") delays.push(effect.delayMs);
    }
    return { state, delays };
  }
  const times = (rounds: number, ...events: ServerEvent[]): ServerEvent[] =>
    Array(rounds).fill(events).flat();
  const { opened, dropped: droppedAtOnce, "open-failed": openFailedAtOnce } = EVENTS;
  const retried = EVENTS["wanted by the timer"];
  const start: ServerPhase = { name: "idle" };

  test("every state and event -> the state that was given is not changed", () => {
    // An error is no plain data, and no transition makes a copy of one.
    const plain = (): string =>
      JSON.stringify(Object.values(STATES).map((state) => ({ ...state, error: 0 })));
    const before = plain();
    for (const lifecycle of LIFECYCLES)
      for (const state of ALL)
        for (const event of Object.values(EVENTS)) transition(STATES[state], event, policyOf(lifecycle));
    expect(plain()).toEqual(before);
  });

  test("it never comes up -> retried by its timer after growing pauses, without end", () => {
    const { delays } = run(start, times(9, retried, openFailedAtOnce));
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  /** The pauses between `rounds` connections. `livesMs`: how long each of them lives. */
  function waitsOf(livesMs: (round: number) => number, rounds: number): number[] {
    let state = start;
    let nowMs = NOW;
    const waits: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const endMs = nowMs + livesMs(round);
      const after = run(state, [
        { type: "wanted", by: "timer", nowMs },
        { type: "opened", nowMs },
        { type: "dropped", error, nowMs: endMs },
      ]);
      state = after.state;
      waits.push(...after.delays);
      nowMs = endMs + (waits.at(-1) ?? 0);
    }
    return waits;
  }

  const GROWING = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
  test.each<[string, (round: number) => number, number[]]>([
    ["dies right after each connect", () => 0, GROWING],
    ["lives for 59 s each time", () => 59_000, GROWING],
    ["lives for 61 s each time", () => 61_000, Array(8).fill(1_000)],
    [
      "lives for 61 s now and then",
      (round) => (round % 3 === 2 ? 61_000 : 0),
      [1_000, 2_000, 1_000, 2_000, 4_000, 1_000, 2_000, 4_000],
    ],
  ])("it %s -> waits of %j", (_name, livesMs, waits) => {
    expect(waitsOf(livesMs, 8)).toEqual(waits);
  });

  test.each<[string, ServerPhase, ServerEvent[], ServerPhase]>([
    // The list is part of the connect, so there is no `opened` event.
    [
      "its list fails each time -> it does not connect",
      start,
      times(4, retried, openFailedAtOnce),
      failed(4),
    ],
    [
      "it fails, connects and is dropped at once, over and over -> one count for both",
      start,
      times(3, retried, openFailedAtOnce, retried, opened, droppedAtOnce),
      idle(6),
    ],
    [
      "it came up and stayed -> failures are counted from the start again",
      connecting(5),
      [opened, { type: "dropped", error, nowMs: NOW + STEADY }, retried],
      connecting(1),
    ],
    ["the user connects it after many drops -> the same", idle(9), [wanted("user")], connecting(0)],
  ])("%s", (_name, before, events, after) => {
    expect(run(before, events).state).toEqual(after);
  });
});

describe("backoffMs", () => {
  it.each([
    [0, 1_000],
    [1, 1_000],
    [2, 2_000],
    [6, 32_000],
    [7, 60_000],
    [1_000_000, 60_000],
  ])("%i failures -> %i", (failures, delayMs) => {
    expect(backoffMs(failures)).toBe(delayMs);
  });
});

describe("calls after a failed connect", () => {
  test.each<[string, { failures?: number; tookMs: number; data?: Record<string, unknown> }, number]>([
    ["an address that refuses at once", { tookMs: 2 }, 1_000],
    ["the same, for the hundredth time", { failures: 99, tookMs: 2 }, 1_000],
    ["a program that ends after a while", { tookMs: 700 }, 7_000],
    ["a server that never answers", { tookMs: 30_000 }, 60_000],
    ["503, which names its time", { tookMs: 20, data: { retryAfterMs: 7_000 } }, 7_000],
    ["503, which has let the attempt wait as well", { tookMs: 8_000, data: { retryAfterMs: 3_000 } }, 3_000],
    ["503, which names no time at all", { tookMs: 800, data: { retryAfterMs: 0 } }, 8_000],
    ["503, which names a year", { tookMs: 20, data: { retryAfterMs: 3e10 } }, 60_000],
  ])("%s, %j -> the next attempt after %i ms", (_, { failures = 0, tookMs, data }, ms) => {
    const cause = new ThreadsError("connect_failed", "s could not be connected.", {
      data: { server: "s", ...data },
    });
    const event: ServerEvent = { type: "open-failed", error: cause, nowMs: NOW, tookMs };
    const { state } = transition(connecting(failures), event, policyOf("lazy"));
    expect(state).toMatchObject({ name: "failed", retryAtMs: NOW + ms });
  });

  test("nobody waits -> the pause doubles with each failure, up to ten minutes", () => {
    const unasked = [0, 1, 2, 6, 9, 10, 1_100].map((failures) => {
      const event: ServerEvent = { type: "open-failed", error, nowMs: NOW, tookMs: 2 };
      const { state } = transition(connecting(failures), event, policyOf("eager"));
      return (state as Extract<ServerPhase, { name: "failed" }>).unaskedAtMs - NOW;
    });
    expect(unasked).toEqual([1_000, 2_000, 4_000, 64_000, 512_000, 600_000, 600_000]);
  });
});
