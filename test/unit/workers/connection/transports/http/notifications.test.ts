/** Owns: how often a stream over HTTP is opened again, whatever the server says and however it ends. */
import { Readable } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Noise, unaskedTooLong } from "../../../../../../workers/connection/messages/too-large.ts";
import { Resume } from "../../../../../../workers/connection/transports/http/exchange.ts";
import {
  followNotifications,
  type NotificationOptions,
  resumeAfterMs,
} from "../../../../../../workers/connection/transports/http/streamable.ts";

const HOUR_MS = 60 * 60 * 1_000;
/** For streams that are opened again each second, all hour long. */
const MINUTES_MS = 5 * 60 * 1_000;

afterEach(() => {
  vi.useRealTimers();
});

type Streams = (nth: number) => { text: string; livesMs?: number } | Error | undefined;

/** Follows the streams for an hour, or that time, of a clock that only the waits and the streams move. */
async function follow(streams: Streams, forMs = HOUR_MS) {
  vi.useFakeTimers({ toFake: ["performance"] });
  const startedAt = performance.now();
  const ended = new AbortController();
  const waits: number[] = [];
  const notes: string[] = [];
  const ids: (string | undefined)[] = [];
  const pass = (ms: number): void => {
    vi.advanceTimersByTime(ms);
    if (performance.now() - startedAt >= forMs) ended.abort();
  };
  const options: NotificationOptions = {
    open: async (lastId) => {
      ids.push(lastId);
      const stream = streams(ids.length - 1);
      if (stream instanceof Error) throw stream;
      if (!stream) return undefined;
      const { text, livesMs = 0 } = stream;
      const body = Readable.from(
        (async function* () {
          yield Buffer.from(text);
          pass(livesMs);
        })(),
      );
      return { status: 200, headers: {}, body };
    },
    noise: new Noise(() => undefined),
    onEvent: ({ data }) => {
      if (`${data}` === "refuse") throw unaskedTooLong(20_000_000, 16_777_216);
      return undefined;
    },
    onNote: (note) => notes.push(note),
    maxBytes: 1_000,
    signal: ended.signal,
    wait: async (ms) => {
      waits.push(ms);
      pass(ms);
    },
  };
  await followNotifications(options);
  return { waits, notes, ids };
}

const ONCE = "ended its notification stream; it is opened again from now on";
const RARELY = "ends its notification stream at once each time; it is opened every 5 minutes now";

describe("followNotifications, a server that ends its stream", () => {
  test.each<[string, Streams]>([
    ["at once with retry: 0", () => ({ text: "retry: 0\n\n" })],
    ["at once without a word", () => ({ text: "" })],
    ["at once with a comment", () => ({ text: ": hello\n\n" })],
    ["by breaking it", () => new Error("reset")],
    ["after nine silent seconds", () => ({ text: "", livesMs: 9_000 })],
  ])("%s -> ever more slowly, at last 12 times an hour, with two notes", async (_name, streams) => {
    const { waits, notes } = await follow(streams);
    expect(waits.slice(0, 9)).toEqual([
      2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000,
    ]);
    expect(new Set(waits.slice(8))).toEqual(new Set([300_000]));
    expect(waits.length).toBeLessThan(24);
    expect(notes).toEqual([ONCE, RARELY]);
  });

  test("after each event, with retry: 0 -> once a second, with the last id and one note", async () => {
    const { waits, notes, ids } = await follow(
      (nth) => ({ text: `retry: 0\nid: ${nth}\ndata: x\n\n` }),
      MINUTES_MS,
    );
    expect(new Set(waits)).toEqual(new Set([1_000]));
    expect(notes).toEqual([ONCE]);
    expect(ids.slice(0, 3)).toEqual([undefined, "0", "1"]);
  });

  test("after a silent minute, as proxies do -> opened again after a second each time", async () => {
    const { waits, notes } = await follow(() => ({ text: "", livesMs: 60_000 }));
    expect(new Set(waits)).toEqual(new Set([1_000]));
    expect(notes).toEqual([ONCE]);
  });

  test("and later sends something -> the waits begin again", async () => {
    const { waits } = await follow((nth) => ({ text: nth === 4 ? "data: x\n\n" : "" }));
    expect(waits.slice(0, 7)).toEqual([2_000, 4_000, 8_000, 16_000, 1_000, 2_000, 4_000]);
  });

  test("and names 3 s -> 3 s; and names 30 years -> 5 minutes", async () => {
    const named = async (retry: string) =>
      (await follow(() => ({ text: `retry: ${retry}\ndata: x\n\n` }), MINUTES_MS)).waits[0];
    expect(await named("3000")).toBe(3_000);
    expect(await named("999999999")).toBe(300_000);
    expect(await named("1000000000000")).toBe(1_000);
  });

  test("because a message was refused for its size, each time -> a note each time, ever more slowly", async () => {
    const { waits, notes } = await follow(() => ({ text: `data: ${"x".repeat(2_000)}\n\n` }));
    expect(waits.slice(0, 3)).toEqual([2_000, 4_000, 8_000]);
    const told =
      "sent one message of more than 1,000 bytes on its notification stream, which is opened again without it. " +
      "Ask the server for less at a time, or raise maxMessageBytes in the settings of mcp.json.";
    expect(notes.filter((note) => note !== RARELY)).toEqual(waits.map(() => told));
    expect(notes.filter((note) => note === RARELY)).toHaveLength(1);
  });

  test("after a notification that was refused for its size -> one note for each", async () => {
    const { waits, notes } = await follow(
      (nth) => ({ text: nth === 0 ? "data: refuse\n\n" : "data: x\n\n" }),
      MINUTES_MS,
    );
    expect(waits[0]).toBe(1_000);
    expect(notes).toEqual([
      "sent a notification or request of 19.1 MiB, more than 16 MiB on its notification stream, which is opened again " +
        "without it. This is a fault of the server: only answers to requests may be longer.",
      ONCE,
    ]);
  });

  test("and then offers none -> not asked again", async () => {
    const { ids } = await follow((nth) => (nth === 2 ? undefined : { text: "" }));
    expect(ids).toHaveLength(3);
  });
});

test.each([
  [0, 0, 1_000],
  [500, 0, 1_000],
  [500, 1, 2_000],
  [2_000, 3, 16_000],
  [0, 1_000_000, 300_000],
  [999_999_999, 0, 300_000],
])("resumeAfterMs(%i, %i) -> %i ms", (retryMs, vain, ms) => {
  expect(resumeAfterMs(retryMs, vain)).toBe(ms);
});

/** The waits between the attempts for an answer; `onStream` gets each stream. */
function resumed(retryMs: number | undefined, onStream: (resume: Resume) => void) {
  let now = 0;
  const resume = new Resume(() => now);
  resume.lastId = "1";
  if (retryMs !== undefined) resume.retryMs = retryMs;
  const waits: number[] = [];
  for (
    let waitMs = resume.nextMs();
    waitMs !== undefined && waits.length < 50_000;
    waitMs = resume.nextMs()
  ) {
    waits.push(waitMs);
    now += waitMs;
    resume.onAttempt(true);
    onStream(resume);
  }
  return { waits, totalMs: now };
}

describe("Resume", () => {
  test.each([
    [undefined, 1_000],
    [500, 500],
    [0, 100],
    [5, 100],
    [999_999_999, 30_000],
  ])("a server that names %s ms -> first asked again after %i ms", (retryMs, ms) => {
    expect(resumed(retryMs, () => undefined).waits[0]).toBe(ms);
  });

  test("streams that bring nothing, with retry: 0 -> ever more slowly, and not without end", () => {
    const { waits, totalMs } = resumed(0, () => undefined);
    expect(waits).toHaveLength(200);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(totalMs).toBeGreaterThan(HOUR_MS);
    // An answer that comes meanwhile waits for a tenth of the time at most.
    let sum = 0;
    for (const waitMs of waits) {
      expect(waitMs).toBeLessThanOrEqual(Math.max(100, sum * 0.1 + 1));
      sum += waitMs;
    }
  });

  test("a new id with each stream -> no message, so the same", () => {
    let id = 1;
    expect(resumed(0, (resume) => (resume.lastId = String(++id))).waits).toHaveLength(200);
  });

  test("a message with each stream -> at the pace that the server names", () => {
    const { waits } = resumed(250, (resume) => resume.onMessage());
    expect(new Set(waits)).toEqual(new Set([250]));
  });

  test("attempts that fail -> two in a row, no more", () => {
    const resume = new Resume(() => 0);
    resume.lastId = "1";
    resume.onAttempt(false);
    resume.onAttempt(true);
    resume.onAttempt(false);
    expect(resume.nextMs()).toBe(1_000);
    resume.onAttempt(false);
    expect(resume.nextMs()).toBeUndefined();
  });

  test("no id -> nothing to resume", () => {
    expect(new Resume(() => 0).nextMs()).toBeUndefined();
  });
});
