/** Owns: a system that refuses to end a server's processes: the connection still ends, and nothing waits for them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { waitGone } from "../support/processes.ts";
import { fixture, fixtures, forRows, onCleanup, type Started, start, textOf, until } from "./support.ts";

const workerUrl = pathToFileURL(join(fixtures, "workers", "refuses-kill.mjs"));

const spawned = ({ events }: Started, server: string): number[] =>
  events.flatMap((event) => (event.type === "spawned" && event.server === server ? [event.pid] : []));

/** One worker with a server for each test. The first test runs before the system refuses all signals. */
const session = forRows(() =>
  start(
    {
      dies: fixture("dies-in-call.mjs"),
      big: fixture("big-line.mjs"),
      other: fixture("noisy.mjs"),
      stays: fixture("ignores-end.mjs"),
    },
    { workerUrl },
  ),
);

/** From now on the system refuses every signal to a process group. */
const refuseAll = ({ agentDir }: Started): Promise<void> =>
  writeFile(join(agentDir, "mcp-threads.log.refuse"), "");

/** Asserts that no refusal (EPERM) ended the worker. An overloaded machine may end it for other reasons. */
const expectNoThrow = ({ crashes }: Started): void =>
  expect(crashes.filter(({ reason }) => /EPERM/.test(reason))).toEqual([]);

/** Ends the processes after the test, because the worker cannot. */
function endAfterTest(pids: readonly number[]): void {
  onCleanup(async () => {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has already ended.
      }
    }
    await waitGone(pids);
  });
}

test("a server ends, and its group refuses signals -> server_died, the next call connects again", async () => {
  const at = await session();
  await at.settled("dies");
  for (let i = 1; i <= 2; i++) {
    const error = await at.failedCall("dies", "work");
    expect(error).toMatchObject({ code: "server_died", data: { server: "dies" } });
    expect((await at.settled("dies")).state).not.toBe("connected");
    expect(spawned(at, "dies")).toHaveLength(i);
    // Each process with a spawned event also gets an exited event.
    await at.event("exited", ({ pid }) => pid === spawned(at, "dies").at(-1));
  }
  expectNoThrow(at);
});

test("a message over the limit from a server that cannot be ended -> its connection ends, others go on", async () => {
  const at = await session();
  await at.settled("big");
  endAfterTest(spawned(at, "big"));
  await refuseAll(at);
  const error = await at.failedCall("big", "work", { bytes: LIMITS.messageBytes + 1 });
  expect(error).toMatchObject({ code: "message_too_large" });
  expect((await at.settled("big")).state).not.toBe("connected");
  expect(textOf(await at.call("other", "work"))).toBe("through the noise");
  expectNoThrow(at);
});

test("a server that ignores the end of its stdin and cannot be ended -> a new connection does not wait for it", async () => {
  const at = await session();
  await at.settled("stays");
  endAfterTest(spawned(at, "stays"));
  await refuseAll(at);
  await at.runtime.ask("reconnect", { server: "stays" });
  expect((await at.settled("stays")).state).toBe("connected");
  endAfterTest(spawned(at, "stays"));
  expect(spawned(at, "stays")).toHaveLength(2);
  await until(async () => /still runs as process \d+: the system refuses/.test(await at.log()) || undefined);
  expectNoThrow(at);
});

test("a !command that cannot be ended -> the server fails after the time limit", async () => {
  const at = await start({ slow: fixture("noisy.mjs", { TOKEN: "!exec sleep 300" }) }, { workerUrl });
  const { pid } = await at.event("spawned");
  endAfterTest([pid]);
  await refuseAll(at);
  await at.runtime.ask("reconnect", { server: "slow" }).catch(() => undefined);
  expect(await at.failedCall("slow", "work")).toMatchObject({ code: "bad_config" });
  expectNoThrow(at);
});
