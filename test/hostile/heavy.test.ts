/**
 * Owns: messages within all limits of size that take long to read. None delays a call of another server, and none ends the
 * connection worker.
 *
 * HEAVY_MESSAGES=10000 sends as many random answers, each of up to 60 MB. HEAVY_SEED selects others. A failure names the
 * seed and the message's number, and only these two decide the message.
 *
 *   HEAVY_MESSAGES=10000 HEAVY_SEED=7 npx vitest run test/hostile/heavy.test.ts
 */
import { spawn } from "node:child_process";
import { once as onceOf } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { decode } from "../../src/shared/protocol/calls.ts";
import { once } from "../e2e/support.ts";
import { amount, family, repeats } from "../support/long.ts";
import { oneFile } from "../support/one-file.ts";
import { LONG_TEST_MS } from "../support/patience.ts";
import { clockSlowness, coreSlowness } from "../support/slowdown.ts";
import { onCleanup, type Started, start } from "../worker/support.ts";
import { shown, sized } from "./rows/sizes.ts";
import { randomMessage } from "./servers/random-message.ts";

const SERVERS = join(import.meta.dirname, "servers");
const program = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(SERVERS, name), ...args],
  requestTimeoutMs: 120_000,
});

const randomProgram = () => {
  const { file, env } = oneFile("heavy-random", join(SERVERS, "heavy-random.ts"));
  return { command: process.execPath, args: [file], env, requestTimeoutMs: 120_000 };
};

/** The bound on a machine that has nothing else to do. */
const LATE_MS = 250;
const TRIES = 6;
/** Grows with each try: what else keeps the machine busy may have ended then. */
const PAUSE_MS = 300;
/** The pause between two calls counts as a delay, so none is missed; a shorter pause costs more than most messages do. */
const BEAT_MS = 20;

/**
 * Runs something, and answers the longest time meanwhile from one answer of the healthy server to its next one. Throws if a
 * call of it fails.
 */
async function beside(at: Started, run: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let longest = 0;
  const calls = (async () => {
    let answeredAt = performance.now();
    while (!isOver) {
      await at.call("good", "echo", { text: "x" });
      const now = performance.now();
      longest = Math.max(longest, now - answeredAt);
      answeredAt = now;
      await sleep(BEAT_MS);
    }
  })();
  try {
    await run();
  } finally {
    isOver = true;
    await calls;
  }
  return longest;
}

/**
 * A busy machine delays a call as well, so only an attack that delays calls each time counts, by more than the machine does then.
 */
async function expectNoDelay(at: Started, what: string, run: () => Promise<unknown>): Promise<void> {
  const late: string[] = [];
  for (let attempt = 0; attempt < TRIES; attempt++) {
    await sleep(PAUSE_MS * attempt);
    const delayMs = await beside(at, run);
    expect(at.crashes, what).toEqual([]);
    if (delayMs <= LATE_MS) return;
    const slowdown = await clockSlowness();
    if (delayMs < LATE_MS * slowdown) return;
    late.push(`${Math.round(delayMs)} ms (machine slowed down ${slowdown.toFixed(1)} times)`);
  }
  expect(late, what).toEqual([]);
}

const startWith = async (
  servers: Record<string, Record<string, unknown>>,
  settings: Record<string, unknown> = {},
): Promise<Started> => {
  const at = await start({ good: program("healthy.mjs"), ...servers }, { settings });
  await at.runtime.settleTools({ timeoutMs: 60_000 }, undefined);
  await at.call("good", "echo", { text: "x" });
  return at;
};

/** The text of the answer, or the code and the words of the error. */
const outcome = (at: Started, server: string, args: Record<string, unknown> = {}): Promise<string> =>
  at.call(server, "work", args).then(
    ({ content }) => content.map((part) => (part.type === "text" ? part.text : part.type)).join("\n"),
    ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
  );

/** What takes this much longer than where the numbers of the rows were chosen may take too long to be read. */
const SLOW = 1.3;
const TOO_LONG = /^message_too_large: .* takes more than 2 s to read/;

/** The answer is this one, or the cores are so slow that the message may not be read to its end. */
async function expectAnswer(text: string, answer: RegExp): Promise<void> {
  if (TOO_LONG.test(text) && (await coreSlowness()) > SLOW) return;
  expect(text).toMatch(answer);
}

/** Without the thread each of them breaks the bound. */
const ROWS: [kind: string, number: number, answer: RegExp][] = [
  ["keys", sized(300_000, 990_000), /heavy done|^message_too_large: .* takes more than 2 s to read/],
  ["meta", sized(600_000, 900_000), /^heavy done$/],
  ["parts", sized(300_000, 600_000), /Content of an unknown kind: odd|^message_too_large: /],
  ["links", sized(100_000, 200_000), /^\[Resource link: n\] x:0\n/],
  ["error", sized(600_000, 900_000), /^call_rejected: error rejected work: refused$/],
  ["notification", sized(600_000, 900_000), /^heavy done$/],
  ["request", sized(600_000, 900_000), /^heavy done$/],
];

/** Refused as a whole. */
const NOTIFICATIONS: [kind: string, number: number, answer: RegExp][] = [
  ["escaped", sized(17, 50) * 2 ** 20, /more than 16 MiB; the connection was closed\.$/],
  ["deep", 120_000, /120,001 levels deep, more than 1,000; the connection was closed\.$/],
];

const BATCH = sized(60_000, 300_000);
const BATCHES: [version: string, how: string, answer: RegExp][] = [
  ["2025-03-26", "body", /^message_too_large: .* sent [\d,]+ messages at once, more than 100\.$/],
  ["2025-03-26", "stream", /^message_too_large: .* sent [\d,]+ messages at once, more than 100\.$/],
  ["2025-06-18", "body", /^server_died: .*this is not a JSON-RPC message/],
];

async function batchServer(version: string, how: string): Promise<Record<string, unknown>> {
  const child = spawn(process.execPath, [join(SERVERS, "http/batch.mjs"), `${BATCH}`, version, how], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onCleanup(async () => {
    child.kill("SIGKILL");
  });
  const [port] = (await onceOf(child.stdout.setEncoding("utf8"), "data")) as [string];
  return { url: `http://127.0.0.1:${Number(port)}/mcp` };
}

/** The session of all servers that do nothing before they are called. */
const session = once(async () => {
  const servers: Record<string, Record<string, unknown>> = { random: randomProgram() };
  for (const [kind, number] of [...ROWS, ...NOTIFICATIONS])
    servers[kind] = program("heavy.mjs", kind, String(number));
  for (const [version, how] of BATCHES) servers[`${version}-${how}`] = await batchServer(version, how);
  return startWith(servers);
});

test.each(ROWS)(
  "a server sends %s, %i of them -> no other call is late",
  async (kind, _, answer) => {
    const at = await session();
    await expectNoDelay(at, kind, async () => {
      await expectAnswer((await outcome(at, kind)).slice(0, 1_000), answer);
    });
  },
  LONG_TEST_MS,
);

test.each(NOTIFICATIONS)(
  "a notification that is %s -> refused, and no other call is late",
  async (kind, _, answer) => {
    const at = await session();
    await expectNoDelay(at, kind, async () => {
      expect(await outcome(at, kind)).toMatch(answer);
    });
  },
  LONG_TEST_MS,
);

test.each(
  family<[string, number]>([
    ["capabilities", sized(600_000, 900_000)],
    ["tools", sized(600_000, 1_800_000)],
    ["names", 300_000],
  ]),
)(
  "a server says %s when it connects, %i of them -> no other call is late, and its tool works",
  async (kind, number) => {
    const at = await startWith({ bad: { ...program("heavy.mjs", kind, String(number)), lifecycle: "lazy" } });
    await expectNoDelay(at, kind, async () => {
      await at.runtime.ask("reconnect", { server: "bad" });
      await expectAnswer(await outcome(at, "bad"), /^heavy done$/);
      await sleep(500);
    });
  },
  LONG_TEST_MS,
);

test.each(BATCHES)(
  `a batch of ${shown(BATCH)} messages in MCP %s as a %s -> refused, no other call is late`,
  async (version, how, answer) => {
    const at = await session();
    await expectNoDelay(at, version, async () => {
      expect(await outcome(at, `${version}-${how}`)).toMatch(answer);
    });
  },
  LONG_TEST_MS,
);

const MARKS = sized(2_000_000, 3_000_000);

test.each(
  family<["readResource" | "getPrompt", object]>([
    ["readResource", { uri: "x:a" }],
    ["getPrompt", { prompt: "p", args: {} }],
  ]),
)(
  `%s, answered with ${shown(MARKS)} marks that the person's message holds as a whole -> no other call is late`,
  async (request, params) => {
    const at = await startWith(
      { marks: program("heavy.mjs", "marks", String(MARKS)) },
      { outputGuard: false },
    );
    await expectNoDelay(at, request, async () => {
      const text = await at.runtime
        .ask(request as "readResource", { server: "marks", uri: "", ...params })
        .then(
          (bytes) => JSON.stringify(decode(bytes)).slice(0, 1_000),
          ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
        );
      await expectAnswer(text, /"a\u0301{14}\u25cc/);
    });
  },
  LONG_TEST_MS,
);

const MESSAGES = repeats("HEAVY_MESSAGES", amount(10, 40));
const SEED = repeats("HEAVY_SEED", sized(1, 1 + (Date.now() % 1_000_000)));
const MOST_BYTES = sized(6_000_000, 60_000_000);

test(
  `${MESSAGES} random messages, seed ${SEED} -> each call ends, and no other call is late`,
  async () => {
    const at = await session();
    for (let number = 0; number < MESSAGES; number++) {
      const args = { seed: SEED, number, mostBytes: MOST_BYTES };
      const name = `seed ${SEED}, message ${number}: ${randomMessage(SEED, number, 0, MOST_BYTES).what}`;
      await expectNoDelay(at, name, async () => {
        expect(await outcome(at, "random", args), name).not.toMatch(
          /^(internal|runtime_restarted|call_timeout):/,
        );
      });
    }
  },
  120_000 + MESSAGES * 20_000,
);
