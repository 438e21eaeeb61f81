/**
 * Owns: the table of inputs by which a server can take the connection worker's time: for each, a healthy neighbour's call stays
 * quick, the worker lives, and the attacker is named. By default and under `ALL_ROWS=1` ten different attackers share a
 * worker; `HOSTILE_WHOLE=1` gives each input a worker of its own, with 1, 3 and 10 attackers.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { endHub } from "../support/end-hub.ts";
import { family, repeats } from "../support/long.ts";
import { LONG_TEST_MS } from "../support/patience.ts";
import { clockSlowness } from "../support/slowdown.ts";
import { onCleanup, type Started, start, textOf, until } from "../worker/support.ts";

const SERVERS = join(import.meta.dirname, "servers");
/** An attack lasts until the servers are ended. */
const FOR_MS = "600000";

/** A healthy call takes no longer beside any attack, in milliseconds. */
const CALL_MS = 250;
const CALLS = 20;
/** A slow call counts only if it comes back: the best of these rounds decides. */
const ROUNDS = 3;

type Input = [where: string, what: string];
const of = (where: string, whats: readonly string[]): Input[] => whats.map((what) => [where, what]);

const MESSAGES = ["answers to no request", "errors to no request", "unknown notifications", "changed lists"];
const MORE_MESSAGES = ["progress of no call", "log messages"];

/** The first ten are the most telling ones: `npm test` runs no others. */
const INPUTS: readonly Input[] = [
  ...of("stdout", ["lines of a letter", "lines of a return", "lines that begin as a message"]),
  ...of("stderr", ["lines of a letter"]),
  ...of("notifications", ["empty lines", "ids", "unknown notifications"]),
  ...of("answer", ["comments"]),
  ...of("gzip", ["empty lines"]),
  ...of("bytes", [""]),
  ...of("stdout", ["empty lines", "lines that pass for a message", "lines of a list", "lines of a number"]),
  ...of("stdout", ["long lines", ...MESSAGES, ...MORE_MESSAGES]),
  ...of("stderr", ["empty lines", "lines of a return", "long lines"]),
  ...of("notifications", ["returns", "comments", "long comments", "retries", "types", "unknown fields"]),
  ...of("notifications", ["empty events", "lines of one event", "events that are no message"]),
  ...of("notifications", ["events of another type", "changed lists", ...MORE_MESSAGES]),
  ...of("answer", ["empty lines", "lines of one event", ...MESSAGES]),
  ...of("gzip", ["unknown notifications", "lines of one event"]),
  ...of("br", ["empty lines", "unknown notifications"]),
  ...of("body", [""]),
  ...of("error", [""]),
  ...of("command", [""]),
  ...of("shared", ["lines of a letter", "unknown notifications"]),
];

interface Row {
  name: string;
  attackers: readonly Input[];
}

const named = ([where, what]: Input): string => `${where}${what === "" ? "" : `: ${what}`}`;
const alone = INPUTS.flatMap((input) =>
  [1, 3, 10].map(
    (count): Row => ({
      name: `${count} of ${named(input)}`,
      attackers: Array.from({ length: count }, () => input),
    }),
  ),
);
const beside = Array.from({ length: Math.ceil(INPUTS.length / 10) }, (_, i): Row => {
  const attackers = INPUTS.slice(i * 10, (i + 1) * 10);
  return { name: attackers.map(named).join("; "), attackers };
});
const rows = repeats("HOSTILE_WHOLE", 0) > 0 ? alone : family(beside as [Row, ...Row[]]);

const program = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(SERVERS, name), ...args],
});

async function entryOf([where, what]: Input): Promise<Record<string, unknown>> {
  if (where === "command") return { ...program("healthy.mjs"), env: { TOKEN: "!yes" } };
  if (where === "stdout" || where === "stderr")
    return { ...program("useless.mjs", where, what, FOR_MS), debug: where === "stderr" };
  if (where === "shared") return { ...program("useless.mjs", "stdout", what, FOR_MS), shared: true };
  const { command, args } = program("http/useless.mjs", where, what, FOR_MS);
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  onCleanup(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  return { url: `http://127.0.0.1:${Number(line)}/mcp` };
}

/** The attackers that neither a line of the log nor the error of their own call names. */
async function unnamed(at: Started, attackers: readonly string[], errors: readonly string[]) {
  const lines = [...(await at.log()).split("\n"), ...errors].filter((line) => !/ connected over /.test(line));
  return attackers.filter((name) => !lines.some((line) => new RegExp(`\\b${name}\\b`).test(line)));
}

/** Its connection is closed, with an error that names it. */
const NOISE = "stdout: lines of a return";

async function expectClosed(at: Started, evil: string): Promise<void> {
  const error = await until(async () => {
    const { servers } = await at.runtime.ask("status", {});
    return servers.find(({ name }) => name === evil)?.error;
  });
  expect(error).toMatchObject({
    code: "server_died",
    message: `${evil} sent more than 100,000 lines within 10 s that hold no message; the connection was closed.`,
  });
}

async function callMs(at: Started): Promise<number> {
  const startedAt = performance.now();
  expect(textOf(await at.call("good", "echo", { text: "beside" }))).toBe("echo: beside");
  return performance.now() - startedAt;
}

/** The slowest of a round of calls, in milliseconds. */
async function slowestMs(at: Started): Promise<number> {
  let slowest = 0;
  for (let i = 0; i < CALLS; i++) {
    slowest = Math.max(slowest, await callMs(at));
    await sleep(10);
  }
  return slowest;
}

test.each(rows.map(({ name, attackers }) => [name, attackers] as const))(
  "%s -> a neighbour answers within 250 ms, the worker lives, each attacker is named, and one that prints but noise is closed",
  { timeout: LONG_TEST_MS },
  async (name, attackers) => {
    const names = attackers.map((_, i) => `evil${i}`);
    const entries = await Promise.all(attackers.map(entryOf));
    const at = await start({
      good: program("healthy.mjs"),
      ...Object.fromEntries(names.map((evil, i) => [evil, entries[i]])),
    });
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    await callMs(at);
    const errors: string[] = [];
    const attacks = names.map((evil) =>
      at.call(evil, "work").then(
        () => undefined,
        (error: Error) => void errors.push(error.message),
      ),
    );
    let [best, limit] = [Number.POSITIVE_INFINITY, CALL_MS];
    for (let round = 0; round < ROUNDS && best > CALL_MS; round++) best = Math.min(best, await slowestMs(at));
    if (best > CALL_MS) limit *= await clockSlowness();
    process.stdout.write(`pace: healthy call ${Math.round(best)} ms: ${name}\n`);
    expect(best).toBeLessThan(limit);
    while ((await unnamed(at, names, errors)).length > 0) await callMs(at);
    for (const [i, attacker] of attackers.entries())
      if (named(attacker) === NOISE) await expectClosed(at, `evil${i}`);
    expect(at.crashes).toEqual([]);
    await at.runtime.stop();
    await Promise.all(attacks);
    if (attackers.some(([where]) => where === "shared")) await endHub(at.agentDir);
  },
);
