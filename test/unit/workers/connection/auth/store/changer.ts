/** Owns: processes that change one sign-in of a store, are waited for and killed, and what must hold then. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { oneFile } from "../../../../../support/one-file.ts";
import { never, type TestStore } from "./support.ts";

const PROGRAM = (): string => oneFile("changes-record", join(import.meta.dirname, "changes-record.ts")).file;

export interface Changer {
  child: ChildProcessWithoutNullStreams;
  /** Settles when the process has printed so many lines, or has ended. */
  printed: (lines: number) => Promise<void>;
  /** `last`: the last line. */
  ended: Promise<{ code: number | null; errors: string; last: string }>;
}

/** `env`: then the tokens go to the system's store, whose program is found with it. */
export function startChanger(
  agentDir: string,
  count: string,
  env?: Record<string, string | undefined>,
): Changer {
  const place = env === undefined ? "file" : "system";
  const child = spawn(process.execPath, [PROGRAM(), agentDir, count, place], { env: env ?? process.env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [lines, errors, last] = [0, "", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const reader = createInterface(child.stdout).on("line", (line) => {
    lines++;
    last = line;
    child.emit("line");
  });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, errors, last }));
  const printed = async (wanted: number): Promise<void> => {
    while (lines < wanted)
      await Promise.race([once(child, "line"), ended.then(() => Promise.reject(new Error(errors)))]);
  };
  onTestFinished(() => reader.close());
  return { child, printed, ended };
}

type Env = Record<string, string | undefined>;

/** Four processes add to one sign-in of the system's store, each so many times: no change is lost. */
export async function addTogether({ agentDir, store }: TestStore, env: Env, times: number): Promise<void> {
  const changers = Array.from({ length: 4 }, () => startChanger(agentDir, String(times), env));
  const ends = await Promise.all(changers.map(({ ended }) => ended));
  expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(
    changers.map(() => ({ code: 0, errors: "" })),
  );
  expect((await store.read()).record?.obtainedAt).toBe(4 * times);
}

/** A process that writes into the system's store is killed so many times: each finds the old sign-in or the new one. */
export async function killedWriting({ agentDir, store }: TestStore, env: Env, rounds: number): Promise<void> {
  let last = 0;
  for (let round = 1; round <= rounds; round++) {
    const { child, printed, ended } = startChanger(agentDir, "100000", env);
    await printed(round);
    child.kill("SIGKILL");
    await ended;
    const now = await store.locked(async ({ record }) => record?.obtainedAt ?? 0, never());
    expect(now).toBeGreaterThanOrEqual(last + round);
    last = now;
  }
}
